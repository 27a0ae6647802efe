"""Frozen candidates, as a log has them: groups with the cores or the tests by which they are to be proven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.certificate.fields import agree, field_of, list_of
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_arm,
    check_count,
    check_labels,
    check_positive,
    check_real,
    check_real_array,
    short,
)
from coterie.problem.features import Features
from coterie.problem.question import Resolution, SingleLinkage

NEARNESS = (Resolution.kind, SingleLinkage.kind)
"""Questions whose freezes say which items are near and which are far apart."""

FREEZE_FIELDS = {
    "resolution": ("level", "labels", "references", "epsilon", "eta", "near", "far"),
    "linkage": ("level", "labels", "references", "height", "balls", "near", "far"),
}
"""What a freeze of these questions says beside its number."""

MOST_RATIO = 10**6
"""The largest R."""


def _no_level(epoch: int) -> float:
    raise ValueError(f"epoch {epoch} has no level in the log")


@dataclass(frozen=True)
class LogSubject:
    """What a log is about, as far as its events must agree with it.

    `kind`: "groups", "resolution", "linkage" or "table"; `n_clusters`: K, where it is given. Of the questions of
    nearness, `norm`: "each" or "distance"; `claims`: "references" or "any-two", "" for linkage; `level`: b_j by epoch.
    `blocks`: "offset" or "drawn" for a run in blocks, "" for any other; `strict`: unfinished cells never count.
    `holes`: results may lack numbers. `features`: where they are measured apart, what each panel gives.
    """

    kind: str
    n_arms: int
    dim: int
    n_clusters: int | None = None
    norm: str = ""
    claims: str = ""
    level: Callable[[int], float] = _no_level
    blocks: str = ""
    strict: bool = False
    holes: bool = False
    features: Features | None = None


@dataclass(frozen=True)
class Freeze:
    """A candidate of K groups: `at` counts the results before it, `cores` holds the arms of Q_k, sorted.

    `bet` is as it stands in the log; where features are measured apart, the bets on them.
    """

    number: int
    at: int
    labels: IntArray
    cores: tuple[tuple[int, ...], ...]
    bet: Any = field(default=None, compare=False)

    def agrees(self, other: Freeze) -> bool:
        """Whether both describe the same freeze."""
        own, others = (self.number, self.at, self.cores), (other.number, other.at, other.cores)
        return own == others and np.array_equal(self.labels, other.labels)

    @property
    def in_core(self) -> np.ndarray:
        """(M): which arms are in a core."""
        member = np.zeros(self.labels.size, dtype=bool)
        member[[arm for core in self.cores for arm in core]] = True
        return member


def frozen_of(given: dict[str, Any], number: Any, at: Any, n_arms: int, n_clusters: int) -> Freeze:
    """A candidate of K groups from plain values: K nonempty groups, and in each a nonempty core."""
    labels, cores = check_labels(given.get("labels"), n_clusters), given.get("cores")
    if labels.size != n_arms:
        raise ValueError(f"the freeze labels {labels.size} arms, there are {n_arms}")
    if not isinstance(cores, list | tuple) or len(cores) != n_clusters:
        raise ValueError(f"cores must list the core arms of each of the {n_clusters} groups, got {short(cores)}")
    sets = []
    for group, core in enumerate(cores):
        if not isinstance(core, list | tuple) or not core:
            raise ValueError(f"the core of group {group} must be a list of at least one arm, got {short(core)}")
        arms = tuple(sorted(check_arm(arm, n_arms) for arm in core))
        if len(set(arms)) != len(arms):
            raise ValueError(f"the core of group {group} names an arm twice: {short(core)}")
        for arm in arms:
            if labels[arm] != group:
                raise ValueError(f"arm {arm} is in the core of group {group} but labelled {int(labels[arm])}")
        sets.append(arms)
    number, at = check_count(number, "epoch", 0), check_count(at, "frozen_at", 0)
    return Freeze(number, at, labels, tuple(sets), given.get("bet"))


@dataclass(frozen=True)
class FrozenTests:
    """Tests as a freeze wrote them down, one a row: θ is the mean of `item` minus that of `reference`."""

    item: IntArray
    reference: IntArray
    ratio: IntArray
    bound: FloatArray  # (n, d)
    parameters: tuple[dict[str, Any], ...]

    @property
    def low(self) -> IntArray:
        """The lower of the two arms of each test."""
        return np.minimum(self.item, self.reference)

    @property
    def high(self) -> IntArray:
        """The higher of the two arms of each test."""
        return np.maximum(self.item, self.reference)


@dataclass(frozen=True)
class Ball:
    """Items of a group that are within `radius` of one of them, the reference; it may be the only one."""

    reference: int
    radius: float
    items: tuple[int, ...]


@dataclass(frozen=True)
class FrozenGroups:
    """A candidate with its tests of nearness: `at` counts the results before it. `given` is the event itself.

    `scale`: (d), what a unit of the tests is in the user's units. `epsilon`, `eta` are of a resolution, the height
    and the balls of linkage.
    """

    number: int
    at: int
    level: float
    labels: IntArray
    references: tuple[int, ...]
    near: FrozenTests
    far: FrozenTests
    scale: FloatArray
    epsilon: FloatArray | None
    eta: FloatArray | None
    height: float | None
    balls: tuple[Ball, ...]
    given: dict[str, Any]


def frozen_groups_of(event: dict[str, Any], number: int, at: int, asked: LogSubject) -> FrozenGroups:
    """A candidate with its tests; ValueError or TypeError says what is wrong with it."""
    agree("level", field_of(event, "level"), asked.level(number))
    labels = labels_of(field_of(event, "labels"), asked.n_arms, asked.n_clusters)
    references = references_of(field_of(event, "references"), labels)
    epsilon = eta = height = None
    balls: tuple[Ball, ...] = ()
    scale = np.ones(asked.dim)
    if asked.kind == Resolution.kind:
        epsilon, eta = bounds_of(event, asked.dim, asked.norm)
        scale = eta
    else:
        height = check_positive(field_of(event, "height"), "height")
        balls = tuple(_ball(entry, labels) for entry in list_of(event, "balls"))
    near, far = (_tests(list_of(event, name), name, asked) for name in ("near", "far"))
    return FrozenGroups(
        number, at, asked.level(number), labels, references, near, far, scale, epsilon, eta, height, balls, event
    )


def labels_of(value: Any, n_arms: int, n_clusters: int | None) -> IntArray:
    """Labels of all arms that use every number from 0 up to their largest; K of them if K is given."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"labels must be a list, got {short(value)}")
    if len(value) != n_arms:  # before anything of the size of n_arms or n_clusters is made
        raise ValueError(f"labels must have {n_arms} entries, one for each arm, got {len(value)}")
    largest = max((label for label in value if isinstance(label, int)), default=0)
    return check_labels(value, min(largest + 1, n_arms) if n_clusters is None else n_clusters)


def references_of(value: Any, labels: IntArray, name: str = "references") -> tuple[int, ...]:
    """One arm of each group, in the order of the groups."""
    n_groups = int(labels.max()) + 1
    if not isinstance(value, list | tuple) or len(value) != n_groups:
        raise ValueError(f"{name} must name one arm for each of the {n_groups} groups, got {short(value)}")
    arms = tuple(check_arm(arm, labels.size) for arm in value)
    for group, arm in enumerate(arms):
        if labels[arm] != group:
            raise ValueError(f"the {name[:-1]} of group {group} is arm {arm}, of group {int(labels[arm])}")
    return arms


def bounds_of(given: dict[str, Any], dim: int, norm: str) -> tuple[FloatArray, FloatArray]:
    """ε and η (d) of a resolution: 0 ≤ ε < η, and for a distance ε the same share of η everywhere."""
    epsilon, eta = (check_real_array(field_of(given, name), name) for name in ("epsilon", "eta"))
    for name, value in (("epsilon", epsilon), ("eta", eta)):
        if value.shape != (dim,):
            raise ValueError(f"{name} must be {dim} numbers, got {short(value.tolist())}")
    Resolution(epsilon, eta, norm)  # the rules of a resolution: its errors name the value
    return epsilon, eta


def _ball(entry: Any, labels: IntArray) -> Ball:
    if not isinstance(entry, list | tuple) or len(entry) != 3 or not isinstance(entry[2], list | tuple):
        raise ValueError(f"a ball must be [reference, radius, [items]], got {short(entry)}")
    reference, radius = check_arm(entry[0], labels.size), check_real(entry[1], "the radius of a ball")
    if radius < 0.0:
        raise ValueError(f"the radius of a ball must not be negative, got {radius!r}")
    items = tuple(check_arm(arm, labels.size) for arm in entry[2])
    stranger = next((arm for arm in items if labels[arm] != labels[reference]), None)
    if stranger is not None:
        raise ValueError(f"the ball about arm {reference} has arm {stranger}, which is of another group")
    return Ball(reference, radius, items)


def _tests(entries: Sequence[Any], name: str, asked: LogSubject) -> FrozenTests:
    """All tests of a kind: at once where they are plain numbers as they should be, else one by one."""
    tests = _at_once(entries, asked)
    if tests is None:
        rows = [_test(entry, f"{name} test {i}", asked) for i, entry in enumerate(entries)]
        tests = _at_once(rows, asked)
        assert tests is not None
    return tests


def _at_once(entries: Sequence[Any], asked: LogSubject) -> FrozenTests | None:
    """The tests if every one of them is right, and of plain types; None if one is not."""
    if not all(isinstance(entry, list | tuple) and len(entry) == 5 for entry in entries):
        return None
    *numbers, bounds, parameters = zip(*entries, strict=True) if entries else ((), (), (), (), ())
    if not all(type(number) is int and 0 <= number < 2**31 for column in numbers for number in column):
        return None
    if not all(isinstance(entry, dict) for entry in parameters):
        return None
    try:
        bound = check_real_array(bounds, "the bounds") if bounds else np.empty((0, asked.dim))
    except (ValueError, TypeError):
        return None
    item, reference, ratio = (np.array(column, dtype=np.int64) for column in numbers)
    right = (item < asked.n_arms) & (reference < asked.n_arms) & (item != reference)
    right &= (ratio >= 1) & (ratio <= MOST_RATIO)
    if not right.all() or bound.shape != (len(entries), asked.dim) or not (bound >= 0.0).all():
        return None
    if asked.norm == "distance" and not (bound == bound[:, :1]).all():
        return None
    return FrozenTests(item, reference, ratio, bound, parameters)


def _test(entry: Any, name: str, asked: LogSubject) -> list[Any]:
    """One test, with plain numbers; ValueError or TypeError says what is wrong with it."""
    if not isinstance(entry, list | tuple) or len(entry) != 5:
        raise ValueError(f"{name} must be [item, reference, R, bounds, parameters], got {short(entry)}")
    item, reference = check_arm(entry[0], asked.n_arms), check_arm(entry[1], asked.n_arms)
    if item == reference:
        raise ValueError(f"{name} compares arm {item} with itself")
    ratio = check_count(entry[2], f"R of {name}", 1)
    if ratio > MOST_RATIO:
        raise ValueError(f"R of {name} must be at most {MOST_RATIO}, got {ratio}")
    bound = check_real_array(entry[3], f"the bounds of {name}")
    if bound.shape != (asked.dim,) or (bound < 0.0).any():
        raise ValueError(f"the bounds of {name} must be {asked.dim} numbers of at least 0, got {short(entry[3])}")
    if asked.norm == "distance" and not (bound == bound[0]).all():
        raise ValueError(f"the bounds of {name} must be one distance for all coordinates, got {short(entry[3])}")
    if not isinstance(entry[4], dict):
        raise TypeError(f"the parameters of {name} must be an object, got {short(entry[4])}")
    return [item, reference, ratio, bound.tolist(), entry[4]]
