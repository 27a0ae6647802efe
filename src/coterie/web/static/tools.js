// What one does with a campaign beside measuring: files, with how far they are; the QR code of its address.
import { Refused, sayLogin } from "./api.js";

const button = document.getElementById("show-qr");
const place = document.getElementById("qr");
const id = document.getElementById("campaign").dataset.id;

button.addEventListener("click", async () => {
  place.hidden = !place.hidden;
  button.setAttribute("aria-expanded", String(!place.hidden));
  if (place.hidden) return;
  try {
    const answer = await fetch(`/campaigns/${id}/qr`, { credentials: "same-origin", redirect: "error", headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.status);
    place.innerHTML = await answer.text();
  } catch {
    place.innerHTML = '<p class="problem" role="alert">The server cannot be reached, or you are logged out. Try again.</p>';
  }
});

// ---- Files: the server writes some of them for seconds, and then they may be long.

const MEBI = 2 ** 20;
const size = (bytes) => `${(bytes / MEBI).toFixed(1)} MB`;

// The name that the server gives the file.
function nameOf(answer) {
  const given = answer.headers.get("Content-Disposition") ?? "";
  const encoded = /filename\*=UTF-8''([^;]+)/.exec(given)?.[1];
  return encoded ? decodeURIComponent(encoded) : /filename="?([^";]+)/.exec(given)?.[1] ?? "download";
}

async function bytesOf(answer, said, name) {
  const whole = Number(answer.headers.get("Content-Length"));
  const parts = [];
  let read = 0;
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts, { type: answer.headers.get("Content-Type") });
    parts.push(value);
    read += value.length;
    if (read > MEBI) said.textContent = `${name}: ${size(read)}${whole ? ` of ${size(whole)}` : ""}`;
  }
}

// One line for all files, at the bottom of the window.
function line() {
  const made = document.getElementById("download-said") ?? Object.assign(document.createElement("p"), { id: "download-said", className: "toast" });
  made.setAttribute("role", "status");
  if (!made.isConnected) document.body.append(made);
  made.hidden = false;
  return made;
}

async function save(link) {
  const said = line();
  said.textContent = `Writing ${link.textContent.trim()}…`;
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(link.href, { credentials: "same-origin" });
    if (!answer.ok) {
      const { error } = await answer.json().catch(() => ({ error: { code: "unknown", message: `The server answered ${answer.status}.` } }));
      throw new Refused(answer.status, error);
    }
    const name = nameOf(answer);
    const address = URL.createObjectURL(await bytesOf(answer, said, name));
    Object.assign(document.createElement("a"), { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    said.textContent = `Saved: ${name}`;
    setTimeout(() => { if (said.textContent === `Saved: ${name}`) said.hidden = true; }, 6000);
  } catch (error) {
    if (error.status === 401) sayLogin(said);
    else said.textContent = error instanceof Refused ? error.message : "The server cannot be reached: nothing was saved. Try again.";
  } finally {
    link.removeAttribute("aria-busy");
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[download]");
  if (!link || link.href.startsWith("blob:") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (!link.hasAttribute("aria-busy")) save(link);
});
