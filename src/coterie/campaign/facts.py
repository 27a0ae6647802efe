"""The rows of a campaign as the record of a conversation: what was asked, told and given up, and what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie.campaign.rows import Ask, Ending, Note, Row, Told
from coterie.problem.checks import FloatArray
from coterie.session.conversation import ASKED, FORGOTTEN, TOLD
from coterie.session.records import UNASKED
from coterie.session.replaying import Facts

DECISIONS = ("freeze", "round", "alarm")
"""Kinds of notes that keep a decision of the method."""

RULES = "rules"
"""The kind of note that says: what follows was decided by the rules of this number."""


class RecordedRows(NamedTuple):
    """Rows as facts, and what they say about who decided them."""

    facts: Facts
    seqs: list[int]  # of each entry
    outcome: dict[str, Any] | None  # of the last stop, if it was recorded with it
    stopped: bool
    rules: int | None  # the last number noted
    applied: int  # entries before that note


def read_facts(rows: Sequence[Row], dim: int, next_ticket: int) -> RecordedRows:
    """The record that these rows are; `next_ticket` is the number of the first new ask."""
    entries: list[tuple[int, int, int, int, int]] = []  # kind, arm, ticket, round, seq
    texts: list[str] = []
    decisions: list[tuple[int, dict[str, Any]]] = []
    outcome, stopped, rules, applied = None, False, None, 0
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
        elif row.kind in DECISIONS:
            decision = row.data
            decisions.append((decision.pop("t"), decision))
        elif row.kind == RULES:
            rules, applied = int(row.data["number"]), len(entries)
        elif row.kind == "stopped":
            stopped, content = True, row.data
            outcome = content.get("outcome")
            if content["by"] == "ask":  # it looked for an arm and found that there was nothing left to measure
                entries.append((ASKED, -1, -1, -1, row.seq))
        elif row.kind == "outcome":
            outcome = row.data
    kinds, arms, tickets, rounds, seqs = (
        (list(column) for column in zip(*entries, strict=True)) if entries else ([],) * 5
    )
    facts = Facts(kinds, arms, tickets, rounds, numbers(texts, dim), decisions)
    return RecordedRows(facts, seqs, outcome, stopped, rules, applied)


def numbers(texts: list[str], dim: int) -> FloatArray:
    """The values of many results: what json.loads makes of each, only faster."""
    text = ",".join(texts).replace("[", "").replace("]", "")
    return np.fromstring(text, sep=",").reshape(len(texts), dim)


def decision_note(seq: int, t: int, decision: dict[str, Any], at: float, dumps: Any) -> Note:
    """The row that keeps a decision made when t results had counted."""
    return Note(seq, decision["event"], dumps(decision | {"t": t}), at)
