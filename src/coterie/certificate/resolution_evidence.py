"""Evidence that two means are near, or far apart, from the results of an item and of a reference.

Written a second time, in plain NumPy and SciPy, so that no mistake is shared with whoever wrote the certificate.
Formulas and proofs: docs/RESOLUTION.md. A test is read at every number of contrasts up to n; its evidence is the least
over its sides of the largest value of each. Names: `ratio` is R, `variance` is v = 1 + 1/R, `proxy` is q.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from coterie.certificate.fields import field_of
from coterie.problem.checks import FloatArray, check_positive, check_real_array, short

MULTIPLES = np.array([0.25, 0.6, 1.0])
LOG_WEIGHTS = np.log(np.array([0.1, 0.45, 0.45]))
"""Rates of a one-sided test as multiples of the stated one, and the logarithms of their weights, which sum to 1."""

MOST_STAKE = 0.999  # of what a bet could lose
LEAST_LOSS = 0.05  # of the width: a bet on nearness is never sized as if it could lose less

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """What a test reads, in the user's units: results of the item (n, d) and of the reference, in blocks (n, R, d)."""

    item: FloatArray
    blocks: FloatArray

    @property
    def ratio(self) -> int:
        """R: results of the reference in a block."""
        return int(self.blocks.shape[1])

    @property
    def variance(self) -> float:
        """v: of a contrast, in units of that of a result."""
        return 1.0 + 1.0 / self.ratio

    def contrasts(self, scale: FloatArray) -> FloatArray:
        """(n, d): Y_s in scaled units. Differences are formed first: no digits are lost to where the results lie."""
        origin = self.item[0]
        return np.asarray(((self.item - origin) - (self.blocks - origin).mean(axis=1)) / scale)


class Family(ABC):
    """The tests for one noise. `norm`: "each" or "distance"; `scale`: (d), what a unit is in the user's units.

    Bounds (d) are in scaled units; for the norm "distance" all their entries are the same distance. A ValueError or
    TypeError says what is wrong with the parameters.
    """

    def __init__(self, norm: str, scale: FloatArray) -> None:
        self.norm, self.scale, self.dim = norm, scale, scale.size

    @abstractmethod
    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        """log E against "the means differ by `bound` or more"."""

    @abstractmethod
    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        """log E against "the means differ by `bound` or less"."""

    def coordinate_bounds(self, bound: FloatArray) -> FloatArray:
        """Bounds for each coordinate that imply the bound: for a distance, of a cube within the ball."""
        return bound / math.sqrt(self.dim) if self.norm == "distance" else bound

    def sides(self, contrasts: FloatArray, bound: FloatArray) -> FloatArray:
        """(n, 2d): how far contrasts lie within the bounds, from above and from below, coordinate by coordinate."""
        bounds = self.coordinate_bounds(bound)
        both = np.stack([bounds - contrasts, bounds + contrasts], axis=2)
        return both.reshape(len(contrasts), 2 * self.dim)

    def direction(self, parameters: Parameters) -> FloatArray:
        """û of a far test."""
        found = vector(parameters, "direction", self.dim)
        if not np.abs(found).max() > 0.0:
            raise ValueError("direction must not be zero in all coordinates")
        return found

    def offset(self, direction: FloatArray, bound: FloatArray) -> float:
        """β: the most that a difference which is not far can have in a direction."""
        if self.norm == "distance":
            return float(bound[0]) * math.sqrt(float(direction @ direction))
        return float(np.abs(direction) @ bound)


class SubGaussian(Family):
    """Noise of a known covariance, or less: `proxies` (d) bound the variance of each coordinate, in scaled units."""

    @abstractmethod
    def proxy(self, direction: FloatArray) -> float:
        """A bound on the variance of a result in a direction."""

    @property
    @abstractmethod
    def proxies(self) -> FloatArray:
        """(d) of each coordinate."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """A bound on the variance of a result in any direction of length 1."""

    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        contrasts = results.contrasts(self.scale)
        if self.norm == "distance" and "rates" not in parameters:
            return self.near_distance(contrasts, results.variance, float(bound[0]), parameters)
        only(parameters, "rates")
        rates = _rates(parameters, 2 * self.dim)
        return _one_sided(self.sides(contrasts, bound), rates, results.variance * np.repeat(self.proxies, 2))

    def near_distance(self, contrasts: FloatArray, variance: float, bound: float, parameters: Parameters) -> float:
        """The robust test of a distance."""
        only(parameters, "from", "spread")
        start, spread = vector(parameters, "from", self.dim), check_positive(field_of(parameters, "spread"), "spread")
        proxy = variance * self.largest
        n = np.arange(1, len(contrasts) + 1) / proxy
        total = np.cumsum(contrasts, axis=0) / proxy
        lengths = np.sqrt((total**2).sum(axis=1))
        growth = 1.0 + n * spread
        fit = 2.0 * total @ start + spread * lengths**2 - n * float(start @ start)
        mixed = fit / (2.0 * growth) - 0.5 * self.dim * np.log(growth)
        null = np.where(lengths >= n * bound, lengths**2 / (2.0 * n), bound * lengths - n * bound**2 / 2.0)
        return float((np.logaddexp(0.0, mixed) - math.log(2.0) - null).max())

    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        only(parameters, "direction", "rate")
        direction, rate = self.direction(parameters), check_positive(field_of(parameters, "rate"), "rate")
        y = results.contrasts(self.scale) @ direction - self.offset(direction, bound)
        return _one_sided(y[:, None], np.array([rate]), np.array([results.variance * self.proxy(direction)]))


class KnownCovariance(SubGaussian):
    """`covariance` (d, d) in scaled units; `exact`: it is that, and not less."""

    def __init__(self, norm: str, scale: FloatArray, covariance: FloatArray, exact: bool) -> None:
        super().__init__(norm, scale)
        self._covariance = covariance
        first = float(covariance[0, 0])
        spherical = np.allclose(covariance, first * np.eye(self.dim), rtol=1e-12, atol=0.0)
        self._radial = exact and spherical

    def proxy(self, direction: FloatArray) -> float:
        return float(direction @ self._covariance @ direction)

    @property
    def proxies(self) -> FloatArray:
        return np.diag(self._covariance)

    @property
    def largest(self) -> float:
        return float(np.linalg.eigvalsh(self._covariance)[-1])

    def near_distance(self, contrasts: FloatArray, variance: float, bound: float, parameters: Parameters) -> float:
        """The radial test where the parameters are of one, which only exactly known noise allows; else the robust."""
        if "kappas" not in parameters:
            return super().near_distance(contrasts, variance, bound, parameters)
        if not self._radial:
            raise ValueError(
                "radial tests (kappas) need noise that is stated as exactly known, the same in all directions"
            )
        only(parameters, "kappas", "weights")
        kappas, weights = _radii(parameters, bound)
        proxy = variance * self.largest
        n = np.arange(1, len(contrasts) + 1) / proxy
        lengths = np.sqrt((np.cumsum(contrasts, axis=0) ** 2).sum(axis=1)) / proxy
        used = weights > 0.0
        terms = np.log(weights[used]) + _log_radial(kappas[used], lengths[:, None], n[:, None], self.dim)
        null = _log_radial(np.array([bound]), lengths[:, None], n[:, None], self.dim)[:, 0]
        return float((special.logsumexp(terms, axis=1) - null).max())


class BoundedCovariance(SubGaussian):
    """Gaussian noise of unknown covariance: `upper` (d) bounds the variance of each coordinate, in scaled units."""

    def __init__(self, norm: str, scale: FloatArray, shape: str, upper: FloatArray) -> None:
        super().__init__(norm, scale)
        self._full, self._upper = shape == "full", upper

    def proxy(self, direction: FloatArray) -> float:
        if self._full:  # the coordinates may depend on one another in any way
            return float(np.abs(direction) @ np.sqrt(self._upper)) ** 2
        return float(direction**2 @ self._upper)

    @property
    def proxies(self) -> FloatArray:
        return self._upper

    @property
    def largest(self) -> float:
        return float(self._upper.sum() if self._full else self._upper.max())


class BoundedResults(Family):
    """Results within bounds `widths` (d) apart, in scaled units: bets, and nothing else is assumed."""

    def __init__(self, norm: str, scale: FloatArray, widths: FloatArray) -> None:
        super().__init__(norm, scale)
        self._widths = widths

    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        only(parameters, "rates")
        losses = np.maximum(self._widths - self.coordinate_bounds(bound), LEAST_LOSS * self._widths)
        y = self.sides(results.contrasts(self.scale), bound)
        return _betted(y, _rates(parameters, 2 * self.dim), np.repeat(losses, 2))

    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        only(parameters, "direction", "rate")
        direction, rate = self.direction(parameters), check_positive(field_of(parameters, "rate"), "rate")
        offset = self.offset(direction, bound)
        y = results.contrasts(self.scale) @ direction - offset
        return _betted(y[:, None], np.array([rate]), np.array([float(np.abs(direction) @ self._widths) + offset]))


def _one_sided(y: FloatArray, rates: FloatArray, proxies: FloatArray) -> float:
    """The mixture over rates for each side, y (n, sides), at its largest; of that the least."""
    n, found = np.arange(1, len(y) + 1)[:, None], np.inf
    for side, total in enumerate(np.cumsum(y, axis=0).T):
        rate = rates[side] * MULTIPLES
        terms = LOG_WEIGHTS + rate * total[:, None] - n * (0.5 * rate**2 * proxies[side])
        found = min(found, float(special.logsumexp(terms, axis=1).max()))
    return found


def _betted(y: FloatArray, rates: FloatArray, losses: FloatArray) -> float:
    """Mixtures of products of bets for each side, y (n, sides), none below −losses; the least of the largest."""
    found = np.inf
    for side, one in enumerate(y.T):
        stakes = np.minimum(rates[side] * MULTIPLES, MOST_STAKE / losses[side])
        terms = LOG_WEIGHTS + np.cumsum(np.log1p(stakes * one[:, None]), axis=0)
        found = min(found, float(special.logsumexp(terms, axis=1).max()))
    return found


def _log_radial(kappas: FloatArray, lengths: FloatArray, n: FloatArray, dim: int) -> FloatArray:
    """log h_κ(s) = log ₀F₁(d/2; κ²s²/4) − nκ²/2 at lengths s."""
    return _log_mean_exponential(kappas * lengths, dim) - n * kappas**2 / 2.0


def _log_mean_exponential(x: FloatArray, dim: int) -> FloatArray:
    """log ₀F₁(d/2; x²/4), the mean of e^{x·u₁} over unit vectors u: by a Bessel function, where it does not vanish."""
    order = dim / 2.0 - 1.0
    scaled = special.ive(order, x)
    by_bessel = special.gammaln(dim / 2.0) - order * np.log(x / 2.0) + np.log(scaled) + x
    usable = (x > 1e-3) & (scaled > 1e-250)
    found = np.where(usable, by_bessel, np.nan)
    small = ~usable & (x <= 50.0 + 2.0 * dim)
    if small.any():
        found[small] = _series(x[small], dim)
    return found


def _series(x: FloatArray, dim: int) -> FloatArray:
    """The same by its power series, for x up to 50 + 2d: beyond 100 + 4d terms each is under a tenth of the last."""
    k = np.arange(100 + 4 * dim)
    logs = 2.0 * k * np.log(np.maximum(x, 1e-300) / 2.0)[:, None] - special.gammaln(k + 1.0)
    logs -= special.gammaln(k + dim / 2.0) - special.gammaln(dim / 2.0)
    return np.asarray(special.logsumexp(logs, axis=1))


def only(parameters: Parameters, *names: str) -> None:
    """ValueError if there are other parameters than these."""
    wrong = next((name for name in parameters if name not in names), None)
    if wrong is not None:
        raise ValueError(f"the parameters are {' and '.join(names)}, got {short(wrong)}")


def vector(parameters: Parameters, name: str, length: int) -> FloatArray:
    """A parameter that is so many finite numbers."""
    found = check_real_array(field_of(parameters, name), name)
    if found.shape != (length,):
        raise ValueError(f"{name} must be {length} numbers, got {short(parameters[name])}")
    return found


def _rates(parameters: Parameters, length: int) -> FloatArray:
    found = vector(parameters, "rates", length)
    if not (found > 0.0).all():
        raise ValueError(f"rates must be positive, got {float(found.min())!r}")
    return found


def _radii(parameters: Parameters, bound: float) -> tuple[FloatArray, FloatArray]:
    """κ below the bound, and their weights."""
    kappas = check_real_array(field_of(parameters, "kappas"), "kappas")
    if kappas.ndim != 1 or kappas.size == 0:
        raise ValueError(f"kappas must be a list of numbers, got {short(parameters['kappas'])}")
    if not ((kappas >= 0.0) & (kappas < bound)).all():
        raise ValueError(f"kappas must lie from 0 to below the bound {bound:g}, got {short(kappas.tolist())}")
    weights = vector(parameters, "weights", kappas.size)
    if not ((weights >= 0.0).all() and 0.0 < weights.sum() <= 1.0 + 1e-12):
        raise ValueError(f"weights must not be negative, and must add up to at most 1, got {short(weights.tolist())}")
    return kappas, weights
