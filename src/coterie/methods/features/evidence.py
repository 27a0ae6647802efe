"""The tests of a frozen candidate, and what they gather from rounds of panels (docs/CROC.md, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

FIRST_SHARE, NEXT_SHARE = 0.8, 0.2
"""π_0, and π_{j+1}/π_j."""
GROUP, CORE, PAIR = 0, 1, 2
"""Kinds of tests: an item against all of a group, against its core, two core items."""


class FrozenTests:
    """The tests of labels and cores, as arrays: kind, item (arm), its group, the group of the pool, the one item of it.

    `whole`: those at level b; the others are at b/2.
    """

    def __init__(self, labels: IntArray, cores: Sequence[Sequence[int]]) -> None:
        n_items, n_groups = labels.size, len(cores)
        in_core = np.zeros(n_items, dtype=bool)
        for core in cores:
            in_core[list(core)] = True
        items, groups = np.divmod(np.arange(n_items * n_groups), n_groups)
        other_group = groups != labels[items]
        kinds, arms, against, others = [], [], [], []
        for kind, chosen in ((GROUP, other_group & ~in_core[items]), (CORE, other_group)):
            kinds.append(np.full(int(chosen.sum()), kind))
            arms.append(items[chosen])
            against.append(groups[chosen])
            others.append(np.full(int(chosen.sum()), -1))
        pairs = [  # the item is the one whose group has the larger number
            (PAIR, p, other, q)
            for k in range(n_groups)
            for other in range(k)
            if len(cores[k]) > 1 and len(cores[other]) > 1
            for p in cores[k]
            for q in cores[other]
        ]
        rows = np.array(pairs, dtype=np.int64).reshape(-1, 4).T
        self.kind, self.arm, self.against, self.other = (
            np.concatenate([*parts, row]).astype(np.int64)
            for parts, row in zip((kinds, arms, against, others), rows, strict=True)
        )
        self.own: IntArray = labels[self.arm]
        self.whole = (self.kind == GROUP) | ((self.kind == CORE) & in_core[self.arm])

    def __len__(self) -> int:
        return int(self.kind.size)


class Contrasts(NamedTuple):
    """Both sides of tests on one feature in one round: their places, and of each side the number and mean of results.

    Tests that have results of one side only are left out.
    """

    tests: IntArray
    a: FloatArray
    A: FloatArray
    C: FloatArray  # the difference of the means

    @property
    def weight(self) -> FloatArray:
        """1/v."""
        return self.a * self.A / (self.a + self.A)

    def of(self, places: IntArray) -> Contrasts:
        """Some of them."""
        return Contrasts(self.tests[places], self.a[places], self.A[places], self.C[places])


class RoundSums:
    """The results of one round and feature: of each item, group and core their number and sum."""

    def __init__(self, items: IntArray, x: FloatArray, labels: IntArray, core_of: IntArray, n_groups: int) -> None:
        self.items, self.x = items, x
        self.counts = np.bincount(items, minlength=labels.size).astype(np.float64)
        self.sums = np.bincount(items, x, minlength=labels.size)
        in_core = core_of[items] >= 0
        cores = core_of[items][in_core]
        self.group_counts = np.bincount(labels[items], minlength=n_groups).astype(np.float64)
        self.group_sums = np.bincount(labels[items], x, minlength=n_groups)
        self.core_counts = np.bincount(cores, minlength=n_groups).astype(np.float64)
        self.core_sums = np.bincount(cores, x[in_core], minlength=n_groups)

    def contrasts(self, tests: FrozenTests, chosen: IntArray) -> Contrasts:
        """Of these tests."""
        chosen = chosen[self.counts[tests.arm[chosen]] > 0.0]
        kind, against = tests.kind[chosen], tests.against[chosen]
        group, pair = kind == GROUP, kind == PAIR
        many = np.where(group, self.group_counts[against], self.core_counts[against])
        total = np.where(group, self.group_sums[against], self.core_sums[against])
        other = tests.other[chosen[pair]]
        many[pair], total[pair] = self.counts[other], self.sums[other]
        both = many > 0.0
        chosen, many, total = chosen[both], many[both], total[both]
        arm = tests.arm[chosen]
        a = self.counts[arm]
        return Contrasts(chosen, a, many, self.sums[arm] / a - total / many)


class Evidence:
    """What the tests of an epoch have gathered; `log_e` is made anew from it. One subclass for each noise."""

    def __init__(self, tests: FrozenTests) -> None:
        self.tests = tests

    def join(self, bet: Mapping[str, Any]) -> None:
        """A feature is used from the next round on: its numbers are those of the freeze or of the round."""

    def take(self, panel_rows: Sequence[PanelRows], bets: Mapping[int, Mapping[str, Any]], chosen: IntArray) -> None:
        """The results of one round, for the tests that are open."""
        raise NotImplementedError

    def log_e(self, chosen: IntArray) -> FloatArray:
        """log E of these tests."""
        raise NotImplementedError


class PanelRows(NamedTuple):
    """The results of one panel in a round: who, and their numbers (n, features of the panel), NaN for holes."""

    features: tuple[int, ...]
    items: IntArray
    x: FloatArray


class KnownEvidence(Evidence):
    """A known noise, features apart or independent: a Gaussian mixture around the differences guessed at the freeze.

    Results are in units of the noise.
    """

    def __init__(self, tests: FrozenTests, labels: IntArray, core_of: IntArray, n_groups: int) -> None:
        super().__init__(tests)
        self._labels, self._core_of, self._n_groups = labels, core_of, n_groups
        self.places: dict[int, int] = {}
        empty = np.zeros((len(tests), 0))
        self._theta, self._square, self._n, self._s = empty, empty, empty, empty

    def join(self, bet: Mapping[str, Any]) -> None:
        if bet["feature"] in self.places:
            return
        self.places[bet["feature"]] = len(self.places)
        centers, weights = np.array(bet["centers"]), np.array(bet["weights"])
        own, against = self.tests.own, self.tests.against
        zeros = np.zeros((len(self.tests), 1))
        theta, square = centers[own] - centers[against], 1.0 / weights[own] + 1.0 / weights[against]
        self._theta = np.hstack([self._theta, theta[:, None]])
        self._square = np.hstack([self._square, square[:, None]])
        self._n, self._s = np.hstack([self._n, zeros]), np.hstack([self._s, zeros])

    def take(self, panel_rows: Sequence[PanelRows], bets: Mapping[int, Mapping[str, Any]], chosen: IntArray) -> None:
        for rows in panel_rows:  # one panel after the other: results of two panels are not compared
            for column, feature in enumerate(rows.features):
                place = self.places.get(feature)
                if place is None:
                    continue
                there = ~np.isnan(rows.x[:, column])
                sums = RoundSums(rows.items[there], rows.x[there, column], self._labels, self._core_of, self._n_groups)
                sides = sums.contrasts(self.tests, chosen)
                self._n[sides.tests, place] += sides.weight
                self._s[sides.tests, place] += sides.weight * sides.C

    def log_e(self, chosen: IntArray) -> FloatArray:
        theta, square, n, s = self._theta[chosen], self._square[chosen], self._n[chosen], self._s[chosen]
        grown = 1.0 + n * square
        inner = 2.0 * s * theta + square * s * s - n * theta * theta
        return np.asarray((inner / (2.0 * grown) - 0.5 * np.log(grown)).sum(axis=1))
