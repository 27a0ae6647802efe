"""What is wrong with a table of measurements, or with how it is to be read or replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class TableError(ValueError):
    """A table, a column, a cell or a setting that cannot be used.

    `message` says what is wrong and what to do, `field` names the part at fault: a setting ("seed"), a column, or a
    cell ("line 3, ph"); None if no single part is.
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
