"""Results far from the other results of their item: one of them may explain what groups or items are blamed for.

A remark for people, not a proof: far is more than eight standard deviations of the stated noise, or twenty times the
usual spread of repeats where none is stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.noise import Noise

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


def far_value(session: Session, rows: IntArray) -> FarValue | None:
    """The farthest of these results from the median of its item's others, if it is far; None if none is."""
    log = session._measurements
    if rows.size == 0:
        return None
    arms = log.arms_of(rows)
    values = np.array([log.values[row] for row in rows.tolist()])
    deviations = _deviations(session, arms, values)
    if deviations is None:
        return None
    stated = isinstance(session.noise, Noise)
    worst: FarValue | None = None
    for arm in np.unique(arms).tolist():
        own = np.flatnonzero(arms == arm)
        if own.size < 2:
            continue
        for column in range(values.shape[1]):
            found = _farthest(values[own, column], float(deviations[column]))
            if found is not None and (worst is None or found[1] > worst.away):
                place, away, others = found
                row = int(rows[own[place]])
                value = float(values[own[place], column])
                worst = FarValue(row, arm, column, value, others, away, stated, own.size == 2)
    return worst if worst is not None and worst.away > (FAR if stated else FAR_UNSTATED) else None


def _farthest(values: FloatArray, deviation: float) -> tuple[int, float, float] | None:
    """The place of the value farthest from the median of the others, how far, and that median."""
    if not deviation > 0.0:
        return None
    center = float(np.median(values))
    place = int(np.argmax(np.abs(values - center)))
    if values.size == 2:
        place = 1  # the later one: the earlier one was there to be compared with
    others = float(np.median(np.delete(values, place)))
    return place, abs(float(values[place]) - others) / deviation, others


def _deviations(session: Session, arms: IntArray, values: FloatArray) -> FloatArray | None:
    """Of each number of a result: as stated, or as repeats differ in the median; None if there are few repeats."""
    if isinstance(session.noise, Noise):
        return np.sqrt(np.diagonal(session.noise.covariance))
    order = np.argsort(arms, kind="stable")
    same = arms[order][1:] == arms[order][:-1]
    steps = np.abs(np.diff(values[order], axis=0))[same]
    if len(steps) < _FEWEST_REPEATS:
        return None
    return np.asarray(np.median(steps, axis=0) / (0.6745 * np.sqrt(2.0)))
