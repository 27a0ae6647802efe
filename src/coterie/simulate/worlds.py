"""Worlds for simulations: how results of arms vary about their means, when that is not the standard Gaussian.

`coterie.simulate(instance, method, world=coterie.worlds.Student(3))` draws every result from a world. What the method
assumes is another matter, and is stated by `noise`. A world is small, frozen and can be pickled; what it draws depends
on the generator alone, so that the same seed gives the same trials anywhere.

In most worlds the instance's means are the means of the results. An exception: `Clicks`, whose means are rates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.methods.trials import World
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_count,
    check_real,
    check_real_array,
    short,
)
from coterie.problem.families import MOST_EVENTS
from coterie.problem.instance import Instance
from coterie.simulate.added_noise import EXPONENTIAL, LOGNORMAL, AddedNoise, Contaminated, Normal, Skewed, Student

__all__ = [
    "Normal", "Student", "Skewed", "Contaminated", "Scaled", "Correlated", "Ratings", "Clicks", "Events", "Waits",
    "Own", "World", "world_from_text", "world_of",
]  # fmt: skip

GAUSSIAN = Normal()
"""What is scaled if nothing is said."""


@dataclass(frozen=True, init=False)
class Scaled:
    """Noise that differs from arm to arm: that of another world times one number for each arm.

    Parameters
    ----------
    scales : array-like of shape (M,)
        Positive numbers.
    of : world or str
        What is scaled: a world that adds noise to the means, Gaussian by default.
    """

    scales: tuple[float, ...]
    of: AddedNoise

    def __init__(self, scales: Any, of: AddedNoise | str = GAUSSIAN) -> None:
        given = check_real_array(scales, "scales")
        if given.ndim != 1 or given.size == 0 or (given <= 0).any():
            raise ValueError(f"scales must be positive numbers, one for each arm, got {short(scales)}")
        base = world_of(of)
        if not isinstance(base, AddedNoise):
            raise ValueError(f"only noise that is added to the means can be scaled, got {short(of)}")
        object.__setattr__(self, "scales", tuple(given.tolist()))
        object.__setattr__(self, "of", base)

    def check(self, instance: Instance) -> None:
        """ValueError unless there is a scale for each arm."""
        if len(self.scales) != instance.n_arms:
            raise ValueError(f"Scaled has {len(self.scales)} scales, but the instance has {instance.n_arms} arms")

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        scales = np.array(self.scales)[arms]
        return np.asarray(means + scales[:, None] * self.of.noise(rng, *means.shape))


@dataclass(frozen=True, init=False)
class Correlated:
    """Gaussian noise whose numbers are correlated.

    Parameters
    ----------
    covariance : array-like of shape (d, d) or float
        One number ρ is variance 1 and correlation ρ between all numbers.
    """

    covariance: tuple[tuple[float, ...], ...] | float

    def __init__(self, covariance: Any) -> None:
        given = check_real_array(covariance, "covariance")
        if given.ndim == 0:
            if not -1.0 < float(given) < 1.0:
                raise ValueError(f"a correlation must lie between -1 and 1, got {float(given):g}")
            object.__setattr__(self, "covariance", float(given))
            return
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not np.allclose(given, given.T):
            raise ValueError(f"a covariance must be a symmetric d x d matrix, got {short(covariance)}")
        object.__setattr__(self, "covariance", tuple(map(tuple, given.tolist())))
        self._factor(len(given))

    def _factor(self, dim: int) -> FloatArray:
        """L with L·L' = the covariance."""
        if isinstance(self.covariance, float):
            matrix = np.full((dim, dim), self.covariance) + (1.0 - self.covariance) * np.eye(dim)
        else:
            matrix = np.array(self.covariance)
        try:
            return np.asarray(np.linalg.cholesky(matrix))
        except np.linalg.LinAlgError:
            least = float(np.linalg.eigvalsh(matrix).min())
            raise ValueError(
                f"the covariance of {dim} numbers must be positive definite, its smallest eigenvalue is {least:.4g}"
            ) from None

    def check(self, instance: Instance) -> None:
        """ValueError unless it is a covariance of results of this instance."""
        if not isinstance(self.covariance, float) and len(self.covariance) != instance.dim:
            raise ValueError(
                f"the covariance is for {len(self.covariance)} numbers, but results of the instance have {instance.dim}"
            )
        self._factor(instance.dim)

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        factor = self._factor(means.shape[1])
        # One result after the other, so that a result does not depend on how many are drawn together.
        return np.asarray(means + np.einsum("nq,pq->np", rng.standard_normal(means.shape), factor))


@dataclass(frozen=True)
class Ratings:
    """Whole numbers, such as stars: the instance's means must lie between the ends.

    Parameters
    ----------
    lowest, highest : int
        The ends.

    Notes
    -----
    A rating with mean μ is lowest + Binomial(highest − lowest, p) with p = (μ − lowest)/(highest − lowest): for one to
    five stars the standard deviation is 1 in the middle and smaller towards the ends.
    """

    lowest: int = 1
    highest: int = 5

    def __post_init__(self) -> None:
        for name in ("lowest", "highest"):
            value = check_real(getattr(self, name), name)
            if not value.is_integer():
                raise ValueError(f"{name} must be a whole number, got {value:g}")
            object.__setattr__(self, name, int(value))
        if self.lowest >= self.highest:
            raise ValueError(f"lowest must be below highest, got {self.lowest} and {self.highest}")

    def check(self, instance: Instance) -> None:
        """ValueError for a mean that no ratings have."""
        outside = (instance.centers < self.lowest) | (instance.centers > self.highest)
        if outside.any():
            raise ValueError(
                f"the mean of ratings from {self.lowest} to {self.highest} must lie between them, but the instance has "
                f"a center at {float(instance.centers[outside][0]):g}"
            )

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        steps = self.highest - self.lowest
        share = np.clip((means - self.lowest) / steps, 0.0, 1.0)
        return np.asarray(self.lowest + rng.binomial(steps, share), dtype=np.float64)


@dataclass(frozen=True)
class Clicks:
    """Counts of successes: the instance's means are rates, between 0 and 1.

    A result is Binomial(trials, rate) in each number, each on its own: what `noise=coterie.Counts(trials)` is about.

    Parameters
    ----------
    trials : int
        Of one count.
    """

    trials: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", check_count(self.trials, "trials", 1))

    def check(self, instance: Instance) -> None:
        """ValueError for a mean that is no rate."""
        outside = (instance.centers < 0.0) | (instance.centers > 1.0)
        if outside.any():
            raise ValueError(
                "in a world of clicks the instance's centers are rates, between 0 and 1, "
                f"but it has a center at {float(instance.centers[outside][0]):g}"
            )

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        return np.asarray(rng.binomial(self.trials, means), dtype=np.float64)


@dataclass(frozen=True)
class Events:
    """Poisson counts in each number, each on its own: what `noise=coterie.Poisson()` is about."""

    def check(self, instance: Instance) -> None:
        """ValueError for a mean that no count has."""
        _check_lowest(instance, (instance.centers < 0.0) | (instance.centers > MOST_EVENTS), "events", "at least 0")

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        return np.asarray(rng.poisson(means), dtype=np.float64)


@dataclass(frozen=True)
class Waits:
    """Exponential waiting times in each number, each on its own: what `noise=coterie.Exponential()` is about."""

    def check(self, instance: Instance) -> None:
        """ValueError for a mean that no waiting time has."""
        _check_lowest(instance, instance.centers <= 0.0, "waiting times", "above 0")

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        return np.asarray(means * np.maximum(rng.standard_exponential(means.shape), np.finfo(np.float64).tiny))


def _check_lowest(instance: Instance, wrong: NDArray[np.bool_], of: str, allowed: str) -> None:
    if wrong.any():
        raise ValueError(
            f"in a world of {of} the instance's centers are their means, {allowed}, "
            f"but it has a center at {float(instance.centers[wrong][0]):g}"
        )


@dataclass(frozen=True)
class Own:
    """A world of one's own.

    Parameters
    ----------
    function : callable
        function(rng, arms, means) gives the results of n arms, (n, d); `means` is (n, d) too. All that is random must
        come from `rng`. For a Dask cluster it must be one that can be pickled.
    """

    function: Callable[[np.random.Generator, IntArray, FloatArray], Any]

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        """What the function gives, if that is n results of d finite numbers; ValueError if not."""
        results = check_real_array(self.function(rng, arms.copy(), means.copy()), "results of the world")
        if results.shape != means.shape:
            raise ValueError(
                f"the world must give {means.shape[0]} results of {means.shape[1]} numbers, an array of shape "
                f"{means.shape}, but gave shape {results.shape}"
            )
        return results


def world_of(given: Any) -> World | None:
    """A world from what a caller gave: None, a world, its short name (`world_from_text`), or a function."""
    if given is None:
        return None
    if isinstance(given, str):
        return world_from_text(given)
    if isinstance(given, type):
        raise TypeError(f"world must be a world, not its class: write {given.__name__}(…)")
    if isinstance(given, AddedNoise | Scaled | Correlated | Ratings | Clicks | Events | Waits | Own):
        return given
    if callable(getattr(given, "draw", None)):
        return Own(given.draw)
    if callable(given):
        return Own(given)
    raise TypeError(
        f"world must be one of coterie.worlds, a name such as 't3', or a function of (rng, arms, means), "
        f"got {short(given)}"
    )


def check_world(world: World | None, instance: Instance) -> None:
    """ValueError if results of this instance cannot come from this world."""
    check = getattr(world, "check", None)
    if check is not None:
        check(instance)


_Made = tuple[Callable[..., World], int, int, str]
"""What makes a world of numbers, how many it takes at least and at most, and how that is written."""
_MANY = 10**6
_NAMES: dict[str, _Made] = {
    "normal": (Normal, 0, 1, "normal:SD"),
    "t": (Student, 1, 1, "t:DF"),
    "lognormal": (lambda sigma=1.0: Skewed(LOGNORMAL, sigma), 0, 1, "lognormal:SIGMA"),
    "exponential": (lambda: Skewed(EXPONENTIAL), 0, 0, "exponential"),
    "contaminated": (Contaminated, 2, 2, "contaminated:SHARE,SD"),
    "ratings": (Ratings, 0, 2, "ratings:LOWEST,HIGHEST"),
    "clicks": (Clicks, 0, 1, "clicks:TRIALS"),
    "events": (Events, 0, 0, "events"),
    "waits": (Waits, 0, 0, "waits"),
    "scaled": (lambda *scales: Scaled(scales), 1, _MANY, "scaled:S0,S1,…"),
    "correlated": (Correlated, 1, 1, "correlated:CORRELATION"),
}
FORMS = ", ".join(form for *_, form in _NAMES.values())


def world_from_text(text: str) -> World:
    """A world from its short name.

    Parameters
    ----------
    text : str
        Such as t3, contaminated:0.05,10 or clicks:100; `FORMS` lists what there is.

    Returns
    -------
    World
        What `coterie.simulate` takes as `world`.

    Examples
    --------
    >>> import coterie
    >>> coterie.worlds.world_from_text("clicks:100")
    Clicks(trials=100)
    """
    name, _, rest = text.strip().lower().partition(":")
    short_t = re.fullmatch(r"t([0-9.]+)", name)
    if short_t is not None and not rest:
        name, rest = "t", short_t.group(1)
    if name not in _NAMES:
        raise ValueError(f"unknown world {text!r}: write one of {FORMS}")
    make, least, most, form = _NAMES[name]
    try:
        numbers = [float(part) for part in rest.split(",")] if rest.strip() else []
    except ValueError:
        raise ValueError(f"the world {text!r} is not made of numbers: write {form}") from None
    if not least <= len(numbers) <= most:
        raise ValueError(f"the world {text!r} has {len(numbers)} numbers: write {form}")
    whole = [int(number) if number.is_integer() else number for number in numbers]
    try:
        return make(*whole)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the world {text!r}: {error}; write {form}") from None
