// The items of a new campaign from a file, or from cells of a spreadsheet that are pasted. The server reads them.
import { sayLogin, sendTable, showProblem } from "./api.js";

const names = document.getElementById("names");
const file = document.getElementById("items-file");
const problem = document.getElementById("items-file-problem");
const said = document.getElementById("items-file-read");
const KEPT = "coterie-new-costs"; // with what is typed: a refresh loses no costs
let costs = new Map();
try {
  costs = new Map(JSON.parse(sessionStorage.getItem(KEPT) ?? "[]"));
} catch { /* private windows may keep nothing */ }

function keepCosts(found) {
  costs = found;
  try {
    sessionStorage.setItem(KEPT, JSON.stringify([...costs]));
  } catch { /* as above */ }
}

export function forgetCosts() {
  keepCosts(new Map());
}

// What each item costs, if that is known of every one of these; else undefined.
export function costsOf(items) {
  return costs.size && items.every((name) => costs.has(name)) ? items.map((name) => costs.get(name)) : undefined;
}

async function read(content, what, query) {
  showProblem(problem, "", file);
  said.textContent = `Reading ${what}…`;
  try {
    const found = await sendTable(`/api/items?${query}`, content);
    names.value = found.names.join("\n");
    keepCosts(new Map(found.costs ? found.names.map((name, i) => [name, found.costs[i]]) : []));
    names.dispatchEvent(new Event("input", { bubbles: true }));
    const count = found.count === 1 ? "1 item" : `${found.count} items`;
    said.textContent = [`${count} read from ${what}${found.costs ? ", with their costs" : ""}.`, ...found.remarks].join(" ");
  } catch (error) {
    said.textContent = "";
    if (error.status === 401) sayLogin(problem);
    else if (error.field === undefined) throw error;
    else showProblem(problem, error.message, file);
  }
}

if (file) {
  file.addEventListener("change", () => {
    const chosen = file.files[0];
    if (chosen) read(chosen, chosen.name, new URLSearchParams({ name: chosen.name.slice(-200) }));
    file.value = ""; // so that the same file, mended, can be chosen again
  });
  names.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (!text.trim().includes("\t") || names.value.trim()) return;
    event.preventDefault();
    read(text, "what was pasted", "kind=pasted");
  });
}
