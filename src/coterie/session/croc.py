"""The driver of CROC: results count in the order in which they were asked for, and freezes and rounds are events.

"The s-th measurement of an arm" must not depend on values (docs/CROC.md, "The order of results"): a result waits until
every earlier ask for its arm is answered or given up. A result that nobody asked for takes its place on arrival.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.script import (
    COUNTED,
    ENTRY,
    GONE,
    NOT_OPEN,
    NOT_THAT_ARM,
    NOTED,
    OPEN,
    OTHER_ARM,
    PROVEN,
    PROVEN_ASKING,
    TOLD,
    Script,
    new_script,
)
from coterie.engine.croc.state import CORE_ROOM, share_of_epoch
from coterie.problem.checks import FloatArray, IntArray
from coterie.session.certified import certificate_of, evidence_of
from coterie.session.evidence import Evidence, Partial
from coterie.session.replayed import ASK, FORGET, TELL, Entries, Outcome, ReplayError


@dataclass
class _Place:
    """A place in an arm's line: an ask, or a result that nobody asked for."""

    ticket: int | None
    of_round: int
    row: int = -1
    value: FloatArray | None = None


class CrocDriver:
    """CROC at work."""

    exact = True

    def __init__(self, shape: tuple[int, int, int], log_inverse_delta: float) -> None:
        self._run = CrocRun(*shape, log_inverse_delta)
        self._shape, self._log_inverse_delta = shape, log_inverse_delta
        self._lines: dict[int, deque[_Place]] = {}
        self._places: dict[int, _Place] = {}
        self.events: list[dict[str, Any]] = []
        self._noted = bytearray()  # ASK, TELL, FORGET, one by one
        self._given_up: list[int] = []
        self._epochs: list[dict[str, Any]] = []
        self._rounds = 0

    @property
    def history(self) -> list[list[Any]]:
        """What was done, in order, as runs of the same: [ask | tell, how often], [forget, ticket]."""
        done = np.frombuffer(bytes(self._noted), dtype=np.uint8)
        starts = np.flatnonzero((done == FORGET) | (np.diff(done, prepend=FORGET) != 0))
        given_up = iter(self._given_up)
        return [
            ["forget", next(given_up)] if kind == FORGET else ["ask" if kind == ASK else "tell", length]
            for kind, length in zip(done[starts].tolist(), np.diff(starts, append=done.size).tolist(), strict=True)
        ]

    def ask(self, ticket: int) -> int | None:
        found = self._run.pop()
        self._noted.append(ASK)
        self._note_events()
        if found is None:  # results since the last plan were enough
            return None
        arm, of_round = found
        self._places[ticket] = place = _Place(ticket, of_round)
        self._lines.setdefault(arm, deque()).append(place)
        return arm

    def tell(self, tickets: list[int | None], arms: list[int], white: FloatArray, rows: range) -> None:
        for ticket, arm, x, row in zip(tickets, arms, white, rows, strict=True):
            if self.done:
                return
            self._noted.append(TELL)
            if ticket is None:
                place = _Place(None, 0)
                self._lines.setdefault(arm, deque()).append(place)
            else:
                place = self._places.pop(ticket)
            place.row, place.value = row, x
            self._release(arm)

    def replay(self, entries: Entries) -> Outcome:
        return Outcome(-1) if self.done else Outcome(*self._follow(entries))

    def accept(self, entries: Entries, outcome: Outcome) -> None:
        given_up = entries.kinds == FORGET
        noted = given_up.copy()  # results after the stop change nothing
        noted[: outcome.stop + 1] = True
        self._noted += entries.kinds[noted].astype(np.uint8).tobytes()
        self._given_up += entries.tickets[given_up].tolist()

    def _follow(self, entries: Entries) -> tuple[int, bool]:
        """Let the engine follow the record; where it stopped, and whether the last ask found an arm."""
        before = [(arm, place) for arm, line in self._lines.items() for place in line]
        script = self._script(entries, before)
        rows = np.concatenate([[place.row for _, place in before], entries.rows]).astype(np.int64)
        why, counted = NOTED, 0
        while why == NOTED:
            why = self._run.follow(script)
            places = script.counted[counted : script.at[COUNTED]]
            counted += len(places)
            self.events += [
                {"event": "result", "arm": arm, "round": max(of_round, 0), "row": row}
                for arm, of_round, row in zip(
                    script.its_arm[places].tolist(),
                    script.its_round[places].tolist(),
                    rows[script.row[places]].tolist(),
                    strict=True,
                )
            ]
            self._note_events()
        at = int(script.at[ENTRY])
        if why == OTHER_ARM:
            raise ReplayError(at, f"the next arm is {int(script.arms[at])}")
        if why == NOT_THAT_ARM:
            its = int(script.its_arm[script.place[at]])
            raise ReplayError(
                at, f"ticket {int(entries.tickets[at])} is for arm {its}, not for arm {int(entries.arms[at])}"
            )
        if why == NOT_OPEN:
            raise ReplayError(at, f"ticket {int(entries.tickets[at])} is not open")
        self._keep_lines(script, entries, before)
        if why == PROVEN:
            return at - 1, True
        return at, why != PROVEN_ASKING

    def _script(self, entries: Entries, before: list[tuple[int, _Place]]) -> Script:
        """The record for the engine, with the lines as they are: places `before`, then one for each entry."""
        kinds, tickets = entries.kinds, entries.tickets
        n, first = len(kinds), len(before)
        nothing = np.zeros(2 * self._shape[2])
        waiting = [nothing if place.value is None else place.value for _, place in before]
        values = np.concatenate([np.array(waiting).reshape(-1, nothing.size), entries.white])
        script = new_script(self._shape[0], kinds, entries.arms, values, first)
        where = {place.ticket: number for number, (_, place) in enumerate(before) if place.ticket is not None}
        for number, (arm, place) in enumerate(before):
            script.row[number], script.its_arm[number], script.following[number] = number, arm, -1
            script.its_round[number] = place.of_round if place.ticket is not None else -1
            script.status[number] = OPEN if place.value is None else TOLD
            if script.head[arm] < 0:
                script.head[arm] = number
            else:
                script.following[script.tail[arm]] = number
            script.tail[arm] = number
        asks = np.flatnonzero(kinds == ASK)
        opened = int(tickets[asks[0]]) if asks.size else np.iinfo(np.int64).max
        script.place[:] = first + np.arange(n)  # its own: of a result that nobody asked for
        later = (kinds != ASK) & (tickets >= opened)
        script.place[later] = first + asks[tickets[later] - opened]
        for i in np.flatnonzero((kinds != ASK) & (tickets >= 0) & (tickets < opened)):
            script.place[i] = where[int(tickets[i])]
        told = kinds == TELL
        script.row[script.place[told]] = first + np.flatnonzero(told)
        return script

    def _keep_lines(self, script: Script, entries: Entries, before: list[tuple[int, _Place]]) -> None:
        """The lines as the engine left them."""
        self._lines, self._places = {}, {}
        for arm in np.flatnonzero(script.head >= 0).tolist():
            line: deque[_Place] = deque()
            number = int(script.head[arm])
            while number >= 0:
                status, i = int(script.status[number]), number - len(before)
                if status != GONE:
                    of_round = int(script.its_round[number])
                    ticket = before[number][1].ticket if i < 0 else int(entries.tickets[i])
                    place = _Place(None if of_round < 0 else ticket, max(of_round, 0))
                    if status == TOLD:
                        row = int(script.row[number])
                        place.row = int(entries.rows[row - len(before)]) if row >= len(before) else before[row][1].row
                        place.value = script.values[row].copy()
                    elif ticket is not None:
                        self._places[ticket] = place
                    line.append(place)
                number = int(script.following[number])
            if line:
                self._lines[arm] = line

    def forget(self, ticket: int, arm: int) -> None:
        self._noted.append(FORGET)
        self._given_up.append(ticket)
        if self.done:
            return
        place = self._places.pop(ticket)
        self._lines[arm].remove(place)
        self._run.give_up(arm, place.of_round)
        self._release(arm)

    def _release(self, arm: int) -> None:
        """Count the results at the head of the arm's line."""
        line = self._lines[arm]
        while line and line[0].value is not None and not self.done:
            place = line.popleft()
            assert place.value is not None
            self.events.append({"event": "result", "arm": arm, "round": place.of_round, "row": place.row})
            self._run.absorb(arm, place.value, place.of_round, place.ticket is not None)
            self._note_events()

    def _note_events(self) -> None:
        """A freeze and a round are events of the log, written before the next measurement is asked for."""
        run, s = self._run, self._run.state
        if run.freezes > len(self._epochs):
            slot = len(self._epochs) % len(s.level)
            cores = s.core[slot].reshape(-1, CORE_ROOM)
            epoch = {
                "number": len(self._epochs),
                "frozen_at": int(s.frozen_at[slot]),
                "share": share_of_epoch(len(self._epochs)),
                "level": float(s.level[slot]),
                "labels": s.frozen[slot].tolist(),
                "cores": [[int(arm) for arm in core if arm >= 0] for core in cores],
            }
            self._epochs.append(epoch)
            self.events.append(
                {"event": "freeze", "epoch": epoch["number"], "labels": epoch["labels"], "cores": epoch["cores"]}
            )
        if run.round > self._rounds:
            self._rounds = run.round
            number, pulls = run.composition(run.round)
            self.events.append({"event": "round", "round": run.round, "epoch": number, "pulls": pulls})

    # What is known.

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def t(self) -> int:
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        pulls: IntArray = self._run.state.pulls.copy()
        return pulls

    @property
    def waiting(self) -> int:
        """Results that wait for an earlier ask of their arm."""
        return sum(place.value is not None for line in self._lines.values() for place in line)

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return self._run.alarm

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return (self._run.state.labels, self._run.centers) if self._run.ready else None

    def evidence(self) -> Evidence:
        return evidence_of(self._run)

    def partial(self, labels: IntArray | None) -> Partial:
        """What the pairs from the start have settled so far."""
        s = self._run.state
        if not self._run.ready:
            return Partial((), (), None, (), tuple(range(self._shape[0])))
        leads = [int(arm) for arm in s.representative]
        differ = tuple((int(m), leads[k]) for m, k in np.argwhere(s.settled == 1))
        apart = all(s.settled[leads[k], j] == 1 for k in range(len(leads)) for j in range(len(leads)) if j != k)
        own = s.labels
        met = (s.settled == 1).sum(axis=1) - s.settled[np.arange(self._shape[0]), own]
        sure = (met == self._shape[1] - 1) & apart
        arms = np.arange(self._shape[0])
        return Partial(tuple(leads), differ, labels, tuple(arms[sure].tolist()), tuple(arms[~sure].tolist()))

    def certificate(self) -> dict[str, Any]:
        """The proof as plain data; `coterie.verify` re-checks it from the log."""
        rounds = [(event["round"], event["epoch"]) for event in self.events if event["event"] == "round"]
        rounds = [one for one in rounds if self._run.is_closed(one[0])]
        return certificate_of(self._run, self._log_inverse_delta, self._epochs, rounds)
