"""Writing Excel files (.xlsx): numbers as numbers, dates as dates, and text that is never taken for a formula."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from coterie.tables.errors import TableError
from coterie.tables.workbooks import MOST_ROWS, NEEDS

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_RISKY = ("=", "+", "-", "@", "\t", "\r", "'")
_DATES = "yyyy-mm-dd hh:mm:ss"
_WIDEST = 60
_LONGEST_CELL = 32_767


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
