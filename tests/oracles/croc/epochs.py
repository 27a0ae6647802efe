"""Frozen candidates, their tests, and rounds: docs/CROC.md, sections 4 to 6."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray
from tests.oracles.croc import rule
from tests.oracles.croc.partitions import ordered_sum


class Test(NamedTuple):
    """An arm against a pool (section 5). `home` and `rival` are their groups in the candidate."""

    kind: str  # "group", "core" or "pair"
    arm: int
    pool: tuple[int, ...]
    home: int
    rival: int
    level: float


@dataclass
class Epoch:
    """A candidate, its cores, and the guess of the centers from all results before the freeze."""

    number: int
    t: int
    level: float
    labels: list[int]
    cores: list[list[int]]
    centers: FloatArray
    totals: FloatArray
    tests: list[Test] = field(init=False)
    met: set[Test] = field(default_factory=set)
    contrasts: dict[Test, list[tuple[FloatArray, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The tests: the table of section 5."""
        b, self.tests = self.level, []
        in_core = {m for core in self.cores for m in core}
        for m, home in enumerate(self.labels):
            for k, core in enumerate(self.cores):
                group = tuple(q for q, label in enumerate(self.labels) if label == k)
                if k != home and m in in_core:
                    self.tests.append(Test("core", m, tuple(core), home, k, b))
                elif k != home:
                    self.tests.append(Test("group", m, group, home, k, b))
                    self.tests.append(Test("core", m, tuple(core), home, k, 0.5 * b))
        for k, core in enumerate(self.cores):
            for j, other in enumerate(self.cores[:k]):
                if len(core) > 1 and len(other) > 1:
                    self.tests += [Test("pair", p, (q,), k, j, 0.5 * b) for p in core for q in other]

    def use(self, complete: Round) -> None:
        """Give every unmet test with pulls on both sides the contrast of a complete round (section 4)."""
        for test in self.tests:
            pool = sorted(set(test.pool) & complete.pulls.keys())
            if test in self.met or test.arm not in complete.pulls or not pool:
                continue
            n_arm, n_pool = complete.pulls[test.arm], sum(complete.pulls[q] for q in pool)
            pooled = ordered_sum(np.array([complete.sums[q] for q in pool]), axis=0) / n_pool
            contrast = complete.sums[test.arm] / n_arm - pooled
            self.contrasts.setdefault(test, []).append((contrast, 1.0 / n_arm + 1.0 / n_pool))
            if self.evidence(test) >= test.level:
                self.met.add(test)

    def evidence(self, test: Test) -> float:
        """log E of a test: contrasts C of variance v against the frozen guess θ0 and its variance τ² (section 4)."""
        n = sum(1.0 / v for _, v in self.contrasts[test])
        total = ordered_sum(np.array([contrast / v for contrast, v in self.contrasts[test]]), axis=0)  # S
        theta = self.centers[test.home] - self.centers[test.rival]
        spread = 1.0 / self.totals[test.rival] + 1.0 / self.totals[test.home]
        growth = 1.0 + n * spread
        fit = 2.0 * float(theta @ total) + spread * float(total @ total) - n * float(theta @ theta)
        return float(fit / (2.0 * growth) - 0.5 * total.size * math.log(growth))


def level_of(number: int, log_inverse_delta: float) -> float:
    """b_j of epoch j (section 6)."""
    share = math.log(rule.FIRST_EPOCH_SHARE) + number * math.log(1.0 - rule.FIRST_EPOCH_SHARE)
    return log_inverse_delta - math.log(1.0 - rule.PAIRS_SHARE) - share


def arms_of(tests: list[Test]) -> set[int]:
    """The arms that a round pulls for these tests: of pools, only the single arms of pair tests."""
    return {test.arm for test in tests} | {test.pool[0] for test in tests if test.kind == "pair"}


@dataclass
class Round:
    """How often each arm is to be pulled, fixed before the first of its asks; and what has come in."""

    number: int
    epoch: int
    pulls: dict[int, int]
    first: int  # where its arms are written down, see `Rounds`
    unasked: dict[int, int]
    sums: dict[int, FloatArray]
    left: int
    closed: bool = False


class Rounds:
    """All rounds of a run. Those from the oldest open one on are kept: 64 at most, with their arms in one ring."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self._n_arms, self._dim = n_arms, dim
        self.all: list[Round] = []

    @property
    def open(self) -> list[Round]:
        """Composed and not closed, oldest first."""
        return [one for one in self.all if not one.closed]

    def start(self, epoch: Epoch, pulls: dict[int, int]) -> bool:
        """Fix a round; False if there is no room for it."""
        first = self._room_for(len(pulls))
        if first >= 0:
            sums = {m: np.zeros(self._dim) for m in pulls}
            number, left = len(self.all) + 1, sum(pulls.values())
            self.all.append(Round(number, epoch.number, pulls, first, dict(pulls), sums, left))
        return first >= 0

    def _room_for(self, size: int) -> int:
        """Where `size` places in a row are free in the ring, −1 if nowhere or if too many rounds are kept."""
        places = max(2 * self._n_arms, min(rule.ROUNDS_UNDER_WAY * self._n_arms, rule.ROUND_PLACES))
        if not self.open:
            return 0
        kept = self.all[self.open[0].number - 1 :]
        if len(kept) >= rule.ROUNDS_UNDER_WAY:
            return -1
        head, tail = kept[0].first, kept[-1].first + len(kept[-1].pulls)
        if tail > head and tail + size <= places:
            return tail
        if tail > head:
            return 0 if size < head else -1
        return tail if tail + size < head else -1

    def next_ask(self) -> tuple[int, int]:
        """The round and the arm of the next ask: the oldest round, lowest arm; (0, −1) if all are out."""
        for one in self.open:
            for arm in sorted(one.unasked):
                if one.unasked[arm] > 0:
                    one.unasked[arm] -= 1
                    return one.number, arm
        return 0, -1

    def close(self, remembered: list[Epoch]) -> bool:
        """Use the complete rounds that no earlier incomplete one of their epoch holds up. Whether any was closed."""
        held: set[int] = set()
        epochs = {epoch.number: epoch for epoch in remembered}
        some = False
        for one in self.open:
            if one.left > 0 or one.epoch in held:
                if one.epoch in epochs:
                    held.add(one.epoch)
                continue
            if one.epoch in epochs:
                epochs[one.epoch].use(one)
            one.closed = some = True
        return some
