"""What a partition is worth, and the best way to cut a group in two: the posterior behind the estimate and its risk.

Let the sizes of the groups be uniformly distributed, then the partition among those of its sizes, and the centers flat.
The posterior of a partition is then, up to a constant, Π n_k!·W_k^(−d/2)·exp(−½·cost): the likelihood of the best
centers, times what a center costs that is fitted to W_k results, times the share of one partition among all of its
sizes (docs/CROC.md, section 7). Without the last factor a group of n arms gains about 0.32·n by being cut in two by
chance (d = 1), and nothing pays for the choice among 2^(n−1) cuts. Nothing here enters the proof.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import Work
from coterie.engine.state import Floats, Ints
from coterie.engine.vectors import distances_to_points, squared_distance

SIZE_PRICE = 1.0
"""τ, the power of the share of one partition among all of its sizes: 1 in the posterior."""
SPLIT_PASSES = 6
POSTERIOR_TIE = 1e-9
"""Log posteriors this close tie: the partition that was found first stays."""


@compiled
def log_ways(log_factorial: Floats, a: int, b: int) -> float:
    """log((a+b)!/(a!·b!)): in how many ways a group of a + b arms is cut into a and b."""
    return float(log_factorial[a + b] - log_factorial[a] - log_factorial[b])


@compiled
def cut_worth(log_factorial: Floats, gain: float, a: int, b: int, weight: float, dim: int) -> float:
    """By how much log posterior grows if a group is cut into a and b arms. `weight`: W_a·W_b/(W_a+W_b) of the parts.

    `gain` is by how much the cost falls. Merging the parts has the negative of it.
    """
    return 0.5 * gain - SIZE_PRICE * log_ways(log_factorial, a, b) - 0.5 * dim * math.log(weight)


@compiled
def log_posterior(log_factorial: Floats, cost: float, sizes: Ints, totals: Floats, dim: int) -> float:
    """Of a partition, up to a constant: −½·cost + Σ log n_k! − (d/2)·Σ log W_k."""
    value = -0.5 * cost
    for k in range(totals.size):
        value += SIZE_PRICE * log_factorial[sizes[k]] - 0.5 * dim * math.log(totals[k])
    return value


@compiled
def cost_alone(points: Floats, m: int, weight: float, centers: Floats, k: int, total: float) -> float:
    """By how much the cost falls if arm m leaves its group k for one of its own."""
    return squared_distance(points, m, centers, k) * weight * total / (total - weight)


@compiled
def _centers_of_cut(part: Floats, weight: float, centers: Floats, k: int, total: float, w: Work) -> None:
    """OUT: w.mean and w.rest, the centers of a part of group k, given by its sum, and of the rest."""
    for q in range(part.size):
        w.mean[q] = part[q] / weight
        w.rest[q] = (centers[k, q] * total - part[q]) / (total - weight)


@compiled
def two_means(
    points: Floats, pulls: Ints, centers: Floats, totals: Floats, k: int, size: int, farthest: int, w: Work
) -> tuple[float, float, int]:
    """Cut group k, the first `size` of w.members, in two, beginning with its costliest arm alone.

    Returns the gain in cost, W_a·W_b/(W_a+W_b), and the arms of the part. OUT: w.inside, 1 for members of the part.
    """
    d = points.shape[1]
    members, inside, part = w.members, w.inside, w.part
    weight, total, count = float(pulls[farthest]), totals[k], 1
    for q in range(d):
        part[q] = points[farthest, q] * weight
    for i in range(size):
        inside[i] = members[i] == farthest
    _centers_of_cut(part, weight, centers, k, total, w)
    for _ in range(SPLIT_PASSES):
        moved = False
        for i in range(size):
            m = members[i]
            n, rest = float(pulls[m]), total - weight
            if (inside[i] == 1 and count == 1) or (inside[i] == 0 and count == size - 1):
                continue
            to_part, to_rest = distances_to_points(points, m, w.mean, w.rest)
            if inside[i] == 1 and to_rest * rest / (rest + n) < to_part * weight / (weight - n):
                inside[i], sign = 0, -1
            elif inside[i] == 0 and to_part * weight / (weight + n) < to_rest * rest / (rest - n):
                inside[i], sign = 1, 1
            else:
                continue
            moved = True
            count += sign
            weight += sign * n
            for q in range(d):
                part[q] += sign * n * points[m, q]
            _centers_of_cut(part, weight, centers, k, total, w)
        if not moved:
            break
    share = weight * (total - weight) / total
    gain = 0.0
    for q in range(d):
        gain += (w.mean[q] - w.rest[q]) ** 2
    return gain * share, share, count
