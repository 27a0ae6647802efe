// A bar while the server compiles: once after an installation, the first ask waits for that.

const AFTER = 600; // milliseconds: most answers come sooner
const EVERY = 1000;

function show(place, state) {
  const text = place.querySelector("p");
  const late = state.seconds > state.expected;
  const said = late
    ? "Compiling takes longer than expected. It is done once on this machine; you need not do anything."
    : `Compiling, about ${Math.max(5, Math.round(state.expected / 5) * 5)} s in all, once on this machine.`;
  if (text.textContent !== said) text.textContent = said; // else it would be read out every second
  place.querySelector("progress").value = Math.min(0.97, state.seconds / state.expected);
  place.querySelector(".so-far").textContent = `${Math.round(state.seconds)} s so far`;
  place.hidden = false;
}

// Look now and then whether that is what an answer waits for, and show it at `place`; the answer's end ends it.
export function watchCompiling(place) {
  let ended = false;
  let timer = 0;
  async function look() {
    try {
      const answer = await fetch("/api/compiling", { credentials: "same-origin", redirect: "error" });
      const state = answer.ok ? await answer.json() : { compiling: null };
      if (!ended && state.compiling) show(place, state);
      else place.hidden = true;
    } catch { /* whoever waits for the answer says what is wrong */ }
    if (!ended) timer = setTimeout(look, EVERY);
  }
  timer = setTimeout(look, AFTER);
  return () => {
    ended = true;
    clearTimeout(timer);
    place.hidden = true;
  };
}
