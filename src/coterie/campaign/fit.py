"""Do recorded measurements fit what was said about them: the noise, and the groups that were found?

Both are χ² tests of Gaussian measurements on all that was recorded, used for the proof or not. They do not add to the
proof: they tell when its assumptions look wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.noise import Noise

MISFIT_PROBABILITY = 0.001
"""Of any misfit among all items, if the groups and the noise are right."""

NOISE_PROBABILITY = 1e-4
"""Of a noise that is called too large or too small in any column, if it is right."""

ENOUGH_REPEATS = 20
"""Degrees of freedom from which on the spread of repeats is worth proposing as the noise."""

_UPPER = 0.99  # the probability with which the noise proposed is not too small


@dataclass(frozen=True)
class Spread:
    """How repeats of an item vary about its own mean: sums of squares over all items, of each column."""

    squares: FloatArray
    freedom: int

    @property
    def deviations(self) -> FloatArray | None:
        """The pooled standard deviation within items, if any item was measured twice."""
        return None if self.freedom == 0 else np.sqrt(self.squares / self.freedom)

    def upper(self) -> list[float] | None:
        """Upper confidence bounds (0.99) of the standard deviations, rounded up to three digits."""
        if self.freedom == 0:
            return None
        least = 2.0 * gammaincinv(self.freedom / 2.0, 1.0 - _UPPER)
        return [_rounded_up(float(bound)) for bound in np.sqrt(self.squares / least)]

    def against(self, noise: Noise) -> list[str | None]:
        """Of each column: whether the noise stated is "too small", "too large", or (None) may well be right."""
        if self.freedom == 0:
            return [None] * len(self.squares)
        half, level = self.freedom / 2.0, NOISE_PROBABILITY / (2.0 * len(self.squares))
        ratio = self.squares / np.diag(noise.covariance) / 2.0
        over, under = gammaincc(half, ratio) < level, gammainc(half, ratio) < level
        return ["too small" if o else "too large" if u else None for o, u in zip(over, under, strict=True)]


def spread_of(arms: IntArray, rows: FloatArray, n_arms: int) -> Spread:
    """The spread of recorded measurements within items."""
    means, counts = means_of(arms, rows, n_arms)
    return Spread(((rows - means[arms]) ** 2).sum(axis=0), int(np.maximum(counts - 1, 0).sum()))


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
    """To three digits."""
    if value <= 0.0:
        return 0.0
    digits = 2 - math.floor(math.log10(value))
    return float(f"{math.ceil(value * 10.0**digits * (1.0 - 1e-12)) / 10.0**digits:.3g}")
