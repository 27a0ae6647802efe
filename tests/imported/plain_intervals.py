"""Intervals of streams by brute force: every formula of docs/INTERVALS.md on a grid of means, slow and plain."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm
from scipy.stats import t as student

RHOS = [4.0**k for k in (3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7)]
SHARES = [0.08, 0.19, 0.25, 0.25, 0.12, 0.055, 0.0275, 0.01375, 0.006875, 0.0034375, 0.00171875]


def hull(grid: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest place of a grid at which the evidence is below the level."""
    kept = grid[below]
    return float(kept.min()), float(kept.max())


def known(x: np.ndarray, mu: float) -> float:
    """The mixture at μ for σ = 1: each exp(θ(S − nμ) − nθ²/2) weighed with the density of θ, by the trapezium rule."""
    total = 0.0
    for rho, share in zip(RHOS, SHARES, strict=True):
        width = math.sqrt(rho)
        theta = np.linspace(-12.0 * width, 12.0 * width, 60_001)
        moved = x.sum() - len(x) * mu
        total += share * np.trapezoid(
            np.exp(theta * moved - 0.5 * len(x) * theta**2) * norm.pdf(theta, 0, width), theta
        )
    return math.log(total)


def product(x: np.ndarray, y: np.ndarray, delta: float) -> float:
    """Σ_ρ p·(the least over a grid of μ of M_ρ(x; μ + Δ)·M_ρ(y; μ)): at most the least of the sum."""
    grid = y.mean() + np.linspace(-4.0, 4.0, 8001)
    total = 0.0
    for rho, share in zip(RHOS, SHARES, strict=True):
        part = share * np.ones_like(grid)
        for values, mu in ((x, grid + delta), (y, grid)):
            n = len(values)
            part *= np.exp(0.5 * rho * (values.sum() - n * mu) ** 2 / (1 + rho * n)) / math.sqrt(1 + rho * n)
        total += float(part.min())
    return math.log(total)


def deviation(arms: list[int], x: np.ndarray, error: float) -> float:
    """The largest σ of a grid at which Σ w(1+λ)^(ν/2)·exp(−λ·Σ(x − m)²/(2σ²)) is below 1/error."""
    rates = [0.0, *(2.0**k for k in range(3, -10, -1))]
    weights = [0.5, *[0.5 / 13] * 13]
    residuals = [x[i] - np.mean(before) for i, arm in enumerate(arms) if (before := x[[j for j in range(i) if arms[j] == arm]]).size]  # fmt: skip # noqa: E501
    square, count = float(np.sum(np.square(residuals))), len(residuals)
    sigmas = np.geomspace(1e-2, 1e3, 200_001)
    value = sum(w * (1 + r) ** (count / 2) * np.exp(-r * square / (2 * sigmas**2)) for r, w in zip(rates, weights, strict=True))  # fmt: skip # noqa: E501
    below = sigmas[value < 1.0 / error]
    return float(below.max()) if below.size and below.max() < sigmas[-1] else math.inf


def gaussian(x: np.ndarray, deviation_bound: float, mu: float) -> float:
    """0.9 of the known mixture in units of σ₊, 0.1 of the predicted densities over the largest likelihood."""
    bound = sum(
        share / math.sqrt(1 + rho * len(x)) * math.exp(
            0.5 * rho * (x.sum() - len(x) * mu) ** 2 / deviation_bound**2 / (1 + rho * len(x))
        )
        for rho, share in zip(RHOS, SHARES, strict=True)
    )  # fmt: skip
    predicted = 0.0
    for k in range(2, len(x)):
        before = x[:k]
        square = ((before - before.mean()) ** 2).sum()
        scale = math.sqrt(square * (1 + 0.5 / (k - 1)) / k * (1 + 1 / k))
        predicted += student.logpdf(x[k], k, before.mean(), scale)
    sigmas = np.geomspace(1e-2, 1e2, 20_001)
    rest = x[2:, None]
    largest = float(norm.logpdf(rest, mu, sigmas).sum(axis=0).max())
    return math.log(0.9 * bound + 0.1 * math.exp(predicted - largest))


def bets(x: np.ndarray, log_two: float) -> list[float]:
    amounts = []
    for i in range(1, len(x) + 1):
        variance = 0.25
        if i > 1:
            squares = sum((x[j - 1] - (0.5 + x[:j].sum()) / (1 + j)) ** 2 for j in range(1, i))
            variance = (0.25 + squares) / i
        amounts.append(math.sqrt(2 * log_two / (variance * i * math.log(1 + i))))
    return amounts


def betting(x: np.ndarray, log_two: float, m: float) -> tuple[list[float], list[float]]:
    """The capital of both sides after every result, on the log scale."""
    up, down = [0.0], [0.0]
    for value, amount in zip(x, bets(x, log_two), strict=True):
        up.append(up[-1] + math.log(1 + min(amount, 0.5 / m) * (value - m)))
        down.append(down[-1] + math.log(1 - min(amount, 0.5 / (1 - m)) * (value - m)))
    return up[1:], down[1:]


def rates(successes: int, trials: int, p: float) -> float:
    """The likelihood averaged over Jeffreys' law, by quadrature, over that of p."""

    def weighed(angle: float) -> float:  # t = sin² of it: Jeffreys' law is flat there
        t = math.sin(angle) ** 2
        return float(t**successes * (1 - t) ** (trials - successes) * 2 / math.pi)

    return math.log(quad(weighed, 0.0, math.pi / 2, epsabs=0.0, epsrel=1e-10)[0]) - math.log(
        p**successes * (1 - p) ** (trials - successes)
    )


def catoni(x: np.ndarray, m: float) -> tuple[float, float]:
    """Both sides at a mean, each with half of the weight."""
    sides = [0.0, 0.0]
    weights = [0.04, 0.1, 0.2, 0.24, 0.2, *(0.11 * 0.5**i for i in range(8))]
    for j, weight in enumerate(weights):
        rate = 2.0 ** (1 - j)
        value = 0.0
        for v in x:
            y = rate * (v - m)
            value += math.log(1 + y + y * y / 2) if y >= 0 else -math.log(1 - y + y * y / 2)
        for side, sign in enumerate((1.0, -1.0)):
            sides[side] += 0.5 * weight * math.exp(sign * value) / (1 + rate**2 / 2) ** len(x)
    return math.log(sides[0]), math.log(sides[1])


def quantile(x: np.ndarray, p: float, q: float) -> tuple[float, float]:
    """E⁻ and E⁺ at q, by quadrature over the rates below and above p."""
    n, at_most, below = len(x), int((x <= q).sum()), int((x < q).sum())

    def mixed(count: int, low: float, high: float) -> float:
        def weighed(angle: float) -> float:
            t = math.sin(angle) ** 2
            return float((t / p) ** count * ((1 - t) / (1 - p)) ** (n - count))

        a, b = (math.asin(math.sqrt(end)) for end in (low, high))
        return float(quad(weighed, a, b, epsabs=0.0, epsrel=1e-10, limit=500)[0]) / (b - a)

    return mixed(at_most, 0.0, p), mixed(below, p, 1.0)


def differences(
    grid: np.ndarray, first: Callable[[float], float], second: Callable[[float], float], level: float
) -> tuple[float, float]:
    """All m − m' of a grid at which the evidence of both adds up to below the level."""
    a, b = np.array([first(m) for m in grid]), np.array([second(m) for m in grid])
    fits = a[:, None] + b[None] < level
    apart = (grid[:, None] - grid[None])[fits]
    return float(apart.min()), float(apart.max())
