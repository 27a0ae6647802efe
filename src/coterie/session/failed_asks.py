"""Asks that gave no result, and results that came late: what is told beside a verdict, and stands in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.session.record_arrays import RecordArrays

if TYPE_CHECKING:
    from coterie.session.session import Session

_MOST = 12


def missed_asks(session: Session) -> list[dict[str, Any]]:
    """The asks that were given up, before the groups were found: their items, and whether anybody began to measure."""
    if not session._conversation.given_up:
        return []
    record = RecordArrays(session)
    return [
        {"arm": int(record.asked_arms[ticket]), "kind": "undone" if record.undone[ticket] else "failed"}
        for ticket in np.flatnonzero(record.failed | record.undone).tolist()
    ]


def overtaken_rows(session: Session) -> set[int]:
    """Places in the log of the results that came after the result of a later ask."""
    record = RecordArrays(session)
    return set(record.row_of[record.overtaken].tolist())


def failed_in_words(session: Session) -> str:
    """How many asks of which items failed: "item 3: 5 of 25, item 7: 4 of 22"; nothing if none did."""
    if not session._conversation.given_up:
        return ""
    record = RecordArrays(session)
    failed = np.bincount(record.asked_arms[record.failed], minlength=session.n_arms)
    asked = np.bincount(record.asked_arms[record.failed | (record.row_of >= 0)], minlength=session.n_arms)
    order = np.argsort(-failed, kind="stable")[: int((failed > 0).sum())].tolist()
    names = [str(arm) if session.names is None else session.names[arm] for arm in order[:_MOST]]
    each = [f"item {name}: {failed[arm]} of {asked[arm]}" for name, arm in zip(names, order, strict=False)]
    more = len(order) - len(each)
    return ", ".join(each) + (f" and {more} more items" if more > 0 else "")
