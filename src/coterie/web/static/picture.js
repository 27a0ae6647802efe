// The items of a campaign as dots with intervals, and the evidence as a matrix: both from /api/campaigns/ID/picture.
import { drawPlot } from "./picture_plot.js";
import { drawMatrix } from "./picture_matrix.js";
import { number, shapeOf, tint } from "./picture_marks.js";

const page = document.getElementById("campaign");
const id = page.dataset.id;
const find = (name) => document.getElementById(name);
const MOST_LEGEND = 15;
const MANY = 300;
const SEARCHED = 10;

// What somebody has chosen to see. It outlives updates, which bring new data only.
const chosen = { find: "", undecided: false, hidden: new Set(), x: null, y: null, key: null, together: null, rows: 0, open: new Set() };
let data = null;
let items = [];

// ---- What is drawn.

// An item of the answer, or a group where items are too many: a name, a group, and for each axis its value, low and high.
function toDrawn(one, i) {
  const at = {};
  if (one.mean) data.numbers.forEach((_, n) => { at[`n${n}`] = [one.mean[n], one.low?.[n] ?? null, one.high?.[n] ?? null]; });
  if (one.at) one.at.forEach((v, n) => { at[`a${n}`] = [v, one.error?.[n] == null ? null : v - one.error[n], one.error?.[n] == null ? null : v + one.error[n]]; });
  return { ...one, key: `dot-${one.arm ?? `g${one.id}`}`, index: i, at, drawn: Boolean(one.mean) };
}

function groupAsItem(group) {
  const [low, high] = group.mean_range ?? [null, null];
  return {
    name: `Group ${group.id}`, id: group.id, group_id: group.id, size: group.size, retired: false, measurements: group.measurements,
    mean: group.mean ?? null, low, high, settled: null, possible: null, evidence: null, at: group.at ?? null,
    error: group.at ? group.at.map((v, n) => Math.max(v - group.at_range[0][n], group.at_range[1][n] - v)) : null,
  };
}

// What is shown: by the name typed, by the box "only the undecided", and by the groups that are hidden.
function shown(one) {
  const text = chosen.find.trim().toLowerCase();
  return (!text || one.name.toLowerCase().includes(text)) && (!chosen.undecided || one.settled === false) && !chosen.hidden.has(one.retired ? -1 : one.group_id ?? 0);
}

// ---- Words.

function groupWords(one) {
  if (one.retired) return "retired";
  return one.group_id === null ? "in no group yet" : `group ${one.group_id}`;
}

function provenWords(one) {
  if (one.settled === null || one.retired || one.group_id === null) return "";
  const near = data.question.kind === "resolution";
  if (one.settled) return near ? "proven: it belongs with the reference of its group" : `proven to be in group ${one.group_id}`;
  const others = (one.possible ?? []).filter((group) => group !== one.group_id);
  return others.length ? `not proven yet: it may also be in group ${others.slice(0, 8).join(", ")}${others.length > 8 ? ", …" : ""}` : "not proven yet, but no other group is left";
}

function numberWords(one) {
  return data.numbers.map((named, n) => {
    const [v, low, high] = one.at[`n${n}`];
    const called = data.numbers.length > 1 || named.name !== "value" ? `${named.name} ` : "mean ";
    return `${called}${number(v)}${low === null ? "" : ` (${number(low)} to ${number(high)})`}`;
  });
}

function counted(n, one, many = `${one}s`) {
  return `${number(n)} ${n === 1 ? one : many}`;
}

// What is said of a dot, in parts.
function wordsOf(one) {
  const parts = [data.cut ? counted(one.size, "item") : groupWords(one), ...numberWords(one), counted(one.measurements, "measurement")];
  const proven = provenWords(one);
  if (proven) parts.push(proven);
  return parts;
}

// ---- Parts of the page.

function element(tag, text = "", name = "") {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function showDetail(one) {
  const part = find("picture-detail");
  const [first, ...rest] = wordsOf(one);
  const title = element("p", "", `detail-name ${tint(one)}`);
  title.append(shapeOf(one, 16), element("b", one.name), element("span", ` ${first}`, "quiet"));
  const list = element("ul");
  for (const text of rest) list.append(element("li", text));
  part.replaceChildren(title, list);
}

function fillAxes() {
  if (!data.axes) return;
  const options = [...data.axes.words.map((words, n) => [`a${n}`, `axis ${n + 1}`]), ...data.numbers.map((named, n) => [`n${n}`, named.name])];
  for (const [select, which, first] of [["picture-x", "x", "a0"], ["picture-y", "y", "a1"]]) {
    const part = find(select);
    if (!options.some(([key]) => key === chosen[which])) chosen[which] = first;
    if (part.options.length !== options.length || options.some(([, text], i) => part.options[i].text !== text)) {
      part.replaceChildren(...options.map(([key, text]) => new Option(text, key)));
    }
    part.value = chosen[which];
  }
}

const axisName = (key) => (key === null ? "" : key[0] === "a" ? `axis ${Number(key[1]) + 1}` : data.numbers[Number(key.slice(1))].name);

function sayAxes() {
  const part = find("picture-axes");
  const used = [chosen.x, chosen.y].filter((key) => key?.[0] === "a");
  part.hidden = !data.axes || !used.length;
  if (part.hidden) return;
  const said = [...new Set(used)].map((key) => {
    const n = Number(key[1]);
    return `${data.axes.words[n]} (${Math.round(100 * data.axes.share[n])} % of the differences between items)`;
  });
  part.textContent = `${said.join("; ")}. Principal axes: ${data.axes.units}.`;
}

function sayReading() {
  const unmeasured = data.item_count - data.measured;
  const parts = [];
  if (data.cut) parts.push(`${data.cut} Lines: from the lowest to the highest mean of an item. The larger a mark, the more measurements.`);
  else parts.push(`Lines: ${[chosen.x, chosen.y].some((key) => key?.[0] === "a") ? data.interval.axes : data.interval.words}. The larger a mark, the more measurements.`);
  if (unmeasured) parts.push(`${counted(unmeasured, "item")} not measured yet.`);
  find("picture-reading").textContent = parts.join(" ");
}

function drawLegend() {
  const part = find("picture-legend");
  const focused = part.contains(document.activeElement) ? document.activeElement.dataset.group : null;
  const of = new Map();
  for (const one of data.cut ? [] : items) {
    const group = one.retired ? -1 : one.group_id ?? 0;
    const entry = of.get(group) ?? { one, size: 0, settled: 0 };
    entry.size += 1;
    entry.settled += one.settled ? 1 : 0;
    of.set(group, entry);
  }
  const sorted = [...of].sort(([a], [b]) => (a < 1) - (b < 1) || a - b);
  const made = sorted.slice(0, MOST_LEGEND).map(([group, { one, size, settled }]) => {
    const button = element("button", "", `legend-entry ${tint(one)}`);
    button.type = "button";
    button.dataset.group = group;
    button.id = `legend-${group}`;
    button.setAttribute("aria-pressed", String(!chosen.hidden.has(group)));
    const name = group === -1 ? "Retired" : group === 0 ? "No group yet" : `Group ${group}`;
    const state = one.settled === null || group < 1 ? "" : data.done && settled === size ? "" : `, ${settled} certain`;
    button.append(shapeOf(one, 14), element("span", name), element("span", `${counted(size, "item")}${state}`, "quiet"));
    return button;
  });
  if (sorted.length > MOST_LEGEND) made.push(element("span", `and ${sorted.length - MOST_LEGEND} groups more`, "quiet"));
  part.hidden = sorted.length < 2 && !sorted.some(([group]) => group > 0);
  part.replaceChildren(...made);
  if (focused !== null) part.querySelector(`[data-group="${focused}"]`)?.focus({ preventScroll: true });
}

function drawMatrixPart(visible) {
  const some = data.matrix && data.matrix.columns.length > 0;
  find("matrix-heading").textContent = data.question.kind === "resolution" ? "Item by reference" : "Item by group";
  find("matrix-part").hidden = !some;
  find("no-matrix").hidden = some || data.cut !== null;
  if (!some) {
    find("no-matrix").textContent = data.looking ? "Looking at all pairs of items for a matrix of the evidence…" : data.matrix ? "A matrix of the evidence appears with the first groups." : `There is no matrix of the evidence: ${data.no_matrix}.`;
    return;
  }
  drawMatrix(data, visible, chosen);
}

// ---- All of it.

function draw() {
  if (!data || !find("picture")) return;
  const measured = items.filter((one) => one.drawn);
  const note = find("picture-note");
  note.hidden = measured.length > 0;
  note.textContent = "Dots appear when there are measurements.";
  find("picture-body").hidden = measured.length === 0;
  find("picture").removeAttribute("aria-busy");
  if (!measured.length) return;
  // What nobody needs is not in the way: a search among few, and "only the undecided" where all is decided.
  const undecided = items.some((one) => one.settled === false);
  find("picture-open").closest("label").hidden = !undecided && !chosen.undecided;
  find("picture-find").closest("label").hidden = data.cut !== null || (items.length < SEARCHED && !chosen.find);
  find("picture-tools").hidden = [...find("picture-tools").children].every((label) => label.hidden);
  fillAxes();
  drawLegend();
  const visible = items.filter(shown);
  drawPlot({
    svg: find("picture-plot"), width: find("picture-frame").clientWidth, all: measured, visible: visible.filter((one) => one.drawn),
    x: data.axes ? chosen.x : "n0", y: data.axes ? chosen.y : null, names: [axisName(data.axes ? chosen.x : "n0"), axisName(data.axes ? chosen.y : null)],
    wordsOf, current: chosen.key, cut: data.cut !== null,
  });
  find("picture-plot").setAttribute("aria-label", `${counted(visible.filter((one) => one.drawn).length, data.cut ? "group" : "item")} as marks${data.axes ? "" : " by value"}`);
  const current = items.find((one) => one.key === chosen.key);
  if (current) showDetail(current);
  sayAxes();
  sayReading();
  drawMatrixPart(visible);
}

function point(target, focus) {
  const key = target.closest?.(".mark-dot")?.id;
  const one = items.find((found) => found.key === key);
  if (!one) return;
  if (focus) {
    if (chosen.key) find(chosen.key)?.setAttribute("tabindex", "-1");
    find(key).setAttribute("tabindex", "0");
    chosen.key = key;
  }
  showDetail(one);
}

function key(event) {
  const marks = [...find("picture-plot").querySelectorAll(".mark-dot")];
  const place = marks.indexOf(document.activeElement);
  if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const order = (by) => [...marks].sort((a, b) => a.dataset[by] - b.dataset[by]);
  const step = (by, n) => {
    const sorted = order(by);
    return sorted[Math.min(marks.length - 1, Math.max(0, sorted.indexOf(marks[place]) + n))];
  };
  const moves = {
    ArrowRight: () => step("across", 1), ArrowLeft: () => step("across", -1), ArrowDown: () => step("down", 1), ArrowUp: () => step("down", -1),
    Home: () => order("across")[0], End: () => order("across").at(-1),
  };
  const next = moves[event.key]?.();
  if (!next) return;
  event.preventDefault();
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest", inline: "nearest" });
}

const ready = new WeakSet();

// The part may come with an update only (after a start of the server): what it needs is put on it once.
function prepare(part) {
  if (ready.has(part)) return;
  ready.add(part);
  const plot = find("picture-plot");
  plot.addEventListener("pointerover", (event) => point(event.target, false));
  plot.addEventListener("focusin", (event) => point(event.target, true));
  plot.addEventListener("keydown", key);
  plot.addEventListener("pointerleave", () => {
    const current = items.find((one) => one.key === chosen.key);
    if (current) showDetail(current);
  });
  find("picture-find").addEventListener("input", (event) => { chosen.find = event.target.value; chosen.rows = 0; draw(); });
  find("picture-open").addEventListener("change", (event) => { chosen.undecided = event.target.checked; chosen.rows = 0; draw(); });
  find("matrix-together").addEventListener("change", (event) => { chosen.together = event.target.checked; chosen.rows = 0; draw(); });
  find("matrix-more").addEventListener("click", () => { chosen.rows += 48; draw(); });
  for (const which of ["x", "y"]) find(`picture-${which}`)?.addEventListener("change", (event) => { chosen[which] = event.target.value; draw(); });
  find("picture-legend").addEventListener("click", (event) => {
    const group = event.target.closest("button")?.dataset.group;
    if (group === undefined) return;
    if (!chosen.hidden.delete(Number(group))) chosen.hidden.add(Number(group));
    draw();
  });
  let wide = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - wide) < 1) return;
    wide = entry.contentRect.width;
    draw();
  }).observe(find("picture-frame"));
}

let asking = false;
let outdated = false;

async function load(which = "") {
  const answer = await fetch(`/api/campaigns/${id}/picture${which}`, { credentials: "same-origin", redirect: "error", headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  data = await answer.json();
  data.looking = which !== "";
  items = (data.cut ? data.groups.map(groupAsItem) : data.items).map(toDrawn);
  draw();
}

async function refresh() {
  const part = find("picture");
  if (!part) return;
  prepare(part);
  outdated = true;
  if (asking || document.hidden) return;
  asking = true;
  outdated = false;
  const began = performance.now();
  try {
    // What is proven of many items takes the server seconds: at first the dots come without.
    if (data === null && Number(part.dataset.items) > MANY) await load("?proven=false");
    await load();
  } catch { /* the stream of events says when the server is back */ }
  // At most every second, and a tenth of the time.
  setTimeout(() => {
    asking = false;
    if (outdated) refresh();
  }, Math.max(1000, 10 * (performance.now() - began)));
}

document.addEventListener("coterie-changed", refresh);
document.addEventListener("visibilitychange", () => { if (outdated) refresh(); });
refresh();
