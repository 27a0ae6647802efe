"""The evidence of a certificate, from the log: plain NumPy, written a second time so that no mistake is shared.

Formulas: docs/CROC.md. The functions work on many tests at once; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.certificate.exact import Sums, Units
from coterie.certificate.log import Frozen, Record, Round
from coterie.problem.checks import FloatArray, IntArray

_RATIOS = ((1, 0.4), (2, 0.1), (4, 0.1), (8, 0.1))  # R and its weight, for each side if R > 1
_SCALES = 64.0 / 4.0 ** np.arange(11)  # ρ
_WEIGHTS = np.concatenate([[0.08, 0.19, 0.25, 0.25, 0.12], 0.055 / 2.0 ** np.arange(6)])
_CHUNK = 2**22
"""Numbers that are worked on at once."""


def grid_of(room: int, height: int, beyond: bool) -> IntArray:
    """The counts n, up to `height`, at which pairs read the sum of an arm's first n results: 1, …, P.

    With `beyond` (format 2) also P·2^j·(1 + i/S) for j = 0, 1, … and i = 0, …, S−1, where S = P/8.
    """
    near = np.arange(1, min(room, height) + 1, dtype=np.int64)
    if not beyond:
        return near
    parts, base = [near], np.arange(room, 2 * room, 8, dtype=np.int64)
    while base[0] <= height:
        parts.append(base[(base <= height) & (base > room)])
        base = 2 * base
    return np.concatenate(parts)


class Stacks:
    """The sums of the first n results of every arm, for n on the grid."""

    def __init__(self, record: Record, n_arms: int, room: int, beyond: bool) -> None:
        self.units: Units = record.units
        self.dim: int = record.results.rest.shape[1]
        self.heights: IntArray = np.bincount(record.arms, minlength=n_arms).astype(np.int64)
        self._grid = grid_of(room, int(self.heights.max()), beyond)
        growth = self._grid[:, None] * _SCALES
        self._price: FloatArray = np.log(_WEIGHTS) - self.dim / 2.0 * np.log(1.0 + growth)
        self._gain: FloatArray = growth / (1.0 + growth) / 2.0
        kept = np.searchsorted(self._grid, self.heights, side="right")  # how many sums of each arm
        self._start: IntArray = np.cumsum(kept) - kept
        by_arm = np.argsort(record.arms, kind="stable")  # stable: results of an arm stay in their order
        arms = record.arms[by_arm]
        place = np.arange(arms.size) - (np.cumsum(self.heights) - self.heights)[arms]
        piece = np.searchsorted(self._grid, place + 1)  # between which two counts of the grid
        used = piece < kept[arms]
        pieces = (self._start[arms] + piece)[used]
        self._sums: Sums = record.results.rows(by_arm[used]).pooled(pieces, int(kept.sum()))
        for step in range(1, int(kept.max())):
            here = self._start[kept > step] + step
            for sums in self._sums:
                sums[here] += sums[here - 1]

    def reach(self, n_first: IntArray, n_second: IntArray, ratio: int) -> IntArray:
        """How many results of the first arm can be read against `ratio` times as many of the second, on the grid."""
        most = np.minimum(n_first, n_second // ratio) * ratio
        place = np.searchsorted(self._grid, most, side="right")
        return np.where(place > 0, self._grid[place - 1] // ratio, 0)

    def mixture(self, counts: IntArray, energy: FloatArray) -> FloatArray:
        """log M_n of n = `counts`, on the grid, where the energy is n‖Ȳ_n‖²/v."""
        place = np.searchsorted(self._grid, counts)
        exponents = self._price[place] + self._gain[place] * energy[:, None]
        largest = exponents.max(axis=1)
        return np.asarray(largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))

    def first(self, arms: IntArray, counts: IntArray) -> Sums:
        """The sums of the first `counts` results of each of these arms, counts on the grid that the arms have."""
        return self._sums.rows(self._start[arms] + np.searchsorted(self._grid, counts))


def paired(stacks: Stacks, first: IntArray, second: IntArray, n_first: IntArray, n_second: IntArray) -> FloatArray:
    """The evidence from the start of pairs of arms at these counts, which the log must hold; −inf for counts of 0."""
    best = np.full(first.size, -np.inf)
    chunk = max(1, _CHUNK // max(stacks.dim, _SCALES.size))
    for low in range(0, first.size, chunk):
        part = slice(low, low + chunk)
        a, b, n_a, n_b = first[part], second[part], n_first[part], n_second[part]
        for ratio, weight in _RATIOS:
            _raise(best[part], stacks, a, b, stacks.reach(n_a, n_b, ratio), ratio, weight)
            if ratio > 1:
                _raise(best[part], stacks, b, a, stacks.reach(n_b, n_a, ratio), ratio, weight)
    return best


def _raise(best: FloatArray, stacks: Stacks, a: IntArray, b: IntArray, n: IntArray, ratio: int, weight: float) -> None:
    """INOUT best: the larger of it and the evidence of n results of a, each against the mean of `ratio` of b."""
    some = np.flatnonzero(n > 0)
    n, a, b = n[some], a[some], b[some]
    gap = stacks.units.gap(stacks.first(a, n), stacks.first(b, n * ratio))
    energy = n / (1.0 + 1.0 / ratio) * np.einsum("id,id->i", gap, gap)
    best[some] = np.fmax(best[some], np.log(weight) + stacks.mixture(n, energy))


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

    `pools` is "group", "core" or "arm" and says what `others` counts; `rounds` are those that may be used, all of them
    complete. nan where a group had no result at the freeze.
    """
    labels, n_groups = freeze.labels, len(freeze.cores)
    before = slice(0, freeze.at)
    center = record.results.rows(before).pooled(labels[record.arms[before]], n_groups)  # W and Û
    own, other = labels[arms], (labels[others] if pools == "arm" else others)
    theta = record.units.gap(center.rows(own), center.rows(other))
    spread = 1.0 / center.counts[own] + 1.0 / center.counts[other]
    in_core = np.zeros(labels.size, dtype=bool)
    in_core[[arm for core in freeze.cores for arm in core]] = True

    weight, total = np.zeros(arms.size), np.zeros(theta.shape)
    for one in rounds:
        row = np.full(labels.size, -1)  # of an arm, or of its pool, in the sums of the round
        row[one.arms] = np.arange(one.arms.size)
        pool, pool_row = one.sums, row
        if pools != "arm":
            chosen = np.flatnonzero(in_core[one.arms]) if pools == "core" else np.arange(one.arms.size)
            pool = one.sums.rows(chosen).pooled(labels[one.arms[chosen]], n_groups)
            pool_row = np.where(pool.counts > 0, np.arange(n_groups), -1)
        use = np.flatnonzero((last >= one.number) & (row[arms] >= 0) & (pool_row[others] >= 0))
        mine, its = one.sums.rows(row[arms[use]]), pool.rows(pool_row[others[use]])
        precision = 1.0 / (1.0 / mine.counts + 1.0 / its.counts)  # 1/v
        weight[use] += precision
        total[use] += record.units.gap(mine, its) * precision[:, None]

    growth = 1.0 + weight * spread
    fit = 2.0 * np.einsum("id,id->i", theta, total) + spread * np.einsum("id,id->i", total, total)
    fit -= weight * np.einsum("id,id->i", theta, theta)
    value: FloatArray = fit / (2.0 * growth) - theta.shape[1] / 2.0 * np.log(growth)
    return value
