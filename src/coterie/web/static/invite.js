// The part of a campaign's page where an owner invites somebody, sees who has joined, and takes invitations back.
import { sayLogin, send, showProblem } from "./api.js";
import { toNumber } from "./numbers.js";
import { localTimes } from "./times.js";

const find = (name) => document.getElementById(name);
const part = find("inviting");
const base = `/api/campaigns/${part.dataset.id}/invitations`;
const problem = find("invite-problem");

async function step(work, ...fields) {
  showProblem(problem, "");
  try {
    await work();
  } catch (error) {
    if (error.field === undefined) throw error;
    if (error.status === 401) sayLogin(find("connection"));
    const field = fields.find((one) => one.id === `invite-${error.field}`);
    showProblem(problem, error.message, ...(field ? [field] : []));
    field?.focus();
  }
}

const LONGEST_HOURS = Number(part.dataset.longest);
const STATES = { open: "not used yet", used: "joined", expired: "expired", revoked: "taken back" };

function entry({ id, name, role, state, expires }) {
  const line = document.createElement("li");
  const about = document.createElement("span");
  about.append(Object.assign(document.createElement("b"), { textContent: name }), ` (${role}): ${STATES[state] ?? state}`);
  if (state === "open") about.append(", until ", Object.assign(document.createElement("time"), { dateTime: expires }));
  line.append(about);
  if (state === "open" || state === "used") {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "Revoke" });
    button.setAttribute("aria-label", `Revoke: ${name}`);
    button.addEventListener("click", () => step(async () => {
      await send(`${base}?invitation=${encodeURIComponent(id)}`, undefined, "DELETE");
      find("invite-made").hidden = true;
      await list();
    }));
    line.append(button);
  }
  return line;
}

let shown = "";

async function list() {
  const { invitations } = await send(base);
  const now = JSON.stringify(invitations);
  if (now === shown) return;
  shown = now;
  find("invited").replaceChildren(...invitations.map(entry));
  localTimes(find("invited"));
}

// Who joins, or lets a link expire, is seen while the list is in view.
setInterval(() => {
  if (find("invited").checkVisibility?.() && !document.hidden && shown.includes('"open"')) list().catch(() => {});
}, 5000);

find("invite-copy").addEventListener("click", async () => {
  const link = find("invite-link");
  try {
    await navigator.clipboard.writeText(link.textContent);
    find("invite-copied").textContent = "Copied.";
  } catch { // not over plain HTTP
    getSelection().selectAllChildren(link);
    find("invite-copied").textContent = "Selected: copy it now.";
  }
});

part.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [name, hours] = [find("invite-name"), find("invite-hours")];
  const lasting = toNumber(hours.value);
  if (!name.value.trim()) {
    showProblem(problem, "Say who is invited: the log shows this name beside what they measure.", name);
    name.focus();
    return;
  }
  if (lasting === null || lasting <= 0 || lasting > LONGEST_HOURS) {
    showProblem(problem, `Say how many hours, as 24 or 0.5, and at most ${LONGEST_HOURS}.`, hours);
    hours.focus();
    return;
  }
  step(async () => {
    const made = await send(base, { name: name.value.trim(), role: find("invite-role").value, hours: lasting });
    find("invite-whom").textContent = made.name;
    find("invite-link").textContent = made.link ?? made.secret;
    find("invite-qr").innerHTML = made.qr ?? ""; // numbers only, from our own server
    find("invite-only-here").hidden = !made.only_here;
    find("invite-copied").textContent = "";
    find("invite-made").hidden = false;
    name.value = "";
    await list();
  }, name, hours);
});

step(list);
