"""Near and far tests for Gaussian or sub-Gaussian noise of known covariance, or of one that is bounded from above.

Far tests and near tests of each coordinate are one-sided in a direction. Near tests of a distance are robust, or radial
where the noise is known exactly (docs/RESOLUTION.md has the proofs).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from coterie.problem.checks import FloatArray
from coterie.theory.evidence import directed_log
from coterie.theory.near_far import one_sided
from coterie.theory.near_far.family import Family, Guess, PairTest, Parameters
from coterie.theory.near_far.radial import RADII, log_radial, radial_needed

LEAST_DRIFT = 0.3
"""Of a bound: a test is made for a drift of at least this share of it, however hopeless the guess."""

_GRID = np.geomspace(0.05, 1e7, 600)
"""Information at which forecasts of robust tests are looked up."""


class SidedTest(PairTest):
    """Sides Σ y_s with y = offsets − directions·Y, each a mixture over rates, which all have to reach the level."""

    def __init__(self, directions: FloatArray, offsets: FloatArray, rates: FloatArray, proxies: FloatArray) -> None:
        self._directions, self._offsets, self._rates, self._proxies = directions, offsets, rates, proxies
        self._sums = np.zeros(offsets.size)
        self._best = np.full(offsets.size, -np.inf)
        self.count, self.evidence = 0, -math.inf

    def add(self, item: FloatArray, block: FloatArray) -> None:
        contrast = item - block.mean(axis=0)
        self.count += 1
        self._sums += self._offsets - self._directions @ contrast
        now = one_sided.mixture(self._sums, self.count, self._rates, self._proxies)
        np.maximum(self._best, now, out=self._best)
        self.evidence = float(self._best.min())


class RobustTest(PairTest):
    """The distance is less than `bound`: ½ + ½·(a mixture about a guess), against the best of all larger ones."""

    def __init__(self, bound: float, proxy: float, start: FloatArray, spread: float) -> None:
        self._bound, self._proxy, self._start, self._spread = bound, proxy, start, spread
        self._sum = np.zeros(start.size)
        self.count, self.evidence = 0, -math.inf

    def add(self, item: FloatArray, block: FloatArray) -> None:
        self._sum += item - block.mean(axis=0)
        self.count += 1
        n, s = self.count / self._proxy, self._sum / self._proxy
        length = math.sqrt(float(s @ s))
        fits = (
            length * length / (2.0 * n) if length >= n * self._bound else (length - n * self._bound / 2) * self._bound
        )
        mixed = np.logaddexp(0.0, directed_log(n, s, self._start, self._spread)) - math.log(2.0)
        # No mixture beats the best fit of all means: where both are huge, rounding would.
        most = max(n * self._bound - length, 0.0) ** 2 / (2.0 * n)
        self.evidence = max(self.evidence, min(float(mixed) - fits, most))


class RadialTest(PairTest):
    """The distance is less than `bound`, by its length alone: only for noise that is known exactly."""

    def __init__(self, bound: float, proxy: float, kappas: FloatArray, weights: FloatArray, dim: int) -> None:
        self._bound, self._proxy, self._kappas, self._weights, self._dim = bound, proxy, kappas, weights, dim
        self._sum = np.zeros(dim)
        self.count, self.evidence = 0, -math.inf

    def add(self, item: FloatArray, block: FloatArray) -> None:
        self._sum += item - block.mean(axis=0)
        self.count += 1
        n, s = self.count / self._proxy, self._sum / self._proxy
        length = math.sqrt(float(s @ s))
        if length > n * self._bound + 10.0 * math.sqrt(n * self._dim):
            return  # clearly far: differences of huge logarithms would be rounding alone
        terms = np.log(self._weights) + log_radial(self._kappas, length, n, self._dim)
        now = np.logaddexp.reduce(terms) - log_radial(np.array([self._bound]), length, n, self._dim)[0]
        self.evidence = max(self.evidence, float(now))


class KnownFamily(Family):
    """Noise of covariance C in scaled units, or at most that; `exact`: exactly that, and the same in all directions."""

    def __init__(self, norm: str, covariance: FloatArray, exact: bool = False) -> None:
        self.norm, self.dim = norm, len(covariance)
        self._covariance = covariance
        self._diagonal = np.diag(covariance).copy()
        self._proxy = float(np.linalg.eigvalsh(covariance)[-1])
        spherical = np.allclose(covariance, self._proxy * np.eye(self.dim), rtol=1e-12, atol=0.0)
        self.is_radial = bool(exact and norm == "distance" and spherical)

    @property
    def variance(self) -> FloatArray:
        """(d) of one result in each coordinate."""
        return self._diagonal

    def direction_proxy(self, direction: FloatArray) -> float:
        """The variance of one result in a direction, or more."""
        return float(direction @ self._covariance @ direction)

    @property
    def distance_proxy(self) -> float:
        """The variance of one result in every direction, or more."""
        return self._proxy

    def near_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        v = 1.0 + 1.0 / ratio
        if self._by_coordinates:
            drifts = np.maximum(_sides(bound, guess.gap[None])[0], LEAST_DRIFT * np.repeat(bound, 2))
            return {"rates": (drifts / (v * np.repeat(self.variance, 2))).tolist()}
        length, doubt = float(np.linalg.norm(guess.gap)), float(guess.doubt.mean())
        if self.is_radial:
            away = RADII * bound[0] - min(length, RADII[-1] * bound[0])
            weights = 0.05 + np.exp(-0.5 * away**2 / (doubt + (0.15 * bound[0]) ** 2))
            return {"kappas": (RADII * bound[0]).tolist(), "weights": (weights / weights.sum()).tolist()}
        shrink = min(1.0, 0.8 * bound[0] / length) if length > 0.0 else 1.0
        return {"from": (shrink * guess.gap).tolist(), "spread": doubt + 1e-3 * float(bound[0]) ** 2}

    @property
    def _by_coordinates(self) -> bool:
        return self.norm == "each" or self.dim == 1

    def far_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        direction = self.far_direction(bound, guess.gap)
        drift = float(direction @ guess.gap) - self.far_offset(bound, direction)
        proxy = (1.0 + 1.0 / ratio) * self.direction_proxy(direction)
        least = LEAST_DRIFT * math.sqrt(proxy) / 3.0
        return {"direction": direction.tolist(), "rate": max(drift, least) / proxy}

    def far_offset(self, bound: FloatArray, direction: FloatArray) -> float:
        """The most that a gap that is not far can have in a direction."""
        if self.norm == "each":
            return float(np.abs(direction) @ bound)
        return float(bound[0]) * float(np.linalg.norm(direction))

    def far_direction(self, bound: FloatArray, gap: FloatArray) -> FloatArray:
        """The unit direction in which a gap is best shown to be far."""
        if self.norm == "distance":
            candidates = [gap, np.linalg.solve(self._covariance, gap)]
        else:
            over = np.sign(gap) * np.maximum(np.abs(gap) - bound, 0.0) / self.variance
            best = int(np.argmax((np.abs(gap) - bound) / np.sqrt(self.variance)))
            candidates = [over, np.where(np.arange(self.dim) == best, np.sign(gap) + (gap == 0.0), 0.0)]
        found = [one / np.linalg.norm(one) for one in candidates if np.linalg.norm(one) > 0.0]
        if not found:
            found = [np.eye(self.dim)[0]]
        speeds = [
            (float(one @ gap) - self.far_offset(bound, one)) / math.sqrt(self.direction_proxy(one)) for one in found
        ]
        return np.asarray(found[int(np.argmax(speeds))])

    def near_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        v = 1.0 + 1.0 / ratio
        if self._by_coordinates:
            directions = np.repeat(np.eye(self.dim), 2, axis=0)
            directions[1::2] *= -1.0
            rates = np.array(parameters["rates"])
            return SidedTest(directions, np.repeat(bound, 2), rates, v * np.repeat(self.variance, 2))
        proxy = v * self.distance_proxy
        if self.is_radial:
            kappas, weights = np.array(parameters["kappas"]), np.array(parameters["weights"])
            return RadialTest(float(bound[0]), proxy, kappas, weights, self.dim)
        return RobustTest(float(bound[0]), proxy, np.array(parameters["from"]), float(parameters["spread"]))

    def far_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        direction = np.array(parameters["direction"])
        proxy = np.array([(1.0 + 1.0 / ratio) * self.direction_proxy(direction)])
        offset = np.array([-self.far_offset(bound, direction)])
        return SidedTest(-direction[None], offset, np.array([float(parameters["rate"])]), proxy)

    def near_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        v = 1.0 + 1.0 / ratio
        if self._by_coordinates:
            return v * one_sided.needed(_sides(bound, gap), np.repeat(self.variance, 2), level)
        lengths = np.linalg.norm(gap, axis=1) / float(bound[0])
        unit = v * self.distance_proxy / float(bound[0]) ** 2  # contrasts for one unit of information
        if self.is_radial:
            return np.asarray(unit * radial_needed(lengths, self.dim, round(level, 6)))
        return np.asarray(unit * np.interp(lengths, *_robust_table(self.dim, round(level, 6)), right=np.inf))

    def far_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        if self.norm == "each":
            over = np.maximum(np.abs(gap) - bound, 0.0)
            speeds = (over**2 / self.variance).sum(axis=1)
        else:
            lengths = np.linalg.norm(gap, axis=1)
            units = gap / np.maximum(lengths, 1e-300)[:, None]
            proxies = np.einsum("ij,jk,ik->i", units, self._covariance, units)
            speeds = np.maximum(lengths - bound[0], 0.0) ** 2 / np.where(lengths > 0.0, proxies, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray((1.0 + 1.0 / ratio) * far_information(level) / speeds)


def far_information(level: float) -> float:
    """Information that a far test needs for a unit of drift: more than a guess of the direction would say."""
    return (math.sqrt(2.0 * level) + 0.5) ** 2


def _sides(bound: FloatArray, gap: FloatArray) -> FloatArray:
    """(n, 2d) how far gaps (n, d) lie within the bounds: from above, from below, coordinate by coordinate."""
    both = np.stack([bound - gap, bound + gap], axis=2)
    return np.asarray(both.reshape(len(gap), -1))


@lru_cache(64)
def _robust_table(dim: int, level: float) -> tuple[FloatArray, FloatArray]:
    """Shares of the bound and the information that a robust test needs there, for a bound of 1."""
    shares = np.linspace(0.0, 0.96, 25)
    found = []
    for share in shares:
        along = np.sqrt(_GRID**2 * share**2 + _GRID * (dim - 0.5))
        fits = np.where(along >= _GRID, along**2 / (2.0 * _GRID), along - _GRID / 2.0)
        mixed = np.logaddexp(0.0, _GRID * share**2 / 2.0 - 0.5 * np.log1p(_GRID * 0.1)) - math.log(2.0)
        reached = mixed - fits >= level
        found.append(_GRID[int(np.argmax(reached))] if reached.any() else np.inf)
    return shares, np.array(found)
