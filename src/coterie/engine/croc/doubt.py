"""How doubtful is the estimate? P_w, a rough probability that ĉ is wrong: only for deciding when to freeze.

Three ways to be wrong: an arm belongs to another group (D_mk small); two groups are one and a third is two (the cost of
merging k and l, C, is hardly above the gain of splitting h, G); two groups are one by chance. Nothing here enters the
proof.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import (
    ARMS_DOUBT,
    CHANCE,
    CHANCE_A,
    CHANCE_B,
    DOUBT,
    MERGE_MARGIN,
    MERGED_A,
    MERGED_B,
    SPLIT,
    TOUCHED,
    Croc,
    Work,
)
from coterie.engine.state import Floats

SPLIT_PASSES = 6


@compiled
def _unlikely(margin: float) -> float:
    if margin > 45.0:  # what is left out would not be seen in the sum
        return 0.0
    return math.exp(-margin) if margin > 0.0 else 1.0


@compiled
def _gap_to_center(s: Croc, m: int, k: int) -> float:
    total = 0.0
    inverse = 1.0 / s.pulls[m]
    for q in range(s.sums.shape[1]):
        total += (s.sums[m, q] * inverse - s.centers[k, q]) ** 2
    return total


@compiled
def _centers_of_split(part: Floats, weight: float, s: Croc, k: int, w: Work) -> None:
    """OUT: w.mean and w.rest, the centers of a part of group k, given by its sum, and of the rest."""
    for q in range(part.size):
        w.mean[q] = part[q] / weight
        w.rest[q] = (s.centers[k, q] * s.totals[k] - part[q]) / (s.totals[k] - weight)


@compiled
def _best_split(s: Croc, w: Work, size: int, k: int, farthest: int) -> tuple[float, float]:
    """2-means of group k, the first `size` of w.members, from its farthest arm: gain of the split, W_a·W_b/W of it."""
    d = s.sums.shape[1]
    members, inside, part = w.members, w.inside, w.part
    weight, total = float(s.pulls[farthest]), s.totals[k]
    for q in range(d):
        part[q] = s.sums[farthest, q]
    for i in range(size):
        inside[i] = members[i] == farthest
    _centers_of_split(part, weight, s, k, w)
    for _ in range(SPLIT_PASSES):
        moved = False
        for i in range(size):
            m = members[i]
            n, rest = float(s.pulls[m]), total - weight
            if (inside[i] == 1 and weight <= n) or (inside[i] == 0 and rest <= n):
                continue
            to_part, to_rest = 0.0, 0.0
            inverse = 1.0 / n
            for q in range(d):
                x = s.sums[m, q] * inverse
                to_part += (x - w.mean[q]) ** 2
                to_rest += (x - w.rest[q]) ** 2
            if inside[i] == 1 and to_rest * rest / (rest + n) < to_part * weight / (weight - n):
                inside[i], sign = 0, -1.0
            elif inside[i] == 0 and to_part * weight / (weight + n) < to_rest * rest / (rest - n):
                inside[i], sign = 1, 1.0
            else:
                continue
            moved = True
            weight += sign * n
            for q in range(d):
                part[q] += sign * s.sums[m, q]
            _centers_of_split(part, weight, s, k, w)
        if not moved:
            break
    share = weight * (total - weight) / total
    gain = 0.0
    for q in range(d):
        gain += (w.mean[q] - w.rest[q]) ** 2
    return gain * share, share


@compiled
def _doubt_arm(s: Croc, m: int) -> float:
    """D_mk of one arm. OUT: s.near, s.rival, s.unsure. Returns what it costs where it is, times two."""
    home, n = s.labels[m], s.pulls[m]
    s.near[m], s.rival[m], s.unsure[m] = math.inf, home, 0.0
    if s.sizes[home] == 1:
        return 0.0
    own = _gap_to_center(s, m, home) * n * s.totals[home] / (s.totals[home] - n)
    for k in range(s.totals.size):
        if k == home:
            continue
        away = _gap_to_center(s, m, k) * n * s.totals[k] / (n + s.totals[k])
        doubt = 0.5 * (away - own)
        if doubt < s.near[m]:
            s.near[m], s.rival[m] = doubt, k
        s.unsure[m] += _unlikely(doubt)
    return float(own)


@compiled
def doubts_again(s: Croc) -> float:
    """P_w with the doubts of the arms that have new results; the others stay as they were. INOUT: as `doubts`."""
    before = s.numbers[ARMS_DOUBT]
    for i in range(s.ints[TOUCHED]):
        m = s.touched[i]
        s.numbers[ARMS_DOUBT] -= s.unsure[m]
        _doubt_arm(s, m)
        s.numbers[ARMS_DOUBT] += s.unsure[m]
    s.numbers[DOUBT] += s.numbers[ARMS_DOUBT] - before
    return float(s.numbers[DOUBT])


@compiled
def doubts(s: Croc, w: Work) -> float:
    """P_w. OUT: s.near, s.rival, s.unsure, s.sizes; s.numbers and s.places of the worst doubts."""
    n_groups, d = s.centers.shape
    sizes, gain, share, farthest = s.sizes, w.gain, w.share, w.farthest
    for k in range(n_groups):
        sizes[k], gain[k], share[k], farthest[k] = 0, 0.0, 1.0, -1
    for m in range(s.labels.size):
        sizes[s.labels[m]] += 1
    total = 0.0
    for m in range(s.labels.size):
        own, home = _doubt_arm(s, m), s.labels[m]
        total += s.unsure[m]
        if own > gain[home]:
            gain[home], farthest[home] = own, m
            share[home] = s.pulls[m] * (s.totals[home] - s.pulls[m]) / s.totals[home]
    s.numbers[ARMS_DOUBT] = total
    for k in range(n_groups):
        if sizes[k] < 2:
            gain[k] = -math.inf
        elif sizes[k] > 2 and farthest[k] >= 0:
            size = 0
            for m in range(s.labels.size):
                if s.labels[m] == k:
                    w.members[size] = m
                    size += 1
            better, its_share = _best_split(s, w, size, k, farthest[k])
            if better > gain[k]:
                gain[k], share[k] = better, its_share
    s.numbers[MERGE_MARGIN] = math.inf
    s.numbers[CHANCE] = 0.0
    for k in range(n_groups):
        for j in range(k):
            together = s.totals[k] * s.totals[j] / (s.totals[k] + s.totals[j])
            gap = 0.0
            for q in range(d):
                gap += (s.centers[k, q] - s.centers[j, q]) ** 2
            cost = gap * together
            # Could this split be chance? The number of splits times the tail of a chi-square with d degrees.
            n = float(sizes[k] + sizes[j])
            splits = min((n - 1.0) * math.log(2.0), d * math.log(n))
            tail = max(0.0, (0.5 * d - 1.0) * math.log(max(0.5 * cost, 1e-9))) - math.lgamma(0.5 * d)
            chance = math.exp(min(splits - 0.5 * cost + tail, 0.0))
            total += chance
            if chance > s.numbers[CHANCE]:
                s.numbers[CHANCE] = chance
                s.places[CHANCE_A], s.places[CHANCE_B] = k, j
            for h in range(n_groups):
                if h == k or h == j or gain[h] < 0.0:
                    continue
                # Both readings fit d free numbers: without (d/2)·log n for each, a spurious split of a well-measured
                # group hides a true one of a poorly measured group for ever.
                margin = 0.5 * (cost - gain[h]) - 0.5 * d * max(0.0, math.log(together / share[h]))
                total += _unlikely(margin)
                if margin < s.numbers[MERGE_MARGIN]:
                    s.numbers[MERGE_MARGIN] = margin
                    s.places[SPLIT], s.places[MERGED_A], s.places[MERGED_B] = h, k, j
    s.numbers[DOUBT] = total
    return total
