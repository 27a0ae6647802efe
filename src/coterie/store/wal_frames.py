"""What stands in a write-ahead journal of SQLite (https://www.sqlite.org/fileformat2.html#walformat): as much of it as
tells which file it belongs to.

SQLite writes a journal anew from its beginning once all of it was copied into the file. The first salt of its header is
one more then, and every frame repeats the salts: those with other ones are left over.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Self

WAL_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)
_FIRST_PAGE = (1).to_bytes(4, "big")
_NUMBER = 60  # where the header of the first page has user_version


class WalFrames:
    """The frames of a journal as it was when this was made: `count` up to its last commit."""

    def __init__(self, path: Path, page_size: int, salts: bytes, total: int) -> None:
        self._path, self._frame = path, page_size + _FRAME_HEADER
        self.overtaken = False
        """Whether this is a copy that has its beginning from before the journal was written anew, its end from after"""
        with open(path, "rb") as file:
            low, high = 0, total  # those with the right salts come first
            while low < high:
                middle = (low + high) // 2
                if self._at(file, middle, 8, 8) == salts:
                    low = middle + 1
                else:
                    high = middle
            if low < total:
                newer = int.from_bytes(self._at(file, low, 8, 4), "big") - int.from_bytes(salts[:4], "big")
                self.overtaken = 0 < newer % 2**32 < 2**16
            while low > 0 and not any(self._at(file, low - 1, 4, 4)):  # else: the size of the file after a commit
                low -= 1
            self.count = low

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The frames of a journal; None if there is none, or it is empty."""
        try:
            with open(path, "rb") as file:
                head = file.read(WAL_HEADER)
                size = file.seek(0, 2)
            magic, _, page_size, _ = struct.unpack(">4I", head[:16])
            if magic not in _MAGIC or page_size < 512:
                return None
            return cls(path, page_size, head[16:24], (size - WAL_HEADER) // (page_size + _FRAME_HEADER))
        except (OSError, struct.error):
            return None

    def has_number(self, *wanted: int) -> bool:
        """Whether a copy of the first page has one of these numbers (user_version); True if there is no such page."""
        seen = False
        with suppress(OSError), open(self._path, "rb") as file:
            for place in range(self.count):
                if self._at(file, place, 0, 4) == _FIRST_PAGE:
                    seen = True
                    if int.from_bytes(self._at(file, place, _FRAME_HEADER + _NUMBER, 4), "big") in wanted:
                        return True
        return not seen

    def _at(self, file: BufferedReader, place: int, offset: int, length: int) -> bytes:
        file.seek(WAL_HEADER + place * self._frame + offset)
        return file.read(length)
