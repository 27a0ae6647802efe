"""Alarms that run along with a session: what speaks against the way in which its data were made.

They are computed from the record when somebody asks, so nothing is kept for them, and a session that was loaded has
those that it had. Each is raised for nothing with probability at most 1 %, over all times at once. None stops anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from coterie.evidence.faults import (
    SMALLER,
    TAILS,
    NoiseEvidence,
    copied_columns,
    evidence_against_bound,
    failure_evidence,
    item_evidence,
    item_evidence_against_noise,
    pair_evidence_against_noise,
)
from coterie.evidence.order import (
    LEVEL,
    OrderEvidence,
    columns_looked_at,
    dependence_evidence,
    lateness_weights,
    order_evidence,
    repeats,
)
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import taken_apart
from coterie.problem.settings import Settings
from coterie.session.conversation import Conversation
from coterie.session.groups import labels_of
from coterie.session.record_arrays import RecordArrays, committed_pairs
from coterie.session.remarks import seen_drift, seen_shift, way_of, which_number

NOISE, DRIFT, DEPENDENCE, FAILURES = "noise", "drift", "dependence", "failures"
LATENESS, STILL, COPY = "lateness", "still", "copy"
_PAIRS_SHARE = 0.9  # of the level of the noise's alarm; the rest is for single items
_EXACT_EVENTS = 512
_STILL_LEAST = 20  # results, and two for each item, before it is said that they do not vary
_COPY_COLUMNS = 64  # numbers of a result that are compared with one another
_COPY_LEAST, _COPY_VALUES = 12, 8  # results, and different values among them: so many do not agree by chance
_FAILED_LEAST = 20  # failures, before it is said that they are most of the asks
_COPY_RARE = 20  # results beside the commonest value, where there are fewer values, such as 0 and 1


@dataclass(frozen=True)
class DataAlarm:
    """Something speaks against the way in which the data were made.

    Parameters
    ----------
    kind : {"noise", "drift", "dependence", "failures", "lateness", "still", "copy"}
        What it is about.
    seen, advice : str
        What was seen, and what to do.
    evidence, threshold, level : float
        The evidence, a log, has reached the threshold. If there is nothing to it, such an alarm is ever raised with
        probability at most `level`; 0: it is plain to see.
    harmless : bool
        What is proven stays proven.
    """

    kind: str
    seen: str
    advice: str
    evidence: float
    threshold: float
    level: float = LEVEL
    harmless: bool = False

    def __str__(self) -> str:
        return f"{self.seen} {self.advice}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def alarms_of(conversation: Conversation) -> tuple[DataAlarm, ...]:
    """What speaks against the way in which the data were made: the stated noise, drift, failures, late results.

    Each is raised for nothing with probability at most 1 %, however often somebody looks. They stop nothing.

    They are computed anew when the record has grown: after 512 events once in every 256th of it, so that looking costs
    little however long it is. Once the groups are found they are those of the whole record.
    """
    if conversation.settings.features is not None:
        return ()  # they compare whole results
    events, done = len(conversation.order), conversation.run.done
    step = 1 if events < _EXACT_EVENTS or done else 2 ** (events.bit_length() - 9)
    labels = labels_of(conversation) if step == 1 else None  # of a long record, a guess that wavers costs nothing
    stages = len(conversation.revisions)
    key = (events // step * step, done, stages, None if labels is None else labels.tobytes())
    if conversation.kept_alarms is None or conversation.kept_alarms[0] != key:
        record = RecordArrays(conversation)
        conversation.kept_alarms = key, alarms_by(record, conversation.settings, labels_of(conversation))
    alarms: tuple[DataAlarm, ...] = conversation.kept_alarms[1]
    return alarms


def alarms_by(record: RecordArrays, settings: Settings, labels: IntArray | None) -> tuple[DataAlarm, ...]:
    """The alarms by a record."""
    plain = _failures(settings, record), _still(settings, record), _copy(settings, record)
    alarms: tuple[DataAlarm | None, ...] = plain
    if settings.blocks is None:  # else results of an item may change from block to block
        ordered = _drift(settings, record, labels), _dependence(settings, record)
        alarms = (_noise(settings, record, labels), *ordered, plain[0], _lateness(settings, record), *plain[1:])
    return tuple(alarm for alarm in alarms if alarm is not None)


# Results that do not vary.


def _still(settings: Settings, record: RecordArrays) -> DataAlarm | None:
    arms, values = record.counted_arms, record.counted_values
    if arms.size < max(_STILL_LEAST, 2 * record.n_arms):
        return None
    still = (values == values[0]).all(axis=0)
    _, firsts, inverse = np.unique(arms, return_index=True, return_inverse=True)
    if still.all():
        seen = f"All {arms.size} results are the same, {_listed(values[0])}: nothing tells items apart."
        advice = "Check what is recorded: results that do not vary prove nothing, however many there are."
    elif settings.noise.kind == "gaussian" and (values == values[firsts][inverse]).all():
        seen = (
            "Repeated results of an item are always the same: that is no Gaussian noise, and nothing is proven by it."
        )
        advice = (
            "Check that they are measurements, and not copies of one; or start again with these results and noise=None."
        )
    elif still.any():
        which = ", ".join(f"number {q + 1} ({values[0, q]:g})" for q in np.flatnonzero(still)[:5])
        seen = f"Of every result, {which} is the same."
        return DataAlarm(STILL, seen, "It tells no items apart, and does no harm.", 0.0, 0.0, 0.0, harmless=True)
    else:
        return None
    return DataAlarm(STILL, seen, advice, 0.0, 0.0, 0.0)


def _copy(settings: Settings, record: RecordArrays) -> DataAlarm | None:
    """Numbers that follow from another one: evidence that takes them for independent counts a result twice."""
    values = record.counted_values[:, :_COPY_COLUMNS]
    if settings.dim < 2 or len(values) < _COPY_LEAST:
        return None
    pairs = [pair for pair in copied_columns(values) if _no_chance(values[:, pair[1]])]
    if not pairs:
        return None
    which = ", ".join(f"number {copy + 1} follows from number {first + 1}" for first, copy in pairs[:5])
    seen = f"Of every result, {which} (equal, or in other units)."
    if any(taken_apart(settings.noise, *pair) for pair in pairs):
        advice = (
            "Under the noise stated that counts a result twice, so do not rely on the groups: start again without such "
            "numbers, or with noise=None."
        )
        return DataAlarm(COPY, seen, advice, 0.0, 0.0, 0.0)
    return DataAlarm(COPY, seen, "It tells nothing more, and does no harm.", 0.0, 0.0, 0.0, harmless=True)


def _no_chance(values: FloatArray) -> bool:
    """Whether there is so much to these values that no other number agrees with them by chance."""
    counts = np.unique(values, return_counts=True)[1]
    return bool(counts.size >= _COPY_VALUES or values.size - counts.max() >= _COPY_RARE)


def _listed(values: FloatArray) -> str:
    return ", ".join(f"{value:g}" for value in values[:5]) + (", …" if values.size > 5 else "")


# The stated noise.


def _noise(settings: Settings, record: RecordArrays, labels: IntArray | None) -> DataAlarm | None:
    kind = settings.noise.kind
    if kind not in ("known", "at-most") or record.counted.size == 0:
        return None
    pairs = committed_pairs(record, labels)
    # The difference is taken in the user's units, so that no digit is lost far from zero.
    h = settings.noise.whiten(record.values[pairs[:, 0]] - record.values[pairs[:, 1]]) / math.sqrt(2.0)
    if kind == "at-most":
        evidence = evidence_against_bound(h)
        threshold = math.log(1.0 / LEVEL)
        return _noise_alarm(evidence, threshold, h, pairs, record, settings) if evidence.value >= threshold else None
    threshold = math.log(1.0 / (_PAIRS_SHARE * LEVEL))
    evidence = pair_evidence_against_noise(h)
    if evidence.value >= threshold:
        return _noise_alarm(evidence, threshold, h, pairs, record, settings)
    repeated = repeats(record.counted_arms)  # the others say nothing, and may be a million
    arms, values = record.counted_arms[repeated], record.counted_values[repeated]
    _, firsts, inverse = np.unique(arms, return_index=True, return_inverse=True)
    alone = item_evidence_against_noise(arms, settings.noise.whiten(values - values[firsts][inverse]))
    threshold = math.log(1.0 / ((1.0 - _PAIRS_SHARE) * LEVEL))
    if alone.value >= threshold:
        after = int(repeated[alone.after - 1]) + 1
        seen = f"results of one item differ from one another {_than_stated(alone, None)} ({after} results)"
        return _noise_words(alone, seen, threshold, settings)
    return None


def _noise_alarm(
    evidence: NoiseEvidence, threshold: float, h: FloatArray, pairs: IntArray, record: RecordArrays, settings: Settings
) -> DataAlarm:
    mixed = bool((record.told_arms[pairs[: evidence.after, 0]] != record.told_arms[pairs[: evidence.after, 1]]).any())
    alike = "results of one item, or of items that are in one group," if mixed else "results of one item"
    times = float(np.sqrt(np.mean(h[: evidence.after] ** 2)))
    seen = f"{alike} differ from one another {_than_stated(evidence, times)} ({evidence.after} pairs of results)"
    if mixed and evidence.kind != SMALLER:
        seen += "; if the noise is right, the items of a group are not alike"
    return _noise_words(evidence, seen, threshold, settings)


def _than_stated(evidence: NoiseEvidence, times: float | None) -> str:
    if evidence.kind == TAILS:
        return "by far more than the stated noise now and then"
    size = "" if times is None else f", about {times:.2g} times as much"
    return f"{'less' if evidence.kind == SMALLER else 'more'} than the stated noise allows{size}"


def _noise_words(evidence: NoiseEvidence, seen: str, threshold: float, settings: Settings) -> DataAlarm:
    if evidence.kind == SMALLER:
        advice = (
            "If the noise is smaller than stated, what is proven stays proven, and with a smaller one, or noise=None, "
            "fewer measurements would do. If successive results of an item depend on one another, which looks the "
            "same, nothing is proven: measure each time anew."
        )
    elif settings.noise.kind == "at-most":
        advice = "Do not rely on the groups: start again with these results and a larger bound, or noise=None."
    else:
        advice = (
            "Do not rely on groups proven with this noise: start again with these results and noise=None, which "
            "assumes nothing about it, or with a larger one."
        )
    contradicted, smaller = f"The stated noise is contradicted: {seen}.", evidence.kind == SMALLER
    return DataAlarm(NOISE, contradicted, advice, evidence.value, threshold, harmless=smaller)


# Order, lateness, failures.


def _drift(settings: Settings, record: RecordArrays, labels: IntArray | None) -> DataAlarm | None:
    """That stretches of results lie apart, where the groups are known or guessed; else that later ones lie apart."""
    arms = record.counted_arms
    shifted = shift_alarm(settings, arms, record.counted_values, labels)
    if shifted is not None:
        return shifted
    alarm = drift_alarm(record.counted_arms, record.counted_values, record.n_arms, settings.names)
    return None if alarm is None else replace(alarm, advice=_DRIFT_ADVICE)


_DRIFT_ADVICE = (
    "Check the instrument, and whether items change with time: equal items may look different because they were "
    "measured at different times. When the cause is gone, start again; or state days as blocks."
)
_TABLE_ADVICE = (
    "The order of the rows goes with their values: if they were sorted, put them in the order of measuring; if that is "
    "it, results changed with time, and equal items may look different."
)


def shift_alarm(
    settings: Settings, arms: IntArray, values: FloatArray, labels: IntArray | None, days: Sequence[str] | None = None
) -> DataAlarm | None:
    """The alarm that results (n, d) of these arms (n) shift from day to day: `coterie.session.remarks`."""
    seen = seen_shift(settings, arms, values, labels, days)
    return None if seen is None else DataAlarm(DRIFT, seen.words, seen.advice, seen.evidence, seen.threshold)


def drift_alarm(
    arms: IntArray, values: FloatArray, n_arms: int, names: Sequence[str] | None = None
) -> DataAlarm | None:
    """The alarm about the order of results (n, d) of these arms (n), such as that of a table; None if there is none.

    It assumes nothing about the noise: only that the results of an item are independent of one another and of those of
    other items, and have one distribution. How many of them there are may depend on them.
    """
    seen = seen_drift(arms, values, n_arms, names)
    return None if seen is None else DataAlarm(DRIFT, seen.words, _TABLE_ADVICE, seen.evidence, seen.threshold)


def _dependence(settings: Settings, record: RecordArrays) -> DataAlarm | None:
    """It assumes nothing about the noise, nor about how items were chosen: `coterie.evidence.order`."""
    evidence = dependence_evidence(record.counted_arms, record.counted_values, record.n_arms)
    if not evidence.reached:
        return None
    whose = "items" if evidence.arm < 0 else f"item {settings.name_of(evidence.arm)}"
    seen = f"Successive results of {whose} depend on one another: each lies near the one before."
    advice = (
        "A proof takes every result for a new measurement, so do not rely on the groups: wait longer between "
        "measurements of an item, or prepare it anew each time, and start again."
    )
    return DataAlarm(DEPENDENCE, seen, advice, evidence.value, evidence.threshold)


def _reached(evidence: OrderEvidence) -> tuple[float, float]:
    return (
        (evidence.single, evidence.single_threshold) if evidence.of_one else (evidence.joint, evidence.joint_threshold)
    )


def _lateness(settings: Settings, record: RecordArrays) -> DataAlarm | None:
    tickets = record.told_tickets[record.counted]
    late = np.zeros(tickets.size)
    asked = tickets >= 0
    late[asked] = record.overtaken[tickets[asked]]
    if not late.any():
        return None
    weights = lateness_weights(record.counted_arms, late)
    evidence = order_evidence(record.counted_arms, record.counted_values, record.n_arms, weights)
    if not evidence.reached:
        return None
    way, which = way_of(evidence, settings.dim)
    whose = f"of item {settings.name_of(evidence.arm)} " if evidence.of_one else ""
    seen = f"Lateness goes with values: results {whose}that were overtaken by those of later asks are {way}{which}."
    advice = (
        "Tell results as they come, whatever they are. A proof assumes that how long a measurement takes has nothing "
        "to do with what it gives."
    )
    return DataAlarm(LATENESS, seen, advice, *_reached(evidence))


def _failures(settings: Settings, record: RecordArrays) -> DataAlarm | None:
    if not record.failed.any():
        return None
    undecided = np.flatnonzero(record.undecided)
    settled = np.arange(undecided[0] if undecided.size else record.asked_arms.size)
    settled = settled[~record.missing[settled]]
    columns = columns_looked_at(settings.dim)
    evidence = failure_evidence(record.failed[settled], _standing(record, settled, columns))
    threshold = math.log(2.0 / LEVEL)  # half of the level is for items that fail, whatever their results
    if evidence.value < threshold:
        return _failing_item(settings, record, settled, threshold)
    way = "high" if evidence.upwards else "low"
    which = which_number(settings.dim, int(columns[evidence.column]))
    seen = f"Failures go with values: measurements of items with {way} results{which} fail more often than others."
    advice = (
        f"See whether {way} readings are thrown away: report every reading, whatever it is. Where they cannot be read, "
        "means of such items are wrong, and a proof does not hold."
    )
    return DataAlarm(FAILURES, seen, advice, evidence.value, threshold)


def _failing_item(settings: Settings, record: RecordArrays, settled: IntArray, threshold: float) -> DataAlarm | None:
    """An item that fails more often than others: what is left of its results may look like those of any other."""
    evidence = item_evidence(record.failed[settled], record.asked_arms[settled])
    if evidence.value < threshold:
        return _mostly_failed(record)
    others = f"{evidence.failed_of_all - evidence.failed} of {evidence.asked_of_all - evidence.asked}"
    own = f"{evidence.failed} of {evidence.asked} asks for item {settings.name_of(evidence.arm)} failed"
    seen = f"Failures go with items: {own}, and {others} of all others."
    advice = (
        "See whether its readings are thrown away for what they are: then its mean is wrong, and a proof does not "
        "hold. If they fail for reasons that have nothing to do with values, all is well."
    )
    return DataAlarm(FAILURES, seen, advice, evidence.value, threshold)


def _mostly_failed(record: RecordArrays) -> DataAlarm | None:
    """That more asks failed than were answered: plain to see, and no harm if it has nothing to do with values."""
    failed, answered = int(record.failed.sum()), int((record.row_of >= 0).sum())
    if failed < _FAILED_LEAST or failed <= answered:
        return None
    seen = f"More asks failed ({failed}) than were answered ({answered})."
    advice = "What is left is a choice: it proves something only if failing has nothing to do with the values."
    return DataAlarm(FAILURES, seen, advice, 0.0, 0.0, 0.0, harmless=True)


def _standing(record: RecordArrays, tickets: IntArray, columns: IntArray) -> FloatArray:
    """Where the mean of an ask's item stood among all results when it was made, in [-1, 1]; 0 where nobody knew."""
    n = record.told_arms.size
    told = np.searchsorted(record.told_events, record.ask_events[tickets])  # results before the ask
    arms = record.asked_arms[tickets]
    order = np.argsort(record.told_arms, kind="stable")
    key = record.told_arms[order] * (n + 1) + order  # ascending
    first, last = np.searchsorted(key, arms * (n + 1)), np.searchsorted(key, arms * (n + 1) + told)
    own = last - first
    standing = np.zeros((tickets.size, columns.size))
    for i, column in enumerate(columns.tolist()):
        x = record.values[:, column] - (record.values[0, column] if n else 0.0)
        total, squares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (x, x * x))
        by_arm = np.concatenate([[0.0], np.cumsum(x[order])])
        mean = total[told] / np.maximum(told, 1)
        spread = np.sqrt(np.maximum(squares[told] / np.maximum(told, 1) - mean**2, 0.0))
        away = (by_arm[last] - by_arm[first]) / np.maximum(own, 1) - mean
        known = (own > 0) & (told > 1) & (spread > 0.0)
        standing[known, i] = np.clip(away[known] / spread[known], -2.0, 2.0) / 2.0
    return standing
