"""The tests of a frozen candidate, and their evidence from cells (docs/CROC.md, section 5; docs/BLOCKS.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.methods.blocks.cells import Cell
from coterie.methods.blocks.factors import Factors, Used
from coterie.problem.checks import FloatArray, IntArray

FIRST_SHARE, NEXT_SHARE = 0.8, 0.2
"""π_0, and π_{j+1}/π_j."""
GROUP, CORE, PAIR = 0, 1, 2
"""Kinds of tests: an arm against all of a group, against its core, two core arms. Without halves pairs are tested two
by two (docs/BLOCKS.md, section 5)."""


def share_of_epoch(number: int) -> float:
    """π_j."""
    return FIRST_SHARE * NEXT_SHARE**number


class FrozenTests:
    """The tests of labels and cores, as arrays: kind, arm, its group, the group of the pool, the pool."""

    def __init__(self, labels: IntArray, cores: Sequence[Sequence[int]]) -> None:
        n_arms, n_groups = labels.size, len(cores)
        in_core = np.zeros(n_arms, dtype=bool)
        core_pool, group_pool = np.zeros((n_groups, n_arms)), np.zeros((n_groups, n_arms))
        for k, core in enumerate(cores):
            in_core[list(core)] = True
            core_pool[k, list(core)] = 1.0
            group_pool[k, labels == k] = 1.0
        rows: list[tuple[int, int, int, int]] = []  # kind, arm, group of the pool, the one arm of the pool
        for m in range(n_arms):
            for k in range(n_groups):
                if k == labels[m]:
                    continue
                if not in_core[m]:
                    rows.append((GROUP, m, k, -1))
                rows.append((CORE, m, k, -1))
        for k in range(n_groups):
            for other in range(k):  # the arm is the one whose group has the larger number
                if len(cores[k]) > 1 and len(cores[other]) > 1:
                    rows += [(PAIR, p, other, q) for p in cores[k] for q in cores[other]]
        self.kind, self.arm, self.against, self.other = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        self.group: IntArray = labels[self.arm]
        self.whole = (self.kind == GROUP) | ((self.kind == CORE) & in_core[self.arm])  # at level b, the others at b/2
        self.pool: FloatArray = np.where(
            (self.kind == GROUP)[:, None], group_pool[self.against], core_pool[self.against]
        )
        pairs = self.kind == PAIR
        self.pool[pairs] = 0.0
        self.pool[pairs, self.other[pairs]] = 1.0

    def __len__(self) -> int:
        return int(self.kind.size)

    def joints(self) -> IntArray:
        """(n, 2) every two pair tests without a common arm, as places of tests."""
        pairs = np.flatnonzero(self.kind == PAIR)
        first, second = np.triu_indices(pairs.size, 1)
        arms = np.column_stack([self.arm, self.other])[pairs]
        common = (arms[first][:, :, None] == arms[second][:, None, :]).any(axis=(1, 2))
        return np.asarray(np.column_stack([pairs[first], pairs[second]])[~common])


class Epoch:
    """A frozen candidate: its tests, what each has, and the cell at which it was met.

    `frozen` is the decision, with `epoch`, `level`, `labels`, `cores` and, where the family has one, `bet`.
    """

    def __init__(self, frozen: dict[str, Any], factors: Factors, halves: bool) -> None:
        self.frozen, self.number, self.level = frozen, int(frozen["epoch"]), float(frozen["level"])
        self.labels: IntArray = np.array(frozen["labels"], dtype=np.int64)
        self.cores: list[list[int]] = [list(core) for core in frozen["cores"]]
        self.tests = FrozenTests(self.labels, self.cores)
        self.share: FloatArray = np.where(self.tests.whole | (not halves), 1.0, 0.5)  # of the level
        self.levels: FloatArray = self.share * self.level
        self.joints: IntArray = self.tests.joints() if not halves else np.zeros((0, 2), dtype=np.int64)
        self.joint_evidence: FloatArray = np.zeros(len(self.joints))
        self.joint_met_at: IntArray = np.zeros(len(self.joints), dtype=np.int64)
        self._factors, self._state = factors, factors.begin(self.tests, self.labels, self.share, frozen.get("bet"))
        self.evidence: FloatArray = np.zeros(len(self.tests))
        self.met_at: IntArray = np.zeros(len(self.tests), dtype=np.int64)  # the cell; 0: not met by cells
        self.cells: list[int] = []

    def use(self, cell: Cell, arms: IntArray, x: FloatArray, raw: FloatArray) -> None:
        """The results of the epoch's next cell: (n, d) from the first of them, and as they came."""
        self.cells.append(cell.number)
        if arms.size < 2:
            return
        used = Used(arms, x, raw, cell.bet, self.labels.size, cell.pulls)
        alone = self.tests.kind != PAIR if len(self.joints) else True
        open_tests = np.flatnonzero((self.met_at == 0) & alone)
        value = self._factors.take(self._state, used, open_tests)
        self.evidence[open_tests] = value
        self.met_at[open_tests[value >= self.levels[open_tests]]] = cell.number
        if len(self.joints):
            self._use_jointly(cell.number, used)

    def _use_jointly(self, number: int, used: Used) -> None:
        """Pair tests two by two: each is where the least of its joint tests is, and met when all of them are."""
        still = np.flatnonzero(self.joint_met_at == 0)
        if not still.size:
            return
        self.joint_evidence[still] += self._factors.jointly(self._state, used, self.joints[still])
        self.joint_met_at[still[self.joint_evidence[still] >= self.level]] = number
        left = np.where(self.joint_met_at > 0, np.inf, self.joint_evidence)
        least = np.full(len(self.tests), np.inf)
        for column in self.joints.T:
            np.minimum.at(least, column, left)
        pairs = np.flatnonzero((self.tests.kind == PAIR) & (self.met_at == 0))
        self.met_at[pairs[np.isinf(least[pairs])]] = number
        self.evidence[pairs] = np.where(np.isinf(least[pairs]), self.level, least[pairs])

    def unmet(self, settled: Any) -> IntArray:
        """FrozenTests that neither cells nor settled pairs, (M, M) or None, have met."""
        met = self.met_at > 0
        if settled is not None:
            met = met | self.by_pair(settled)
        return np.flatnonzero(~met)

    def by_pair(self, settled: Any) -> Any:
        """(tests) whether the arm and an arm of the core that it is tested against are settled (section 6)."""
        tests = self.tests
        core = np.zeros((len(self.cores), self.labels.size))
        for k, arms in enumerate(self.cores):
            core[k, arms] = 1.0
        known = settled.astype(np.float64) @ core.T > 0.0  # (M, K)
        met = known[tests.arm, tests.against]
        pairs = tests.kind == PAIR
        met[pairs] = settled[tests.arm[pairs], tests.other[pairs]]
        return met


def next_level(number: int, log_inverse_delta: float, alpha: float) -> float:
    """b_j = log 1/((1−α)·δ·π_j)."""
    return log_inverse_delta - math.log1p(-alpha) - math.log(share_of_epoch(number))
