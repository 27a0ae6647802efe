"""The file of a folder of JSON lines (`json_lines`) that lists its campaigns, its tokens and who is logged in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from coterie.store.errors import Conflict
from coterie.store.journal import Campaign, LoginSession, Token


@dataclass(frozen=True)
class Registry:
    """All campaigns as they began, by id; all tokens that were not removed and all who are logged in, by hash; the ids
    of campaigns that were removed.
    """

    campaigns: dict[str, Campaign] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    sessions: dict[str, LoginSession] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)


class RegistryFile:
    """campaigns.jsonl, read again only if it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._content = Registry()

    def read(self) -> Registry:
        """What the file says now."""
        try:
            about = self._path.stat()
        except FileNotFoundError:
            return Registry()
        seen = (about.st_ino, about.st_size, about.st_mtime_ns)
        if seen != self._seen:
            self._content, self._seen = _read(self._path), seen
        return self._content


def whole_lines(path: Path) -> int:
    """How many bytes of a file are whole lines; a line without an end is what a killed process has left."""
    return path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0


def _read(path: Path) -> Registry:
    found = Registry()
    campaigns, tokens, sessions = found.campaigns, found.tokens, found.sessions
    content = path.read_bytes()
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            entry = json.loads(line)
            if "campaign" in entry:
                campaigns[entry["campaign"]["id"]] = entry["campaign"]
            elif "token" in entry:
                tokens[entry["token"]["hash"]] = entry["token"]
            elif "session" in entry:
                sessions[entry["session"]["hash"]] = entry["session"]
            elif "removed_session" in entry:
                sessions.pop(entry["removed_session"], None)
            elif "removed_campaign" in entry:
                campaigns.pop(entry["removed_campaign"], None)
                found.removed.add(entry["removed_campaign"])
            else:
                tokens.pop(entry["removed_token"], None)
        except (ValueError, TypeError, KeyError):
            what = f"line {number} of {path} cannot be read: restore a backup of the folder"
            raise Conflict(what, code="damaged_log") from None
    return found
