"""A frozen candidate and its tests, which see only results asked for after the freeze, in the order of each arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.near_far.family import Family, PairTest

NEAR, FAR = "near", "far"


@dataclass
class Claimed:
    """A test at work. `number`: its place in the list of its kind at the freeze."""

    kind: str
    number: int
    item: int
    reference: int
    ratio: int
    bound: FloatArray
    test: PairTest
    met_at: int = 0  # contrasts when it was met; 0 as long as it is not

    @property
    def met(self) -> bool:
        """Whether it has reached its level."""
        return self.met_at > 0


class Epoch:
    """The tests of one frozen candidate, made from what the freeze says alone.

    `frozen`: the decision, as plain JSON (docs/RESOLUTION.md).
    """

    def __init__(self, frozen: dict[str, Any], family: Family, n_arms: int) -> None:
        self.frozen = frozen
        self.number, self.level = int(frozen["epoch"]), float(frozen["level"])
        self.labels: IntArray = np.array(frozen["labels"], dtype=np.int64)
        self.references: IntArray = np.array(frozen["references"], dtype=np.int64)
        self.tests: list[Claimed] = []
        for kind in (NEAR, FAR):
            make = family.near_test if kind == NEAR else family.far_test
            for number, (item, reference, ratio, bound, parameters) in enumerate(frozen[kind]):
                limit = np.array(bound, dtype=np.float64)
                test = make(limit, ratio, parameters)
                self.tests.append(Claimed(kind, number, item, reference, ratio, limit, test))
        self.of_arm: list[list[Claimed]] = [[] for _ in range(n_arms)]
        for one in self.tests:
            self.of_arm[one.item].append(one)
            self.of_arm[one.reference].append(one)
        self.unmet = len(self.tests)
        self._results: list[list[FloatArray]] = [[] for _ in range(n_arms)]
        self.pending: IntArray = np.zeros(n_arms, dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether every test is met."""
        return self.unmet == 0

    def results(self, arm: int) -> int:
        """Results of an arm since the freeze."""
        return len(self._results[arm])

    def taken(self, arm: int) -> int:
        """Results of an arm since the freeze, and asks under way."""
        return len(self._results[arm]) + int(self.pending[arm])

    def add(self, arm: int, z: FloatArray) -> None:
        """One result that was asked for after the freeze."""
        self._results[arm].append(z)
        for one in self.of_arm[arm]:
            if not one.met:
                self._advance(one)

    def _advance(self, one: Claimed) -> None:
        """Every contrast that can be formed now goes in."""
        items, others, test = self._results[one.item], self._results[one.reference], one.test
        while not one.met and test.count < len(items) and (test.count + 1) * one.ratio <= len(others):
            start = test.count * one.ratio
            block = others[start] if one.ratio == 1 else np.array(others[start : start + one.ratio])
            test.add(items[test.count], block.reshape(one.ratio, -1))
            if test.evidence >= self.level:
                one.met_at = test.count
                self.unmet -= 1

    @property
    def unused(self) -> int:
        """Results of arms with an unmet test that none of these has used."""
        used: dict[int, int] = {}
        for one in self.tests:
            if not one.met:
                for arm, count in ((one.item, one.test.count), (one.reference, one.test.count * one.ratio)):
                    used[arm] = max(used.get(arm, 0), count)
        return sum(max(0, self.results(arm) - count) for arm, count in used.items())

    def wants(self, arm: int) -> bool:
        """Whether a test of the arm is not met yet."""
        return any(not one.met for one in self.of_arm[arm])

    def sweep(self) -> list[int]:
        """Arms for one further contrast of every unmet test that has the fewest contrasts under way."""
        unmet = [one for one in self.tests if not one.met]
        ahead = [min(self.taken(one.item), self.taken(one.reference) // one.ratio) for one in unmet]
        under_way = [there - one.test.count for one, there in zip(unmet, ahead, strict=True)]
        fewest = min(under_way)
        items: dict[int, int] = {}
        for one, there, now in zip(unmet, ahead, under_way, strict=True):
            if now > fewest:
                continue
            for arm, count in ((one.item, there + 1), (one.reference, (there + 1) * one.ratio)):
                items[arm] = max(items.get(arm, 0), count - self.taken(arm))
        found: list[int] = []
        most = max(items.values(), default=0)
        for turn in range(most):
            found += [arm for arm, count in sorted(items.items()) if count > turn]
        return found
