"""What ends the reading of a table: something that is wrong with it, or a limit to the time that it may take.

The limit is for tables of strangers. Whoever reads looks at it row by row: the work ends, not only the waiting for it.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


class TableError(ValueError):
    """A table, a column, a cell or a setting that cannot be used.

    Parameters
    ----------
    message : str
        What is wrong, and what to do.
    field : str, optional
        The part at fault: a setting ("seed"), a column, or a cell ("line 3, ph"); None if no single part is.

    Examples
    --------
    >>> import coterie
    >>> try:
    ...     coterie.group({"A": [1.0, 2.0], "B": [3.0, 4.0]}, delta=7)
    ... except coterie.tables.TableError as error:
    ...     print(error.field)
    delta
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def checked(field: str, check: Callable[..., Any], *arguments: Any) -> Any:
    """What the check returns; its `ValueError` or `TypeError` becomes a `TableError` of this field."""
    try:
        return check(*arguments)
    except (ValueError, TypeError, OverflowError) as error:
        raise TableError(str(error), field) from None


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
