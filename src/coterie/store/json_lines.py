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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from coterie.store.chain import hashes_after, sealed
from coterie.store.errors import BadValue, CampaignError, Conflict, StoreUnavailable
from coterie.store.journal import (
    VERSION,
    LoginSession,
    Snapshot,
    Summary,
    Token,
    check_next,
    check_version,
    empty_campaign,
)
from coterie.store.line_files import LogFile, append_durably, write_durably
from coterie.store.line_reading import LinesReading
from coterie.store.line_registry import Registry, RegistryFile, whole_lines
from coterie.store.rows import Row

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
