// Importing a table of results: look at it first, then take it in.
import { sayLogin, sendTable, showProblem } from "./api.js";
import { listNumbers } from "./numbers.js";

const find = (name) => document.getElementById(name);
const form = find("import-form");
let looked = null; // the file and the address that it was looked at with

function element(tag, text, more = {}) {
  return Object.assign(document.createElement(tag), { textContent: text, ...more });
}

const count = (n, one) => `${n.toLocaleString()} ${one}${n === 1 ? "" : "s"}`;

function address(file, check) {
  const query = new URLSearchParams({ name: file.name.slice(-200), in_order: find("in-order").checked, check });
  if (find("sheet").value.trim()) query.set("sheet", find("sheet").value.trim());
  for (const column of find("value-columns").value.split(";").map((one) => one.trim()).filter(Boolean)) query.append("values", column);
  return `/api/campaigns/${form.dataset.id}/import?${query}`;
}

function explain(error, place) {
  if (error.status === 401) sayLogin(place);
  else if (error.field === undefined) throw error;
  else showProblem(place, error.message);
}

// Send the file that was chosen, and say how far it is; then the server reads it.
async function sendFile(path, file, reading) {
  const [line, bar, words] = [find("going"), find("going-bar"), find("going-words")];
  line.hidden = false;
  words.textContent = `Sending ${file.name}…`;
  bar.value = 0;
  try {
    return await sendTable(path, file, (share) => {
      if (share < 1) bar.value = share;
      else bar.removeAttribute("value");
      words.textContent = share < 1 ? `Sending ${file.name}: ${Math.round(100 * share)} %` : reading;
    });
  } finally {
    line.hidden = true;
  }
}

async function look(event) {
  event.preventDefault();
  const file = find("table").files[0];
  find("preview").hidden = true;
  find("imported").textContent = "";
  showProblem(find("import-problem"), file ? "" : "Choose a file first.", find("table"));
  if (!file) {
    find("table").focus();
    return;
  }
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    const found = await sendFile(address(file, true), file, `Reading ${file.name}…`);
    looked = { file, path: address(file, false) };
    show(found);
  } catch (error) {
    explain(error, find("import-problem"));
  } finally {
    button.disabled = false;
  }
}

function show(found) {
  const columns = found.item_column === null ? "" : ` Items are in the column “${found.item_column}”, values in ${found.value_columns.map((one) => `“${one}”`).join(", ")}.`;
  const sheets = found.sheets.length > 1 ? ` The file has ${found.sheets.length} sheets; ${found.source} is the one that was read.` : "";
  find("understood").textContent = `${found.source}: ${count(found.rows, "row")}, ${count(found.items, "item")} of this campaign.${columns}${sheets}`;
  const table = find("first-rows");
  table.hidden = !found.shown.length;
  const heading = document.createElement("tr");
  for (const text of ["Where", "Item", ...found.value_columns]) heading.append(element("th", text, { scope: "col" }));
  table.querySelector("thead").replaceChildren(heading);
  table.querySelector("tbody").replaceChildren(...found.shown.map((one) => {
    const row = document.createElement("tr");
    row.append(element("td", one.place), element("td", one.item), ...one.values.map((value) => element("td", listNumbers([value]), { className: "number" })));
    return row;
  }));
  find("unknown").hidden = !found.unknown_items.length;
  find("unknown").querySelector("ul").replaceChildren(...found.unknown_items.map((name) => element("li", name)));
  const wrong = found.problems.map((one) => element("li", one.message));
  if (found.problem_count > wrong.length) wrong.push(element("li", `and ${found.problem_count - wrong.length} more`));
  find("problems").hidden = !wrong.length;
  find("problems").querySelector("ul").replaceChildren(...wrong);
  find("confirm-part").hidden = wrong.length > 0;
  find("confirm").disabled = !found.new;
  find("confirm").textContent = found.new ? `Take in ${count(found.new, "measurement")}` : "Nothing is new";
  if (found.duplicates && !wrong.length) find("understood").textContent += ` ${count(found.duplicates, "measurement")} of these are on record already.`;
  if (!wrong.length) for (const one of found.warnings) find("understood").append(element("strong", ` Warning: ${one.message}.`));
  showProblem(find("confirm-problem"), "");
  find("preview").hidden = false;
  find("preview").focus();
}

async function take() {
  find("confirm").disabled = true;
  showProblem(find("confirm-problem"), "");
  find("imported").textContent = "";
  try {
    const answer = await sendFile(looked.path, looked.file, "Taking it in…");
    find("preview").hidden = true;
    const warnings = (answer.warnings ?? []).map((one) => one.message).join(" ");
    find("imported").replaceChildren(`${count(answer.accepted, "measurement")} taken in. ${warnings} `,
      element("a", "Back to the campaign", { href: `/campaigns/${form.dataset.id}` }));
    form.reset();
  } catch (error) {
    find("imported").textContent = "";
    find("confirm").disabled = false;
    explain(error, find("confirm-problem"));
  }
}

if (form) {
  form.addEventListener("submit", look);
  find("confirm").addEventListener("click", take);
}
