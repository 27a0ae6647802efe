"""An alarm of campaigns: results of workers who fail more often than others are unlike what others give.

The value of a reading that was thrown away is not known. What is left behind is: of the same item, the results of
whoever throws low readings away are higher than those of the others. If who measures, and whether it fails, has nothing
to do with the values, results of an item are exchangeable however they are spread over workers, and so the evidence of
`coterie.evidence.order` holds, with a weight for results whose worker had failed more often than the average of
all workers when the ask was made. It is raised for nothing with probability at most 1 %, over all times at once. A
worker whose instrument shows other values than that of the others, and who happens to fail more, raises it too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.campaign.state.leases import EXPIRED, FAILED
from coterie.campaign.state.state import State
from coterie.evidence.order import lateness_weights, order_evidence
from coterie.problem.checks import IntArray
from coterie.session.data_alarms import DataAlarm
from coterie.session.record_arrays import RecordArrays

WORKERS = "workers"
_MOST_WORKERS = 64
_EXACT = 512


def worker_alarm(state: State) -> DataAlarm | None:
    """The alarm, if it was raised; of a long record it is looked for once in every 256th of it."""
    if len(state.workers) < 2 or not any(one.kind in (FAILED, EXPIRED) for one in state.missed):
        return None
    n = state.n_results
    step = 1 if n < _EXACT or state.done else 2 ** (n.bit_length() - 9)
    key = (n // step * step, state.done, len(state.missed) if step == 1 else 0)
    found = state.computed.get(WORKERS)
    if found is None or found[0] != key:
        found = state.computed[WORKERS] = (key, _alarm(state))
    alarm: DataAlarm | None = found[1]
    return alarm


def alarm_json(state: State) -> list[dict[str, Any]]:
    """The alarm as plain JSON values, or nothing."""
    found = worker_alarm(state)
    return [] if found is None else [found.to_json() | {"text": str(found)}]


def _alarm(state: State) -> DataAlarm | None:
    record = RecordArrays(state.session)
    if record.counted.size == 0 or not record.failed.any():
        return None
    names, workers = _workers(state, record.asked_arms.size)
    if len(names) < 2:
        return None
    failing = _often_failing(record, workers, len(names))
    tickets = record.told_tickets[record.counted]
    flags = np.zeros(tickets.size)
    flags[tickets >= 0] = failing[tickets[tickets >= 0]]
    if not flags.any() or flags.all():
        return None
    arms = record.counted_arms
    found = order_evidence(arms, record.counted_values, record.n_arms, lateness_weights(arms, flags))
    if not found.reached:
        return None
    upwards = found.arm_upwards if found.of_one else found.upwards
    column = found.arm_column if found.of_one else found.column
    which = "" if state.settings.dim == 1 else f" in number {column + 1} of a result"
    whose = f" (item {state.settings.name_of(found.arm)})" if found.of_one else ""
    said = _named(names, workers, record)
    seen = (
        f"Failures go with workers and values: results of workers who fail more often than others ({said}) are "
        f"{'higher' if upwards else 'lower'} than what others give for the same items{which}{whose}."
    )
    thrown = "low" if upwards else "high"
    advice = (
        f"See whether {thrown} readings are thrown away, and whether all instruments agree: report every reading, "
        "whatever it is. A proof assumes that whether a measurement fails has nothing to do with what it gives."
    )
    value, threshold = (found.single, found.single_threshold) if found.of_one else (found.joint, found.joint_threshold)
    return DataAlarm(WORKERS, seen, advice, value, threshold)


def _workers(state: State, asks: int) -> tuple[list[str], IntArray]:
    """All workers who have asked, and of each ask the place of its worker among them (-1: not known)."""
    names: dict[str, int] = {}
    found = np.full(asks, -1, dtype=np.int64)
    for lease in state.leases.values():
        if lease.ticket < asks:
            found[lease.ticket] = names.setdefault(lease.worker, len(names))
    return list(names), found


def _often_failing(record: RecordArrays, workers: IntArray, count: int) -> NDArray[np.bool_]:
    """By ask: whether its worker had, before it was made, more failures than the average of all workers."""
    failed = np.flatnonzero(record.failed)
    ends = record.end_events[failed]
    total = np.searchsorted(np.sort(ends), record.ask_events)
    own = np.zeros(workers.size, dtype=np.int64)
    most = np.bincount(workers[failed][workers[failed] >= 0], minlength=count)
    for worker in np.argsort(-most, kind="stable")[:_MOST_WORKERS]:
        its = workers == worker
        own[its] = np.searchsorted(np.sort(ends[workers[failed] == worker]), record.ask_events[its])
    return np.asarray(own * count > total)


def _named(names: list[str], workers: IntArray, record: RecordArrays) -> str:
    """Who failed most, with how many failures of how many asks."""
    failed = np.bincount(workers[record.failed & (workers >= 0)], minlength=len(names))
    asked = np.bincount(workers[workers >= 0], minlength=len(names))
    worst = int(np.argmax(failed))
    return f"{names[worst]} failed {failed[worst]} of {asked[worst]} asks"
