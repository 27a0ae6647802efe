"""Asks that everybody waits for, and asks whose results did not come, or came late: of whom they were asked, and how
many there are.

Once an ask holds up what others could measure (`coterie.session.Session.awaited`), its time is shortened: it is passed
on to the next who asks, after `pass_on` times the median of the times that answers took. The result that comes first
counts. That needs what expiry needs: how long a measurement takes has nothing to do with its value (docs/CROC.md,
section 8). Where leases wait, nothing of the kind is assumed, and nothing is passed on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.campaign.settings import FEWEST_ANSWERS, LEAST_SECONDS, timestamp
from coterie.campaign.state.leases import EXPIRED, FAILED, KINDS, LATE, UNDONE, Lease, MissedAsk
from coterie.campaign.state.state import State
from coterie.evidence.order import lateness_weights, order_evidence
from coterie.problem.checks import IntArray
from coterie.session.data_alarms import DataAlarm
from coterie.session.record_arrays import RecordArrays

MOST_LISTED = 20
"""Asks that an answer names."""


def passed_on_at(state: State, lease: Lease) -> float:
    """When an ask is asked of somebody else if it alone is waited for; infinity if never."""
    factor, times = state.settings.pass_on, state.answer_times
    if state.settings.on_expiry == "wait":
        return math.inf
    if factor == 0.0 or len(times) < FEWEST_ANSWERS:
        return lease.expires_at
    return min(lease.expires_at, lease.asked_at + max(LEAST_SECONDS, factor * median(times)))


def waiting_for(state: State, now: float) -> list[dict[str, Any]]:
    """The asks that have to be answered before anything new is asked for, oldest first.

    None if something can be asked for: also if one of them is about to be given up, or passed on.
    """
    if state.done:
        return []
    awaited = [state.open[ticket.number] for ticket in state.session.awaited]
    if any(passed_on_at(state, lease) <= now for lease in awaited):
        return []
    return [held(state, lease) for lease in awaited[:MOST_LISTED]]


def holding(state: State) -> list[dict[str, Any]]:
    """The open asks that results of the same item wait behind, oldest first."""
    if state.session.waiting == 0 or state.done:
        return []
    holders = (lease for lease in state.open.values() if state.session.waiting_behind(lease.ticket))
    return [held(state, lease) for lease, _ in zip(holders, range(MOST_LISTED), strict=False)]


def held(state: State, lease: Lease) -> dict[str, Any]:
    """An ask that is waited for. `until`: when it is given up or asked of somebody else; None: nobody knows."""
    until = passed_on_at(state, lease)
    return {
        **state.settings.named(lease.stream),
        "lease": lease.key,
        "worker": lease.worker,
        "asked": timestamp(lease.asked_at),
        "until": timestamp(until) if math.isfinite(until) else None,
        "results": state.session.waiting_behind(lease.ticket),
    }


_MOST_SAID = 12
MOST_MISSED_LISTED = 1000
"""Items and workers that a view lists; the counts are of them all."""


def before_stop(state: State) -> list[MissedAsk]:
    """What was missed before the groups were found: what nobody needed any more is left out."""
    end = state.stopped_at
    return state.missed if end is None else [miss for miss in state.missed if miss.seq < end]


def failures(state: State) -> dict[str, Any]:
    """Counts of asks and of those that were missed: in all, by item and by worker; a sentence, None if there are none.

    Items and workers of whom something was missed are listed, those with the most first.
    """
    given = state.missed
    counts = Counter(miss.kind for miss in given)
    asked = state.session.next_ticket
    by_arm = Counter(state.session.arms_asked) if given else Counter[int]()
    items = [
        {"arm": arm, "name": state.settings.name_of(arm), "asked": by_arm[arm], **kinds}
        for arm, kinds in _counted([(miss.arm, miss.kind) for miss in given])
    ]
    return {
        "asked": asked,
        **{kind: counts[kind] for kind in KINDS},
        "items": items,
        "workers": [
            {"worker": name, "asked": state.workers[name].asked, **kinds}
            for name, kinds in _counted([(miss.worker, miss.kind) for miss in given])
        ],
        "passed_on": state.passed_on,
        "text": sentence(counts, asked, items, state.passed_on),
    }


def _counted(pairs: list[tuple[Any, str]]) -> list[tuple[Any, dict[str, int]]]:
    """Of each item or worker, how many of each kind; those with the most first."""
    counts: dict[Any, Counter[str]] = {}
    for who, kind in pairs:
        counts.setdefault(who, Counter())[kind] += 1
    order = sorted(counts, key=lambda who: (-counts[who].total(), str(who)))[:MOST_MISSED_LISTED]
    return [(who, {kind: counts[who][kind] for kind in KINDS}) for who in order]


def by_worker(state: State) -> dict[str, dict[str, int]]:
    """Of each worker, how many of each kind."""
    counts: dict[str, dict[str, int]] = {}
    for miss in state.missed:
        kinds = counts.setdefault(miss.worker, dict.fromkeys(KINDS, 0))
        kinds[miss.kind] += 1
    return counts


_SAID = {FAILED: "failed", EXPIRED: "expired", LATE: "answered late", UNDONE: "undone"}


def sentence(counts: Counter[str], asked: int, items: Sequence[dict[str, Any]] = (), passed_on: int = 0) -> str | None:
    """What was missed, in a sentence, with the items whose asks failed or expired; None if nothing was."""
    parts = [f"{counts[kind]} {_SAID[kind]}" for kind in KINDS if counts[kind]]
    if not parts:
        return None
    said = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    also = f" ({passed_on} asked of somebody else too, and the first result counts)" if passed_on else ""
    failed = [(item, item[FAILED] + item[EXPIRED]) for item in items if item[FAILED] + item[EXPIRED]]
    each = [f"item {item['name']}: {count} of {item['asked']}" for item, count in failed[:_MOST_SAID]]
    more = f" and {len(failed) - len(each)} more items" if len(failed) > len(each) else ""
    which = f" Failed asks: {', '.join(each)}{more}." if each else ""
    asks = f"{asked} ask{'' if asked == 1 else 's'}"
    return f"Of {asks}: {said}{also}.{which} A proof assumes that this has nothing to do with values."


def as_events(missed: Sequence[MissedAsk]) -> list[dict[str, Any]]:
    """What was missed, as events of the log that `coterie verify` reads."""
    return [{"event": "missed", "arm": miss.arm, "kind": miss.kind, "worker": miss.worker} for miss in missed]


WORKERS = "workers"
_MOST_WORKERS = 64
_EXACT = 512


def worker_alarm(state: State) -> DataAlarm | None:
    """An alarm of campaigns: results of workers who fail more often than others are unlike what others give. Of a long
    record it is looked for once in every 256th of it.

    The value of a reading that was thrown away is not known. What is left behind is: of the same item, the results of
    whoever throws low readings away are higher than those of the others. If who measures, and whether it fails, has
    nothing to do with the values, results of an item are exchangeable however they are spread over workers, and so the
    evidence of `coterie.evidence.order` holds, with a weight for results whose worker had failed more often than the
    average of all workers when the ask was made. It is raised for nothing with probability at most 1 %, over all times
    at once. A worker whose instrument shows other values than that of the others, and who happens to fail more, raises
    it too.
    """
    if len(state.workers) < 2 or not any(miss.kind in (FAILED, EXPIRED) for miss in state.missed):
        return None
    n = state.n_results
    step = 1 if n < _EXACT or state.done else 2 ** (n.bit_length() - 9)
    key = (n // step * step, state.done, len(state.missed) if step == 1 else 0)
    kept = state.computed.get(WORKERS)
    if kept is None or kept[0] != key:
        kept = state.computed[WORKERS] = (key, _alarm(state))
    alarm: DataAlarm | None = kept[1]
    return alarm


def worker_alarm_json(state: State) -> list[dict[str, Any]]:
    """The alarm as plain JSON values, or nothing."""
    alarm = worker_alarm(state)
    return [] if alarm is None else [alarm.to_json() | {"text": str(alarm)}]


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
    evidence = order_evidence(arms, record.counted_values, record.n_arms, lateness_weights(arms, flags))
    if not evidence.reached:
        return None
    upwards = evidence.arm_upwards if evidence.of_one else evidence.upwards
    column = evidence.arm_column if evidence.of_one else evidence.column
    which = "" if state.settings.dim == 1 else f" in number {column + 1} of a result"
    whose = f" (item {state.settings.name_of(evidence.arm)})" if evidence.of_one else ""
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
    value, threshold = (
        (evidence.single, evidence.single_threshold) if evidence.of_one else (evidence.joint, evidence.joint_threshold)
    )
    return DataAlarm(WORKERS, seen, advice, value, threshold)


def _workers(state: State, asks: int) -> tuple[list[str], IntArray]:
    """All workers who have asked, and of each ask the place of its worker among them (-1: not known)."""
    names: dict[str, int] = {}
    numbers = np.full(asks, -1, dtype=np.int64)
    for lease in state.leases.values():
        if lease.ticket < asks:
            numbers[lease.ticket] = names.setdefault(lease.worker, len(names))
    return list(names), numbers


def _often_failing(record: RecordArrays, workers: IntArray, count: int) -> NDArray[np.bool_]:
    """By ask: whether its worker had, before it was made, more failures than the average of all workers."""
    failed = np.flatnonzero(record.failed)
    ends = record.end_events[failed]
    total = np.searchsorted(np.sort(ends), record.ask_events)
    own = np.zeros(workers.size, dtype=np.int64)
    most = np.bincount(workers[failed][workers[failed] >= 0], minlength=count)
    for worker in np.argsort(-most, kind="stable")[:_MOST_WORKERS]:
        own_asks = workers == worker
        own[own_asks] = np.searchsorted(np.sort(ends[workers[failed] == worker]), record.ask_events[own_asks])
    return np.asarray(own * count > total)


def _named(names: list[str], workers: IntArray, record: RecordArrays) -> str:
    """Who failed most, with how many failures of how many asks."""
    failed = np.bincount(workers[record.failed & (workers >= 0)], minlength=len(names))
    asked = np.bincount(workers[workers >= 0], minlength=len(names))
    worst = int(np.argmax(failed))
    return f"{names[worst]} failed {failed[worst]} of {asked[worst]} asks"
