"""CROC at work (docs/CROC.md): its side of the contract. Freezes, rounds and the alarm are its decisions.

Results come in the order in which they were asked for: the conversation sees to that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie._native import CrocFamily
from coterie.methods.contract import ASK, RESULT, Decision, Departure, Followed, HeldUp, Pull, Record
from coterie.methods.croc.proof import (
    certificate_of,
    evidence_of,
    held_up_of,
    settle_core_pairs,
    settle_with,
    standing_of,
)
from coterie.methods.croc.run import (
    DECIDED,
    OTHER_ARM,
    PROVEN_ASKING,
    CrocEntries,
    CrocRun,
    NativeRun,
    seed_of_round,
    share_of_epoch,
)
from coterie.methods.family import family_for
from coterie.methods.present_arms import Past
from coterie.methods.reports import Evidence, Standing
from coterie.problem.checks import FloatArray
from coterie.problem.costs import unit_costs
from coterie.problem.revision import equal_pairs_ever
from coterie.problem.settings import Settings

CONSTANTS: dict[str, Any] = {}
"""Numbers of the rule that are to be others than the engine's (`coterie._native.croc_constants`): for tests."""


class CrocMethodRun(NativeRun[CrocRun]):
    """CROC at work."""

    def __init__(self, settings: Settings, past: Past | None = None) -> None:
        self._shape, self._log_inverse_delta = settings.shape, -math.log(settings.delta)
        self._past = past
        family, prices = family_for(settings.noise, *self._shape), unit_costs(settings.costs, settings.n_arms)
        if past is None:
            self._run = CrocRun(*self._shape, self._log_inverse_delta, family, prices, CONSTANTS)
        else:
            self._run = _run_after(past, self._shape, self._log_inverse_delta, family, prices)
        self._cheapest = None if settings.costs is None else min(settings.costs)
        self._epochs = self._rounds = 0  # those that were reported as decisions
        self._alarmed = False

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return self._run.alarm

    def ask(self) -> Pull | None:
        planned = self._run.pop()
        return None if planned is None else Pull(*planned)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._run.absorb(arm, x, of_round, asked)

    def give_up(self, arm: int, of_round: int) -> None:
        self._run.give_up(arm, of_round)

    def look(self) -> None:
        self._run.look()

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        return held_up_of(self._run, asks)

    def evidence(self) -> Evidence:
        return evidence_of(self._run)

    def cost_left(self) -> float | None:
        if self._cheapest is None:
            return None
        left = 0.0 if self.done else self._run.cost_left() * self._cheapest
        return left if math.isfinite(left) else None

    def standing(self) -> Standing:
        return standing_of(self._run)

    # Decisions.

    def new_decisions(self) -> list[Decision]:
        run, made = self._run, []
        while self._epochs < run.freezes:
            made.append(self._freeze(self._epochs))
            self._epochs += 1
        while self._rounds < run.round:
            self._rounds += 1
            epoch, pulls = run.composition(self._rounds)
            decision = {"event": "round", "round": self._rounds, "epoch": epoch, "pulls": pulls}
            bet = run.bet_of_round(self._rounds)
            made.append(decision if bet is None else decision | {"seed": seed_of_round(self._rounds), "bet": bet})
        if run.alarm is not None and not self._alarmed:
            self._alarmed = True
            made.append({"event": "alarm", "arms": list(run.alarm)})
        return made

    def _freeze(self, number: int) -> Decision:
        frozen = self._run.frozen(number % self._run.n_epochs)
        bet = self._run.bet_of_epoch(number)
        decision = {
            "event": "freeze",
            "epoch": number,
            "frozen_at": frozen.frozen_at,
            "share": share_of_epoch(number + (0 if self._past is None else self._past.epochs)),
            "level": frozen.level,
            "labels": frozen.labels.tolist(),
            "cores": [
                [int(arm) for arm in core if arm >= 0] for core in frozen.core.reshape(len(self._run.totals), -1)
            ],
        }
        return decision if bet is None else decision | {"bet": bet}

    def apply_decision(self, decision: Decision) -> None:
        run = self._run
        if decision["event"] == "freeze":
            labels = np.array(decision["labels"], dtype=np.int64)
            run.record_freeze(labels, decision["cores"], decision["level"], decision.get("bet"))
            settle_with(run, [core[0] for core in decision["cores"]])
        elif decision["event"] == "round":
            run.record_round(decision["epoch"], decision["pulls"], decision.get("bet"))
        elif decision["event"] == "alarm":
            run.apply_alarm(decision["arms"])
            self._alarmed = True
        self._epochs, self._rounds = run.freezes, run.round

    # Records.

    def follow(self, record: Record) -> Followed:
        """The engine follows the record from one decision to the next."""
        entries, made = self._entries(record), []
        why = DECIDED
        while why == DECIDED:
            why = self._run.follow(entries)
            at = entries.at
            before = at - 1 if why == DECIDED and record.kinds[at - 1] != RESULT else at
            made += [(before, decision) for decision in self.new_decisions()]
        if why == OTHER_ARM:
            raise Departure(at, int(entries.arms[at]))
        record.arms[:], record.rounds[:] = entries.arms, entries.rounds
        by_ask = why == PROVEN_ASKING and record.kinds[at] == ASK
        return Followed(at + (why == PROVEN_ASKING and not by_ask), made, by_ask)

    def apply(self, record: Record) -> None:
        """The engine takes in what lies between two decisions at once."""
        start = self._count_from(record)
        for before, decision in [*record.decisions, (record.kinds.size, None)]:
            while before > start:
                end = min(before, start + self._until_next_estimate())
                self._run.apply(self._entries(record, start, end))
                if self._run.knows_spread:
                    self._run.estimate()
                start = end
            if decision is not None:
                self.apply_decision(decision)
        self._run.estimate()
        settle_core_pairs(self._run)

    def _until_next_estimate(self) -> int:
        """Entries that are applied at once. Pairs from the start are looked at along the way, as they were at first:
        what they once showed stays shown.
        """
        return max(1, self._shape[0] // 10, self.t // 50)

    def _count_from(self, record: Record) -> int:
        """Positions count from the origin of the recorded bets, even if the first result was corrected since.

        Returns how many entries have been applied for that.
        """
        first, recorded = np.flatnonzero(record.kinds == RESULT), record.origin
        if recorded is None:
            recorded = next((decision["bet"]["from"] for _, decision in record.decisions if "bet" in decision), None)
        if self.t > 0 or recorded is None or not first.size:
            return 0
        origin = np.array(recorded, dtype=np.float64)
        if np.array_equal(origin, record.white[first[0], : origin.size]):
            return 0
        end = int(first[0]) + 1
        self._run.apply(self._entries(record, 0, end), origin)
        return end

    def _entries(self, record: Record, start: int = 0, end: int | None = None) -> CrocEntries:
        """Part of a record for the engine."""
        part = slice(start, end)
        asks = record.ask[part]
        older = (asks >= 0) & (asks < start)
        return CrocEntries(
            self._shape[0],
            self._shape[2],
            record.kinds[part],
            record.arms[part],
            record.white[part],
            rounds=np.where(older, record.rounds[np.maximum(asks, 0)], record.rounds[part]),
            ask=np.where(asks >= start, asks - start, -1),
            asked=record.asked[part].astype(np.int64),
        )

    def memory(self) -> dict[str, Any]:
        return super().memory() | {"reported": [self._epochs, self._rounds, int(self._alarmed)]}

    def restore(self, memory: Mapping[str, Any]) -> None:
        super().restore(memory)
        self._epochs, self._rounds, alarmed = (int(number) for number in memory["reported"])
        self._alarmed = bool(alarmed)

    # What is certified.

    def certificate(self, decisions: list[Decision]) -> dict[str, Any]:
        """The proof as plain data; `coterie.verify` re-checks it from the log."""
        epochs = [
            {"number": entry["epoch"]} | {key: entry[key] for key in ("frozen_at", "share", "level", "labels", "cores")}
            for entry in decisions
            if entry["event"] == "freeze"
        ]
        rounds = [(entry["round"], entry["epoch"]) for entry in decisions if entry["event"] == "round"]
        closed = [entry for entry in rounds if self._run.is_closed(entry[0])]
        proof = certificate_of(self._run, self._log_inverse_delta, epochs, closed)
        if self._past is None or not self._run.has_pairs:
            return proof
        return proof | {"equal_pairs": equal_pairs_ever(self._past.n_first, self._past.n_ever)}


def _run_after(
    past: Past, shape: tuple[int, int, int], log_inverse_delta: float, family: CrocFamily, prices: FloatArray | None
) -> CrocRun:
    """A run after a revision (docs/CROC.md, section 17): epochs count on, pairs have been paid for.

    Pairs in units of a bound on the variance are left: which results the bound is from must not be chosen by retiring.
    """
    pairs = family.pair_share > 0.0 and family.variance_share == 0.0
    spent = past.log_spent
    if not pairs:
        spent -= math.log(1.0 - family.pair_share - family.variance_share)
    run = CrocRun(*shape, log_inverse_delta + spent, family, prices, CONSTANTS, pairs)
    if pairs:
        level = math.log(equal_pairs_ever(past.n_first, past.n_ever)) - math.log(family.pair_share)
        run.pair_level = level + log_inverse_delta
    return run
