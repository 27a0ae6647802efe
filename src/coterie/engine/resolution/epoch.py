"""A frozen candidate and its tests, which see only results asked for after the freeze, in the order of each arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.near_far.family import Family, PairTests

NEAR, FAR = "near", "far"


class Epoch:
    """The tests of one frozen candidate, made from what the freeze says alone.

    `frozen`: the decision, as plain JSON (docs/RESOLUTION.md). Tests are rows: the near ones in the order of the
    freeze, then the far ones. Of each `item`, `reference`, `ratio`, `bound` (n, d), and `met_at`: contrasts when it was
    met; 0 as long as it is not. `unmet` (M): of each arm, tests that are not met. `covered`: whether the tests say all
    that is claimed; who asks the question knows that, and says so.
    """

    def __init__(self, frozen: dict[str, Any], family: Family, n_arms: int) -> None:
        self.frozen = frozen
        self.number, self.level = int(frozen["epoch"]), float(frozen["level"])
        self.labels: IntArray = np.array(frozen["labels"], dtype=np.int64)
        self.references: IntArray = np.array(frozen["references"], dtype=np.int64)
        rows, self._n_near = [*frozen[NEAR], *frozen[FAR]], len(frozen[NEAR])
        items, references, ratios, bounds, parameters = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        self.item, self.reference, self.ratio = (
            np.array(column, dtype=np.int64) for column in (items, references, ratios)
        )
        self.bound: FloatArray = np.array(bounds, dtype=np.float64).reshape(len(rows), family.dim)
        near, far = slice(self._n_near), slice(self._n_near, None)
        self._near = family.near_tests(self.bound[near], self.ratio[near], parameters[near])
        self._far = family.far_tests(self.bound[far], self.ratio[far], parameters[far])
        self.met_at: IntArray = np.zeros(len(rows), dtype=np.int64)
        arms = np.concatenate([self.item, self.reference])
        self.unmet: IntArray = np.bincount(arms, minlength=n_arms)
        order = np.argsort(arms, kind="stable") % max(len(rows), 1)
        self._of_arm = np.split(order, np.cumsum(self.unmet)[:-1])
        self._results = np.zeros((n_arms, 8, family.dim))
        self._counts: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.pending: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.covered = False

    def __len__(self) -> int:
        return self.item.size

    @property
    def is_near(self) -> Any:
        """(n) whether a test is one of nearness."""
        return np.arange(len(self)) < self._n_near

    @property
    def met(self) -> Any:
        """(n) whether a test has reached its level."""
        return self.met_at > 0

    @property
    def count(self) -> IntArray:
        """(n) contrasts of each test so far."""
        return np.concatenate([self._near.count, self._far.count])

    @property
    def evidence(self) -> FloatArray:
        """(n) log E of each test."""
        return np.concatenate([self._near.evidence, self._far.evidence])

    @property
    def done(self) -> bool:
        """Whether the candidate is proven: every test is met, and together they say all that is claimed."""
        return self.covered and not self.unmet.any()

    def add(self, arm: int, z: FloatArray) -> None:
        """One result that was asked for after the freeze."""
        if self._counts[arm] == self._results.shape[1]:
            self._results = np.concatenate([self._results, np.zeros_like(self._results)], axis=1)
        self._results[arm, self._counts[arm]] = z
        self._counts[arm] += 1
        if self.unmet[arm]:
            tests = self._of_arm[arm]
            tests = tests[self.met_at[tests] == 0]
            near = tests < self._n_near
            self._advance(self._near, tests[near], 0)
            self._advance(self._far, tests[~near], self._n_near)

    def _advance(self, kind: PairTests, tests: IntArray, first: int) -> None:
        """Every contrast of these tests that can be formed now goes in. `first`: the row of the first of their kind."""
        while tests.size:
            count, ratio = kind.count[tests - first], self.ratio[tests]
            items, references = self.item[tests], self.reference[tests]
            ready = (count < self._counts[items]) & ((count + 1) * ratio <= self._counts[references])
            tests, count, ratio = tests[ready], count[ready], ratio[ready]
            if not tests.size:
                return
            blocks = self._results[references[ready], count]  # of one result
            for several in np.unique(ratio[ratio > 1]).tolist():
                which = np.flatnonzero(ratio == several)
                places = count[which, None] * several + np.arange(several)
                blocks[which] = self._results[references[ready][which, None], places].mean(axis=1)
            kind.add(tests - first, self._results[items[ready], count], blocks)
            reached = kind.evidence[tests - first] >= self.level
            met = tests[reached]
            self.met_at[met] = count[reached] + 1
            np.subtract.at(self.unmet, np.concatenate([self.item[met], self.reference[met]]), 1)
            tests = tests[~reached]

    @property
    def unused(self) -> int:
        """Results of arms with an unmet test that none of these has used."""
        tests = np.flatnonzero(self.met_at == 0)
        count, used = self.count[tests], np.zeros(self._counts.size, dtype=np.int64)
        np.maximum.at(used, self.item[tests], count)
        np.maximum.at(used, self.reference[tests], count * self.ratio[tests])
        return int(np.maximum(self._counts - used, 0)[self.unmet > 0].sum())

    def wants(self, arm: int) -> bool:
        """Whether a test of the arm is not met yet."""
        return bool(self.unmet[arm] > 0)

    def sweep(self) -> list[int]:
        """Arms for one further contrast of every unmet test that has the fewest contrasts under way."""
        unmet = np.flatnonzero(self.met_at == 0)
        item, reference, ratio = self.item[unmet], self.reference[unmet], self.ratio[unmet]
        taken = self._counts + self.pending
        ahead = np.minimum(taken[item], taken[reference] // ratio)
        under_way = ahead - self.count[unmet]
        fewest = under_way == under_way.min()
        item, reference, ratio, ahead = item[fewest], reference[fewest], ratio[fewest], ahead[fewest] + 1
        wanted = np.zeros(taken.size, dtype=np.int64)
        np.maximum.at(wanted, item, ahead - taken[item])
        np.maximum.at(wanted, reference, ahead * ratio - taken[reference])
        return [arm for turn in range(int(wanted.max())) for arm in np.flatnonzero(wanted > turn).tolist()]
