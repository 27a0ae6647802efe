// Asks that nobody has answered: what this browser was asked for, and for whom everybody waits.

const place = (id) => `coterie-ask-${id}`;

// What is on the screen is kept in the browser: whoever opens the page again after a tab was closed is told.
export function keepAsk(id, ask, worker) {
  try {
    if (ask) localStorage.setItem(place(id), JSON.stringify({ ...ask, worker }));
    else localStorage.removeItem(place(id));
  } catch { /* private windows may keep nothing */ }
}

// What this browser was asked for and has not answered, if its time is not over.
export function keptAsk(id) {
  let found = null;
  try {
    found = JSON.parse(localStorage.getItem(place(id)) ?? "null");
  } catch { /* as above */ }
  return found && new Date(found.expires) > new Date() ? found : null;
}

export function clock(time) {
  return new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

// Why nothing is given to measure.
export function waitingFor(asks) {
  const each = asks.map((one) => `${one.name}, asked of ${one.worker}, ${one.until ? `until ${clock(one.until)}` : "until the result comes or the ask is given up"}`);
  return each.length ? `Nothing to measure just now: waiting for ${each.join("; for ")}. What else is measured could not be used before.`
    : "There is nothing to measure just now: results of others are awaited. Try again.";
}
