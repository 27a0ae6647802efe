"""Asks of a campaign whose results did not come, or came late: how many, of which items, by which workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from coterie.campaign.state import State

FAILED, EXPIRED, UNDONE, LATE = "failed", "expired", "undone", "late"
KINDS = (FAILED, EXPIRED, LATE, UNDONE)
"""Failed: somebody said so. Expired: it was given up when its time was over, or asked of somebody else too. Late: its
result came after that time, whether it had been given up or waited for. Undone: nobody measured. An ask that expired
and was answered later counts as both.
"""
MOST_LISTED = 1000
"""Items and workers that a view lists; the counts are of them all."""


class Missed(NamedTuple):
    """Something that became of an ask; `seq` is the row that says so."""

    kind: str
    arm: int
    worker: str
    seq: int


def before_stop(state: State) -> list[Missed]:
    """What was missed before the groups were found: what nobody needed any more is left out."""
    end = state.stopped_at
    return state.missed if end is None else [one for one in state.missed if one.seq < end]


def failures(state: State, missed: Sequence[Missed] | None = None) -> dict[str, Any]:
    """Counts of asks and of those that were missed: in all, by item and by worker; a sentence, None if there are none.

    Items and workers of whom something was missed are listed, those with the most first.
    """
    given = state.missed if missed is None else missed
    counts = Counter(one.kind for one in given)
    asked = state.session.next_ticket
    by_arm = Counter(state.session.arms_asked) if given else Counter[int]()
    return {
        "asked": asked,
        **{kind: counts[kind] for kind in KINDS},
        "items": [
            {"arm": arm, "name": state.settings.name_of(arm), "asked": by_arm[arm], **its}
            for arm, its in _counted([(one.arm, one.kind) for one in given])
        ],
        "workers": [
            {"worker": name, "asked": state.workers[name].asked, **its}
            for name, its in _counted([(one.worker, one.kind) for one in given])
        ],
        "passed_on": state.passed_on,
        "text": sentence(counts, asked, state.passed_on),
    }


def _counted(pairs: list[tuple[Any, str]]) -> list[tuple[Any, dict[str, int]]]:
    """Of each item or worker, how many of each kind; those with the most first."""
    found: dict[Any, Counter[str]] = {}
    for who, kind in pairs:
        found.setdefault(who, Counter())[kind] += 1
    order = sorted(found, key=lambda who: (-found[who].total(), str(who)))[:MOST_LISTED]
    return [(who, {kind: found[who][kind] for kind in KINDS}) for who in order]


def by_worker(state: State) -> dict[str, dict[str, int]]:
    """Of each worker, how many of each kind."""
    found: dict[str, dict[str, int]] = {}
    for one in state.missed:
        its = found.setdefault(one.worker, dict.fromkeys(KINDS, 0))
        its[one.kind] += 1
    return found


_SAID = {FAILED: "failed", EXPIRED: "expired", LATE: "answered late", UNDONE: "undone"}


def sentence(counts: Counter[str], asked: int, passed_on: int = 0) -> str | None:
    """What was missed, in a sentence; None if nothing was."""
    parts = [f"{counts[kind]} {_SAID[kind]}" for kind in KINDS if counts[kind]]
    if not parts:
        return None
    said = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    also = f" ({passed_on} asked of somebody else too, and the first result counts)" if passed_on else ""
    asks = f"{asked} ask{'' if asked == 1 else 's'}"
    return f"Of {asks}: {said}{also}. A proof assumes that this has nothing to do with values."


def as_events(missed: Sequence[Missed]) -> list[dict[str, Any]]:
    """What was missed, as events of the log that `coterie verify` reads."""
    return [{"event": "missed", "arm": one.arm, "kind": one.kind, "worker": one.worker} for one in missed]
