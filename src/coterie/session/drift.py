"""Results that change with time, in words: later ones lie higher than earlier ones, or those of one day than others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coterie.evidence.order import OrderEvidence, order_evidence
from coterie.evidence.shifts import SHIFT_THRESHOLD, shift_evidence
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import ExactGroups
from coterie.problem.settings import Settings

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
