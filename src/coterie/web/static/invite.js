// The part of a campaign's page where an owner invites somebody, sees who has joined, and takes invitations back.
import { sayLogin, send, showProblem } from "./api.js";
import { toNumber } from "./numbers.js";

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

const STATES = { open: "not used yet", used: "joined", expired: "expired", revoked: "taken back" };

function entry({ id, name, role, state, expires }) {
  const until = state === "open" ? `, until ${new Date(expires).toLocaleString()}` : "";
  const line = document.createElement("li");
  line.append(`${name} (${role}): ${STATES[state] ?? state}${until} `);
  if (state === "open" || state === "used") {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "secondary", textContent: "Revoke" });
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

async function list() {
  const { invitations } = await send(base);
  find("invited").replaceChildren(...invitations.map(entry));
}

part.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [name, hours] = [find("invite-name"), find("invite-hours")];
  const lasting = toNumber(hours.value);
  if (!name.value.trim()) {
    showProblem(problem, "Say who is invited: the log shows this name beside what they measure.", name);
    name.focus();
    return;
  }
  if (lasting === null || lasting <= 0) {
    showProblem(problem, "Say how many hours, as 24 or 0.5.", hours);
    hours.focus();
    return;
  }
  step(async () => {
    const made = await send(base, { name: name.value.trim(), role: find("invite-role").value, hours: lasting });
    find("invite-whom").textContent = made.name;
    find("invite-link").textContent = made.link ?? made.secret;
    find("invite-qr").innerHTML = made.qr ?? ""; // numbers only, from our own server
    find("invite-only-here").hidden = !made.only_here;
    find("invite-made").hidden = false;
    name.value = "";
    await list();
  }, name, hours);
});

step(list);
