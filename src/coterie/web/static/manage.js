// The part of a campaign's page for its owner: free an ask, lease time, archive, delete.
import { sayLogin, send, showProblem } from "./api.js";
import { refresh } from "./live.js";
import { toNumber } from "./numbers.js";

const find = (name) => document.getElementById(name);
const part = find("manage");
const base = `/api/campaigns/${part.dataset.id}`;
const problem = find("manage-problem");

// Run one step; what goes wrong is shown, and nothing typed is lost.
async function step(work, field) {
  const buttons = [...part.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  showProblem(problem, "", ...(field ? [field] : []));
  find("manage-said").textContent = "";
  try {
    await work();
  } catch (error) {
    if (error.field === undefined) throw error;
    if (error.status === 401) sayLogin(find("connection"));
    showProblem(problem, error.message, ...(field ? [field] : []));
    field?.focus();
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

find("lease-time")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("lease-hours");
  const hours = toNumber(field.value);
  if (hours === null || hours <= 0) {
    showProblem(problem, "Say how many hours, as 1 or 0.5.", field);
    field.focus();
    return;
  }
  step(async () => {
    const answer = await send(`${base}/lease-time`, { lease_seconds: 3600 * hours });
    find("manage-said").textContent = answer.changed ? "Saved: from the next ask on." : "It was so already.";
  }, field);
});

// An ask whose result will not come is given up; the part of the page with the button comes anew after that.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-free]");
  if (button) step(() => send(`${base}/fail`, { lease: button.dataset.free, reason: "freed by an owner: no answer" }));
});

for (const [name, archived] of [["archive", true], ["unarchive", false]]) {
  find(name)?.addEventListener("click", () => step(async () => {
    await send(`${base}/archive`, { archived });
    refresh();
  }));
}

find("delete").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("delete-name");
  if (field.value !== part.dataset.name) {
    showProblem(problem, `To delete it, type its name: ${part.dataset.name}`, field);
    field.focus();
    return;
  }
  step(async () => {
    await send(`${base}?name=${encodeURIComponent(field.value)}`, undefined, "DELETE");
    location.assign("/");
  }, field);
});
