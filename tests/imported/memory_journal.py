"""A journal in memory: a second implementation of the contract, as short as it can be, which proves that it is one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coterie.store.errors import BadValue, DamagedLog
from coterie.store.journal import (
    Campaign,
    KnownRows,
    LoginSession,
    Selection,
    Snapshot,
    Summary,
    Token,
    check_next,
    empty_campaign,
)
from coterie.store.rows import ALL_KINDS, Kind, Note, Page, Row, check_end, check_row, check_rows, hashes_after, origin


@dataclass
class Content:
    """All that is kept; rows with their hashes."""

    campaigns: dict[str, Campaign] = field(default_factory=dict)
    logs: dict[str, list[tuple[Row, str]]] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    attachments: dict[tuple[str, str], bytes] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    sessions: dict[str, LoginSession] = field(default_factory=dict)


class MemoryReading:
    def __init__(self, content: Content) -> None:
        self._content = content

    def campaigns(self, known: Collection[str] = ()) -> list[Campaign]:
        return sorted(self._content.campaigns.values(), key=lambda row: (row["created"], row["id"]))

    def select(self, wanted: Selection) -> list[Campaign]:
        rows = self.campaigns()
        if wanted.newest_first:
            rows.reverse()
        if wanted.after is not None:
            at = wanted.after
            rows = [
                row
                for row in rows
                if ((row["created"], row["id"]) < at if wanted.newest_first else (row["created"], row["id"]) > at)
            ]
        rows = [
            row
            for row in rows
            if wanted.name.lower() in row["name"].lower()
            and (wanted.archived or row["archived"] is None)
            and wanted.only in (None, row["id"])
        ]
        return [{**row, "settings": "" if row["about"] else row["settings"]} for row in rows[: wanted.limit]]

    def campaign(self, id: str) -> Campaign | None:
        return self._content.campaigns.get(id)

    def named(self, name: str) -> Campaign | None:
        return next((row for row in self.campaigns() if row["name"] == name), None)

    def _log(self, id: str) -> list[tuple[Row, str]]:
        return self._content.logs.get(id, [])

    def rows(
        self,
        campaign: Campaign,
        after: int = 0,
        limit: int | None = None,
        kinds: Sequence[Kind] = ALL_KINDS,
        previous: str | None = None,
    ) -> Page:
        id = campaign["id"]
        if set(kinds) != set(ALL_KINDS):
            return self._some(campaign, [row for row, _ in self._log(id)[after:] if type(row) in kinds][:limit])
        stored = self.hash_of(id, after) if after else origin(id, campaign["settings"])
        first = previous or stored or campaign["chain"]
        left = self._log(id)[after:]
        rows, hashes = [row for row, _ in left[:limit]], [hash for _, hash in left[:limit]]
        last = check_rows(id, after, first, rows, hashes)
        if after <= campaign["last_seq"] and (limit is None or len(left) <= limit):
            check_end(id, campaign["last_seq"], campaign["chain"], after + len(rows), last)
        return Page(rows, last)

    def _some(self, campaign: Campaign, rows: list[Row]) -> Page:
        id, hash = campaign["id"], campaign["chain"]
        for row in rows:
            before = self.hash_of(id, row.seq - 1) if row.seq > 1 else origin(id, campaign["settings"])
            hash = check_row(id, before or "", row, self.hash_of(id, row.seq) or "")
        return Page(rows, hash)

    def rows_since(self, known: Sequence[KnownRows]) -> dict[str, Page]:
        pages: dict[str, Page] = {}
        for campaign, seq, hash in known:
            with suppress(DamagedLog):
                pages[campaign["id"]] = self.rows(campaign, seq, previous=hash)
        return pages

    def notes(self, campaign: Campaign, kind: str) -> Page:
        rows = (row for row, _ in self._log(campaign["id"]))
        return self._some(campaign, [row for row in rows if isinstance(row, Note) and row.kind == kind])

    def count(self, id: str) -> int:
        return len(self._log(id))

    def hash_of(self, id: str, seq: int) -> str | None:
        return self._log(id)[seq - 1][1] if 0 < seq <= self.count(id) else None

    def snapshot(self, id: str) -> Snapshot | None:
        return self._content.snapshots.get(id)

    def attachment(self, id: str, hash: str) -> bytes | None:
        return self._content.attachments.get((id, hash))

    def tokens(self) -> list[Token]:
        return sorted(self._content.tokens.values(), key=lambda token: (token["created"], token["hash"]))

    def sessions(self) -> list[LoginSession]:
        return list(self._content.sessions.values())


class MemoryWriting(MemoryReading):
    """Changes a copy, which takes the place of the content when the transaction ends."""

    def __init__(self, content: Content, ids: Sequence[str]) -> None:
        super().__init__(content)
        self.locked = {id: deepcopy(content.campaigns[id]) for id in ids if id in content.campaigns}

    def lock_names(self) -> None:
        pass

    def add_campaign(self, id: str, name: str, settings: str, created: float, about: str = "") -> None:
        row = empty_campaign(id, name, settings, created, about)
        if id in self._content.campaigns:
            raise ValueError(f"the id {id!r} is taken")
        self._content.campaigns[id], self._content.logs[id] = row, []

    def remove_campaign(self, id: str) -> None:
        content = self._content
        del content.campaigns[id]
        for hash in [hash for hash, token in content.tokens.items() if token.get("campaign") == id]:
            del content.tokens[hash]
        content.sessions = {hash: one for hash, one in content.sessions.items() if one["token"] in content.tokens}

    def sweep(self, most: int) -> bool:
        for id in [id for id in self._content.logs if id not in self._content.campaigns]:
            del self._content.logs[id]
            self._content.snapshots.pop(id, None)
            for key in [key for key in self._content.attachments if key[0] == id]:
                del self._content.attachments[key]
        return False

    def append(self, id: str, rows: Sequence[Row], summary: Summary) -> str:
        campaign = self.locked[id]
        check_next(campaign, rows)
        hashes = hashes_after(campaign["chain"], rows)
        chain = hashes[-1] if hashes else campaign["chain"]
        end: Any = {"last_seq": campaign["last_seq"] + len(rows), "chain": chain}
        self._content.logs[id] += zip(rows, hashes, strict=True)
        self._content.campaigns[id] = {**campaign, "archived": None, **summary, **end}
        return chain

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        self._content.snapshots[snapshot.campaign] = snapshot

    def keep_attachment(self, id: str, hash: str, content: bytes) -> None:
        self._content.attachments[id, hash] = content

    def add_token(self, token: Token) -> bool:
        return self._content.tokens.setdefault(token["hash"], token) is token

    def revoke_token(self, hash: str, at: float) -> None:
        self._content.tokens[hash] = {**self._content.tokens[hash], "revoked": at}

    def remove_token(self, hash: str) -> None:
        self._content.tokens.pop(hash, None)

    def add_session(self, session: LoginSession) -> None:
        self._content.sessions[session["hash"]] = session

    def remove_sessions(self, hashes: Sequence[str]) -> None:
        for hash in hashes:
            self._content.sessions.pop(hash, None)


class MemoryJournal:
    """A handle on what was kept before. One lock for all campaigns; a reading keeps the content that it began with."""

    name = "memory"

    def __init__(self, place: list[Content], lock: threading.Lock) -> None:
        self._place, self._lock = place, lock

    @classmethod
    def at_a_new_place(cls) -> Callable[[], MemoryJournal]:
        place, lock = [Content()], threading.Lock()
        return lambda: cls(place, lock)

    @contextmanager
    def reading(self) -> Iterator[MemoryReading]:
        yield MemoryReading(self._place[0])

    @contextmanager
    def writing(self, ids: Sequence[str] = ()) -> Iterator[MemoryWriting]:
        with self._lock:
            content = deepcopy(self._place[0])
            yield MemoryWriting(content, ids)
            self._place[0] = content

    def retried(self, work: Callable[[], Any]) -> Any:
        return work()

    def check_writable(self) -> None:
        pass

    def backup(self, target: Path) -> None:
        raise BadValue("what is in memory has no copy", field="store")

    def close(self) -> None:
        pass
