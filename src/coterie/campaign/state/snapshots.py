"""Snapshots of campaigns' states: a cache beside the log, so that a long one need not be read from its beginning.

A state becomes plain JSON, and arrays as NumPy's own format keeps them: most of a long log is arrays, so that reading
it back takes a fraction of a second. What a snapshot is worth is checked when it is used: the log must have as many
rows as it should, its row at the snapshot's place must be the one that the snapshot was made after, and the rows since
then are checked one by one. In any doubt the whole log is read, which names the row that is damaged. Losing a snapshot
costs time only.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import coterie
from coterie.campaign.settings import CampaignSettings
from coterie.campaign.state.facts import NewestRows
from coterie.campaign.state.leases import TAKEN, Lease, MissedAsk, OpenLeases
from coterie.campaign.state.state import Registry, State, Worker
from coterie.methods import method_named
from coterie.session import Session
from coterie.session.saved import from_memory, memory_of
from coterie.store.journal import Campaign, Journal, Reading, Snapshot

if TYPE_CHECKING:
    from coterie.campaign.state.opening import OpenCampaign

LARGEST = 256 * 2**20
"""Bytes: a state that takes more is not kept."""
_FORMAT = 7
_NAMES = "\n"  # no id and no lease has a line break in it


_PLAIN = (
    "next_group", "evidence_t", "stopped_at", "decisions", "steps", "rules", "applied", "archived",
    "lease_seconds", "corrections", "alarms_noted", "outcome_length", "passed_on", "surplus",
)  # fmt: skip


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of the code whose memory a snapshot holds: another build may keep other arrays."""
    root, digest = Path(coterie.__file__).parent, hashlib.sha256()
    for package in ("evidence", "methods", "problem", "session"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    engine = find_spec("coterie._native")  # wherever an editable install has put it
    if engine is not None and engine.origin is not None:
        digest.update(Path(engine.origin).read_bytes())
    return digest.hexdigest()


def state_bytes(state: State) -> Callable[[], bytes | None] | None:
    """What packs the state as bytes. Of one that is done it no longer looks at the state: others can go on meanwhile.

    It gives None if they are too many. None if the method keeps no memory, or if it is clear that they are too many.
    """
    if _least_bytes(state) > LARGEST or state.session.features is not None:  # their methods keep no memory
        return None
    memory = memory_of(state.session)
    if memory is None:
        return None
    session, arrays = memory
    plain = {name: getattr(state, name) for name in _PLAIN} | {
        "format": _FORMAT,
        "code": code_digest(),
        "seq": state.seq,
        "session": session,
        "workers": {name: [worker.told, worker.last, worker.asked] for name, worker in state.workers.items()},
        "open": len(state.open),
        "answer_times": list(state.answer_times),
        "days": state.days,
        "surplus": dict(state.surplus),
        "missed": [list(miss) for miss in state.missed],
        "corrections": list(state.corrections),
        "newest": state.newest.to_json(),
    }
    arrays["groups"] = np.zeros(0, dtype=np.int64) if state.groups is None else state.groups
    # A lease that is not open any more never changes, unless somebody else was asked too.
    leases = [
        copy(lease) if lease.ticket in state.open or lease.ended == TAKEN else lease for lease in state.leases.values()
    ]
    ids, told = list(state.ids), [lease for _, _, lease in state.results]
    tokens = [state.registry.tokens.get(place, "") for place in range(len(told))]
    if state.done:
        return lambda: _packed(plain, arrays, leases, ids, told, tokens)
    content = _packed(plain, arrays, leases, ids, told, tokens)  # while nobody changes the method's arrays
    return lambda: content


def _least_bytes(state: State) -> int:
    """The bytes of what the stop claims, of the numbers of each result and of those of each ask: there are more."""
    session = state.session
    return state.outcome_length + 8 * (session.n_measurements * (session.dim + 2) + session.next_ticket * 8)


def _packed(
    plain: dict[str, Any],
    arrays: dict[str, Any],
    leases: Sequence[Lease],
    ids: Sequence[str],
    told: Sequence[str | None],
    tokens: Sequence[str],
) -> bytes | None:
    names = sorted({lease.worker for lease in leases})
    worker_number = {name: i for i, name in enumerate(names)}
    arrays |= {
        "ids": _text(ids),
        "told_leases": _text(lease or "" for lease in told),
        "told_tokens": _text(tokens),
        "lease.keys": _text(lease.key for lease in leases),
        "lease.answers": _text(lease.answer or "" for lease in leases),
        "lease.tokens": _text(lease.token or "" for lease in leases),
        "lease.endings": _text(lease.ended or "" for lease in leases),
        "lease.numbers": _table(
            ((lease.ticket, lease.arm, worker_number[lease.worker], lease.named) for lease in leases), 4, np.int64
        ),
        "lease.times": _table(((lease.asked_at, lease.expires_at) for lease in leases), 2, np.float64),
        "plain": _text([json.dumps(plain | {"lease_workers": names})]),
    }
    content = io.BytesIO()
    np.savez_compressed(content, **{name: array for name, array in arrays.items() if name.startswith("run.")})
    inner = np.frombuffer(content.getbuffer(), dtype=np.uint8)
    outer = io.BytesIO()
    np.savez(outer, run=inner, **{name: array for name, array in arrays.items() if not name.startswith("run.")})
    found_bytes = outer.getvalue()
    return found_bytes if len(found_bytes) <= LARGEST else None


def state_from(settings: CampaignSettings, content: bytes) -> State:
    """The state that `state_bytes` gave."""
    outer = np.load(io.BytesIO(content), allow_pickle=False)
    plain = json.loads(_texts(outer["plain"])[0])
    if plain["format"] != _FORMAT or plain["code"] != code_digest():
        raise ValueError("it was made by another build of Coterie")
    session = from_memory(settings.run, plain["session"], _Arrays(outer))
    if session.revisions or session.deadline is not None:
        settings = settings.as_revised(session.settings)
    state = State(settings, session, lambda: _registry(session, outer, plain["lease_workers"]), seq=plain["seq"])
    for name in _PLAIN:
        setattr(state, name, plain[name])
    state.newest = NewestRows.from_json(plain["newest"])
    state.missed = [MissedAsk(*fields) for fields in plain["missed"]]
    state.workers = {name: Worker(*worker) for name, worker in plain["workers"].items()}
    state.groups = outer["groups"] if outer["groups"].size else None
    state.answer_times.extend(plain["answer_times"])
    state.days = [(place, day) for place, day in plain["days"]]
    if plain["open"] or plain["passed_on"]:
        state.open = OpenLeases.of(state.leases.values())
    return state


def _registry(session: Session, outer: Any, workers: list[str]) -> Registry:
    """All leases and results."""
    log, registry = session.log_arrays, Registry()
    told = [lease or None for lease in _texts(outer["told_leases"])]
    before = len(told)  # the log may have grown since
    registry.results = list(zip(log.arms[:before], log.values[:before], told, strict=True))
    registry.ids = {name: place for place, name in enumerate(_texts(outer["ids"]))}
    registry.tokens = {place: token for place, token in enumerate(_texts(outer["told_tokens"])) if token}
    _restore_sums(registry, session.dim)
    _restore_leases(registry, outer, workers)
    return registry


class _Arrays(dict[str, Any]):
    """The arrays of a snapshot; those of the method's run are unpacked if somebody looks through them."""

    def __init__(self, outer: Any) -> None:
        super().__init__()
        self._outer = outer

    def __missing__(self, name: str) -> Any:
        return self._outer[name]

    def __iter__(self) -> Any:
        inner = np.load(io.BytesIO(self._outer["run"].tobytes()), allow_pickle=False)
        self.update({name: inner[name] for name in inner.files})
        return super().__iter__()


def _restore_sums(registry: Registry, dim: int) -> None:
    arms = np.array([arm for arm, _, _ in registry.results], dtype=np.int64)
    order = np.argsort(arms, kind="stable")
    values = np.array([value for _, value, _ in registry.results]).reshape(-1, dim)
    starts = np.flatnonzero(np.diff(arms[order], prepend=-1))
    for start, end in zip(starts, np.append(starts[1:], order.size), strict=True):
        # One after the other, as they were added when they were told: to the last bit.
        total = np.cumsum(values[order[start:end]], axis=0)[-1]
        registry.sums[int(arms[order[start]])] = (int(end - start), total)


def _restore_leases(registry: Registry, outer: Any, workers: list[str]) -> None:
    texts = [_texts(outer[f"lease.{name}"]) for name in ("keys", "answers", "endings", "tokens")]
    numbers, times = outer["lease.numbers"].tolist(), outer["lease.times"].tolist()
    for key, answer, ended, token, (ticket, arm, worker, named), (asked, expires) in zip(
        *texts, numbers, times, strict=True
    ):
        registry.leases[key] = Lease(
            key, ticket, arm, workers[worker], asked, expires, answer or None, bool(named), ended or None, token or None
        )  # fmt: skip


def _table(rows: Iterable[tuple[Any, ...]], width: int, dtype: Any) -> Any:
    """An array of so many columns, made without a list of all rows."""
    return np.fromiter(chain.from_iterable(rows), dtype=dtype).reshape(-1, width)


def _text(parts: Any) -> Any:
    listed = list(parts)
    return np.frombuffer((_NAMES.join(listed) if listed else "\r").encode(), dtype=np.uint8)


def _texts(array: Any) -> list[str]:
    text = array.tobytes().decode()
    return [] if text == "\r" else text.split(_NAMES)


FEWEST_ROWS = 2_000
"""Rows since the last snapshot that make a new one worth its while, at the least …"""
FRACTION = 50
"""… and one row in so many of the whole log: the work for snapshots of a log that grows stays in proportion to it."""

BYTES_A_ROW = 2_048
"""Bytes of the method's memory that take about as long to keep as a row of the log takes to be read again: where there
are many items, snapshots of a campaign that goes on are rare."""
LARGEST_MEMORY = 2 * 2**30
"""Bytes of the method's memory beyond which a campaign that goes on has no snapshots: the log is read instead."""

log = logging.getLogger("coterie.campaign")


def rules_of(settings: CampaignSettings) -> int:
    """The number of the decision rules that this release has for a campaign."""
    return method_named(settings.method).rules


def restored(settings: CampaignSettings, row: Campaign, journal: Reading) -> tuple[State, str] | None:
    """The state of a campaign's snapshot and the hash of its last row; None if there is none that can be used."""
    kept = journal.snapshot(row["id"])
    if kept is None or kept.rules != rules_of(settings) or kept.seq > row["last_seq"]:
        return None
    if journal.count(row["id"]) != row["last_seq"] or journal.hash_of(row["id"], kept.seq) != kept.hash:
        return None
    try:
        state = state_from(settings, kept.content)
    except Exception as error:  # whatever is wrong with a cache, the log is there
        log.warning("the snapshot of campaign %s cannot be used, its log is read instead: %s", row["id"], error)
        return None
    return (state, kept.hash) if state.seq == kept.seq else None


class SnapshotKeeper:
    """Writes snapshots in a thread of its own, when enough rows have come since the last one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._gate = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._closed = False

    def consider(self, id: str, opened: OpenCampaign) -> None:
        """Have a snapshot written if it is worth its while. Never waits, never raises."""
        state = opened.state
        if state is None:
            return
        seq = state.seq
        new = seq - opened.snapshot_seq
        if new <= max(FEWEST_ROWS, seq // FRACTION, opened.snapshot_rows):
            return
        size = state.session.memory_bytes
        if new * BYTES_A_ROW <= size or size > LARGEST_MEMORY:
            opened.snapshot_rows = max(new, size // BYTES_A_ROW)  # so that not every commit asks for the size
            return
        with self._gate:
            if self._closed:
                return
            opened.snapshot_seq, opened.snapshot_rows = seq, 0  # even if it fails: the next try is after as many again
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "coterie-snapshots")
            self._thread.submit(self._write, id, opened)

    def _write(self, id: str, opened: OpenCampaign) -> None:
        try:
            with opened.lock:
                state, hash = opened.state, opened.hash
                if state is None:
                    return
                seq, rules, pack = state.seq, rules_of(state.settings), state_bytes(state)
            content = None if pack is None else pack()
            if content is not None:
                with self._journal.writing() as writing:
                    writing.keep_snapshot(Snapshot(id, seq, rules, hash, content))
        except Exception as error:  # a read-only store, a full disk: everything works without
            log.info("no snapshot of campaign %s was kept: %s", id, error)

    def close(self) -> None:
        """Finish what is under way."""
        with self._gate:
            self._closed = True
        if self._thread is not None:
            self._thread.shutdown()
