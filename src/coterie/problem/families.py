"""What may be stated about the noise of measurements, from nothing at all to counts, bounds or a shape.

`noise_of` turns what a caller gave into a model for d numbers a measurement: `None` is any noise, a number, d numbers
or a covariance is a known noise (`coterie.problem.noise.Noise`), and the classes here are what lies between. How each
one turns results into evidence is in docs/EVIDENCE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from coterie.problem.checks import FloatArray, check_count, check_real_array, short
from coterie.problem.noise import Exactly, Noise

SHAPES = ("scalar", "diagonal", "full")


@dataclass(frozen=True)
class AnyNoise:
    """Nothing is known about the noise: `noise=None`."""

    kind: ClassVar[str] = "any"
    words: ClassVar[str] = "any noise"
    assumption: ClassVar[str] = (
        "results of items in one group have the same distribution, whatever it is, and do not depend on one another"
    )

    def check(self, values: FloatArray) -> None:
        """Any finite numbers will do."""

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        return {}


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise with an unknown covariance that all items share.

    `shape`: "full" (nothing known about the covariance), "diagonal" (the numbers of a result vary independently) or
    "scalar" (they also have one standard deviation).
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

    def check(self, values: FloatArray) -> None:
        """Any finite numbers will do."""

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        return {"shape": self.shape}


MOST_TRIALS = 10**9
"""Of one count: beyond, sums of counts are not whole numbers in floats any more."""

LARGEST = 1e100
"""Results of a noise of unknown size must be smaller than this: their squares are added up."""


@dataclass(frozen=True)
class Counts:
    """Each number of a result is a count of successes out of `trials` independent trials; 1: single 0 or 1 results."""

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
        what = "0 or 1" if self.trials == 1 else f"a number of successes out of {self.trials} trials"
        return (
            f"each number of a result is {what}, all trials are independent, those of different numbers too, "
            "and items of one group succeed at the same rates"
        )

    def check(self, values: FloatArray) -> None:
        """ValueError for the first number that is no count of successes."""
        wrong = (values != np.floor(values)) | (values < 0) | (values > self.trials)
        if wrong.any():
            first = float(values[wrong][0])
            raise ValueError(f"a count of successes must be a whole number from 0 to {self.trials}, got {first:g}")

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        return {"trials": self.trials}


class Bounded:
    """Results lie between `lo` and `hi`; items of a group have equal means, and nothing else is assumed.

    `lo` and `hi` are numbers, or one for each number of a result.
    """

    kind: ClassVar[str] = "bounded"
    lo: tuple[float, ...]
    hi: tuple[float, ...]

    def __init__(self, lo: Any, hi: Any) -> None:
        bounds = []
        for name, given in (("lo", lo), ("hi", hi)):
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

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"bounds cannot be changed, tried to set {name!r}")

    def __repr__(self) -> str:
        lo, hi = (one[0] if len(one) == 1 else one for one in (self.lo, self.hi))
        return f"Bounded({lo!r}, {hi!r})"

    def __eq__(self, other: object) -> bool:
        return (self.lo, self.hi) == (other.lo, other.hi) if isinstance(other, Bounded) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.lo, self.hi))

    @property
    def words(self) -> str:
        """The noise in a few words."""
        lo, hi = (f"{one[0]:g}" if len(one) == 1 else short(list(one)) for one in (self.lo, self.hi))
        return f"results between {lo} and {hi}"

    @property
    def assumption(self) -> str:
        """What is assumed, in one sentence."""
        lo, hi = (f"{one[0]:g}" if len(one) == 1 else short(list(one)) for one in (self.lo, self.hi))
        return (
            f"results lie between {lo} and {hi} and do not depend on one another, and items of one group have the same "
            "mean; nothing else"
        )

    def check(self, values: FloatArray) -> None:
        """ValueError for the first number outside the bounds."""
        wrong = (values < self.lo) | (values > self.hi)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0])
            lo, hi = (np.broadcast_to(one, values.shape)[place] for one in (self.lo, self.hi))
            raise ValueError(f"a number must lie between {lo:g} and {hi:g}, as was stated, got {values[place]:g}")

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        return {"lo": list(self.lo), "hi": list(self.hi)}


class AtMost:
    """Results have a covariance of at most this one, whatever their distribution; items of a group have equal means.

    `covariance`: a standard deviation, d of them, or a d x d covariance, as for a known noise.
    """

    kind: ClassVar[str] = "at-most"
    assumption: ClassVar[str] = (
        "results vary by no more than the covariance stated, whatever their distribution, and do not depend on one "
        "another, and items of one group have the same mean; nothing else"
    )
    covariance: Any

    def __init__(self, covariance: Any) -> None:
        value = check_real_array(covariance, "covariance")
        object.__setattr__(self, "covariance", value.tolist())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a bound on the covariance cannot be changed, tried to set {name!r}")

    def __repr__(self) -> str:
        return f"AtMost({short(self.covariance)})"

    def __eq__(self, other: object) -> bool:
        return bool(self.covariance == other.covariance) if isinstance(other, AtMost) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self.covariance))

    @property
    def words(self) -> str:
        """The noise in a few words."""
        what = "covariance" if np.ndim(self.covariance) == 2 else "standard deviation"
        return f"noise with a {what} of at most {short(self.covariance)}"

    def check(self, values: FloatArray) -> None:
        """Any finite numbers will do."""

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        return {"covariance": self.covariance}


@dataclass(frozen=True)
class Symmetric:
    """Noise that is symmetric about the mean of its item, and may differ from item to item."""

    kind: ClassVar[str] = "symmetric"
    words: ClassVar[str] = "noise that is symmetric for each item"
    assumption: ClassVar[str] = (
        "results do not depend on one another, the noise of every item is symmetric about its mean, in all numbers of "
        "a result together, and may differ from item to item, and items of one group have the same mean"
    )

    def check(self, values: FloatArray) -> None:
        """Any finite numbers will do."""

    def parameters(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        return {}


Statement: TypeAlias = AnyNoise | Gaussian | Counts | Bounded | AtMost | Symmetric
STATEMENTS: dict[str, Callable[..., Statement]] = {
    "any": AnyNoise,
    "gaussian": Gaussian,
    "counts": Counts,
    "bounded": Bounded,
    "at-most": AtMost,
    "symmetric": Symmetric,
}
"""What can be stated, by its `kind`."""

_CLASSES = (AnyNoise, Gaussian, Counts, Bounded, AtMost, Symmetric)

KINDS = frozenset({Noise.kind, *STATEMENTS})
"""Of all noises."""

_PARAMETERS = {"gaussian": ("shape",), "counts": ("trials",), "bounded": ("lo", "hi"), "at-most": ("covariance",)}
_NECESSARY = {"bounded", "at-most"}  # whose parameters have no default


class Unknown:
    """A noise that is not known exactly, for d numbers a measurement: what was stated about it, and its units.

    It has the methods of `Noise` that results pass through. Results keep the user's units, but under `AtMost`, where
    they are in units of the covariance stated.
    """

    def __init__(self, statement: Statement, dim: int) -> None:
        self.statement, self.dim = statement, check_count(dim, "dim", 1)
        if isinstance(statement, Bounded) and len(statement.lo) not in (1, self.dim):
            raise ValueError(f"Bounded has {len(statement.lo)} bounds, but the measurements have {self.dim} numbers")
        covariance = statement.covariance if isinstance(statement, AtMost) else 1.0
        self._units = Noise.of(covariance, self.dim)

    @property
    def kind(self) -> str:
        """The name of what was stated."""
        return self.statement.kind

    @property
    def assumption(self) -> str:
        """What is assumed, in one sentence."""
        return self.statement.assumption

    @property
    def words(self) -> str:
        """The noise in a few words."""
        return self.statement.words

    @property
    def in_units(self) -> bool:
        """Whether results are measured in units of a noise that was stated."""
        return isinstance(self.statement, AtMost)

    def check(self, values: FloatArray) -> None:
        """ValueError for the first result, of (n, d), that contradicts what was stated."""
        self.statement.check(values)
        if (np.abs(values) > LARGEST).any():
            raise ValueError(f"results must be smaller than {LARGEST:g}, got {float(np.abs(values).max()):g}")

    def whiten(self, x: Any) -> FloatArray:
        """Results in the units in which evidence is computed."""
        return self._units.whiten(x) if self.in_units else self._units.points(x, "x")

    def whiten_fully(self, x: Any) -> FloatArray:
        """(n, 2·d): `whiten`, and beside it what floats do not hold of it."""
        if self.in_units:
            return self._units.whiten_fully(x)
        points = self._units.points(x, "x").reshape(-1, self.dim)
        return np.concatenate([points, np.zeros_like(points)], axis=1)

    def color(self, z: Any) -> FloatArray:
        """The inverse of `whiten`: back in the user's units."""
        return self._units.color(z) if self.in_units else self._units.points(z, "z")

    def to_json(self) -> dict[str, Any]:
        """The description as plain JSON values; `noise_from_json` gives the same noise back."""
        return {"family": self.kind, **self.statement.parameters()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unknown):
            return NotImplemented
        return (self.statement, self.dim) == (other.statement, other.dim)

    def __hash__(self) -> int:
        return hash((self.statement, self.dim))

    def __repr__(self) -> str:
        return f"Unknown({self.statement!r}, dim={self.dim})"


Model: TypeAlias = Noise | Unknown
"""What a session works with: a noise that is known exactly, or one about which less is stated."""


def bounds_variance(noise: Model) -> bool:
    """Whether results bound the noise's variance from above: Gaussian, in coordinates that are independent."""
    stated = noise.statement if isinstance(noise, Unknown) else None
    return isinstance(stated, Gaussian) and stated.shape != "full"


def taken_apart(noise: Model, first: int, second: int) -> bool:
    """Whether evidence under this noise takes two numbers of a result to vary apart, so that copies count twice."""
    if isinstance(noise, Noise):
        return bool(noise.covariance[first, second] == 0.0)
    stated = noise.statement
    if isinstance(stated, AtMost):
        return taken_apart(Noise.of(stated.covariance, noise.dim), first, second)
    return isinstance(stated, Counts) or bounds_variance(noise)


def noise_of(given: Any, dim: Any) -> Model:
    """The noise of measurements of d numbers, from what a caller gave.

    None or "any": any noise; "gaussian": Gaussian, covariance unknown; a standard deviation, d of them or a covariance:
    known; or a `Gaussian`, `Counts`, `Bounded`, `AtMost`, `Symmetric` or `Exactly`, or their description as a dict.
    """
    d = check_count(dim, "dim", 1)
    if given is None:
        return Unknown(AnyNoise(), d)
    if isinstance(given, Noise):
        same = Noise.of(given, d)
        if same.is_identity and not same.exact:
            return Noise.of(1.0, d)  # the other one saves as null, and that stood for no statement
        return same
    if isinstance(given, Unknown):
        if given.dim != d:
            raise ValueError(f"noise is for dimension {given.dim}, but the measurements have dimension {d}")
        return given
    if isinstance(given, _CLASSES):
        return Unknown(given, d)
    if isinstance(given, str):
        if given in STATEMENTS and given not in _NECESSARY:
            return Unknown(STATEMENTS[given](), d)
        raise ValueError(
            'noise must be None (any noise), "gaussian", "counts", "symmetric", a standard deviation, one for each '
            f"number, a covariance, or a coterie.Gaussian, Counts, Bounded, AtMost or Symmetric, got {short(given)}"
        )
    if isinstance(given, Mapping) and given.get("family") != "exactly":
        return Unknown(_statement_of(given), d)
    return Noise.of(given, d)


def noise_from_json(saved: Any, dim: int) -> Model:
    """The noise that `to_json` described. null is the standard Gaussian, as the first release wrote it."""
    return noise_of(1.0 if saved is None else saved, dim)


def dimension_of(given: Any) -> int | None:
    """How many numbers a measurement has under a noise, as `noise_of` takes it, that is for a certain number of them.

    None if it is for any number of them.
    """
    if isinstance(given, Noise | Unknown):
        return given.dim
    if isinstance(given, Exactly):
        return dimension_of(given.noise)
    if isinstance(given, Mapping) and given.get("family") == "exactly":
        return dimension_of(given.get("noise"))
    stated = _statement_of(given) if isinstance(given, Mapping) else given
    if isinstance(stated, Bounded):
        return len(stated.lo) if len(stated.lo) > 1 else None
    if isinstance(stated, AtMost):
        stated = stated.covariance
    elif stated is None or isinstance(stated, (*_CLASSES, str)):
        return None
    shape = check_real_array(stated, "noise").shape
    return max(1, shape[0]) if shape else None


def _statement_of(given: Mapping[str, Any]) -> Statement:
    """The statement of a dict {"family": …, and its parameters}."""
    kind = given.get("family")
    if not isinstance(kind, str) or kind not in STATEMENTS:
        raise ValueError(f"the family of a noise must be one of {', '.join(STATEMENTS)}, got {short(kind)}")
    wanted, rest = _PARAMETERS.get(kind, ()), {key: value for key, value in given.items() if key != "family"}
    wrong = next((key for key in rest if key not in wanted), None)
    if wrong is not None:
        takes = f"only {' and '.join(wanted)}" if wanted else "nothing more"
        raise ValueError(f"a noise of the family {kind!r} takes {takes}, got {short(wrong)}")
    missing = next((key for key in wanted if key not in rest and kind in _NECESSARY), None)
    if missing is not None:
        raise ValueError(f"a noise of the family {kind!r} needs {' and '.join(wanted)}, {missing} is missing")
    return STATEMENTS[kind](**rest)
