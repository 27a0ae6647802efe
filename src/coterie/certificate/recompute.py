"""The evidence of a certificate, from the log: plain NumPy, written a second time so that no mistake is shared.

Formulas: docs/CROC.md. The functions work on many tests at once; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.certificate.log import Frozen, Record, Round
from coterie.problem.checks import FloatArray, IntArray

_RATIOS = ((1, 0.4), (2, 0.1), (4, 0.1), (8, 0.1))  # R and its weight, for each side if R > 1
_SCALES = 64.0 / 4.0 ** np.arange(11)  # ρ
_WEIGHTS = np.concatenate([[0.08, 0.19, 0.25, 0.25, 0.12], 0.055 / 2.0 ** np.arange(6)])
_CHUNK = 2**16


class Stacks:
    """The sums of the first 1, 2, …, P results of every arm."""

    def __init__(self, record: Record, n_arms: int, room: int) -> None:
        self.heights: IntArray = np.bincount(record.arms, minlength=n_arms).astype(np.int64)
        self.kept: IntArray = np.minimum(self.heights, room)
        self._start: IntArray = np.concatenate([[0], np.cumsum(self.kept)[:-1]])
        by_arm = np.argsort(record.arms, kind="stable")  # stable: results of an arm stay in their order
        position = np.arange(record.arms.size) - np.repeat(np.cumsum(self.heights) - self.heights, self.heights)
        self._sums: FloatArray = record.values[by_arm[position < room]]
        for step in range(1, int(self.kept.max(initial=0))):
            here = self._start[self.kept > step] + step
            self._sums[here] += self._sums[here - 1]

    def mean(self, arms: IntArray, counts: IntArray) -> FloatArray:
        """The mean of the first `counts` results of each of these arms, at least one of each."""
        first: FloatArray = self._sums[self._start[arms] + counts - 1] / counts[:, None]
        return first


def paired(stacks: Stacks, first: IntArray, second: IntArray, n_first: IntArray, n_second: IntArray) -> FloatArray:
    """The evidence from the start of pairs of arms at these counts, which the log must hold."""
    parts = []
    for low in range(0, first.size, _CHUNK):
        part = slice(low, low + _CHUNK)
        a, b = first[part], second[part]
        n_a, n_b = np.minimum(n_first[part], stacks.kept[a]), np.minimum(n_second[part], stacks.kept[b])
        best = np.full(a.size, -np.inf)
        for ratio, weight in _RATIOS:
            _raise(best, stacks, a, b, n_a, n_b, ratio, weight)
            if ratio > 1:
                _raise(best, stacks, b, a, n_b, n_a, ratio, weight)
        parts.append(best)
    return np.concatenate(parts) if parts else np.empty(0)


def _raise(
    best: FloatArray, stacks: Stacks, a: IntArray, b: IntArray, n_a: IntArray, n_b: IntArray, ratio: int, weight: float
) -> None:
    """INOUT best: the larger of it and the evidence of one result of a against the mean of `ratio` results of b."""
    n = np.minimum(n_a, n_b // ratio)
    some = np.flatnonzero(n > 0)
    n, a, b = n[some], a[some], b[some]
    gap = stacks.mean(a, n) - stacks.mean(b, n * ratio)
    energy = n / (1.0 + 1.0 / ratio) * np.einsum("id,id->i", gap, gap)
    growth = n[:, None] * _SCALES
    exponents = np.log(_WEIGHTS) - gap.shape[1] / 2.0 * np.log(1.0 + growth)
    exponents += growth / (1.0 + growth) * energy[:, None] / 2.0
    best[some] = np.fmax(best[some], np.log(weight) + np.logaddexp.reduce(exponents, axis=1))


def directed(
    record: Record,
    freeze: Frozen,
    rounds: Sequence[Round],
    pools: str,
    arms: IntArray,
    others: IntArray,
    last: IntArray,
) -> FloatArray:
    """The evidence of frozen tests, each after the round `last`: arms against whole groups, against cores, or arms.

    `pools` is "group", "core" or "arm" and says what `others` counts. nan where a group had no result at the freeze.
    """
    labels, dim = freeze.labels, record.values.shape[1]
    n_groups = len(freeze.cores)
    groups = labels[record.arms[: freeze.at]]
    size = np.bincount(groups, minlength=n_groups).astype(np.float64)  # W
    center = _sum_by(groups, record.values[: freeze.at], n_groups) / size[:, None]  # Û
    own, other = labels[arms], (labels[others] if pools == "arm" else others)
    theta = center[own] - center[other]
    spread = 1.0 / size[own] + 1.0 / size[other]
    in_core = np.zeros(labels.size, dtype=bool)
    in_core[[arm for core in freeze.cores for arm in core]] = True

    weight, total = np.zeros(arms.size), np.zeros((arms.size, dim))
    for one in rounds:
        count, sums = np.zeros(labels.size), np.zeros((labels.size, dim))
        count[one.arms], sums[one.arms] = one.counts, one.sums
        pool_count, pool_sums = count, sums
        if pools != "arm":
            chosen = in_core[one.arms] if pools == "core" else np.ones(one.arms.size, dtype=bool)
            group = labels[one.arms[chosen]]
            pool_count = np.zeros(n_groups)
            np.add.at(pool_count, group, one.counts[chosen])
            pool_sums = _sum_by(group, one.sums[chosen], n_groups)
        use = np.flatnonzero((last >= one.number) & (count[arms] > 0) & (pool_count[others] > 0))
        a, b = arms[use], others[use]
        precision = 1.0 / (1.0 / count[a] + 1.0 / pool_count[b])  # 1/v
        contrast = sums[a] / count[a][:, None] - pool_sums[b] / pool_count[b][:, None]
        weight[use] += precision
        total[use] += contrast * precision[:, None]

    growth = 1.0 + weight * spread
    fit = 2.0 * np.einsum("id,id->i", theta, total) + spread * np.einsum("id,id->i", total, total)
    fit -= weight * np.einsum("id,id->i", theta, theta)
    value: FloatArray = fit / (2.0 * growth) - dim / 2.0 * np.log(growth)
    return value


def _sum_by(groups: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    sums = np.zeros((n_groups, values.shape[1]))
    np.add.at(sums, groups, values)
    return sums
