// The form that creates a campaign.
import { sayLogin, send, showProblem, toNumber, toNumbers } from "./api.js";
import "./times.js";

const form = document.getElementById("create");
const problem = document.getElementById("create-problem");

function chosen() {
  return form.elements.items.value;
}

function showChosen() {
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== chosen();
}

function clear() {
  showProblem(problem, "");
  for (const field of form.elements) field.removeAttribute("aria-invalid");
  for (const old of form.querySelectorAll(".beside")) old.remove();
}

// The message stands right below its field, and the field gets the focus.
function complain(name, message) {
  const field = form.elements[name];
  if (!field || field.length !== undefined && !field.tagName) {
    showProblem(problem, message);
    return;
  }
  const shown = Object.assign(document.createElement("p"), { className: "problem beside", id: `${name}-problem`, textContent: message });
  shown.setAttribute("role", "alert");
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", shown.id);
  field.closest("details")?.setAttribute("open", "");
  field.parentElement.append(shown);
  field.focus();
}

class Wrong extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

function whole(name, what) {
  const value = toNumber(form.elements[name].value);
  if (value === null || !Number.isInteger(value)) throw new Wrong(name, `${what} is a whole number.`);
  return value;
}

function real(name, what) {
  const value = toNumber(form.elements[name].value);
  if (value === null) throw new Wrong(name, `${what} is a number.`);
  return value;
}

function content() {
  const name = form.elements.name.value.trim();
  if (!name) throw new Wrong("name", "The campaign needs a name.");
  const body = { name };
  if (chosen() === "named") {
    body.names = form.elements.names.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!body.names.length) throw new Wrong("names", "Name the items, one on each line.");
    body.n_arms = body.names.length;
  } else {
    body.n_arms = whole("n_arms", "The number of items");
  }
  body.n_clusters = whole("n_clusters", "The number of groups");
  body.dim = whole("dim", "The number of numbers");
  const called = form.elements.value_names.value.trim();
  if (called) body.value_names = called.split(/[,;]/).map((name) => name.trim()).filter(Boolean);
  const noise = toNumbers(form.elements.noise.value, body.dim);
  if (!noise.length) throw new Wrong("noise", "Say how much single measurements of one item vary.");
  if (noise.some((one) => one.value === null)) throw new Wrong("noise", "The noise is one number, or one for each number of a measurement.");
  body.noise = noise.length === 1 ? noise[0].value : noise.map((one) => one.value);
  body.delta = real("delta", "The error allowed");
  body.lease_seconds = 3600 * real("lease_hours", "The time for one measurement");
  for (const key of ["on_expiry", "method", "threshold"]) body[key] = form.elements[key].value;
  return body;
}

const SHOWN_AS = { lease_seconds: "lease_hours" };

async function create(event) {
  event.preventDefault();
  clear();
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    const made = await send("/api/campaigns", content());
    location.assign(`/campaigns/${made.id}`);
  } catch (error) {
    button.disabled = false;
    if (error.field === undefined) throw error;
    if (error.status === 401) {
      sayLogin(problem);
      return;
    }
    let field = (error.field ?? "").replace(/[[.].*$/, "");
    if (field === "names" && chosen() === "counted") field = "n_arms";
    if (field === "n_arms" && chosen() === "named") field = "names";
    complain(SHOWN_AS[field] ?? field, error.message);
  }
}

if (form) {
  form.addEventListener("submit", create);
  form.addEventListener("change", showChosen);
  showChosen();
}
