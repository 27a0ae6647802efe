"""How repeats of an item vary, and whether that fits the noise that was stated.

The tests are of Gaussian measurements, on all that was recorded, used for the proof or not: χ² tests, and for columns
that vary together the largest eigenvalue of a Wishart matrix. They do not add to the proof: they tell when its
assumptions look wrong.

*Eigenvalues of a Wishart matrix*, bounded for every size without simulation. W is the sum of n squares x xᵀ of standard
Gaussian vectors in dimension d: the scatter of repeats in units of the noise, if the noise is as stated. Two bounds on
the same probability hold, and the smaller is taken:

- Davidson and Szarek: √λ_max > √n + √d + t, and √λ_min < √n − √d − t, have probability at most exp(−t²/2) each;
- from the joint density of the eigenvalues (Muirhead, Aspects of Multivariate Statistical Theory, Theorem 3.2.18),
  K(d, n)·∏ l_i^((n−d−1)/2) e^(−l_i/2)·∏_{i<j} (l_i − l_j): with l_1 − l_j ≤ l_1 the density of the largest is at most
  K(d, n)/K(d−1, n−1)·l^((n+d−3)/2) e^(−l/2), and with l_i − l_d ≤ l_i that of the smallest at most
  K(d, n)/K(d−1, n+1)·l^((n−d−1)/2) e^(−l/2). For d = 1 both are the χ² density itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, gammainc, gammaincc, gammaincinv, gammaln, multigammaln

from coterie.evidence.exact.block_tests import by_numbers, item_means
from coterie.evidence.exact.two_way import two_way
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.noise import Noise
from coterie.tables.errors import TableError

NOISE_PROBABILITY = 1e-4
"""Of a noise that is called too large or too small in any column or direction, if it is right."""

ENOUGH_REPEATS = 20
"""Degrees of freedom from which on the spread of repeats is worth proposing as the noise."""

_UPPER = 0.99  # the probability with which the noise proposed is not too small


@dataclass(frozen=True)
class Spread:
    """How repeats of an item vary about its own mean: sums of products of the columns (d, d), over all items.

    If the noise is Gaussian with covariance Σ, the scatter is that of `freedom` measurements with mean 0. Columns of
    one measurement may vary together: a noise is large enough only if it is so in every direction, that is for every
    weighted sum of the columns.
    """

    scatter: FloatArray
    freedom: int

    @property
    def dim(self) -> int:
        """How many columns there are."""
        return len(self.scatter)

    @property
    def squares(self) -> FloatArray:
        """The sum of squares of each column."""
        return np.diag(self.scatter).copy()

    @property
    def deviations(self) -> FloatArray | None:
        """The pooled standard deviation within items, if any item was measured twice."""
        return None if self.freedom == 0 else np.sqrt(self.squares / self.freedom)

    @property
    def enough(self) -> int:
        """Degrees of freedom from which on a noise is proposed."""
        return max(ENOUGH_REPEATS, 3 * self.dim)

    def most_correlated(self) -> tuple[int, int, float] | None:
        """The two columns that vary together most, and their correlation, if it is more than chance (level 0.01).

        For independent columns r² is Beta(1/2, (freedom − 1)/2).
        """
        pairs = np.triu_indices(self.dim, 1)
        correlations = self._correlation()[pairs]
        if self.freedom < 3 or not correlations.size:
            return None
        k = int(np.argmax(np.abs(correlations)))
        r = float(np.clip(correlations[k], -1.0, 1.0))
        chance = float(betainc((self.freedom - 1) / 2.0, 0.5, 1.0 - r * r))
        return (int(pairs[0][k]), int(pairs[1][k]), r) if chance * correlations.size < 1.0 - _UPPER else None

    # Noises to propose: for Gaussian measurements, each is too small with probability at most 0.01.

    def upper(self) -> list[float] | None:
        """Standard deviations that are large enough in every direction, rounded up to three digits.

        Σ is at most scatter/x in every direction if the smallest eigenvalue of the scatter in units of Σ is at least
        x; and the scatter is at most its diagonal times the largest eigenvalue of its correlations.
        """
        least = smallest_above(1.0 - _UPPER, self.freedom, self.dim)
        if least == 0.0:
            return None
        largest = float(np.linalg.eigvalsh(self._correlation())[-1])
        return [_rounded_up(float(bound)) for bound in np.sqrt(self.squares * max(largest, 1.0) / least)]

    def upper_independent(self) -> list[float] | None:
        """Standard deviations that are large enough if the columns are known to vary independently.

        They are the χ² bounds of the columns, together at level 0.01, rounded up to three digits.
        """
        if self.freedom == 0:
            return None
        least = 2.0 * gammaincinv(self.freedom / 2.0, (1.0 - _UPPER) / self.dim)
        return [_rounded_up(float(bound)) for bound in np.sqrt(self.squares / least)]

    def upper_covariance(self) -> list[list[float]] | None:
        """A covariance that is large enough in every direction; it needs fewer measurements than `upper` does."""
        least = smallest_above(1.0 - _UPPER, self.freedom, self.dim)
        if least == 0.0 or not (self.squares > 0.0).all():
            return None
        bound = self.scatter / least
        deviations = np.sqrt(np.diag(bound))
        # Rounding moves an entry by at most half a thousandth of the two deviations, so any direction by d times that.
        bound = bound + np.diag(np.diag(bound)) * self.dim * 0.5e-3
        places = 3 - np.floor(np.log10(np.outer(deviations, deviations)))
        return [[round(float(x), int(n)) for x, n in zip(*row, strict=True)] for row in zip(bound, places, strict=True)]

    # Verdicts on the noise that was stated.

    def column_verdicts(self, noise: Noise) -> list[str | None]:
        """Of each column: whether the noise stated is "too small", "too large", or (None) may well be right.

        It is too large only if what would be proposed is smaller.
        """
        if self.freedom == 0:
            return [None] * self.dim
        stated = np.diag(noise.covariance)
        half, level = self.freedom / 2.0, self._level() / (2.0 * self.dim)
        ratio = self.squares / stated / 2.0
        over, under = gammaincc(half, ratio) < level, gammainc(half, ratio) < level
        upper = self.upper()
        under &= True if upper is None else np.sqrt(stated) > upper
        return ["too small" if o else "too large" if u else None for o, u in zip(over, under, strict=True)]

    def direction_verdict(self, noise: Noise) -> str | None:
        """Whether the noise stated is "too small" in any direction.

        In units of the noise the scatter is a Wishart matrix, if the noise is right: its largest eigenvalue is tested.
        """
        if self.freedom == 0 or self.dim == 1:
            return None
        white = noise.whiten(noise.whiten(self.scatter).T)
        largest = float(np.linalg.eigvalsh((white + white.T) / 2.0)[-1])
        return "too small" if largest_exceeds(largest, self.freedom, self.dim) < self._level() else None

    def _level(self) -> float:
        """Of each verdict: half goes to the columns and half to all directions, which for one column are the same."""
        return NOISE_PROBABILITY if self.dim == 1 else NOISE_PROBABILITY / 2.0

    def _correlation(self) -> FloatArray:
        """The correlations of the columns; those of a column that does not vary are 0."""
        scale = np.sqrt(np.where(self.squares > 0.0, self.squares, 1.0))
        correlation = self.scatter / np.outer(scale, scale)
        np.fill_diagonal(correlation, 1.0)
        return np.asarray(correlation)


def spread_of(arms: IntArray, rows: FloatArray, n_arms: int) -> Spread:
    """How the measurements of each item vary about its mean, summed over all items."""
    means, counts = means_of(arms, rows, n_arms)
    away = rows - means[arms]
    with np.errstate(over="ignore", invalid="ignore"):
        scatter = away.T @ away
    if not np.isfinite(scatter).all():
        largest = float(np.abs(away).max())
        raise TableError(f"measurements of one item differ by {largest:.3g}, too much to be squared: use larger units")
    return Spread((scatter + scatter.T) / 2.0, int(np.maximum(counts - 1, 0).sum()))


def spread_of_numbers(arms: IntArray, rows: FloatArray, blocks: IntArray | None) -> Spread:
    """The spread of rows with holes: of each number by itself, with the fewest degrees of freedom of any."""
    variances, freedoms = [], []
    for items, own, of_blocks, values in by_numbers(arms, rows, blocks):
        if of_blocks is None:
            spread = spread_of(own, values, len(items))
        elif len(values):
            fit = two_way(own, of_blocks, values)
            spread = Spread(fit.scatter, fit.freedom)
        else:
            spread = Spread(np.zeros((1, 1)), 0)
        freedoms.append(spread.freedom)
        variances.append(float(spread.scatter[0, 0]) / max(1, spread.freedom))
    return Spread(np.diag(variances) * min(freedoms), min(freedoms))


def means_of(arms: IntArray, rows: FloatArray, n_arms: int) -> tuple[FloatArray, IntArray]:
    """The mean of all measurements of each item (0 if there are none), and how many there are.

    Of rows with holes it is that of the numbers that are there, NaN if there are none.
    """
    counts = np.bincount(arms, minlength=n_arms)
    if np.isnan(rows).any():
        return item_means(arms, rows, n_arms), counts
    shift = rows.mean(axis=0)  # sums of small numbers keep their digits
    sums = np.zeros((n_arms, rows.shape[1]))
    np.add.at(sums, arms, rows - shift)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None] + shift, 0.0), counts


def _rounded_up(value: float) -> float:
    """A positive number rounded up to three digits."""
    if value <= 0.0:
        return 0.0
    digits = 2 - math.floor(math.log10(value))
    return float(f"{math.ceil(value * 10.0**digits * (1.0 - 1e-12)) / 10.0**digits:.3g}")


def largest_exceeds(value: float, freedom: int, dim: int) -> float:
    """An upper bound on the probability that the largest eigenvalue is above `value`."""
    n, d = max(freedom, dim), min(freedom, dim)  # the eigenvalues of x xᵀ and xᵀ x are the same
    if d == 0 or value <= 0.0:
        return 1.0
    shape, beyond = (n + d - 1) / 2.0, math.sqrt(value) - math.sqrt(n) - math.sqrt(d)
    return _smaller_bound(
        beyond, _constant(d, n) - _constant(d - 1, n - 1), shape, float(gammaincc(shape, value / 2.0))
    )


def smallest_falls_below(value: float, freedom: int, dim: int) -> float:
    """An upper bound on the probability that the smallest eigenvalue is below `value`."""
    n, d = freedom, dim
    if n < d:
        return 1.0
    if value <= 0.0:
        return 0.0
    shape, beyond = (n - d + 1) / 2.0, math.sqrt(n) - math.sqrt(d) - math.sqrt(value)
    return _smaller_bound(beyond, _constant(d, n) - _constant(d - 1, n + 1), shape, float(gammainc(shape, value / 2.0)))


def _smaller_bound(beyond: float, constant: float, shape: float, tail: float) -> float:
    """The smaller of the two bounds: `beyond` is t of the first, the others are parts of the second one's integral."""
    rough = math.exp(-(beyond**2) / 2.0) if beyond > 0.0 else 1.0
    if tail == 0.0:  # too small for a float
        return rough
    mass = shape * math.log(2.0) + gammaln(shape)  # the logarithm of ∫ l^(shape−1) e^(−l/2) dl
    return min(1.0, rough, math.exp(min(0.0, float(constant + mass + math.log(tail)))))


@lru_cache(maxsize=256)
def smallest_above(probability: float, freedom: int, dim: int) -> float:
    """A value below which the smallest eigenvalue falls with at most this probability; 0 if there is none."""
    if freedom < dim:
        return 0.0
    top = float(freedom)
    low = top
    while smallest_falls_below(low, freedom, dim) > probability:
        low /= 2.0
        if low < top * 1e-12:
            return 0.0
    if low == top:
        return top
    value = brentq(lambda x: smallest_falls_below(x, freedom, dim) - probability, low, 2.0 * low, xtol=1e-9 * low)
    return float(value) * (1.0 - 1e-6)  # on the safe side of the rounding


def _constant(d: int, n: int) -> float:
    """The logarithm of K(d, n)."""
    if d == 0:
        return 0.0
    return float(
        d * d / 2.0 * math.log(math.pi)
        - n * d / 2.0 * math.log(2.0)
        - multigammaln(n / 2.0, d)
        - multigammaln(d / 2.0, d)
    )
