"""CROC at work (docs/CROC.md): its side of the contract. Freezes, rounds and the alarm are its decisions.

Results come in the order in which they were asked for: the conversation sees to that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie.engine.croc.entries import DECIDED, OTHER_ARM, POSITION, PROVEN_ASKING, Entries, new_entries
from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.state import CORE_ROOM, share_of_epoch
from coterie.methods.contract import ASK, RESULT, Decision, Departure, Followed, MethodRun, Pull, Record
from coterie.methods.croc_proof import certificate_of, evidence_of
from coterie.methods.reports import Evidence, Partial
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings


class CrocMethodRun(MethodRun):
    """CROC at work."""

    def __init__(self, settings: Settings) -> None:
        self._shape, self._log_inverse_delta = settings.shape, -math.log(settings.delta)
        self._run = CrocRun(*self._shape, self._log_inverse_delta)
        self._epochs = self._rounds = 0  # those that were reported as decisions
        self._alarmed = False

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
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return (self._run.state.labels, self._run.centers) if self._run.ready else None

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return self._run.alarm

    def ask(self) -> Pull | None:
        found = self._run.pop()
        return None if found is None else Pull(*found)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._run.absorb(arm, x, of_round, asked)

    def give_up(self, arm: int, of_round: int) -> None:
        self._run.give_up(arm, of_round)

    def look(self) -> None:
        self._run.look()

    def evidence(self) -> Evidence:
        return evidence_of(self._run)

    # Decisions.

    def new_decisions(self) -> list[Decision]:
        run, found = self._run, []
        while self._epochs < run.freezes:
            found.append(self._freeze(self._epochs))
            self._epochs += 1
        while self._rounds < run.round:
            self._rounds += 1
            epoch, pulls = run.composition(self._rounds)
            found.append({"event": "round", "round": self._rounds, "epoch": epoch, "pulls": pulls})
        if run.alarm is not None and not self._alarmed:
            self._alarmed = True
            found.append({"event": "alarm", "arms": list(run.alarm)})
        return found

    def _freeze(self, number: int) -> Decision:
        s = self._run.state
        slot = number % len(s.level)
        cores = s.core[slot].reshape(-1, CORE_ROOM)
        return {
            "event": "freeze",
            "epoch": number,
            "frozen_at": int(s.frozen_at[slot]),
            "share": share_of_epoch(number),
            "level": float(s.level[slot]),
            "labels": s.frozen[slot].tolist(),
            "cores": [[int(arm) for arm in core if arm >= 0] for core in cores],
        }

    def apply_decision(self, decision: Decision) -> None:
        run = self._run
        if decision["event"] == "freeze":
            run.apply_freeze(np.array(decision["labels"], dtype=np.int64), decision["cores"], decision["level"])
        elif decision["event"] == "round":
            run.apply_round(decision["epoch"], decision["pulls"])
        elif decision["event"] == "alarm":
            run.apply_alarm(decision["arms"])
            self._alarmed = True
        self._epochs, self._rounds = run.freezes, run.round

    # Records.

    def follow(self, record: Record) -> Followed:
        """The compiled loop follows the record from one decision to the next."""
        entries, made = self._entries(record), []
        why = DECIDED
        while why == DECIDED:
            why = self._run.follow(entries)
            at = int(entries.at[POSITION])
            before = at - 1 if why == DECIDED and record.kinds[at - 1] != RESULT else at
            made += [(before, one) for one in self.new_decisions()]
        if why == OTHER_ARM:
            raise Departure(at, f"the next arm is {int(entries.arms[at])}")
        record.arms[:], record.rounds[:] = entries.arms, entries.rounds
        by_ask = why == PROVEN_ASKING and record.kinds[at] == ASK
        return Followed(at + (why == PROVEN_ASKING and not by_ask), made, by_ask)

    def apply(self, record: Record) -> None:
        """The compiled loop takes in what lies between two decisions at once."""
        start = 0
        for before, decision in [*record.decisions, (record.kinds.size, None)]:
            if before > start:
                self._run.apply(self._entries(record, start, before))
                start = before
            if decision is not None:
                self.apply_decision(decision)
        self._run.estimate()

    def _entries(self, record: Record, start: int = 0, end: int | None = None) -> Entries:
        """Part of a record for the engine."""
        part = slice(start, end)
        entries = new_entries(self._shape[0], record.kinds[part].copy(), record.arms[part].copy(), record.white[part])
        asks = record.ask[part]
        entries.ask[:] = np.where(asks >= start, asks - start, -1)
        older = (asks >= 0) & (asks < start)
        entries.rounds[:] = np.where(older, record.rounds[np.maximum(asks, 0)], record.rounds[part])
        entries.asked[:] = record.asked[part]
        return entries

    def memory(self) -> dict[str, Any]:
        return self._run.memory() | {"reported": [self._epochs, self._rounds, int(self._alarmed)]}

    def restore(self, memory: Mapping[str, Any]) -> None:
        self._run.restore(memory)
        self._epochs, self._rounds, alarmed = (int(number) for number in memory["reported"])
        self._alarmed = bool(alarmed)

    # What is certified.

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

    def certificate(self, decisions: list[Decision]) -> dict[str, Any]:
        """The proof as plain data; `coterie.verify` re-checks it from the log."""
        epochs = [
            {"number": one["epoch"]} | {key: one[key] for key in ("frozen_at", "share", "level", "labels", "cores")}
            for one in decisions
            if one["event"] == "freeze"
        ]
        rounds = [(one["round"], one["epoch"]) for one in decisions if one["event"] == "round"]
        closed = [one for one in rounds if self._run.is_closed(one[0])]
        return certificate_of(self._run, self._log_inverse_delta, epochs, closed)
