"""A limit to the time that reading a table may take, for tables of strangers. Whoever reads looks at it row by row: the
work ends, not only the waiting for it.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coterie.tables.errors import TableError

_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Inside, reading a table ends with a `TableError` after so many seconds."""
    before = _UNTIL.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _UNTIL.reset(before)


def check_time(more: float = 0.0) -> None:
    """`TableError` if the time of whoever reads a table is over, or was over `more` seconds ago."""
    until = _UNTIL.get()
    if time.monotonic() > until + more:
        raise TableError("the table took too long to be read, and was put aside: send it in parts", field="file")


class TimedBytes(io.BytesIO):
    """Bytes for a library that takes its time: whenever it reads on, the time is looked at."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Some of them."""
        check_time()
        return super().read(size)
