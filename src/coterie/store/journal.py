"""The contract of a journal: lock, read after a number, append. Whoever fulfils it can hold campaigns.

A journal keeps, of each campaign, a row of `Campaign` and a log of facts (`coterie.store.rows`), which is only ever
added to. `coterie.testing.journals` is the suite that every journal must pass. What it
promises:

- `writing(ids)` holds the campaigns' locks against all threads and processes. When its block is left, everything that
  was added in it is on disk; if it raises, or the process is killed, nothing is, campaign by campaign: the rows of one
  campaign are never there in part.
- `reading()` shows one state of each campaign to all queries in it, and waits for nobody who writes.
- Rows come checked against the hash chain (`coterie.store.rows`): a damaged one is named by `DamagedLog`.
- A journal that a newer release has written is refused with `Conflict`, code "newer_schema".
- What the machine refuses (a full disk, no permission, no server) is `StoreUnavailable`, and nothing was changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from os.path import isdir
from pathlib import Path
from typing import NamedTuple, NotRequired, Protocol, TypedDict, TypeVar

from coterie.store.errors import BadValue, Conflict
from coterie.store.rows import ALL_KINDS, Kind, Page, Row, origin

_Answer = TypeVar("_Answer")

VERSION = 5
"""Of the journals' layout, the same number for all of them: that of release 0.2, which is read for ever."""


class Summary(TypedDict):
    """Of a campaign's rows, renewed whenever rows are added."""

    last_at: float
    t: int
    measurements: int
    open_leases: int
    done: int
    archived: NotRequired[float | None]  # since when it is; None: it is not
    about: NotRequired[str]  # a short JSON text for lists, if it has changed since the campaign was begun


class Campaign(Summary):
    """A campaign's row. `settings` is JSON; `last_seq` and `chain` are the number and the hash of the last fact.

    `about` is a short JSON text for lists, empty if there is none: settings can be long.
    """

    id: str
    name: str
    settings: str
    created: float
    last_seq: int
    chain: str


class Token(TypedDict):
    """The hash of a secret that a server knows, what it allows, and what it is called; the campaign that it is for
    (None: all), and when it was revoked.
    """

    hash: str
    scope: str
    label: str
    created: float
    campaign: NotRequired[str | None]
    revoked: NotRequired[float | None]


class LoginSession(TypedDict):
    """Somebody who logged in with a token: the hash of the session's own secret, that of the token, and its end."""

    hash: str
    token: str
    until: float


class Selection(NamedTuple):
    """Which campaigns a list has: `name` is a part of theirs, in any case; `only` is the id of the only one.

    At most `limit`, after the one that was created at `after[0]` and has the id `after[1]`, oldest or newest first.
    """

    limit: int
    after: tuple[float, str] | None = None
    name: str = ""
    archived: bool = False
    only: str | None = None
    newest_first: bool = False


class KnownRows(NamedTuple):
    """How much somebody knows of a campaign: the rows up to number `seq`, the last of which has the hash `hash`."""

    campaign: Campaign
    seq: int
    hash: str


class Snapshot(NamedTuple):
    """The state of a campaign after row `seq`, whose hash it names; `rules` is the number of the rules that made it.

    It is a cache: a journal may lose it, and hands out none that is damaged.

    Attributes
    ----------
    campaign : str
        The campaign's id.
    seq : int
        The number of the last row that it sums up.
    rules : int
        The number of the rules that decided.
    hash : str
        Of that row.
    content : bytes
        The state, as `coterie.campaign.state.snapshots` writes it.
    """

    campaign: str
    seq: int
    rules: int
    hash: str
    content: bytes


class Reading(Protocol):
    """What can be read of a journal."""

    def campaigns(self, known: Collection[str] = ()) -> list[Campaign]:
        """All campaigns, oldest first; the settings of those in `known` may be left out (an empty text)."""

    def select(self, wanted: Selection) -> list[Campaign]:
        """Some campaigns; the settings of those that have an `about` are left out (an empty text)."""

    def campaign(self, id: str) -> Campaign | None:
        """A campaign's row, None if there is no such campaign."""

    def named(self, name: str) -> Campaign | None:
        """The oldest campaign that is called so, None if there is none."""

    def rows(
        self,
        campaign: Campaign,
        after: int = 0,
        limit: int | None = None,
        kinds: Sequence[Kind] = ALL_KINDS,
        previous: str | None = None,
    ) -> Page:
        """The first `limit` rows after number `after`, of these kinds, in order and checked.

        All kinds are checked as a chain that begins with `previous`, the hash of row `after` (None: the one that is
        stored), and, without a limit, ends with the hash in the campaign's row. Of some kinds, each row is checked
        against the stored hash of the row before it.
        """

    def rows_since(self, known: Sequence[KnownRows]) -> dict[str, Page]:
        """Of several campaigns at once, by id, all rows after those that are known, checked as `rows` does.

        Campaigns whose rows are damaged are left out: `rows` says what is wrong with them.
        """

    def notes(self, campaign: Campaign, kind: str) -> Page:
        """The notes of one kind, in order and checked as rows of some kinds are."""

    def count(self, id: str) -> int:
        """How many rows the log has, of all kinds: as many as `last_seq` says, unless it is damaged."""

    def hash_of(self, id: str, seq: int) -> str | None:
        """The hash that is stored with a row, None if there is no such row."""

    def snapshot(self, id: str) -> Snapshot | None:
        """The newest snapshot of a campaign, if there is an undamaged one."""

    def attachment(self, id: str, hash: str) -> bytes | None:
        """The content of a file that was kept with a campaign, by its hash; None if there is none."""

    def tokens(self) -> list[Token]:
        """All tokens, oldest first; those that were revoked too."""

    def sessions(self) -> list[LoginSession]:
        """Everybody who is logged in."""


class Writing(Reading, Protocol):
    """What can be done in a transaction. `locked` has the rows of the campaigns that it holds, by id."""

    @property
    def locked(self) -> Mapping[str, Campaign]:
        """The campaigns' rows as they were when the locks were taken; ids that nobody knows are left out."""

    def lock_names(self) -> None:
        """Nobody else begins a campaign until this transaction ends: a name that is free now stays so."""

    def add_campaign(self, id: str, name: str, settings: str, created: float, about: str = "") -> None:
        """Begin a campaign, without rows. ValueError if the id is taken or is not made of letters and digits."""

    def remove_campaign(self, id: str) -> None:
        """Nobody sees a locked campaign any more, nor the tokens that are only for it, nor those who logged in with
        them. What it takes on disk is freed by `sweep`.
        """

    def sweep(self, most: int) -> bool:
        """Free up to so many rows of campaigns that were removed; whether there is more."""

    def append(self, id: str, rows: Sequence[Row], summary: Summary) -> str:
        """Add rows to the log of a locked campaign, once a transaction, and renew its summary; the last row's hash.

        ValueError if they do not go on from `last_seq`.
        """

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the campaign's last one."""

    def keep_attachment(self, id: str, hash: str, content: bytes) -> None:
        """Keep a file with a locked campaign, under the SHA-256 of its content; once, if it is there."""

    def add_token(self, token: Token) -> bool:
        """Keep a token; False if its hash was there before."""

    def revoke_token(self, hash: str, at: float) -> None:
        """End a token, and keep what it was called: rows refer to it."""

    def remove_token(self, hash: str) -> None:
        """Forget a token, if it is there."""

    def add_session(self, session: LoginSession) -> None:
        """Somebody has logged in."""

    def remove_sessions(self, hashes: Sequence[str]) -> None:
        """Forget sessions, if they are there."""


class Journal(Protocol):
    """A place for campaigns. `name` shows it to people, without a password."""

    @property
    def name(self) -> str:
        """The address, for people."""

    def reading(self) -> AbstractContextManager[Reading]:
        """One state of each campaign, for every query in the block."""

    def writing(self, ids: Sequence[str] = ()) -> AbstractContextManager[Writing]:
        """A transaction that holds these campaigns' locks."""

    def retried(self, work: Callable[[], _Answer]) -> _Answer:
        """The answer of work(), tried again if the journal was away for a moment and surely nothing was done."""

    def check_writable(self) -> None:
        """`StoreUnavailable` if nothing can be put on disk now. It is tried, and leaves nothing in any log."""

    def backup(self, target: Path) -> None:
        """A complete copy of the journal's present state at a path where there is nothing yet."""

    def close(self) -> None:
        """Give all files and connections back."""


def empty_campaign(id: str, name: str, settings: str, created: float, about: str = "") -> Campaign:
    """The row of a campaign that begins."""
    if not (id.isascii() and id.isalnum()):
        raise ValueError(f"a campaign's id is made of letters and digits, got {id!r}")
    return {
        "id": id, "name": name, "settings": settings, "created": created, "last_seq": 0, "last_at": created, "t": 0,
        "measurements": 0, "open_leases": 0, "done": 0, "chain": origin(id, settings), "about": about,
        "archived": None,
    }  # fmt: skip


def check_next(campaign: Campaign, rows: Sequence[Row]) -> None:
    """ValueError unless the rows go on where the campaign's log ends."""
    for seq, row in enumerate(rows, start=campaign["last_seq"] + 1):
        if row.seq != seq:
            raise ValueError(f"the next row of campaign {campaign['id']} has number {seq}, got {row.seq}")


def check_version(version: int) -> None:
    """Refuse a journal that a newer release has written, and one from before 0.2 (0: there is nothing in it yet)."""
    if 0 < version < VERSION:
        raise Conflict(
            f"the store is at schema version {version}, from before Coterie 0.2, whose stores have version {VERSION}: "
            "open it once with Coterie 0.2, which brings it up",
            code="older_schema",
        )
    if version > VERSION:
        raise Conflict(
            f"the store is at schema version {version}, this release knows versions up to {VERSION}: a newer release "
            "of Coterie has written it, so use that one (pip install --upgrade coterie)",
            code="newer_schema",
        )


def open_journal(store: str | os.PathLike[str], create: bool = True) -> Journal:
    """The journal at an address.

    Parameters
    ----------
    store : str or path
        sqlite:///FILE or the path of a SQLite file, or postgresql://…
    create : bool
        Whether a file that does not exist is made; else it is refused.

    Returns
    -------
    Journal
        To be closed by whoever has opened it.

    Raises
    ------
    BadValue
        It is no address of a store.
    StoreUnavailable
        The store cannot be opened, or is not there.

    Examples
    --------
    >>> import tempfile
    >>> from coterie.store import open_journal
    >>> folder = tempfile.TemporaryDirectory()
    >>> journal = open_journal(f"{folder.name}/lab.db")
    >>> with journal.reading() as reading:
    ...     reading.campaigns()
    []
    >>> journal.close()
    >>> folder.cleanup()
    """
    address = os.fspath(store) if isinstance(store, str | os.PathLike) else None
    if not isinstance(address, str) or not address.strip():
        raise BadValue(f"a store is a file or a URL, got {store!r}", field="store")
    if address.startswith("jsonl:") or ("://" not in address and (address.endswith(("/", os.sep)) or isdir(address))):
        raise BadValue(
            f"{address} is a folder, and campaigns are kept in SQLite or PostgreSQL: a folder of JSON lines is read by "
            "Coterie 0.2, whose `coterie campaign export` writes a table that `coterie campaign import --in-order` of "
            "this release takes into a new campaign",
            code="json_lines",
            field="store",
        )
    try:
        import sqlalchemy as sqlalchemy
    except ImportError:
        raise ImportError(
            "campaigns need SQLAlchemy: pip install 'coterie[serve]' (in the clone: pip install '.[serve]')"
        ) from None
    from coterie.store.sql import Database

    return Database(address, create)
