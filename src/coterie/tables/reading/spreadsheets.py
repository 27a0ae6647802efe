"""Spreadsheets: text that is safe in them, reading sheets of Excel files (.xlsx), and writing such files.

A workbook is a packed folder of XML, and may come from anybody: how large it is unpacked is looked at before it is
unpacked, and cells are counted while they are read. Of a formula, the result that the spreadsheet saved is read.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from coterie.problem.checks import short
from coterie.tables.errors import TableError, TimedBytes, check_time

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_SPLIT = re.compile(r'[,;"\t\r\n]')
_THREE_DECIMALS = re.compile(r"-?[1-9]\d{0,2},\d{3}")
MOST_UNPACKED = 64 * 2**20
"""Bytes of a workbook when it is unpacked."""

MOST_CELLS = 2_000_000
"""Cells of one sheet, the empty ones between others counted too."""

MOST_ROWS = 1_048_576
"""Rows that a sheet of Excel has."""

_MOST_PARTS = 2_000
_LISTED_SHEETS = 8
NEEDS = "Excel files need openpyxl: pip install openpyxl (the extra coterie[serve] brings it), or save the table as CSV"
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_RISKY = ("=", "+", "-", "@", "\t", "\r", "'")
_DATES = "yyyy-mm-dd hh:mm:ss"
_WIDEST = 60
_LONGEST_CELL = 32_767


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


def sheet_rows(name: str, content: bytes, sheet: str | None = None) -> tuple[str, list[str], Iterator[list[Any]]]:
    """Which sheet is read (the first one, or the one named), what all sheets are called, and its rows, top to bottom.

    Rows are as wide as their last cell; an empty row is an empty list. `TableError` says what cannot be read, also
    while the rows are taken.
    """
    opened, sheets = _open(name, content, sheet, results=True)
    return opened.title, sheets, _rows(name, opened)


def digest_of(content: bytes, sheet: str, sheets: list[str]) -> str:
    """What tells this content from others: of the file, and of the sheet if there are several."""
    which = b"" if len(sheets) == 1 else b"\0" + sheet.encode("utf-8", "replace")
    return hashlib.sha256(content + which).hexdigest()


def unsaved_formula(name: str, content: bytes, sheet: str, gaps: set[tuple[int, int]]) -> tuple[int, int] | None:
    """The first of these places (row and column, from 1 and 0) with a formula; its result was not saved, then."""
    opened, _ = _open(name, content, sheet, results=False)
    for number, cells in enumerate(_rows(name, opened), start=1):
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
        sheets = {worksheet.title: worksheet for worksheet in book.worksheets}
    except TableError:
        raise
    except Exception as error:  # openpyxl raises whatever the part of it raises that meets what is wrong
        raise _unreadable(name, error) from None
    if not sheets:
        raise TableError(f"{name} has no sheet with cells", field="file")
    if sheet is None:
        sheet = next(iter(sheets))
    if sheet not in sheets:
        listed = ", ".join(short(worksheet) for worksheet in list(sheets)[:_LISTED_SHEETS])
        more = "" if len(sheets) <= _LISTED_SHEETS else f" and {len(sheets) - _LISTED_SHEETS} more"
        raise TableError(f"{name} has no sheet {short(sheet)}; its sheets are {listed}{more}", field="sheet")
    chosen = sheets[sheet]
    chosen.reset_dimensions()  # what the file says about its size need not be true
    return chosen, list(sheets)


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
        message = f"{name} is too large unpacked: {size / 2**20:,.0f} MiB in {len(parts)} parts"
        raise TableError(f"{message}, at most {MOST_UNPACKED // 2**20} MiB are read; save it as CSV", field="file")


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
    message = f"{name} cannot be read as an Excel file ({said}): open it in a spreadsheet and save it again, or as CSV"
    return TableError(message, field="file")


def workbook(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """An Excel file with one sheet; its first row has the names of the columns and stays in view.

    Cells are text, numbers, dates or None. Dates lose their zone: write them in UTC, and say so in the header.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Font
        from openpyxl.utils import get_column_letter
    except ImportError:
        raise ImportError(NEEDS) from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    for i, name in enumerate(header, start=1):
        sheet.column_dimensions[get_column_letter(i)].width = min(_WIDEST, max(12, len(name) + 2))

    def cell(value: Any, bold: bool = False) -> Any:
        if value is None or (isinstance(value, str) and not value):
            return None
        if isinstance(value, datetime):
            made = WriteOnlyCell(sheet, value.replace(tzinfo=None))
            made.number_format = _DATES
            return made
        if isinstance(value, float) and float(f"{value:.16g}") != value:
            made = WriteOnlyCell(sheet, repr(value))  # openpyxl itself writes 16 digits, and this number needs 17
            made.data_type = "n"
            return made
        if not isinstance(value, str):
            return value
        made = WriteOnlyCell(sheet, "")
        made.value = _UNPRINTABLE.sub("\ufffd", value)[:_LONGEST_CELL]
        made.data_type = "s"  # also where it begins with =
        if value.startswith(_RISKY):
            made.quotePrefix = True  # text it stays when somebody edits it
        if bold:
            made.font = Font(bold=True)
        return made

    sheet.append([cell(name, bold=True) for name in header])
    for number, row in enumerate(rows, start=2):
        if number > MOST_ROWS:
            raise TableError(f"a sheet of Excel has at most {MOST_ROWS:,} rows: export it as CSV", field="format")
        sheet.append([cell(value) for value in row])
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()
