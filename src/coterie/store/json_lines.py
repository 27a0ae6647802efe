"""A journal in a folder of JSON lines, for people who want to read their record with any text editor. It needs no
database, and it shows that the contract of `coterie.store.journal` is one.

    journal.json     {"format": "coterie-journal", "version": 5}
    campaigns.jsonl  a line for each campaign, token and login that was added or removed
    ID.jsonl         a campaign's log: ["asks", seq, …, hash] and so on, a line for each row; after the rows of each
                     transaction a line {"last_seq": …} with the campaign's summary, which commits them
    ID.snapshot      the newest snapshot; ID.cut-off: what killed processes left behind, out of the way
    lock             whoever writes holds it, for the whole folder

All files but the snapshots are only ever added to, until a campaign is deleted, and its files with it. Rows without a
commit line after them do not count: a process was killed while it wrote them, and whoever writes next cuts them off. A
transaction over several campaigns commits them one after the other: after a kill some may be there and others not, each
as a whole.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from coterie.store.chain import check_end, check_rows, hashes_after, origin, sealed, unsealed
from coterie.store.errors import BadValue, CampaignError, Conflict, DamagedLog, StoreUnavailable
from coterie.store.journal import (
    VERSION,
    Campaign,
    LoginSession,
    Selection,
    Snapshot,
    Summary,
    Token,
    check_next,
    check_version,
    empty_campaign,
)
from coterie.store.line_files import LogFile, append_durably, write_durably
from coterie.store.line_registry import Registry, RegistryFile, whole_lines
from coterie.store.rows import ALL_KINDS, Kind, Note, Page, Row

try:
    import fcntl
except ImportError:
    raise ImportError("a folder of JSON lines needs the file locks of Unix: use a SQLite file here") from None

_Answer = TypeVar("_Answer")

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process that writes to the same folder."""


class JsonLines:
    """A journal (`coterie.store.journal`) in a folder."""

    def __init__(self, folder: Path, create: bool = True) -> None:
        self.folder, self.name = folder, f"jsonl:///{folder}"
        self._gate = threading.Lock()  # threads wait here, processes for the file
        self._registry = RegistryFile(folder / "campaigns.jsonl")
        about = folder / "journal.json"
        with _translated():
            if not about.exists():
                if not create:
                    raise StoreUnavailable(
                        f"there is no store at {folder}: `coterie campaign new` makes one, --store names another",
                        code="no_store",
                        field="store",
                    )
                self._make(about)
            try:
                found = json.loads(about.read_text(encoding="utf-8"))
                version = int(found["version"])
            except (ValueError, TypeError, KeyError):
                what = f"{about} cannot be read: it does not say which version the folder has"
                raise Conflict(what, code="damaged_log") from None
        check_version(version)
        if version < VERSION:  # lines are written as this release does: an older one must not take them for its own
            with _translated(), self._locked():
                self._write_version(about)

    def _make(self, about: Path) -> None:
        if self.folder.exists() and any(self.folder.iterdir()) and not (self.folder / "lock").exists():
            raise StoreUnavailable(
                f"{self.folder} is a folder with other files: --store names an empty or a new one",
                code="no_store",
                field="store",
            )
        self.folder.mkdir(mode=0o700, exist_ok=True)
        with self._locked():
            if not about.exists():
                self._write_version(about)

    def _write_version(self, about: Path) -> None:
        write_durably(about, json.dumps({"format": "coterie-journal", "version": VERSION}).encode() + b"\n")

    @contextmanager
    def reading(self) -> Iterator[LinesReading]:
        """One state of each campaign, from when it is first looked at in the block."""
        with _translated():
            yield LinesReading(self.folder, self._registry.read())

    @contextmanager
    def writing(self, ids: Sequence[str] = ()) -> Iterator[LinesWriting]:
        """A transaction; it holds the lock of the folder, and so that of all campaigns."""
        with _translated(), self._locked():
            transaction = LinesWriting(self.folder, self._registry.read(), ids)
            yield transaction
            transaction.commit()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        deadline = time.monotonic() + BUSY_SECONDS
        if not self._gate.acquire(timeout=BUSY_SECONDS):
            raise StoreUnavailable("the store cannot be used now: it is locked")
        try:
            # Opened anew each time: a lock belongs to the open file, and is gone with the process that opened it.
            with open(self.folder / "lock", "ab") as file:
                pause = 0.0005
                while True:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        pass
                    if time.monotonic() > deadline:
                        raise StoreUnavailable("the store cannot be used now: it is locked")
                    time.sleep(pause)
                    pause = min(2 * pause, 0.02)
                yield
        finally:
            self._gate.release()

    def retried(self, work: Callable[[], _Answer]) -> _Answer:
        """The answer of work(). A folder is never away for a moment: it was waited for, or it cannot be used."""
        return work()

    def check_writable(self) -> None:
        """Write a file, and take it away again."""
        probe = self.folder / "probe"
        with _translated(), self._locked():
            write_durably(probe, b"\n")
            probe.unlink()

    def backup(self, target: Path) -> None:
        """A copy of the folder, made while nobody writes."""
        if target.exists():
            raise BadValue(f"{target} is there already: name a new folder", field="file")
        if not target.parent.is_dir():
            raise BadValue(f"there is no folder {target.parent}", field="file")
        with _translated(), self._locked():
            shutil.copytree(self.folder, target, ignore=shutil.ignore_patterns("lock"))

    def close(self) -> None:
        """Nothing is kept open."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except CampaignError:
        raise
    except OSError as error:
        raise _unavailable(error) from error


def _unavailable(error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"the store cannot be used now: {error.strerror or error}")


class LinesReading:
    """Queries on a folder. A campaign is read up to the last commit at the time when it is first looked at."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self._folder = folder
        self._begun, self._tokens, self._sessions = registry.campaigns, registry.tokens, registry.sessions
        self._removed = registry.removed
        self._logs: dict[str, LogFile] = {}

    def _log(self, id: str) -> LogFile:
        if id not in self._logs:
            self._logs[id] = LogFile.read(self._folder / f"{id}.jsonl", id)
        return self._logs[id]

    def campaigns(self, known: Collection[str] = ()) -> list[Campaign]:
        """All campaigns, oldest first, with all settings: they are in memory."""
        found = [self._row(one) for one in self._begun.values()]
        return sorted(found, key=lambda row: (row["created"], row["id"]))

    def select(self, wanted: Selection) -> list[Campaign]:
        """Some campaigns; the settings of those that have an `about` are left out."""
        last = wanted.after
        found: list[Campaign] = []
        keys = sorted(((one["created"], id) for id, one in self._begun.items()), reverse=wanted.newest_first)
        for key in keys:
            begun = self._begun[key[1]]
            passed = last is not None and (key >= last if wanted.newest_first else key <= last)
            if passed or wanted.name.lower() not in begun["name"].lower() or wanted.only not in (None, key[1]):
                continue
            row = self._row(begun)
            if row.get("archived") is None or wanted.archived:
                found.append(row if not row["about"] else cast(Campaign, {**row, "settings": ""}))
            if len(found) == wanted.limit:
                break
        return found

    def campaign(self, id: str) -> Campaign | None:
        """A campaign's row, None if there is no such campaign."""
        begun = self._begun.get(id)
        return None if begun is None else self._row(begun)

    def named(self, name: str) -> Campaign | None:
        """The oldest campaign that is called so, None if there is none."""
        found = [self._row(one) for one in self._begun.values() if one["name"] == name]
        return min(found, key=lambda row: (row["created"], row["id"]), default=None)

    def _row(self, begun: Campaign) -> Campaign:
        return cast(Campaign, {**_OLD_FIELDS, **begun, **(self._log(begun["id"]).summary or {})})

    def rows(
        self,
        campaign: Campaign,
        after: int = 0,
        limit: int | None = None,
        kinds: Sequence[Kind] = ALL_KINDS,
        previous: str | None = None,
    ) -> Page:
        """The first `limit` rows after number `after`, of these kinds, in order and checked (see `Reading.rows`)."""
        id, log = campaign["id"], self._log(campaign["id"])
        if set(kinds) != set(ALL_KINDS):
            return self._picked(campaign, after, limit, kinds)
        if after > campaign["last_seq"]:
            return Page([], campaign["chain"])
        if previous is None:
            previous = self._hash_before(campaign, after)
        rows, hashes = log.rows(after, limit)
        hash = check_rows(id, after, previous, rows, hashes)
        if limit is None or len(rows) < limit:
            log.check_tail()
            check_end(id, campaign["last_seq"], campaign["chain"], rows[-1].seq if rows else after, hash)
        return Page(rows, hash)

    def notes(self, campaign: Campaign, kind: str) -> Page:
        """The notes of one kind, in order, each checked against the hash that is stored before it."""
        page = self._picked(campaign, 0, None, (Note,))
        return Page([row for row in page.rows if isinstance(row, Note) and row.kind == kind], page.hash)

    def _picked(self, campaign: Campaign, after: int, limit: int | None, kinds: Sequence[Kind]) -> Page:
        """Rows of some kinds, each checked against the stored hash of the row before it."""
        id, log = campaign["id"], self._log(campaign["id"])
        if after > campaign["last_seq"]:
            return Page([], campaign["chain"])
        found: list[Row] = []
        hash = self._hash_before(campaign, after)
        for row, stored, place, previous in log.picked(after, kinds):
            if limit is not None and len(found) == limit:
                break
            before, expected = (after, hash) if place is None else (place, previous)
            check_rows(id, before, expected, [row], [stored])  # which names what is missing, too
            found.append(row)
        else:
            log.check_tail()
        return Page(found, hash)

    def _hash_before(self, campaign: Campaign, after: int) -> str:
        if after == 0:
            return origin(campaign["id"], campaign["settings"])
        if after == campaign["last_seq"]:
            return campaign["chain"]
        found = self.hash_of(campaign["id"], after)
        if found is None:
            raise DamagedLog(campaign["id"], after, None, "is missing")
        return found

    def count(self, id: str) -> int:
        """How many rows the log has, of all kinds."""
        return self._log(id).count()

    def hash_of(self, id: str, seq: int) -> str | None:
        """The hash that is stored with a row, None if there is no such row."""
        rows, hashes = self._log(id).rows(seq - 1, 1)
        return hashes[0] if rows and rows[0].seq == seq else None

    def snapshot(self, id: str) -> Snapshot | None:
        """The newest snapshot of a campaign, if there is an undamaged one."""
        try:
            header, _, stored = (self._folder / f"{id}.snapshot").read_bytes().partition(b"\n")
            about = json.loads(header)
            seq, rules, hash = int(about["seq"]), int(about["rules"]), str(about["hash"])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        content = unsealed(stored, id, seq, rules, hash)
        return None if content is None else Snapshot(id, seq, rules, hash, content)

    def tokens(self) -> list[Token]:
        """All tokens, oldest first."""
        return sorted(self._tokens.values(), key=lambda token: (token["created"], token["hash"]))

    def sessions(self) -> list[LoginSession]:
        """Everybody who is logged in."""
        return list(self._sessions.values())


class LinesWriting(LinesReading):
    """Queries and changes of one transaction. What is added is written when it commits, and read in the next one."""

    def __init__(self, folder: Path, registry: Registry, ids: Sequence[str]) -> None:
        super().__init__(folder, registry)
        self._added: list[dict[str, Any]] = []
        self._appended: dict[str, bytes] = {}
        self._snapshots: list[Snapshot] = []
        self._swept: list[Path] = []
        self.locked = {id: row for id in sorted(set(ids)) if (row := self.campaign(id)) is not None}

    def lock_names(self) -> None:
        """The folder is locked."""

    def add_campaign(self, id: str, name: str, settings: str, created: float, about: str = "") -> None:
        """Begin a campaign, without rows."""
        row = empty_campaign(id, name, settings, created, about)
        if id in self._begun:
            raise ValueError(f"the id {id!r} is taken")
        self._added.append({"campaign": row})

    def remove_campaign(self, id: str) -> None:
        """Nobody sees a locked campaign any more, nor its tokens."""
        tokens = [hash for hash, token in self._tokens.items() if token.get("campaign") == id]
        self.remove_sessions([hash for hash, session in self._sessions.items() if session["token"] in tokens])
        for hash in tokens:
            self.remove_token(hash)
        self._added.append({"removed_campaign": id})

    def sweep(self, most: int) -> bool:
        """Delete the files of campaigns that were removed, all at once: that takes no time."""
        paths = (self._folder / f"{id}{ending}" for id in self._removed for ending in _ENDINGS)
        self._swept += (path for path in paths if path.exists())
        return False

    def append(self, id: str, rows: Sequence[Row], summary: Summary) -> str:
        """Add rows to the log of a locked campaign, and renew its summary; the last row's hash."""
        campaign = self.locked[id]
        check_next(campaign, rows)
        hashes = hashes_after(campaign["chain"], rows)
        chain = hashes[-1] if hashes else campaign["chain"]
        commit = {"last_seq": campaign["last_seq"] + len(rows), **summary, "chain": chain}
        self._appended[id] = LogFile.lines(rows, hashes, commit)
        return chain

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the campaign's last one."""
        if snapshot.campaign in self._begun:  # else it was deleted meanwhile
            self._snapshots.append(snapshot)

    def add_token(self, token: Token) -> bool:
        """Keep a token; False if its hash was there before."""
        if token["hash"] in self._tokens:
            return False
        self._added.append({"token": token})
        return True

    def revoke_token(self, hash: str, at: float) -> None:
        """End a token, and keep what it was called."""
        if hash in self._tokens:
            self._added.append({"token": {**self._tokens[hash], "revoked": at}})

    def remove_token(self, hash: str) -> None:
        """Forget a token, if it is there."""
        self._added.append({"removed_token": hash})

    def add_session(self, session: LoginSession) -> None:
        """Somebody has logged in."""
        self._added.append({"session": session})

    def remove_sessions(self, hashes: Sequence[str]) -> None:
        """Forget sessions, if they are there."""
        self._added += ({"removed_session": hash} for hash in hashes)

    def commit(self) -> None:
        """Write everything, and have it on disk."""
        written = False
        try:
            if self._added:
                lines = b"".join(json.dumps(one).encode() + b"\n" for one in self._added)
                path = self._folder / "campaigns.jsonl"
                append_durably(path, lines, whole_lines(path))
                written = True
            for id, lines in self._appended.items():
                self._log(id).append(lines)
                written = True
            for campaign, seq, rules, hash, content in self._snapshots:
                header = json.dumps({"seq": seq, "rules": rules, "hash": hash}).encode() + b"\n"
                stored = sealed(content, campaign, seq, rules, hash)
                write_durably(self._folder / f"{campaign}.snapshot", header + stored)
            for path in self._swept:
                path.unlink(missing_ok=True)
        except OSError as error:
            found = _unavailable(error)
            found.uncertain = written  # one file was written before another could not be
            raise found from error


_ENDINGS = (".jsonl", ".snapshot", ".cut-off")  # of a campaign's files
_OLD_FIELDS = {"about": "", "archived": None}  # which lines of older releases lack
