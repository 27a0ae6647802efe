"""Asks that everybody waits for, and asks whose results did not come, or came late: of whom they were asked, and how
many there are.

Once an ask holds up what others could measure (`coterie.session.Session.awaited`), its time is shortened: it is passed
on to the next who asks, after `pass_on` times the median of the times that answers took. The result that comes first
counts. That needs what expiry needs: how long a measurement takes has nothing to do with its value (docs/CROC.md,
section 8). Where leases wait, nothing of the kind is assumed, and nothing is passed on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from coterie.campaign.settings import FEWEST_ANSWERS, LEAST_SECONDS, timestamp
from coterie.campaign.state.leases import EXPIRED, FAILED, KINDS, LATE, UNDONE, Lease, Missed
from coterie.campaign.state.state import State

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
    found = [state.open[ticket.number] for ticket in state.session.awaited]
    if any(passed_on_at(state, one) <= now for one in found):
        return []
    return [held(state, one) for one in found[:MOST_LISTED]]


def holding(state: State) -> list[dict[str, Any]]:
    """The open asks that results of the same item wait behind, oldest first."""
    if state.session.waiting == 0 or state.done:
        return []
    found = (one for one in state.open.values() if state.session.waiting_behind(one.ticket))
    return [held(state, one) for one, _ in zip(found, range(MOST_LISTED), strict=False)]


def held(state: State, lease: Lease) -> dict[str, Any]:
    """An ask that is waited for. `until`: when it is given up or asked of somebody else; None: nobody knows."""
    until = passed_on_at(state, lease)
    return {
        "arm": lease.arm,
        "name": state.settings.name_of(lease.arm),
        "lease": lease.key,
        "worker": lease.worker,
        "asked": timestamp(lease.asked_at),
        "until": timestamp(until) if math.isfinite(until) else None,
        "results": state.session.waiting_behind(lease.ticket),
    }


_MOST_SAID = 12
MOST_MISSED_LISTED = 1000
"""Items and workers that a view lists; the counts are of them all."""


def before_stop(state: State) -> list[Missed]:
    """What was missed before the groups were found: what nobody needed any more is left out."""
    end = state.stopped_at
    return state.missed if end is None else [one for one in state.missed if one.seq < end]


def failures(state: State) -> dict[str, Any]:
    """Counts of asks and of those that were missed: in all, by item and by worker; a sentence, None if there are none.

    Items and workers of whom something was missed are listed, those with the most first.
    """
    given = state.missed
    counts = Counter(one.kind for one in given)
    asked = state.session.next_ticket
    by_arm = Counter(state.session.arms_asked) if given else Counter[int]()
    items = [
        {"arm": arm, "name": state.settings.name_of(arm), "asked": by_arm[arm], **its}
        for arm, its in _counted([(one.arm, one.kind) for one in given])
    ]
    return {
        "asked": asked,
        **{kind: counts[kind] for kind in KINDS},
        "items": items,
        "workers": [
            {"worker": name, "asked": state.workers[name].asked, **its}
            for name, its in _counted([(one.worker, one.kind) for one in given])
        ],
        "passed_on": state.passed_on,
        "text": sentence(counts, asked, items, state.passed_on),
    }


def _counted(pairs: list[tuple[Any, str]]) -> list[tuple[Any, dict[str, int]]]:
    """Of each item or worker, how many of each kind; those with the most first."""
    found: dict[Any, Counter[str]] = {}
    for who, kind in pairs:
        found.setdefault(who, Counter())[kind] += 1
    order = sorted(found, key=lambda who: (-found[who].total(), str(who)))[:MOST_MISSED_LISTED]
    return [(who, {kind: found[who][kind] for kind in KINDS}) for who in order]


def by_worker(state: State) -> dict[str, dict[str, int]]:
    """Of each worker, how many of each kind."""
    found: dict[str, dict[str, int]] = {}
    for one in state.missed:
        its = found.setdefault(one.worker, dict.fromkeys(KINDS, 0))
        its[one.kind] += 1
    return found


_SAID = {FAILED: "failed", EXPIRED: "expired", LATE: "answered late", UNDONE: "undone"}


def sentence(counts: Counter[str], asked: int, items: Sequence[dict[str, Any]] = (), passed_on: int = 0) -> str | None:
    """What was missed, in a sentence, with the items whose asks failed or expired; None if nothing was."""
    parts = [f"{counts[kind]} {_SAID[kind]}" for kind in KINDS if counts[kind]]
    if not parts:
        return None
    said = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    also = f" ({passed_on} asked of somebody else too, and the first result counts)" if passed_on else ""
    failed = [(one, one[FAILED] + one[EXPIRED]) for one in items if one[FAILED] + one[EXPIRED]]
    each = [f"item {one['name']}: {count} of {one['asked']}" for one, count in failed[:_MOST_SAID]]
    more = f" and {len(failed) - len(each)} more items" if len(failed) > len(each) else ""
    which = f" Failed asks: {', '.join(each)}{more}." if each else ""
    asks = f"{asked} ask{'' if asked == 1 else 's'}"
    return f"Of {asks}: {said}{also}.{which} A proof assumes that this has nothing to do with values."


def as_events(missed: Sequence[Missed]) -> list[dict[str, Any]]:
    """What was missed, as events of the log that `coterie verify` reads."""
    return [{"event": "missed", "arm": one.arm, "kind": one.kind, "worker": one.worker} for one in missed]
