"""Reading and writing of campaigns by any number of threads and processes.

Every write is one transaction that holds the campaign's lock, first reads what other processes have written since, then
decides, adds rows and commits; only then is it acknowledged. A commit that fails throws the state in memory away.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, select

from coterie.campaign import schema
from coterie.campaign.commits import Commits, Request
from coterie.campaign.database import Database
from coterie.campaign.decisions import Turn
from coterie.campaign.errors import BadValue, CampaignError, NotFound
from coterie.campaign.rows import Row, read_rows, write_rows
from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.state import State, get_ready
from coterie.problem.checks import short

_Answer = TypeVar("_Answer")

_STATES_KEPT = 32
"""States in memory at once; the one looked at longest ago goes first, and is replayed when it is needed again."""


@dataclass
class Live:
    """A campaign's state in memory. Held by one thread at a time; None until it is read, and after a failed commit."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    state: State | None = None
    clock_seen: float = 0.0  # what the clock said when `now` was last worked out
    now: float = 0.0


@dataclass
class Seen:
    """What a reader sees: the campaign's row, and its state, worked out only if it is looked at."""

    ledger: Ledger
    live: Live
    row: Any
    connection: Connection

    @property
    def state(self) -> State:
        """The state with everything that is on record."""
        return self.ledger.caught_up(self.live, self.row, self.connection)

    @property
    def now(self) -> float:
        """The campaign's time."""
        return self.ledger.time(self.live, self.row["last_at"])


class Ledger:
    """The campaigns of one database."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self.database, self.clock = database, clock
        self._commits = Commits(self._serve)
        self._live: OrderedDict[str, Live] = OrderedDict()
        self._live_lock = threading.Lock()

    def insert(self, table: Table, row: dict[str, Any]) -> None:
        """Add one row to a table that is not a campaign's log."""

        def write() -> None:
            with self.database.writing() as connection:
                connection.execute(table.insert(), [row])

        self.database.retried(write)

    def select(self, query: Any) -> list[Any]:
        """The rows of a query."""

        def read() -> list[Any]:
            with self.database.reading() as connection:
                return list(connection.execute(query).mappings())

        return self.database.retried(read)

    def row(self, id: Any) -> Any:
        """A campaign's row, which nobody has to wait for."""
        key = _check_id(id)
        found = self.select(select(schema.campaigns).where(schema.campaigns.c.id == key))
        if not found:
            raise _unknown(key)
        return found[0]

    def in_memory(self, id: str) -> bool:
        """Whether the campaign's state was worked out before; what was written since is little."""
        with self._live_lock:
            return id in self._live and self._live[id].state is not None

    def read(self, id: Any, look: Callable[[Seen], _Answer]) -> _Answer:
        """What `look` makes of a campaign."""
        key = _check_id(id)

        def once() -> _Answer:
            live = self._live_of(key)
            with live.lock, self.database.reading() as connection:
                query = select(schema.campaigns).where(schema.campaigns.c.id == key)
                row = connection.execute(query).mappings().first()
                if row is None:
                    with self._live_lock:
                        self._live.pop(key, None)
                    raise _unknown(key)
                return look(Seen(self, live, row, connection))

        return self.database.retried(once)

    def submit(self, id: Any, decide: Callable[[Turn], dict[str, Any]]) -> dict[str, Any]:
        """The answer of a decision, once it is on disk."""
        key = _check_id(id)
        if self._live_of(key).state is None:
            # Compiling and replaying take seconds: not while others wait for the write lock.
            self.read(key, lambda seen: get_ready(seen.state.settings))
        answer: dict[str, Any] = self._commits.submit(Request(key, decide))
        return answer

    def submit_all(self, wanted: Sequence[tuple[Any, Callable[[Turn], dict[str, Any]]]]) -> list[Any]:
        """Several decisions, decided in order and put on disk together: each one's answer, or the error it met."""
        requests: list[Request] = []
        for id, decide in wanted:
            requests.append(Request(str(id), decide))
            try:
                if self._live_of(_check_id(id)).state is None:
                    self.read(id, lambda seen: get_ready(seen.state.settings))
            except CampaignError as error:
                requests[-1].settle(error=error)
        try:
            self._serve(requests)
        except Exception as error:
            for request in requests:
                if not request.answered:
                    request.settle(error=error)
        return [request.answer if request.error is None else request.error for request in requests]

    def _live_of(self, id: str) -> Live:
        with self._live_lock:
            live = self._live.setdefault(id, Live())
            self._live.move_to_end(id)
            while len(self._live) > _STATES_KEPT:
                self._live.popitem(last=False)
            return live

    def caught_up(self, live: Live, row: Any, connection: Connection) -> State:
        """The state with everything that is on record."""
        state = live.state
        if state is None or state.seq > row["last_seq"]:  # the latter: the database was put back to an older copy
            state = State.new(Settings.from_json(row["settings"]))
        if state.seq < row["last_seq"]:
            live.state = None  # so that a replay that fails leaves nothing half-done
            with _no_collecting():
                state.replay(read_rows(connection, row["id"], state.seq))
        live.state = state
        return state

    def time(self, live: Live, last_at: float) -> float:
        """The campaign's time, which never goes back: the clock, the last time written, or what passed since a jump."""
        clock = float(self.clock())
        passed = max(0.0, clock - live.clock_seen) if live.now > 0.0 else 0.0
        live.now = max(clock, last_at, live.now + passed)
        live.clock_seen = clock
        return live.now

    def _serve(self, requests: list[Request]) -> None:
        """Decide and commit; every request is settled, or an error of the store is raised for all of them."""
        while left := [request for request in requests if not request.answered]:
            self.database.retried(lambda: self._commit(left))

    def _commit(self, requests: list[Request]) -> None:
        """One transaction for all. If deciding one of them breaks, that one is settled, and no other."""
        ids = sorted({request.campaign for request in requests})
        lives = {id: self._live_of(id) for id in ids}
        answers: list[tuple[Request, Any, BaseException | None]] = []
        deciding: Request | None = None
        with ExitStack() as held:
            try:
                with self.database.writing() as connection:
                    rows = self._locked(connection, ids)
                    turns: dict[str, Turn] = {}
                    for id, live in lives.items():
                        held.enter_context(live.lock)
                        if id in rows:
                            state = self.caught_up(live, rows[id], connection)
                            turns[id] = Turn(state, self.time(live, rows[id]["last_at"]))
                    for request in requests:
                        deciding = request
                        answers.append((request, *_decided(request, turns)))
                    deciding = None
                    self._write(connection, turns)
            except BaseException as error:
                if answers or deciding is not None:  # the states are ahead of the disk
                    for live in lives.values():
                        live.state = None
                if deciding is None or not isinstance(error, Exception):
                    raise
                deciding.settle(error=error)
                return
        for request, answer, problem in answers:
            request.settle(answer, problem)

    def _locked(self, connection: Connection, ids: list[str]) -> dict[str, Any]:
        """The campaigns' rows, locked until the end of the transaction (SQLite locks the whole file)."""
        table = schema.campaigns
        query = select(table).where(table.c.id.in_(ids)).order_by(table.c.id)
        if not self.database.is_sqlite:
            query = query.with_for_update()
        return {row["id"]: row for row in connection.execute(query).mappings()}

    def _write(self, connection: Connection, turns: dict[str, Turn]) -> None:
        added: list[tuple[str, Row]] = [(id, row) for id, turn in turns.items() for row in turn.rows]
        write_rows(connection, added)
        table = schema.campaigns
        for id, turn in turns.items():
            state = turn.state
            if turn.rows:
                summary = {
                    "last_seq": state.seq,
                    "last_at": turn.now,
                    "t": state.session.t,
                    "measurements": len(state.results),
                    "open_leases": len(state.open),
                    "done": int(state.done),
                }
                connection.execute(table.update().where(table.c.id == id).values(summary))


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Many objects are made and none of them is garbage: looking for it takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _decided(request: Request, turns: dict[str, Turn]) -> tuple[Any, BaseException | None]:
    if request.campaign not in turns:
        return None, _unknown(request.campaign)
    try:
        return request.decide(turns[request.campaign]), None
    except CampaignError as error:
        return None, error


def _unknown(id: str) -> NotFound:
    return NotFound(f"there is no campaign {short(id)}", code="unknown_campaign", field="id")


def _check_id(id: Any) -> str:
    if not isinstance(id, str):
        raise BadValue(f"a campaign's id is a string, got {short(id)}", field="id")
    if not id.isprintable():  # no database is asked for such a thing
        raise _unknown(id)
    return id
