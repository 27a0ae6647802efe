// The form that creates a campaign.
import { sayLogin, send, showProblem } from "./api.js";
import { costsOf } from "./items_file.js";
import { toNumber, toNumbers, whyNot } from "./numbers.js";
import "./times.js";

const form = document.getElementById("create");
const problem = document.getElementById("create-problem");

function chosen() {
  return form.elements.items.value;
}

function showChosen() {
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== chosen();
  for (const part of form.querySelectorAll("[data-noise]")) part.hidden = part.dataset.noise !== form.elements.noise_kind.value;
  for (const part of form.querySelectorAll("[data-question]")) part.hidden = part.dataset.question !== form.elements.question.value;
}

function clear() {
  showProblem(problem, "");
  for (const field of form.elements) {
    field.removeAttribute("aria-invalid");
    if (field.dataset.hint) field.setAttribute("aria-describedby", field.dataset.hint);
    else field.removeAttribute("aria-describedby");
  }
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
  field.setAttribute("aria-describedby", `${shown.id} ${field.dataset.hint ?? ""}`.trim());
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
  const text = form.elements[name].value;
  const value = toNumber(text);
  if (value === null) throw new Wrong(name, `${what} is a number${text.trim() ? `; ${whyNot(text)}` : ""}.`);
  return value;
}

// One number, or one for each number of a measurement.
function numbers(name, dim, missing) {
  const found = toNumbers(form.elements[name].value, dim);
  if (!found.length) throw new Wrong(name, missing);
  const unclear = found.find((one) => one.problem);
  if (unclear) throw new Wrong(name, `${unclear.problem}.`);
  if (found.some((one) => one.value === null)) throw new Wrong(name, "Give one number, or one for each number of a measurement.");
  return found.length === 1 ? found[0].value : found.map((one) => one.value);
}

// What is stated about the noise, as the server takes it.
function noise(dim) {
  const family = form.elements.noise_kind.value;
  if (family === "any") return null;
  if (family === "known") return numbers("noise", dim, "Say how much single measurements of one item vary.");
  if (family === "gaussian") return { family, shape: form.elements.noise_shape.value };
  if (family === "counts") return { family, trials: whole("noise_trials", "The number of trials") };
  if (family === "bounded") {
    return { family, lo: numbers("noise_lo", dim, "Give the smallest number possible."), hi: numbers("noise_hi", dim, "Give the largest number possible.") };
  }
  if (family === "at-most") return { family, covariance: numbers("noise_most", dim, "Give the largest standard deviation that the noise can have.") };
  return { family };
}

// Which differences matter, as the server takes it.
function resolution(dim) {
  return {
    alike: numbers("alike", dim, "Say which differences do not matter; 0 if every difference may count."),
    apart: numbers("apart", dim, "Say which differences matter."),
    norm: form.elements.norm.value,
    claim: form.elements.claim.value,
  };
}

const NOISE_FIELDS = { known: "noise", counts: "noise_trials", bounded: "noise_lo", "at-most": "noise_most", gaussian: "noise_shape" };

function content() {
  const name = form.elements.name.value.trim();
  if (!name) throw new Wrong("name", "The campaign needs a name.");
  const body = { name };
  if (chosen() === "named") {
    body.names = form.elements.names.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!body.names.length) throw new Wrong("names", "Name the items, one on each line.");
    body.n_arms = body.names.length;
    const costs = costsOf(body.names);
    if (costs) body.costs = costs;
  } else {
    body.n_arms = whole("n_arms", "The number of items");
  }
  const asksForGroups = form.elements.question.value === "groups";
  if (asksForGroups) body.n_clusters = whole("n_clusters", "The number of groups");
  body.dim = whole("dim", "The number of numbers");
  if (asksForGroups) body.groups = form.elements.groups.value;
  else body.resolution = resolution(body.dim);
  const called = form.elements.value_names.value.trim();
  if (called) body.value_names = called.split(/[,;]/).map((name) => name.trim()).filter(Boolean);
  body.noise = noise(body.dim);
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
    if (field === "noise") field = NOISE_FIELDS[form.elements.noise_kind.value] ?? "noise_kind";
    if (field === "resolution") field = /^alike must not/.test(error.message) ? "alike" : "apart";
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
