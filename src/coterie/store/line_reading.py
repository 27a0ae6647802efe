"""Queries on a folder of JSON lines (`json_lines`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from coterie.store.chain import check_end, check_rows, origin, unsealed
from coterie.store.errors import DamagedLog
from coterie.store.journal import Campaign, Known, LoginSession, Selection, Snapshot, Token
from coterie.store.line_files import LogFile
from coterie.store.line_registry import Registry
from coterie.store.rows import ALL_KINDS, Kind, Note, Page, Row

_OLD_FIELDS = {"about": "", "archived": None}  # which lines of older releases lack


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

    def rows_since(self, known: Sequence[Known]) -> dict[str, Page]:
        """Of several campaigns all rows after those that are known; without those that are damaged."""
        found: dict[str, Page] = {}
        for campaign, seq, hash in known:
            with suppress(DamagedLog):
                found[campaign["id"]] = self.rows(campaign, seq, previous=hash)
        return found

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
