"""A write on one campaign: its state, its time, its new rows, and what every command notes.

Commands check first, then change the state and make rows; one that raises has changed nothing. All that the method
decides meanwhile, and the stop with what it claims, become rows of the same turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coterie.campaign.errors import Conflict
from coterie.campaign.settings import (
    plain,
    timestamp,
)
from coterie.campaign.state.facts import BLOCK, RULES, change_of, first_groups
from coterie.campaign.state.leases import Lease
from coterie.campaign.state.state import State
from coterie.campaign.tokens import Writer
from coterie.problem.checks import FloatArray
from coterie.store.rows import Ending, Note, Row

_POINTS_PER_E_FOLD = 200
"""How densely the evidence's history is kept: a point whenever t has grown by 1/200."""


@dataclass
class Turn:
    """A write under way."""

    state: State
    now: float
    rows: list[Row] = field(default_factory=list)
    writer: Writer | None = None  # whose decision is being made; None: the command line, or Python

    def may_use(self, lease: Lease) -> bool:
        """Whether the writer may answer a lease, or give it up."""
        return self.writer is None or self.writer.may_use(lease.token)

    @property
    def may_use_all(self) -> bool:
        """Whether the writer may answer every lease."""
        return self.writer is None or not self.writer.only_own

    def add(self, row: Row, values: FloatArray | None = None) -> None:
        """Keep a row whose effect the session already has."""
        if self.writer is not None:
            row = row._replace(token=self.writer.token)
        self.state.record(row, values)
        self.rows.append(row)

    @property
    def seq(self) -> int:
        """The number of the next row."""
        return self.state.seq + 1

    def note(self, kind: str, content: Any) -> None:
        """Keep something found out."""
        self.add(Note(self.seq, kind, json.dumps(content), self.now))

    def note_rules(self) -> None:
        """Before anything new is decided: by which rules, if other ones have decided so far."""
        state = self.state
        if (not state.done and state.rules != state.session.rules) or state.session.applied > state.applied:
            state.applied = state.session.applied
            self.note(RULES, {"number": state.session.rules})

    def note_steps(self) -> None:
        """Keep what was done with blocks."""
        for step in self.state.session.steps[self.state.steps :]:
            self.note(BLOCK, step)

    def note_decisions(self) -> None:
        """Keep what the method has decided beside its asks."""
        for t, decision in self.state.session.dated_decisions[self.state.decisions :]:
            self.note(decision["event"], decision | {"t": t})


def expire(turn: Turn) -> None:
    """End the leases whose time is over, where the campaign skips them."""
    state = turn.state
    if state.settings.on_expiry != "skip":
        return
    over = state.open.over(turn.now)
    for lease in over:
        give_up(turn, lease, "expired", "")
    if over:
        note_findings(turn, by="expiry")


def give_up(turn: Turn, lease: Lease, kind: str, reason: str) -> None:
    """The result of a lease will not come."""
    turn.note_rules()
    turn.state.session.forget(lease.ticket)
    turn.add(Ending(turn.seq, lease.key, lease.ticket, kind, reason, turn.now))
    turn.note_decisions()


# What follows from it.


def note_findings(turn: Turn, by: str) -> None:
    """Note what has come out: new groups, a point of the evidence, the stop with what it claims."""
    state, session = turn.state, turn.state.session
    stopped = session.done and state.stopped_at is None
    if state.stopped_at is not None:
        return
    labels = session.groups_now
    if labels is not None and (labels is not state.compared[0] or state.groups is not state.compared[1]):
        if state.groups is None:
            turn.note("groups", first_groups(labels))
        else:
            change = change_of(state.groups, state.next_group, labels)
            if change is not None:
                turn.note("groups", change)
        state.compared = labels, state.groups
    t = session.t
    if stopped or t >= state.evidence_t + max(1, state.evidence_t // _POINTS_PER_E_FOLD):
        now = session.evidence
        point = {"t": t, "statistic": plain(now.statistic), "threshold": plain(now.threshold)}
        turn.note("evidence", point)
    if stopped:
        turn.note("stopped", {"t": t, "by": by, "verdict": session.verdict, "outcome": session.outcome})


@dataclass(frozen=True)
class ArchivedCommand:
    """A command that may be given to a campaign that is archived."""

    command: Callable[..., dict[str, Any]]

    def __call__(self, turn: Turn, *arguments: Any) -> dict[str, Any]:
        """Decide."""
        return self.command(turn, *arguments)


def decision(
    command: Callable[..., dict[str, Any]], arguments: Sequence[Any], writer: Writer | None = None
) -> Callable[[Turn], dict[str, Any]]:
    """What a command decides in a turn; `writer`: the token that it came with."""

    def decide(turn: Turn) -> dict[str, Any]:
        turn.writer = writer  # a turn is shared by requests that are committed together
        return command(turn, *arguments)

    return ArchivedCommand(decide) if isinstance(command, ArchivedCommand) else decide


def check_not_archived(turn: Turn) -> None:
    """Refuse to write to a campaign that was put away."""
    if turn.state.archived is not None:
        raise Conflict(
            f"the campaign is archived since {timestamp(turn.state.archived)}, and only read: unarchive it first",
            code="archived",
        )
