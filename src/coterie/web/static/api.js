// Requests to the server that this page came from. The session's cookie goes along by itself.

export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.field = error.field;
  }
}

// The answer to a request; throws Refused with a sentence to show.
export async function send(path, body, method = "GET") {
  const options = body === undefined ? { method } : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  return answerTo(fetch(path, { ...options, credentials: "same-origin" }));
}

// The same for a table, a file or a text, as it is. `gone` is told which share of it has been sent, from 0 to 1.
export async function sendTable(path, content, gone = () => {}) {
  return answerTo(new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch does not say how far it is
    request.open("POST", path);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => { if (event.total) gone(event.loaded / event.total); });
    request.addEventListener("load", () => resolve(new Response(request.responseText, { status: request.status })));
    request.addEventListener("error", reject);
    request.send(content);
  }));
}

async function answerTo(asked) {
  let answer;
  try {
    answer = await asked;
  } catch {
    throw new Refused(0, { code: "away", field: null, message: "The server cannot be reached. Nothing typed is lost: try again." });
  }
  if (answer.ok) return answer.json();
  let error = { code: "unknown", field: null, message: `The server answered ${answer.status}.` };
  try {
    error = (await answer.json()).error ?? error;
  } catch { /* not ours: a proxy's page, say */ }
  if (answer.status === 503) error.message = `The store cannot be used just now: nothing was saved. Try again. (${error.message})`;
  throw new Refused(answer.status, error);
}

// Say that somebody is logged out, with the way back in: in another tab, so that what is typed here stays.
export function sayLogin(place) {
  if (!place.querySelector("a")) {
    const link = Object.assign(document.createElement("a"), { href: `/login?next=${encodeURIComponent(location.pathname)}`, target: "_blank", rel: "noopener", textContent: "Log in in another tab" });
    place.replaceChildren("You are logged out: the server has been restarted, perhaps. ", link, ", then go on here: nothing typed is lost.");
  }
  place.hidden = false;
}

// Say what is wrong beside the field it is about, until something else is typed there.
export function showProblem(place, message, ...fields) {
  place.textContent = message;
  place.hidden = !message;
  for (const field of fields) {
    field.setAttribute("aria-invalid", message ? "true" : "false");
    if (message) field.addEventListener("input", () => place.textContent === message && showProblem(place, "", ...fields), { once: true });
  }
}
