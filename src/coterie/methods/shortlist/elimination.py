"""Partitions that fit the pairs known to differ, if they are few: a list, from which rounds and pairs strike off.

docs/CROC.md, section 20. `PairStacks` has the evidence of all pairs of arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from coterie._native import Partitions
from coterie.evidence.pairs import BLOCK_RATIOS, RATIO_WEIGHTS, mixture_log
from coterie.methods.croc.run import PREFIX_ROOM, grid_counts
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical

MOST = 200
"""Partitions on a list."""

STEPS = 20_000
"""Arms placed in the search for them after which there are taken to be too many."""


KEPT: IntArray = np.unique(np.concatenate([np.arange(1, PREFIX_ROOM + 1), grid_counts(PREFIX_ROOM)]))
"""The counts at which the sum of an arm's first results is kept: the grid that CROC's pairs are read on."""

SIDES = [
    (swapped, ratio, weight)
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)
    for swapped in ((False, True) if ratio > 1 else (False,))
]
"""Which of the two arms is averaged in blocks, over how many, and the weight of that; together they weigh 1."""


def partitions_without(
    settled: NDArray[np.bool_], n_clusters: int, most: int = MOST, steps: int = STEPS
) -> IntArray | None:
    """(n, M) labels of all partitions into exactly K groups that have no settled pair in a group.

    None if there are more than `most`, or if it takes more than `steps` placed arms to see. Groups are numbered by
    first appearance, and the partitions are in ascending order of their labels.
    """
    n_arms = len(settled)
    order = np.argsort(-settled.sum(axis=1), kind="stable").tolist()  # arms with few possible places go first
    against = [{int(other) for other in np.flatnonzero(settled[arm])} for arm in order]
    partitions: list[list[int]] = []
    groups: list[list[int]] = []
    labels = [0] * n_arms
    placed = 0

    def place(i: int) -> bool:
        """Go on with the i-th arm; False: too many."""
        nonlocal placed
        placed += 1
        if placed > steps:
            return False
        if i == n_arms:
            partitions.append(canonical(labels).tolist())
            return len(partitions) <= most
        arm = order[i]
        if len(groups) + n_arms - i > n_clusters:  # otherwise it has to begin a group
            for k, group in enumerate(groups):
                if against[i].isdisjoint(group):
                    group.append(arm)
                    labels[arm] = k
                    if not place(i + 1):
                        return False
                    group.pop()
        if len(groups) < n_clusters:
            groups.append([arm])
            labels[arm] = len(groups) - 1
            if not place(i + 1):
                return False
            groups.pop()
        return True

    return np.array(sorted(partitions), dtype=np.int64).reshape(-1, n_arms) if place(0) else None


def blocks_of(listed: IntArray) -> IntArray:
    """(M) blocks of arms, numbered: two arms are in one if a chain of arms joins them, each two of which some listed
    partition has in one group."""
    together = (listed[:, :, None] == listed[:, None, :]).any(axis=0)
    return canonical(connected_components(together, directed=False)[1])


def clique_of(settled: NDArray[np.bool_], size: int) -> tuple[int, ...] | None:
    """So many arms that are pairwise settled, if a search that takes the arms with most settled pairs first finds them.

    It gives up after `STEPS` arms.
    """
    order = np.argsort(-settled.sum(axis=1), kind="stable").tolist()
    looked = 0

    def grow(chosen: list[int], left: list[int]) -> list[int] | None:
        nonlocal looked
        if len(chosen) == size:
            return chosen
        for i, arm in enumerate(left):
            looked += 1
            if len(chosen) + len(left) - i < size or looked > STEPS:
                return None
            clique = grow([*chosen, arm], [other for other in left[i + 1 :] if settled[arm, other]])
            if clique is not None:
                return clique
        return None

    clique = grow([], order)
    return None if clique is None else tuple(sorted(clique))


def _places(counts: IntArray) -> IntArray:
    """How many kept counts are at most `counts`."""
    return np.asarray(np.searchsorted(KEPT, counts, side="right"))


class PairStacks:
    """The pairs from the start of *all* arms (docs/CROC.md, sections 2 and 3), as results come in one by one.

    `counts[m]`: results of arm m. Sums of its first n results are kept for every n of `KEPT`."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.counts = np.zeros(n_arms, dtype=np.int64)
        self._kept = np.zeros(n_arms, dtype=np.int64)  # how many of KEPT
        self._sums = np.zeros((n_arms, 8, dim))  # row l: of the first KEPT[l-1] results
        self._totals = np.zeros((n_arms, dim))

    def add(self, arm: int, x: FloatArray) -> None:
        """One result."""
        self._totals[arm] += x
        self.counts[arm] += 1
        if self.counts[arm] == KEPT[self._kept[arm]]:
            self._kept[arm] += 1
            if self._kept[arm] == self._sums.shape[1]:
                self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)], axis=1)
            self._sums[arm, self._kept[arm]] = self._totals[arm]

    def evidence(self, first: IntArray, second: IntArray, n_first: IntArray, n_second: IntArray) -> FloatArray:
        """log-evidence that arms differ by so many of their first results: the largest over R and both sides."""
        best = np.full(first.size, -np.inf)
        for swapped, ratio, weight in SIDES:
            arm, other = (second, first) if swapped else (first, second)
            n_one, n_other = (n_second, n_first) if swapped else (n_first, n_second)
            place = _places(np.minimum(n_one, n_other // ratio) * ratio)
            n = np.where(place > 0, KEPT[np.maximum(place, 1) - 1] // ratio, 0)
            some = np.flatnonzero(n > 0)
            if some.size:
                m = n[some]
                gap = self._sums[arm[some], _places(m)] - self._sums[other[some], _places(m * ratio)] / ratio
                energy = (gap * gap).sum(axis=1) / (m * (1.0 + 1.0 / ratio))
                best[some] = np.maximum(best[some], np.log(weight) + mixture_log(m, energy, gap.shape[1]))
        return best


SCALES: FloatArray = np.exp2(np.arange(8.0, -11.0, -2.0))
"""τ²: the variance of centers of parts around their place, in each coordinate. Part of what is proven."""

RIVAL = 1e-4
"""Of p of the likeliest: what every rival's p is lowered by, to 0 at least. Part of what is proven."""

SURE = 0.6
"""From so large a p of the likeliest on, rounds serve the evidence; before, they serve p."""

WANTED = 0.5
"""Of the best arm's gain: arms with less are not measured in a round."""

URGENCY = 0.2
"""A partition with the evidence log E against it counts like exp(−0.2·log E) of one without any."""

SMALL = 1e-3
"""Of the largest product of urgency and chance: what is less is left out where growth is forecast."""

LEAST_LOG = -7.0
"""log of the share of a scale below which it is left out of a forecast."""

FLOOR = 20.0
"""Every arm has at least a twentieth of the mean number of pulls."""


@dataclass
class ListRound:
    """A round: how often it takes each arm, and what its bets are made of, fixed when it was composed."""

    wanted: IntArray
    chance: FloatArray
    pulls: FloatArray
    sums: FloatArray
    taken: FloatArray = field(init=False)
    total: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.taken, self.total = np.zeros(self.wanted.size), np.zeros_like(self.sums)

    @property
    def complete(self) -> bool:
        """Whether all of its results are in."""
        return bool((self.taken >= self.wanted).all())


class Elimination:
    """A list and its rounds. `pulls` and `sums` of the arms are the caller's, who keeps them up to date.

    Rounds are numbered from 1. Pairs of arms that are known to differ strike off partitions as soon as they are
    settled; bets of a round know those only that its record, or that of an earlier round, names: so anybody can make
    them again.
    """

    def __init__(self, listed: IntArray, level: float, pulls: FloatArray, sums: FloatArray) -> None:
        self.listed, self.level = listed, level
        self.alive = np.ones(len(listed), dtype=np.int64)
        self.log_e = np.zeros(len(listed))  # as long as it is alive; then what struck it off
        self.struck_by = np.zeros(len(listed), dtype=np.int64)  # the round that did; 0 if a pair did, or nothing
        self.possible: NDArray[np.bool_] = np.ones(len(listed), dtype=bool)  # no settled pair is in one group
        self._named: NDArray[np.bool_] = self.possible  # … of the pairs that rounds name
        self.composed = self.used = 0  # rounds
        self._rounds: dict[int, ListRound] = {}  # those that are not used yet
        self._pulls, self._sums = pulls, sums
        self._judged = Partitions(listed, sums.shape[1], SCALES)
        groups = np.arange(int(listed[0].max()) + 1)
        self._one_hot = (listed[:, None, :] == groups[None, :, None]).astype(np.float64)

    @property
    def left(self) -> IntArray:
        """The partitions that are not struck off."""
        return np.flatnonzero(self.alive)

    @property
    def proven(self) -> bool:
        """Whether one partition is left, which no settled pair speaks against, and every other one is struck off.

        Read off anew: by a round at the level, or by a settled pair that it has in one group.
        """
        by_round = (self.struck_by > 0) & (self.log_e >= self.level)
        gone = by_round | ~self.possible
        return self.left.size == 1 and bool(self.possible[self.left[0]] and gone[self.alive == 0].all())

    @property
    def likeliest(self) -> int:
        """The one with the largest p of those left."""
        left = self.left
        return int(left[np.argmax(self.chances(self.possible)[left])])

    def chances(self, possible: NDArray[np.bool_]) -> FloatArray:
        """p of the listed partitions by all results so far; 0 where it is not possible.

        Those that rounds have struck off stay in: if one was the true one, the others are still judged by it.
        """
        logs = self._judged.log_posterior(blocks_of(self.listed[possible]), self._pulls, self._sums)
        weights = np.where(possible, np.exp(logs - logs[possible].max()), 0.0)
        return np.asarray(weights / weights.sum())

    def plan(self, committed: FloatArray) -> IntArray:
        """The arms of the next round, ascending. `committed`: pulls of each arm, those under way included."""
        chance = self.chances(self.possible)
        urgency = np.where(self.alive > 0, np.exp(-URGENCY * np.maximum(self.log_e, 0.0)), 0.0)
        known = self._pulls, self._sums
        gain, null, rival = self._judged.expected_growth(urgency, chance, *known, SMALL, LEAST_LOG)
        if chance.max() < SURE:
            gain = self._information(chance)
        wanted = gain >= WANTED * gain.max()
        group = self.listed[null] == self.listed[null, int(gain.argmax())]
        parts = np.unique(self.listed[rival, group])
        if parts.size < 2:  # the best arm is of a group that the rival leaves as it is: take one that it cuts
            cut = next(g for g in self.listed[null] if np.unique(self.listed[rival, self.listed[null] == g]).size > 1)
            group = self.listed[null] == cut
            parts = np.unique(self.listed[rival, group])
        for part in parts:
            arms = np.flatnonzero(group & (self.listed[rival] == part))
            if not wanted[arms].any():
                wanted[arms[np.lexsort((committed[arms], -gain[arms]))[0]]] = True
        wanted |= committed < committed.sum() / (FLOOR * committed.size)
        return np.flatnonzero(wanted)

    def _information(self, chance: FloatArray) -> FloatArray:
        """½ of the variance, over the partitions by p, of the center that each gives to an arm."""
        center = (self._one_hot @ self._sums) / (self._one_hot @ self._pulls)[:, :, None]
        at = np.take_along_axis(center, self.listed[:, :, None], axis=1)
        spread = ((at - np.einsum("l,lmd->md", chance, at)) ** 2).sum(axis=2)
        return np.asarray(0.5 * chance @ spread)

    def compose(self, arms: Sequence[int], named: Sequence[tuple[int, int]]) -> int:
        """A round that takes each of these arms once, with bets from all results so far; its number.

        `named`: the settled pairs that its record names. One that would leave no partition possible is passed over.
        """
        wanted = np.zeros(self._pulls.size, dtype=np.int64)
        wanted[list(arms)] = 1
        for arm, other in named:
            fewer = self._named & (self.listed[:, arm] != self.listed[:, other])
            self._named = fewer if fewer.any() else self._named
        chance = self.chances(self._named)
        bets = np.maximum(chance - RIVAL * chance.max(), 0.0)
        self.composed += 1
        self._rounds[self.composed] = ListRound(wanted, bets, self._pulls.copy(), self._sums.copy())
        return self.composed

    def take(self, number: int, arm: int, x: FloatArray) -> None:
        """A result of a round; complete rounds are judged, each after all before it, until one partition is left."""
        now = self._rounds[number]
        now.taken[arm] += 1
        now.total[arm] += x
        while self.used < self.composed and self._rounds[self.used + 1].complete and self.alive.sum() > 1:
            self.used += 1
            now = self._rounds.pop(self.used)
            self.log_e += self._judged.round_logs(self.alive, now.chance, now.pulls, now.sums, now.taken, now.total)
            gone = self.left[self.log_e[self.left] >= self.level]
            self.struck_by[gone] = self.used
            self._strike_off(gone)

    def held_up(self) -> tuple[int, frozenset[int]]:
        """Results of rounds behind the first one that is not complete; the rounds that are not used yet."""
        behind = (state.taken.sum() for number, state in self._rounds.items() if number > self.used + 1)
        return int(sum(behind)), frozenset(self._rounds)

    def settle(self, arm: int, other: int) -> bool:
        """Strike off what has these two in one group: it is wrong, or two equal arms were settled.

        If that would leave none, K is wrong or two equal arms were settled: then nothing is done, and the answer False.
        """
        possible = self.possible & (self.listed[:, arm] != self.listed[:, other])
        if not possible.any():
            return False
        self.possible = possible
        self._strike_off(np.flatnonzero(~possible))
        return True

    def _strike_off(self, gone: IntArray) -> None:
        """These partitions. If none is left, which has probability at most δ if K is right, the likeliest stays."""
        self.alive[gone] = 0
        if not self.alive.any():
            self.alive[int(np.argmax(self.chances(self.possible)))] = 1
