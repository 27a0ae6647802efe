"""Evidence from the order of results, whatever the noise: that they drift, go with lateness, or depend on one another.

*Drift and lateness* (`order_evidence`). Take the results of an item in their order, and let R_s be the rank of the s-th
among the first s. If the results are exchangeable, R_1, R_2, … are independent and uniform, whatever the noise, so
scores z_s = (2R_s − s − 1)/s have mean 0 given the earlier ranks, and for any numbers c_s in [−1, 1] that have nothing
to do with the values,

    E(s) = Π_{i ≤ s} (1 + λ·c_i·z_i),    0 < |λ| < 1,

is a martingale that starts at 1. With c = 1 it grows if results drift: late ones lie above or below early ones. With c
large where a result was late it grows if lateness goes with the values.

*How many results an item gets depends on their values*, so the product of these martingales over items means nothing:
an item that began low and is measured again for that reason goes up. Each martingale alone is another matter: its
supremum over all results that the item would ever give, E*, has P(E* ≥ y) ≤ 1/y (Ville), and what is seen is at most
that, however it was decided when to measure what. Hence, for 0 < κ < 1, E[κ·(E*)^(1−κ)] ≤ 1, and the products

    Π_m κ·(E*_m)^(1−κ)    over all items

are evidence that holds at all times at once, for any rule of sampling and stopping, if the items' results are
independent of one another. Their mean over κ, λ and the numbers of a result is the *joint* evidence (level a/2). Beside
it stands that of single items, which has to reach 2Md/a, since each of the d numbers of a result is looked at for
itself: the mean of E over λ and, for drift, over bets that win more where one item drifts by much. These are
Π s·f_s(R_s), with probabilities f_s of ranks that expect the next result higher, or lower, by some θ than the earlier
ones (`rank_factors`): martingales by the same argument.

*Dependence* (`dependence_evidence`). With R_s from 0, again independent and uniform if an item's results are
independent with one distribution, and any probabilities f_s(k) that follow from R_1, …, R_{s−1} alone,

    E(s) = Π_{i ≤ s} i·f_i(R_i)

is a martingale that starts at 1. Here f puts the next result near the last: with u = (R_{s−1} + ½)/(s − 1), the place
of the last one, and L the logistic distribution, f_s(k) is the mass of ρ·L⁻¹(u) + τ·L between the quantiles k/s and
(k+1)/s of L. The mean over some (ρ, τ) is a martingale too.

As above, products over items mean nothing, but what is seen of one item is at most the supremum E* over all results
that it would ever give, so log E* is at most an exponential variable in distribution. Items are independent, hence Σ_m
log E*_m is at most a Gamma(M, 1) variable: the *joint* evidence is minus the log of the tail of that (Fisher). Beside
it stands the largest log E* of a *single* item, M times. Each number of a result is looked at for itself, and pays for
their number. All of this holds at all times at once, for any rule of sampling and stopping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray, IntArray

_SHORT = 8
"""Entries of a group up to which each is compared with each."""

LEVEL = 0.01
"""How often, at most, an alarm is raised for nothing."""

STAKES = np.array([-0.9, -0.5, -0.25, 0.25, 0.5, 0.9])
"""λ."""

SHIFTS = (-4.0, -2.0, -1.0, 1.0, 2.0, 4.0)
"""θ."""

SHARES = np.array([0.97, 0.9, 0.75, 0.5])
"""κ: near 1 where few of many items speak up, small where all of them do."""

MOST_COLUMNS = 16
"""Of results of more numbers, so many are looked at, evenly spaced."""

_LEAST_ROOM, _ALL_ROOM = 32, 2**14

BETS = ((0.4, 0.9), (0.7, 0.9), (0.7, 1.2), (0.85, 0.6))
"""(ρ, τ)."""

_LEAST_FIRST, _ALL_FIRST = 64, 2**15


def stretches(groups: IntArray) -> tuple[IntArray, IntArray]:
    """Where each stretch of equal neighbours begins, and how long it is."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return starts, np.diff(starts, append=groups.size)


def places(groups: IntArray) -> IntArray:
    """The place of every entry among those of its group, from 0."""
    order = np.argsort(groups, kind="stable")
    place = np.empty(groups.size, dtype=np.int64)
    place[order] = np.arange(order.size) - np.repeat(*stretches(groups[order]))
    return place


def repeats(groups: IntArray) -> IntArray:
    """The entries whose group has another one: of a million items most may have been measured once."""
    return np.flatnonzero(np.bincount(groups, minlength=1)[groups] > 1)


def fixed_noise(first: IntArray, second: IntArray) -> NDArray[np.uint64]:
    """A number for every (first, second) that looks random and is always the same (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = first.astype(np.uint64) * np.uint64(0xD1342543DE82EF95) + second.astype(np.uint64)
        x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def ranks_among_earlier(groups: IntArray, values: FloatArray) -> IntArray:
    """How many earlier entries of its group lie below each entry, which is so many from 0 to its place.

    `groups` (n) are numbers from 0 on, `values` (n) in the order of the results. Equal values are put in an order that
    looks random and is always the same. If the results of a group are exchangeable, these ranks are independent, and
    each is uniform. O(n·log²n): blocks of 1, 2, 4, … entries are compared with their neighbours; in groups of a few,
    each with each.
    """
    place = places(groups)
    ranks = np.zeros(groups.size, dtype=np.int64)
    sizes = np.bincount(groups, minlength=1)
    noise = fixed_noise(groups, place)
    of_short = sizes[groups] <= _SHORT
    _rank_short(np.flatnonzero(of_short), groups, sizes, values, noise, ranks)
    rest = np.flatnonzero(~of_short)
    by_value = rest[np.lexsort((noise[rest], values[rest]))]
    width, longest = 1, int(place[rest].max(initial=-1)) + 1
    while width < longest:
        if width > 1:
            by_value = by_value[sizes[groups[by_value]] > width]
        placed = place[by_value]
        key = groups[by_value] * (longest // (2 * width) + 1) + placed // (2 * width)
        inner = np.argsort(key, kind="stable")
        left = (placed[inner] // width) % 2 == 0
        before = np.cumsum(left)
        starts, lengths = stretches(key[inner])
        base = np.repeat(before[starts] - left[starts], lengths)
        ranks[by_value[inner]] += np.where(left, 0, before - base)
        width *= 2
    return ranks


def _rank_short(
    entries: IntArray, groups: IntArray, sizes: IntArray, values: FloatArray, noise: NDArray[np.uint64], ranks: IntArray
) -> None:
    """The ranks of these entries, of groups of a few: those of as many at once. `ranks`: OUT."""
    order = entries[np.argsort(groups[entries], kind="stable")]
    lengths = sizes[groups[order]]
    for length in np.unique(lengths[lengths > 1]).tolist():
        own = order[lengths == length].reshape(-1, length)  # (groups, entries)
        x, y = values[own], noise[own]
        for s in range(1, length):
            now, before = x[:, s, None], x[:, :s]
            below = (before < now) | ((before == now) & (y[:, :s] <= y[:, s, None]))
            ranks[own[:, s]] = below.sum(axis=1)


def rank_factors(ranks: IntArray, place: IntArray, slope: float, width: float, shift: float = 0.0) -> FloatArray:
    """log s·f_s(R_s) of results at these places (from 0) of their items, one item after the other.

    f_s(k), of the rank of the s-th result, is the mass of `slope`·L⁻¹(u) + `shift` + `width`·L between the quantiles
    k/s and (k+1)/s of L, the logistic distribution; u is where the result before stands among those up to it.
    """
    count = place + 1.0
    before = np.concatenate([[0], ranks[:-1]])
    last = (before + 0.5) / np.maximum(place, 1)
    with np.errstate(divide="ignore"):
        at = np.where(place > 0, slope * (np.log(last) - np.log1p(-np.minimum(last, 1.0 - 1e-12))), 0.0) + shift
        low, high = (np.log(k) - np.log(count - k) for k in (ranks.astype(np.float64), ranks + 1.0))
    mass = _logistic((high - at) / width) - _logistic((low - at) / width)
    return np.where(place > 0, np.log(np.maximum(mass * count, 1e-12)), 0.0)


def _logistic(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


@dataclass(frozen=True)
class OrderEvidence:
    """`joint` and `single`: logs, and what they have to reach. `arm` is the item with the most evidence.

    `upwards`: whether late results (or later ones) lie higher; `column`: in which number of a result.
    """

    joint: float
    joint_threshold: float
    single: float
    single_threshold: float
    arm: int
    arm_column: int
    arm_upwards: bool
    column: int
    upwards: bool

    @property
    def of_one(self) -> bool:
        """Whether a single item speaks louder than all together."""
        return self.single - self.single_threshold > self.joint - self.joint_threshold

    @property
    def reached(self) -> bool:
        """Whether it is enough for an alarm."""
        return self.joint >= self.joint_threshold or self.single >= self.single_threshold


def thinned(arms: IntArray, n_arms: int) -> IntArray:
    """Which results are looked at: the first of an item, then every second, fourth, …: long runs cost little."""
    room = max(_LEAST_ROOM, _ALL_ROOM // n_arms)
    place = places(arms)
    apart = 2 ** np.maximum(np.ceil(np.log2((place + 1.0) / room)), 0.0).astype(np.int64)
    return np.flatnonzero((place + 1) % apart == 0)


def columns_looked_at(dim: int, most: int = MOST_COLUMNS) -> IntArray:
    """Which numbers of a result are looked at."""
    return np.unique(np.linspace(0, dim - 1, min(dim, most)).round().astype(np.int64))


def order_evidence(arms: IntArray, values: FloatArray, n_arms: int, weights: FloatArray | None = None) -> OrderEvidence:
    """The evidence of results (n, d) of these arms (n), in their order; `weights` (n) are the c_s, by default 1."""
    columns, repeated = columns_looked_at(values.shape[1]), repeats(arms)
    kept = repeated[thinned(arms[repeated], n_arms)]
    order = kept[np.argsort(arms[kept], kind="stable")]
    owners = arms[order]
    starts, lengths = stretches(owners)
    bets = np.ones(owners.size) if weights is None else weights[order]
    place = places(owners)
    joint = np.empty((columns.size, STAKES.size))
    single, arm, arm_column, arm_upwards = 0.0, 0, 0, True
    for i, column in enumerate(columns.tolist()):
        ranks = ranks_among_earlier(owners, values[order, column])
        score = (2.0 * ranks - place) / (place + 1.0) * bets
        courses = [_sums_within(np.log1p(stake * score), starts, lengths) for stake in STAKES.tolist()]
        for j, course in enumerate(courses):
            highest = np.maximum(np.maximum.reduceat(course, starts), 0.0) if starts.size else np.zeros(0)
            products = n_arms * np.log(SHARES) + (1.0 - SHARES) * highest.sum()
            joint[i, j] = np.logaddexp.reduce(products) - math.log(SHARES.size)
        signs = np.sign(STAKES)
        if weights is None:
            courses += [_sums_within(rank_factors(ranks, place, 0.0, 1.0, shift), starts, lengths) for shift in SHIFTS]
            signs = np.concatenate([signs, np.sign(SHIFTS)])
        total = np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))
        if owners.size and total.max() > single:
            best = int(np.argmax(total))
            single, arm, arm_column = float(total[best]), int(owners[best]), column
            arm_upwards = bool(signs[int(np.argmax([course[best] for course in courses]))] > 0.0)
    at, which = divmod(int(np.argmax(joint)), STAKES.size)
    return OrderEvidence(
        joint=float(np.logaddexp.reduce(joint, axis=None) - math.log(joint.size)),
        joint_threshold=math.log(2.0 / LEVEL),
        single=single,
        single_threshold=math.log(2.0 * n_arms * columns.size / LEVEL),
        arm=arm,
        arm_column=arm_column,
        arm_upwards=arm_upwards,
        column=int(columns[at]),
        upwards=bool(STAKES[which] > 0.0),
    )


def _sums_within(steps: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Sums so far within each stretch."""
    total = np.cumsum(steps)
    course: FloatArray = total - np.repeat(total[starts] - steps[starts], lengths)
    return course


def lateness_weights(arms: IntArray, late: FloatArray) -> FloatArray:
    """c_s for results (n) in their order: 1 for a late one, and minus the share of late ones so far for others."""
    order = np.argsort(arms, kind="stable")
    was_late = late[order]
    starts, lengths = stretches(arms[order])
    before = _sums_within(was_late, starts, lengths) - was_late
    count = np.arange(arms.size) - np.repeat(starts, lengths)
    weights = np.empty(arms.size)
    weights[order] = np.where(was_late > 0.0, 1.0, -before / np.maximum(count, 1))
    return weights


class DependenceEvidence(NamedTuple):
    """Logs: of the strongest kind of evidence, and what it has to reach. `arm`: the item with most of it; -1: all."""

    value: float
    threshold: float
    arm: int

    @property
    def reached(self) -> bool:
        """Whether it is enough for an alarm."""
        return self.value >= self.threshold


def dependence_evidence(arms: IntArray, values: FloatArray, n_arms: int) -> DependenceEvidence:
    """The evidence of results (n, d) of these arms (n), in their order; of an item at most so many of the first.

    Parameters
    ----------
    arms, values
        The items of the results, and the results.
    n_arms
        How many items there are, measured or not.
    """
    kept = repeats(arms)
    kept = kept[places(arms[kept]) < max(_LEAST_FIRST, _ALL_FIRST // n_arms)]
    order = kept[np.argsort(arms[kept], kind="stable")]
    if not order.size:
        return DependenceEvidence(0.0, math.inf, -1)
    owners, columns, share = arms[order], columns_looked_at(values.shape[1]), 0.5 * LEVEL
    kinds = []
    for column in columns.tolist():
        highest = _suprema(owners, values[order, column])
        top = int(np.argmax(highest))
        arm = int(owners[stretches(owners)[0][top]])
        kinds.append(DependenceEvidence(float(highest[top]), math.log(n_arms * columns.size / share), arm))
        joint = log_gamma_tail(n_arms, float(highest.sum()))
        kinds.append(DependenceEvidence(joint, math.log(columns.size / share), -1))
    return max(kinds, key=lambda kind: kind.value - kind.threshold)


def _suprema(owners: IntArray, values: FloatArray) -> FloatArray:
    """log E* of each item; `owners`, the items of the results, ascending."""
    ranks, place = ranks_among_earlier(owners, values), places(owners)
    starts, lengths = stretches(owners)
    logs = [_sums_within(rank_factors(ranks, place, *bet), starts, lengths) for bet in BETS]
    course = np.logaddexp.reduce(logs, axis=0)
    return np.asarray(np.maximum(np.maximum.reduceat(course, starts) - math.log(len(BETS)), 0.0))


def log_gamma_tail(shape: int, x: float) -> float:
    """−log P(G ≥ x) of a Gamma(shape, 1) variable, shape a whole number: Σ_{k < shape} x^k/k!·e^{−x}."""
    if x <= 0.0:
        return 0.0
    steps = np.concatenate([[0.0], np.log(x / np.arange(1.0, shape))])
    return max(0.0, x - float(np.logaddexp.reduce(np.cumsum(steps))))
