"""Files of lines: writing them so that they survive a kill, and the log of a campaign in one (`json_lines`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from coterie.store.errors import DamagedLog
from coterie.store.rows import TABLES, Kind, Row

_KINDS: dict[str, Kind] = {name: kind for kind, name in TABLES.items()}
_BLOCK = 1 << 16


def write_durably(path: Path, content: bytes) -> None:
    """Put a file in place of another, as a whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    try:
        with open(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def append_durably(path: Path, lines: bytes, end: int) -> None:
    """Write lines at `end`, the end of what counts in the file; what stands after it was never acknowledged.

    On disk when this returns; if it raises, the file counts up to `end` as before.
    """
    new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        if size > end:
            _set_aside(path, end, size)
            os.ftruncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        except BaseException:
            os.ftruncate(handle, end)
            raise
    finally:
        os.close(handle)
    if new:
        _sync_folder(path.parent)


def _set_aside(path: Path, begin: int, end: int) -> None:
    """Keep what is cut off a file beside it: it never counted, but somebody may want to know."""
    with open(path, "rb") as file, open(path.with_suffix(".cut-off"), "ab") as kept:
        file.seek(begin)
        kept.write(file.read(end - begin) + b"\n")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass
class LogFile:
    """A campaign's log up to its last commit line, which ends at byte `end` and has the `summary` (None: no line).

    `damage`: what stands after that line and is not what a killed process may have left there.
    """

    path: Path
    campaign: str
    end: int
    summary: dict[str, Any] | None
    damage: DamagedLog | None = None

    @classmethod
    def read(cls, path: Path, campaign: str) -> LogFile:
        """The log as it is now."""
        try:
            with open(path, "rb") as file:
                return cls._last_commit(path, campaign, file)
        except FileNotFoundError:
            return cls(path, campaign, 0, None)

    @classmethod
    def _last_commit(cls, path: Path, campaign: str, file: BinaryIO) -> LogFile:
        """The log up to the last line that commits. After it there may be rows that a killed process has written, and a
        line without an end; anything else was not made by a kill.
        """
        begin, tail = file.seek(0, os.SEEK_END), b""
        damage: DamagedLog | None = None
        while True:
            end = tail.rfind(b"\n") + 1  # of the whole lines that have not been looked at, the last one first
            while end > 0:
                start = tail.rfind(b"\n", 0, end - 1) + 1
                if start == 0 and begin > 0:
                    break  # its beginning has not been read yet
                line = tail[start : end - 1]
                if line.startswith(b"{") and _key(line) is not None:
                    return cls(path, campaign, begin + end, json.loads(line), damage)
                if not (line.startswith(b'["') and line.endswith(b'"]')):
                    before = tail[:start].rstrip(b"\n").rpartition(b"\n")[2]
                    damage = DamagedLog(campaign, (_key(before) or 0) + 1, None, _UNREADABLE)
                end = start
            if begin == 0:
                return cls(path, campaign, 0, None, damage)
            step = min(begin, max(_BLOCK, len(tail)))  # twice as much each time: a tail can be long
            begin -= step
            file.seek(begin)
            tail = file.read(step) + tail

    @staticmethod
    def lines(rows: Sequence[Row], hashes: Sequence[str], commit: dict[str, Any]) -> bytes:
        """Rows and the line that commits them, as they stand in the file."""
        given = [[TABLES[type(row)], *row, hash] for row, hash in zip(rows, hashes, strict=True)]
        return b"".join(json.dumps(one).encode() + b"\n" for one in [*given, commit])

    def append(self, lines: bytes) -> None:
        """Add lines after the last commit, and have them on disk."""
        self.check_tail()
        append_durably(self.path, lines, self.end)

    def check_tail(self) -> None:
        """Nothing but what a killed process left may stand after the last commit."""
        if self.damage is not None:
            raise self.damage

    def rows(self, after: int, limit: int | None) -> tuple[list[Row], list[str]]:
        """Rows after number `after` with their hashes, as they stand there, in the order of the file."""
        if self.end == 0:
            return [], []
        with open(self.path, "rb") as file:
            begin = self._place_after(file, after)
            file.seek(begin or 0)
            if limit is None or begin is None:
                rows, hashes = self._parsed(file.read(self.end - file.tell()).split(b"\n"), after)
                return rows[:limit], hashes[:limit]
            lines: list[bytes] = []
            while len(lines) < limit and file.tell() < self.end:
                line = file.readline()
                if not line.startswith(b"{"):
                    lines.append(line)
            return self._parsed(lines, after)

    def picked(self, after: int, kinds: Sequence[Kind]) -> Iterator[tuple[Row, str, int | None, str]]:
        """Rows of some kinds after number `after`, each with its hash, and the number and the hash of the row before it
        (None and nothing for the first row that is read). Lines of other kinds are not parsed.
        """
        if self.end == 0:
            return
        with open(self.path, "rb") as file:
            begin = self._place_after(file, after)
            file.seek(begin or 0)
            lines = file.read(self.end - file.tell()).split(b"\n")
        wanted = tuple(f'["{TABLES[kind]}",'.encode() for kind in kinds)
        before = b""
        for line in lines:
            if line.startswith(wanted):
                place = _key(before) if before else None
                try:
                    row, hash = _parse(json.loads(line))
                except _NOT_A_ROW:
                    raise DamagedLog(self.campaign, (place or after) + 1, None, _UNREADABLE) from None
                if begin is not None or row.seq > after:
                    yield row, hash, place, before[-66:-2].decode("ascii", "replace")
            if line and not line.startswith(b"{"):
                before = line

    def _place_after(self, file: BinaryIO, after: int) -> int | None:
        """Where the first line with a number above `after` begins, by bisection: numbers never fall.

        None if a line has no number. Then all lines must be read, and the one that is damaged is named.
        """
        if after == 0:
            return 0
        low, high = 0, self.end  # lines before `low` are not above; the first that begins at `high` or later is
        while low < high:
            middle = (low + high) // 2
            file.seek(max(middle - 1, low))
            if middle > low:
                file.readline()  # to the first line that begins at `middle` or later
            begin = file.tell()
            key = _key(file.readline()) if begin < high else None
            if begin >= high or (key is not None and key > after):
                high = middle
            elif key is not None:
                low = file.tell()
            else:
                return None
        return low

    def _parsed(self, lines: list[bytes], after: int) -> tuple[list[Row], list[str]]:
        given = [line for line in lines if line and not line.startswith(b"{")]
        try:
            entries = json.loads(b"[" + b",".join(given) + b"]")
            rows = [_row(entry) for entry in entries]
            hashes = [entry[-1] for entry in entries]
        except _NOT_A_ROW:
            raise DamagedLog(self.campaign, self._first_bad(given, after), None, _UNREADABLE) from None
        if rows and rows[0].seq <= after:  # all lines were read
            keep = [i for i, row in enumerate(rows) if row.seq > after]
            return [rows[i] for i in keep], [hashes[i] for i in keep]
        return rows, hashes

    def _first_bad(self, lines: list[bytes], after: int) -> int:
        for line in lines:
            try:
                after = _parse(json.loads(line))[0].seq
            except _NOT_A_ROW:
                break
        return after + 1

    def count(self) -> int:
        """How many lines are rows."""
        if self.end == 0:
            return 0
        with open(self.path, "rb") as file:
            content = file.read(self.end)
        return content.count(b"\n[") + content.startswith(b"[")


_UNREADABLE = "cannot be read"
_NOT_A_ROW = (ValueError, TypeError, KeyError, IndexError)


def _parse(entry: Any) -> tuple[Row, str]:
    """The row in a line, and its hash."""
    return _row(entry), entry[-1]


def _row(entry: Any) -> Row:
    return _KINDS[entry[0]](*entry[1:-1])  # lines of older releases have no token


def _key(line: bytes) -> int | None:
    """The number of a row, or the last number of a commit line; None for what is neither."""
    try:
        if line.startswith(b"{"):
            return int(json.loads(line)["last_seq"])
        return int(line[:60].split(b",", 2)[1])
    except (ValueError, KeyError, IndexError, TypeError):
        return None
