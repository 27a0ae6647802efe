"""Results far from the other results of their item: one of them may explain what groups or items are blamed for.

A remark for people, not a proof: far is more than eight standard deviations of the stated noise, or twenty times the
usual spread of repeats where none is stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Model
from coterie.problem.noise import Noise
from coterie.session.measurements import Measurements

if TYPE_CHECKING:
    from coterie.session.session import Session

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
    if rows.size == 0:
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
