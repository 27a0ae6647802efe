"""One call of `cluster` at work: ask, measure, tell, and what was measured can be had back at any moment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, check_real_array, short
from coterie.session.conversation import Ticket
from coterie.session.session import Session

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Readings:
    """The function that measures, called with the items that people know, and what it calls the numbers."""

    def __init__(self, measure: Callable[..., Any], items: Sequence[Any] | None, names: Sequence[str] | None) -> None:
        self._measure, self._items = measure, names if items is None else items
        self.by_name = items is None and names is not None
        self.by_block = _takes_block(measure)
        self._labels: list[Any] | None = None  # of the first Series

    def call(self, arm: int, block: str | None = None, feature: str | None = None) -> Call:
        """The function that measures, and what it is called with."""
        item = arm if self._items is None else self._items[arm]
        if feature is not None:
            return self._measure, (item, feature), {}
        return self._measure, (item,), {"block": block} if self.by_block and block is not None else {}

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the numbers are called, if they came with labels."""
        return None if self._labels is None else tuple(str(label) for label in self._labels)

    def aligned(self, given: Any) -> Any:
        """What was measured; the numbers of a Series in the order of the first one."""
        if not (hasattr(given, "index") and hasattr(given, "to_numpy") and getattr(given, "ndim", 0) == 1):
            return given
        labels = list(given.index)
        if self._labels is None:
            self._labels = labels
        if labels == self._labels:
            return given.to_numpy()
        if len(labels) != len(self._labels) or set(labels) != set(self._labels):
            raise ValueError(
                f"a measurement must have the labels of the first, {short(self._labels)}, got {short(labels)}"
            )
        return given.reindex(self._labels).to_numpy()


def _takes_block(measure: Any) -> bool:
    """Whether a function wants to know the block that it measures in: it has a parameter of that name."""
    try:
        return "block" in inspect.signature(measure).parameters
    except (TypeError, ValueError):
        return False


class Run:
    """Asks and results of one call. `session` is None until the first result has shown how many numbers one has.

    `room`: of a block, where there are blocks. They are called "block 1", "block 2", and so on.
    """

    def __init__(
        self,
        measure: Readings,
        started: Callable[[int], Session],
        session: Session | None,
        names: Sequence[str] | None,
        called: str = "cluster",
        room: int | None = None,
    ) -> None:
        self._room = room
        self.measure, self._started, self._names, self._called = measure, started, names, called
        self.session = session
        self._before = None if session is None else session.to_dict()  # as it was when this call began
        # What was done since then: None for an ask, or a result with its arm and its ticket.
        self._done: list[tuple[int, FloatArray, int | None] | None] = []
        self._arm: int | None = None  # being measured, or the one at which something went wrong
        self._changing = False  # an interrupt now may leave the session half changed

    @property
    def count(self) -> int:
        """Measurements on record."""
        return 0 if self.session is None else self.session.n_measurements

    def step(self) -> Session:
        """Ask, measure, tell. Asks that are still open come first, the oldest of them first."""
        ticket, arm = self.next_ask() or (None, None)
        if arm is None:  # looking for the next arm has proven the groups
            assert self.session is not None
            return self.session
        self._arm = arm
        return self.take(arm, self.measured(arm, ticket), ticket)

    def call(self, arm: int, ticket: int | None) -> Call:
        """The function that answers an ask, and what it is called with."""
        if self.session is None or ticket is None:
            return self.measure.call(arm, None if self._room is None else _block(1))
        return self.measure.call(arm, self.session.block_of(ticket), self.session.feature_of(ticket))

    def measured(self, arm: int, ticket: int | None) -> Any:
        """What `measure` returns for an ask."""
        measure, given, named = self.call(arm, ticket)
        return measure(*given, **named)

    def _open(self, session: Session) -> list[Ticket]:
        """The next ask: in blocks, of the block at hand, or of the next one if nothing of use fits into it."""
        if self._room is None:
            opened: list[Ticket] = session.open(1)
            return opened
        number = max(1, len(session.open_blocks))
        while True:
            taken = session.asked_in(_block(number))
            if taken <= self._room - 2 or session.planned:
                opened = session.open_in_block(None, _block(number), room=max(2, self._room - taken))
                if opened or session.done:
                    return opened
            number += 1

    def next_ask(self, under_way: Collection[int | None] = ()) -> tuple[int | None, int] | None:
        """The ticket and the arm to measure next: the oldest open ask that is not under way, or a new one.

        None if there is none, because the groups are proven.
        """
        session = self.session
        if session is None:
            return None, 0
        free = next((ask[:2] for ask in session.pending if ask[0] not in under_way), None)
        if free is None:
            self._changing = True
            self._done.append(None)
            opened = self._open(session)
            if not opened:
                self._done.pop()
            self._changing = False
            free = next(((ticket.number, ticket.arm) for ticket in opened), None)
        return free

    def take(self, arm: int, given: Any, ticket: int | None) -> Session:
        """What `measure` returned for an arm; an error names the item if it is no measurement."""
        self._arm, session, known = arm, self.session, len(self._done)
        ticket = 0 if session is None else ticket
        try:
            refuse_awaitable(given)
            if session is not None and session.features is not None:
                x = session.checked_answer(ticket, given)
            else:
                x = checked(self.measure.aligned(given), None if session is None else session.dim)
            self._changing = True
            self._done.append((arm, x, ticket))
            if session is None:
                session = self._started(x.size)
                self._open(session)
            if session.features is None:
                session.check_results([arm], x[None])
        except (ValueError, TypeError) as error:
            del self._done[known:]
            self._changing = False
            raise type(error)(f"{self._item}: {error}") from None
        self.session, self._arm = session, None
        session.tell(arm, x, ticket)
        self._changing = False
        return session

    def failed_at(self, arm: int) -> None:
        """Measuring this arm went wrong."""
        self._arm = arm

    @property
    def _item(self) -> str:
        assert self._arm is not None
        return f"item {self._arm}" if self._names is None else f"item {self._arm} ({self._names[self._arm]})"

    def mend(self) -> None:
        """After an interrupt: the session is whole, whatever it was at."""
        if self._changing:
            self._restore()
            self._changing = False

    def keep(self, error: BaseException) -> None:
        """Attach what was measured to an error, and say so."""
        self.mend()
        error.session = self.session  # type: ignore[attr-defined]
        here = "" if self._arm is None else f"at {self._item}; "
        if self.count == 0:
            error.add_note(f"coterie: {here}nothing had been measured before")
            if self.measure.by_name and self._arm is not None:
                called = f"measure was called with a name, {short(self._names and self._names[self._arm])}"
                error.add_note(f"coterie: {called}, because names were given; without names it gets the item's number")
            return
        kept = "1 measurement is" if self.count == 1 else f"{self.count} measurements are"
        error.add_note(
            f"coterie: {here}{kept} kept in the attribute session of this exception: go on with the same call of "
            f"{self._called} and session=error.session (after an error that nobody caught, in a notebook say: import "
            "sys, and session=sys.last_value.session)"
        )

    def _restore(self) -> None:
        """The session again, from what was done: the interrupt may have come half-way through a change."""
        results = [step for step in self._done if step is not None]
        if self._before is not None:
            session = Session.from_dict(self._before)
        elif results:
            session = self._started(results[0][1].size)
            self._open(session)
        else:
            return
        for step in self._done:
            if step is None:
                self._open(session)
            else:
                session.tell(*step)
        self.session = session


def _block(number: int) -> str:
    return f"block {number}"


def refuse_awaitable(given: Any) -> None:
    """That what `measure` returned is no promise of a measurement."""
    if inspect.isawaitable(given):
        if inspect.iscoroutine(given):
            given.close()
        raise TypeError(f"measure is an async function: {USE_ACLUSTER}")


def checked(given: Any, dim: int | None) -> FloatArray:
    """What `measure` returned as a (d,) array."""
    x = np.atleast_1d(check_real_array(given, "a measurement", booleans=True))
    if x.size == 0:
        raise ValueError(f"a measurement must hold at least one number, got {short(given)}")
    wanted = x.size if dim is None else dim
    if x.shape != (wanted,):
        raise ValueError(f"a measurement must have shape ({wanted},), got shape {x.shape}: {short(given)}")
    return x


USE_ACLUSTER = "write `await coterie.acluster(measure, …)` with the same arguments, where cluster cannot wait for it"
