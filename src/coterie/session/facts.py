"""A recorded conversation as a list of facts: what was asked, told, given up, chosen, revised and decided, in order.

Facts come from a live session (`facts_of`), from a saved one (`coterie.session.saved`), or from the rows of a campaign.
A `Reading` puts them in the order in which they count, through the same lines as live results, and brings a
conversation to where they end; `coterie.session.replaying` says when facts are followed, applied or closed.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from coterie.methods.contract import ASK, CHOOSE, GIVE_UP, RESULT, STEP, Decision, Departure, Record
from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.problem.question import Resolution
from coterie.problem.revision import Revision
from coterie.problem.settings import Settings
from coterie.session.conversation import (
    ASKED,
    CHOSEN,
    FORGOTTEN,
    LOOKED,
    REVISED,
    STEPPED,
    TOLD,
    AppliedPart,
    Conversation,
)
from coterie.session.lines import Place

UNASKED = -2
"""The ticket of a result that answers no ask, though one for its arm may be open: its place is that of its arrival."""


class ReplayError(ValueError):
    """An entry of a record does not fit what came before it."""

    def __init__(self, entry: int, why: str) -> None:
        super().__init__(f"entry {entry}: {why}: the record does not lead here")
        self.entry, self.why = entry, why


class Facts(NamedTuple):
    """A recorded conversation: what was done, in order, and what was decided meanwhile.

    An ask that found the groups proven has no arm and no ticket: -1. The ticket of a result is that of the ask which it
    answers, `UNASKED` if there is none, or -1: the oldest open one of its arm.
    """

    kinds: list[int]  # ASKED, TOLD, FORGOTTEN, LOOKED, CHOSEN, REVISED, STEPPED
    arms: list[int]
    tickets: list[int]
    rounds: list[int]  # of asks, -1 if it was not recorded
    values: FloatArray  # (results, d)
    decisions: list[tuple[int, Decision]] = []  # noqa: RUF012 (never changed): with the results that counted before
    choices: list[Resolution] = []  # noqa: RUF012 (never changed): those of the entries CHOSEN
    revisions: list[Revision] = []  # noqa: RUF012 (never changed): those of the entries REVISED
    steps: list[dict[str, Any]] = []  # noqa: RUF012 (never changed): those of the entries STEPPED

    @property
    def told_arms(self) -> list[int]:
        """The arm of each result."""
        return [arm for kind, arm in zip(self.kinds, self.arms, strict=True) if kind == TOLD]

    def split(self, at: AppliedPart) -> tuple[Facts, Facts]:
        """So many entries and decisions, and the rest."""
        older, newer = self._part(0, at.entries), self._part(at.entries, len(self.kinds))
        decided = self.decisions[: at.decisions], self.decisions[at.decisions :]
        return older._replace(decisions=decided[0]), newer._replace(decisions=decided[1])

    def _part(self, start: int, stop: int) -> Facts:
        part = slice(start, stop)
        before, kinds = bytes(self.kinds[:start]), bytes(self.kinds[part])

        def entries(kind: int) -> slice:
            first = before.count(kind)
            return slice(first, first + kinds.count(kind))

        return Facts(
            self.kinds[part], self.arms[part], self.tickets[part], self.rounds[part], self.values[entries(TOLD)], [],
            self.choices[entries(CHOSEN)], self.revisions[entries(REVISED)], self.steps[entries(STEPPED)],
        )  # fmt: skip

    def stages(self) -> list[Facts]:
        """What lies between revisions, each part with its decisions; one more than there are revisions."""
        if REVISED not in self.kinds:
            return [self]
        ends = [i for i, kind in enumerate(self.kinds) if kind == REVISED]
        cuts = [i for i, (_, decision) in enumerate(self.decisions) if decision["event"] == "revision"]
        parts = []
        for n, (start, stop) in enumerate(zip([0, *(i + 1 for i in ends)], [*ends, len(self.kinds)], strict=True)):
            first = cuts[n - 1] + 1 if 0 < n <= len(cuts) else 0
            last = cuts[n] if n < len(cuts) else len(self.decisions)
            parts.append(self._part(start, stop)._replace(decisions=self.decisions[first:last]))
        return parts

    def without_stop(self) -> Facts:
        """The facts without the ask that found the groups, if one did."""
        keep = [i for i, (kind, arm) in enumerate(zip(self.kinds, self.arms, strict=True)) if kind != ASKED or arm >= 0]
        kinds, arms, tickets, rounds = (
            [column[i] for i in keep] for column in (self.kinds, self.arms, self.tickets, self.rounds)
        )
        return self._replace(kinds=kinds, arms=arms, tickets=tickets, rounds=rounds)


def facts_of(conversation: Conversation) -> Facts:
    """What was done in a conversation so far, and decided."""
    log = conversation.log
    asks, given_up, results = 0, iter(conversation.given_up), iter(zip(log.arms, log.tickets, strict=True))
    arms, tickets, rounds = [], [], []
    for kind in conversation.order:
        arm, ticket, of_round = -1, -1, -1
        if kind == TOLD:
            arm, answered = next(results)
            ticket = UNASKED if answered is None else answered
        elif kind == FORGOTTEN:
            ticket = next(given_up)
        elif kind == ASKED and asks < conversation.next_ticket:
            arm, ticket, of_round = conversation.arms_asked[asks], asks, conversation.rounds_asked[asks]
            asks += 1
        arms.append(arm)
        tickets.append(ticket)
        rounds.append(of_round)
    values = log.array.copy()
    revisions = [made.revision for made in conversation.revisions]
    decided = list(conversation.decisions), list(conversation.choices), revisions, list(conversation.steps)
    return Facts(list(conversation.order), arms, tickets, rounds, values, *decided)


def facts_given(settings: Settings, kinds: Any, arms: Any, tickets: Any, values: Any) -> Facts:
    """What `Session.replay` was given, checked."""
    if settings.features is not None:
        raise ValueError("replay does not know features: save a session with to_dict, and load it with from_dict")
    kind, arm, ticket = _integers(kinds, "kinds"), _integers(arms, "arms"), _integers(tickets, "tickets")
    n, n_arms, dim = kind.size, settings.n_arms, settings.dim
    if arm.size != n or ticket.size != n:
        raise ValueError(f"replay needs as many arms and tickets as kinds, got {n}, {arm.size} and {ticket.size}")
    unknown = (kind < ASKED) | (kind > FORGOTTEN)
    if unknown.any():
        i = int(np.argmax(unknown))
        raise ValueError(f"entry {i}: a kind is 0 (ask), 1 (tell) or 2 (forget), got {int(kind[i])}")
    outside = (arm >= n_arms) | (arm < np.where(kind == TOLD, 0, -1))
    if outside.any():
        i = int(np.argmax(outside))
        raise ValueError(f"entry {i}: unknown arm {int(arm[i])}: arms are 0..{n_arms - 1}")
    given = np.asarray(values)
    if dim == 1 and given.ndim == 1:
        given = given[:, None]
    if given.shape != (n, dim):
        raise ValueError(f"{n} entries need values of shape ({n}, {dim}), got shape {given.shape}")
    results = check_real_array(given[kind == TOLD], "measurements")
    return Facts(kind.tolist(), arm.tolist(), ticket.tolist(), [-1] * n, results)


def _integers(given: Any, name: str) -> IntArray:
    array = np.asarray(given)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a vector of integers, got {short(given)}")
    return array.astype(np.int64)


class Reading:
    """Facts on their way through tickets and lines, without revisions; the conversation stays as it was meanwhile.

    `record` has them in the order in which they count, as methods read them. `ReplayError` if a ticket is not open, or
    of another arm.
    """

    def __init__(self, conversation: Conversation, facts: Facts, white: FloatArray) -> None:
        self._conversation, self._facts, self._white = conversation, facts, white
        self._lines = conversation.lines.copy()
        self._arms = list(conversation.arms_asked)
        self._retired = frozenset(conversation.items.retired)
        self._first_row = len(conversation.log)
        self._columns: list[tuple[int, int, int, int, int, int]] = []  # kind, arm, round, ask, asked, place in `white`
        self.origin: list[int] = []  # the entry that each of the record's came from
        self.rows: list[int] = []  # of the record's results: their place in the log
        self._older: list[FloatArray] = []  # results that waited before
        self._opened: list[int] = []  # the record's asks
        self._entry_of: dict[int, int] = {}  # of a ticket: the place of its ask in the record
        self._open_of: dict[int, deque[int]] | None = None  # open tickets of each arm: where no ticket is given
        self.claimed: list[int | None] = []  # the ticket that each result answers
        n_steps = 0
        steps = zip(facts.kinds, facts.arms, facts.tickets, facts.rounds, strict=True)
        for i, (kind, arm, ticket, of_round) in enumerate(steps):
            if kind == TOLD:
                self._tell(i, arm, ticket)
            elif kind == ASKED:
                self._ask(i, arm, ticket, of_round)
            elif kind == FORGOTTEN:
                self._forget(i, arm, ticket)
            elif kind == STEPPED:
                self._add(i, STEP, -1, ask=n_steps)
                n_steps += 1
            else:
                self._add(i, CHOOSE if kind == CHOSEN else LOOKED, -1)
        self.record = self._recorded()

    def _recorded(self) -> Record:
        kinds, arms, rounds, ask, asked, places = np.array(self._columns, dtype=np.int64).reshape(-1, 6).T.copy()
        white = self._white
        if self._older:
            white = np.concatenate([white, np.array(self._older).reshape(-1, white.shape[1])])
        results = white[places] if len(white) else np.zeros((kinds.size, white.shape[1]))
        return Record(kinds, arms, rounds, ask, asked, results, [], self._facts.choices, steps=self._facts.steps)

    def _add(
        self, entry: int, kind: int, arm: int, of_round: int = 0, ask: int = -1, asked: int = 0, place: int = 0,
        row: int = -1,
    ) -> None:  # fmt: skip
        self._columns.append((kind, arm, of_round, ask, asked, place))
        self.origin.append(entry)
        self.rows.append(row)

    def _ask(self, entry: int, arm: int, ticket: int, of_round: int) -> None:
        number = len(self._arms)
        if ticket >= 0 and ticket != number:
            raise ReplayError(entry, f"this ask opens ticket {number}, not {ticket}")
        self._arms.append(arm)
        self._lines.open(number, arm, of_round)
        self._entry_of[number] = len(self._columns)
        self._opened.append(len(self._columns))
        self._add(entry, ASK, arm, of_round)
        if self._open_of is not None:
            self._open_of.setdefault(arm, deque()).append(number)

    def _claim(self, entry: int, arm: int, ticket: int) -> int | None:
        """The open ticket that a result answers."""
        pending = self._lines.pending
        if ticket == UNASKED:
            return None
        if ticket >= 0:
            if ticket not in pending:
                raise ReplayError(entry, f"ticket {ticket} is not open")
            if self._arms[ticket] != arm:
                raise ReplayError(entry, f"ticket {ticket} is for arm {self._arms[ticket]}, not for arm {arm}")
            return ticket
        if self._open_of is None:
            self._open_of = {}
            for number, place in pending.items():
                self._open_of.setdefault(place.arm, deque()).append(number)
        tickets = self._open_of.get(arm, deque())
        while tickets and tickets[0] not in pending:
            tickets.popleft()
        return tickets.popleft() if tickets else None

    def _tell(self, entry: int, arm: int, given: int) -> None:
        number, ticket = len(self.claimed), self._claim(entry, arm, given)
        self.claimed.append(ticket)
        if arm in self._retired:
            if ticket is not None:
                del self._lines.pending[ticket]
        elif ticket is None and arm not in self._lines.by_arm:  # nothing before it: there may be a million of these
            self._add(entry, RESULT, arm, place=number, row=self._first_row + number)
        else:
            place = self._lines.answer(arm, ticket, self._first_row + number, self._white[number])
            if place is not None:
                self._count(entry, place)
            else:
                self._release(entry, arm)

    def _forget(self, entry: int, arm: int, ticket: int) -> None:
        if ticket not in self._lines.pending:
            raise ReplayError(entry, f"ticket {ticket} is not open")
        asked_arm = self._arms[ticket]
        if 0 <= arm != asked_arm:
            raise ReplayError(entry, f"ticket {ticket} is for arm {asked_arm}, not for arm {arm}")
        place = self._lines.give_up(ticket)
        if asked_arm in self._retired:
            return
        if not self._conversation.is_stale(ticket):
            self._add(entry, GIVE_UP, asked_arm, place.round, self._entry_of.get(ticket, -1), 1)
        self._release(entry, asked_arm)

    def _release(self, entry: int, arm: int) -> None:
        while (place := self._lines.ready(arm)) is not None:
            self._count(entry, place)

    def _count(self, entry: int, place: Place) -> None:
        number = place.row - self._first_row
        if number < 0:  # told before these facts
            assert place.white is not None
            self._older.append(place.white)
            number = len(self._white) + len(self._older) - 1
        if place.ticket is None or self._conversation.is_stale(place.ticket):
            self._add(entry, RESULT, place.arm, place=number, row=place.row)
        else:
            ask = self._entry_of.get(place.ticket, -1)
            self._add(entry, RESULT, place.arm, place.round, ask, 1, number, place.row)

    # What becomes of them.

    def follow(self) -> None:
        """Let the method follow the record; `ReplayError` names the entry where it goes another way."""
        run, facts = self._conversation.run, self._facts
        if run.done:
            self._refuse_late_asks(0)
            self._keep(0, [])
            return
        try:
            followed = run.follow(self.record)
        except Departure as error:
            raise ReplayError(self.origin[error.entry], error.why) from None
        if followed.by_ask:
            entry = self.origin[followed.used]
            if facts.arms[entry] >= 0 or facts.tickets[entry] >= 0:
                raise ReplayError(entry, "this ask opens no ticket, as the groups are proven")
        self._refuse_late_asks(followed.used + followed.by_ask)
        self._keep(followed.used, followed.decisions)

    def apply(self) -> None:
        """Bring the method's run to where the record ends, without consulting its rule."""
        conversation, run = self._conversation, self._conversation.run
        self.record.decisions[:] = self._placed_decisions()
        run.apply(self.record)
        # All entries were used, unless the method found the groups on the way.
        ends = np.flatnonzero(self.record.kinds == RESULT)
        counted = run.t - len(conversation.counted_rows)
        early = run.done and 0 < counted < ends.size
        self._keep(int(ends[counted - 1]) + 1 if early else self.record.kinds.size, self.record.decisions)
        conversation.applied = AppliedPart(len(conversation.order), len(conversation.decisions))

    def close(self, t: int) -> None:
        """The groups were found when t results had counted."""
        ends = np.flatnonzero(self.record.kinds == RESULT)
        before = len(self._conversation.counted_rows)
        if t - before > ends.size:
            raise ValueError(f"the record says that it stopped after {t} results, only {before + ends.size} counted")
        self._keep(int(ends[t - before - 1]) + 1 if t > before else 0, self._placed_decisions())

    def _placed_decisions(self) -> list[tuple[int, Decision]]:
        """Decisions with their place in the record: behind the last result that had counted before them."""
        ends = np.flatnonzero(self.record.kinds == RESULT)
        before = len(self._conversation.counted_rows)
        counts = [(min(t - before, ends.size), decision) for t, decision in self._facts.decisions]
        return [(int(ends[count - 1]) + 1 if count > 0 else 0, decision) for count, decision in counts]

    def _refuse_late_asks(self, used: int) -> None:
        """That no ask comes after the groups were found."""
        if self._conversation.run.done:
            for i in self._opened:
                if i >= used:
                    raise ReplayError(self.origin[i], "this ask comes after the groups were proven")

    def _keep(self, used: int, made: list[tuple[int, Decision]]) -> None:
        """Let the conversation be where the record ends. `used`: entries of it before the groups were found."""
        conversation, record, facts = self._conversation, self.record, self._facts
        was_done, before = conversation.waited is not None, len(conversation.counted_rows)
        results = np.flatnonzero(record.kinds[:used] == RESULT)
        counts = np.cumsum(record.kinds == RESULT)
        conversation.decisions += [(before + int(counts[i - 1]) if i > 0 else before, decision) for i, decision in made]
        conversation.counted_rows += [self.rows[i] for i in results.tolist()]
        asks = np.where(record.ask[results] >= 0, record.ask[results], results)
        conversation.counted_rounds += np.maximum(record.rounds[asks] * record.asked[results], 0).tolist()
        for i in self._opened:
            if record.arms[i] < 0:  # the ask that found the groups: it opened no ticket
                del self._lines.pending[conversation.next_ticket]
                self._lines.by_arm.pop(-1, None)
                break
            conversation.arms_asked.append(int(record.arms[i]))
            conversation.rounds_asked.append(max(int(record.rounds[i]), 0))
        for places in (self._lines.pending.values(), *self._lines.by_arm.values()):
            for place in places:
                if place.ticket is not None:
                    place.round = conversation.rounds_asked[place.ticket]
        if conversation.run.done and not was_done:
            conversation.waited = self._waited(used)
        conversation.never += self._ignored(len(facts.kinds))
        conversation.lines = self._lines
        conversation.order += bytes(facts.kinds)
        conversation.steps += facts.steps
        pairs = zip(facts.kinds, facts.tickets, strict=True)
        conversation.given_up += [ticket for kind, ticket in pairs if kind == FORGOTTEN]
        conversation.log.add_all(facts.told_arms, facts.values, self._white, self.claimed)
        conversation.choices += facts.choices
        if facts.choices or facts.steps:
            conversation.update_settings()

    def _waited(self, used: int) -> int:
        """Results told before the groups were found, and not counted by then."""
        last = self.origin[used - 1] if used > 0 else -1
        for i in self._opened:  # perhaps an ask, later, has found them
            if i >= used and self._facts.arms[self.origin[i]] < 0:
                last = self.origin[i]
        told = self._first_row + sum(kind == TOLD for kind in self._facts.kinds[: last + 1])
        conversation = self._conversation
        return told - len(conversation.counted_rows) - conversation.never - self._ignored(last + 1)

    def _ignored(self, end: int) -> int:
        """Results of retired items among the first entries."""
        entries = zip(self._facts.kinds[:end], self._facts.arms[:end], strict=True) if self._retired else ()
        return sum(kind == TOLD and arm in self._retired for kind, arm in entries)


def read(conversation: Conversation, facts: Facts) -> Reading:
    """Facts in the order in which they count, their results in units of the noise."""
    return Reading(conversation, facts, conversation.log.in_noise_units(facts.told_arms, facts.values))
