"""Evidence that two means are near, or far apart, from the results of an item and of a reference.

Written a second time, in plain NumPy and SciPy, so that no mistake is shared with whoever wrote the certificate.
Formulas and proofs: docs/RESOLUTION.md. A test is read at every number of contrasts up to n; its evidence is the least
over its sides of the largest value of each. Tests with as many contrasts are read together. Names: `ratio` is R,
`variance` is v = 1 + 1/R, `proxy` is q. Of counts (section 8), X are successes of the item in t trials, X' those of a
block of the reference in R·t; `item` and `reference` are the tilts a and b; `multipliers` are m of a near test and ν of
a far one, for each multiple of the tilts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from coterie.certificate.fields import field_of
from coterie.problem.checks import FloatArray, check_real_array, short

MULTIPLES = np.array([0.25, 0.6, 1.0])
LOG_WEIGHTS = np.log(np.array([0.1, 0.45, 0.45]))
"""Rates of a one-sided test as multiples of the stated one, and the logarithms of their weights, which sum to 1."""

MOST_STAKE = 0.999  # of what a bet could lose
LEAST_LOSS = 0.05  # of the width: a bet on nearness is never sized as if it could lose less
MOST_TILT = math.log(1e300)  # of one success: beyond, its exponential is no float

Parameters = Sequence[dict[str, Any]]
"""Of k tests, which all have parameters of the same names."""


@dataclass(frozen=True)
class Results:
    """What k tests with as many contrasts n and the same R read, in the user's units.

    Results of the items (k, n, d), and of the references, in blocks (k, n, R, d).
    """

    item: FloatArray
    blocks: FloatArray

    @property
    def ratio(self) -> int:
        """R: results of the reference in a block."""
        return int(self.blocks.shape[2])

    @property
    def variance(self) -> float:
        """v: of a contrast, in units of that of a result."""
        return 1.0 + 1.0 / self.ratio

    def contrasts(self, scale: FloatArray) -> FloatArray:
        """(k, n, d): Y_s in scaled units. Differences are formed first: no digits are lost to where the results lie."""
        origin = self.item[:, :1]
        return np.asarray(((self.item - origin) - (self.blocks - origin[:, :, None]).mean(axis=2)) / scale)


class Family(ABC):
    """The tests for one noise. `norm`: "each" or "distance"; `scale`: (d), what a unit is in the user's units.

    Bounds (k, d) are in scaled units; for the norm "distance" all entries of a row are the same distance. A ValueError
    or TypeError says what is wrong with the parameters.
    """

    def __init__(self, norm: str, scale: FloatArray) -> None:
        self.norm, self.scale, self.dim = norm, scale, scale.size

    @abstractmethod
    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        """(k): log E against "the means differ by `bound` or more"."""

    @abstractmethod
    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        """(k): log E against "the means differ by `bound` or less"."""

    def coordinate_bounds(self, bound: FloatArray) -> FloatArray:
        """Bounds for each coordinate that imply the bound: for a distance, of a cube within the ball."""
        return bound / math.sqrt(self.dim) if self.norm == "distance" else bound

    def sides(self, contrasts: FloatArray, bound: FloatArray) -> FloatArray:
        """(k, n, 2d): how far contrasts lie within the bounds, from above and from below, coordinate by coordinate."""
        bounds = self.coordinate_bounds(bound)[:, None]
        both = np.stack([bounds - contrasts, bounds + contrasts], axis=3)
        return both.reshape(*contrasts.shape[:2], 2 * self.dim)

    def direction(self, parameters: Parameters) -> FloatArray:
        """(k, d): û of far tests."""
        directions = vectors(parameters, "direction", self.dim)
        if not (np.abs(directions).max(axis=1) > 0.0).all():
            raise ValueError("direction must not be zero in all coordinates")
        return directions

    def offset(self, direction: FloatArray, bound: FloatArray) -> FloatArray:
        """(k): β, the most that a difference which is not far can have in a direction."""
        if self.norm == "distance":
            return np.asarray(bound[:, 0] * np.sqrt((direction**2).sum(axis=1)))
        return np.asarray((np.abs(direction) * bound).sum(axis=1))

    def drifts(self, results: Results, direction: FloatArray, bound: FloatArray) -> FloatArray:
        """(k, n, 1): y of far tests."""
        along = np.einsum("knd,kd->kn", results.contrasts(self.scale), direction)
        return np.asarray(along - self.offset(direction, bound)[:, None])[:, :, None]


class SubGaussian(Family):
    """Noise of a known covariance, or less: `proxies` (d) bound the variance of each coordinate, in scaled units."""

    @abstractmethod
    def proxy(self, direction: FloatArray) -> FloatArray:
        """(k): a bound on the variance of a result in directions (k, d)."""

    @property
    @abstractmethod
    def proxies(self) -> FloatArray:
        """(d) of each coordinate."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """A bound on the variance of a result in any direction of length 1."""

    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        contrasts = results.contrasts(self.scale)
        if self.norm == "distance" and "rates" not in parameters[0]:
            return self.near_distance(contrasts, results.variance, bound[:, 0], parameters)
        only(parameters, "rates")
        rates = vectors(parameters, "rates", 2 * self.dim, positive=True)
        proxies = results.variance * np.repeat(self.proxies, 2)
        return _one_sided(self.sides(contrasts, bound), rates, proxies)

    def near_distance(
        self, contrasts: FloatArray, variance: float, bound: FloatArray, parameters: Parameters
    ) -> FloatArray:  # fmt: skip
        """The robust test of a distance."""
        only(parameters, "from", "spread")
        start, spread = vectors(parameters, "from", self.dim), positives(parameters, "spread")[:, None]
        proxy = variance * self.largest
        n = np.arange(1, contrasts.shape[1] + 1) / proxy
        total = np.cumsum(contrasts, axis=1) / proxy
        lengths = np.sqrt((total**2).sum(axis=2))
        growth, limit = 1.0 + n * spread, bound[:, None]
        fit = 2.0 * np.einsum("knd,kd->kn", total, start) + spread * lengths**2
        fit -= n * (start**2).sum(axis=1)[:, None]
        mixed = fit / (2.0 * growth) - 0.5 * self.dim * np.log(growth)
        null = np.where(lengths >= n * limit, lengths**2 / (2.0 * n), limit * lengths - n * limit**2 / 2.0)
        return np.asarray((np.logaddexp(0.0, mixed) - math.log(2.0) - null).max(axis=1))

    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        only(parameters, "direction", "rate")
        direction, rate = self.direction(parameters), positives(parameters, "rate")
        proxies = results.variance * self.proxy(direction)
        return _one_sided(self.drifts(results, direction, bound), rate[:, None], proxies[:, None])


class KnownCovariance(SubGaussian):
    """`covariance` (d, d) in scaled units; `exact`: it is that, and not less."""

    def __init__(self, norm: str, scale: FloatArray, covariance: FloatArray, exact: bool) -> None:
        super().__init__(norm, scale)
        self._covariance = covariance
        first = float(covariance[0, 0])
        spherical = np.allclose(covariance, first * np.eye(self.dim), rtol=1e-12, atol=0.0)
        self._radial = exact and spherical

    def proxy(self, direction: FloatArray) -> FloatArray:
        return np.asarray(((direction @ self._covariance) * direction).sum(axis=1))

    @property
    def proxies(self) -> FloatArray:
        return np.diag(self._covariance)

    @property
    def largest(self) -> float:
        return float(np.linalg.eigvalsh(self._covariance)[-1])

    def near_distance(
        self, contrasts: FloatArray, variance: float, bound: FloatArray, parameters: Parameters
    ) -> FloatArray:  # fmt: skip
        """The radial test where the parameters are of one, which only exactly known noise allows; else the robust."""
        if "kappas" not in parameters[0]:
            return super().near_distance(contrasts, variance, bound, parameters)
        if not self._radial:
            raise ValueError(
                "radial tests (kappas) need noise that is stated as exactly known, the same in all directions"
            )
        only(parameters, "kappas", "weights")
        kappas, weights = (column[:, None] for column in _radii(parameters, bound))
        proxy = variance * self.largest
        n = (np.arange(1, contrasts.shape[1] + 1) / proxy)[:, None]
        lengths = (np.sqrt((np.cumsum(contrasts, axis=1) ** 2).sum(axis=2)) / proxy)[:, :, None]
        terms = np.where(weights > 0.0, np.log(weights) + _log_radial(kappas, lengths, n, self.dim), -np.inf)
        null = _log_radial(bound[:, None, None], lengths, n, self.dim)[:, :, 0]
        return np.asarray((special.logsumexp(terms, axis=2) - null).max(axis=1))


class BoundedCovariance(SubGaussian):
    """Gaussian noise of unknown covariance: `upper` (d) bounds the variance of each coordinate, in scaled units."""

    def __init__(self, norm: str, scale: FloatArray, shape: str, upper: FloatArray) -> None:
        super().__init__(norm, scale)
        self._full, self._upper = shape == "full", upper

    def proxy(self, direction: FloatArray) -> FloatArray:
        if self._full:  # the coordinates may depend on one another in any way
            return np.asarray((np.abs(direction) @ np.sqrt(self._upper)) ** 2)
        return np.asarray(direction**2 @ self._upper)

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

    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        only(parameters, "rates")
        losses = np.maximum(self._widths - self.coordinate_bounds(bound), LEAST_LOSS * self._widths)
        y = self.sides(results.contrasts(self.scale), bound)
        return _betted(y, vectors(parameters, "rates", 2 * self.dim, positive=True), np.repeat(losses, 2, axis=1))

    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        only(parameters, "direction", "rate")
        direction, rate = self.direction(parameters), positives(parameters, "rate")
        losses = np.abs(direction) @ self._widths + self.offset(direction, bound)
        return _betted(self.drifts(results, direction, bound), rate[:, None], losses[:, None])


class CountResults(Family):
    """Each number of a result counts the successes of `trials` independent trials."""

    def __init__(self, norm: str, scale: FloatArray, trials: int) -> None:
        super().__init__(norm, scale)
        self._trials = trials

    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        a, b, m = _tilts(parameters, 2 * self.dim, (2 * self.dim, MULTIPLES.size))
        if not (m >= 0.0).all():
            raise ValueError(f"the multipliers of a near test must not be negative, got {float(m.min())!r}")
        limits = self.coordinate_bounds(bound) * self.scale / self._trials
        least, ratio = np.full(len(bound), np.inf), results.ratio
        for side in range(2 * self.dim):
            c, sign = side // 2, 1.0 - 2.0 * (side % 2)
            nu, tilt, other = -sign * m[:, side], a[:, side, None], b[:, side, None]
            costs = _largest(tilt * MULTIPLES, nu) - m[:, side] * limits[:, c, None]
            costs += ratio * _largest(other * MULTIPLES, -nu / ratio)
            total = np.cumsum(tilt * results.item[:, :, c] + other * results.blocks[:, :, :, c].sum(axis=2), axis=1)
            least = np.minimum(least, _mixture(total, self._trials * costs))
        return least

    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        a, b, nu = _tilts(parameters, self.dim, (MULTIPLES.size, self.dim))
        factors, ratio = MULTIPLES[:, None], results.ratio
        costs = _largest(a[:, None] * factors, nu) + ratio * _largest(b[:, None] * factors, -nu / ratio)
        costs = costs.sum(axis=2)
        if self.norm == "distance":
            costs += bound[:, :1] * np.sqrt(((nu * self.scale) ** 2).sum(axis=2)) / self._trials
        else:
            costs += (np.abs(nu) * (bound * self.scale / self._trials)[:, None]).sum(axis=2)
        item, reference = np.einsum("knd,kd->kn", results.item, a), np.einsum("knrd,kd->kn", results.blocks, b)
        return _mixture(np.cumsum(item + reference, axis=1), self._trials * costs)


def _one_sided(y: FloatArray, rates: FloatArray, proxies: FloatArray) -> FloatArray:
    """(k): the mixture over rates for each side, y (k, n, sides), at its largest; of that the least."""
    n, least = np.arange(1, y.shape[1] + 1)[:, None], np.full(len(y), np.inf)
    proxies = np.broadcast_to(proxies, rates.shape)
    totals = np.cumsum(y, axis=1)
    for side in range(y.shape[2]):
        rate = (rates[:, side, None] * MULTIPLES)[:, None]
        terms = LOG_WEIGHTS + rate * totals[:, :, side, None] - n * (0.5 * rate**2 * proxies[:, side, None, None])
        least = np.minimum(least, special.logsumexp(terms, axis=2).max(axis=1))
    return least


def _betted(y: FloatArray, rates: FloatArray, losses: FloatArray) -> FloatArray:
    """(k): mixtures of products of bets for each side, y (k, n, sides), none below −losses; the least of the best."""
    least = np.full(len(y), np.inf)
    for side in range(y.shape[2]):
        stakes = np.minimum(rates[:, side, None] * MULTIPLES, MOST_STAKE / losses[:, side, None])[:, None]
        terms = LOG_WEIGHTS + np.cumsum(np.log1p(stakes * y[:, :, side, None]), axis=1)
        least = np.minimum(least, special.logsumexp(terms, axis=2).max(axis=1))
    return least


def _log_radial(kappas: FloatArray, lengths: FloatArray, n: FloatArray, dim: int) -> FloatArray:
    """log h_κ(s) = log ₀F₁(d/2; κ²s²/4) − nκ²/2 at lengths s."""
    return _log_mean_exponential(kappas * lengths, dim) - n * kappas**2 / 2.0


def _log_mean_exponential(x: FloatArray, dim: int) -> FloatArray:
    """log ₀F₁(d/2; x²/4), the mean of e^{x·u₁} over unit vectors u: by a Bessel function, where it does not vanish."""
    order = dim / 2.0 - 1.0
    scaled = special.ive(order, x)
    by_bessel = special.gammaln(dim / 2.0) - order * np.log(x / 2.0) + np.log(scaled) + x
    usable = (x > 1e-3) & (scaled > 1e-250)
    logs = np.where(usable, by_bessel, np.nan)
    small = ~usable & (x <= 50.0 + 2.0 * dim)
    if small.any():
        logs[small] = _series(x[small], dim)
    return logs


def _series(x: FloatArray, dim: int) -> FloatArray:
    """The same by its power series, for x up to 50 + 2d: beyond 100 + 4d terms each is under a tenth of the last."""
    k = np.arange(100 + 4 * dim)
    logs = 2.0 * k * np.log(np.maximum(x, 1e-300) / 2.0)[:, None] - special.gammaln(k + 1.0)
    logs -= special.gammaln(k + dim / 2.0) - special.gammaln(dim / 2.0)
    return np.asarray(special.logsumexp(logs, axis=1))


def only(parameters: Parameters, *names: str) -> None:
    """ValueError if there are other parameters than these."""
    wrong = next((name for name in parameters[0] if name not in names), None)
    if wrong is not None:
        raise ValueError(f"the parameters are {' and '.join(names)}, got {short(wrong)}")


def vectors(parameters: Parameters, name: str, length: int, positive: bool = False) -> FloatArray:
    """(k, length): a parameter that is so many finite numbers in each test, all of them positive if that is asked."""
    rows = check_real_array([field_of(entry, name) for entry in parameters], name)
    if rows.shape != (len(parameters), length):
        raise ValueError(f"{name} must be {length} numbers, got {short(parameters[0][name])}")
    if positive and not (rows > 0.0).all():
        raise ValueError(f"{name} must be positive, got {float(rows.min())!r}")
    return rows


def positives(parameters: Parameters, name: str) -> FloatArray:
    """(k): a parameter that is one positive number in each test."""
    numbers = check_real_array([field_of(entry, name) for entry in parameters], name)
    if numbers.ndim != 1:
        raise TypeError(f"{name} must be a single number, got {short(parameters[0][name])}")
    if not (numbers > 0.0).all():
        raise ValueError(f"{name} must be positive, got {float(numbers.min())!r}")
    return numbers


def _radii(parameters: Parameters, bound: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(k, radii): κ below the bounds (k), and their weights."""
    kappas = check_real_array([field_of(entry, "kappas") for entry in parameters], "kappas")
    if kappas.ndim != 2 or kappas.shape[1] == 0:
        raise ValueError(f"kappas must be a list of numbers, got {short(parameters[0]['kappas'])}")
    if not ((kappas >= 0.0) & (kappas < bound[:, None])).all():
        raise ValueError(f"kappas must lie from 0 to below the bound {bound[0]:g}, got {short(kappas[0].tolist())}")
    weights = vectors(parameters, "weights", kappas.shape[1])
    total = weights.sum(axis=1)
    if not ((weights >= 0.0).all() and (total > 0.0).all() and (total <= 1.0 + 1e-12).all()):
        raise ValueError(
            f"weights must not be negative, and must add up to at most 1, got {short(weights[0].tolist())}"
        )
    return kappas, weights


def _mixture(total: FloatArray, costs: FloatArray) -> FloatArray:
    """(k): the largest log Σ_j w_j·exp(j·total_n − n·cost_j) over n, for totals (k, n) and costs (k, multiples)."""
    n = np.arange(1, total.shape[1] + 1)[:, None]
    terms = LOG_WEIGHTS + total[:, :, None] * MULTIPLES - n * costs[:, None]
    return np.asarray(special.logsumexp(terms, axis=2).max(axis=1))


def _largest(tilts: FloatArray, nu: FloatArray) -> FloatArray:
    """φ: the largest log(1 + p·(e^a − 1)) − ν·p over p from 0 to 1, at an end or where its slope is 0."""
    tilts, nu = np.broadcast_arrays(tilts, nu)
    slope = np.expm1(tilts)
    between = 1.0 / np.where(nu == 0.0, np.nan, nu) - 1.0 / np.where(slope == 0.0, np.nan, slope)
    inside = (between > 0.0) & (between < 1.0)
    rate = np.where(inside, between, 0.0)
    values = np.log1p(rate * slope) - nu * rate  # concave in p: no other point can be larger
    return np.asarray(np.maximum(np.maximum(values, tilts - nu), 0.0))


def _tilts(parameters: Parameters, length: int, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    only(parameters, "item", "reference", "multipliers")
    a, b = vectors(parameters, "item", length), vectors(parameters, "reference", length)
    multipliers = check_real_array([field_of(entry, "multipliers") for entry in parameters], "multipliers")
    if multipliers.shape != (len(parameters), *shape):
        wrong = short(parameters[0]["multipliers"])
        raise ValueError(f"multipliers must be {shape[0]} rows of {shape[1]}, got {wrong}")
    if max(np.abs(a).max(), np.abs(b).max()) > MOST_TILT:
        raise ValueError(f"tilts must be at most {MOST_TILT:g}, got {short([a[0].tolist(), b[0].tolist()])}")
    return a, b, multipliers
