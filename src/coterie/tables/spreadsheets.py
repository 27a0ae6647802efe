"""Names as they are written into files that people open with a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")

_SPLIT = re.compile(r'[,;"\t\r\n]')


_THREE_DECIMALS = re.compile(r"-?[1-9]\d{0,2},\d{3}")


def csv_line(cells: Iterable[Any], decimal_comma: bool = False) -> str:
    """A line of a CSV file. Quoted is whatever a spreadsheet might split: at semicolons too, and at tabs. Text that it
    would take for a formula gets an apostrophe in front (`safe_in_spreadsheets`), which reading takes away again.

    Every digit of a number is written. `decimal_comma`: with commas in numbers and semicolons between the cells.
    """
    if decimal_comma:
        return ";".join(_number_with_comma(cell) if isinstance(cell, float) else _quoted(cell) for cell in cells) + "\n"
    return ",".join(repr(cell) if isinstance(cell, float) else _quoted(cell) for cell in cells) + "\n"


def _number_with_comma(value: float) -> str:
    """1,5. A zero more where the comma could stand between thousands: 1,2340 is clear where 1,234 is not."""
    text = repr(value).replace(".", ",")
    return f"{text}0" if _THREE_DECIMALS.fullmatch(text) else text


def _quoted(cell: Any) -> str:
    text = safe_in_spreadsheets(cell) if isinstance(cell, str) else str(cell)
    return '"' + text.replace('"', '""') + '"' if _SPLIT.search(text) else text


def safe_in_spreadsheets(text: str) -> str:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front; plain numbers stay."""
    return f"'{text}" if _is_formula(text) else text


def as_it_was(cell: str) -> str:
    """What `safe_in_spreadsheets` made this of."""
    return cell[1:] if cell[:1] == "'" and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
