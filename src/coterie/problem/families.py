"""The noise of measurements as a model for d numbers each, from what a caller gave.

`noise_of` makes it: `None` is any noise, a number, d numbers or a covariance is a known noise
(`coterie.problem.noise.Noise`), and what lies between is a statement (`coterie.problem.statements`, whose names can be
had from here too). How each one turns results into evidence is in docs/EVIDENCE.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from coterie.problem.checks import FloatArray, check_count, check_real_array, short
from coterie.problem.noise import Exactly, Noise
from coterie.problem.statements import (
    LARGEST,
    LIKE_ANY,
    MOST_EVENTS,
    MOST_TRIALS,
    PROVES_NEARNESS,
    SHAPES,
    STATEMENT_CLASSES,
    STATEMENTS,
    AnyNoise,
    AtMost,
    Bounded,
    Counts,
    Exponential,
    Gaussian,
    Poisson,
    Statement,
    Symmetric,
)

__all__ = [
    "AnyNoise",
    "AtMost",
    "Bounded",
    "Counts",
    "Exponential",
    "Gaussian",
    "Poisson",
    "Symmetric",
    "Statement",
    "Unknown",
    "Model",
    "noise_of",
    "family_of",
    "noise_from_json",
    "dimension_of",
    "bounds_variance",
    "trials_of",
    "stated_deviations",
    "taken_apart",
    "number_of",
    "KINDS",
    "LARGEST",
    "LIKE_ANY",
    "PROVES_NEARNESS",
    "MOST_EVENTS",
    "MOST_TRIALS",
    "SHAPES",
    "STATEMENTS",
]

_PARAMETERS = {
    "any": ("shape",),
    "gaussian": ("shape",),
    "counts": ("trials",),
    "bounded": ("lo", "hi"),
    "at-most": ("covariance",),
}
WITHOUT_DEFAULTS = {"bounded", "at-most"}  # whose parameters have no default
KINDS = frozenset({Noise.kind, *STATEMENTS})
"""Of all noises."""


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
        white = np.zeros((len(points), 2 * self.dim))
        white[:, : self.dim] = points
        return white

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


def stated_deviations(noise: Model) -> FloatArray:
    """The standard deviations (d) that are stated, or stated as bounds; 1 where nothing is stated of them."""
    if isinstance(noise, Noise):
        return noise.deviations
    if isinstance(noise.statement, AtMost):
        return Noise.of(noise.statement.covariance, noise.dim).deviations
    return np.ones(noise.dim)


def bets_on_shape(noise: Model) -> bool:
    """Whether groups are told apart by the spread and shape of results too."""
    stated = noise.statement if isinstance(noise, Unknown) else None
    return isinstance(stated, AnyNoise) and stated.shape


def trials_of(noise: Model) -> int | None:
    """Of how many trials each number of a result is a count; None if results are no counts."""
    stated = noise.statement if isinstance(noise, Unknown) else None
    return stated.trials if isinstance(stated, Counts) else None


def taken_apart(noise: Model, first: int, second: int) -> bool:
    """Whether evidence under this noise takes two numbers of a result to vary apart, so that copies count twice."""
    if isinstance(noise, Noise):
        return bool(noise.covariance[first, second] == 0.0)
    stated = noise.statement
    if isinstance(stated, AtMost):
        return taken_apart(Noise.of(stated.covariance, noise.dim), first, second)
    return isinstance(stated, Counts | Poisson | Exponential) or bounds_variance(noise)


def number_of(noise: Model, place: int) -> Model:
    """What a noise says about one of the numbers of a result by itself."""
    if isinstance(noise, Noise):
        deviation = float(np.sqrt(noise.covariance[place, place]))
        return Noise.of(Exactly(deviation) if noise.exact else deviation, 1)
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return Unknown(Gaussian(), 1)
    if isinstance(stated, Bounded):
        return Unknown(Bounded(*(np.broadcast_to(end, noise.dim)[place] for end in (stated.lo, stated.hi))), 1)
    if isinstance(stated, AtMost):
        covariance = Noise.of(stated.covariance, noise.dim).covariance
        return Unknown(AtMost(float(np.sqrt(covariance[place, place]))), 1)
    return Unknown(stated, 1)


def family_of(given: Mapping[str, Any]) -> str:
    """The family that a dict names, in any case; "" if it names none."""
    named = given.get("family")
    return named.strip().lower() if isinstance(named, str) else ""


def statement_of(given: Mapping[str, Any]) -> Statement:
    """The statement of a dict {"family": …, and its parameters}."""
    kind = family_of(given)
    if kind not in STATEMENTS:
        named = short(given.get("family"))
        raise ValueError(f"the family of a noise must be one of {', '.join(STATEMENTS)}, got {named}")
    wanted, rest = _PARAMETERS.get(kind, ()), {key: value for key, value in given.items() if key != "family"}
    wrong = next((key for key in rest if key not in wanted), None)
    if wrong is not None:
        takes = f"only {' and '.join(wanted)}" if wanted else "nothing more"
        raise ValueError(f"a noise of the family {kind!r} takes {takes}, got {short(wrong)}")
    missing = next((key for key in wanted if key not in rest and kind in WITHOUT_DEFAULTS), None)
    if missing is not None:
        raise ValueError(f"a noise of the family {kind!r} needs {' and '.join(wanted)}, {missing} is missing")
    return STATEMENTS[kind](**rest)


def noise_of(given: Any, dim: Any) -> Model:
    """The noise of measurements of d numbers, from what a caller gave.

    None or "any": any noise; "gaussian": Gaussian, covariance unknown; a standard deviation, d of them or a covariance:
    known; or an `AnyNoise`, `Gaussian`, `Counts`, `Poisson`, `Exponential`, `Bounded`, `AtMost`, `Symmetric` or
    `Exactly`, or their description as a dict.
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
    if isinstance(given, STATEMENT_CLASSES):
        return Unknown(given, d)
    if isinstance(given, str):
        kind = given.strip().lower()
        if kind in STATEMENTS and kind not in WITHOUT_DEFAULTS:
            return Unknown(STATEMENTS[kind](), d)
        raise ValueError(
            'noise must be None (any noise), "gaussian", "counts", "poisson", "exponential", "symmetric", a standard '
            "deviation, one for each number, a covariance, or a coterie.Gaussian, Counts, Poisson, Exponential, "
            f"Bounded, AtMost or Symmetric, got {short(given)}"
        )
    if isinstance(given, Mapping) and family_of(given) != "exactly":
        return Unknown(statement_of(given), d)
    return Noise.of(given if not isinstance(given, Mapping) else {**given, "family": "exactly"}, d)


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
    if isinstance(given, Mapping) and family_of(given) == "exactly":
        return dimension_of(given.get("noise"))
    stated = statement_of(given) if isinstance(given, Mapping) else given
    if isinstance(stated, Bounded):
        return len(stated.lo) if len(stated.lo) > 1 else None
    if isinstance(stated, AtMost):
        stated = stated.covariance
    elif stated is None or isinstance(stated, (*STATEMENT_CLASSES, str)):
        return None
    shape = check_real_array(stated, "noise").shape
    return max(1, shape[0]) if shape else None
