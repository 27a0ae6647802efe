"""What a session says beside its proof: more groups than claimed, mixed groups, results that drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.evidence.order import OrderEvidence, order_evidence
from coterie.evidence.shifts import SHIFT_THRESHOLD, shift_evidence
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Model
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups
from coterie.problem.settings import Settings
from coterie.session.lines import Measurements

if TYPE_CHECKING:
    from coterie.session.session import Session


_ADVICE = (
    "Equal items may look different because they were measured at different times. Start again and state {} as blocks: "
    "then items are compared within a block only, and shifts do no harm."
)


class SeenDrift(NamedTuple):
    """What was seen, what to do, the evidence, a log, and what it had to reach."""

    words: str
    advice: str
    evidence: float
    threshold: float


def seen_shift(
    settings: Settings, arms: IntArray, values: FloatArray, labels: IntArray | None, days: Sequence[str] | None = None
) -> SeenDrift | None:
    """Whether results lie apart from those of the day before, by more than chance allows; None if not.

    It is for exactly K groups, since results are compared within groups of equal items.

    Parameters
    ----------
    settings
        Of the run.
    arms, values
        The items (n) of the results (n, d), in the order in which these counted.
    labels
        The groups, proven or guessed; -1 for items that have left.
    days
        What the day of each result is called; None: nobody knows, and stretches of results are compared.
    """
    if labels is None or settings.question.kind != ExactGroups.kind or arms.size < 2 * settings.n_arms:
        return None  # of few results groups are hardly a guess
    numbers: IntArray | None = None
    if days is not None:
        numbers = np.cumsum([0, *(after != before for before, after in pairwise(days))])
    evidence = shift_evidence(labels[arms], values, numbers)
    if evidence is None or not evidence.reached:
        return None
    if days is None:
        later, earlier = (f"results {part.start + 1} to {part.stop}" for part in (evidence.after, evidence.before))
    else:
        later, earlier = (f"results of {days[part.start]}" for part in (evidence.after, evidence.before))
    way = "higher" if evidence.size > 0.0 else "lower"
    which = which_number(settings.dim, evidence.column)
    words = f"Results drift: {later} lie {abs(evidence.size):.1f} sd {way} than {earlier}{which}."
    advice = _ADVICE.format("days" if days is not None else "days, plates, or whatever changed between them,")
    return SeenDrift(words, advice, evidence.value, SHIFT_THRESHOLD)


def seen_drift(arms: IntArray, values: FloatArray, n_arms: int, names: Sequence[str] | None) -> SeenDrift | None:
    """Whether later results (n, d) of these arms (n) lie higher, or lower, than earlier ones; None if not.

    It assumes nothing about groups, the noise, or the rule of sampling: `coterie.evidence.order`.
    """
    if arms.size == 0:
        return None
    evidence, dim = order_evidence(arms, values, n_arms), values.shape[1]
    if not evidence.reached:
        return None
    way, which = way_of(evidence, dim)
    if evidence.of_one:
        name = evidence.arm if names is None else names[evidence.arm]
        words = f"Item {name} drifts: its later results are {way} than its earlier ones{which}."
        return SeenDrift(words, "", evidence.single, evidence.single_threshold)
    words = f"Results drift: later results of items are {way} than earlier ones{which}."
    return SeenDrift(words, "", evidence.joint, evidence.joint_threshold)


def way_of(evidence: OrderEvidence, dim: int) -> tuple[str, str]:
    """Whether later, or late, results are higher or lower, and in which number of a result."""
    up, column = (evidence.arm_upwards, evidence.arm_column) if evidence.of_one else (evidence.upwards, evidence.column)
    return "higher" if up else "lower", which_number(dim, column)


def which_number(dim: int, column: int) -> str:
    """Which number of a result is meant, where there are several."""
    return "" if dim == 1 else f" in number {column + 1} of a result"


@dataclass(frozen=True)
class Alarm:
    """K is refuted: K + 1 items are pairwise known to differ.

    Parameters
    ----------
    arms, names : tuple of int and tuple of str
        These items, and what they are called.
    n_clusters, n_arms : int
        K, and how many items there are.
    probability : float
        If there are K groups and the noise is as stated, an alarm is ever raised with at most this probability.
    known_noise : bool
        A noise was stated, and may be too small.
    """

    arms: tuple[int, ...]
    n_clusters: int
    probability: float
    n_arms: int
    names: tuple[str, ...] | None = None
    known_noise: bool = True

    @property
    def seen(self) -> str:
        """What was seen."""
        items = listed([str(arm) for arm in self.arms] if self.names is None else self.names)
        return (
            f"K = {self.n_clusters} is refuted: items {items} are pairwise known to differ, so there are at least "
            f"{len(self.arms)} groups (wrong with probability at most {self.probability:g})."
        )

    @property
    def advice(self) -> str:
        """What to do."""
        larger = (
            "state larger noise if single measurements vary more than stated."
            if self.known_noise
            else "state less about the noise if it is not as stated."
        )
        if len(self.arms) >= self.n_arms:
            return f"No two items are alike, so there is nothing to group; or {larger}"
        return f"Start again with n_clusters of at least {len(self.arms)}, or {larger}"

    def __str__(self) -> str:
        return f"{self.seen} {self.advice}"


@dataclass(frozen=True)
class Homogeneity:
    """Whether each group looks like one, by the results that counted (`coterie.evidence.hidden_groups`): False if not.

    Parameters
    ----------
    evidence : tuple of float
        Of each group, in the order of `labels`, that its items differ.
    threshold, level : float
        A group whose evidence reaches the threshold looks mixed. If the groups, their number and the noise are right,
        any does with probability at most `level`.
    mixed, members : tuple of int and tuple of str
        The groups that look mixed, and which items are in them.
    confirmed : int, optional
        With the setting `confirm`, once all is measured: the measurements after the proof.
    visible : tuple of float, optional
        For each number of a result the difference between two halves of a group that would have been seen with a
        probability of about 0.9, in the units of the measurements (an estimate; None if no group has two items).
    """

    evidence: tuple[float, ...]
    threshold: float
    level: float
    mixed: tuple[int, ...]
    members: tuple[str, ...] = field(default=(), repr=False)
    confirmed: int | None = None
    visible: tuple[float, ...] | None = None

    def __bool__(self) -> bool:
        return not self.mixed

    def seen(self, numbers: Sequence[int] | None = None) -> str:
        """What was seen; `numbers`: what the groups are called, if not 0, 1, …"""
        if not self.mixed:
            looks = (
                f"each group looks like one: its measurements differ by no more than chance (tested at {self._rate})."
            )
            return f"{looks} {self._would}" if self._would else looks
        called = [f"{k if numbers is None else numbers[k]}" for k in self.mixed]
        which = [f"group {name} (items {items})" for name, items in zip(called, self.members, strict=True)]
        look = "looks mixed: its" if len(which) == 1 else "look mixed: their"
        return f"{listed(which, '; ')} {look} measurements differ by more than chance ({self._rate})."

    @property
    def advice(self) -> str:
        """What it may mean; nothing if no group looks mixed."""
        return MIXED_MEANS if self.mixed else ""

    @property
    def _would(self) -> str:
        """Which difference would have been seen."""
        if self.confirmed is None or self.visible is None:
            return ""
        if not any(size < math.inf for size in self.visible):
            return f"The {self.confirmed} measurements after the proof are too few to notice a group that hides two."
        sizes = ", ".join(f"{size:.2g}" if size < math.inf else "none" for size in self.visible)
        where = "" if len(self.visible) == 1 else " (number by number)"
        return (
            f"With the {self.confirmed} measurements after the proof, a group that hides two would have been noticed "
            f"in about 9 of 10 runs if they differ by {sizes}{where}."
        )

    @property
    def _rate(self) -> str:
        return f"{100.0 * self.level:g} %"

    def __str__(self) -> str:
        return f"{self.seen()} {self.advice}".rstrip()


def confirming_words(counted: int, wanted: int) -> str:
    """How far the measurements after the proof are."""
    return f"{counted} of {wanted} measurements after the proof, to see whether a group hides two"


MIXED_MEANS = "There may be more groups than stated, the noise not as stated, or items of a group not exactly alike."

_MANY = 12


def listed(names: Sequence[str], mark: str = ", ") -> str:
    """a, b and c; of many names the first twelve."""
    if len(names) > _MANY:
        return f"{mark.join(names[:_MANY])} and {len(names) - _MANY} more"
    return f"{mark.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


# Results far from the other results of their item: one of them may explain what groups or items are blamed for.
#
# A remark for people, not a proof: far is more than eight standard deviations of the stated noise, or twenty times the
# usual spread of repeats where none is stated.


FAR, FAR_UNSTATED = 8.0, 20.0
_FEWEST_REPEATS = 12


@dataclass(frozen=True)
class FarValue:
    """A result far from the others of its item. `row`: its place in the log; `alone`: there is one other only, and
    either of the two may be the wrong one.
    """

    row: int
    arm: int
    column: int
    value: float
    others: float
    away: float
    stated: bool
    alone: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {key: getattr(self, key) for key in ("row", "arm", "column", "value", "others", "away", "alone")}

    def seen(self, name: str, when: str = "") -> str:
        """What was seen; `when` it was told, if that is known."""
        units = "standard deviations" if self.stated else "times the usual spread of repeats"
        which = "" if self.column == 0 else f" (number {self.column + 1})"
        told = f", told {when}," if when else f" (result {self.row} of the log)"
        rest = "the other one" if self.alone else "the others"
        other = f"; or the other one, {self.others:.6g}, is wrong" if self.alone else ""
        far = f"lies {self.away:.0f} {units} from {rest}, {self.others:.6g}{other}"
        return f"{self.value:.6g}{which} of {name}{told} {far}"


def far_value(session: Session, rows: IntArray, nearer: float = 1.0) -> FarValue | None:
    """As `farthest_value`, of a session."""
    return farthest_value(session.log_arrays, session.noise, rows, nearer)


def farthest_value(log: Measurements, noise: Model, rows: IntArray, nearer: float = 1.0) -> FarValue | None:
    """The farthest of these results from the median of its item's others, if it is far; None if none is.

    `nearer`: the share of the usual distance from which on it is far, where no noise is stated.
    """
    if rows.size == 0 or log.by_panel:
        return None
    arms = log.arms_of(rows)
    values = log.array[rows]
    deviations = _deviations(noise, arms, values)
    if deviations is None:
        return None
    stated = isinstance(noise, Noise)
    order = np.argsort(arms, kind="stable")
    starts = np.flatnonzero(np.diff(arms[order], prepend=-1))
    lengths = np.diff(starts, append=arms.size)
    worst: FarValue | None = None
    for length in np.unique(lengths[lengths > 1]).tolist():
        # Items with as many results at once: there may be a million items.
        own = order[starts[lengths == length][:, None] + np.arange(length)]  # (items, results)
        place, others, away = _farthest(values[own], deviations)
        item, column = (int(i) for i in np.unravel_index(int(np.argmax(away)), away.shape))
        farthest, arm = float(away[item, column]), int(arms[own[item, 0]])
        if worst is not None and (-farthest, arm, column) >= (-worst.away, worst.arm, worst.column):
            continue
        row = int(own[item, place[item, column]])
        other = float(others[item, column])
        worst = FarValue(
            int(rows[row]), arm, column, float(values[row, column]), other, farthest, stated, length == 2
        )  # fmt: skip
    return worst if worst is not None and worst.away > (FAR if stated else nearer * FAR_UNSTATED) else None


def _farthest(values: FloatArray, deviations: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Of the values (items, results, numbers): the place of the one farthest from the median of the item's others, that
    median, and how far it is, each (items, numbers). A number without a deviation has none that is far.
    """
    items, length, dim = values.shape
    each = np.moveaxis(values, 1, 2)  # (items, numbers, results)
    place = np.ones((items, dim), dtype=np.int64)  # of two the later one: the earlier one was there to be compared with
    if length > 2:
        place = np.argmax(np.abs(each - np.median(each, axis=2)[:, :, None]), axis=2)
    rest = each[np.arange(length) != place[:, :, None]].reshape(items, dim, length - 1)
    others = np.median(rest, axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.abs(np.take_along_axis(each, place[:, :, None], axis=2)[:, :, 0] - others) / deviations
    return place, others, np.where(deviations > 0.0, away, -1.0)


def _deviations(noise: Model, arms: IntArray, values: FloatArray) -> FloatArray | None:
    """Of each number of a result: as stated, or as repeats differ in the median; None if there are few repeats."""
    if isinstance(noise, Noise):
        return np.sqrt(np.diagonal(noise.covariance))
    order = np.argsort(arms, kind="stable")
    same = arms[order][1:] == arms[order][:-1]
    steps = np.abs(np.diff(values[order], axis=0))[same]
    if len(steps) < _FEWEST_REPEATS:
        return None
    return np.asarray(np.median(steps, axis=0) / (0.6745 * np.sqrt(2.0)))
