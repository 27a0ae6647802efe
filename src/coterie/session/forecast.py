"""How many measurements a session still needs: a forecast with an interval, calibrated on simulated runs.

A method's own forecast is rough: it is made for choosing what to measure, leaves out what exploration will still take,
and does not look at what open tests have gathered. Here it is corrected by a table (`coterie.session.calibration`) that
was fitted to simulated runs by `coterie bench forecast`, and tried on families of runs that it was not fitted to.
Nothing here decides anything or enters a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coterie.methods.reports import Standing
from coterie.problem.checks import FloatArray
from coterie.session.calibration import TABLE

if TYPE_CHECKING:
    from coterie.session.session import Session

_NORMAL_90 = 1.2815515655446004
_LEAST_WORKED = 0.02
_LEAST_LEFT = 0.5
_FAR, _OFTEN = math.log(1e6), 4.0
WILD = 10.0
"""A forecast of more than so many times the measurements there are is no number to go by: it is not printed."""
TOO_EARLY = "too early to say how many more"
_WIDE = 5.0  # nor is one whose ends are so many times apart, while more may be needed than there are
TESTING, EXPLORING = "testing", "exploring"


@dataclass(frozen=True)
class Forecast:
    """Measurements still needed: as likely more as fewer than `remaining`; in about 8 of 10 runs `low` to `high`.

    `t`: the measurements that it rests on.

    It is no promise, and enters no proof. docs/PERFORMANCE.md has how well it does.
    """

    remaining: float
    low: float
    high: float
    t: int

    @property
    def wild(self) -> bool:
        """Whether it is no number to go by: far more than the measurements that it rests on."""
        return self.remaining > WILD * self.t

    @property
    def vague(self) -> bool:
        """Whether only the interval is worth a word: it is wide, and more may be needed than there are."""
        return self.high > self.t and self.high > _WIDE * self.low

    @property
    def words(self) -> str:
        """In a few words; a number only if it is one to go by."""
        if self.high <= 0.0:
            return "none"
        middle, low, high = (max(1, rounded(value)) for value in (self.remaining, self.low, self.high))
        if self.wild:
            return TOO_EARLY
        if self.vague:
            return f"{TOO_EARLY}: between about {low} and {high}"
        return f"about {middle} more, probably {low} to {high}"

    def chance(self, more: float) -> float:
        """About how probable it is that `more` measurements are enough.

        As if the logarithm of the number needed were normal on each side of its median, with the interval's ends.
        """
        if self.high <= 0.0:
            return 1.0
        if more <= 0.0:
            return 0.0
        middle = max(self.remaining, 1.0)
        end = max(self.high, middle * 1.01) if more > middle else min(max(self.low, 1e-3), middle / 1.01)
        deviation = abs(math.log(end / middle)) / _NORMAL_90
        return 0.5 * math.erfc(-math.log(more / middle) / deviation / math.sqrt(2.0))


def rounded(value: float) -> int:
    """Two digits: it is not known better."""
    if value < 20.0:
        return round(value)
    step = 10 ** (int(math.log10(value)) - 1)
    return int(round(value / step) * step)


def features(standing: Standing, left: float, t: int, items: int) -> tuple[str, FloatArray]:
    """What a forecast is made of: the phase of the run, and numbers that do not change with its size.

    `left`: by the rule. Where claims are being tested: logarithms of 1 + left/t, by the rule and by the pace of the
    evidence so far, what is neither proven nor worked, and the share of results that tests have taken. Before: the
    logarithms of left/t and of how often an item was measured on average, what is worked.
    """
    if standing.spent > 0:
        worked = min(max(standing.worked, _LEAST_WORKED), 1.0)
        by_pace = math.log1p(standing.spent * (1.0 - worked) / worked / t)
        unproven = 1.0 - standing.proven / max(standing.needed, 1)
        by_rule = min(math.log1p(left / t), _FAR)
        return TESTING, np.array([1.0, by_rule, by_pace, unproven, 1.0 - standing.worked, standing.spent / t])
    often, by_rule = min(math.log(t / items), _OFTEN), min(math.log(max(left, _LEAST_LEFT) / t), _FAR)
    return EXPLORING, np.array([1.0, by_rule, standing.worked, often])


def target(phase: str, t: int, total: int) -> float:
    """What is forecast in a phase, of a run that took `total` results: a logarithm of total/t, or of what is left/t."""
    return math.log(total / t) if phase == TESTING else math.log((total - t) / t)


def forecast_of(session: Session, standing: Standing) -> Forecast | None:
    """What is still needed; None if nobody knows yet."""
    if session.done:
        return Forecast(0.0, 0.0, 0.0, session.t)
    if session.confirmed is not None:
        more = float(max(session.confirmed[1] - session.confirmed[0], 0))
        return Forecast(more, more, more, session.t)
    if session.unmeasured:
        return None
    left = standing.left
    if left is None:
        total = session.forecast
        left = None if total is None else max(total - session.t, 1.0)
    if left is None or not math.isfinite(left):
        return None
    found, share = calibrated(standing, left, session.t, session.n_present), session.settings.confirm
    middle, low, high = (one + share * (session.t + one) for one in (found.remaining, found.low, found.high))
    return Forecast(middle, low, high, session.t)


def calibrated(standing: Standing, left: float, t: int, items: int) -> Forecast:
    """The rule's own forecast `left`, corrected by the table; where there is none, half and twice of it."""
    if standing.course is None:
        return Forecast(left, 0.5 * left, 2.0 * left, t)
    phase, numbers = features(standing, left, t, items)
    logs = np.sort(np.array(TABLE[standing.course, phase]) @ numbers)
    of_t = np.exp(np.minimum(logs, _FAR)) - (1.0 if phase == TESTING else 0.0)
    low, middle, high = (max(t * float(one), 1.0) for one in of_t)
    return Forecast(middle, low, high, t)
