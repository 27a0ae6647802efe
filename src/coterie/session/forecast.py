"""How many measurements a session still needs: a forecast with an interval, calibrated on simulated runs.

A method's own forecast is rough: it is made for choosing what to measure, leaves out what exploration will still take,
and does not look at what open tests have gathered. Here it is corrected by `TABLE`, which was fitted to simulated runs
by `coterie bench forecast`, and tried on families of runs that it was not fitted to. Nothing here decides anything or
enters a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coterie.methods.reports import Standing
from coterie.problem.checks import FloatArray
from coterie.problem.question import ExactGroups
from coterie.session.conversation import Conversation

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
    """Measurements still needed. It is no promise, and enters no proof; docs/PERFORMANCE.md has how well it does.

    Parameters
    ----------
    remaining : float
        As likely more as fewer are needed.
    low, high : float
        In about 8 of 10 runs so many are.
    t : int
        The measurements that it rests on.
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


def remaining_of(conversation: Conversation) -> Forecast | None:
    """Measurements still needed, with an interval: a forecast, no promise; None if nobody knows yet."""
    return conversation.once("remaining", _remaining)


def _remaining(conversation: Conversation) -> Forecast | None:
    run, standing = conversation.run, standing_of(conversation)
    if run.done:
        return Forecast(0.0, 0.0, 0.0, run.t)
    if run.confirmed is not None:
        more = float(max(run.confirmed[1] - run.confirmed[0], 0))
        return Forecast(more, more, more, run.t)
    if conversation.unmeasured:
        return None
    left = standing.left
    if left is None:
        total = run.forecast()
        left = None if total is None else max(total - run.t, 1.0)
    if left is None or not math.isfinite(left):
        return None
    forecast, share = calibrated(standing, left, run.t, conversation.n_present), conversation.settings.confirm
    ends = (forecast.remaining, forecast.low, forecast.high)
    middle, low, high = (end + share * (run.t + end) for end in ends)
    return Forecast(middle, low, high, run.t)


def standing_of(conversation: Conversation) -> Standing:
    """How much is proven by now, for every method."""
    return conversation.once("standing", _standing)


def _standing(conversation: Conversation) -> Standing:
    items, asked, run = conversation.n_present, conversation.settings.question, conversation.run
    exact = isinstance(asked, ExactGroups)
    needed = items * (asked.n_clusters - 1) if isinstance(asked, ExactGroups) else 0
    if conversation.proven:
        frozen = [made for _, made in conversation.decisions if made["event"] == "freeze" and "near" in made]
        if not exact and frozen:
            needed = len(frozen[-1]["near"]) + len(frozen[-1]["far"])
        return Standing(needed, needed, items, 0.0, 1.0)
    standing = run.standing() if run.t > 0 else Standing(0, needed, 0)
    if standing is not None:
        return standing
    now = run.evidence()  # all at once, at the end
    known = math.isfinite(now.threshold) and math.isfinite(now.statistic) and now.threshold > 0.0
    worked = min(max(now.statistic / now.threshold, 0.0), 1.0) if known else 0.0
    return Standing(0, needed, 0, None, worked)


def calibrated(standing: Standing, left: float, t: int, items: int) -> Forecast:
    """The rule's own forecast `left`, corrected by the table; where there is none, half and twice of it."""
    if standing.course is None:
        return Forecast(left, 0.5 * left, 2.0 * left, t)
    phase, numbers = features(standing, left, t, items)
    logs = np.sort(np.array(TABLE[standing.course, phase]) @ numbers)
    of_t = np.exp(np.minimum(logs, _FAR)) - (1.0 if phase == TESTING else 0.0)
    low, middle, high = (max(t * float(factor), 1.0) for factor in of_t)
    return Forecast(middle, low, high, t)


# What it costs, where measurements of items differ in cost.


def cost_of(conversation: Conversation) -> float | None:
    """What all measurements told so far have cost, in the unit of `costs`; None if there are none."""
    settings, features = conversation.settings, conversation.settings.features
    if features is None:
        arms = np.array(conversation.log.arms, dtype=np.int64)
        return settings.cost_of(np.bincount(arms, minlength=settings.n_arms))
    if settings.costs is None and features.panel_costs is None:
        return None
    return sum(features.ask_cost(settings.costs, *features.split(stream)) for stream in conversation.log.arms)


def cost_left_of(conversation: Conversation) -> float | None:
    """What is expected to be spent still, in the unit of `costs`; None if nobody knows. It is no promise."""
    return None if cost_of(conversation) is None else conversation.run.cost_left()


# Printed by `python -m bench.forecast_fit`, not to be edited by hand. For each way in which runs go and each phase
# (`coterie.methods.reports`) three rows, for low, middle and high; their columns are those of `features`.
TABLE: dict[tuple[str, str], tuple[tuple[float, ...], ...]] = {
    ("tests", "exploring"): (
        (0.0535, 0.1384, -1.5623, -0.1017),
        (0.7177, 0.4342, -1.5409, -0.0566),
        (1.7872, 0.3344, -1.6724, -0.1778),
    ),
    ("tests", "testing"): (
        (-0.0065, 0.0135, -0.1075, 0.0841, 0.3766, 0.0121),
        (-0.0921, 0.0439, -0.1309, 0.0213, 0.8182, 0.1771),
        (0.0249, 0.5241, -0.0547, 0.0019, 0.7101, -0.1017),
    ),
    ("bounds", "exploring"): (
        (0.6923, 0.2218, 0.0, -0.5017),
        (0.2026, 0.5785, 0.0, -0.0638),
        (1.2334, 0.4659, 0.0, -0.2817),
    ),
    ("bounds", "testing"): (
        (-0.0426, 0.5561, 0.017, -0.0237, 0.1639, 0.029),
        (0.0837, 0.8195, 0.0187, -0.1125, 0.0929, -0.0529),
        (0.1655, 0.6744, 0.0077, -0.3223, 0.5733, 0.1404),
    ),
    ("links", "exploring"): (
        (1.6475, 0.172, 0.0, -0.6439),
        (0.9668, 0.5034, 0.0, -0.2329),
        (1.3208, 0.5379, 0.0, -0.2417),
    ),
    ("links", "testing"): (
        (0.2354, 0.3351, -0.1054, 0.2982, -0.1509, -0.5201),
        (0.1865, 0.6956, -0.1415, -0.0486, 0.3064, -0.2279),
        (0.3932, 0.7482, -0.3368, -0.254, 0.6183, -0.3276),
    ),
    ("statistic", "exploring"): (
        (-1.3371, 0.0625, -2.869, 0.1965),
        (0.1574, 0.0781, -1.856, -0.1915),
        (1.5359, 0.0704, -1.9395, -0.3295),
    ),
}
