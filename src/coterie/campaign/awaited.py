"""Asks of a campaign that everybody waits for: of whom they were asked, and when they are asked of somebody else.

Once an ask holds up what others could measure (`coterie.session.Session.awaited`), its time is shortened: it is passed
on to the next who asks, after `pass_on` times the median of the times that answers took. The result that comes first
counts. That needs what expiry needs: how long a measurement takes has nothing to do with its value (docs/CROC.md,
section 8). Where leases wait, nothing of the kind is assumed, and nothing is passed on.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from coterie.campaign.settings import FEWEST_ANSWERS, LEAST_SECONDS
from coterie.campaign.state import Lease, State
from coterie.campaign.timestamps import timestamp

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
