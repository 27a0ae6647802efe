"""Evidence that the results of items go with something that they should have nothing to do with.

Take the results of an item in their order, and let R_s be the rank of the s-th among the first s. If the results are
exchangeable, R_1, R_2, … are independent and uniform, whatever the noise, so scores z_s = (2R_s − s − 1)/s have mean 0
given the earlier ranks, and for any numbers c_s in [−1, 1] that have nothing to do with the values,

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.prefix_ranks import places, rank_factors, ranks_among_earlier, repeats

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


def columns_looked_at(dim: int) -> IntArray:
    """Which numbers of a result are looked at."""
    return np.unique(np.linspace(0, dim - 1, min(dim, MOST_COLUMNS)).round().astype(np.int64))


def order_evidence(
    arms: IntArray, values: FloatArray, n_arms: int, weights: FloatArray | None = None, level: float = LEVEL
) -> OrderEvidence:
    """The evidence of results (n, d) of these arms (n), in their order; `weights` (n) are the c_s, by default 1."""
    columns, repeated = columns_looked_at(values.shape[1]), repeats(arms)
    kept = repeated[thinned(arms[repeated], n_arms)]
    order = kept[np.argsort(arms[kept], kind="stable")]
    its = arms[order]
    starts = np.flatnonzero(np.diff(its, prepend=-1))
    lengths = np.diff(starts, append=its.size)
    bets = np.ones(its.size) if weights is None else weights[order]
    place = places(its)
    joint = np.empty((columns.size, STAKES.size))
    single, arm, arm_column, arm_upwards = 0.0, 0, 0, True
    for i, column in enumerate(columns.tolist()):
        ranks = ranks_among_earlier(its, values[order, column])
        score = (2.0 * ranks - place) / (place + 1.0) * bets
        courses = [_within(np.log1p(stake * score), starts, lengths) for stake in STAKES.tolist()]
        for j, course in enumerate(courses):
            highest = np.maximum(np.maximum.reduceat(course, starts), 0.0) if starts.size else np.zeros(0)
            products = n_arms * np.log(SHARES) + (1.0 - SHARES) * highest.sum()
            joint[i, j] = np.logaddexp.reduce(products) - math.log(SHARES.size)
        signs = np.sign(STAKES)
        if weights is None:
            courses += [_within(rank_factors(ranks, place, 0.0, 1.0, shift), starts, lengths) for shift in SHIFTS]
            signs = np.concatenate([signs, np.sign(SHIFTS)])
        total = np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))
        if its.size and total.max() > single:
            best = int(np.argmax(total))
            single, arm, arm_column = float(total[best]), int(its[best]), column
            arm_upwards = bool(signs[int(np.argmax([course[best] for course in courses]))] > 0.0)
    at, which = divmod(int(np.argmax(joint)), STAKES.size)
    return OrderEvidence(
        joint=float(np.logaddexp.reduce(joint, axis=None) - math.log(joint.size)),
        joint_threshold=math.log(2.0 / level),
        single=single,
        single_threshold=math.log(2.0 * n_arms * columns.size / level),
        arm=arm,
        arm_column=arm_column,
        arm_upwards=arm_upwards,
        column=int(columns[at]),
        upwards=bool(STAKES[which] > 0.0),
    )


def _within(steps: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Sums so far within each stretch."""
    total = np.cumsum(steps)
    course: FloatArray = total - np.repeat(total[starts] - steps[starts], lengths)
    return course


def lateness_weights(arms: IntArray, late: FloatArray) -> FloatArray:
    """c_s for results (n) in their order: 1 for a late one, and minus the share of late ones so far for others."""
    order = np.argsort(arms, kind="stable")
    its, was = arms[order], late[order]
    starts = np.flatnonzero(np.diff(its, prepend=-1))
    lengths = np.diff(starts, append=its.size)
    before = _within(was, starts, lengths) - was
    count = np.arange(its.size) - np.repeat(starts, lengths)
    found = np.empty(its.size)
    found[order] = np.where(was > 0.0, 1.0, -before / np.maximum(count, 1))
    return found
