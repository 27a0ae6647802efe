"""Do recorded measurements fit what is assumed about them: the noise stated, and the groups that were found?

Both are tests of Gaussian measurements on all that was recorded, used for the proof or not: χ² tests, and for columns
that vary together the largest eigenvalue of a Wishart matrix. They do not add to the proof: they tell when its
assumptions look wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, gammainc, gammaincc, gammainccinv, gammaincinv

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.noise import Noise
from coterie.tables.errors import TableError
from coterie.tables.wishart import largest_exceeds, smallest_above

MISFIT_PROBABILITY = 0.001
"""Of any misfit among all items, if the groups and the noise are right."""

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
        found = self._correlation()[pairs]
        if self.freedom < 3 or not found.size:
            return None
        k = int(np.argmax(np.abs(found)))
        r = float(np.clip(found[k], -1.0, 1.0))
        chance = float(betainc((self.freedom - 1) / 2.0, 0.5, 1.0 - r * r))
        return (int(pairs[0][k]), int(pairs[1][k]), r) if chance * found.size < 1.0 - _UPPER else None

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
        found = self.scatter / np.outer(scale, scale)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)


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


def means_of(arms: IntArray, rows: FloatArray, n_arms: int) -> tuple[FloatArray, IntArray]:
    """The mean of all measurements of each item (0 if there are none), and how many there are."""
    counts = np.bincount(arms, minlength=n_arms)
    shift = rows.mean(axis=0)  # sums of small numbers keep their digits
    sums = np.zeros((n_arms, rows.shape[1]))
    np.add.at(sums, arms, rows - shift)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None] + shift, 0.0), counts


def misfits(
    labels: Any, arms: IntArray, white: FloatArray, probability: float = MISFIT_PROBABILITY
) -> list[tuple[int, float]]:
    """Items whose mean is too far from that of their group, as (arm, χ²); `white`: measurements in units of the noise.

    With n measurements of an item and W of its group, the mean of the one minus the mean of the other is
    N(0, (1/n − 1/W)·I) if the group's items are alike. Over all items the level is `probability`. How many were
    recorded must not depend on their values. Then, if there are exactly K groups and the noise is as stated, a misfit
    is named with probability at most `probability` plus that of wrong groups: for the true groups, which are fixed,
    the χ² tests hold, whether or not they are found.
    """
    groups = np.asarray(labels)
    means, counts = means_of(arms, white, groups.size)
    center, totals = means_of(groups[arms], white, int(groups.max()) + 1)
    others = totals[groups] - counts  # measurements of the rest of the group
    tested = np.flatnonzero((counts > 0) & (others > 0))
    apart = ((means - center[groups])[tested] ** 2).sum(axis=1)
    chi2 = apart * counts[tested] * totals[groups[tested]] / others[tested]
    level = 2.0 * gammainccinv(white.shape[1] / 2.0, probability / groups.size)
    return [(int(arm), float(value)) for arm, value in zip(tested, chi2, strict=True) if value > level]


def _rounded_up(value: float) -> float:
    """A positive number rounded up to three digits."""
    if value <= 0.0:
        return 0.0
    digits = 2 - math.floor(math.log10(value))
    return float(f"{math.ceil(value * 10.0**digits * (1.0 - 1e-12)) / 10.0**digits:.3g}")
