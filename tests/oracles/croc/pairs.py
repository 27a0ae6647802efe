"""The results of each arm in ask order, and the pairs from the start: docs/CROC.md, sections 2 and 3."""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from tests.oracles.croc import rule
from tests.oracles.croc.partitions import squared

FAR = 1024.0
"""Standard deviations from the first result up to which the engine counts from it, and the reference takes values."""


class Stacks:
    """The sums of the first 0, 1, 2, … results of every arm, counted from the first result of the run."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self._sums = [[np.zeros(dim)] for _ in range(n_arms)]
        self._origin: FloatArray | None = None

    def add(self, arm: int, value: FloatArray) -> FloatArray:
        """Put a result on the stack of its arm. Returns its distance from the origin."""
        if self._origin is None:
            self._origin = value
        x = value - self._origin
        if np.abs(x).max() > FAR:
            raise ValueError(f"the reference takes values within {FAR:g} of the first one, got {value.tolist()}")
        self._sums[arm].append(self._sums[arm][-1] + x)
        return np.asarray(x)

    def count(self, arm: int) -> int:
        """N_m."""
        return len(self._sums[arm]) - 1

    def prefix(self, arm: int, n: int) -> FloatArray:
        """The sum of the arm's first n results."""
        return self._sums[arm][n]

    def mean(self, arm: int) -> FloatArray:
        """The mean of the arm's results: their sum times 1/N_m."""
        return self._sums[arm][-1] * (1.0 / self.count(arm))

    @property
    def pulls(self) -> IntArray:
        """N_m of all arms."""
        return np.array([self.count(arm) for arm in range(len(self._sums))])

    @property
    def means(self) -> FloatArray:
        """The means of all arms."""
        return np.array([self.mean(arm) for arm in range(len(self._sums))])


def grid_floor(n: int) -> int:
    """The largest count up to n that the pairs read: all up to P, then P·2^j + i·8·2^j (section 2)."""
    low, step = rule.ALL_PREFIXES_UP_TO, rule.GRID_STEP
    if n <= low:
        return n
    while 2 * low <= n:
        low, step = 2 * low, 2 * step
    return low + (n - low) // step * step


def pair_evidence(stacks: Stacks, i: int, j: int) -> float:
    """The largest of log w + log M_n over block ratios and sides, at the present counts (section 2)."""
    counts, energies, weights = [], [], []
    for a, b, first in ((i, j, 0), (j, i, 1)):  # with one result against one there is only one side
        for ratio, weight in list(zip(rule.BLOCK_RATIOS, rule.RATIO_WEIGHTS, strict=True))[first:]:
            n = grid_floor(min(stacks.count(a), stacks.count(b) // ratio) * ratio) // ratio
            if n > 0:
                gap = stacks.prefix(a, n) * (1.0 / n) - stacks.prefix(b, n * ratio) * (1.0 / (n * ratio))
                counts.append(n)
                energies.append(float(squared(gap)) * (n * ratio / (ratio + 1.0)))  # n‖Ȳ‖²/v with v = 1 + 1/R
                weights.append(weight)
    growth = np.array(counts)[:, None] * rule.SCALES
    dim = stacks.prefix(i, 0).size
    logs = np.log(rule.SCALE_WEIGHTS) - 0.5 * dim * np.log1p(growth)
    logs = logs + 0.5 * growth / (1.0 + growth) * np.array(energies)[:, None]
    top = logs.max(axis=1)
    mixtures = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))  # log M_n
    return float((mixtures + np.log(weights)).max())


class Pairs:
    """Evidence of every arm against the *lead* (representative) of every group, latched: the largest that was read."""

    def __init__(self, stacks: Stacks, n_arms: int, n_groups: int, level: float) -> None:
        self._stacks, self.level = stacks, level
        self.leads = [-1] * n_groups
        self.evidence = np.full((n_arms, n_groups), -math.inf)
        self.settled = np.zeros((n_arms, n_groups), dtype=bool)

    def read(self, m: int, k: int) -> None:
        """Evaluate arm m against the lead of group k; a settled pair stays settled."""
        if not self.settled[m, k]:
            self.evidence[m, k] = max(self.evidence[m, k], pair_evidence(self._stacks, m, self.leads[k]))
            self.settled[m, k] = self.evidence[m, k] >= self.level

    def read_arm(self, m: int, labels: IntArray) -> None:
        """Evaluate arm m against the leads of all groups but its own."""
        for k in range(len(self.leads)):
            if k != labels[m]:
                self.read(m, k)

    def read_lead(self, k: int, labels: IntArray) -> None:
        """Evaluate the arms of all other groups against the lead of group k."""
        for m in np.flatnonzero(labels != k):
            self.read(int(m), k)

    def replace_lead(self, k: int, arm: int, labels: IntArray) -> None:
        """Another lead for group k: its pairs begin anew."""
        self.leads[k] = arm
        self.evidence[:, k], self.settled[:, k] = -math.inf, False
        self.read_lead(k, labels)

    def unsettled(self, m: int, labels: IntArray) -> list[int]:
        """The groups, other than its own, whose leads arm m is not known to differ from."""
        return [k for k in range(len(self.leads)) if k != labels[m] and not self.settled[m, k]]
