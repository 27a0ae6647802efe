"""Reading Excel files (.xlsx): one sheet becomes a `Table`, whose rows keep their numbers in the sheet.

A workbook is a packed folder of XML, and may come from anybody: how large it is unpacked is looked at before it is
unpacked, and cells are counted while they are read. Of a formula, the result that the spreadsheet saved is read.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from typing import Any

from coterie.problem.checks import short
from coterie.tables.errors import TableError
from coterie.tables.time_limit import TimedBytes, check_time

MOST_UNPACKED = 64 * 2**20
"""Bytes of a workbook when it is unpacked."""
MOST_CELLS = 2_000_000
"""Cells of one sheet, the empty ones between others counted too."""
MOST_ROWS = 1_048_576
"""Rows that a sheet of Excel has."""
_MOST_PARTS = 2_000
_LISTED_SHEETS = 8

NEEDS = "Excel files need openpyxl: pip install openpyxl (the extra coterie[serve] brings it), or save the table as CSV"


def sheet_rows(name: str, content: bytes, sheet: str | None = None) -> tuple[str, list[str], Iterator[list[Any]]]:
    """Which sheet is read (the first one, or the one named), what all sheets are called, and its rows, top to bottom.

    Rows are as wide as their last cell; an empty row is an empty list. `TableError` says what cannot be read, also
    while the rows are taken.
    """
    found, sheets = _open(name, content, sheet, results=True)
    return found.title, sheets, _rows(name, found)


def digest_of(content: bytes, sheet: str, sheets: list[str]) -> str:
    """What tells this content from others: of the file, and of the sheet if there are several."""
    which = b"" if len(sheets) == 1 else b"\0" + sheet.encode("utf-8", "replace")
    return hashlib.sha256(content + which).hexdigest()


def unsaved_formula(name: str, content: bytes, sheet: str, gaps: set[tuple[int, int]]) -> tuple[int, int] | None:
    """The first of these places (row and column, from 1 and 0) with a formula; its result was not saved, then."""
    found, _ = _open(name, content, sheet, results=False)
    for number, cells in enumerate(_rows(name, found), start=1):
        for place, cell in enumerate(cells):
            if cell is not None and (number, place) in gaps:
                return number, place
    return None


def _open(name: str, content: bytes, sheet: str | None, results: bool) -> tuple[Any, list[str]]:
    """One sheet, and the names of all. `results`: of formulas their results, else the formulas."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ImportError(NEEDS) from None
    _check_size(name, content)
    try:
        book = load_workbook(TimedBytes(content), read_only=True, data_only=results, keep_links=False)
        sheets = {one.title: one for one in book.worksheets}
    except TableError:
        raise
    except Exception as error:  # openpyxl raises whatever the part of it raises that meets what is wrong
        raise _unreadable(name, error) from None
    if not sheets:
        raise TableError(f"{name} has no sheet with cells", field="file")
    if sheet is None:
        sheet = next(iter(sheets))
    if sheet not in sheets:
        listed = ", ".join(short(one) for one in list(sheets)[:_LISTED_SHEETS])
        more = "" if len(sheets) <= _LISTED_SHEETS else f" and {len(sheets) - _LISTED_SHEETS} more"
        raise TableError(f"{name} has no sheet {short(sheet)}; its sheets are {listed}{more}", field="sheet")
    found = sheets[sheet]
    found.reset_dimensions()  # what the file says about its size need not be true
    return found, list(sheets)


def _check_size(name: str, content: bytes) -> None:
    """Refuse what is no packed folder, and what would be too large unpacked.

    Python's zipfile unpacks no more of a part than its entry says: the entries can be believed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            parts = packed.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise _unreadable(name, error) from None
    size = sum(part.file_size for part in parts)
    if size > MOST_UNPACKED or len(parts) > _MOST_PARTS:
        what = f"{name} is too large unpacked: {size / 2**20:,.0f} MiB in {len(parts)} parts"
        raise TableError(f"{what}, at most {MOST_UNPACKED // 2**20} MiB are read; save it as CSV", field="file")


def _rows(name: str, sheet: Any) -> Iterator[list[Any]]:
    rows = sheet.iter_rows(values_only=True)
    seen = number = 0
    while True:
        try:
            row = next(rows, None)
            check_time()
        except TableError:
            raise
        except Exception as error:
            raise _unreadable(name, error) from None
        if row is None:
            return
        number += 1
        seen += max(1, len(row))
        if number > MOST_ROWS or seen > MOST_CELLS:
            raise TableError(
                f"{name}, row {number}: at most {MOST_CELLS:,} cells in {MOST_ROWS:,} rows are read; save it as CSV",
                field="file",
            )
        cells = list(row)
        while cells and (cells[-1] is None or (isinstance(cells[-1], str) and not cells[-1].strip())):
            cells.pop()
        yield cells


def _unreadable(name: str, error: Exception) -> TableError:
    said = " ".join(str(error).split())[:120] or type(error).__name__
    what = f"{name} cannot be read as an Excel file ({said}): open it in a spreadsheet and save it again, or as CSV"
    return TableError(what, field="file")
