"""The evidence of a run in blocks, from its log: docs/BLOCKS.md and docs/EVIDENCE.md line by line, slow and plain.

Every sum is a loop, every symmetric polynomial goes through all subsets. Nothing of the package is used but the
description of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import hypergeom

from coterie.problem.families import noise_of

RHO = [4.0**power for power in range(3, -8, -1)]
WEIGHTS = [0.08, 0.19, 0.25, 0.25, 0.12] + [0.055 * 2.0**-i for i in range(6)]
RATES = [(0.0, 0.5)] + [(2.0**power, 0.5 / 13) for power in range(3, -10, -1)]


class Log:
    """Freezes, cells and their results that came, in order, of a list of events."""

    def __init__(self, events: list[dict[str, Any]], noise: Any, dim: int) -> None:
        self.noise: Any = noise_of(noise, dim)
        self.dim = dim
        self.freezes = [event for event in events if event["event"] == "freeze"]
        self.cells = [event for event in events if event["event"] == "cell"]
        self.lapses = {event["cell"]: event["missing"] for event in events if event["event"] == "lapse"}
        self.raw: dict[int, list[tuple[int, np.ndarray]]] = {cell["cell"]: [] for cell in self.cells}
        for event in events:
            if event["event"] == "result" and "cell" in event:
                self.raw[event["cell"]].append((event["arm"], np.array(event["values"])))
        self.results = {
            number: [(arm, np.asarray(self.noise.whiten(x))) for arm, x in rows] for number, rows in self.raw.items()
        }

    def ended(self, number: int) -> bool:
        """Whether all results of a cell came, or it lapsed."""
        pulls = next(cell["pulls"] for cell in self.cells if cell["cell"] == number)
        return len(self.raw[number]) + len(self.lapses.get(number, [])) == len(pulls)


def sides(rows: list[tuple[int, np.ndarray]], arm: int, pool: set[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The results of the arm and of the pool in a cell."""
    return [x for m, x in rows if m == arm], [x for m, x in rows if m in pool]


def pair_evidence(log: Log, i: int, j: int, last: int) -> float:
    """log M of Lemma 2 after the cell `last`."""
    n, total = 0.0, np.zeros(log.dim)
    for cell in log.cells[:last]:
        own, other = sides(log.results[cell["cell"]], i, {j})
        if own and other:
            weight = len(own) * len(other) / (len(own) + len(other))
            n += weight
            total = total + weight * (np.mean(own, axis=0) - np.mean(other, axis=0))
    energy = float(total @ total)
    terms = [
        p * (1 + rho * n) ** (-log.dim / 2) * math.exp(0.5 * rho * energy / (1 + rho * n))
        for rho, p in zip(RHO, WEIGHTS, strict=True)
    ]
    return math.log(sum(terms))


def evidence_of_test(log: Log, epoch: int, arm: int, against: int, pool: set[int], last: int, kappa: float) -> float:
    """log e of a test of an epoch after the cell `last`: the arm against a pool of arms of group `against`."""
    freeze = log.freezes[epoch]
    labels, n_groups, d = freeze["labels"], len(freeze["cores"]), log.dim
    own_group = labels[arm]
    used = [cell for cell in log.cells if cell["epoch"] == epoch and cell["cell"] <= last]
    kind = log.noise.kind
    if kind == "known":
        numbers = freeze["bet"]["numbers"]
        centers = np.array(numbers[: n_groups * d]).reshape(n_groups, d)
        square = numbers[n_groups * d + own_group * n_groups + against]
        theta, n, total = centers[own_group] - centers[against], 0.0, np.zeros(d)
        for cell in used:
            mine, theirs = sides(log.results[cell["cell"]], arm, pool)
            if mine and theirs:
                v = 1 / len(mine) + 1 / len(theirs)
                n += 1 / v
                total = total + (np.mean(mine, axis=0) - np.mean(theirs, axis=0)) / v
        grown = theta + square * total
        return float(
            -0.5 * d * math.log(1 + n * square) + (grown @ grown / (1 + n * square) - theta @ theta) / (2 * square)
        )
    if kind == "gaussian":
        return _gaussian(log, freeze, used, arm, against, pool, kappa)
    total_log, shaped = 0.0, np.zeros(2)
    features = freeze["bet"]["features"] if freeze.get("bet") and "features" in freeze["bet"] else []
    for cell in used:
        rows = log.results[cell["cell"]]
        mine, theirs = sides(rows, arm, pool)
        if mine and theirs:
            total_log += _factor(log, cell, n_groups, own_group, against, arm, pool, mine, theirs)
            if features:
                shaped += _shaped(log, cell, n_groups, own_group, against, mine, theirs, features)
    if features:
        products = [math.exp(total_log), *np.exp(shaped).tolist()]
        return math.log(sum(w * e for w, e in zip(freeze["bet"]["numbers"], products, strict=True)))
    return total_log


FEATURES: dict[str, Callable[[float], float]] = {
    "clip": lambda z: min(6.0, max(-6.0, z)),
    "abs": lambda z: min(abs(z), 6.0),
    "log": lambda z: math.log(1.0 + z * z),
    "tanh": math.tanh,
    "tanh2": lambda z: math.tanh(2.0 * z) ** 2,
    "cos": lambda z: math.cos(2.0 * z),
    "sin": lambda z: math.sin(2.0 * z),
}


def _shaped(
    log: Log, cell: dict[str, Any], k: int, own: int, other: int, mine: list[Any], theirs: list[Any], names: list[str]
) -> np.ndarray:
    """log of the factors of a cell for the score of the shape, and for small bets on it."""
    d, numbers = log.dim, cell["bet"]["numbers"]
    located = 2 + k * d + k + 2 * k * k
    order = int(numbers[1])
    middle, scale, vectors, heights, f = _parts(numbers[located:], [(d,), (d,), (k, len(names)), (k,), (k, k)])
    center = np.mean([x for _, x in log.results[cell["cell"]]], axis=0)

    def score(x: np.ndarray) -> float:
        z = (x - center - middle) / scale
        phi = []
        for name in names:
            kind, *places = name.split()
            at = [float(z[int(place)]) for place in places]
            phi.append(math.tanh(at[0]) * math.tanh(at[1]) if kind == "product" else FEATURES[kind](at[0]))
        return float((vectors[own] - vectors[other]) @ np.array(phi) - heights[own] + heights[other])

    j, logs = min(len(mine), order), []
    for part in (float(f[own, other]), 0.1):
        g = [math.exp(min(6.0, max(-6.0, part * score(x)))) for x in mine + theirs]
        mean = [np.mean([math.prod(some) for some in combinations(one, j)]) for one in (g[: len(mine)], g)]
        logs.append(math.log(float(mean[0]) / float(mean[1])))
    return np.array(logs)


def _parts(numbers: list[float], shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    parts, at = [], 0
    for shape in shapes:
        size = int(np.prod(shape)) if shape else 1
        parts.append(np.array(numbers[at : at + size]).reshape(shape))
        at += size
    assert at == len(numbers)
    return parts


def _factor(
    log: Log,
    cell: dict[str, Any],
    k: int,
    own: int,
    other: int,
    arm: int,
    pool: set[int],
    mine: list[Any],
    theirs: list[Any],
) -> float:
    """log of the factor that a cell gives to a test."""
    d, numbers, kind = log.dim, cell["bet"]["numbers"], log.noise.kind
    a, A = len(mine), len(theirs)  # noqa: N806 (as in the formulas)
    v = 1 / a + 1 / A
    contrast = np.mean(mine, axis=0) - np.mean(theirs, axis=0)
    if kind == "any":
        located = 2 + k * d + k + 2 * k * k  # what follows is about the shape
        w, order, weighted, height, f, gap = _parts(numbers[:located], [(), (), (k, d), (k,), (k, k), (k, k)])
        center = np.mean([x for _, x in log.results[cell["cell"]]], axis=0)

        def score(x: np.ndarray) -> tuple[float, ...]:
            y = weighted @ (x - center) - height
            p, delta, part = (y[own] - y[other]) / gap[own, other], gap[own, other], f[own, other]
            floor = math.exp(-6.125)
            near, far = math.exp(-((p - delta / 2) ** 2) / 2) + floor, math.exp(-((p + delta / 2) ** 2) / 2) + floor
            return tuple(math.exp(min(6, max(-6, u))) for u in (part * delta * p, part * math.log(near / far)))

        j, value = int(min(a, float(order))), 0.0
        for which, share in ((0, 1 - float(w)), (1, float(w))):
            g, every = [score(x)[which] for x in mine], [score(x)[which] for x in mine + theirs]
            mean = [np.mean([math.prod(some) for some in combinations(numbers, j)]) for numbers in (g, every)]
            value += share * float(mean[0]) / float(mean[1])
        return math.log(value)
    if kind == "counts":
        logits, f = _parts(numbers, [(k, d), (k, k)])
        trials, total = log.noise.statement.trials, 0.0
        for q in range(d):
            odds = f[own, other] * (logits[own, q] - logits[other, q])
            won, both = sum(x[q] for x in mine), sum(x[q] for x in mine + theirs)
            law = hypergeom((a + A) * trials, int(both), a * trials)
            mean = sum(math.exp(odds * s) * law.pmf(s) for s in range(a * trials + 1))
            total += odds * won - math.log(mean)
        return total
    if kind == "bounded":
        weighted, f, square = _parts(numbers, [(k, d), (k, k), (k, k)])
        part = f[own, other]
        stake = part * (weighted[own] - weighted[other]) / (v + part**2 * square[own, other])
        width = np.broadcast_to(np.subtract(log.noise.statement.hi, log.noise.statement.lo), d)
        at_stake = float(np.abs(stake) @ width)
        stake = stake * min(1.0, 0.95 / at_stake) if at_stake > 0 else stake
        return math.log(1 + float(stake @ contrast))
    if kind == "at-most":
        centers, f = _parts(numbers, [(k, d), (k, k)])
        theta = f[own, other] * (centers[own] - centers[other])
        x, most = float(theta @ contrast) / v, float(theta @ theta) / v
        return math.log((1 + x + x**2 / 2) / (1 + most / 2))
    arms = sorted(set(cell["pulls"]))
    weighted, f, spread = _parts(numbers, [(k, d), (k, k), (len(arms),)])
    s2 = dict(zip(arms, spread.tolist(), strict=True))
    counts = {q: sum(m == q for m, _ in log.results[cell["cell"]]) for q in pool}
    variance = s2[arm] / a + sum(count * s2[q] for q, count in counts.items() if count) / A**2
    x = float(f[own, other] * (weighted[own] - weighted[other]) @ contrast) / variance
    return math.log(2 / (1 + math.exp(-2 * min(1.5, max(-1.5, x)))))


def _gaussian(
    log: Log, freeze: dict[str, Any], used: list[Any], arm: int, against: int, pool: set[int], kappa: float
) -> float:
    labels, k, d = freeze["labels"], len(freeze["cores"]), log.dim
    own, scalar = labels[arm], log.noise.statement.shape == "scalar"
    weighted, gap = _parts(freeze["bet"]["numbers"], [(k, d), (k, k)])
    eta = (weighted[own] - weighted[against]) / gap[own, against]
    scatter, freedom, gain = 0.0, 0, 0.0
    for cell in used:
        rows = log.results[cell["cell"]]
        centers, f = _parts(cell["bet"]["numbers"], [(k, d), (k, k)])
        away = np.array([x - centers[labels[m]] for m, x in rows])
        away = away - away.mean(axis=0)
        if scalar:
            scatter, freedom = scatter + float(eta @ eta * (away**2).sum()), freedom + d * (len(rows) - 1)
        else:
            scatter, freedom = scatter + float(((away @ eta) ** 2).sum()), freedom + len(rows) - 1
        mine, theirs = sides(rows, arm, pool)
        if mine and theirs:
            v = 1 / len(mine) + 1 / len(theirs)
            t = f[own, against] * float(eta @ (centers[own] - centers[against]))
            seen = float(eta @ (np.mean(mine, axis=0) - np.mean(theirs, axis=0)))
            gain += (2 * t * seen - t**2) / v
    if gain <= 0:
        return -math.inf if gain < 0 else kappa * math.log(0.5)

    def value(log_y: float) -> float:
        y = math.exp(log_y)
        terms = [math.log(w) + freedom / 2 * math.log1p(rate) - rate * scatter * y for rate, w in RATES]
        top = max(terms)
        return kappa * (top + math.log(sum(math.exp(term - top) for term in terms))) + gain * y

    grid = np.linspace(-30.0, 30.0, 601)
    start = float(grid[np.argmin([value(at) for at in grid])])
    return float(
        minimize_scalar(value, bounds=(start - 0.2, start + 0.2), method="bounded", options={"xatol": 1e-10}).fun
    )
