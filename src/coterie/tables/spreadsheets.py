"""Names as they are written into files that people open with a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")

_SPLIT = re.compile(r'[,;"\t\r\n]')


_THREE_DECIMALS = re.compile(r"-?[1-9]\d{0,2},\d{3}")


def csv_line(cells: Iterable[Any], decimal_comma: bool = False) -> str:
    """A line of a CSV file. Quoted is whatever a spreadsheet might split: at semicolons too, and at tabs.

    Every digit of a number is written. `decimal_comma`: with commas in numbers and semicolons between the cells.
    """
    if decimal_comma:
        return (
            ";".join(_number_with_comma(cell) if isinstance(cell, float) else _quoted(str(cell)) for cell in cells)
            + "\n"
        )
    return ",".join(_quoted(repr(cell) if isinstance(cell, float) else str(cell)) for cell in cells) + "\n"


def _number_with_comma(value: float) -> str:
    """1,5. A zero more where the comma could stand between thousands: 1,2340 is clear where 1,234 is not."""
    text = repr(value).replace(".", ",")
    return f"{text}0" if _THREE_DECIMALS.fullmatch(text) else text


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _SPLIT.search(cell) else cell


def safe_in_spreadsheets(name: str) -> str:
    """A name that a spreadsheet would take for a formula gets an apostrophe in front; plain numbers stay."""
    risky = name.startswith(("=", "+", "-", "@", "\t", "\r")) and _NUMBER.fullmatch(name) is None
    return f"'{name}" if risky else name
