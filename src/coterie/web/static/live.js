// What is kept up to date on a campaign's page, and which part of it is shown.
import { sayLogin, send } from "./api.js";
import { localNumbers } from "./numbers.js";
import { localTimes } from "./times.js";

const page = document.getElementById("campaign");
const id = page.dataset.id;
const find = (name) => document.getElementById(name);

// ---- The parts: one is shown, by the address.

const links = [...page.querySelectorAll("nav.parts a")];

function showPart() {
  const shown = links.find((link) => link.hash === location.hash) ?? links[0];
  page.dataset.part = shown.dataset.to;
  for (const link of links) {
    if (link === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

window.addEventListener("hashchange", () => {
  showPart();
  const top = page.getBoundingClientRect().top + scrollY;
  if (scrollY > top) scrollTo(0, top);
});

// ---- What changes.

let fetching = false;
let again = false;

// Fetch what changes anew. Open details stay open, and the focus stays where it was.
export async function refresh() {
  if (fetching) {
    again = true;
    return;
  }
  fetching = true;
  again = false;
  const began = performance.now();
  try {
    const html = await fetched(`/campaigns/${id}/live`);
    if (html) {
      replace(html);
      refreshProven();
      document.dispatchEvent(new Event("coterie-changed")); // campaign.js and picture.js wait for it
    }
  } finally {
    // At most once a second, and never more than a quarter of the time.
    setTimeout(() => {
      fetching = false;
      if (again) refresh();
    }, Math.max(1000, 3 * (performance.now() - began)));
  }
}

// A piece of the page; nothing while the server is away: the stream of events says when it is back.
async function fetched(path) {
  try {
    const answer = await fetch(path, { credentials: "same-origin", redirect: "error", headers: { Accept: "text/html" } });
    return answer.ok ? await answer.text() : "";
  } catch {
    return "";
  }
}

function replace(html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  for (const part of fresh.content.querySelectorAll("[data-live]")) {
    const place = find(part.dataset.live);
    const open = [...place.querySelectorAll("details[open][id]")].map((one) => one.id);
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    place.replaceChildren(...part.childNodes);
    for (const name of open) find(name)?.setAttribute("open", "");
    localTimes(place);
    localNumbers(place);
    if (focused) find(focused)?.focus({ preventScroll: true });
  }
  const { done, archived, over } = find("state").dataset;
  Object.assign(page.dataset, { done, archived, over });
  links[0].textContent = done === "1" ? "Result" : "Now";
}

// What is proven so far takes the server longer: it is asked for by itself, and less often.
let asking = false;
let outdated = false;

async function refreshProven() {
  if (!find("proven")) return;
  outdated = true;
  if (asking || document.hidden) return;
  asking = true;
  outdated = false;
  const began = performance.now();
  try {
    const html = await fetched(`/campaigns/${id}/proven`);
    if (html) replaceProven(html);
  } finally {
    // At most every three seconds, and a tenth of the time.
    setTimeout(() => {
      asking = false;
      if (outdated) refreshProven();
    }, Math.max(3000, 10 * (performance.now() - began)));
  }
}

function replaceProven(html) {
  const part = find("proven");
  const open = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  part.innerHTML = html;
  localNumbers(part);
  part.removeAttribute("aria-busy");
  for (const name of open) find(name)?.setAttribute("open", "");
  if (focused) find(focused)?.focus({ preventScroll: true });
}

document.addEventListener("visibilitychange", () => {
  if (outdated) refreshProven();
});

// What is wrong with the connection: one message, above everything else.
function sayConnection(text) {
  find("connection").textContent = text;
  find("connection").hidden = !text;
}

export function loggedOut() {
  sayLogin(find("connection"));
}

function connect() {
  const events = new EventSource(`/api/campaigns/${id}/events?brief=true&after=${page.dataset.seq}`);
  events.addEventListener("changed", () => refresh());
  events.addEventListener("open", () => sayConnection(""));
  events.addEventListener("error", async () => {
    const lost = "The connection is lost; this page shows what was known before. Trying again…";
    if (events.readyState !== EventSource.CLOSED) {
      sayConnection(lost);
      return;
    }
    // A refusal is final for the browser: try again by ourselves, somebody may log in in another tab.
    setTimeout(connect, 3000);
    try {
      await send(`/api/campaigns/${id}/measurements?limit=1`);
    } catch (error) {
      if (error.status === 401) loggedOut();
      else sayConnection(lost);
    }
  });
}

showPart();
localTimes();
localNumbers();
if (page.dataset.reading) refresh();
else refreshProven();
connect();
