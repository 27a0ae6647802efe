"""The rows of a campaign as the record of a conversation: what was asked, told and given up, and what was decided; and
the stable ids of its groups.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.campaign.settings import timestamp
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import Resolution
from coterie.problem.revision import Revision
from coterie.session.conversation import ASKED, CHOSEN, FORGOTTEN, REVISED, STEPPED, TOLD, AppliedPart
from coterie.session.corrections import Correction, without_alarm
from coterie.session.facts import UNASKED, Facts
from coterie.store.rows import ALL_KINDS, TABLES, Ask, Ending, Note, Row, Told

RESOLUTION, REVISION = "resolution", "revision"
"""Kinds of notes that keep a resolution that was chosen on the way, and a revision."""

DECISIONS = ("freeze", "list", "round", "cell", "lapse", "statements", "alarm", RESOLUTION, REVISION)
"""Kinds of notes that keep a decision of the method."""

ARCHIVED, UNARCHIVED, LEASE_TIME = "archived", "unarchived", "lease_time"
"""Kinds of notes that keep what was decided about the campaign as a whole."""

SURPLUS = "surplus"
"""The kind of note that keeps a result which does not count: somebody else has answered its ask before."""

DELIVERED = "delivered"
"""The kind of note that says: a webhook knows what has happened."""

ATTACHMENT = "attachment"
"""The kind of note that names a file which belongs to a measurement; its content stands beside the log."""

BLOCK = "block"
"""The kind of note that keeps what was done with a block: asks were put together in it, it was closed, or the result
that follows, which nobody asked for, is of it."""

DEADLINE = "deadline"
"""The kind of note that says: all that may be measured is another number from here on."""

RULES = "rules"
"""The kind of note that says: what follows was decided by the rules of this number."""


CORRECTION = "correction"
"""The kind of note that replaces the values of a measurement."""


@dataclass
class RecordedRows:
    """Rows as facts, and what they say about who decided them."""

    facts: Facts
    seqs: list[int]  # of each entry
    stop: dict[str, Any] | None = None  # what was noted of the stop
    outcome: dict[str, Any] | None = None  # its claims, if they were recorded with it
    rules: int | None = None  # the last number noted
    applied: AppliedPart = field(default_factory=AppliedPart)  # what stands before that note
    corrections: list[Correction] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether the groups were found."""
        return self.stop is not None

    def note(self, row: Note, entries: list[tuple[int, int, int, int, int]]) -> None:
        """Take a note in."""
        if row.kind in DECISIONS:
            decision = row.data
            if row.kind == RESOLUTION:
                entries.append((CHOSEN, -1, -1, -1, row.seq))
                self.facts.choices.append(Resolution.of(decision["resolution"]))
            if row.kind == REVISION:
                entries.append((REVISED, -1, -1, -1, row.seq))
                self.facts.revisions.append(Revision.from_json(decision))
                self.stop = self.outcome = None  # it goes on
            self.facts.decisions.append((decision.pop("t"), decision))
        elif row.kind == BLOCK:
            entries.append((STEPPED, -1, -1, -1, row.seq))
            self.facts.steps.append(row.data)
        elif row.kind == DEADLINE:
            entries.append((STEPPED, -1, -1, -1, row.seq))
            self.facts.steps.append({"step": DEADLINE, "deadline": row.data["deadline"]})
        elif row.kind == RULES:
            self.rules = int(row.data["number"])
            self.applied = AppliedPart(len(entries), len(self.facts.decisions))
        elif row.kind == CORRECTION:
            self._correct(row, entries)
        elif row.kind == "stopped":
            self.stop = row.data
            self.outcome = self.stop.get("outcome")
            if self.stop["by"] == "ask":  # it looked for an arm and found that there was nothing left to measure
                entries.append((ASKED, -1, -1, -1, row.seq))

    def _correct(self, row: Note, entries: list[tuple[int, int, int, int, int]]) -> None:
        """A value is another one than was told. What was decided stays, but for an alarm, and perhaps the stop."""
        made = Correction.of(row.data | {"at": timestamp(row.at)})
        self.corrections.append(made)
        self.facts.decisions[:] = without_alarm(self.facts.decisions)
        if made.reopened:
            self.stop = self.outcome = None
            entries[:] = [entry for entry in entries if entry[0] != ASKED or entry[1] >= 0]
        self.applied = AppliedPart(len(entries), len(self.facts.decisions))


def read_facts(rows: Sequence[Row], dim: int, next_ticket: int) -> RecordedRows:
    """The record that these rows are, with corrections in place; `next_ticket` is the number of the first new ask."""
    entries: list[tuple[int, int, int, int, int]] = []  # kind, arm, ticket, round, seq
    texts: list[str] = []
    recorded = RecordedRows(Facts([], [], [], [], np.zeros((0, dim)), [], [], [], []), [])
    for row in rows:
        if isinstance(row, Told):
            entries.append((TOLD, row.arm, UNASKED if row.ticket is None else row.ticket, -1, row.seq))
            texts.append(row.values)
        elif isinstance(row, Ask):
            if row.ticket == next_ticket:  # else a lease handed on: its place in the order of asks is an old one
                entries.append((ASKED, row.arm, row.ticket, row.round, row.seq))
                next_ticket += 1
        elif isinstance(row, Ending):
            entries.append((FORGOTTEN, -1, row.ticket, -1, row.seq))
        else:
            recorded.note(row, entries)
    if entries:
        kinds, arms, tickets, rounds, seqs = (list(column) for column in zip(*entries, strict=True))
        made = recorded.facts.decisions, recorded.facts.choices, recorded.facts.revisions, recorded.facts.steps
        values = numbers(texts, dim)
        for correction in recorded.corrections:
            if correction.row < len(values):  # else a result that these rows do not have
                values[correction.row] = padded(list(correction.new), dim)
        recorded.facts = Facts(kinds, arms, tickets, rounds, values, *made)
        recorded.seqs = seqs
    return recorded


def numbers(texts: list[str], dim: int) -> FloatArray:
    """The values of many results: what json.loads makes of each, only faster. Of panels of features they are padded."""
    text = ",".join(texts).replace("[", "").replace("]", "")
    if "null" not in text and text.count(",") + 1 == len(texts) * dim:
        return np.fromstring(text, sep=",").reshape(len(texts), dim)
    return np.array([padded(json.loads(text), dim) for text in texts]).reshape(len(texts), dim)


def padded(values: Sequence[float | None], width: int) -> FloatArray:
    """(width) the numbers of a result, with NaN for those that are missing, and behind the last."""
    row = np.full(width, np.nan)
    row[: len(values)] = np.array(values, dtype=np.float64)
    return row


def as_told(values: FloatArray, size: int) -> list[float | None]:
    """The numbers of a result of so many as JSON has them: None for a hole."""
    return [None if value != value else value for value in values[:size].tolist()]


KEPT = 100
"""Rows that are kept: so many a page may show."""
LONGEST_NOTE = 1_000_000
"""Characters of the note of a stop: of a campaign with many items its claims are hundreds of megabytes."""
_CLAIMS = ', "outcome": '


def without_long_claims(row: Row) -> Row:
    """A row as logs show it: the note of a stop without what it claims, if that is long."""
    if not isinstance(row, Note) or row.kind != "stopped" or len(row.content) <= LONGEST_NOTE:
        return row
    head, mark, _ = row.content.partition(_CLAIMS)
    return row._replace(content=f"{head}}}") if mark else row


class NewestRows:
    """The last rows of a log and all points of its evidence, as far as they were seen."""

    def __init__(self, rows: Sequence[Row] = (), points: Sequence[dict[str, Any]] = ()) -> None:
        self._rows: deque[Row] = deque(rows, KEPT)
        self.points = list(points)

    def add(self, row: Row) -> None:
        """A row that follows."""
        if type(row) is Note:
            if row.kind == "evidence":
                self.points.append(row.data)
            row = without_long_claims(row)
        self._rows.append(row)

    def last(self, count: int) -> list[Row]:
        """The last rows, oldest first: all of them, if there are no more than that or `KEPT`."""
        return list(self._rows)[-count:] if count > 0 else []

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"rows": [[TABLES[type(row)], *row] for row in self._rows], "points": self.points}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> NewestRows:
        """What `to_json` gave."""
        kinds = {TABLES[kind]: kind for kind in ALL_KINDS}
        return cls([kinds[name]._make(fields) for name, *fields in content["rows"]], content["points"])


# Stable ids of groups: when the groups change, ids follow by overlap, and merges and splits have names. A change is
# plain data: {"moved": [[arm, from, to], …], "split": [{"group", "from"}], "merged": [{"group", "into"}]}; the first
# groups are {"first": [the id of each arm]}. Where K is given, a split comes with a merge; with a resolution the number
# of groups may change.


def first_groups(labels: IntArray) -> dict[str, Any]:
    """Ids from 1, in the order of the labels."""
    return {"first": (labels + 1).tolist()}  # 0 for retired items


def change_of(ids: IntArray, next_id: int, labels: IntArray) -> dict[str, Any] | None:
    """How groups whose arms have these ids became the groups that `labels` says; None if nothing changed.

    Old and new groups are matched so that as many arms as possible keep their id (equal matches: the one that SciPy's
    assignment of the groups in ascending order finds). A group matched to nothing of its own gets a new id.
    """
    here = labels >= 0  # retired items have no group, and those that joined have none yet: 0
    known = here & (ids > 0)
    old, of_old = np.unique(ids[known], return_inverse=True)
    new, of_new = np.unique(labels[here], return_inverse=True)
    overlap = np.zeros((old.size, new.size), dtype=np.int64)
    np.add.at(overlap, (of_old, of_new[known[here]]), 1)
    if old.size == new.size and (np.count_nonzero(overlap, axis=0) == 1).all() and (ids[here] > 0).all():
        return None

    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(overlap, maximize=True)
    kept = {int(k): int(old[h]) for h, k in zip(rows, columns, strict=True) if overlap[h, k] > 0}
    named = np.empty(new.size, dtype=np.int64)
    split = []
    for k in range(new.size):
        if k in kept:
            named[k] = kept[k]
        else:
            named[k] = next_id
            whence = int(old[int(np.argmax(overlap[:, k]))]) if overlap[:, k].any() else 0
            split.append({"group": next_id, "from": whence})
            next_id += 1
    gone = [h for h in range(old.size) if int(old[h]) not in kept.values()]
    merged = [{"group": int(old[h]), "into": int(named[int(np.argmax(overlap[h]))])} for h in gone]
    now = np.zeros_like(ids)
    now[here] = named[of_new]
    moved = [[int(arm), int(ids[arm]), int(now[arm])] for arm in np.flatnonzero(now != ids)]
    return {"moved": moved, "split": split, "merged": merged}


def apply_change(ids: IntArray | None, change: dict[str, Any]) -> IntArray:
    """The id of each arm after a change."""
    if ids is None:
        return np.array(change["first"], dtype=np.int64)
    after = ids.copy()
    for arm, _, to in change["moved"]:
        after[arm] = to
    return after


def next_id_after(next_id: int, change: dict[str, Any]) -> int:
    """The lowest id that no group has had."""
    if "first" in change:
        return int(max(change["first"])) + 1
    return max([next_id, *(int(entry["group"]) + 1 for entry in change["split"])])
