"""CROC with a list in place of a freeze (docs/CROC.md, section 20): its side of the contract.

CROC measures, and all pairs of arms are looked at beside it. If at most 200 partitions into K groups fit the settled
pairs before CROC freezes a candidate, they are the list, and CROC is left: rounds and pairs strike partitions off until
one remains. Otherwise the run is CROC's to its end. Making the list, with the pairs that it rests on, and each of its
rounds, with the pairs settled since the last, are decisions. The list is epoch 0 of the run.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.methods.contract import ASK, GIVE_UP, RESULT, Decision, HeldUp, MethodRun, Pull, Record
from coterie.methods.croc.method import CrocMethodRun
from coterie.methods.croc.run import ALPHA, PREFIX_ROOM
from coterie.methods.records import apply_steps
from coterie.methods.reports import Evidence, Standing
from coterie.methods.shortlist.elimination import MOST, STEPS, Elimination, PairStacks, clique_of, partitions_without
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings

ARMS_A_GROUP = 8
"""On average, beyond which no list is looked for: a group of n arms can fall in two in 2^(n−1) − 1 ways."""

MOST_ARMS = 64
"""Beyond which no list is looked for: all pairs of arms are looked at."""

LOOSENED = 20
"""So many times the usual length may a list have whose pairs no longer hold after a correction."""

ENDS_LOOKING = ("freeze", "alarm")
"""Decisions of CROC after which no list is made: the candidate that it froze has the share of δ, or K is refuted."""

Settled = tuple[int, int, int, int]
"""A settled pair: two arms, and how many of the first results of each show it."""


class ShortlistRun(MethodRun):
    """CROC until there is a list, then the list."""

    def __init__(self, settings: Settings) -> None:
        n_arms, n_clusters, dim = settings.shape
        self._shape, self._log_inverse_delta = settings.shape, -math.log(settings.delta)
        self._croc = CrocMethodRun(settings)
        self._looks = n_arms <= min(ARMS_A_GROUP * n_clusters, MOST_ARMS)
        equal_pairs = (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2
        self._pair_level = math.log(equal_pairs) - math.log(ALPHA) + self._log_inverse_delta
        self._list_level = self._log_inverse_delta - math.log(1.0 - ALPHA)  # all that CROC's freezes would have
        self._stacks = PairStacks(n_arms, dim)
        self._differ = np.zeros((n_arms, n_arms), dtype=bool)
        self._settled: list[Settled] = []  # in order; those from `_told` on are in no decision yet
        self._told = 0
        self._pulls, self._sums = np.zeros(n_arms), np.zeros((n_arms, dim))
        self._origin: FloatArray | None = None  # the first result
        self._under_way = np.zeros(n_arms)
        self._list: Elimination | None = None
        self._queue: deque[tuple[int, int]] = deque()  # arm and round, of the list
        self._new: list[Decision] = []
        self._clique: tuple[int, ...] | None = None

    @property
    def listed(self) -> Elimination | None:
        """The list, once there is one."""
        return self._list

    @property
    def done(self) -> bool:
        return self._croc.done if self._list is None else self._list.proven

    @property
    def pulls(self) -> IntArray:
        return self._pulls.astype(np.int64)

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return self._croc.alarm if self._list is None else self._clique

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        if self._list is None or self._origin is None:
            return self._croc.guess
        labels = self._list.listed[self._list.likeliest]
        centers = np.zeros((self._shape[1], self._shape[2]))
        np.add.at(centers, labels, self._sums)
        dim = self._shape[2]
        at = self._origin[:dim] + self._origin[dim:]
        return labels, centers / np.bincount(labels, self._pulls, self._shape[1])[:, None] + at

    def evidence(self) -> Evidence:
        if self._list is None:
            return self._croc.evidence()
        if self.done:
            return Evidence(self._list_level, self._list_level, None)
        others = self._list.left[self._list.left != self._list.likeliest]
        return Evidence(max(0.0, float(self._list.log_e[others].min())), self._list_level, None)

    def standing(self) -> Standing | None:
        return self._croc.standing() if self._list is None else None

    def ask(self) -> Pull | None:
        if self._list is None:
            pull = self._croc.ask()
        else:
            if not self._queue:
                self._compose()
            pull = Pull(*self._queue.popleft())
        if pull is not None:
            self._under_way[pull.arm] += 1
        return pull

    def _compose(self) -> None:
        assert self._list is not None
        arms = self._list.plan(self._pulls + self._under_way).tolist()
        settled, self._told = self._settled[self._told :], len(self._settled)
        number = self._list.compose(arms, [pair[:2] for pair in settled])
        self._queue.extend((arm, number) for arm in arms)
        self._new.append(
            {"event": "round", "round": number, "epoch": 0, "pulls": [[arm, 1] for arm in arms]}
            | ({"settled": [list(pair) for pair in settled]} if settled else {})
        )

    def give_up(self, arm: int, of_round: int) -> None:
        self._under_way[arm] -= 1
        if self._list is None:
            self._croc.give_up(arm, of_round)
        elif of_round > 0:
            self._queue.appendleft((arm, of_round))

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        if self._list is None:
            return self._croc.held_up(asks)
        if self._queue:
            return None
        results, open_rounds = self._list.held_up()
        return HeldUp(results, [i for i, ask in enumerate(asks) if ask.round in open_rounds])

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._under_way[arm] -= asked
        value = self._take_in(arm, x)
        if self._list is None:
            self._croc.count(arm, x, of_round, asked)
            if self._looks and not self._croc.done:
                self._look_for_list(self._newly_settled(arm))
            return
        for pair in self._newly_settled(arm):
            self._settle(pair)
        if asked and of_round > 0 and not self.done:
            self._list.take(of_round, arm, value)

    def _take_in(self, arm: int, x: FloatArray) -> FloatArray:
        """Add a result to the sums; the answer is its place, from the first result."""
        if self._origin is None:
            self._origin = np.array(x)
        dim = self._shape[2]
        value: FloatArray = (x[:dim] - self._origin[:dim]) + (x[dim:] - self._origin[dim:])
        self._pulls[arm] += 1
        self._sums[arm] += value
        if self._looks:
            self._stacks.add(arm, value)
        return value

    def look(self) -> None:
        if self._list is None:
            self._croc.look()

    # Pairs, and the list.

    def _newly_settled(self, arm: int) -> list[Settled]:
        """The pairs of an arm with a new result that are settled now, and were not before."""
        counts = self._stacks.counts
        others = np.flatnonzero(~self._differ[arm] & (counts > 0))
        others = others[others != arm]
        mine = np.full(others.size, counts[arm])
        evidence = self._stacks.evidence(np.full(others.size, arm), others, mine, counts[others])
        new = others[evidence >= self._pair_level].tolist()
        return [(arm, other, int(counts[arm]), int(counts[other])) for other in new]

    def _settle(self, pair: Settled) -> None:
        arm, other = pair[:2]
        self._differ[arm, other] = self._differ[other, arm] = True
        if self._list is None or self._list.settle(arm, other):
            self._settled.append(pair)
        if self._list is not None and self._clique is None:
            self._clique = clique_of(self._differ, self._shape[1] + 1)
            if self._clique is not None:
                self._new.append({"event": "alarm", "arms": list(self._clique)})

    def _look_for_list(self, new: list[Settled]) -> None:
        """Make the list if few partitions are left; never after CROC's first freeze."""
        for pair in new:
            self._settle(pair)
        self._new += self._croc.new_decisions()
        if any(entry["event"] in ENDS_LOOKING for entry in self._new):
            self._looks = False
        elif (new or self.t == self._pulls.size) and (self._pulls > 0).all():
            listed = partitions_without(self._differ, self._shape[1])
            if listed is not None and len(listed):
                self._told = len(self._settled)
                self._new.append({"event": "list", "epoch": 0, "pairs": [list(entry) for entry in self._settled]})
                self._start(listed)

    def _start(self, listed: IntArray) -> None:
        self._list = Elimination(listed, self._list_level, self._pulls, self._sums)

    # Decisions and records.

    def new_decisions(self) -> list[Decision]:
        if self._list is None:
            self._new += self._croc.new_decisions()
            self._looks = self._looks and not any(decision["event"] in ENDS_LOOKING for decision in self._new)
        made, self._new = self._new, []
        return made

    def apply_decision(self, decision: Decision) -> None:
        if decision["event"] == "list":
            self._apply_list([self._pair_of(pair) for pair in decision["pairs"]])
        elif self._list is None:
            self._croc.apply_decision(decision)
        elif decision["event"] == "round":
            named = self._apply_settled([self._pair_of(pair) for pair in decision.get("settled", [])])
            arms = [int(arm) for arm, _ in decision["pulls"]]
            number = self._list.compose(arms, [pair[:2] for pair in named])
            self._queue.extend((arm, number) for arm in arms)
        else:
            self._clique = tuple(decision["arms"])

    def _pair_of(self, row: Any) -> Settled:
        arm, other, n_arm, n_other = (int(number) for number in row)
        return arm, other, n_arm, n_other

    def _still_settled(self, pairs: list[Settled]) -> list[Settled]:
        """Those that reach the level with the values as they are now: one may have been corrected."""
        columns = np.array(pairs, dtype=np.int64).reshape(-1, 4).T
        return [pairs[i] for i in np.flatnonzero(self._stacks.evidence(*columns) >= self._pair_level).tolist()]

    def _apply_settled(self, pairs: list[Settled]) -> list[Settled]:
        """The pairs that a recorded round names, those that are settled still.

        Pairs that only the corrected values settle are named by the next round that is composed, and bets know them
        from there on: `verify` has nothing but the record to make bets from.
        """
        still = self._still_settled(pairs)
        for pair in still:
            if not self._differ[pair[0], pair[1]]:
                self._settle(pair)
        known = {frozenset(pair[:2]) for pair in still}
        kept, fresh = self._settled[: self._told], self._settled[self._told :]
        fresh.sort(key=lambda pair: frozenset(pair[:2]) not in known)
        self._settled = kept + fresh
        self._told += sum(frozenset(pair[:2]) in known for pair in fresh)
        return still

    def _apply_list(self, pairs: list[Settled]) -> None:
        self._differ[:] = False
        self._settled = []
        for pair in self._still_settled(pairs):
            self._settle(pair)
        self._told = len(self._settled)
        listed = partitions_without(self._differ, self._shape[1], LOOSENED * MOST, LOOSENED * STEPS)
        if listed is None or not len(listed):
            raise ValueError(
                "with these values the pairs that the list of partitions rests on are not settled, and too many "
                "partitions would be left: start a new session and tell it the right results"
            )
        self._start(listed)

    def open_recorded(self, arm: int, of_round: int) -> None:
        self._under_way[arm] += 1
        if self._list is not None and (arm, of_round) in self._queue:
            self._queue.remove((arm, of_round))

    def apply(self, record: Record) -> None:
        """CROC takes in what was recorded before the list, at once; what comes after it, one by one."""
        decisions, start = list(record.decisions), 0
        if self._list is None:
            at = next((i for i, (_, decision) in enumerate(decisions) if decision["event"] == "list"), None)
            start = record.kinds.size if at is None else decisions[at][0]
            early, decisions = decisions[:at], [] if at is None else decisions[at:]
            self._apply_before_list(_head(record, start, early))
        apply_steps(self, record._replace(decisions=decisions), start)
        self._new = []

    def _apply_before_list(self, record: Record) -> None:
        self._croc.apply(record)
        self._looks = self._looks and not any(decision["event"] in ENDS_LOOKING for _, decision in record.decisions)
        for i, (kind, arm) in enumerate(zip(record.kinds.tolist(), record.arms.tolist(), strict=True)):
            if kind == ASK:
                self._under_way[arm] += 1
            elif kind == GIVE_UP:
                self._under_way[arm] -= 1
            elif kind == RESULT:
                self._under_way[arm] -= bool(record.asked[i])
                self._take_in(arm, record.white[i])
                if self._looks:
                    for pair in self._newly_settled(arm):
                        self._settle(pair)

    # What is certified.

    def certificate(self, decisions: list[Decision]) -> dict[str, Any]:
        """CROC's, or that all partitions on the list but one are struck off."""
        if self._list is None:
            return self._croc.certificate(decisions)
        n_arms, n_clusters, dim = self._shape
        labels = self._list.listed[self._list.likeliest]
        columns = np.array(self._settled, dtype=np.int64).reshape(-1, 4).T
        evidence = self._stacks.evidence(*columns).tolist()
        pairs = [
            [pair[0], pair[1], value, pair[2], pair[3]] for pair, value in zip(self._settled, evidence, strict=True)
        ]
        struck = [[int(by), float(value)] for by, value in zip(self._list.struck_by, self._list.log_e, strict=True)]
        struck[self._list.likeliest] = [0, 0.0]
        return {
            "format": "coterie-certificate-2",
            "n_arms": n_arms,
            "n_clusters": n_clusters,
            "dim": dim,
            "delta": math.exp(-self._log_inverse_delta),
            "log_inverse_delta": self._log_inverse_delta,
            "alpha": ALPHA,
            "equal_pairs": (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2,
            "pair_level": self._pair_level,
            "prefix_room": PREFIX_ROOM,
            "t": self.t,
            "epochs": [],
            "labels": labels.tolist(),
            "by": "list",
            "representatives": [int(np.argmax(labels == k)) for k in range(n_clusters)],
            "list": {
                "level": self._list_level,
                "rounds": list(range(1, self._list.used + 1)),
                "pairs": pairs,
                "partitions": self._list.listed.tolist(),
                "struck": [[by, value if by else 0.0] for by, value in struck],
            },
        }


def _head(record: Record, end: int, decisions: list[tuple[int, Decision]]) -> Record:
    """The first entries of a record, with these decisions."""
    return Record(
        record.kinds[:end], record.arms[:end], record.rounds[:end], record.ask[:end], record.asked[:end],
        record.white[:end], decisions,
    )  # fmt: skip
