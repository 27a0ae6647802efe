"""What may be stated about a noise that is not known: any, Gaussian, counts, times, bounds, a covariance, symmetry.

A statement says nothing about how many numbers a measurement has, unless it must; `coterie.problem.families.noise_of`
makes a model of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from coterie.problem.checks import FloatArray, check_count, check_real_array, short

SHAPES = ("scalar", "diagonal", "full")


class _Statement:
    """What all statements have; by default any finite numbers will do, and there is nothing more to say."""

    def check(self, values: FloatArray) -> None:
        """ValueError for the first of these results (n, d) that contradicts what was stated."""

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        return {}


@dataclass(frozen=True)
class AnyNoise(_Statement):
    """Nothing is known about the noise.

    Parameters
    ----------
    shape : bool
        Whether groups are also looked for that differ in their spread or shape, and not only in their location.
        `noise=None` is `AnyNoise()`. What is claimed and assumed is the same either way: equal items have the same
        distribution.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(6, n_clusters=2, dim=1, noise=coterie.AnyNoise(shape=True))
    """

    kind: ClassVar[str] = "any"
    assumption: ClassVar[str] = (
        "results of items in one group have the same distribution, whatever it is, and do not depend on one another"
    )
    shape: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.shape, bool):
            raise ValueError(f"the shape of any noise must be True or False, got {short(self.shape)}")

    @property
    def words(self) -> str:
        """The noise in a few words."""
        return "any noise, groups told apart by spread and shape too" if self.shape else "any noise"

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values; nothing if it is what None says."""
        return {"shape": True} if self.shape else {}


@dataclass(frozen=True)
class Gaussian(_Statement):
    """Gaussian noise with an unknown covariance that all items share.

    Parameters
    ----------
    shape : {"full", "diagonal", "scalar"}
        Nothing is known about the covariance; the numbers of a result vary independently; they also have one standard
        deviation.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(6, n_clusters=2, dim=3, noise=coterie.Gaussian("diagonal"))
    """

    kind: ClassVar[str] = "gaussian"
    shape: str = "full"

    def __post_init__(self) -> None:
        if not isinstance(self.shape, str) or self.shape not in SHAPES:
            raise ValueError(f"the shape of Gaussian noise must be one of {', '.join(SHAPES)}, got {short(self.shape)}")

    @property
    def words(self) -> str:
        """The noise in a few words."""
        return {
            "full": "Gaussian noise of unknown covariance",
            "diagonal": "Gaussian noise of unknown standard deviations, independent for each number",
            "scalar": "Gaussian noise of one unknown standard deviation",
        }[self.shape]

    @property
    def assumption(self) -> str:
        """What is assumed, in one sentence."""
        shape = {
            "full": "one covariance",
            "diagonal": "one standard deviation for each number of a result, and these numbers vary independently",
            "scalar": "one standard deviation for all numbers of a result, and these vary independently",
        }[self.shape]
        return (
            f"results are Gaussian and do not depend on one another; all items share {shape}, which need not be known"
        )

    def parameters(self) -> dict[str, Any]:
        return {"shape": self.shape}


MOST_TRIALS = 10**9
"""Of one count: beyond, sums of counts are not whole numbers in floats any more."""

LARGEST = 1e100
"""Results of a noise of unknown size must be smaller than this: their squares are added up."""


@dataclass(frozen=True)
class Counts(_Statement):
    """Each number of a result is a count of successes out of independent trials.

    Parameters
    ----------
    trials : int
        Of one count; 1: single 0 or 1 results.

    Examples
    --------
    >>> import coterie
    >>> coterie.Counts(100).words
    'counts out of 100 trials'
    """

    kind: ClassVar[str] = "counts"
    trials: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", check_count(self.trials, "trials", 1))
        if self.trials > MOST_TRIALS:
            raise ValueError(f"trials must be at most {MOST_TRIALS}, got {short(self.trials)}")

    @property
    def words(self) -> str:
        """The noise in a few words."""
        return "results of 0 or 1" if self.trials == 1 else f"counts out of {self.trials} trials"

    @property
    def assumption(self) -> str:
        """What is assumed, in one sentence."""
        form = "0 or 1" if self.trials == 1 else f"a number of successes out of {self.trials} trials"
        return (
            f"each number of a result is {form}, all trials are independent, those of different numbers too, "
            "and items of one group succeed at the same rates"
        )

    def check(self, values: FloatArray) -> None:
        wrong = (values != np.floor(values)) | (values < 0) | (values > self.trials)
        if wrong.any():
            first = float(values[wrong][0])
            raise ValueError(f"a count of successes must be a whole number from 0 to {self.trials}, got {first:g}")

    def parameters(self) -> dict[str, Any]:
        return {"trials": self.trials}


MOST_EVENTS = 10**9
"""Of one count of events, as for `MOST_TRIALS`."""


@dataclass(frozen=True)
class Poisson(_Statement):
    """Each number of a result counts events that come independently at a rate, without a number of trials.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(6, n_clusters=2, dim=1, noise=coterie.Poisson())
    """

    kind: ClassVar[str] = "poisson"
    words: ClassVar[str] = "Poisson counts of events"
    assumption: ClassVar[str] = (
        "each number of a result is a Poisson count of events, counts do not depend on one another, those of different "
        "numbers neither, and items of one group have the same rates"
    )

    def check(self, values: FloatArray) -> None:
        wrong = (values != np.floor(values)) | (values < 0) | (values > MOST_EVENTS)
        if wrong.any():
            first = float(values[wrong][0])
            raise ValueError(f"a count of events must be a whole number from 0 to {MOST_EVENTS}, got {first:g}")


@dataclass(frozen=True)
class Exponential(_Statement):
    """Each number of a result is a waiting time with an exponential distribution.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(6, n_clusters=2, dim=1, noise=coterie.Exponential())
    """

    kind: ClassVar[str] = "exponential"
    words: ClassVar[str] = "exponential waiting times"
    assumption: ClassVar[str] = (
        "each number of a result is an exponential waiting time, times do not depend on one another, those of "
        "different numbers neither, and items of one group have the same mean times"
    )

    def check(self, values: FloatArray) -> None:
        if (values <= 0).any():
            first = float(values[values <= 0][0])
            raise ValueError(f"a waiting time must be above 0 (record it finely enough), got {first:g}")


@dataclass(frozen=True, repr=False)
class Bounded(_Statement):
    """Results lie between two bounds; items of a group have equal means, and nothing else is assumed.

    Parameters
    ----------
    lo, hi : float or array-like
        The bounds: a number each, or one for each number of a result.

    Examples
    --------
    >>> import coterie
    >>> stars = coterie.Session(5, dim=1, resolution=(0.2, 0.8), noise=coterie.Bounded(1, 5))
    """

    kind: ClassVar[str] = "bounded"
    lo: Any  # a tuple of numbers, whatever was given
    hi: Any

    def __post_init__(self) -> None:
        bounds = []
        for name, given in (("lo", self.lo), ("hi", self.hi)):
            value = check_real_array(given, name)
            if value.ndim > 1 or value.size == 0:
                raise ValueError(f"{name} must be a number, or one for each number of a result, got {short(given)}")
            if (np.abs(value) > LARGEST).any():
                raise ValueError(f"{name} must lie within {LARGEST:g} of 0, got {short(given)}")
            bounds.append(np.atleast_1d(value))
        low, high = bounds
        if low.size != high.size and 1 not in (low.size, high.size):
            raise ValueError(f"lo has {low.size} numbers and hi {high.size}: give as many, or one for all")
        low, high = np.broadcast_arrays(low, high)
        if (low >= high).any():
            i = int(np.argmax(low >= high))
            raise ValueError(f"lo must be below hi, got {float(low[i]):g} and {float(high[i]):g}")
        object.__setattr__(self, "lo", tuple(low.tolist()))
        object.__setattr__(self, "hi", tuple(high.tolist()))

    def __repr__(self) -> str:
        lo, hi = (bounds[0] if len(bounds) == 1 else bounds for bounds in (self.lo, self.hi))
        return f"Bounded({lo!r}, {hi!r})"

    @property
    def range_in_words(self) -> str:
        """Between which numbers results lie."""
        lo, hi = (f"{bounds[0]:g}" if len(bounds) == 1 else short(list(bounds)) for bounds in (self.lo, self.hi))
        return f"between {lo} and {hi}"

    @property
    def words(self) -> str:
        """The noise in a few words."""
        return f"results {self.range_in_words}"

    @property
    def assumption(self) -> str:
        """What is assumed, in one sentence."""
        return (
            f"results lie {self.range_in_words} and do not depend on one another, and items of one group have the same "
            "mean; nothing else"
        )

    def check(self, values: FloatArray) -> None:
        wrong = (values < self.lo) | (values > self.hi)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0])
            lo, hi = (np.broadcast_to(bounds, values.shape)[place] for bounds in (self.lo, self.hi))
            raise ValueError(f"a number must lie between {lo:g} and {hi:g}, as was stated, got {values[place]:g}")

    def parameters(self) -> dict[str, Any]:
        return {"lo": list(self.lo), "hi": list(self.hi)}


@dataclass(frozen=True, repr=False)
class AtMost(_Statement):
    """Results have a covariance of at most this one, whatever their distribution; items of a group have equal means.

    Parameters
    ----------
    covariance : float or array-like
        A standard deviation, d of them, or a d x d covariance, as for a known noise.

    Examples
    --------
    >>> import coterie
    >>> coterie.AtMost(2.0).words
    'noise with a standard deviation of at most 2.0'
    """

    kind: ClassVar[str] = "at-most"
    assumption: ClassVar[str] = (
        "results vary by no more than the covariance stated, whatever their distribution, and do not depend on one "
        "another, and items of one group have the same mean; nothing else"
    )
    covariance: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", check_real_array(self.covariance, "covariance").tolist())

    def __repr__(self) -> str:
        return f"AtMost({short(self.covariance)})"

    def __hash__(self) -> int:
        return hash(repr(self.covariance))

    @property
    def words(self) -> str:
        """The noise in a few words."""
        form = "covariance" if np.ndim(self.covariance) == 2 else "standard deviation"
        return f"noise with a {form} of at most {short(self.covariance)}"

    def parameters(self) -> dict[str, Any]:
        return {"covariance": self.covariance}


@dataclass(frozen=True)
class Symmetric(_Statement):
    """Noise that is symmetric about the mean of its item, and may differ from item to item.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(6, n_clusters=2, dim=1, noise=coterie.Symmetric())
    """

    kind: ClassVar[str] = "symmetric"
    words: ClassVar[str] = "noise that is symmetric for each item"
    assumption: ClassVar[str] = (
        "results do not depend on one another, the noise of every item is symmetric about its mean, in all numbers of "
        "a result together, and may differ from item to item, and items of one group have the same mean"
    )


Statement: TypeAlias = AnyNoise | Gaussian | Counts | Poisson | Exponential | Bounded | AtMost | Symmetric
STATEMENTS: dict[str, Callable[..., Statement]] = {
    "any": AnyNoise,
    "gaussian": Gaussian,
    "counts": Counts,
    "poisson": Poisson,
    "exponential": Exponential,
    "bounded": Bounded,
    "at-most": AtMost,
    "symmetric": Symmetric,
}
"""What can be stated, by its `kind`."""

STATEMENT_CLASSES = (AnyNoise, Gaussian, Counts, Poisson, Exponential, Bounded, AtMost, Symmetric)

LIKE_ANY = frozenset({"any", Poisson.kind, Exponential.kind})
"""Kinds whose intervals, and whose tests of hidden groups, are those that suit every distribution."""
