"""The misgrouping risk P_w: a rough probability that the estimate ĉ is wrong, only for deciding when to freeze.

Three ways to be wrong: an arm belongs to another group (D_mk small); two groups are one and a third is two (the cost of
merging k and l, C, is hardly above the gain of splitting h, G); two groups are one by chance. The *margin* of an arm is
its smallest D_mk: how much better it fits its group than the next best one. Nothing here enters the proof.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.splitting import SIZE_PRICE, cut_worth, log_ways, two_means
from coterie.engine.croc.state import (
    ARMS_RISK,
    CHANCE,
    CHANCE_A,
    CHANCE_B,
    MERGE_MARGIN,
    MERGED_A,
    MERGED_B,
    MISGROUPING_RISK,
    SPLIT,
    TOUCHED,
    Croc,
    Work,
)
from coterie.engine.vectors import squared_distance


@compiled
def _unlikely(margin: float) -> float:
    """About the probability of a reading that fits worse than the estimate by this log-likelihood."""
    if margin > 45.0:  # what is left out would not be seen in the sum
        return 0.0
    return math.exp(-margin) if margin > 0.0 else 1.0


@compiled
def _margin_of_arm(s: Croc, m: int) -> float:
    """D_mk of one arm. OUT: s.margin, s.rival, s.arm_risk. Returns twice what the arm costs where it is."""
    home, n = s.labels[m], s.pulls[m]
    s.margin[m], s.rival[m], s.arm_risk[m] = math.inf, home, 0.0
    if s.sizes[home] == 1:
        return 0.0
    own = squared_distance(s.means, m, s.centers, home) * n * s.totals[home] / (s.totals[home] - n)
    for k in range(s.totals.size):
        if k == home:
            continue
        away = squared_distance(s.means, m, s.centers, k) * n * s.totals[k] / (n + s.totals[k])
        margin = 0.5 * (away - own)
        if margin < s.margin[m]:
            s.margin[m], s.rival[m] = margin, k
        s.arm_risk[m] += _unlikely(margin)
    return float(own)


@compiled
def update_misgrouping_risk(s: Croc) -> float:
    """P_w, with the margins of the arms that have new results; all other parts of it stay as they were.

    INOUT: s.margin, s.rival, s.arm_risk of these arms; s.numbers[ARMS_RISK] and s.numbers[MISGROUPING_RISK].
    """
    before = s.numbers[ARMS_RISK]
    for i in range(s.ints[TOUCHED]):
        m = s.touched[i]
        s.numbers[ARMS_RISK] -= s.arm_risk[m]
        _margin_of_arm(s, m)
        s.numbers[ARMS_RISK] += s.arm_risk[m]
    s.numbers[MISGROUPING_RISK] += s.numbers[ARMS_RISK] - before
    return float(s.numbers[MISGROUPING_RISK])


@compiled
def misgrouping_risk(s: Croc, w: Work) -> float:
    """P_w. OUT: s.margin, s.rival, s.arm_risk, s.sizes; s.numbers and s.ints of the worst readings."""
    n_groups, d = s.centers.shape
    sizes, gain, share, farthest, worth = s.sizes, w.gain, w.share, w.farthest, w.worth
    for k in range(n_groups):
        sizes[k], gain[k], share[k], farthest[k], worth[k] = 0, 0.0, 1.0, -1, -math.inf
    for m in range(s.labels.size):
        sizes[s.labels[m]] += 1
    total = 0.0
    for m in range(s.labels.size):
        own, home = _margin_of_arm(s, m), s.labels[m]
        total += s.arm_risk[m]
        if own > gain[home]:
            gain[home], farthest[home] = own, m
            share[home] = s.pulls[m] * (s.totals[home] - s.pulls[m]) / s.totals[home]
    s.numbers[ARMS_RISK] = total
    for k in range(n_groups):
        if sizes[k] < 2:
            gain[k] = -math.inf
        elif farthest[k] >= 0:
            worth[k] = cut_worth(s.log_factorial, gain[k], 1, sizes[k] - 1, share[k], d)
            if sizes[k] == 2:
                continue
            size = 0
            for m in range(s.labels.size):
                if s.labels[m] == k:
                    w.members[size] = m
                    size += 1
            better, its_share, part = two_means(s.means, s.pulls, s.centers, s.totals, k, size, farthest[k], w)
            worth[k] = max(worth[k], cut_worth(s.log_factorial, better, part, size - part, its_share, d))
            if better > gain[k]:
                gain[k], share[k] = better, its_share
    s.numbers[MERGE_MARGIN] = math.inf
    s.numbers[CHANCE] = 0.0
    constant = math.lgamma(0.5 * d)
    for k in range(n_groups):
        for j in range(k):
            together = s.totals[k] * s.totals[j] / (s.totals[k] + s.totals[j])
            cost = squared_distance(s.centers, k, s.centers, j) * together
            # Could this split be chance? The number of splits times the tail of a chi-square with d degrees.
            n = float(sizes[k] + sizes[j])
            ways = SIZE_PRICE * log_ways(s.log_factorial, sizes[k], sizes[j])
            splits = max(min((n - 1.0) * math.log(2.0), d * math.log(n)), ways)
            tail = max(0.0, (0.5 * d - 1.0) * math.log(max(0.5 * cost, 1e-9))) - constant
            chance = math.exp(min(splits - 0.5 * cost + tail, 0.0))
            total += chance
            if chance > s.numbers[CHANCE]:
                s.numbers[CHANCE] = chance
                s.ints[CHANCE_A], s.ints[CHANCE_B] = k, j
            apart = cut_worth(s.log_factorial, cost, sizes[k], sizes[j], together, d)
            for h in range(n_groups):
                if h == k or h == j or gain[h] < 0.0:
                    continue
                # Both readings fit d free numbers: without (d/2)·log n for each, a spurious split of a well-measured
                # group hides a true one of a poorly measured group for ever. And a split by chance is the best of
                # many: the posterior counts them.
                margin = 0.5 * (cost - gain[h]) - 0.5 * d * max(0.0, math.log(together / share[h]))
                margin = max(margin, apart - worth[h])
                total += _unlikely(margin)
                if margin < s.numbers[MERGE_MARGIN]:
                    s.numbers[MERGE_MARGIN] = margin
                    s.ints[SPLIT], s.ints[MERGED_A], s.ints[MERGED_B] = h, k, j
    s.numbers[MISGROUPING_RISK] = total
    return total
