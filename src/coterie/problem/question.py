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

from coterie.problem.checks import FloatArray, SettingError, check_count, check_real_array, check_shape, checked, short

NORMS = ("each", "distance")
CLAIMS = ("references", "any-two")
GROUPS = ("equal", "linkage")


@dataclass(frozen=True)
class _StatedNumber:
    """A question about a number of groups that was stated; its words have a place for it."""

    n_clusters: int
    _words: ClassVar[str]
    _claim: ClassVar[str]
    _settings: ClassVar[dict[str, Any]]

    @property
    def words(self) -> str:
        """The question in a few words."""
        return self._words.format(self.n_clusters)

    @property
    def claim(self) -> str:
        """What is claimed, in a sentence."""
        return self._claim.format(self.n_clusters)

    def to_json(self) -> dict[str, Any]:
        """What the settings say beyond the number of groups, as plain JSON values."""
        return dict(self._settings)


@dataclass(frozen=True)
class ExactGroups(_StatedNumber):
    """The partition of the arms into exactly K groups of equal means, as in the paper (section_setup)."""

    kind: ClassVar[str] = "groups"
    _words = "{} groups"
    _claim = "if there are exactly {} groups, the items of a group are alike, those of different groups are not"
    _settings: ClassVar[dict[str, Any]] = {}


@dataclass(frozen=True)
class SingleLinkage(_StatedNumber):
    """The K groups that single linkage of the true means gives: cut the K − 1 longest edges of their spanning tree."""

    kind: ClassVar[str] = "linkage"
    _words = "{} groups by single linkage"
    _claim = (
        "the {} groups of single linkage: within a group one gets from any item to any other by steps shorter than a "
        "height h, and items of different groups are more than h apart"
    )
    _settings: ClassVar[dict[str, Any]] = {"groups": "linkage"}


class Resolution:
    """Groups up to a resolution: differences below `alike` (ε) do not matter, differences above `apart` (η) do.

    Parameters
    ----------
    alike, apart : float, str or array-like
        ε and η in the units of the measurements: one number, or one for each number of a measurement; 0 ≤ ε < η. Where
        results are counts, they may be rates, as percentages: `Resolution("2%", "5%")` with `Counts(100)` is
        `Resolution(2, 5)`, in successes of 100 trials.
    norm : {"each", "distance"}
        Items are near if every number differs by less than η, far if one differs by more than ε; or it is the Euclidean
        distance of all numbers (where η differs between them, each is divided by its η first).
    claim : {"references", "any-two"}
        Every item is within η of its group's reference item, and any two references are more than ε apart; or any two
        items of a group are within η, and any two groups have items more than ε apart.

    Examples
    --------
    >>> import coterie
    >>> coterie.Resolution(0.2, 0.8).claim
    'every item of a group is within 0.8 of its reference, any two references are more than 0.2 apart'
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
        alike, apart = ([trials * bound for bound in bounds] for bounds in (self.alike, self.apart))
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
        changed = Resolution.of(given)
        for name, new, own in (("norm", changed.norm, self.norm), ("claim", changed.claims, self.claims)):
            if new != own:
                raise ValueError(
                    f"the {name} cannot be changed, from {own!r} to {new!r}, only alike and apart can: give (alike, "
                    f"apart), or start anew with {name}={new!r}"
                )
        return changed

    def for_dim(self, dim: int) -> Resolution:
        """The same with one number for each number of a measurement.

        Parameters
        ----------
        dim : int
            d, how many numbers a measurement has.

        Returns
        -------
        Resolution
            With d numbers in `alike` and `apart`.

        Raises
        ------
        ValueError
            If it has another number of them.
        """
        if len(self.apart) not in (1, dim):
            raise ValueError(
                f"the resolution has {len(self.apart)} numbers, but the measurements have {dim}: give one for all, or "
                f"{dim}"
            )
        if self.rates:
            alike, apart = (_percent(np.broadcast_to(bounds, dim).tolist()) for bounds in (self.alike, self.apart))
            return Resolution(alike, apart, self.norm, self.claims)
        return Resolution(self.epsilon(dim), self.eta(dim), self.norm, self.claims)

    def epsilon(self, dim: int) -> FloatArray:
        """ε for each of the `dim` numbers of a measurement, shape (dim,)."""
        return np.array(np.broadcast_to(self.alike, dim))

    def eta(self, dim: int) -> FloatArray:
        """η for each of the `dim` numbers of a measurement, shape (dim,)."""
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
        """The same with a larger `apart`.

        Parameters
        ----------
        factor : float
            By which `apart` is multiplied, at least 1; one number for all is rounded up to three digits.

        Returns
        -------
        Resolution
            With the same `alike`, norm and claim.
        """
        wide = [factor * bound for bound in self.apart]
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
        alike, apart = (_percent(bounds) if self.rates else list(bounds) for bounds in (self.alike, self.apart))
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
        bounds = (_percent(bound) if self.rates else bound for bound in (self.alike, self.apart))
        return Resolution, (*bounds, self.norm, self.claims)

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Resolution) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.alike, self.apart, self.norm, self.claims, self.rates))

    def __repr__(self) -> str:
        written = (tuple(_percent(bounds)) if self.rates else bounds for bounds in (self.alike, self.apart))
        alike, apart = (bounds[0] if len(bounds) == 1 else bounds for bounds in written)
        return f"Resolution(alike={alike!r}, apart={apart!r}, norm={self.norm!r}, claim={self.claims!r})"


Question: TypeAlias = ExactGroups | Resolution | SingleLinkage
"""All questions there are."""

QUESTIONS = frozenset({ExactGroups.kind, Resolution.kind, SingleLinkage.kind})
"""Their kinds."""


def _in_percent(given: Any) -> list[float] | None:
    """The shares that were given as percentages, "2%" or ["2%", "5%"]; None if they are no percentages."""
    parts = [given] if isinstance(given, str) else given
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return None
    try:
        shares = [float(part.strip().removesuffix("%")) / 100.0 for part in parts if part.strip().endswith("%")]
    except ValueError:
        return None
    return shares if shares and len(shares) == len(parts) and all(0.0 <= part <= 1.0 for part in shares) else None


def _percent(bounds: Iterable[float]) -> list[str]:
    return [f"{round(100.0 * bound, 12):g}%" for bound in bounds]


def _bound(given: Any, name: str) -> FloatArray:
    value = check_real_array(given, name)
    if value.ndim > 1 or value.size == 0:
        raise ValueError(f"{name} must be a number, or one for each number of a measurement, got {short(given)}")
    return np.atleast_1d(value)


def _text(bounds: tuple[float, ...]) -> str:
    if len(set(bounds)) == 1:
        return f"{bounds[0]:g}"
    return "(" + ", ".join(f"{bound:g}" for bound in bounds) + ")"


def question_of(n_arms: Any, n_clusters: Any, dim: Any, resolution: Any, groups: Any) -> Question:
    """The question that was asked; either a number of groups or a resolution."""
    if not isinstance(groups, str) or groups not in GROUPS:
        raise SettingError(f"groups must be one of {', '.join(GROUPS)}, got {short(groups)}", "groups")
    if resolution is not None:
        if n_clusters is not None:
            raise SettingError(
                f"give a number of groups or a resolution, not both: got n_clusters={short(n_clusters)} and "
                f"resolution={short(resolution)}; with a resolution the number of groups is found",
                "resolution",
            )
        if groups != GROUPS[0]:
            raise SettingError(f"groups={groups!r} is for a number of groups: leave it out with a resolution", "groups")
        asked = checked("resolution", Resolution.of, resolution)
        checked("dim", check_count, dim, "dim", 1)
        return checked("resolution", asked.for_dim, dim) if len(asked.apart) > 1 else asked
    if n_clusters is None:
        raise SettingError(
            "n_clusters must be an integer, got None: give the number of groups, or a resolution (alike, apart) if it "
            "is not known",
            "n_clusters",
        )
    for value, field, least in ((n_clusters, "n_clusters", 2), (dim, "dim", 1)):
        checked(field, check_count, value, field, least)
    shape = checked("n_clusters", check_shape, n_arms, n_clusters, dim)
    return SingleLinkage(shape[1]) if groups == "linkage" else ExactGroups(shape[1])
