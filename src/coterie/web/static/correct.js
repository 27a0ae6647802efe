// Correcting a result from a row of the log, in a dialog.
import { send, showProblem } from "./api.js";
import { toNumbers, whyNot } from "./numbers.js";

const dialog = document.getElementById("correcting");
const find = (name) => document.getElementById(name);
let measurement = null;
let id = null; // of the correction: sent again after an answer was lost, it is made once
let busy = false;

function randomId() {
  return "page-" + [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function open(button) {
  measurement = button.dataset.measurement;
  id = randomId();
  find("correcting-told").textContent = button.dataset.told;
  find("correcting-item").textContent = button.dataset.name;
  find("correcting-values").value = button.dataset.values;
  find("correcting-reason").value = "";
  showProblem(find("correcting-problem"), "", find("correcting-values"), find("correcting-reason"));
  dialog.showModal();
  find("correcting-values").select();
}

function worker() {
  try {
    return localStorage.getItem("coterie-worker") ?? "";
  } catch { /* private windows may keep nothing */
    return "";
  }
}

async function save(event) {
  event.preventDefault();
  if (busy) return;
  const dim = Number(dialog.dataset.dim);
  const [place, field, why] = [find("correcting-problem"), find("correcting-values"), find("correcting-reason")];
  showProblem(place, "", field, why);
  const parts = toNumbers(field.value, dim);
  const wrong = parts.find((part) => part.value === null);
  if (wrong || parts.length !== dim) {
    showProblem(place, wrong ? `${wrong.problem ?? whyNot(wrong.text)}.` : `${dim === 1 ? "One number is" : dim + " numbers are"} needed, there are ${parts.length}.`, field);
    field.focus();
    return;
  }
  if (!why.value.trim()) {
    showProblem(place, "Say why it was wrong.", why);
    why.focus();
    return;
  }
  busy = true;
  try {
    const body = { id, measurement, values: parts.map((part) => part.value), reason: why.value, by: worker() };
    const answer = await send(`/api/campaigns/${dialog.dataset.id}/corrections`, body);
    dialog.close();
    const message = answer.message ?? (answer.corrected ? `Corrected ${answer.name}.` : "Nothing has changed.");
    const measuring = find("measure") && !find("measure").hidden && find("campaign").dataset.part === "now";
    find(measuring ? "said" : "corrected").textContent = message;
    if (measuring) find("fix").hidden = true;
    if (!find("campaign")) location.reload();
  } catch (error) {
    if (error.field === undefined) throw error;
    showProblem(place, error.message, field);
  } finally {
    busy = false;
  }
}

if (dialog) {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.correct");
    if (button) open(button);
  });
  dialog.querySelector("form").addEventListener("submit", save);
  find("correcting-cancel").addEventListener("click", () => dialog.close());
}
