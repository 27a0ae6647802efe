// The list of campaigns: how far each is comes after the names; an example for whoever has none.
import { send, showProblem } from "./api.js";
import { localNumbers } from "./numbers.js";
import { localTimes } from "./times.js";

async function fill(place) {
  try {
    const answer = await fetch(`/campaigns/${place.dataset.entry}/entry`, { credentials: "same-origin", redirect: "error", headers: { Accept: "text/html" } });
    if (answer.ok) place.innerHTML = await answer.text();
  } catch { /* the list is of use without */ }
  localTimes(place);
  localNumbers(place);
}

// Those on the screen first, one after the other: reading a campaign takes the server a moment.
const wanted = [];
let filling = false;

async function fillNext() {
  if (filling) return;
  filling = true;
  while (wanted.length) await fill(wanted.shift());
  filling = false;
}

const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    watch.unobserve(target);
    wanted.push(target);
  }
  fillNext();
}, { rootMargin: "100%" });
for (const place of document.querySelectorAll("[data-entry]")) watch.observe(place);
setInterval(localTimes, 60000); // "5 minutes ago" stays true

// ---- The example: six teas of three kinds, whose measurements are simulated.

const TEAS = { Assam: 4, Ceylon: 4, Darjeeling: 8, Keemun: 8, Matcha: 12, Sencha: 12 };

// About normal, of standard deviation 1, the same in every browser.
function noise(k) {
  let sum = 0;
  for (let i = 1; i <= 12; i += 1) sum += (Math.sin(78.233 * (12 * k + i)) * 43758.5453) % 1;
  return sum / 2;
}

async function makeExample(said) {
  const names = Object.keys(TEAS);
  const made = await send("/api/campaigns", {
    name: `Example: six teas, ${new Date().toLocaleString()}`, names, n_arms: 6, n_clusters: 3, dim: 1, value_names: ["caffeine"], noise: { family: "gaussian" },
  });
  const base = `/api/campaigns/${made.id}`;
  for (let k = 0; k < 400; k += 1) {
    const { done, asks } = await send(`${base}/ask`, { worker: "simulation", n: 1 });
    if (done || !asks.length) break;
    const [{ lease, arm, name }] = asks;
    said.textContent = `Measuring, by simulation: ${name}, number ${k + 1}`;
    await send(`${base}/tell`, { measurements: [{ id: `example-${k}`, arm, values: [TEAS[name] + noise(k)], lease, worker: "simulation" }] });
  }
  location.assign(`/campaigns/${made.id}`);
}

const button = document.getElementById("example");
button?.addEventListener("click", async () => {
  button.disabled = true;
  const problem = document.getElementById("example-problem");
  showProblem(problem, "");
  try {
    await makeExample(document.getElementById("example-said"));
  } catch (error) {
    if (error.field === undefined) throw error;
    showProblem(problem, error.message);
    button.disabled = false;
  }
});
