"""Rows to put into a journal, and short ways to do it."""

from __future__ import annotations

from coterie.store import Journal, Summary
from coterie.store.rows import Ask, Ending, Note, Row, Told


def facts(count: int, after: int = 0) -> list[Row]:
    """Rows of all four kinds, with everything in them that is hard to keep."""
    found: list[Row] = []
    for seq in range(after + 1, after + count + 1):
        at = 1_800_000_000.0 + seq / 3
        match seq % 5:
            case 0:
                found.append(Ending(seq, f"l{seq - 4}", seq, "failed", "the tube broke – “twice”\\", at))
            case 1:
                found.append(Ask(seq, f"l{seq}", seq, seq % 7, "änn\u2028", at, at + 60.0, seq % 3))
            case 2:
                found.append(Told(seq, f"m{seq}", seq % 7, "[0.1, -1e-320]", f"l{seq - 1}", seq - 1, "b\"o'b", at))
            case 3:
                found.append(Told(seq, f"m{seq}", seq % 7, "[1.7976931348623157e+308]", None, None, None, at))
            case _:
                found.append(Note(seq, "evidence" if seq % 2 else "groups", '{"t": 3, "é": null}', at))
    return found


def summary(at: float = 5.0) -> Summary:
    return {"last_at": at, "t": 2, "measurements": 3, "open_leases": 1, "done": 0}


def begin(journal: Journal, *ids: str) -> None:
    with journal.writing() as writing:
        for i, id in enumerate(ids):
            writing.add_campaign(id, f"campaign {id}", '{"n_arms": 3}', float(i))


def append(journal: Journal, id: str, count: int) -> None:
    with journal.writing([id]) as writing:
        writing.append(id, facts(count, writing.locked[id]["last_seq"]), summary())
