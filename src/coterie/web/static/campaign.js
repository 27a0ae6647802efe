// The form at the bench, on a campaign's page: what to measure next, and its result.
import { send, showProblem } from "./api.js";
import { saysYes } from "./ask_back.js";
import { attach } from "./attach.js";
import { keepTyped } from "./drafts.js";
import { loggedOut, refresh } from "./live.js";
import { explainFields, listNumbers, toNumber, toNumbers, whyNot } from "./numbers.js";
import { clock, keepAsk, keptAsk, waitingFor } from "./still_out.js";

const page = document.getElementById("campaign");
const id = page.dataset.id;
const dim = Number(page.dataset.dim);
const base = `/api/campaigns/${id}`;
const find = (name) => document.getElementById(name);

const measure = find("measure");
let ask = null; // what is on the screen
let busy = false;
let blocked = Boolean(find("waiting-for"));
let ended = false; // the server said so, and what the page shows may be of a moment before
let typedNow = null; // what is typed for the item on the screen: it outlives a refresh

const fields = () => [...find("result").querySelectorAll("[name=value]")];

function worker() {
  return find("worker").value.trim();
}

// The plate, day or rater that is measured in; null in campaigns without.
function block() {
  return find("block")?.value.trim() ?? null;
}

// `saved`: the measurement that the text is about, which can be corrected beside it.
function say(text, saved = null) {
  find("said").textContent = text;
  find("fix").hidden = !saved;
  if (saved) Object.assign(find("fix").dataset, saved);
}

function show(part) {
  find("start").hidden = part !== "start";
  find("result").hidden = part !== "result";
}

// With features: a field for each number of the feature or panel that is asked for.
function nameFields(found) {
  const place = find("feature-values");
  if (!place || !found?.values) return;
  const called = (name) => (/^\d+$/.test(name) ? `feature ${name}` : name); // those that were only counted
  find("feature").textContent = called(found.feature);
  const first = place.querySelector("label");
  while (place.children.length > found.values.length) place.lastElementChild.remove();
  while (place.children.length < found.values.length) place.append(first.cloneNode(true));
  [...place.children].forEach((label, i) => { label.querySelector("span").textContent = called(found.values[i]); });
}

function empty() {
  for (const field of fields()) field.value = "";
  find("reason").value = find("note").value = "";
  find("failing").hidden = true;
  find("give-up").setAttribute("aria-expanded", "false");
  showProblem(find("value-problem"), "", ...fields());
  find("understood").hidden = true;
  typedNow?.forget();
}

function keep(found) {
  ask = found;
  keepAsk(id, found, worker());
  try {
    sessionStorage.setItem(`coterie-here-${id}`, found?.lease ?? "");
  } catch { /* private windows may keep nothing */ }
  find("still-out").hidden = true;
}

function sayStillOut() {
  const found = keptAsk(id);
  find("still-out").hidden = !found;
  if (found) find("still-out").querySelector("span").textContent = `${found.name} is still asked of ${found.worker}, until ${clock(found.expires)}.`;
}

// Ask for the next item and show it. `told`: what to say beside it, `saved`: about which measurement.
async function next(told = "", saved = null) {
  const where = block() === null ? {} : { block: block() };
  const answer = await send(`${base}/ask`, { worker: worker(), n: 1, ...where });
  keep(answer.done ? null : answer.asks[0] ?? null);
  if (answer.done) {
    finish();
    return;
  }
  if (!ask) {
    show("start");
    say(told, saved);
    const full = `Nothing more of use can be measured in ${block()}: name another one.`;
    const over = answer.deadline_reached && !answer.waiting_for.length;
    const reached = "The deadline is reached: nothing more is asked for.";
    showProblem(find("start-problem"), answer.full ? full : over ? reached : waitingFor(answer.waiting_for));
    return;
  }
  nameFields(ask);
  empty();
  find("item").textContent = ask.name;
  find("who").textContent = worker();
  if (find("where")) find("where").textContent = block();
  const until = clock(ask.expires);
  const far = new Date(ask.expires) - Date.now() > 20 * 3600 * 1000;
  find("lease-note").textContent = far ? "" : `Yours until ${until}.`;
  show("result");
  say(told ? `${told} Next: ${ask.name}.` : "", saved);
  fields()[0].focus();
}

function finish() {
  ended = true;
  measure.hidden = true;
  page.querySelector("nav.parts a").focus({ preventScroll: true }); // the form that had the focus is gone
  scrollTo(0, 0);
  refresh();
}

// While a step is under way nothing can be typed: what is typed for the next item would be emptied when it comes.
function lock(locked) {
  busy = locked;
  for (const button of measure.querySelectorAll("button")) button.disabled = locked;
  for (const field of [...fields(), find("reason"), find("note")]) field.readOnly = locked;
}

// Run one step at a time; what goes wrong is shown at `place`, and nothing typed is lost.
async function step(place, work, ...about) {
  if (busy) return;
  lock(true);
  showProblem(place, "", ...about);
  try {
    await work();
  } catch (error) {
    if (error.field === undefined) throw error;
    say("");
    if (error.status === 401) {
      loggedOut();
      find("connection").scrollIntoView({ block: "center" });
      return;
    }
    showProblem(place, error.message, ...about);
    (about[0] ?? find("save")).focus?.();
  } finally {
    lock(false);
  }
}

function start(event) {
  event.preventDefault();
  if (!worker()) {
    showProblem(find("start-problem"), "Say who measures.", find("worker"));
    find("worker").focus();
    return;
  }
  if (block() === "") {
    showProblem(find("start-problem"), "Say where you measure: the plate, the day or the rater.", find("block"));
    find("block").focus();
    return;
  }
  try {
    localStorage.setItem("coterie-worker", worker());
    if (block()) localStorage.setItem(`coterie-block-${id}`, block());
  } catch { /* private windows may keep nothing */ }
  step(find("start-problem"), () => next(), find("worker"));
}

// The numbers typed, or null after saying what is wrong with them.
function typed() {
  const place = find("value-problem");
  const all = fields();
  if (all.length === 1 && dim > 1 && !find("feature-values")) {
    const parts = toNumbers(all[0].value, dim);
    const wrong = parts.find((part) => part.value === null);
    if (wrong) showProblem(place, `${wrong.problem ?? whyNot(wrong.text)}.`, all[0]);
    else if (parts.length !== dim) showProblem(place, `${dim} numbers are needed, there are ${parts.length}.`, all[0]);
    else return parts.map((part) => part.value);
    all[0].focus();
    return null;
  }
  showProblem(place, "", ...all);
  for (const [i, field] of all.entries()) {
    if (toNumber(field.value) === null) {
      const where = dim === 1 ? "" : ` (${field.labels[0].innerText.trim()})`;
      showProblem(place, field.value.trim() ? `${whyNot(field.value)}${where}.` : `Type the number measured${where}.`, field);
      field.focus();
      return null;
    }
  }
  return all.map((field) => toNumber(field.value));
}

const ids = new Map();

// The id of this page's result for a lease, always the same: sent again after an answer was lost, it counts once. Another
// page that shows the same lease (the same name on two phones) has another id: two looks are never taken for one.
function resultId(lease) {
  const key = `coterie-result-${lease}`;
  let found = ids.get(lease);
  try {
    found ??= sessionStorage.getItem(key);
  } catch { /* private windows may keep nothing */ }
  found ??= "page-" + [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  ids.set(lease, found);
  try {
    sessionStorage.setItem(key, found);
  } catch { /* as above */ }
  return found;
}

// Send something about the item on the screen; if somebody else has reported it meanwhile, say so and go on.
async function report(path, body, told, saved = null) {
  let warnings = [];
  try {
    const answer = await sendOrAskBack(path, body);
    warnings = answer.warnings ?? [];
    if (saved) attach(base, saved.measurement);
    if (answer.not_counted) [told, saved] = [answer.not_counted[0].message, null];
  } catch (error) {
    if (error.code !== "lease_answered") throw error;
    [told, saved] = [`${ask.name} has been reported by somebody else already: this result was not saved.`, null];
  }
  find("doubt").textContent = warnings.map((one) => one.message).join(" ");
  find("doubt").hidden = !warnings.length;
  await next(told, saved);
}

// A value far from the earlier ones is saved only if the person says so.
async function sendOrAskBack(path, body) {
  try {
    return await send(path, body);
  } catch (error) {
    if (error.code !== "far_off") throw error;
    if (!(await saysYes(error.message))) {
      error.message = "Not saved: change it, or save it again.";
      throw error;
    }
    return send(path, { ...body, confirm: true });
  }
}

function save(event) {
  event.preventDefault();
  const values = ask && typed();
  if (!values) return;
  const { lease, arm, name } = ask;
  const saved = { measurement: resultId(lease), name, told: listNumbers(values), values: values.join(" ") };
  const one = { id: saved.measurement, arm, values, lease, worker: worker(), ...(ask.block ? { block: ask.block } : {}) };
  step(find("value-problem"), () => report(`${base}/tell`, { measurements: [one], confirm: false }, `Saved ${saved.told} for ${name}.`, saved),
    ...fields().slice(0, 1));
}

function fail() {
  const { lease, name } = ask;
  step(find("value-problem"), () => report(`${base}/fail`, { lease, reason: find("reason").value }, `Skipped ${name}.`));
}

// Nobody has measured: that is no failure, and no new item is asked for.
function undo() {
  const { lease, name } = ask;
  step(find("value-problem"), async () => {
    await giveBack(lease);
    say(`Undone: ${name} was not measured.`);
    find("start").querySelector("button").focus();
  });
}

// An ask of this page is nobody's any more; one that has ended meanwhile is as good as that.
async function giveBack(lease) {
  try {
    await send(`${base}/undo`, { lease });
  } catch (error) {
    if (!["lease_answered", "unknown_lease", "archived"].includes(error.code)) throw error;
  }
  keep(null);
  show("start");
}

// Whoever leaves the bench gives the ask back: nobody waits for it.
function change() {
  const { lease, name } = ask;
  step(find("value-problem"), async () => {
    await giveBack(lease);
    say(`${name} was given back: it is not measured yet.`);
    find("worker").focus();
    find("worker").select();
  });
}

// Nothing more is measured in this plate, on this day or by this rater: what is left of it is given back.
function closeBlock() {
  const closed = block();
  step(find("value-problem"), async () => {
    await send(`${base}/close-block`, { block: closed });
    keep(null);
    show("start");
    say(`${closed} is closed.`);
    find("block").focus();
    find("block").select();
  });
}

function giveBackStillOut() {
  const found = keptAsk(id);
  if (!found) return;
  step(find("start-problem"), async () => {
    await giveBack(found.lease);
    say(`${found.name} was given back: it is not measured yet.`);
  });
}

// Logging out gives the ask back too; if that fails, it says so, and the person is still logged in.
function logOut(event) {
  if (!ask) return;
  event.preventDefault();
  const form = event.target;
  step(find("value-problem"), async () => {
    await giveBack(ask.lease);
    form.submit();
  });
}

function toggleFailing() {
  const part = find("failing");
  part.hidden = !part.hidden;
  find("give-up").setAttribute("aria-expanded", String(!part.hidden));
  if (!part.hidden) find("reason").focus();
}

// "1.2 3.4" pasted into the first field fills both.
function spread(event) {
  const all = fields();
  const from = all.indexOf(event.target);
  const parts = (event.clipboardData?.getData("text") ?? "").trim().split(/[\s;]+/);
  if (from < 0 || event.target.tagName === "TEXTAREA" || parts.length < 2 || parts.length > all.length - from) return;
  event.preventDefault();
  parts.forEach((part, i) => { all[from + i].value = part; });
  all[Math.min(from + parts.length, all.length - 1)].focus();
}

// After a refresh, or Back: the same item again, with what was typed for it. Another tab is only told (`sayStillOut`).
function resume() {
  const kept = keptAsk(id);
  let here = null;
  try {
    here = sessionStorage.getItem(`coterie-here-${id}`);
  } catch { /* private windows may keep nothing */ }
  if (!kept || kept.lease !== here || measure.hidden) return;
  find("worker").value = kept.worker;
  if (kept.block && find("block")) find("block").value = kept.block;
  const typed = typedNow.kept();
  step(find("start-problem"), async () => {
    await next();
    if (ask?.lease === here) typedNow.restore(typed);
  });
}

// What has changed elsewhere: it goes on again, it is done, it was archived, or a correction has taken a proof back.
function changed() {
  if (blocked && !find("waiting-for")) {
    showProblem(find("start-problem"), "");
    if (!ask) say("There is something to measure again.");
  }
  blocked = Boolean(find("waiting-for"));
  const done = page.dataset.done === "1";
  if (done) ended = false;
  measure.hidden = done || ended || page.dataset.archived === "1" || (page.dataset.over === "1" && !ask);
}

if (measure) {
  document.addEventListener("coterie-changed", changed);
  try {
    find("worker").value = localStorage.getItem("coterie-worker") ?? find("worker").value;
    if (find("block")) find("block").value = localStorage.getItem(`coterie-block-${id}`) ?? "";
  } catch { /* as above */ }
  find("close-block")?.addEventListener("click", closeBlock);
  find("start").addEventListener("submit", start);
  find("result").addEventListener("submit", save);
  find("result").addEventListener("paste", spread);
  explainFields(fields, find("understood"));
  find("give-up").addEventListener("click", toggleFailing);
  find("fail").addEventListener("click", fail);
  find("undo").addEventListener("click", undo);
  find("reason").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      fail();
    }
  });
  find("change").addEventListener("click", change);
  find("give-back").addEventListener("click", giveBackStillOut);
  document.querySelector("form[action='/logout']")?.addEventListener("submit", logOut);
  sayStillOut();
  typedNow = keepTyped(find("result"), `coterie-result-${id}`);
  resume();
}
