// Charts say what they show at the place that is pointed at, or gone to with the arrow keys. Their numbers are in data-readings.
import { number } from "./picture_marks.js";

const parsed = new WeakMap();

function readings(chart) {
  if (!parsed.has(chart)) parsed.set(chart, JSON.parse(chart.dataset.readings));
  return parsed.get(chart);
}

function part(chart, tag, name) {
  let made = chart.querySelector(`.${name}`);
  if (!made) {
    made = Object.assign(document.createElement(tag), { className: name });
    chart.append(made);
  }
  return made;
}

// The line through place number i, and what is there, in words.
function show(chart, i) {
  const { at, called, values, named } = readings(chart);
  const picture = chart.querySelector("svg");
  const frame = chart.getBoundingClientRect();
  const box = picture.getBoundingClientRect();
  const x = box.left - frame.left + box.width * at[i];
  Object.assign(part(chart, "i", "cross").style, { left: `${x}px`, top: `${box.top - frame.top}px`, height: `${box.height}px` });
  const said = part(chart, "output", "reading");
  const words = called.map((name, k) => `${name} ${number(values[i][k])}`).join(" · ");
  said.textContent = named ? `${named[i]}: ${words}` : words;
  said.style.top = `${box.top - frame.top}px`;
  said.style.left = `${Math.max(0, Math.min(x + 8, frame.width - said.offsetWidth))}px`;
  chart.dataset.place = i;
}

function hide(chart) {
  for (const made of chart.querySelectorAll(".cross, .reading")) made.remove();
  delete chart.dataset.place;
}

const last = (at, share) => Math.max(0, at.findLastIndex((place) => place <= share));

document.addEventListener("pointermove", (event) => {
  const chart = event.target.closest?.("[data-readings]");
  for (const other of document.querySelectorAll("[data-readings][data-place]")) {
    if (other !== chart && !other.contains(document.activeElement)) hide(other);
  }
  if (!chart) return;
  const box = chart.querySelector("svg").getBoundingClientRect();
  show(chart, last(readings(chart).at, (event.clientX - box.left) / box.width));
});

document.addEventListener("focusin", (event) => {
  const chart = event.target.closest?.("[data-readings]");
  if (chart) show(chart, readings(chart).at.length - 1);
});

document.addEventListener("focusout", (event) => {
  const chart = event.target.closest?.("[data-readings]");
  if (chart) hide(chart);
});

document.addEventListener("keydown", (event) => {
  const chart = event.target.closest?.("[data-readings]");
  if (event.key === "Escape" && chart) hide(chart);
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
  if (!chart || !(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const end = readings(chart).at.length - 1;
  show(chart, Math.max(0, Math.min(end, Number(chart.dataset.place ?? end) + steps[event.key])));
});
