"""What a run is told before its first measurement: one frozen `Settings`, checked once, used at every door.

A door is whatever takes settings from people: `Session`, `cluster`, tables, campaigns, the HTTP interface, the command
line. Each collects what it was given and calls `Settings.of`; an error says which setting is at fault in `field`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar

from coterie.problem.checks import (
    check_count,
    check_delta,
    check_distance_ratio,
    check_shape,
    check_threshold_kind,
    short,
)
from coterie.problem.instance import Instance
from coterie.problem.noise import Noise, PlainNoise
from coterie.problem.question import ExactGroups, Question

_Checked = TypeVar("_Checked")

DELTA, METHOD, THRESHOLD = 0.05, "croc", "proven"
"""What holds if nothing is said."""


class SettingError(ValueError):
    """A setting that cannot be used; `field` is its name."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class SettingTypeError(SettingError, TypeError):
    """A setting of the wrong type; `field` is its name."""


@contextmanager
def blaming(field: str) -> Iterator[None]:
    """Turn a complaint of the checks inside into a `SettingError` of this field."""
    try:
        yield
    except SettingError:
        raise
    except TypeError as error:
        raise SettingTypeError(str(error), field) from None
    except (ValueError, OverflowError) as error:
        raise SettingError(str(error), field) from None


def checked(field: str, check: Callable[..., _Checked], *arguments: Any) -> _Checked:
    """The answer of a check; what it refuses is a `SettingError` of this field."""
    with blaming(field):
        return check(*arguments)


class FurtherOptions(TypedDict, total=False):
    """The settings that have a default, but for δ and the method."""

    threshold: str
    noise: Any
    distance_ratio: float | None
    instance: Instance | None
    names: Iterable[str] | None


class Options(FurtherOptions, total=False):
    """The settings that have a default, for doors that pass them on as they were given."""

    delta: float
    method: str


@dataclass(frozen=True)
class Settings:
    """A checked description of a run: M arms, the question, d numbers a measurement, δ, method, noise, names.

    Build it with `Settings.of`, then hand it to `coterie.methods.prepared`, which checks what the method needs.
    """

    n_arms: int
    question: Question
    dim: int
    delta: float
    method: str
    threshold: str
    noise: Noise
    distance_ratio: float | None = None
    instance: Instance | None = None
    names: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        n_arms: Any,
        n_clusters: Any,
        dim: Any,
        delta: Any = DELTA,
        method: Any = METHOD,
        threshold: Any = THRESHOLD,
        noise: Any = None,
        distance_ratio: Any = None,
        instance: Any = None,
        names: Any = None,
    ) -> Settings:
        """Settings from what a caller gave; `SettingError` names the setting at fault and says what to do."""
        for value, field, least in ((n_arms, "n_arms", 1), (n_clusters, "n_clusters", 2), (dim, "dim", 1)):
            checked(field, check_count, value, field, least)
        shape = checked("n_clusters", check_shape, n_arms, n_clusters, dim)
        return cls(
            shape[0],
            ExactGroups(shape[1]),
            shape[2],
            checked("delta", check_delta, delta),
            method,  # `coterie.methods` knows which there are
            checked("threshold", check_threshold_kind, threshold),
            checked("noise", Noise.of, noise, shape[2]),
            None if distance_ratio is None else checked("distance_ratio", check_distance_ratio, distance_ratio),
            checked("instance", _checked_instance, instance, shape),
            None if names is None else checked("names", _checked_names, names, shape[0]),
        )

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.question.n_clusters

    @property
    def shape(self) -> tuple[int, int, int]:
        """(M, K, d)."""
        return self.n_arms, self.n_clusters, self.dim

    def name_of(self, arm: int) -> str:
        """What people call an arm: its name, or its number."""
        return str(arm) if self.names is None else self.names[arm]

    def with_dim(self, dim: int) -> Settings:
        """A copy for measurements of d numbers; the noise must be for that dimension."""
        return replace(self, dim=dim, noise=Noise.of(self.noise.to_json(), dim))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives the same settings back."""
        instance = self.instance
        truth = None
        if instance is not None:
            truth = {"labels": instance.labels.tolist(), "centers": instance.centers.tolist()}
        noise: PlainNoise = self.noise.to_json()
        return {
            "n_arms": self.n_arms,
            "n_clusters": self.n_clusters,
            "dim": self.dim,
            "delta": self.delta,
            "method": self.method,
            "threshold": self.threshold,
            "noise": noise,
            "distance_ratio": self.distance_ratio,
            "instance": truth,
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Settings:
        """The settings that `to_json` described."""
        known = {field: saved[field] for field in FIELDS if field in saved}
        truth = known.get("instance")
        if truth is not None:
            known["instance"] = checked("instance", lambda: Instance(truth["labels"], truth["centers"]))
        return cls.of(**known)


FIELDS = (
    "n_arms",
    "n_clusters",
    "dim",
    "delta",
    "method",
    "threshold",
    "noise",
    "distance_ratio",
    "instance",
    "names",
)
"""The settings by name, in the order in which `Session` takes them."""


def _checked_instance(instance: Any, shape: tuple[int, int, int]) -> Instance | None:
    if instance is None:
        return None
    if not isinstance(instance, Instance):
        raise ValueError(
            f"a method that knows the truth needs the true instance, got {short(instance)}: give a coterie.Instance"
        )
    if (instance.n_arms, instance.n_clusters, instance.dim) != shape:
        raise ValueError(
            f"the instance has {instance.n_arms} arms, {instance.n_clusters} clusters and dimension "
            f"{instance.dim}, the session {shape[0]}, {shape[1]} and {shape[2]}"
        )
    return instance


def _checked_names(names: Any, n_arms: int) -> tuple[str, ...]:
    given = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if not all(isinstance(name, str) for name in given) or isinstance(names, str):
        raise TypeError(f"names must be {n_arms} strings, got {short(names)}")
    if len(given) != n_arms:
        raise ValueError(f"names must be {n_arms} strings, one for each arm, got {len(given)}")
    if len(set(given)) != n_arms:
        twice = next(name for name in given if given.count(name) > 1)
        raise ValueError(f"names must differ, got {twice!r} more than once")
    return tuple(given)
