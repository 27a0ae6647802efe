// Marks for items: a colour and a shape for each group, so that neither has to be told apart alone.
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 10;

// Seven shapes and ten colours: seventy groups before a pair comes again.
const SHAPES = [
  (r) => `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`,
  (r) => `M${-0.88 * r} ${-0.88 * r}H${0.88 * r}V${0.88 * r}H${-0.88 * r}Z`,
  (r) => `M0 ${-1.2 * r}L${1.1 * r} ${0.8 * r}H${-1.1 * r}Z`,
  (r) => `M0 ${-1.25 * r}L${1.25 * r} 0L0 ${1.25 * r}L${-1.25 * r} 0Z`,
  (r) => `M0 ${1.2 * r}L${1.1 * r} ${-0.8 * r}H${-1.1 * r}Z`,
  (r) => `M${-0.4 * r} ${-1.1 * r}H${0.4 * r}V${-0.4 * r}H${1.1 * r}V${0.4 * r}H${0.4 * r}V${1.1 * r}H${-0.4 * r}V${0.4 * r}H${-1.1 * r}V${-0.4 * r}H${-0.4 * r}Z`,
  (r) => `M${-0.6 * r} ${-1.05 * r}H${0.6 * r}L${1.2 * r} 0L${0.6 * r} ${1.05 * r}H${-0.6 * r}L${-1.2 * r} 0Z`,
];

export function svgElement(tag, given = {}) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  return made;
}

// The CSS class of a group's colour, as on the rest of the page.
export function tint(one) {
  return one.retired || one.group_id === null ? "gx" : `g${((one.group_id - 1) % COLOURS) + 1}`;
}

export function shapePath(one, r) {
  const place = one.retired || one.group_id === null ? 0 : (one.group_id - 1) % SHAPES.length;
  return SHAPES[place](r).replace(/-?\d+\.\d+/g, (found) => String(Math.round(10 * found) / 10));
}

// A small mark for a legend.
export function shapeOf(one, size) {
  const svg = svgElement("svg", { width: size, height: size, viewBox: "-8 -8 16 16", "aria-hidden": "true" });
  svg.append(svgElement("path", { class: one.retired ? "item-mark hollow" : "item-mark", d: shapePath(one, 5.6) }));
  return svg;
}

// The decimal mark of the browser's language.
const MARK = new Intl.NumberFormat().formatToParts(1.5).find((part) => part.type === "decimal")?.value === "," ? "," : ".";

// Four significant digits, thousands apart.
export function number(value) {
  if (value === null || value === undefined) return "–";
  const text = Number.isInteger(value) || Math.abs(value) >= 1e4 ? String(Math.round(value)) : String(Number(value.toPrecision(4)));
  const [whole, ...rest] = text.split(".");
  const parted = /e/.test(text) ? whole : whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return [parted, ...rest].join(MARK).replaceAll("-", "\u2212");
}

// Cut in the middle: long names often differ at their ends only.
export function cut(text, most) {
  const end = Math.floor((most - 1) / 3);
  return text.length > most ? `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}` : text;
}
