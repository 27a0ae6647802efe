"""The question that a run answers: K groups of equal items, groups up to a resolution, or K groups by single linkage.

A question says what a finished run claims. How claims are tested is the engine's business; what they rest on is written
in every certificate. docs/CROC.md (K groups) and docs/RESOLUTION.md (the other two) have the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from coterie.problem.checks import FloatArray, check_real_array, short

NORMS = ("each", "distance")
CLAIMS = ("references", "any-two")
GROUPS = ("equal", "linkage")


@dataclass(frozen=True)
class ExactGroups:
    """The partition of the arms into exactly K groups of equal means, as in the paper (section_setup)."""

    kind: ClassVar[str] = "groups"
    n_clusters: int

    @property
    def words(self) -> str:
        """The question in a few words."""
        return f"{self.n_clusters} groups"

    @property
    def claim(self) -> str:
        """What is claimed, in a sentence."""
        return (
            f"if there are exactly {self.n_clusters} groups, the items of a group are alike, those of different groups "
            "are not"
        )

    def to_json(self) -> dict[str, Any]:
        """What the settings say beyond the number of groups, as plain JSON values."""
        return {}


@dataclass(frozen=True)
class SingleLinkage:
    """The K groups that single linkage of the true means gives: cut the K − 1 longest edges of their spanning tree."""

    kind: ClassVar[str] = "linkage"
    n_clusters: int

    @property
    def words(self) -> str:
        """The question in a few words."""
        return f"{self.n_clusters} groups by single linkage"

    @property
    def claim(self) -> str:
        """What is claimed, in a sentence."""
        return (
            f"the {self.n_clusters} groups of single linkage: within a group one gets from any item to any other by "
            "steps shorter than a height h, and items of different groups are more than h apart"
        )

    def to_json(self) -> dict[str, Any]:
        """What the settings say beyond the number of groups, as plain JSON values."""
        return {"groups": "linkage"}


class Resolution:
    """Groups up to a resolution: differences below `alike` (ε) do not matter, differences above `apart` (η) do.

    Both are in the units of the measurements: one number, or one for each number of a measurement; 0 ≤ ε < η. `norm`:
    "each" (items are near if every number differs by less than η, far if one differs by more than ε) or "distance" (the
    Euclidean distance of all numbers; where η differs between them, each is divided by its η first). `claim`:
    "references" (every item is within η of its group's reference item, and any two references are more than ε apart) or
    "any-two" (any two items of a group are within η, and any two groups have items more than ε apart).

    Where results are counts, the bounds may be rates, as percentages: `Resolution("2%", "5%")` with `Counts(100)` is
    `Resolution(2, 5)`, in successes of 100 trials.
    """

    kind: ClassVar[str] = "resolution"
    alike: tuple[float, ...]
    apart: tuple[float, ...]
    norm: str
    claims: str
    rates: bool  # whether alike and apart are shares of the trials of a count, not differences of results

    def __init__(self, alike: Any, apart: Any, norm: str = "each", claim: str = "references") -> None:
        read = [_in_percent(value) for value in (alike, apart)]
        if (read[0] is None) != (read[1] is None):
            raise ValueError(f"give both alike and apart in percent, or none, got {short(alike)} and {short(apart)}")
        if read[0] is not None:
            alike, apart = read
        epsilon, eta = (_bound(value, name) for value, name in ((alike, "alike"), (apart, "apart")))
        if epsilon.size != eta.size and 1 not in (epsilon.size, eta.size):
            raise ValueError(f"alike has {epsilon.size} numbers and apart {eta.size}: give as many, or one for all")
        epsilon, eta = np.broadcast_arrays(epsilon, eta)
        if (epsilon < 0.0).any():
            raise ValueError(f"alike must not be negative, got {float(epsilon.min()):g}: 0 asks for exact equality")
        if (epsilon >= eta).any():
            i = int(np.argmax(epsilon >= eta))
            where = "" if eta.size == 1 else f" for number {i + 1}"
            raise ValueError(
                f"alike must be smaller than apart, got {float(epsilon[i]):g} and {float(eta[i]):g}{where}: "
                "differences below alike do not matter, differences above apart do"
            )
        for given, name, choices in ((norm, "norm", NORMS), (claim, "claim", CLAIMS)):
            if not isinstance(given, str) or given not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {short(given)}")
        shares = epsilon / eta
        if norm == "distance" and not np.allclose(shares, shares[0], rtol=1e-12, atol=0.0):
            raise ValueError(
                'with norm="distance" alike must be the same share of apart for every number, got '
                f"{short(epsilon.tolist())} and {short(eta.tolist())}"
            )
        for name, value in (("alike", tuple(epsilon.tolist())), ("apart", tuple(eta.tolist()))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "claims", claim)
        object.__setattr__(self, "rates", read[0] is not None)

    def in_counts(self, trials: int | None) -> Resolution:
        """The same in successes, if it is in rates; `trials`: of a count, None where results are no counts."""
        if not self.rates:
            return self
        if trials is None:
            raise ValueError(
                f"alike and apart of {self.bounds} are rates, which go with counts: state that the noise is counts "
                '(in Python noise=coterie.Counts(trials), over HTTP {"family": "counts", "trials": …}), or give '
                "differences in the units of the results"
            )
        alike, apart = ([trials * one for one in bounds] for bounds in (self.alike, self.apart))
        return Resolution(alike, apart, self.norm, self.claims)

    @classmethod
    def of(cls, given: Any) -> Resolution:
        """A resolution from what a caller gave: one of these, or (ε, η)."""
        if isinstance(given, Resolution):
            return given
        if isinstance(given, dict):
            unknown = sorted(set(given) - {"alike", "apart", "norm", "claim"})
            if unknown or not {"alike", "apart"} <= set(given):
                raise ValueError(f"a resolution has alike, apart, norm and claim, got {short(given)}")
            return cls(**given)
        if isinstance(given, list | tuple) and len(given) == 2:
            return cls(*given)
        raise TypeError(f"resolution must be (alike, apart) or coterie.Resolution(alike, apart), got {short(given)}")

    def changed_to(self, given: Any) -> Resolution:
        """Another ε and η: (ε, η), or a resolution with the norm and the claim of this one; ValueError if not."""
        kept = {"norm": self.norm, "claim": self.claims}
        if isinstance(given, dict):
            given = kept | given
        elif isinstance(given, list | tuple) and len(given) == 2:
            given = {"alike": given[0], "apart": given[1], **kept}
        found = Resolution.of(given)
        for name, its, own in (("norm", found.norm, self.norm), ("claim", found.claims, self.claims)):
            if its != own:
                raise ValueError(
                    f"the {name} cannot be changed, from {own!r} to {its!r}, only alike and apart can: give (alike, "
                    f"apart), or start anew with {name}={its!r}"
                )
        return found

    def for_dim(self, dim: int) -> Resolution:
        """The same with one number for each of d numbers; ValueError if it has another number of them."""
        if len(self.apart) not in (1, dim):
            raise ValueError(
                f"the resolution has {len(self.apart)} numbers, but the measurements have {dim}: give one for all, or "
                f"{dim}"
            )
        if self.rates:
            alike, apart = (_percent(np.broadcast_to(one, dim).tolist()) for one in (self.alike, self.apart))
            return Resolution(alike, apart, self.norm, self.claims)
        return Resolution(self.epsilon(dim), self.eta(dim), self.norm, self.claims)

    def epsilon(self, dim: int) -> FloatArray:
        """(d) ε for each number of a measurement."""
        return np.array(np.broadcast_to(self.alike, dim))

    def eta(self, dim: int) -> FloatArray:
        """(d) η for each number of a measurement."""
        return np.array(np.broadcast_to(self.apart, dim))

    @property
    def n_clusters(self) -> None:
        """There is no K: it is found."""
        return None

    @property
    def words(self) -> str:
        """The question in a few words."""
        return f"groups up to a resolution of {self.bounds}"

    @property
    def bounds(self) -> str:
        """ε and η, in words."""
        return " and ".join(self.bounds_in_words)

    def widened(self, factor: float) -> Resolution:
        """The same with `apart` multiplied by a factor of at least 1; one for all is rounded up to three digits."""
        wide = [factor * one for one in self.apart]
        if len(wide) == 1 and factor > 1.0:
            step = 10.0 ** (math.floor(math.log10(wide[0])) - 2)
            wide = [float(f"{math.ceil(wide[0] / step) * step:.3g}")]
        return Resolution(self.alike, wide, self.norm, self.claims)

    @property
    def bounds_in_words(self) -> tuple[str, str]:
        """ε and η as text: a number each, or one for each number of a measurement."""
        if self.rates:
            return ", ".join(_percent(self.alike)), ", ".join(_percent(self.apart))
        return _text(self.alike), _text(self.apart)

    @property
    def claim(self) -> str:
        """What is claimed, in a sentence."""
        epsilon, eta = self.bounds_in_words
        if self.claims == "references":
            return (
                f"every item of a group is within {eta} of its reference, any two references are more than {epsilon} "
                "apart"
            )
        return f"any two items of a group are within {eta}, any two groups have items more than {epsilon} apart"

    def to_json(self) -> dict[str, Any]:
        """What the settings say, as plain JSON values; `of` takes the inner dictionary."""
        alike, apart = (_percent(one) if self.rates else list(one) for one in (self.alike, self.apart))
        return {
            "resolution": {
                "alike": alike if len(alike) > 1 else alike[0],
                "apart": apart if len(apart) > 1 else apart[0],
                "norm": self.norm,
                "claim": self.claims,
            }
        }

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a resolution cannot be changed, tried to set {name!r}")

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        bounds = (_percent(one) if self.rates else one for one in (self.alike, self.apart))
        return Resolution, (*bounds, self.norm, self.claims)

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Resolution) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.alike, self.apart, self.norm, self.claims, self.rates))

    def __repr__(self) -> str:
        written = (tuple(_percent(one)) if self.rates else one for one in (self.alike, self.apart))
        alike, apart = (one[0] if len(one) == 1 else one for one in written)
        return f"Resolution(alike={alike!r}, apart={apart!r}, norm={self.norm!r}, claim={self.claims!r})"


Question: TypeAlias = ExactGroups | Resolution | SingleLinkage
"""All questions there are."""

QUESTIONS = frozenset({ExactGroups.kind, Resolution.kind, SingleLinkage.kind})
"""Their kinds."""


def _in_percent(given: Any) -> list[float] | None:
    """The shares that were given as percentages, "2%" or ["2%", "5%"]; None if they are no percentages."""
    parts = [given] if isinstance(given, str) else given
    if not isinstance(parts, list | tuple) or not all(isinstance(one, str) for one in parts):
        return None
    try:
        found = [float(one.strip().removesuffix("%")) / 100.0 for one in parts if one.strip().endswith("%")]
    except ValueError:
        return None
    return found if found and len(found) == len(parts) and all(0.0 <= one <= 1.0 for one in found) else None


def _percent(bounds: Iterable[float]) -> list[str]:
    return [f"{round(100.0 * one, 12):g}%" for one in bounds]


def _bound(given: Any, name: str) -> FloatArray:
    value = check_real_array(given, name)
    if value.ndim > 1 or value.size == 0:
        raise ValueError(f"{name} must be a number, or one for each number of a measurement, got {short(given)}")
    return np.atleast_1d(value)


def _text(bounds: tuple[float, ...]) -> str:
    if len(set(bounds)) == 1:
        return f"{bounds[0]:g}"
    return "(" + ", ".join(f"{one:g}" for one in bounds) + ")"
