// The evidence as a matrix: a row an item, or all items with the same evidence; a column a group.
import { cut, number, shapeOf, tint } from "./picture_marks.js";

const ROWS = 48;
const FOLDED_FROM = 24; // so many items have a row each, of more those with the same evidence share one
const MOST_COLUMNS = 40;
const SHOWN_NAMES = 200;
const KINDS = { r: "lead", "+": "near", "-": "far", b: "both", "?": "open" };
const SAID = { r: "stands for it", "+": "yes", "-": "no", b: "either", "?": "open" };

const find = (name) => document.getElementById(name);

function element(tag, text = "", name = "") {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function head(data, columns) {
  const row = element("tr");
  const corner = element("th", "Item");
  corner.scope = "col";
  row.append(corner);
  for (const column of columns) {
    const cell = element("th", "", tint(column));
    cell.scope = "col";
    cell.title = `Group ${column.group_id}, by ${column.name}`;
    const name = element("span", data.question.kind === "resolution" ? cut(column.name, 12) : "", "quiet lead-name");
    cell.append(shapeOf({ ...column, retired: false }, 13), element("span", "Group ", "unseen"), ` ${column.group_id}`, name);
    row.append(cell);
  }
  const made = element("thead");
  made.append(row);
  return made;
}

function cells(row, pattern, count) {
  for (const kind of pattern.slice(0, count)) {
    const cell = element("td", "", `cell ${KINDS[kind]}`);
    cell.append(element("span", SAID[kind], "unseen"));
    row.append(cell);
  }
}

function itemRow(one, count) {
  const row = element("tr", "", tint(one));
  const name = element("th");
  name.scope = "row";
  const label = element("span", "", "named");
  label.append(shapeOf(one, 13), element("span", one.retired ? `${one.name} (retired)` : one.name));
  label.title = one.name;
  name.append(label);
  row.append(name);
  cells(row, one.evidence, count);
  return row;
}

// Items of one group with the same evidence; whoever stands for a group is, once settled, with the others that are.
const patternOf = (one) => (one.settled ? one.evidence.replace("r", "+") : one.evidence);

function folded(items) {
  const found = new Map();
  for (const one of items) {
    const pattern = patternOf(one);
    const key = `${one.retired ? -1 : one.group_id ?? 0} ${pattern}`;
    if (!found.has(key)) found.set(key, { key, pattern, its: [] });
    found.get(key).its.push(one);
  }
  const open = (entry) => entry.pattern.split("?").length;
  return [...found.values()].sort((a, b) => (a.its[0].group_id ?? 1e9) - (b.its[0].group_id ?? 1e9) || open(b) - open(a) || b.its.length - a.its.length);
}

function foldedRow(entry, count, chosen) {
  if (entry.its.length === 1) return itemRow({ ...entry.its[0], evidence: entry.pattern }, count);
  const row = element("tr", "", tint(entry.its[0]));
  const name = element("th");
  name.scope = "row";
  const part = element("details");
  part.open = chosen.open.has(entry.key);
  part.addEventListener("toggle", () => (part.open ? chosen.open.add(entry.key) : chosen.open.delete(entry.key)));
  const title = element("summary");
  title.append(shapeOf(entry.its[0], 13), element("span", ` ${number(entry.its.length)} items`), element("span", ` ${cut(entry.its.slice(0, 3).map((one) => one.name).join(", "), 36)}`, "quiet few-names"));
  const names = entry.its.slice(0, SHOWN_NAMES).map((one) => one.name).join(", ");
  part.append(title, element("p", entry.its.length > SHOWN_NAMES ? `${names} and ${entry.its.length - SHOWN_NAMES} more` : names, "fold-names"));
  name.append(part);
  row.append(name);
  cells(row, entry.pattern, count);
  return row;
}

export function drawMatrix(data, visible, chosen) {
  const { matrix } = data;
  const columns = matrix.columns.slice(0, MOST_COLUMNS);
  const together = chosen.together ?? data.items.length > FOLDED_FROM;
  find("matrix-together").checked = together;
  find("matrix-fold").hidden = data.items.length <= 8;
  const rows = together ? folded(visible) : [...visible].sort((a, b) => (a.group_id ?? 1e9) - (b.group_id ?? 1e9) || a.arm - b.arm);
  const shown = rows.slice(0, ROWS + chosen.rows);
  const body = element("tbody");
  const focused = find("matrix").contains(document.activeElement) ? [...find("matrix").querySelectorAll("summary")].indexOf(document.activeElement) : -1;
  body.append(...shown.map((one) => (together ? foldedRow(one, columns.length, chosen) : itemRow(one, columns.length))));
  find("matrix").replaceChildren(head(data, columns), body);
  if (focused >= 0) find("matrix").querySelectorAll("summary")[focused]?.focus({ preventScroll: true });
  const left = matrix.columns.length - columns.length + matrix.left_out;
  const needed = data.question.kind === "resolution" ? " A proof needs every item near its own reference, and the references apart; it does not need the other cells." : "";
  const cutOff = left ? ` Shown are ${columns.length} groups; ${left} more are not.` : "";
  find("matrix-words").textContent = `What is proven of each item and each group. Anything in it, now or at an earlier moment, is wrong with probability at most ${number(matrix.error)}.${needed}${cutOff}`;
  const used = new Set(visible.flatMap((one) => [...(together ? patternOf(one) : one.evidence)]));
  const kinds = ["r", "+", "-", "b", "?"].filter((kind) => used.has(kind) || "+-?".includes(kind));
  find("matrix-key").replaceChildren(...kinds.map((kind) => element("span", matrix.means[kind], `key-cell ${KINDS[kind]}`)));
  const more = find("matrix-more");
  more.hidden = shown.length >= rows.length;
  more.textContent = `Show more rows (${number(rows.length - shown.length)} left)`;
}
