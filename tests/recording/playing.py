"""Plays a case by what is public of a session, and keeps what happened on a tape."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from cases import Case, drawn
from probe import HandedIn, state_of

import coterie
from coterie.session.saved import from_memory, memory_of

WIDE, WIDE_TOLERANCE = 12, 1e-12
"""Beyond so many numbers a result the order of sums is free: numbers are kept themselves, and compared to 1e-12."""
PORTABLE_TOLERANCE = 1e-9
"""Other processors and libraries round differently: numbers of a recording that is to hold there are compared so."""
POINTS = frozenset({6, 24, 60, 150, 400, 1000})
"""After so many entries numbers are kept, or evidence and forecast are looked at."""
SAMPLED, FEW_SAMPLED = 24, 4
"""So many numbers of a fact or an array are kept; fewer of an array where the recording is to be small."""
TOGETHER = 8
"""So many decisions are one fact."""


class Tape:
    """What is kept of one conversation.

    `facts`: by name, the text of what was found without its floats (a hash, if it is long) and the floats: a hash, or
    some of them if numbers are to be compared with a tolerance. `changes` (n, 3): entry, name, hash of every array of
    the state that is another one than after the entry before; of a portable tape, at `POINTS` only. `samples`: arrays
    of floats at `POINTS`.
    `tolerance`: of floats, relative to their size; 0: they are kept as hashes. `watched`: the arrays after one entry.
    """

    def __init__(self, tolerance: float, watch: int | None = None) -> None:
        self.tolerance, self._watch = tolerance, watch
        self.facts: dict[str, list[Any]] = {}
        self.entries: list[str] = []
        self.names: dict[str, int] = {}
        self.changes: list[tuple[int, int, int]] = []
        self.samples: dict[str, list[float]] = {}
        self.watched: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._hashes: dict[str, int] = {}

    def fact(self, name: str, content: Any) -> None:
        """Keep something that was found."""
        floats: list[float] = []
        text = json.dumps(_without_floats(content, floats), separators=(",", ":"))
        if len(text) > 120:
            text = f"{text[:20]}…{zlib.crc32(text.encode()):08x}"
        if self.tolerance == 0.0:
            self.facts[name] = [text, hashed(np.array(floats), 32) if floats else 0]
        else:
            self.facts[name] = [text, spread_out(np.array(floats), SAMPLED)]

    def entry(self, what: str, state: Callable[[], dict[str, Any]]) -> None:
        """Something was done; the state after it."""
        at = len(self.entries)
        self.entries.append(what)
        if self.tolerance == PORTABLE_TOLERANCE and at not in POINTS and at != self._watch:
            return
        found = state()
        if at == self._watch:
            self.watched = {name: np.array(array) for name, array in found.items()}
        for name, array in found.items():
            if isinstance(array, np.generic):
                if name in self._last and self._last[name] == array:
                    continue
                self._last[name] = array
            else:
                raw = array.tobytes()
                if self._last.get(name) == raw:
                    continue
                self._last[name] = raw
            if array.dtype.kind == "f" and self.tolerance > 0.0:
                continue
            value = hashed(array, 16)
            if self._hashes.get(name) != value:
                self._hashes[name] = value
                self.changes.append((at, self.names.setdefault(name, len(self.names)), value))
        if self.tolerance > 0.0 and at in POINTS:
            most = FEW_SAMPLED if self.tolerance == PORTABLE_TOLERANCE else SAMPLED
            for name, array in found.items():
                if array.dtype.kind == "f":
                    self.samples[f"{at} {name}"] = spread_out(np.asarray(array), most)


def hashed(array: Any, bits: int) -> int:
    """Of the bytes of an array of integers or floats; a whole number is itself, modulo 2^bits. -0 is 0, NaN is NaN."""
    if array.dtype.kind != "f" and array.ndim == 0:
        return int(array % 2**bits)
    plain = np.asarray(array + 0.0) if array.dtype.kind == "f" else np.ascontiguousarray(array, dtype=np.int64)
    if plain.dtype.kind == "f" and np.isnan(plain).any():
        plain = np.where(np.isnan(plain), np.nan, plain)
    return int(zlib.crc32(plain.tobytes()) % 2**bits)


def spread_out(array: Any, most: int) -> list[float]:
    """At most so many numbers of an array, its largest size, and how many it has."""
    flat = array.ravel()
    if flat.size == 0:
        return []
    finite = np.abs(flat[np.isfinite(flat)])
    return [*flat[:: -(-flat.size // most)].tolist(), float(finite.max(initial=0.0)), float(flat.size)]


def _without_floats(content: Any, floats: list[float]) -> Any:
    """Plain JSON with None for floats, which are taken out."""
    if is_dataclass(content) and not isinstance(content, type):
        content = asdict(content)
    if isinstance(content, dict):
        return {str(key): _without_floats(content[key], floats) for key in sorted(content, key=str)}
    if isinstance(content, np.ndarray):
        content = content.tolist()
    if isinstance(content, list | tuple | set | frozenset):
        return [_without_floats(one, floats) for one in content]
    if isinstance(content, float):
        floats.append(float(content))
        return None
    if isinstance(content, np.integer | np.bool_):
        return content.item()
    if content is None or isinstance(content, str | int):
        return content
    return str(content)


def played(case: Case, portable: bool = False, watch: int | None = None) -> Tape:
    """The tape of a case. `portable`: it is to hold on other machines too; `watch`: keep the state after this entry."""
    tape = Tape(PORTABLE_TOLERANCE if portable else WIDE_TOLERANCE if case.dim > WIDE else 0.0, watch)
    {"talk": _talk, "simulated": _simulated, "handed in": _handed_in}[case.what](case, tape)
    return tape


class _Talk:
    """A conversation under way."""

    def __init__(self, case: Case, tape: Tape) -> None:
        self.case, self.tape = case, tape
        self.rng = np.random.default_rng([case.seed, 7])
        given = {"n_arms": len(case.means), "dim": case.dim} | case.settings
        self.session = coterie.Session(**given)
        self.asks: list[tuple[int, int]] = []
        self.actions = list(case.actions)

    def note(self, what: str) -> None:
        self.tape.entry(what, lambda: state_of(self.session))
        if len(self.tape.entries) in POINTS:
            self.look_at(f"after {len(self.tape.entries)}: ")

    def look_at(self, when: str) -> None:
        session = self.session
        self.tape.fact(f"{when}evidence", session.evidence)
        self.tape.fact(f"{when}remaining", session.remaining)
        self.tape.fact(f"{when}groups", [session.labels, session.centers, session.pulls, session.alarm])
        if session.certifies:
            self.tape.fact(f"{when}partial", session.partial())

    def ask(self) -> bool:
        """Open asks until there are enough; whether there is one."""
        session = self.session
        while len(session.pending) < self.case.workers and not session.done:
            opened = session.open(1)
            if not opened:
                break
            self.asks.append((opened[0].arm, opened[0].round))
            self.note(f"ask {opened[0].arm} in round {opened[0].round}")
        return bool(session.pending)

    def answer(self) -> None:
        session, rng = self.session, self.rng
        ticket, arm = session.pending[int(rng.integers(len(session.pending)))]
        chance = rng.random()
        if chance < self.case.lost:
            session.forget(ticket)
            self.note(f"forget {ticket}")
        elif chance < self.case.lost + self.case.extra:
            self.unasked(int(rng.choice([one for one in range(session.n_arms) if one not in session.retired])))
        else:
            session.tell(arm, drawn(self.case, rng, arm), ticket)
            self.note(f"tell {arm}")

    def unasked(self, arm: int) -> None:
        """A result that answers no ask, even where one for its arm is open."""
        values = np.asarray(drawn(self.case, self.rng, arm), dtype=float)
        white = self.session.check_results([arm], values[None])
        self.session.absorb(arm, values, None, white[0])
        self.note(f"tell {arm}, unasked")

    def act(self, what: str, more: Any) -> None:
        session, case = self.session, self.case
        try:
            if what == "revise":
                session.revise(**more)
            elif what == "choose":
                session.choose_resolution(more)
            elif what == "correct":
                row = int(self.rng.integers(session.n_measurements))
                arm = session.log[row][0]
                session.correct(row, drawn(case, self.rng, arm), "misread")
            elif what == "check":
                session.check()
            elif what == "unasked":
                for _ in range(more[1]):
                    self.unasked(more[0])
            elif what == "dict":
                self.session = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
            elif what == "memory":
                self.from_memory()
                return  # it may sleep: its state is looked at after the next entry
        except (ValueError, coterie.SessionDone) as error:
            self.tape.fact(f"{len(self.tape.entries)}: {what} refused", str(error))
        self.note(what)

    def from_memory(self) -> None:
        found = memory_of(self.session)
        self.tape.fact(f"{len(self.tape.entries)}: has memory", found is not None)
        if found is not None:
            plain, arrays = json.loads(json.dumps(found[0])), {name: np.array(one) for name, one in found[1].items()}
            self.session = from_memory(self.session.first_settings, plain, arrays)

    def until_done(self) -> None:
        while len(self.asks) < self.case.most:
            at, what, more = self.actions[0] if self.actions else (self.case.most, "", None)
            if len(self.asks) >= at or (self.session.done and what == "revise"):
                self.actions.pop(0)
                self.act(what, more)
            elif self.session.done or not self.ask():
                break
            else:
                self.answer()


def _talk(case: Case, tape: Tape) -> None:
    talk = _Talk(case, tape)
    talk.until_done()
    session = talk.session
    tape.fact("asks", talk.asks)
    tape.fact("first asks", [arm for arm, _ in talk.asks[:40]])
    tape.fact("end", [session.done, session.t, len(talk.asks), session.waiting])
    talk.look_at("at the end: ")
    if session.certifies:
        decisions = session.dated_decisions
        for i in range(0, len(decisions), TOGETHER):
            tape.fact(f"decisions {i} to {i + TOGETHER - 1}", decisions[i : i + TOGETHER])
        results = [one for one in session.events if one["event"] == "result"]
        tape.fact("counted", [[one["arm"], one.get("round")] for one in results])
        for key, part in sorted((session.certificate or {}).items()):
            if key not in ("remarks", "assumes", "homogeneity"):
                tape.fact(f"certificate: {key}", part)


def _simulated(case: Case, tape: Tape) -> None:
    given: dict[str, Any] = {"threshold": "proven", "progress": False, "workers": 1}
    used = ("method", "threshold", "deltas", "trials", "seed", "distance_ratio", "noise", "world", "costs")
    given |= {name: case.settings[name] for name in used if name in case.settings}
    centers, labels = np.unique(case.means, axis=0, return_inverse=True)
    instance = coterie.Instance(np.ravel(labels), centers)
    found = coterie.simulate(instance, **given)
    for threshold, trials in (found if isinstance(found, dict) else {"": found}).items():
        tape.fact(f"times {threshold}", trials.stopping_times)
        tape.fact(f"correct {threshold}", trials.correct)


def _handed_in(case: Case, tape: Tape) -> None:
    shape = (len(case.means), case.settings["n_clusters"], case.dim)
    run = HandedIn(case.settings["family"], shape, -float(np.log(case.settings["delta"])))
    rng = np.random.default_rng([case.seed, 7])
    asks: list[tuple[int, int]] = []
    lines: list[tuple[int, int]] = []  # open asks; those of an arm are answered in their order
    while not run.done and len(asks) < case.most:
        found = run.ask() if len(lines) < case.workers else None
        if found is not None:
            asks.append(found)
            lines.append(found)
            tape.entry(f"ask {found[0]} in round {found[1]}", run.state)
            continue
        if not lines:
            break
        arm = lines[int(rng.integers(len(lines)))][0]
        arm, of_round = lines.pop(next(i for i, one in enumerate(lines) if one[0] == arm))
        if rng.random() < case.lost:
            run.give_up(arm, of_round)
            tape.entry(f"forget {arm}", run.state)
        else:
            run.tell(arm, drawn(case, rng, arm), of_round)
            tape.entry(f"tell {arm}", run.state)
    tape.fact("asks", asks)
    tape.fact("end", [run.done, len(asks), run.labels])
