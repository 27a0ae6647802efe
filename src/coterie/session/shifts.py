"""Results that lie higher on some days than on others, in words: what was seen, and that days should be blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coterie.evidence.shifts import shift_evidence
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import ExactGroups
from coterie.problem.settings import Settings

_ADVICE = (
    "Equal items may look different because they were measured at different times. Start again and state {} as blocks: "
    "then items are compared within a block only, and shifts do no harm."
)


class SeenShift(NamedTuple):
    """What was seen, what to do, and the evidence, a log."""

    words: str
    advice: str
    evidence: float


def seen_shift(
    settings: Settings, arms: IntArray, values: FloatArray, labels: IntArray | None, days: Sequence[str] | None = None
) -> SeenShift | None:
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
    which = "" if settings.dim == 1 else f" in number {evidence.column + 1} of a result"
    words = f"Results drift: {later} lie {abs(evidence.size):.1f} sd {way} than {earlier}{which}."
    advice = _ADVICE.format("days" if days is not None else "days, plates, or whatever changed between them,")
    return SeenShift(words, advice, evidence.value)
