"""Campaigns whose state is in memory: reading, deciding and catching up, by any number of threads and processes.

Every write is one transaction that holds the campaign's lock, first reads what other processes have written since, then
decides, adds rows and commits; only then is it acknowledged. A commit that fails throws the state in memory away.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

from coterie.campaign.commands.turn import ArchivedCommand, Turn, check_not_archived
from coterie.campaign.errors import BadValue, CampaignError, Conflict, DamagedLog, NotFound, Outdated
from coterie.campaign.service.group_commit import GroupCommit, Request
from coterie.campaign.state.opening import CampaignReading, NotInMemory, OpenCampaign, caught_up, news_of
from coterie.campaign.state.snapshots import SnapshotKeeper
from coterie.campaign.views.status import fixed_summary
from coterie.methods import MethodError
from coterie.problem.checks import short
from coterie.store.journal import Campaign, Journal, Reading, Summary, Writing

_Answer = TypeVar("_Answer")

_LOADERS = 8  # threads that read campaigns for requests that wait for it
_STATES_KEPT, _BYTES_KEPT = 32, 2**30
"""So many states stay in memory, and more as long as all of them take about so many bytes; the one used longest ago
goes first, and is read again when it is needed."""

_FEW_ROWS = 2_000
"""So many rows of other processes may be read by whoever holds the lock; more are read outside of it first."""
_LOCK_SECONDS = 0.02
"""How long a transaction waits for campaigns that somebody reads; those who write to them wait outside then."""
_TRIES = 5  # to have a campaign in memory when its turn comes; then it is read there and then


class OpenCampaigns:
    """The campaigns of one journal."""

    def __init__(self, journal: Journal, clock: Callable[[], float]) -> None:
        self.journal, self.clock = journal, clock
        self.group_commit = GroupCommit(self._serve)
        self._opened: OrderedDict[str, OpenCampaign] = OrderedDict()
        self._opened_lock = threading.Lock()
        self._snapshots = SnapshotKeeper(journal)
        self._loader = ThreadPoolExecutor(_LOADERS, "coterie-loader")
        self.damaged: dict[str, DamagedLog] = {}
        """Campaigns with a row that was changed on disk, as `ChainWalk` has found: nothing that rests on it is shown or
        added."""

    def close(self) -> None:
        """Finish what is under way, and give the journal back."""
        self._loader.shutdown()
        self.group_commit.close()
        self._snapshots.close()
        self.journal.close()

    def query(self, question: Callable[[Reading], _Answer]) -> _Answer:
        """The answer to a question that needs the journal only, no state."""

        def read() -> _Answer:
            with self.journal.reading() as reading:
                return question(reading)

        return self.journal.retried(read)

    def write(self, work: Callable[[Writing], _Answer]) -> _Answer:
        """The answer of a transaction that adds nothing to any log."""

        def once() -> _Answer:
            with self.journal.writing() as writing:
                return work(writing)

        return self.journal.retried(once)

    def remove(self, id: str) -> None:
        """Nobody sees the campaign from now on."""

        def once() -> None:
            with self.journal.writing([id]) as writing:
                if id not in writing.locked:
                    raise _unknown(id)
                writing.remove_campaign(id)

        self.journal.retried(once)
        with self._opened_lock:
            self._opened.pop(id, None)

    def row(self, id: Any) -> Campaign:
        """A campaign's row, which nobody has to wait for."""
        key = _check_id(id)
        row = self.query(lambda reading: reading.campaign(key))
        if row is None:
            raise _unknown(key)
        return row

    def in_memory(self, id: str) -> bool:
        """Whether the campaign's state was worked out before; what was written since is little."""
        with self._opened_lock:
            return id in self._opened and self._opened[id].state is not None

    def read(self, id: Any, view: Callable[[CampaignReading], _Answer]) -> _Answer:
        """What `view` makes of a campaign."""
        key = _check_id(id)

        def once() -> _Answer:
            opened = self._opened_of(key)
            with opened.lock, self.journal.reading() as reading:
                row = reading.campaign(key)
                if row is None:
                    with self._opened_lock:
                        self._opened.pop(key, None)
                    raise _unknown(key)
                try:
                    answer = view(self._seen(key, opened, row, reading))
                except MethodError as error:
                    raise _as_campaign_error(error) from error
            self._snapshots.consider(key, opened)
            return answer

        return self.journal.retried(once)

    def _seen(self, id: str, opened: OpenCampaign, row: Campaign, reading: Reading) -> CampaignReading:
        return CampaignReading(opened, row, reading, self.clock, self.damaged.get(id))

    def find(
        self, meant: Callable[[Reading], str], view: Callable[[CampaignReading], _Answer], in_memory: bool
    ) -> _Answer:
        """What `view` makes of the campaign whose id `meant` finds, in one reading; with its state, if it is to be
        `in_memory` from then on.
        """

        def once() -> _Answer:
            with self.journal.reading() as reading:
                id = meant(reading)
                row = reading.campaign(id)
                assert row is not None
                seen = self._seen(id, OpenCampaign(), row, reading)
                if not in_memory:
                    return view(seen)
                # Whoever holds the lock may be waiting for a connection, and this reading has one: it waits for nobody.
                seen.opened = self._opened_of(id)
                if seen.opened.lock.acquire(blocking=False):
                    try:
                        if seen.opened.state is None:
                            return view(seen)
                    finally:
                        seen.opened.lock.release()
            return self.read(id, view)

        return self.journal.retried(once)

    def look(self, id: Any, view: Callable[[CampaignReading], _Answer]) -> _Answer:
        """What `view` makes of a campaign without its state: it waits for nobody who works on that."""
        key = _check_id(id)

        def once() -> _Answer:
            with self.journal.reading() as reading:
                row = reading.campaign(key)
                if row is None:
                    raise _unknown(key)
                return view(self._seen(key, OpenCampaign(), row, reading))

        return self.journal.retried(once)

    def submit(self, id: Any, decide: Callable[[Turn], dict[str, Any]]) -> dict[str, Any]:
        """The answer of a decision, once it is on disk."""
        key = _check_id(id)
        self._open(key)
        for patient in (*[True] * _TRIES, False):
            try:
                answer: dict[str, Any] = self.group_commit.submit(Request(key, decide, patient=patient))
                return answer
            except NotInMemory:  # it was so a moment ago: others have come between
                self._catch_up(key)
        raise AssertionError("the last try reads what it needs")

    def submit_prepared(
        self,
        id: Any,
        prepare: Callable[[CampaignReading], _Answer],
        decide: Callable[[_Answer | None], Callable[[Turn], dict[str, Any]]],
    ) -> dict[str, Any]:
        """The answer of a decision that takes long to work out: `prepare` does that outside of transactions, and the
        decision refuses it (`Outdated`) if rows were added since. After some tries it is worked out there and then.
        """
        for _ in range(_TRIES):
            prepared = self.read(id, prepare)
            try:
                return self.submit(id, decide(prepared))
            except Outdated:
                continue
        return self.submit(id, decide(None))

    def post(self, id: Any, decide: Callable[[Turn], dict[str, Any]]) -> Future[dict[str, Any]]:
        """The answer of a decision, some time, once it is on disk. A campaign that is not in memory is read before, in
        another thread than that of decisions.
        """
        key = _check_id(id)
        answer: Future[dict[str, Any]] = Future()
        answer.set_running_or_notify_cancel()
        self._post(key, decide, answer, _TRIES)
        return answer

    def _post(self, key: str, decide: Callable[[Turn], dict[str, Any]], answer: Future[Any], tries: int) -> None:
        def settle(request: Request) -> None:
            error = request.error
            if isinstance(error, NotInMemory):
                try:
                    self._loader.submit(self._load_and_post, key, decide, answer, tries - 1)
                except RuntimeError as closed:
                    answer.set_exception(closed)
            elif error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(request.answer)

        self.group_commit.post(Request(key, decide, tries > 0, settle))

    def _load_and_post(
        self, key: str, decide: Callable[[Turn], dict[str, Any]], answer: Future[Any], tries: int
    ) -> None:
        try:
            self._catch_up(key)
        except BaseException as error:
            answer.set_exception(error)
        else:
            self._post(key, decide, answer, tries)

    def submit_batch(self, wanted: Sequence[tuple[Any, Callable[[Turn], dict[str, Any]]]]) -> list[Any]:
        """Several decisions, made in order and put on disk in one transaction: each one's answer, or its error."""
        requests: list[Request] = []
        for id, decide in wanted:
            requests.append(Request(str(id), decide, patient=False))
            try:
                self._open(_check_id(id))
            except CampaignError as error:
                requests[-1].settle(error=error)
        try:
            self._serve(requests)
        except Exception as error:
            for request in requests:
                if not request.answered:
                    request.settle(error=error)
        return [request.answer if request.error is None else request.error for request in requests]

    def _open(self, id: str) -> None:
        """Have the state in memory: reading it can take seconds, which no holder of a lock should spend."""
        if self._opened_of(id).state is None:
            self._catch_up(id)

    def _catch_up(self, id: str) -> None:
        self.read(id, lambda reading: reading.state)

    def _opened_of(self, id: str) -> OpenCampaign:
        with self._opened_lock:
            if id not in self._opened:
                total = sum(opened.size for opened in self._opened.values())
                while total > _BYTES_KEPT and len(self._opened) >= _STATES_KEPT:
                    total -= self._opened.popitem(last=False)[1].size
                self._opened[id] = OpenCampaign()
            self._opened.move_to_end(id)
            return self._opened[id]

    def _serve(self, requests: list[Request]) -> None:
        """Decide and commit; every request is settled, or an error of the store is raised for all of them."""
        while left := [request for request in requests if not request.answered]:
            self.journal.retried(lambda: self._commit(left))

    def _commit(self, requests: list[Request]) -> None:
        """One transaction for all. If deciding one of them breaks, that one is settled, and no other."""
        ids = sorted({request.campaign for request in requests})
        every = {id: self._opened_of(id) for id in ids}
        answers: list[tuple[Request, Any, BaseException | None]] = []
        deciding: Request | None = None
        turns: dict[str, Turn] = {}
        with ExitStack() as held:
            try:
                with self.journal.writing(ids) as writing:
                    turns, errors = self._turns(writing, every, requests, held)
                    for request in requests:
                        deciding = request
                        answers.append((request, *_decided(request, turns, errors)))
                    deciding = None
                    hashes = {id: _append(writing, id, turn) for id, turn in turns.items() if turn.rows}
            except BaseException as error:
                if answers or deciding is not None:  # the states are ahead of the disk
                    for id in turns:
                        every[id].state = None
                if deciding is None or not isinstance(error, Exception):
                    raise
                deciding.settle(error=_as_campaign_error(error))
                return
            for id, hash in hashes.items():
                every[id].hash = hash
        for request, answer, problem in answers:
            request.settle(answer, problem)
        for id, opened in every.items():
            self._snapshots.consider(id, opened)

    def _turns(
        self, writing: Writing, every: dict[str, OpenCampaign], requests: Sequence[Request], held: ExitStack
    ) -> tuple[dict[str, Turn], dict[str, Exception]]:
        """A turn for each campaign that is up to date or nearly so, whose lock is held then; for the others, what those
        are told who want to write to them.
        """
        turns: dict[str, Turn] = {}
        errors: dict[str, Exception] = {}
        ready: dict[str, bool] = {}  # of each campaign whose lock is held, whether all who wait for it are patient
        until = time.monotonic() + _LOCK_SECONDS
        for id, opened in every.items():
            row = writing.locked.get(id)
            if row is None:
                errors[id] = _unknown(id)
                continue
            if id in self.damaged:
                errors[id] = self.damaged[id]
                continue
            patient = all(request.patient for request in requests if request.campaign == id)
            if not opened.lock.acquire(timeout=max(0.0, until - time.monotonic()) if patient else -1):
                errors[id] = NotInMemory(id)
                continue
            held.callback(opened.lock.release)
            if patient and _is_far_behind(opened, row):
                errors[id] = NotInMemory(id)
                continue
            ready[id] = patient
        news = news_of(writing, {id: every[id] for id in ready})
        for id, patient in ready.items():
            opened, row = every[id], writing.locked[id]
            try:
                state = caught_up(opened, row, writing, briefly=patient, news=news.get(id))
                turns[id] = Turn(state, opened.time(self.clock, row["last_at"]))
            except (DamagedLog, NotInMemory) as error:  # of one campaign: the others go on
                errors[id] = error
        return turns, errors


def _is_far_behind(opened: OpenCampaign, row: Campaign) -> bool:
    """Whether bringing the state up to date would hold everybody up."""
    if opened.state is None:
        return True  # even without a row: a snapshot may have to be read
    return row["last_seq"] - opened.state.seq > _FEW_ROWS


def _append(writing: Writing, id: str, turn: Turn) -> str:
    state = turn.state
    summary: Summary = {
        "last_at": turn.now,
        "t": state.session.t,
        "measurements": state.n_results,
        "open_leases": len(state.open),
        "done": int(state.done),
        "archived": state.archived,
    }
    if state.session.settings is not state.session.first_settings:  # items, K or δ were revised
        summary["about"] = json.dumps(fixed_summary(state.settings))
    return writing.append(id, turn.rows, summary)


def _decided(
    request: Request, turns: dict[str, Turn], errors: dict[str, Exception]
) -> tuple[Any, BaseException | None]:
    if request.campaign not in turns:
        return None, errors[request.campaign]
    try:
        if not isinstance(request.decide, ArchivedCommand):
            check_not_archived(turns[request.campaign])
        return request.decide(turns[request.campaign]), None
    except CampaignError as error:
        return None, error
    finally:
        turns[request.campaign].writer = None  # that of the next one is another


def _as_campaign_error(error: Exception) -> Exception:
    """What a method that broke its contract did, as an answer; nothing of the request was put on disk."""
    if isinstance(error, MethodError):
        return Conflict(f"{error}. Nothing was changed; the campaign's record is as it was", code="method_error")
    return error


def _unknown(id: str) -> NotFound:
    return NotFound(f"there is no campaign {short(id)}", code="unknown_campaign", field="id")


def _check_id(id: Any) -> str:
    if not isinstance(id, str):
        raise BadValue(f"a campaign's id is a string, got {short(id)}", field="id")
    if not id.isprintable():  # no database is asked for such a thing
        raise _unknown(id)
    return id
