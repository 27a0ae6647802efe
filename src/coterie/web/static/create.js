// The form that creates a campaign.
import { sayLogin, send, showProblem } from "./api.js";
import { keepTyped } from "./drafts.js";
import { costsOf, forgetCosts } from "./items_file.js";
import { localNumber, toNumber, toNumbers, whyNot } from "./numbers.js";
import "./times.js";

const form = document.getElementById("create");
const problem = document.getElementById("create-problem");

function chosen() {
  return form.elements.items.value;
}

function showChosen() {
  const now = { for: chosen(), noise: form.elements.noise_kind.value, question: form.elements.question.value };
  for (const part of form.querySelectorAll("[data-for], [data-noise], [data-question]")) {
    part.hidden = Object.entries(now).some(([about, value]) => part.dataset[about] !== undefined && part.dataset[about] !== value);
  }
}

// What was wrong with a field is no longer said.
function mended(field) {
  if (field.getAttribute("aria-invalid") !== "true") return;
  field.removeAttribute("aria-invalid");
  if (field.dataset.hint) field.setAttribute("aria-describedby", field.dataset.hint);
  else field.removeAttribute("aria-describedby");
  document.getElementById(`${field.name}-problem`)?.remove();
}

function clear() {
  showProblem(problem, "");
  for (const field of form.elements) mended(field);
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

// A probability: 0.05, or 5 %.
function probability(name, what) {
  const text = form.elements[name].value.trim();
  const value = text.endsWith("%") ? toNumber(text.slice(0, -1)) / 100 : real(name, what);
  if (!(value > 0 && value < 1)) throw new Wrong(name, `${what} is a probability between 0 and 1, as ${localNumber(0.05)} or 5 %.`);
  return value;
}

// Names with one on each line; all in one line, as “a, b, c”, they have commas, semicolons or tabs between them.
function namesIn(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.length === 1 ? lines[0].split(/[,;\t]/).map((name) => name.trim()).filter(Boolean) : lines;
}

function groupNumber(items) {
  const count = whole("n_clusters", "The number of groups");
  if (count < 2) throw new Wrong("n_clusters", "There are at least 2 groups.");
  if (count >= items) throw new Wrong("n_clusters", `There are fewer groups than items: ${items} items, so at most ${items - 1} groups.`);
  return count;
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
  if (family === "any" && form.elements.question.value === "resolution") throw new Wrong("noise_kind", "With differences that matter, choose what you know about the noise.");
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

// As numbers; or, where results are counts, as rates, 2% 5%, which the server takes as texts.
function bounds(name, dim, missing) {
  const text = form.elements[name].value;
  if (!text.includes("%")) return numbers(name, dim, missing);
  const found = toNumbers(text.replaceAll("%", " "), dim);
  if (!found.length || found.some((one) => one.value === null) || text.split("%").length - 1 !== found.length) {
    throw new Wrong(name, "Give every number in percent, as 2%, or none.");
  }
  return found.length === 1 ? `${found[0].value}%` : found.map((one) => `${one.value}%`);
}

// Which differences matter, as the server takes it; 0 is 0 %.
function resolution(dim) {
  const found = {
    alike: bounds("alike", dim, "Say which differences do not matter; 0 if every difference may count."),
    apart: bounds("apart", dim, "Say which differences matter."),
  };
  if (found.alike === 0 && [found.apart].flat().every((one) => typeof one === "string")) found.alike = "0%";
  return {
    ...found,
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
    body.names = namesIn(form.elements.names.value);
    if (!body.names.length) throw new Wrong("names", "Name the items, one on each line.");
    if (body.names.length < 2) throw new Wrong("names", "Name at least two items, one on each line.");
    body.n_arms = body.names.length;
    const costs = costsOf(body.names);
    if (costs) body.costs = costs;
  } else {
    body.n_arms = whole("n_arms", "The number of items");
  }
  const asksForGroups = form.elements.question.value === "groups";
  if (asksForGroups) body.n_clusters = groupNumber(body.n_arms);
  body.dim = whole("dim", "How many numbers one measurement has");
  if (body.dim < 1) throw new Wrong("dim", "A measurement has at least one number.");
  if (asksForGroups) body.groups = form.elements.groups.value;
  else body.resolution = resolution(body.dim);
  const called = form.elements.value_names.value.trim();
  if (called) body.value_names = called.split(/[,;]/).map((name) => name.trim()).filter(Boolean);
  if (body.value_names && body.value_names.length !== body.dim) {
    throw new Wrong("value_names", `There are ${body.value_names.length} names (${body.value_names.join(", ")}), and a measurement has ${body.dim} ${body.dim === 1 ? "number" : "numbers"}.`);
  }
  body.noise = noise(body.dim);
  if (form.elements.features.value) {
    body.features = body.value_names ?? body.dim;
    delete body.value_names;
    delete body.dim;
  }
  body.delta = probability("delta", "The error allowed");
  if (asksForGroups && body.groups === "equal") body.confirm = Number(form.elements.confirm.value);
  body.lease_seconds = 3600 * real("lease_hours", "The time for one measurement");
  for (const key of ["on_expiry", "method", "threshold"]) body[key] = form.elements[key].value;
  if (form.elements.deadline.value.trim()) body.deadline = real("deadline", "The deadline");
  if (form.elements.blocks.value) body.blocks = form.elements.blocks.value;
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
    typed.forget();
    forgetCosts();
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
    const said = error.field === "resolution" ? error.message.replace(/\balike\b/g, "what does not matter").replace(/\bapart\b/g, "what matters") : error.message;
    complain(SHOWN_AS[field] ?? field, said);
  }
}

let typed = null;

if (form) {
  typed = keepTyped(form, "coterie-new");
  typed.restore();
  form.addEventListener("submit", create);
  form.addEventListener("change", showChosen);
  for (const heard of ["input", "change"]) form.addEventListener(heard, (event) => mended(event.target));
  document.getElementById("clear-form").addEventListener("click", () => {
    clear();
    form.reset();
    typed.forget();
    forgetCosts();
    showChosen();
    form.elements.name.focus();
  });
  showChosen();
}
