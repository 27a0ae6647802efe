"""What was asked, told and given up in a session, as arrays and as streams: alarms and intervals are computed from it.

A stream is the results of a set of items in the order in which they were asked for, up to the first open ask. Given
what was known when it was asked for, a result of a stream has the mean of its item. So what is multiplied up along a
stream is a martingale, whatever chose items and times (docs/INTERVALS.md, Lemma 1). Asks that were given up are left
out; results that nobody asked for are no part of a stream. A result that was asked for and did not count ends the
stream: it waits for an earlier ask, or came after the groups were found.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.evidence.intervals.streams import CellResults
from coterie.evidence.order import fixed_noise, repeats
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical
from coterie.session.conversation import ASKED, FORGOTTEN, TOLD, Conversation

if TYPE_CHECKING:
    from coterie.session.session import Session


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


NEVER = np.iinfo(np.int64).max
_PATIENCE, _PATIENCE_PER_OPEN = 20, 4
_MOST_NAMED = 12


class ComposedRound(NamedTuple):
    """A round of the method: its number, the ticket of its first ask, its epoch, and how often each arm is pulled."""

    number: int
    place: int
    epoch: int
    pulls: dict[int, int]
    results: dict[int, list[int]]  # of each arm, those that counted, in order

    @property
    def complete(self) -> bool:
        """Whether all of its results have counted."""
        return all(len(self.results.get(arm, ())) == count for arm, count in self.pulls.items())


class RecordArrays:
    """The record of a session at one moment. Events are numbered in the order in which they happened."""

    def __init__(self, source: Session | Conversation) -> None:
        conversation = source if isinstance(source, Conversation) else source._conversation
        log, events = conversation.log, np.frombuffer(bytes(conversation.order), dtype=np.uint8)
        self.n_arms, self.in_ask_order = conversation.settings.n_arms, conversation.in_ask_order
        features = conversation.settings.features
        panels = 1 if features is None else features.n_panels  # inside, an arm is an item with a panel of features
        self.asked_arms = np.array(conversation.arms_asked, dtype=np.int64) // panels  # by ticket
        self.asked_rounds = np.array(conversation.rounds_asked, dtype=np.int64)
        # The last ask may have found the groups: it has no ticket.
        self.ask_events = np.flatnonzero(events == ASKED)[: self.asked_arms.size]
        self.told_events = np.flatnonzero(events == TOLD)  # by result
        self.told_arms = np.array(log.arms, dtype=np.int64) // panels
        self.told_tickets = np.array([-1 if ticket is None else ticket for ticket in log.tickets], dtype=np.int64)
        self.values = log.array  # (n, d) as they were told
        self.counted = conversation.counted
        self.counted_rounds = np.array(conversation.counted_rounds, dtype=np.int64)
        self.decisions = conversation.decisions
        given_up = np.array(conversation.given_up, dtype=np.int64)
        self.row_of = np.full(self.asked_arms.size, -1, dtype=np.int64)  # by ticket
        answers = self.told_tickets >= 0
        self.row_of[self.told_tickets[answers]] = np.flatnonzero(answers)
        self.failed = np.zeros(self.asked_arms.size, dtype=bool)
        self.end_events = np.full(self.asked_arms.size, NEVER, dtype=np.int64)  # answered or given up
        self.end_events[self.told_tickets[answers]] = self.told_events[answers]
        gone = np.flatnonzero(events == FORGOTTEN)
        if (
            conversation.run.done and self.counted.size
        ):  # what is given up because nobody needs it any more is no failure
            before = gone <= self.told_events[self.counted].max()
            given_up, gone = given_up[before], gone[before]
        self.failed[given_up] = True
        self.end_events[given_up] = gone
        self.undone = np.zeros(self.asked_arms.size, dtype=bool)  # they say nothing about how asks fail
        self.undone[sorted(conversation.undone)] = True
        self.failed &= ~self.undone

    @cached_property
    def missing_at(self) -> IntArray:
        """By ticket: the event at which an open ask is no longer waited for; NEVER if it has not come yet.

        An ask is waited for while 20 asks and 4 for each that was open with it are made after it, so that a forgotten
        one does not hold up an alarm for ever. That must not depend on its value, and does not, if delays do not.
        """
        n = self.asked_arms.size
        ends = np.sort(self.end_events)
        open_then = np.arange(n) - np.searchsorted(ends, self.ask_events)
        until = np.arange(n) + _PATIENCE + _PATIENCE_PER_OPEN * open_then
        return np.where(until < n, self.ask_events[np.minimum(until, n - 1)] if n else until, NEVER)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """By ticket: it was not answered or given up in time, or it was undone."""
        return np.asarray((self.end_events > self.missing_at) | self.undone)

    @cached_property
    def undecided(self) -> NDArray[np.bool_]:
        """By ticket: it is open, and still waited for."""
        return np.asarray((self.end_events == NEVER) & (self.missing_at == NEVER))

    @cached_property
    def counted_arms(self) -> IntArray:
        """The arms of the results that counted, in the order in which they did."""
        return self.told_arms[self.counted]

    @cached_property
    def counted_values(self) -> FloatArray:
        """The results that counted, in the order in which they did."""
        return self.values[self.counted]

    @cached_property
    def overtaken(self) -> NDArray[np.bool_]:
        """By ticket: it was answered, and the answer to a later ask came before."""
        answered = np.where(self.row_of >= 0, self.end_events, NEVER)
        earliest = np.minimum.accumulate(answered[::-1])[::-1]  # of this ask and all later ones
        return np.asarray(earliest < answered) & (self.row_of >= 0)

    # Pairs of results that were decided on before either was known.

    def pairs_asked_together(self) -> list[tuple[int, int, int]]:
        """(place, result, result) of two asks of one arm outside rounds, the second made while the first was open.

        `place` is the ticket of the second ask; -1 for results of a pair that is undecided. Pairs of which an ask was
        given up or came too late are left out.
        """
        if not self.in_ask_order:
            return []
        waiting: dict[int, int] = {}
        together = []
        free = np.flatnonzero(self.asked_rounds <= 0)
        free = free[repeats(self.asked_arms[free])]  # of an arm that was asked for once there is no pair
        columns = (free, self.asked_arms[free], self.ask_events[free])
        ends, rows = self.end_events, self.row_of
        for ticket, arm, at in zip(*(column.tolist() for column in columns), strict=True):
            first = waiting.get(arm)
            if first is None or ends[first] < at:
                waiting[arm] = ticket
                continue
            del waiting[arm]
            both = [first, ticket]
            if self.failed[both].any() or self.missing[both].any():
                continue
            if self.undecided[both].any():
                together.append((ticket, -1, -1))
            else:
                together.append((ticket, int(rows[first]), int(rows[ticket])))
        return together

    def rounds(self) -> list[ComposedRound]:
        """Every round with an ask, in order."""
        composed = {decision["round"]: decision for _, decision in self.decisions if decision["event"] == "round"}
        numbers, firsts = np.unique(self.asked_rounds, return_index=True)
        results: dict[int, dict[int, list[int]]] = {}
        inside = np.flatnonzero(self.counted_rounds > 0)
        rows = self.counted[inside]
        steps = zip(self.counted_rounds[inside].tolist(), rows.tolist(), self.told_arms[rows].tolist(), strict=True)
        for of_round, row, arm in steps:
            results.setdefault(of_round, {}).setdefault(arm, []).append(row)
        rounds = []
        for number, first in zip(numbers.tolist(), firsts.tolist(), strict=True):
            if number in composed:
                pulls = {int(arm): int(count) for arm, count in composed[number]["pulls"]}
                epoch = int(composed[number]["epoch"])
                rounds.append(ComposedRound(number, int(first), epoch, pulls, results.get(number, {})))
        return rounds


# Pairs of results whose difference is pure noise: both were decided on before either was known. A round is composed
# before any of its asks, and asked for to its end; so any pairing of its asks that was fixed with it will do. Two pulls
# of one arm have the same mean in any case; two arms of a group have if the group is right. Outside rounds, two asks of
# one arm are a pair if the second was made while the first was open.


def round_pairs(
    number: int, pulls: dict[int, int], labels: IntArray | None
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The pairing of a round's asks: ((arm, its i-th pull), (arm, its j-th pull)), from its number and composition.

    Pulls of one arm first; of the arms with a pull left, `labels` says which have the same mean (None: nobody knows).
    """
    pairs = []
    left: dict[int, list[int]] = {}
    for arm in sorted(pulls):
        for i in range(0, pulls[arm] - 1, 2):
            pairs.append(((arm, i), (arm, i + 1)))
        if pulls[arm] % 2 == 1 and labels is not None:
            left.setdefault(int(labels[arm]), []).append(arm)
    for arms in left.values():
        single = np.array(arms, dtype=np.int64)
        mixed = single[np.argsort(fixed_noise(np.full(single.size, number), single), kind="stable")].tolist()
        for first, second in zip(mixed[::2], mixed[1::2], strict=False):
            pairs.append(((first, pulls[first] - 1), (second, pulls[second] - 1)))
    return pairs


def committed_pairs(record: RecordArrays, labels: IntArray | None) -> IntArray:
    """(n, 2) results of the pairs so far, in the order in which they were decided on; none after one that is open.

    Arms of one group are paired in rounds whose candidate is `labels`.
    """
    frozen = {made["epoch"]: made["labels"] for _, made in record.decisions if made["event"] == "freeze"}
    wanted = None if labels is None else canonical(labels)
    same = {
        epoch: wanted is not None and np.array_equal(canonical(np.array(candidate)), wanted)
        for epoch, candidate in frozen.items()
    }
    steps: list[tuple[int, list[tuple[int, int]]]] = [
        (place, [(first, second)]) for place, first, second in record.pairs_asked_together()
    ]
    for of_round in record.rounds():
        pairs = [(-1, -1)]
        if of_round.complete:
            results = of_round.results
            pairing = round_pairs(of_round.number, of_round.pulls, labels if same.get(of_round.epoch) else None)
            pairs = [(results[a][i], results[b][j]) for (a, i), (b, j) in pairing]
        steps.append((of_round.place, pairs))
    committed: list[tuple[int, int]] = []
    for _, pairs in sorted(steps, key=lambda step: step[0]):
        if any(first < 0 for first, _ in pairs):
            break
        committed += pairs
    return np.array(committed, dtype=np.int64).reshape(-1, 2)


# Asks that gave no result, and results that came late: what is told beside a verdict, and stands in the log.


def missed_asks(conversation: Conversation) -> list[dict[str, Any]]:
    """The asks that were given up, before the groups were found: their items, and whether anybody began to measure."""
    if not conversation.given_up:
        return []
    record = RecordArrays(conversation)
    return [
        {"arm": int(record.asked_arms[ticket]), "kind": "undone" if record.undone[ticket] else "failed"}
        for ticket in np.flatnonzero(record.failed | record.undone).tolist()
    ]


def overtaken_rows(conversation: Conversation) -> set[int]:
    """Places in the log of the results that came after the result of a later ask."""
    record = RecordArrays(conversation)
    return set(record.row_of[record.overtaken].tolist())


def failed_in_words(conversation: Conversation) -> str:
    """A line of a repr: "failed asks: item 3: 5 of 25, item 7: 4 of 22"; nothing if none failed."""
    if not conversation.given_up:
        return ""
    record, settings = RecordArrays(conversation), conversation.settings
    failed = np.bincount(record.asked_arms[record.failed], minlength=settings.n_arms)
    asked = np.bincount(record.asked_arms[record.failed | (record.row_of >= 0)], minlength=settings.n_arms)
    order = np.argsort(-failed, kind="stable")[: int((failed > 0).sum())].tolist()
    shares = [f"item {settings.name_of(arm)}: {failed[arm]} of {asked[arm]}" for arm in order[:_MOST_NAMED]]
    more = len(order) - len(shares)
    text = ", ".join(shares) + (f" and {more} more items" if more > 0 else "")
    return f"\n  failed asks: {text}" if text else ""
