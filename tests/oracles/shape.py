"""Bets on shape, line by line (docs/EVIDENCE.md, section 3): features, scores, factors and their mixture.

Plain and slow: elementary symmetric polynomials are sums over all choices. It shares nothing with the engine, nor with
the verifier.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np


def features(z: list[float]) -> list[float]:
    """φ of a result of few numbers, in the order of the log."""
    own = []
    for each in z:
        own += [max(-6.0, min(6.0, each)), min(abs(each), 6.0), math.log(1.0 + each * each), math.tanh(each)]
        own += [math.tanh(2.0 * each) ** 2, math.cos(2.0 * each), math.sin(2.0 * each)]
    return own + [math.tanh(z[a]) * math.tanh(z[b]) for a, b in combinations(range(len(z)), 2)]


def clipped(u: float) -> float:
    return max(-6.0, min(6.0, u))


def scores(numbers: dict[str, Any], l: int, k: int, x: Any) -> list[float]:  # noqa: E741
    """u of the four scores, linear, robust, shape and small, for a result at the position x."""
    heights = [float(np.dot(numbers["G"][g], x) - numbers["h"][g]) for g in (l, k)]
    gap, f = numbers["gap"][l][k], numbers["f"][l][k]
    p = (heights[0] - heights[1]) / gap
    floor = math.exp(-6.125)
    near, far = math.exp(-0.5 * (p - gap / 2) ** 2) + floor, math.exp(-0.5 * (p + gap / 2) ** 2) + floor
    phi = np.array(features([(x[q] - numbers["o"][q]) / numbers["s"][q] for q in range(len(x))]))
    apart = float((phi @ numbers["P"][l] - numbers["p"][l]) - (phi @ numbers["P"][k] - numbers["p"][k]))
    return [
        clipped(f * gap * p),
        clipped(f * (math.log(near) - math.log(far))),
        clipped(numbers["F"][l][k] * apart),
        clipped(0.1 * apart),
    ]


def mean_product(g: list[float], j: int) -> float:
    """The mean of Π g over all choices of j of these numbers."""
    chosen = [math.prod(some) for some in combinations(g, j)]
    return sum(chosen) / len(chosen)


def log_factors(numbers: dict[str, Any], l: int, k: int, arm: Any, pool: Any) -> list[float]:  # noqa: E741
    """log e of location, shape and small bets, for the results of an arm of group l and of a pool of group k."""
    j = min(len(arm), int(numbers["J"]))
    of_arm, of_pool = [scores(numbers, l, k, x) for x in arm], [scores(numbers, l, k, x) for x in pool]
    ratios = []
    for which in range(4):
        mine, others = [math.exp(u[which]) for u in of_arm], [math.exp(u[which]) for u in of_pool]
        ratios.append(mean_product(mine, j) / mean_product(mine + others, j))
    location = (1.0 - numbers["w"]) * ratios[0] + numbers["w"] * ratios[1]
    return [math.log(location), math.log(ratios[2]), math.log(ratios[3])]


def mixed(weights: list[float], totals: list[float]) -> float:
    """log of the weighted mean of processes, of which these are the logarithms."""
    return math.log(sum(weight * math.exp(total) for weight, total in zip(weights, totals, strict=True)))


def numbers_of(listed: list[float], n_groups: int, dim: int, n_features: int) -> dict[str, Any]:
    """The numbers of a round's bet by name, in the order of the log."""
    rest = iter(listed)

    def table(rows: int, columns: int) -> Any:
        return np.array([[next(rest) for _ in range(columns)] for _ in range(rows)])

    found: dict[str, Any] = {"w": next(rest), "J": next(rest), "G": table(n_groups, dim), "h": table(1, n_groups)[0]}
    found |= {"f": table(n_groups, n_groups), "gap": table(n_groups, n_groups), "o": table(1, dim)[0]}
    found |= {"s": table(1, dim)[0], "P": table(n_groups, n_features), "p": table(1, n_groups)[0]}
    found["F"] = table(n_groups, n_groups)
    assert next(rest, None) is None
    return found
