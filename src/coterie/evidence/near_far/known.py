"""Near and far tests for Gaussian or sub-Gaussian noise of known covariance, or of one that is bounded from above.

Far tests and near tests of each coordinate are one-sided in a direction: mixtures of a few rates about the one that
suits the guess. Near tests of a distance are robust, or radial where the noise is known exactly: by the likelihood of
the length of a sum of contrasts for a mean of length κ, whatever its direction (docs/RESOLUTION.md has the proofs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, hyp0f1, ive

from coterie.evidence.near_far.family import Family, Guess, PairTests, Parameters, both_sides, column, dot
from coterie.evidence.pairs import log_sum
from coterie.problem.checks import FloatArray, IntArray

LEAST_DRIFT = 0.3
"""Of a bound: a test is made for a drift of at least this share of it, however hopeless the guess."""

MULTIPLES: FloatArray = np.array([0.25, 0.6, 1.0])
MULTIPLE_WEIGHTS: FloatArray = np.array([0.1, 0.45, 0.45])
"""Rates of a test as multiples of the one from the guess, and their weights, which add up to 1. Of the mixtures tried,
0.6 and 1 need the fewest results when the guess is right; 0.25 is for a guess that is far too hopeful."""
for _constant in (MULTIPLES, MULTIPLE_WEIGHTS):
    _constant.setflags(write=False)
_LOG_WEIGHTS = np.log(MULTIPLE_WEIGHTS)

_FLUCTUATION, _FLUCTUATION_BY_SIDES = 0.54, 0.48
"""Standard deviations by which the slowest of several sides lags, measured: 0.54 for one, 0.87 for 2, 1.97 for 20."""

RADII: FloatArray = np.array([0.0, 0.3, 0.55, 0.75, 0.9])
"""κ as shares of the bound: the lengths that a radial test mixes."""
RADII.setflags(write=False)

_SHARES, _INFORMATION = np.linspace(0.0, 0.96, 25), np.geomspace(0.05, 1e7, 600)
"""Lengths of gaps, as shares of a bound of 1, and information, at which forecasts of distance tests are looked up."""


def rate_mixture(sums: FloatArray, count: IntArray, rates: FloatArray, proxies: FloatArray) -> FloatArray:
    """log Σ_k w_k·exp(λ_k·T − n·λ_k²·q/2) for each side: sums T, rates, variance proxies q (n, sides), counts (n)."""
    rate = rates[..., None] * MULTIPLES
    terms = _LOG_WEIGHTS + rate * sums[..., None] - (0.5 * count[:, None, None]) * rate**2 * proxies[..., None]
    return log_sum(terms)


def one_sided_needed(drifts: FloatArray, proxies: FloatArray, level: float) -> FloatArray:
    """(n) forecasts of results until all sides reach the level: drifts (n, sides), proxies (sides) or as drifts.

    Infinite where a drift is not positive.
    """
    speeds = np.maximum(drifts, 0.0) ** 2 / proxies
    slowest = speeds.min(axis=-1)
    peers = np.maximum((speeds <= 2.25 * slowest[..., None]).sum(axis=-1), 1)
    lag = side_lag(peers)
    with np.errstate(divide="ignore"):
        return np.asarray((math.sqrt(2.0 * level) + lag) ** 2 / slowest)


def side_lag(peers: FloatArray) -> FloatArray:
    """Standard deviations by which the slowest of so many equally fast sides lags behind its mean."""
    return np.asarray(_FLUCTUATION + _FLUCTUATION_BY_SIDES * np.log(peers))


def log_hyp0f1(order: float, x: FloatArray) -> FloatArray:
    """log ₀F₁(order; x²/4) for x ≥ 0, where the function itself would overflow."""
    small = np.minimum(x, 50.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        direct = np.log(hyp0f1(order, small * small / 4.0))
        nu = order - 1.0  # ₀F₁(ν+1; x²/4) = Γ(ν+1)·(x/2)^(−ν)·I_ν(x)
        scaled = gammaln(order) - nu * np.log(x / 2.0) + np.log(ive(nu, x)) + x
    return np.asarray(np.where(np.isfinite(direct) & (x < 50.0), direct, scaled))


def log_radial(kappas: FloatArray, length: float | FloatArray, n: float | FloatArray, dim: int) -> FloatArray:
    """log h_κ(s) = log ₀F₁(d/2; κ²s²/4) − n·κ²/2: likelihoods of ‖S‖ = s against a mean of 0."""
    return log_hyp0f1(dim / 2.0, np.asarray(kappas * length)) - np.asarray(n) * kappas**2 / 2.0


class SidedTests(PairTests):
    """Sides Σ y_s, each a mixture over rates, which all have to reach the level.

    Of near tests y = offsets ∓ Y, coordinate by coordinate; of far tests, with `directions` (n, d), û·Y − offsets.
    `offsets`, `rates`, `proxies`: (n, sides).
    """

    def __init__(
        self, directions: FloatArray | None, offsets: FloatArray, rates: FloatArray, proxies: FloatArray
    ) -> None:
        super().__init__(*offsets.shape)
        self._directions, self._offsets, self._rates, self._proxies = directions, offsets, rates, proxies
        self._sums = np.zeros(offsets.shape)

    def add(self, which: IntArray, item: FloatArray, block: FloatArray) -> None:
        self.count[which] += 1
        self._sums[which] += gains(self._directions, self._offsets, which, item - block)
        self._take(which, rate_mixture(self._sums[which], self.count[which], self._rates[which], self._proxies[which]))


def gains(directions: FloatArray | None, offsets: FloatArray, which: IntArray, contrasts: FloatArray) -> FloatArray:
    """(k, sides): y of one contrast (k, d) for each of some tests, near ones without directions, far ones with them."""
    if directions is None:
        return np.asarray(offsets[which] - both_sides(contrasts))
    return np.asarray(dot(directions[which], contrasts)[:, None] - offsets[which])


class RobustTests(PairTests):
    """Distances are less than `bound`: ½ + ½·(a mixture about a guess), against the best of all larger ones.

    `bound`, `proxy`, `spread`: (n). `start`: (n, d).
    """

    def __init__(self, bound: FloatArray, proxy: FloatArray, start: FloatArray, spread: FloatArray) -> None:
        super().__init__(len(bound))
        self._bound, self._proxy, self._start, self._spread = bound, proxy, start, spread
        self._sum = np.zeros(start.shape)

    def add(self, which: IntArray, item: FloatArray, block: FloatArray) -> None:
        self._sum[which] += item - block
        self.count[which] += 1
        bound, proxy, start, spread = (
            part[which] for part in (self._bound, self._proxy, self._start, self._spread)
        )  # fmt: skip
        n, s = self.count[which] / proxy, self._sum[which] / proxy[:, None]
        square = dot(s, s)
        length = np.sqrt(square)
        fits = np.where(length >= n * bound, square / (2.0 * n), (length - n * bound / 2.0) * bound)
        # log E for a guess, as in `coterie.evidence.pairs.directed_log`
        guessed = (2.0 * dot(start, s) + spread * square - n * dot(start, start)) / (2.0 * (1.0 + n * spread))
        guessed -= 0.5 * s.shape[1] * np.log1p(n * spread)
        mixed = np.logaddexp(0.0, guessed) - math.log(2.0)
        # No mixture beats the best fit of all means: where both are huge, rounding would.
        most = np.maximum(n * bound - length, 0.0) ** 2 / (2.0 * n)
        self.evidence[which] = np.maximum(self.evidence[which], np.minimum(mixed - fits, most))


class RadialTests(PairTests):
    """Distances are less than `bound`, by lengths alone: only for noise that is known exactly.

    `bound`, `proxy`: (n). `kappas`, `weights`: (n, radii).
    """

    def __init__(self, bound: FloatArray, proxy: FloatArray, kappas: FloatArray, weights: FloatArray, dim: int) -> None:
        super().__init__(len(bound))
        self._bound, self._proxy, self._kappas, self._weights, self._dim = bound, proxy, kappas, weights, dim
        self._sum = np.zeros((len(bound), dim))

    def add(self, which: IntArray, item: FloatArray, block: FloatArray) -> None:
        self._sum[which] += item - block
        self.count[which] += 1
        n = self.count[which] / self._proxy[which]
        length = np.linalg.norm(self._sum[which] / self._proxy[which][:, None], axis=1)
        # Of those that are clearly far, differences of huge logarithms would be rounding alone.
        told = length <= n * self._bound[which] + 10.0 * np.sqrt(n * self._dim)
        which, n, length = which[told], n[told, None], length[told, None]
        with np.errstate(divide="ignore"):
            terms = np.log(self._weights[which]) + log_radial(self._kappas[which], length, n, self._dim)
        now = np.logaddexp.reduce(terms, axis=1) - log_radial(self._bound[which][:, None], length, n, self._dim)[:, 0]
        self.evidence[which] = np.maximum(self.evidence[which], now)


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

    def direction_proxy(self, directions: FloatArray) -> FloatArray:
        """(n) the variance of one result in directions (n, d), or more."""
        return np.asarray(np.einsum("ni,ij,nj->n", directions, self._covariance, directions))

    @property
    def distance_proxy(self) -> float:
        """The variance of one result in every direction, or more."""
        return self._proxy

    def near_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        v = 1.0 + 1.0 / ratio
        if self._by_coordinates:
            drifts = np.maximum(_sides(bound, guess.gap), LEAST_DRIFT * np.repeat(bound, 2, axis=1))
            rates = drifts / (v[:, None] * np.repeat(self.variance, 2))
            return [{"rates": row} for row in rates.tolist()]
        limit, length, doubt = bound[:, 0], np.linalg.norm(guess.gap, axis=1), guess.doubt.mean(axis=1)
        if self.is_radial:
            kappas = RADII * limit[:, None]
            away = kappas - np.minimum(length, RADII[-1] * limit)[:, None]
            weights = 0.05 + np.exp(-0.5 * away**2 / (doubt + (0.15 * limit) ** 2)[:, None])
            weights /= weights.sum(axis=1, keepdims=True)
            return [{"kappas": k, "weights": w} for k, w in zip(kappas.tolist(), weights.tolist(), strict=True)]
        with np.errstate(divide="ignore"):
            shrink = np.minimum(1.0, 0.8 * limit / length)
        starts, spreads = shrink[:, None] * guess.gap, doubt + 1e-3 * limit**2
        return [{"from": f, "spread": s} for f, s in zip(starts.tolist(), spreads.tolist(), strict=True)]

    @property
    def _by_coordinates(self) -> bool:
        return self.norm == "each" or self.dim == 1

    def far_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        directions = self.far_directions(bound, guess.gap)
        drifts = dot(directions, guess.gap) - self.far_offsets(bound, directions)
        proxies = (1.0 + 1.0 / ratio) * self.direction_proxy(directions)
        rates = np.maximum(drifts, LEAST_DRIFT * np.sqrt(proxies) / 3.0) / proxies
        return [{"direction": u, "rate": r} for u, r in zip(directions.tolist(), rates.tolist(), strict=True)]

    def far_speeds(self, bound: FloatArray, gap: FloatArray, directions: FloatArray) -> FloatArray:
        """(n) drifts of far tests in directions (n, d), in standard deviations of a result."""
        drifts = dot(directions, gap) - self.far_offsets(bound, directions)
        return np.asarray(drifts / np.sqrt(self.direction_proxy(directions)))

    def far_directions(self, bound: FloatArray, gap: FloatArray) -> FloatArray:
        """(n, d): the unit directions in which gaps are best shown to be far."""
        if self.norm == "distance":
            candidates = [gap, np.linalg.solve(self._covariance, gap.T).T]
        else:
            over = np.sign(gap) * np.maximum(np.abs(gap) - bound, 0.0) / self.variance
            candidates = [over, clearest(gap, (np.abs(gap) - bound) / np.sqrt(self.variance))]
        directions = np.tile(np.eye(self.dim)[0], (len(gap), 1))
        fastest = np.full(len(gap), -np.inf)
        for candidate in candidates:
            lengths = np.linalg.norm(candidate, axis=1)
            there = lengths > 0.0
            units = candidate / np.where(there, lengths, 1.0)[:, None]
            speeds = np.where(there, self.far_speeds(bound, gap, np.where(there[:, None], units, directions)), -np.inf)
            better = speeds > fastest
            directions, fastest = np.where(better[:, None], units, directions), np.where(better, speeds, fastest)
        return directions

    def near_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        v, n = 1.0 + 1.0 / ratio, len(parameters)
        if self._by_coordinates:
            rates = column(parameters, "rates").reshape(n, 2 * self.dim)
            return SidedTests(None, np.repeat(bound, 2, axis=1), rates, v[:, None] * np.repeat(self.variance, 2))
        proxy = v * self.distance_proxy
        if self.is_radial:
            kappas, weights = column(parameters, "kappas"), column(parameters, "weights")
            return RadialTests(bound[:, 0], proxy, kappas, weights, self.dim)
        start = column(parameters, "from").reshape(n, self.dim)
        return RobustTests(bound[:, 0], proxy, start, column(parameters, "spread"))

    def far_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        directions = column(parameters, "direction").reshape(len(parameters), self.dim)
        proxies = (1.0 + 1.0 / ratio) * self.direction_proxy(directions)
        offsets, rates = self.far_offsets(bound, directions), column(parameters, "rate")
        return SidedTests(directions, offsets[:, None], rates[:, None], proxies[:, None])

    def near_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        v = 1.0 + 1.0 / np.asarray(ratio)
        if self._by_coordinates:
            return np.asarray(v * one_sided_needed(_sides(bound, gap), np.repeat(self.variance, 2), level))
        limit = bound[..., 0]
        lengths = np.linalg.norm(gap, axis=1) / limit
        unit = v * self.distance_proxy / limit**2  # contrasts for one unit of information
        needed = _needed_information(self.is_radial, self.dim, round(level, 6))
        return np.asarray(unit * np.interp(lengths, _SHARES, needed, right=np.inf))

    def far_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        if self.norm == "each":
            over = np.maximum(np.abs(gap) - bound, 0.0)
            speeds = (over**2 / self.variance).sum(axis=1)
        else:
            lengths = np.linalg.norm(gap, axis=1)
            units = gap / np.where(lengths > 0.0, lengths, 1.0)[:, None]
            proxies = np.einsum("ni,ij,nj->n", units, self._covariance, units)
            speeds = np.maximum(lengths - bound[..., 0], 0.0) ** 2 / np.where(lengths > 0.0, proxies, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray((1.0 + 1.0 / np.asarray(ratio)) * far_information(level) / speeds)


def clearest(gap: FloatArray, clear: FloatArray) -> FloatArray:
    """(n, d): of each gap the signed coordinate direction in which it is clearest."""
    directions = np.zeros_like(gap)
    rows, best = np.arange(len(gap)), clear.argmax(axis=1)
    directions[rows, best] = np.where(gap[rows, best] < 0.0, -1.0, 1.0)
    return directions


def far_information(level: float) -> float:
    """Information that a far test needs for a unit of drift: more than a guess of the direction would say."""
    return (math.sqrt(2.0 * level) + 0.5) ** 2


def _sides(bound: FloatArray, gap: FloatArray) -> FloatArray:
    """(n, 2d) how far gaps (n, d) lie within the bounds: from above, from below, coordinate by coordinate."""
    return np.asarray(np.repeat(bound, 2, axis=-1) - both_sides(gap))


@lru_cache(128)
def _needed_information(is_radial: bool, dim: int, level: float) -> FloatArray:
    """The information n that a radial or a robust test needs at each of the shares of a bound of 1; infinite: none."""
    evidence_at = _radial_evidence if is_radial else _robust_evidence
    reached = [evidence_at(share, dim) >= level for share in _SHARES]
    return np.array([_INFORMATION[int(np.argmax(row))] if row.any() else np.inf for row in reached])


def _radial_evidence(share: float, dim: int) -> FloatArray:
    """The evidence of a radial test to expect at each information, for a gap of this share of a bound of 1."""
    n = _INFORMATION
    square = n**2 * share**2 + n * dim
    length = np.sqrt(square + 0.1 * np.sqrt(2.0 * dim * n**2 + 4.0 * share**2 * n**3))
    near = log_radial(np.full_like(n, share), length, n, dim) - 0.3
    return near - log_radial(np.ones_like(n), length, n, dim)


def _robust_evidence(share: float, dim: int) -> FloatArray:
    """The same for a robust test."""
    n = _INFORMATION
    along = np.sqrt(n**2 * share**2 + n * (dim - 0.5))
    fits = np.where(along >= n, along**2 / (2.0 * n), along - n / 2.0)
    mixed = np.logaddexp(0.0, n * share**2 / 2.0 - 0.5 * np.log1p(n * 0.1)) - math.log(2.0)
    return np.asarray(mixed - fits)
