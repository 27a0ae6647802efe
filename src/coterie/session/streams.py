"""Streams: the results of a set of items in the order in which they were asked for, up to the first open ask.

Given what was known when it was asked for, a result of a stream has the mean of its item. So what is multiplied up
along a stream is a martingale, whatever chose items and times (docs/INTERVALS.md, Lemma 1). Asks that were given up are
left out; results that nobody asked for are no part of a stream. A result that was asked for and did not count ends the
stream: it waits for an earlier ask, or came after the groups were found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.evidence.intervals.contrasts import CellResults
from coterie.problem.checks import IntArray
from coterie.session.conversation import FORGOTTEN, TOLD, Conversation

OPEN, GIVEN_UP = -1, -2
"""In the place of a result."""


class Asks(NamedTuple):
    """All asks in their order: `arms`, and `rows` with the place of each result in the log, OPEN, or GIVEN_UP."""

    arms: IntArray
    rows: IntArray

    def streams(self, labels: IntArray, count: int) -> list[IntArray]:
        """Places in the log of the streams of items with label 0, 1, …, `count` − 1; negative labels have none."""
        own = labels[self.arms]
        order = np.argsort(own, kind="stable")
        ends = np.searchsorted(own[order], np.arange(count + 1))
        return [self._until_open(order[ends[k] : ends[k + 1]]) for k in range(count)]

    def joined(self, labels: IntArray, first: int, second: int) -> tuple[IntArray, IntArray]:
        """The streams of two groups, both up to the first open ask of either."""
        own = labels[self.arms]
        tickets = np.flatnonzero((own == first) | (own == second))
        rows = self._until_open(tickets)
        of = own[tickets][self.rows[tickets] != GIVEN_UP][: rows.size]
        return rows[of == first], rows[of == second]

    @property
    def of_all(self) -> IntArray:
        """The stream of all items."""
        return self._until_open(np.arange(self.arms.size, dtype=np.int64))

    def arms_of(self, rows: IntArray) -> IntArray:
        """The arms of results of streams, by their places in the log."""
        answered = np.flatnonzero(self.rows >= 0)
        arms = np.zeros(int(self.rows.max(initial=0)) + 1, dtype=np.int64)
        arms[self.rows[answered]] = self.arms[answered]
        return np.asarray(arms[rows])

    def _until_open(self, tickets: IntArray) -> IntArray:
        rows = self.rows[tickets]
        rows = rows[rows != GIVEN_UP]
        still_open = np.flatnonzero(rows == OPEN)
        return np.asarray(rows[: still_open[0]] if still_open.size else rows)


def asks_of(conversation: Conversation) -> Asks:
    """The asks of a conversation so far. What was given up after the groups were found stays open."""
    arms = np.array(conversation.arms_asked, dtype=np.int64)
    rows = np.full(arms.size, OPEN, dtype=np.int64)
    tickets = conversation.log.tickets
    for row in conversation.counted_rows:
        ticket = tickets[row]
        if ticket is not None:
            rows[ticket] = row
    gone = np.array(conversation.given_up, dtype=np.int64)
    if gone.size and conversation.run.done and conversation.counted_rows:
        order = np.frombuffer(bytes(conversation.order), dtype=np.uint8)
        last = np.flatnonzero(order == TOLD)[max(conversation.counted_rows)]
        gone = gone[np.flatnonzero(order == FORGOTTEN) <= last]
    rows[gone] = GIVEN_UP
    return Asks(arms, rows)


def open_asks(asks: Asks) -> list[list[int]]:
    """[ask, arm] of the open asks before the last that was answered: what a log says of them."""
    answered = np.flatnonzero(asks.rows >= 0)
    last = int(answered[-1]) if answered.size else 0
    return [[number, int(asks.arms[number])] for number in np.flatnonzero(asks.rows[:last] == OPEN).tolist()]


def cells_of(conversation: Conversation) -> list[CellResults]:
    """The cells of a conversation in blocks, in order, up to the first that has not ended.

    In strict blocks a cell that lapsed never ends: whether one does may depend on its values.
    """
    left: dict[int, int] = {}  # results to come
    for _, made in conversation.decisions:
        if made["event"] == "cell":
            left[made["cell"]] = len(made["pulls"])
        elif made["event"] == "lapse" and not conversation.settings.strict_blocks:
            left[made["cell"]] -= len(made["missing"])
    rows: dict[int, list[int]] = {number: [] for number in left}
    for row, number in zip(conversation.counted_rows, conversation.counted_rounds, strict=True):
        if number in rows:
            rows[number].append(row)
    cells, log = [], conversation.log
    for number, own in rows.items():
        if len(own) < left[number]:
            break
        arms = log.arms_of(np.array(own, dtype=np.int64))
        order = np.argsort(arms, kind="stable")
        cells.append(CellResults(arms[order], log.array[np.array(own, dtype=np.int64)[order]]))
    return cells
