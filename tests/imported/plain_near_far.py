"""Near and far evidence by the formulas of docs/RESOLUTION.md, number by number: slow, plain, and an oracle.

A `World` is a noise as its formulas need it: in scaled units, sums in exact fractions where that is easy, everything
evaluated anew for every prefix. Nothing is shared with the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import optimize, special, stats

Vector = Sequence[float]
FACTORS, SHARES = (0.25, 0.6, 1.0), (0.1, 0.45, 0.45)


def log_sum(terms: Sequence[float]) -> float:
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


@dataclass
class World:
    """`kind`: known, exactly, gaussian, bounded or counts. `scale`: (d) the unit of each coordinate.

    `covariance`: in the user's units (known, exactly), σ₊² (gaussian); `widths`: of the bounds; `trials`: of counts.
    """

    kind: str
    norm: str
    scale: Vector
    covariance: Any = None
    shape: str = ""
    widths: Vector = ()
    trials: int = 0

    @property
    def d(self) -> int:
        return len(self.scale)

    def proxy(self, direction: Vector) -> float:
        """Of a result in a direction, in scaled units."""
        u = [one / s for one, s in zip(direction, self.scale, strict=True)]
        if self.kind == "gaussian" and self.shape == "full":
            return math.fsum(abs(one) * math.sqrt(self.covariance[c][c]) for c, one in enumerate(u)) ** 2
        return math.fsum(u[a] * self.covariance[a][b] * u[b] for a in range(self.d) for b in range(self.d))

    @property
    def largest_proxy(self) -> float:
        scaled = np.array(self.covariance) / np.outer(self.scale, self.scale)
        if self.kind == "gaussian" and self.shape == "full":
            return float(np.trace(scaled))
        return float(max(np.linalg.eigvals(scaled).real))


def contrasts(world: World, item: Sequence[Vector], reference: Sequence[Vector], ratio: int) -> list[list[float]]:
    n = min(len(item), len(reference) // ratio)
    found = []
    for s in range(n):
        block = reference[s * ratio : (s + 1) * ratio]
        row = [(item[s][c] - math.fsum(one[c] for one in block) / ratio) / world.scale[c] for c in range(world.d)]
        found.append(row)
    return found


class Reading:
    """A test that is read at every number of contrasts, as results come in."""

    def __init__(
        self, world: World, kind: str, test: Sequence[Any], item: list[Vector], reference: list[Vector]
    ) -> None:
        self._world, self._kind, self._test = world, kind, test
        self._item, self._reference = item, reference  # which grow
        self._best: list[float] = []
        self.n = 0

    def evidence(self) -> float:
        """The least of its sides, each at its largest so far."""
        _, _, ratio, bound, parameters = self._test
        there = min(len(self._item), len(self._reference) // ratio)
        while self.n < there:
            self.n += 1
            sides = side_functions(self._world, self._kind, ratio, bound, parameters, self._item, self._reference)
            now = [side(self.n) for side in sides]
            self._best = [max(pair) for pair in zip(self._best or now, now, strict=True)]
        return min(self._best, default=-math.inf)


def side_functions(
    world: World, kind: str, ratio: int, bound: Vector, parameters: dict[str, Any], item: Any, reference: Any
) -> list[Callable[[int], float]]:
    """log E of each side as a function of the number of contrasts."""
    if world.kind == "counts":
        return count_sides(world, kind, ratio, bound, parameters, item, reference)
    y = contrasts(world, item, reference, ratio)
    v = 1 + 1 / ratio
    if kind == "near" and "kappas" in parameters:
        return [lambda n: radial(world, y[:n], v, bound[0], parameters)]
    if kind == "near" and "from" in parameters:
        return [lambda n: robust(world, y[:n], v, bound[0], parameters)]
    return [
        one_sided(world, [row_of(row) for row in y], v * q if q else 0.0, rate, most)
        for row_of, q, rate, most in linear_sides(world, kind, bound, parameters)
    ]


def linear_sides(world: World, kind: str, bound: Vector, parameters: dict[str, Any]) -> list[Any]:
    """(y of a contrast, proxy of a result, rate, the most that −y can be) of each side."""
    found: list[Any] = []
    if kind == "near":
        share = math.sqrt(world.d) if world.norm == "distance" else 1.0
        for c in range(world.d):
            for place, sign in ((0, 1.0), (1, -1.0)):
                unit = [1.0 if other == c else 0.0 for other in range(world.d)]
                h = bound[c] / share
                q = world.proxy(unit) if world.covariance is not None else 0.0
                w = world.widths[c] / world.scale[c] if world.widths else 0.0
                most = max(w - h, 0.05 * w)
                found.append(
                    (lambda row, c=c, s=sign, h=h: h - s * row[c], q, parameters["rates"][2 * c + place], most)
                )
        return found
    u = parameters["direction"]
    if world.norm == "distance":
        beta = bound[0] * math.sqrt(math.fsum(one * one for one in u))
    else:
        beta = math.fsum(abs(one) * b for one, b in zip(u, bound, strict=True))
    q = world.proxy(u) if world.covariance is not None else 0.0
    most = 0.0
    if world.widths:
        most = beta + math.fsum(abs(one) * w / s for one, w, s in zip(u, world.widths, world.scale, strict=True))
    return [(lambda row: math.fsum(a * b for a, b in zip(u, row, strict=True)) - beta, q, parameters["rate"], most)]


def one_sided(world: World, y: list[float], q: float, rate: float, most: float) -> Callable[[int], float]:
    def gaussian(n: int) -> float:
        total = math.fsum(y[:n])
        return log_sum(
            [math.log(w) + rate * f * total - n * (rate * f) ** 2 * q / 2 for f, w in zip(FACTORS, SHARES, strict=True)]
        )

    def betted(n: int) -> float:
        terms = []
        for f, w in zip(FACTORS, SHARES, strict=True):
            stake = min(rate * f, 0.999 / most)
            terms.append(math.log(w) + math.fsum(math.log1p(stake * one) for one in y[:n]))
        return log_sum(terms)

    return betted if world.kind == "bounded" else gaussian


def summed(world: World, y: list[list[float]], v: float) -> tuple[float, list[float], float]:
    """n', S and its length."""
    unit = v * world.largest_proxy
    total = [math.fsum(row[c] for row in y) / unit for c in range(world.d)]
    return len(y) / unit, total, math.sqrt(math.fsum(one * one for one in total))


def robust(world: World, y: list[list[float]], v: float, bound: float, parameters: dict[str, Any]) -> float:
    n, total, length = summed(world, y, v)
    start, spread = parameters["from"], parameters["spread"]
    moved = math.fsum((a + spread * b) ** 2 for a, b in zip(start, total, strict=True)) / (1 + n * spread)
    mixed = (moved - math.fsum(a * a for a in start)) / (2 * spread) - world.d / 2 * math.log(1 + n * spread)
    # the largest likelihood over all differences of at least the bound: at S/n, or at the bound in that direction
    away = max(length / n, bound)
    return log_sum([math.log(0.5), math.log(0.5) + mixed]) - (away * length - n * away**2 / 2)


def radial(world: World, y: list[list[float]], v: float, bound: float, parameters: dict[str, Any]) -> float:
    n, _, length = summed(world, y, v)

    def log_h(kappa: float) -> float:
        return math.log(special.hyp0f1(world.d / 2, (kappa * length) ** 2 / 4)) - n * kappa**2 / 2

    terms = [math.log(w) + log_h(k) for k, w in zip(parameters["kappas"], parameters["weights"], strict=True) if w > 0]
    return log_sum(terms) - log_h(bound)


# Counts: exponentials of counts, and their largest mean under the null, by a search.


@cache
def largest(tilt: float, nu: float) -> float:
    """The largest log(1 + p·(e^a − 1)) − ν·p over p from 0 to 1."""

    def value(p: float) -> float:
        return math.log1p(p * math.expm1(tilt)) - nu * p

    inner = optimize.minimize_scalar(lambda p: -value(p), bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    return max(value(0.0), value(1.0), -float(inner.fun))


def count_sides(
    world: World, kind: str, ratio: int, bound: Vector, parameters: dict[str, Any], item: Any, reference: Any
) -> list[Callable[[int], float]]:
    t, found = world.trials, []
    a, b, multipliers = parameters["item"], parameters["reference"], parameters["multipliers"]

    def side(score: Callable[[int], float], costs: list[float]) -> Callable[[int], float]:
        def at(n: int) -> float:
            total = math.fsum(score(s) for s in range(n))
            return log_sum(
                [math.log(w) + f * total - n * cost for f, w, cost in zip(FACTORS, SHARES, costs, strict=True)]
            )

        return at

    def block(s: int, c: int) -> float:
        return math.fsum(one[c] for one in reference[s * ratio : (s + 1) * ratio])

    def near_score(i: int, c: int, s: int) -> float:
        return float(a[i] * item[s][c] + b[i] * block(s, c))

    if kind == "far":
        costs = [far_cost(world, ratio, bound, a, b, f, nu) for f, nu in zip(FACTORS, multipliers, strict=True)]
        return [side(lambda s: math.fsum(a[c] * item[s][c] + b[c] * block(s, c) for c in range(world.d)), costs)]
    share = math.sqrt(world.d) if world.norm == "distance" else 1.0
    for i in range(2 * world.d):
        c, sign = i // 2, (1.0, -1.0)[i % 2]
        h = bound[c] / share * world.scale[c] / t
        costs = [
            t * (largest(f * a[i], -sign * m) + ratio * largest(f * b[i], sign * m / ratio) - m * h)
            for f, m in zip(FACTORS, multipliers[i], strict=True)
        ]
        found.append(side(partial(near_score, i, c), costs))
    return found


def roughly_largest(tilt: float, nu: float) -> float:
    """The same on a grid: to choose parameters by, which may be any."""
    p = np.linspace(0, 1, 101)
    return float((np.log1p(p * math.expm1(tilt)) - nu * p).max())


def far_cost(
    world: World,
    ratio: int,
    bound: Vector,
    a: Vector,
    b: Vector,
    f: float,
    nu: Vector,
    phi: Callable[[float, float], float] = largest,
) -> float:
    each = math.fsum(phi(f * a[c], nu[c]) + ratio * phi(f * b[c], -nu[c] / ratio) for c in range(world.d))
    if world.norm == "distance":
        support = bound[0] * math.sqrt(math.fsum((nu[c] * world.scale[c]) ** 2 for c in range(world.d))) / world.trials
    else:
        support = math.fsum(abs(nu[c]) * bound[c] * world.scale[c] / world.trials for c in range(world.d))
    return world.trials * (each + support)


def variance_bounds(first: Sequence[Sequence[Vector]], shape: str, delta: float) -> list[list[float]]:
    """A diagonal matrix of σ₊², in the user's units, from the first results of every arm."""
    n_arms, n, d = len(first), len(first[0]), len(first[0][0])
    squares = [0.0] * d
    for stack in first:
        for c in range(d):
            mean = math.fsum(one[c] for one in stack) / n
            squares[c] += math.fsum((one[c] - mean) ** 2 for one in stack)
    degrees = n_arms * (n - 1)
    if shape == "scalar":
        found = [math.fsum(squares) / stats.chi2.ppf(0.1 * delta, degrees * d)] * d
    else:
        found = [one / stats.chi2.ppf(0.1 * delta / d, degrees) for one in squares]
    return [[found[a] if a == b else 0.0 for b in range(d)] for a in range(d)]
