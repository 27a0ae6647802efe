"""Worlds whose results are the means plus noise: Gaussian, heavy-tailed, skew, with outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_positive, check_real, short

LOGNORMAL, EXPONENTIAL = "lognormal", "exponential"
SKEW_SHAPES = (LOGNORMAL, EXPONENTIAL)


class AddedNoise:
    """A world whose results are the means plus noise that has nothing to do with arms and means."""

    def noise(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """The noise of n results, (n, d)."""
        raise NotImplementedError

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        """Results of these arms, whose means are the rows of `means`."""
        return means + self.noise(rng, *means.shape)


@dataclass(frozen=True)
class Normal(AddedNoise):
    """Gaussian noise, the same in every direction. Normal() is the world of `world=None`.

    Parameters
    ----------
    sd : float
        The standard deviation.
    """

    sd: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sd", check_positive(self.sd, "sd"))

    def noise(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        return self.sd * rng.standard_normal((n, dim))


@dataclass(frozen=True)
class Student(AddedNoise):
    """Heavy tails: each number of a result varies by Student's t, on its own.

    Scaled to variance 1 if df > 2. With fewer there is no variance, and t is taken as it is.

    Parameters
    ----------
    df : float
        Degrees of freedom, at least 1.

    Examples
    --------
    >>> import coterie
    >>> instance = coterie.Instance([0, 0, 1], [[0.0], [4.0]])
    >>> trials = coterie.simulate(instance, noise=None, world=coterie.worlds.Student(3), trials=2)
    """

    df: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "df", check_positive(self.df, "df"))
        if self.df < 1.0:
            raise ValueError(f"df must be at least 1: with {self.df:g} results would soon be too large for floats")

    def noise(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        scale = math.sqrt((self.df - 2.0) / self.df) if self.df > 2.0 else 1.0
        return scale * rng.standard_t(self.df, (n, dim))


@dataclass(frozen=True)
class Skewed(AddedNoise):
    """Skew noise with mean 0 and variance 1 in each number of a result, each on its own.

    Parameters
    ----------
    shape : {"lognormal", "exponential"}
        The distribution.
    sigma : float
        Of "lognormal": the standard deviation of the logarithm; the larger, the more skew.
    """

    shape: str = LOGNORMAL
    sigma: float = 1.0

    def __post_init__(self) -> None:
        if self.shape not in SKEW_SHAPES:
            raise ValueError(
                f"the shape of skew noise must be one of {', '.join(SKEW_SHAPES)}, got {short(self.shape)}"
            )
        object.__setattr__(self, "sigma", check_positive(self.sigma, "sigma"))
        if self.sigma > 5.0:
            raise ValueError(f"sigma must be at most 5, or hardly a result would be above the mean, got {self.sigma:g}")

    def noise(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        if self.shape == EXPONENTIAL:
            return rng.standard_exponential((n, dim)) - 1.0
        square = self.sigma * self.sigma
        deviation = math.exp(0.5 * square) * math.sqrt(math.expm1(square))
        return np.asarray((np.exp(self.sigma * rng.standard_normal((n, dim))) - math.exp(0.5 * square)) / deviation)


@dataclass(frozen=True)
class Contaminated(AddedNoise):
    """Outliers: a share of the results, at random, has another standard deviation in all its numbers than 1.

    Parameters
    ----------
    share : float
        Of the results, in [0, 1].
    sd : float
        The standard deviation of outliers.
    """

    share: float
    sd: float

    def __post_init__(self) -> None:
        share = check_real(self.share, "share")
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"the share of outliers must lie between 0 and 1, got {share:g}")
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "sd", check_positive(self.sd, "sd"))

    def noise(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        scales = np.where(rng.random(n) < self.share, self.sd, 1.0)
        return scales[:, None] * rng.standard_normal((n, dim))
