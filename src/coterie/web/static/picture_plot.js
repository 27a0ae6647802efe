// Dots with intervals: by value, a row an item, or on two axes; groups as regions.
import { cut, number, shapePath, svgElement, tint } from "./picture_marks.js";

const TALLEST = 560; // of all rows together, unless few are named
const NAMED_ROWS = 40;
const NAMED_ROWS_NARROW = 20;
const ROW = 22;
const HEADER = 20;
const NAMED_DOTS = 60;
const CROSSES = 80;

// Round steps with three to six ticks.
function ticksOf(low, high, most) {
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = power * [1, 2, 2.5, 5, 10].find((one) => power * one * (1 + 1e-9) >= (high - low) / most);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function scaleOf(all, key, from, to) {
  const values = all.flatMap((one) => one.at[key].filter((v) => v !== null));
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (!(high > low)) [low, high] = [low - 0.5 * Math.max(1, Math.abs(low)) , high + 0.5 * Math.max(1, Math.abs(high))];
  const room = 0.04 * (high - low);
  low -= room;
  high += room;
  const place = (v) => from + ((to - from) * (v - low)) / (high - low);
  return Object.assign(place, { low, high });
}

function radiusOf(all, cutDown) {
  const most = Math.max(...all.map((one) => one.measurements), 1);
  const small = Math.min(1, Math.sqrt(150 / Math.max(1, all.length)));
  const [least, range] = cutDown ? [6, 9] : [1.5 + 2.3 * small, 1.5 + 5.5 * small];
  return (one) => least + range * Math.sqrt(one.measurements / most);
}

const rounded = (v) => Math.round(10 * v) / 10;

function text(x, y, content, name, anchor = "start") {
  const made = svgElement("text", { x: rounded(x), y: rounded(y), class: name, "text-anchor": anchor, "aria-hidden": "true" });
  made.textContent = content;
  return made;
}

function dot(one, x, y, r, plot, across, down, tight = false) {
  const made = svgElement("path", {
    id: one.key, class: `item-mark mark-dot ${tint(one)}${one.retired ? " hollow" : ""}${tight ? " tight" : ""}`, d: shapePath(one, r), transform: `translate(${rounded(x)} ${rounded(y)})`,
    role: "img", tabindex: "-1", "aria-label": `${one.name}: ${plot.wordsOf(one).join("; ")}`,
  });
  made.dataset.across = across;
  made.dataset.down = down;
  return made;
}

function byGroup(items) {
  const found = new Map();
  for (const one of items) {
    const group = one.retired ? Infinity : one.group_id ?? 0;
    if (!found.has(group)) found.set(group, []);
    found.get(group).push(one);
  }
  return found;
}

const nameOf = (group) => (group === Infinity ? "Retired" : group === 0 ? "No group yet" : `Group ${group}`);

// ---- By value: a row an item, group by group.

function drawRows(plot, width) {
  const { visible, all } = plot;
  const few = visible.length <= (width < 500 ? NAMED_ROWS_NARROW : NAMED_ROWS);
  const row = few ? ROW : Math.max(0.4, Math.min(ROW, TALLEST / visible.length));
  const left = few ? Math.min(170, 0.3 * width) : 16;
  const x = scaleOf(all, plot.x, left, width - 16);
  const mean = (its) => its.reduce((sum, one) => sum + one.at[plot.x][0], 0) / its.length;
  const lanes = [...byGroup(visible)].sort(([a, its], [b, others]) => (a === Infinity) - (b === Infinity) || mean(its) - mean(others));
  const headed = !plot.cut && lanes.length <= 30;
  const radius = radiusOf(all, plot.cut);
  const [back, lines, front] = [svgElement("g"), svgElement("g"), svgElement("g")];
  let y = 8;
  let order = 0;
  for (const [group, its] of lanes) {
    its.sort((a, b) => a.at[plot.x][0] - b.at[plot.x][0]);
    const top = y;
    if (headed) y += HEADER;
    const ends = its.flatMap((one) => one.at[plot.x].filter((v) => v !== null));
    const marks = [];
    let path = "";
    const first = y;
    for (const one of its) {
      const [v, low, high] = one.at[plot.x];
      const middle = y + row / 2;
      if (low !== null) path += `M${rounded(x(low))} ${rounded(middle)}H${rounded(x(high))}`;
      marks.push(dot(one, x(v), middle, few ? Math.min(radius(one), 9) : Math.min(radius(one), Math.max(2.2, row)), plot, order, order, row < 6));
      if (few) back.append(text(left - 12, middle + 4, cut(one.name, Math.floor((left - 14) / 7)), "dot-name", "end"));
      order += 1;
      y += row;
    }
    const pad = few ? 2 : 8;
    const [from, to] = [x(Math.min(...ends)) - 12, x(Math.max(...ends)) + 12];
    if (!plot.cut) {
      back.prepend(svgElement("rect", { class: `region ${tint(its[0])}`, x: rounded(from), y: rounded(first - pad), width: rounded(to - from), height: rounded(y - first + 2 * pad), rx: 10 }));
    }
    if (headed) back.append(text(Math.max(4, Math.min(from + 4, width - 90)), top + HEADER - (few ? 6 : 11), nameOf(group), "region-name"));
    lines.append(svgElement("path", { class: `interval ${tint(its[0])}`, d: path, "stroke-width": few ? 2 : Math.max(0.5, Math.min(2, 0.6 * row)) }));
    front.append(...marks);
    y += few ? 10 : 18;
  }
  const height = Math.max(120, y + 8);
  const grid = svgElement("g");
  for (const tick of ticksOf(x.low, x.high, width < 500 ? 4 : 7)) {
    grid.append(svgElement("path", { class: "grid", d: `M${rounded(x(tick))} 0V${height}` }), text(x(tick), height + 17, number(tick), "tick", "middle"));
  }
  grid.append(text(width - 4, height + 34, plot.names[0] === "value" ? "mean" : `mean ${plot.names[0]}`, "tick", "end"));
  return { parts: [grid, back, lines, front], height: height + 40 };
}

// ---- On two axes.

// The convex hull of points, Andrew's monotone chain.
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (sorted.length < 3) return sorted;
  const side = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  const half = (list) => {
    const found = [];
    for (const point of list) {
      while (found.length > 1 && side(found.at(-2), found.at(-1), point) <= 0) found.pop();
      found.push(point);
    }
    return found.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// Names beside the dots where there is room: right, left, above or below.
function nameDots(dots, taken, width, height) {
  const found = [];
  for (const { one, px, py, r } of dots) {
    const name = cut(one.name, 18);
    const wide = 6.6 * name.length + 4;
    const tries = [[px + r + 3, py + 4, "start", 0], [px - r - 3, py + 4, "end", wide], [px, py - r - 5, "middle", wide / 2], [px, py + r + 13, "middle", wide / 2]];
    for (const [x, y, anchor, back] of tries) {
      const box = [x - back, y - 11, x - back + wide, y + 3];
      if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > height || taken.some((other) => other.of !== one && meets(box, other))) continue;
      taken.push(box);
      found.push(text(x, y, name, "dot-name", anchor));
      break;
    }
  }
  return found;
}

function drawPlane(plot, width) {
  const { visible, all } = plot;
  const height = width < 500 ? 330 : 440;
  const left = 48;
  const x = scaleOf(all, plot.x, left + 16, width - 22);
  const y = scaleOf(all, plot.y, height - 18, 26);
  const radius = radiusOf(all, plot.cut);
  const grid = svgElement("g");
  for (const tick of ticksOf(x.low, x.high, width < 500 ? 4 : 7)) {
    grid.append(svgElement("path", { class: "grid", d: `M${rounded(x(tick))} 0V${height}` }), text(x(tick), height + 17, number(tick), "tick", "middle"));
  }
  for (const tick of ticksOf(y.low, y.high, 5)) {
    grid.append(svgElement("path", { class: "grid", d: `M${left} ${rounded(y(tick))}H${width}` }), text(left - 6, y(tick) + 4, number(tick), "tick", "end"));
  }
  grid.append(text(width - 4, height + 34, `${cut(plot.names[0], 30)} →`, "tick", "end"), text(left + 6, 12, `↑ ${cut(plot.names[1], 30)}`, "tick"));
  const [regions, lines, front, names] = ["g", "g", "g", "g"].map((tag) => svgElement(tag));
  const placed = (one) => ({ one, px: x(one.at[plot.x][0]), py: y(one.at[plot.y][0]), r: radius(one) });
  const dots = visible.map(placed);
  const taken = dots.map(({ one, px, py, r }) => Object.assign([px - r, py - r, px + r, py + r], { of: one }));
  const shownGroups = new Set(byGroup(visible).keys());
  if (!plot.cut) {
    for (const [group, its] of byGroup(all)) {
      if (!shownGroups.has(group) || group === 0 || group === Infinity) continue;
      const around = hull(its.map((one) => [rounded(x(one.at[plot.x][0])), rounded(y(one.at[plot.y][0]))]));
      const d = around.length === 1 ? `M${around[0]}h.01` : `M${around.join("L")}Z`;
      regions.append(svgElement("path", { class: `region hull ${tint(its[0])}`, d }));
      const top = around.reduce((best, point) => (point[1] < best[1] ? point : best));
      const [tx, ty] = [Math.min(width - 34, Math.max(left + 34, top[0])), Math.max(24, top[1] - 19)];
      taken.push([tx - 30, ty - 12, tx + 30, ty + 4]);
      names.append(text(tx, ty, nameOf(group), "region-name", "middle"));
    }
  }
  if (visible.length <= CROSSES) {
    for (const { one, px, py } of dots) {
      const [, xl, xh] = one.at[plot.x];
      const [, yl, yh] = one.at[plot.y];
      const d = `${xl === null ? "" : `M${rounded(x(xl))} ${rounded(py)}H${rounded(x(xh))}`}${yl === null ? "" : `M${rounded(px)} ${rounded(y(yl))}V${rounded(y(yh))}`}`;
      if (d) lines.append(svgElement("path", { class: `interval ${tint(one)}`, d, "stroke-width": 1.5 }));
    }
  }
  for (const { one, px, py, r } of dots) front.append(dot(one, px, py, r, plot, px, py));
  if (visible.length <= NAMED_DOTS) names.append(...nameDots(dots, taken, width, height));
  return { parts: [grid, regions, lines, front, names], height: height + 40 };
}

// Draw it anew. The dot that has the focus keeps it; one dot is in the order of Tab.
export function drawPlot(plot) {
  const width = Math.max(260, plot.width);
  const { svg } = plot;
  const focused = svg.contains(document.activeElement) ? document.activeElement.id : null;
  const { parts, height } = plot.y === null ? drawRows(plot, width) : drawPlane(plot, width);
  if (!plot.visible.length) parts.push(text(width / 2, 60, "No item is like that.", "region-name", "middle"));
  svg.setAttribute("viewBox", `0 0 ${width} ${rounded(height)}`);
  svg.setAttribute("height", rounded(height));
  svg.replaceChildren(...parts);
  const marks = svg.querySelectorAll(".mark-dot");
  const current = (plot.current && svg.querySelector(`#${plot.current}`)) || marks[0];
  current?.setAttribute("tabindex", "0");
  if (focused) svg.querySelector(`#${focused}`)?.focus({ preventScroll: true });
}
