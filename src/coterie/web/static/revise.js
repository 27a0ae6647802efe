// An owner changes what is asked for: each part that is filled in is one request.
import { Refused, send, showProblem } from "./api.js";
import { toNumber } from "./numbers.js";

const section = document.getElementById("revise");
const lines = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line !== "");

// [address, body] of every part that was filled in; fields are emptied as they are done.
function wanted(form) {
  const named = section.dataset.named === "1";
  const value = (name) => form.elements[name]?.value.trim() ?? "";
  const item = (text) => (named || !/^\d+$/.test(text) ? text : Number(text));
  const found = [];
  if (value("add")) found.push(["items", "add", named ? lines(value("add")) : toNumber(value("add"))]);
  if (value("retire")) found.push(["retire", "retire", lines(value("retire")).map(item)]);
  if (value("n_clusters")) found.push(["clusters", "n_clusters", toNumber(value("n_clusters"))]);
  if (value("delta")) found.push(["delta", "delta", toNumber(value("delta"))]);
  if (value("deadline")) found.push(["deadline", "deadline", toNumber(value("deadline"))]);
  return found;
}

section?.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target, problem = document.getElementById("revise-problem"), button = form.querySelector("button");
  const parts = wanted(form), reason = form.elements.reason.value.trim();
  showProblem(problem, parts.length ? "" : "Fill in what shall be another.");
  if (!parts.length) return;
  button.disabled = true;
  try {
    for (const [address, name, value] of parts) {
      await send(`/api/campaigns/${section.dataset.id}/${address}`, { [name]: value, ...(reason ? { reason } : {}) });
      form.elements[name].value = "";
    }
    document.getElementById("revise-said").textContent = "Changed.";
    location.reload();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    showProblem(problem, error.message);
  } finally {
    button.disabled = false;
  }
});
