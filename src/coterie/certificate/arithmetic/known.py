"""Noise that is known: sums of results, and the evidence of pairs from the start and of frozen tests (docs/CROC.md).

A mean 1e12 standard deviations from zero leaves a float 4 digits of the noise; a sum of a million such leaves none. So
a coordinate is taken as `whole` steps, which are integers and add up exactly, and a `rest` of at most half a step. A
step is a power of two, about 32 standard deviations: to cut a float into both rounds nothing. Differences of means are
formed from whole steps first, exactly, and put into units of the noise last (that map is linear).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.certificate.arithmetic.bets import Bet
from coterie.certificate.freezes import Freeze
from coterie.certificate.reading import Log
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.noise import Noise

if TYPE_CHECKING:
    from coterie.certificate.arithmetic.cells import CellPairs

LARGEST = 1e12
"""The largest result, in standard deviations from zero: of those beyond, a float does not resolve the noise."""

_STEP = 32.0
_MOST_STEPS = 2**62  # no sum may leave the integers of 64 bits

_RATIOS = ((1, 0.4), (2, 0.1), (4, 0.1), (8, 0.1))  # R and its weight, for each side if R > 1
SCALES = 64.0 / 4.0 ** np.arange(11)  # ρ
WEIGHTS = np.concatenate([[0.08, 0.19, 0.25, 0.25, 0.12], 0.055 / 2.0 ** np.arange(6)])
_CHUNK = 2**22
"""Numbers that are worked on at once."""


class Sums(NamedTuple):
    """Sums of results, one a row: of how many, their whole steps, and what is left."""

    counts: IntArray  # (n)
    whole: IntArray  # (n, d)
    rest: FloatArray  # (n, d)

    def rows(self, which: IntArray | slice) -> Sums:
        """These rows."""
        return Sums(self.counts[which], self.whole[which], self.rest[which])

    def pooled(self, groups: IntArray, n_groups: int) -> Sums:
        """One row for each group: the sum of its rows."""
        shape = (n_groups, self.whole.shape[1])
        pools = Sums(np.zeros(n_groups, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros(shape))
        for pool, own in zip(pools, self, strict=True):
            np.add.at(pool, groups, own)
        return pools

    def without(self, part: Sums) -> Sums:
        """What is left of each row when a part of it is taken out."""
        return Sums(self.counts - part.counts, self.whole - part.whole, self.rest - part.rest)


class Units:
    """The steps that suit a noise, and the way from them to units of the noise."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        plain = None if noise.is_identity else np.array(noise.to_json(), dtype=np.float64)
        if plain is not None and plain.ndim == 2:
            # Of a coordinate what counts is the largest trace that it leaves in units of the noise.
            trace = np.abs(noise.whiten(np.eye(noise.dim))).max(axis=1)
            self._power: IntArray = -np.frexp(trace)[1].astype(np.int64)
            self._map: FloatArray = noise.whiten(np.diag(np.ldexp(1.0, self._power)))
        else:
            deviations = np.broadcast_to(1.0 if plain is None else plain, noise.dim)
            self._power = np.frexp(deviations)[1].astype(np.int64) - 1
            self._map = noise.whiten(np.ldexp(1.0, self._power))

    def results(self, values: FloatArray) -> Sums:
        """Results (t, d) in the user's units, each a sum of one. ValueError names one that is too far from zero."""
        far = ~(np.abs(self._noise.whiten(values)) <= LARGEST)  # also where that is not a number
        if far.any():
            row = int(np.argmax(far.any(axis=1)))
            raise ValueError(
                f"result {row + 1} of the log, {short(values[row].tolist())}, lies more than {LARGEST:g} standard "
                "deviations from zero: a float does not resolve the noise there; measure from an origin that is closer"
            )
        scaled = np.ldexp(values, -self._power) / _STEP
        steps = np.rint(scaled)
        if not float(np.abs(steps).max(initial=0.0)) * len(values) < _MOST_STEPS:
            raise ValueError(
                f"{len(values)} results, up to {np.abs(scaled).max() * _STEP:.3g} of the noise's smallest standard "
                "deviations from zero, cannot be added up without rounding: measure from an origin that is closer"
            )
        rest = (scaled - steps) * _STEP  # nothing is rounded here
        return Sums(np.ones(len(values), dtype=np.int64), steps.astype(np.int64), rest)

    def gap(self, first: Sums, second: Sums) -> FloatArray:
        """The mean of each row of `first` minus that of `second`, in units of the noise; no row may be of nothing."""
        n_first, n_second = first.counts[:, None], second.counts[:, None]
        (steps, left), (its_steps, its_left) = np.divmod(first.whole, n_first), np.divmod(second.whole, n_second)
        near = (left / n_first - its_left / n_second) * _STEP + (first.rest / n_first - second.rest / n_second)
        far = (steps - its_steps) * _STEP + near
        return np.asarray(far @ self._map if self._map.ndim == 2 else far * self._map)


@dataclass(frozen=True)
class Round:
    """A round: the arms that it pulls (ascending), and the sums of their results; no rows if it is not complete."""

    number: int
    arms: IntArray
    sums: Sums


@dataclass(frozen=True)
class Record:
    """The results of a log under a known noise, and its rounds."""

    units: Units
    arms: IntArray  # (t)
    results: Sums  # t rows, each of one result
    rounds: tuple[Round, ...] = ()


def record_of(log: Log, noise: Noise) -> Record:
    """The sums of what a log has; ValueError names a result that is too far from zero."""
    units = Units(noise)
    results = units.results(log.values)
    rounds = []
    for composed in log.rounds:
        arms, place = np.unique(log.arms[composed.rows], return_inverse=True)
        sums = results.rows(composed.rows).pooled(place, arms.size)
        rounds.append(Round(composed.number, arms, sums))
    return Record(units, log.arms, results, tuple(rounds))


def grid_of(room: int, height: int) -> IntArray:
    """The counts n, up to `height`, at which pairs read the sum of an arm's first n results.

    They are 1, …, P, and P·2^j·(1 + i/S) for j = 0, 1, … and i = 0, …, S−1, where S = P/8.
    """
    near = np.arange(1, min(room, height) + 1, dtype=np.int64)
    parts, base = [near], np.arange(room, 2 * room, 8, dtype=np.int64)
    while base[0] <= height:
        parts.append(base[(base <= height) & (base > room)])
        base = 2 * base
    return np.concatenate(parts)


class Stacks:
    """The sums of the first n results of every arm, for n on the grid."""

    def __init__(self, record: Record, n_arms: int, room: int) -> None:
        self.units: Units = record.units
        self.dim: int = record.results.rest.shape[1]
        self.heights: IntArray = np.bincount(record.arms, minlength=n_arms).astype(np.int64)
        self._grid = grid_of(room, int(self.heights.max()))
        growth = self._grid[:, None] * SCALES
        self._price: FloatArray = np.log(WEIGHTS) - self.dim / 2.0 * np.log(1.0 + growth)
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

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The evidence of pairs of arms at the counts of all results."""
        return paired(self, first, second, self.heights[first], self.heights[second])

    def first(self, arms: IntArray, counts: IntArray) -> Sums:
        """The sums of the first `counts` results of each of these arms, counts on the grid that the arms have."""
        return self._sums.rows(self._start[arms] + np.searchsorted(self._grid, counts))


def paired(stacks: Stacks, first: IntArray, second: IntArray, n_first: IntArray, n_second: IntArray) -> FloatArray:
    """The evidence from the start of pairs of arms at these counts, which the log must hold; −inf for counts of 0."""
    best = np.full(first.size, -np.inf)
    chunk = max(1, _CHUNK // max(stacks.dim, SCALES.size))
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
    freeze: Freeze,
    rounds: Sequence[Round],
    pools: str,
    arms: IntArray,
    others: IntArray,
    last: IntArray,
    stated: Bet | None = None,
) -> FloatArray:
    """The evidence of frozen tests, each after the round `last`: arms against whole groups, against cores, or arms.

    `pools` is "group", "core" or "arm" and says what `others` counts; `rounds` are those that may be used, all of them
    complete. nan where a group had no result at the freeze. `stated`: in blocks, what the freeze says of its centers.
    """
    labels, n_groups = freeze.labels, len(freeze.cores)
    own, other = labels[arms], (labels[others] if pools == "arm" else others)
    if stated is None:
        before = slice(0, freeze.at)
        center = record.results.rows(before).pooled(labels[record.arms[before]], n_groups)  # W and Û
        theta = record.units.gap(center.rows(own), center.rows(other))
        spread = 1.0 / center.counts[own] + 1.0 / center.counts[other]
    else:
        theta = stated.parts["U"][own] - stated.parts["U"][other]
        spread = stated.parts["τ²"][own, other]
    in_core = freeze.in_core

    weight, total = np.zeros(arms.size), np.zeros(theta.shape)
    for composed in rounds:
        row = np.full(labels.size, -1)  # of an arm, or of its pool, in the sums of the round
        row[composed.arms] = np.arange(composed.arms.size)
        pool, pool_row = composed.sums, row
        if pools != "arm":
            chosen = np.flatnonzero(in_core[composed.arms]) if pools == "core" else np.arange(composed.arms.size)
            pool = composed.sums.rows(chosen).pooled(labels[composed.arms[chosen]], n_groups)
            pool_row = np.where(pool.counts > 0, np.arange(n_groups), -1)
        use = np.flatnonzero((last >= composed.number) & (row[arms] >= 0) & (pool_row[others] >= 0))
        of_arm, of_pool = composed.sums.rows(row[arms[use]]), pool.rows(pool_row[others[use]])
        precision = 1.0 / (1.0 / of_arm.counts + 1.0 / of_pool.counts)  # 1/v
        weight[use] += precision
        total[use] += record.units.gap(of_arm, of_pool) * precision[:, None]

    growth = 1.0 + weight * spread
    fit = 2.0 * np.einsum("id,id->i", theta, total) + spread * np.einsum("id,id->i", total, total)
    fit -= weight * np.einsum("id,id->i", theta, theta)
    value: FloatArray = fit / (2.0 * growth) - theta.shape[1] / 2.0 * np.log(growth)
    return value


# What in a log speaks against a certificate, whether or not its own tests are met.
#
# Two arms are *known to differ* when their pair from the start reaches the level log(H/(αδ)), at the counts of the
# first t results or at counts that the certificate states. K + 1 arms that are pairwise known to differ refute K. To
# find a largest such set is hard in general; refuting_arms looks at
#
# 1. the K representatives together with any one arm, and
# 2. sets that grow from one arm: the next is the arm whose smallest evidence against those chosen is largest. They
# start from the representatives, those with the most results first: at most 8 of them, and as many as 2^21 evidences
# allow, but at least one.
#
# So a log in which nothing is found may still refute K; one in which something is found does.


_MOST_STARTS, _MOST_EVIDENCES = 8, 2**21


class Differences:
    """Evidence that arms differ: at the counts of all results, or at stated counts where that is larger."""

    def __init__(self, stacks: Stacks | CellPairs, stated: list[tuple[IntArray, IntArray, FloatArray]]) -> None:
        self.stacks = stacks
        # each stated pair from both of its sides, in the order of the first arm
        first = np.concatenate([np.empty(0, dtype=np.int64), *(arm for a, b, _ in stated for arm in (a, b))])
        second = np.concatenate([np.empty(0, dtype=np.int64), *(arm for a, b, _ in stated for arm in (b, a))])
        evidence = np.concatenate([np.empty(0), *(value for _, _, value in stated for _ in range(2))])
        order = np.argsort(first, kind="stable")
        self.stated = first[order], second[order], evidence[order]

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The evidence of pairs of arms at the counts of all results, or by all cells."""
        return self.stacks.between(first, second)

    def against(self, arm: int, others: IntArray) -> FloatArray:
        """The evidence of other arms (ascending) against this one; −inf for itself."""
        evidence = self.between(others, np.full(others.size, arm))
        of_arm = slice(*np.searchsorted(self.stated[0], [arm, arm + 1]))
        stated, its_evidence = self.stated[1][of_arm], self.stated[2][of_arm]
        place = np.searchsorted(others, stated)
        here = np.isin(stated, others)
        np.fmax.at(evidence, place[here], its_evidence[here])
        evidence[others == arm] = -np.inf
        return evidence


def differing_mates(differences: Differences, labels: IntArray, representatives: IntArray, level: float) -> IntArray:
    """(n, 2): arms of one group that are known to differ: with its representative, or stated in the certificate."""
    leads = representatives[labels]
    arms = np.flatnonzero(leads != np.arange(labels.size))
    arms = arms[differences.between(arms, leads[arms]) >= level]
    first, second, evidence = differences.stated
    mates = (labels[first] == labels[second]) & (first != second) & (evidence >= level)
    pairs = np.concatenate([np.stack([arms, leads[arms]], axis=1), np.stack([first[mates], second[mates]], axis=1)])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def pairwise_known(differences: Differences, arms: IntArray, level: float) -> bool:
    """Whether these arms (ascending) are pairwise known to differ."""
    return all(bool((differences.against(arm, arms[arms < arm]) >= level).all()) for arm in arms.tolist())


def refuting_arms(
    differences: Differences, representatives: IntArray, mates: IntArray, level: float
) -> IntArray | None:
    """K + 1 arms that are pairwise known to differ, if the search above finds them.

    `mates`: the pairs of `differing_mates`. An arm in none of them does not differ from all representatives.
    """
    misplaced = np.setdiff1d(mates, representatives)
    if misplaced.size and pairwise_known(differences, np.sort(representatives), level):
        for lead in representatives.tolist():
            misplaced = misplaced[differences.against(lead, misplaced) >= level]
        if misplaced.size:
            return np.sort(np.append(representatives, misplaced[0]))
    arms = differences.stacks.heights.size
    allowed = max(1, min(_MOST_STARTS, _MOST_EVIDENCES // (arms * representatives.size)))
    order = np.argsort(-differences.stacks.heights[representatives], kind="stable")
    for start in representatives[order][:allowed].tolist():
        chosen = _grown(differences, start, representatives.size + 1, level)
        if chosen.size > representatives.size:
            return np.sort(chosen)
    return None


def _grown(differences: Differences, start: int, wanted: int, level: float) -> IntArray:
    """Arms that are pairwise known to differ, at most so many, from this one on."""
    chosen, left = [start], np.arange(differences.stacks.heights.size)
    smallest = np.full(left.size, np.inf)
    while len(chosen) < wanted:
        smallest = np.fmin(smallest, differences.against(chosen[-1], left))
        left, smallest = left[smallest >= level], smallest[smallest >= level]
        if not left.size:
            break
        chosen.append(int(left[np.argmax(smallest)]))
    return np.array(chosen)
