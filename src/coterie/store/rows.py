"""The facts of a campaign, and the hash chain by which one that was changed, lost, doubled or moved is noticed.

Rows of four kinds are numbered by one `seq` 1, 2, 3, … without gaps. In that order they are the campaign. Times are
seconds since 1970 (UTC). `token`: the id of the token that a row was written with, over a server; None for the command
line, for Python, and for releases that did not record it.

    hash of row n = SHA-256 of (bytes of the row + the hash of row n-1, as 64 hexadecimal digits + texts of the row)

Row 1 follows `origin`, the hash of the campaign's id and settings, so that these are protected too. The bytes of a row
are the same in every journal: a letter for its table, then its numbers in the order below as 8 bytes each
(little-endian; integers signed, times as IEEE doubles, with ABSENT for a number that is not there) and the lengths of
its texts in characters (-1 for one that is not there). The texts are in UTF-8, one after the other; lengths make that
unambiguous. A row that was written with a token has the letter t and the length of its id after these numbers, and the
id after the texts. Binary numbers rather than JSON, because a log of 400 000 rows is checked whenever it is opened
without a snapshot: this takes a third of the time of JSON.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from coterie.store.errors import DamagedLog

NO_ROUND = 0
UNRECORDED_ROUND = -1


class Ask(NamedTuple):
    """An arm leased to a worker. The same lease and ticket again: it was handed on, with a new expiry.
    Another lease of an open ticket: somebody else was asked too.

    `ticket` is the place in the order of asks. `round` is the round of the method that the ask belongs to: NO_ROUND
    for none, UNRECORDED_ROUND in rows that were written before rounds were recorded.
    """

    seq: int
    lease: str
    ticket: int
    arm: int
    worker: str
    asked_at: float
    expires_at: float
    round: int = UNRECORDED_ROUND
    token: str | None = None


class Told(NamedTuple):
    """A result. `values`: a JSON list; `lease` as it was told; `ticket`: the ask whose place it takes, if any."""

    seq: int
    id: str
    arm: int
    values: str
    lease: str | None
    ticket: int | None
    worker: str | None
    told_at: float
    token: str | None = None


class Ending(NamedTuple):
    """A lease whose result will not come; `kind` is expired, failed or undone."""

    seq: int
    lease: str
    ticket: int
    kind: str
    reason: str
    at: float
    token: str | None = None


class Note(NamedTuple):
    """Something found out or decided (`kind`: groups, evidence, freeze, round, stopped) or said about the rows that
    follow (imported). `content` is JSON.
    """

    seq: int
    kind: str
    content: str
    at: float
    token: str | None = None

    @property
    def data(self) -> Any:
        """The content, read."""
        return json.loads(self.content)


Row: TypeAlias = Ask | Told | Ending | Note
Kind: TypeAlias = type[Ask] | type[Told] | type[Ending] | type[Note]

TABLES: dict[Kind, str] = {Ask: "asks", Told: "measurements", Ending: "endings", Note: "notes"}
"""The name of each kind's table, in every journal and in messages."""
ALL_KINDS: tuple[Kind, ...] = tuple(TABLES)


class Page(NamedTuple):
    """Rows in order, checked; `hash` is that of the last row of the log that was checked."""

    rows: list[Row]
    hash: str


ABSENT = -(2**63)
_ASK = struct.Struct("<cqqqddqqq").pack  # seq ticket arm asked_at expires_at round; lease worker
_TOLD = struct.Struct("<cqqqdqqqq").pack  # seq arm ticket told_at; id values lease worker
_ENDING = struct.Struct("<cqqdqqq").pack  # seq ticket at; lease kind reason
_TOKEN = struct.Struct("<cq").pack
_NOTE = struct.Struct("<cqdqq").pack  # seq at; kind content


def origin(campaign: str, settings: str) -> str:
    """The hash that row 1 of a campaign follows; `settings` is the JSON text in the campaign's row."""
    return hashlib.sha256(json.dumps([campaign, settings]).encode()).hexdigest()


def hash_after(previous: str, row: Row) -> str:
    """The hash of a row that follows one with hash `previous`."""
    if type(row) is Ask:
        seq, lease, ticket, arm, worker, asked_at, expires_at, round, token = row
        numbers = _ASK(b"a", seq, ticket, arm, asked_at, expires_at, round, len(lease), len(worker))
        texts = f"{previous}{lease}{worker}"
    elif type(row) is Told:
        seq, id, arm, values, told_lease, told_ticket, told_worker, told_at, token = row
        place = ABSENT if told_ticket is None else told_ticket
        lease, held = ("", -1) if told_lease is None else (told_lease, len(told_lease))
        worker, named = ("", -1) if told_worker is None else (told_worker, len(told_worker))
        numbers = _TOLD(b"m", seq, arm, place, told_at, len(id), len(values), held, named)
        texts = f"{previous}{id}{values}{lease}{worker}"
    elif type(row) is Ending:
        seq, lease, ticket, kind, reason, at, token = row
        numbers = _ENDING(b"e", seq, ticket, at, len(lease), len(kind), len(reason))
        texts = f"{previous}{lease}{kind}{reason}"
    else:
        assert type(row) is Note
        seq, kind, content, at, token = row
        numbers = _NOTE(b"n", seq, at, len(kind), len(content))
        texts = f"{previous}{kind}{content}"
    if token is not None:  # a letter that is no hexadecimal digit: rows without a token have the hashes of old releases
        numbers += _TOKEN(b"t", len(token))
        texts += token
    return hashlib.sha256(numbers + texts.encode()).hexdigest()


def hashes_after(previous: str, rows: Iterable[Row]) -> list[str]:
    """The hash of each of the rows, which follow one another and the row with hash `previous`."""
    hashes = []
    for row in rows:
        previous = hash_after(previous, row)
        hashes.append(previous)
    return hashes


def check_rows(campaign: str, after: int, previous: str, rows: Sequence[Row], hashes: Sequence[str]) -> str:
    """The hash of the last of the rows, which must be the ones after `after`, each with its hash. DamagedLog names the
    first that is not.
    """
    seq = after
    for row, stored in zip(rows, hashes, strict=True):
        seq += 1
        if row.seq != seq:
            raise _out_of_place(campaign, seq, row)
        previous = check_row(campaign, previous, row, stored)
    return previous


def check_row(campaign: str, previous: str, row: Row, stored: str) -> str:
    """The hash of a row that follows one with hash `previous`, if it is the one that is stored with it."""
    try:
        hash = hash_after(previous, row)
    except (struct.error, TypeError, UnicodeError):  # a number where a text was, and the like
        hash = ""
    if hash != stored:
        damage = "was changed after it was written" if row.seq > 1 else "or the campaign's settings were changed"
        raise DamagedLog(campaign, row.seq, TABLES[type(row)], damage)
    return hash


def check_end(campaign: str, last_seq: int, chain: str, seq: int, last_hash: str) -> None:
    """Whether the log ends where the campaign's row says that it does; (seq, found) is the last row and its hash."""
    if seq < last_seq:
        raise DamagedLog(campaign, seq + 1, None, f"is missing: the log has {last_seq} rows")
    if seq > last_seq:
        raise DamagedLog(campaign, last_seq + 1, None, f"is one too many: the log has {last_seq} rows")
    if last_hash != chain:
        raise DamagedLog(campaign, seq, None, "is not the one that the campaign's summary was written with")


def _out_of_place(campaign: str, seq: int, row: Row) -> DamagedLog:
    if row.seq < seq:
        return DamagedLog(campaign, row.seq, TABLES[type(row)], "is there twice")
    return DamagedLog(campaign, seq, None, f"is missing: row {row.seq} follows row {seq - 1}")


def sealed(content: bytes, *about: object) -> bytes:
    """A snapshot's content behind its checksum; `about` says what it is a snapshot of."""
    return _checksum(content, about) + content


def unsealed(stored: bytes, *about: object) -> bytes | None:
    """The content of a sealed snapshot; None if it is damaged, or not about this."""
    return stored[32:] if stored[:32] == _checksum(stored[32:], about) else None


def _checksum(content: bytes, about: tuple[object, ...]) -> bytes:
    return hashlib.sha256(json.dumps(about).encode() + content).digest()
