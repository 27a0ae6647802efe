"""How doubtful is the estimate? P_w, a rough probability that ĉ is wrong: only for deciding when to freeze.

Three ways to be wrong: an arm belongs to another group (D_mk small); two groups are one and a third is two (the cost of
merging k and l, C, is hardly above the gain of splitting h, G); two groups are one by chance. Nothing here enters the
proof.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import (
    CHANCE,
    CHANCE_A,
    CHANCE_B,
    DOUBT,
    MERGE_MARGIN,
    MERGED_A,
    MERGED_B,
    SMALLEST_DOUBT,
    SPLIT,
    Croc,
    Work,
)
from coterie.engine.state import Floats, Ints

SPLIT_PASSES = 6


@compiled
def _unlikely(margin: float) -> float:
    return math.exp(-min(margin, 700.0)) if margin > 0.0 else 1.0


@compiled
def _gap_to_center(s: Croc, m: int, k: int) -> float:
    total = 0.0
    inverse = 1.0 / s.pulls[m]
    for q in range(s.sums.shape[1]):
        total += (s.sums[m, q] * inverse - s.centers[k, q]) ** 2
    return total


@compiled
def _best_split(s: Croc, w: Work, size: int, k: int, farthest: int) -> tuple[float, float]:
    """2-means of group k, the first `size` of w.members, from its farthest arm: gain of the split, W_a·W_b/W of it."""
    d = s.sums.shape[1]
    members, inside, part, whole = w.members, w.inside, w.part, w.mean
    weight, total = float(s.pulls[farthest]), s.totals[k]
    for q in range(d):
        part[q] = s.sums[farthest, q]
        whole[q] = s.centers[k, q] * total
    for i in range(size):
        inside[i] = members[i] == farthest
    for _ in range(SPLIT_PASSES):
        moved = False
        for i in range(size):
            m = members[i]
            n = float(s.pulls[m])
            if (inside[i] == 1 and weight <= n) or (inside[i] == 0 and total - weight <= n):
                continue
            to_part, to_rest = 0.0, 0.0
            for q in range(d):
                x = s.sums[m, q] / n
                to_part += (x - part[q] / weight) ** 2
                to_rest += (x - (whole[q] - part[q]) / (total - weight)) ** 2
            rest = total - weight
            if inside[i] == 1 and to_rest * rest / (rest + n) < to_part * weight / (weight - n):
                inside[i], moved = 0, True
                weight -= n
                for q in range(d):
                    part[q] -= s.sums[m, q]
            elif inside[i] == 0 and to_part * weight / (weight + n) < to_rest * rest / (rest - n):
                inside[i], moved = 1, True
                weight += n
                for q in range(d):
                    part[q] += s.sums[m, q]
        if not moved:
            break
    share = weight * (total - weight) / total
    gain = 0.0
    for q in range(d):
        gain += (part[q] / weight - (whole[q] - part[q]) / (total - weight)) ** 2
    return gain * share, share


@compiled
def _doubt_arms(s: Croc, sizes: Ints, gain: Floats, share: Floats, farthest: Ints) -> float:
    """D_mk for all arms, and the costliest arm of each group. OUT: s.doubt, gain, share, farthest. Returns Σ e^−D."""
    total = 0.0
    smallest = math.inf
    for m in range(s.labels.size):
        home, n = s.labels[m], s.pulls[m]
        own = _gap_to_center(s, m, home)
        if sizes[home] > 1:
            own *= n * s.totals[home] / (s.totals[home] - n)
            if own > gain[home]:
                gain[home], farthest[home] = own, m
                share[home] = n * (s.totals[home] - n) / s.totals[home]
        for k in range(s.totals.size):
            if k == home or sizes[home] == 1:
                s.doubt[m, k] = math.inf
                continue
            away = _gap_to_center(s, m, k) * n * s.totals[k] / (n + s.totals[k])
            s.doubt[m, k] = 0.5 * (away - own)
            smallest = min(smallest, s.doubt[m, k])
            total += _unlikely(s.doubt[m, k])
    s.numbers[SMALLEST_DOUBT] = smallest
    return total


@compiled
def doubts(s: Croc, w: Work) -> float:
    """P_w. OUT: s.doubt, s.numbers and s.places of the worst doubts."""
    n_groups, d = s.centers.shape
    sizes, gain, share, farthest = w.sizes, w.gain, w.share, w.farthest
    for k in range(n_groups):
        sizes[k], gain[k], share[k], farthest[k] = 0, 0.0, 1.0, -1
    for m in range(s.labels.size):
        sizes[s.labels[m]] += 1
    total = _doubt_arms(s, sizes, gain, share, farthest)
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
