"""The log of a run that asked for groups up to a resolution, or for single linkage: its events, read strictly.

    {"event": "result", "arm": m, "round": q, "values": [...]}    q = 0: asked for before any freeze, or by nobody;
      q = j + 1: asked for after freeze j and before freeze j + 1; "asked": false if nobody asked for it
    {"event": "freeze", "epoch": j, "labels": [...], "references": [...], "level": b_j, "near": [...], "far": [...],
     for a resolution "epsilon": [...], "eta": [...], for linkage "height": h, "balls": [[reference, ρ, [items]], ...]}
    {"event": "resolution", "epoch": j, "epsilon": [...], "eta": [...]}    chosen on the way, for freeze j and later
A test is [item, reference, R, [d bounds, in scaled units], {parameters}]. Results of an arm stand in the order in which
they were asked for. docs/RESOLUTION.md says what all of it means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from coterie.problem.question import Resolution

FREEZE_FIELDS = {
    "resolution": ("level", "labels", "references", "epsilon", "eta", "near", "far"),
    "linkage": ("level", "labels", "references", "height", "balls", "near", "far"),
}
"""What a freeze says beside its number, by the kind of the question."""

MOST_RATIO = 10**6
"""The largest R."""


@dataclass(frozen=True)
class Asked:
    """The question that a log is about, as far as its events must agree with it.

    `norm`: "each" or "distance"; `claims`: "references" or "any-two", "" for linkage. `n_clusters`: K of linkage.
    `level`: b_j of epoch j.
    """

    kind: str
    n_arms: int
    dim: int
    norm: str
    claims: str
    n_clusters: int | None
    level: Callable[[int], float]


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
    """A frozen candidate with its tests: `at` counts the results before it. `given` is the event itself.

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


@dataclass(frozen=True)
class ChosenResolution:
    """A resolution that was chosen on the way, when `at` results had counted, for epoch `epoch` and later ones."""

    epoch: int
    at: int
    epsilon: FloatArray
    eta: FloatArray


@dataclass(frozen=True)
class ResolutionRecord:
    """The first t results of a log, in its order, and what was frozen on the way."""

    arms: IntArray  # (t)
    rounds: IntArray  # (t)
    asked: NDArray[np.bool_]  # (t)
    values: FloatArray  # (t, d), in the user's units
    freezes: tuple[FrozenGroups, ...]
    choices: tuple[ChosenResolution, ...]

    def stacks(self, which: NDArray[np.bool_], n_arms: int) -> list[FloatArray]:
        """Of each arm, (n, d): those of these results that are its own, in their order."""
        rows = np.flatnonzero(which)
        rows = rows[np.argsort(self.arms[rows], kind="stable")]
        ends = np.cumsum(np.bincount(self.arms[rows], minlength=n_arms))
        return np.split(self.values[rows], ends[:-1])


def read_resolution_log(events: Sequence[Any], asked: Asked, t: int) -> ResolutionRecord:
    """The record of the first t results; what comes after them is left aside. ValueError says what is wrong."""
    first = next((one.get("values") for one in events if isinstance(one, dict) and one.get("event") == "result"), None)
    if not isinstance(first, list | tuple | np.ndarray) or len(first) != asked.dim:
        # before anything of that size is made
        raise ValueError(
            f"the certificate is about results of {asked.dim} numbers, the first of the log is {short(first)}"
        )
    reading = _Reading(asked)
    readers = {"result": reading.result, "freeze": reading.freeze}
    if asked.kind == Resolution.kind:
        readers["resolution"] = reading.resolution
    for place, event in enumerate(events):
        kind = event.get("event") if isinstance(event, dict) else None
        if not isinstance(kind, str) or kind not in readers:
            raise ValueError(f"event {place} of the log must be a {' or a '.join(readers)}, got {short(event)}")
        if kind == "result" and len(reading.arms) == t:
            break
        try:
            readers[kind](event)
        except (ValueError, TypeError) as error:
            raise ValueError(f"event {place} of the log: {error}") from None
    if len(reading.arms) < t:
        raise ValueError(f"the log holds {len(reading.arms)} results, the certificate counts {t}: it is not complete")
    values = check_real_array(reading.values, "the values of the results").reshape(t, asked.dim)
    return ResolutionRecord(
        np.array(reading.arms, dtype=np.int64),
        np.array(reading.rounds, dtype=np.int64),
        np.array(reading.asked_for, dtype=bool),
        values,
        tuple(reading.freezes),
        tuple(reading.choices),
    )


class _Reading:
    """What has been read of a log so far, and the rules that the next event must keep."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.arms: list[int] = []
        self.rounds: list[int] = []
        self.asked_for: list[bool] = []
        self.values: list[Any] = []
        self.freezes: list[FrozenGroups] = []
        self.choices: list[ChosenResolution] = []
        self._bounds: tuple[FloatArray, FloatArray] | None = None  # ε and η of the last freeze, or chosen since
        self._last_round = [0] * asked.n_arms  # of each arm

    def result(self, event: dict[str, Any]) -> None:
        arm, number = check_arm(event.get("arm"), self.asked.n_arms), check_count(event.get("round"), "round", 0)
        values, asked_for = event.get("values"), event.get("asked", True)
        if not isinstance(values, list | tuple | np.ndarray) or len(values) != self.asked.dim:
            raise ValueError(f"a result must have {self.asked.dim} values, got {short(values)}")
        if not isinstance(asked_for, bool):
            raise ValueError(f"asked must be true or false, got {short(asked_for)}")
        if number > len(self.freezes):
            raise ValueError(f"a result of round {number} after {len(self.freezes)} freezes: it was asked for later")
        if number > 0 and not asked_for:
            raise ValueError(f"a result of round {number} that nobody asked for: its round must be 0")
        if asked_for and number < self._last_round[arm]:
            raise ValueError(
                f"a result of arm {arm} of round {number} after one of round {self._last_round[arm]}: results of an "
                "arm must stand in the order in which they were asked for"
            )
        if asked_for:
            self._last_round[arm] = number
        self.arms.append(arm)
        self.rounds.append(number)
        self.asked_for.append(asked_for)
        self.values.append(values)

    def freeze(self, event: dict[str, Any]) -> None:
        number = check_count(event.get("epoch"), "epoch", 0)
        if number != len(self.freezes):
            raise ValueError(f"freeze {number} is out of order: {len(self.freezes)} comes next")
        try:
            found = _frozen(event, number, len(self.arms), self.asked)
            self._keep_bounds(found)
        except (ValueError, TypeError) as error:
            raise ValueError(f"freeze {number}: {error}") from None
        self.freezes.append(found)

    def _keep_bounds(self, found: FrozenGroups) -> None:
        """That a freeze has the resolution that was asked for when it was made."""
        if found.epsilon is None or found.eta is None:
            return
        for name, its, wanted in zip(("epsilon", "eta"), (found.epsilon, found.eta), self._bounds or (), strict=False):
            if not np.array_equal(its, wanted):
                raise ValueError(
                    f"{name} must be {wanted.tolist()}, as chosen last, got {its.tolist()}: nobody has chosen that"
                )
        self._bounds = (found.epsilon, found.eta)

    def resolution(self, event: dict[str, Any]) -> None:
        epoch = check_count(event.get("epoch"), "epoch", 0)
        if epoch != len(self.freezes):
            raise ValueError(f"a resolution is chosen for epoch {epoch}, but {len(self.freezes)} comes next")
        bounds = bounds_of(field_of(event, "epsilon"), field_of(event, "eta"), self.asked.dim, self.asked.norm)
        self._bounds = bounds
        self.choices.append(ChosenResolution(epoch, len(self.arms), *bounds))


def labels_of(value: Any, n_arms: int, n_clusters: int | None) -> IntArray:
    """Labels of all arms that use every number from 0 up to their largest; K of them if K is given."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"labels must be a list, got {short(value)}")
    if len(value) != n_arms:
        raise ValueError(f"labels must have {n_arms} entries, one for each arm, got {len(value)}")
    largest = max((one for one in value if isinstance(one, int)), default=0)
    return check_labels(value, min(largest + 1, n_arms) if n_clusters is None else n_clusters)


def references_of(value: Any, labels: IntArray) -> tuple[int, ...]:
    """One arm of each group, in the order of the groups."""
    n_groups = int(labels.max()) + 1
    if not isinstance(value, list | tuple) or len(value) != n_groups:
        raise ValueError(f"references must name one arm for each of the {n_groups} groups, got {short(value)}")
    found = tuple(check_arm(arm, labels.size) for arm in value)
    for group, arm in enumerate(found):
        if labels[arm] != group:
            raise ValueError(f"the reference of group {group} is arm {arm}, of group {int(labels[arm])}")
    return found


def bounds_of(epsilon: Any, eta: Any, dim: int, norm: str) -> tuple[FloatArray, FloatArray]:
    """ε and η (d) of a resolution: 0 ≤ ε < η, and for a distance ε the same share of η everywhere."""
    low, high = check_real_array(epsilon, "epsilon"), check_real_array(eta, "eta")
    for name, value in (("epsilon", low), ("eta", high)):
        if value.shape != (dim,):
            raise ValueError(f"{name} must be {dim} numbers, got {short(value.tolist())}")
    Resolution(low, high, norm)  # the rules of a resolution: its errors name the value
    return low, high


def _frozen(event: dict[str, Any], number: int, at: int, asked: Asked) -> FrozenGroups:
    agree("level", field_of(event, "level"), asked.level(number))
    labels = labels_of(field_of(event, "labels"), asked.n_arms, asked.n_clusters)
    references = references_of(field_of(event, "references"), labels)
    epsilon = eta = height = None
    balls: tuple[Ball, ...] = ()
    scale = np.ones(asked.dim)
    if asked.kind == Resolution.kind:
        epsilon, eta = bounds_of(field_of(event, "epsilon"), field_of(event, "eta"), asked.dim, asked.norm)
        scale = eta
    else:
        height = check_positive(field_of(event, "height"), "height")
        balls = tuple(_ball(entry, labels) for entry in list_of(event, "balls"))
    near, far = (_tests(list_of(event, name), name, asked) for name in ("near", "far"))
    return FrozenGroups(
        number, at, asked.level(number), labels, references, near, far, scale, epsilon, eta, height, balls, event
    )


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


def _tests(entries: Sequence[Any], name: str, asked: Asked) -> FrozenTests:
    """All tests of a kind: at once where they are plain numbers as they should be, else one by one."""
    found = _at_once(entries, asked)
    if found is None:
        rows = [_test(entry, f"{name} test {i}", asked) for i, entry in enumerate(entries)]
        found = _at_once(rows, asked)
        assert found is not None
    return found


def _at_once(entries: Sequence[Any], asked: Asked) -> FrozenTests | None:
    """The tests if every one of them is right, and of plain types; None if one is not."""
    if not all(isinstance(entry, list | tuple) and len(entry) == 5 for entry in entries):
        return None
    items, references, ratios, bounds, parameters = zip(*entries, strict=True) if entries else ((), (), (), (), ())
    if not all(type(one) is int and 0 <= one < 2**31 for column in (items, references, ratios) for one in column):
        return None
    if not all(isinstance(one, dict) for one in parameters):
        return None
    try:
        bound = check_real_array(bounds, "the bounds") if bounds else np.empty((0, asked.dim))
    except (ValueError, TypeError):
        return None
    item, reference, ratio = (np.array(column, dtype=np.int64) for column in (items, references, ratios))
    right = (item < asked.n_arms) & (reference < asked.n_arms) & (item != reference)
    right &= (ratio >= 1) & (ratio <= MOST_RATIO)
    if not right.all() or bound.shape != (len(entries), asked.dim) or not (bound >= 0.0).all():
        return None
    if asked.norm == "distance" and not (bound == bound[:, :1]).all():
        return None
    return FrozenTests(item, reference, ratio, bound, parameters)


def _test(entry: Any, name: str, asked: Asked) -> list[Any]:
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
