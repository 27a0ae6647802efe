"""Reading tables: CSV, Excel and Parquet files, rows in memory and frames become a `Table`: column names, raw cells.

A file is read whole before any cell is interpreted. CSV is what spreadsheets write: commas, semicolons or tabs between
cells. Which column holds what is found in `columns.py`, the numbers in `cells.py`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from coterie.problem.checks import short
from coterie.tables.errors import TableError, check_time
from coterie.tables.reading.spreadsheets import as_it_was, digest_of, sheet_rows, unsaved_formula

SAVE_AS = 'save it as "CSV UTF-8" (Excel: File, Save As, CSV UTF-8; LibreOffice: Save As, Text CSV, Unicode (UTF-8))'
_LONGEST_FIELD = 1 << 20
_MOST_KNOWN = 10_000  # different cells
_MOST_LISTED = 3  # columns at fault that a message lists
_STEP = 1 << 20  # characters between two reports of how far the reading is
_TIMED = 256  # rows between two looks at the time
_TOLD: ContextVar[Callable[[float], None] | None] = ContextVar("told", default=None)


class Rows(Sequence[list[Any]]):
    """The rows of a file, their cells in a single list: of a million short rows, the lists alone take 100 MB."""

    def __init__(self, cells: list[Any], width: int) -> None:
        self._cells, self._width = cells, width

    def __len__(self) -> int:
        return len(self._cells) // self._width

    def __iter__(self) -> Iterator[list[Any]]:
        return (self._cells[start : start + self._width] for start in range(0, len(self._cells), self._width))

    @overload
    def __getitem__(self, row: int) -> list[Any]: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[list[Any]]: ...
    def __getitem__(self, row: int | slice) -> list[Any] | Sequence[list[Any]]:
        places = range(len(self))[row]
        if isinstance(places, int):
            return self._cells[places * self._width : (places + 1) * self._width]
        if places.step != 1:
            return [self[place] for place in places]
        return Rows(self._cells[places.start * self._width : places.stop * self._width], self._width)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Rows | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def column(self, place: int) -> list[Any]:
        """The cells of a column."""
        return self._cells[place :: self._width]


@dataclass(frozen=True)
class Table:
    """The content of a table, not yet interpreted: its name, its columns' names and its cells, row by row.

    `digest` is the SHA-256 of the content that was read. `decimal_comma`: the file does not separate its cells by
    commas, so that a comma inside a cell may be a decimal mark.
    """

    name: str
    columns: tuple[str, ...]
    rows: Sequence[list[Any]]
    digest: str
    lines: Sequence[int] | None = None  # of a CSV file: where each row begins; of a sheet: the number of each row
    decimal_comma: bool = False
    line_word: str = "line"  # what `lines` counts
    sheets: tuple[str, ...] = ()  # of an Excel file: all of its sheets
    index: tuple[str, ...] = ()  # columns that were the index of a frame: they may name items, and are no values

    def column(self, place: int) -> list[Any]:
        """The cells of the column at this place."""
        return self.rows.column(place) if isinstance(self.rows, Rows) else [row[place] for row in self.rows]

    def place(self, row: int) -> str:
        """Where people find a row: its line in a CSV file, else its number, counted from 1."""
        return f"row {row + 1}" if self.lines is None else f"{self.line_word} {self.lines[row]}"

    def problem(self, row: int, column: str, message: str) -> TableError:
        """The error to raise about a cell; it names the table, the place and the column."""
        place = self.place(row)
        return TableError(f"{self.name}, {place}, column {short(column)}: {message}", field=f"{place}, {column}")


def read_table(table: Any, sheet: str | None = None) -> Table:
    """Read a table from a path (Parquet if it ends in .parquet or .pq, Excel if it is a workbook, else CSV), a list of
    dictionaries or a frame; a `Table` is given back. `sheet`: which one of an Excel file, unless it is the first.
    """
    if isinstance(table, Table):
        return table
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        if path.suffix.lower() in (".parquet", ".pq"):
            content = _content(path)
            return _parquet(path.name, content, hashlib.sha256(content).hexdigest())
        return table_of_bytes(path.name, _content(path), sheet)
    index: tuple[str, ...] = ()
    if is_frame(table):
        columns, rows, index = _frame(table)
    elif isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        columns = tuple(dict.fromkeys(str(key) for row in table for key in row))
        rows = [[row.get(column) for column in columns] for row in table]
    else:
        got = f"{short(table)} ({type(table).__name__})"
        raise TableError(f"a table is a file, a DataFrame or a list of dictionaries, got {got}", field="table")
    try:
        digest = hashlib.sha256(json.dumps([columns, rows], default=repr).encode("utf-8", "replace")).hexdigest()
    except ValueError as error:
        raise TableError(f"the table cannot be read: {error}", field="table") from None
    return _checked(Table("the table", columns, rows, digest, index=index))


def table_of_bytes(name: str, content: bytes, sheet: str | None = None) -> Table:
    """Read a table that somebody sent: the content of a CSV or of an Excel file, and what to call it."""
    if is_workbook(content):
        return _workbook(name, content, sheet)
    if sheet is not None:
        raise TableError(f"only Excel files have sheets, {name} is none", field="sheet")
    digest, text = hashlib.sha256(content).hexdigest(), text_of_bytes(name, content)
    del content
    return _csv(name, text, digest)


def is_workbook(content: bytes) -> bool:
    """Whether this looks like an Excel file (.xlsx), whatever it is called."""
    return content.startswith(b"PK\x03\x04")


def is_frame(table: Any) -> bool:
    """Whether this is a pandas DataFrame, or something that can be read as one; pandas itself is not needed."""
    return all(hasattr(table, name) for name in ("columns", "index", "iloc")) and getattr(table, "ndim", 0) == 2


def _frame(frame: Any) -> tuple[tuple[str, ...], list[list[Any]], tuple[str, ...]]:
    """Columns and rows of a DataFrame, and which of the columns are its index.

    An index that is no plain numbering is a column too, since it may name the items. Without a name it is called `item`
    if it is text; one that has the name of a column is left out. Missing cells are empty ones.
    """
    columns = [str(column) for column in frame.columns]
    cells = [frame.iloc[:, i].tolist() for i in range(len(columns))]
    levels = [(frame.index.names[level], frame.index.get_level_values(level)) for level in range(frame.index.nlevels)]
    index: list[str] = []
    for name, level in levels:
        kept = level.tolist()
        text = any(isinstance(cell, str) for cell in kept)
        called = str(name) if name is not None else "item" if text and "item" not in columns else "index"
        if (name is None and not text) or called in (*columns, *index):
            continue
        index.append(called)
        cells.insert(len(index) - 1, kept)
    # A missing cell (None, NaN, NA, NaT) is the one that is not equal to itself, or that cannot say.
    rows = [[None if _missing(cell) else cell for cell in row] for row in zip(*cells, strict=True)]
    return (*index, *columns), rows, tuple(index)


def _missing(cell: Any) -> bool:
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return True


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"No such file: {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder: name the file in it") from None


def _csv(name: str, text: str, digest: str) -> Table:
    delimiter, declared = _delimiter(text)
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        reader = csv.reader(_lines(text), strict=True, delimiter=delimiter)
        lines = array("q")  # of a million rows, a list of numbers takes 40 MB
        header: tuple[str, ...] = ()
        content: list[Any] = []
        uneven: tuple[int, list[str]] | None = None
        try:
            numbered = _numbered(reader)
            for _, cells in itertools.islice(numbered, 1, 2) if declared else itertools.islice(numbered, 1):
                header = tuple(cells)
            for line, cells in numbered:
                while len(cells) > len(header) and not cells[-1]:  # spreadsheets fill lines up
                    cells.pop()
                lines.append(line)
                if len(cells) == len(header):
                    content += cells
                elif uneven is None:
                    uneven = line, cells
        except csv.Error as error:
            raise TableError(f"{name}, line {reader.line_num}: {error}", field="file") from None
    finally:
        csv.field_size_limit(before)
    if not header:
        raise TableError(f"{name} is empty: the first line names the columns", field="file")
    if uneven is not None:
        line, cells = uneven
        message = f"there are {len(cells)} cells, the header has {len(header)} columns"
        if len(header) == 1 and len(cells) > 1:
            message += f"; if line {line} names the columns, delete the lines above it"
        elif len(cells) == len(header) + 1 and cells[0] == "1" == str(line - lines[0] + 1):
            message += "; if R has numbered the rows, write the table with row.names = FALSE"
        elif len(cells) > len(header) and delimiter == ",":
            message += "; if it uses decimal commas, save it with semicolons between the cells"
        column = header[len(cells)] if len(cells) < len(header) else f"number {len(header) + 1}"
        raise TableError(f"{name}, line {line}, column {short(column)}: {message}", field=f"line {line}, {column}")
    in_turn = range(lines[0], lines[0] + len(lines)) if lines else range(0)
    at = in_turn if lines and lines[-1] == in_turn[-1] else lines.tolist()
    return _checked(Table(name, header, Rows(content, len(header)), digest, at, delimiter != ","))


def _workbook(name: str, content: bytes, wanted: str | None) -> Table:
    """A sheet of an Excel file: its first row that is not blank names the columns."""
    sheet, sheets, sheet_cells = sheet_rows(name, content, wanted)
    called = name if len(sheets) == 1 else f"{name}, sheet {short(sheet)}"
    numbered = [(number, cells) for number, cells in enumerate(sheet_cells, start=1) if cells]
    if not numbered:
        raise TableError(f"{called} is empty: the first row names the columns", field="file")
    header = tuple("" if cell is None else str(cell).strip() for cell in numbered[0][1])
    for number, cells in numbered[1:]:
        if len(cells) > len(header):
            message = f"there are {len(cells)} cells, the header has {len(header)} columns"
            raise TableError(f"{called}, row {number}: {message}", field=f"row {number}")
        cells += [None] * (len(header) - len(cells))
    gaps = {(number, i) for number, cells in numbered[1:] for i, cell in enumerate(cells) if cell is None}
    place = unsaved_formula(called, content, sheet, gaps) if gaps else None
    if place is not None:
        message = "the formula has no result in the file: open it in a spreadsheet and save it, or paste values"
        where = f"row {place[0]}, column {short(header[place[1]])}"
        raise TableError(f"{called}, {where}: {message}", field=f"row {place[0]}, {header[place[1]]}")
    rows = [[cell.strip() if isinstance(cell, str) else cell for cell in cells] for _, cells in numbered[1:]]
    lines = [number for number, _ in numbered[1:]]
    digest = digest_of(content, sheet, sheets)
    return _checked(Table(called, header, rows, digest, lines, line_word="row", sheets=tuple(sheets)))


def text_of_bytes(name: str, content: bytes) -> str:
    """The text of a file in UTF-8; the error says how to save it as one."""
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        message = "is a spreadsheet of an old kind (.xls), or one with a password"
        raise TableError(f"{name} {message}: save it as .xlsx, or {SAVE_AS}", field="file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        message = f"{name} is not a CSV file in UTF-8: line {line} cannot be read; {SAVE_AS}"
        raise TableError(message, field="file") from None


def _delimiter(text: str) -> tuple[str, bool]:
    """What stands between the cells of the header, and whether the file's first line is one that says so (sep=;)."""
    lines = (line.rstrip("\r\n") for line in _lines(text) if line.strip())
    header = next(lines, "")
    declared = re.fullmatch(r'"?sep=([,;\t])"?', header)
    if declared is not None:
        return declared[1], True
    first = next(lines, "")
    counts = {mark: (_unquoted(header).count(mark), _unquoted(first).count(mark)) for mark in "\t;,"}
    marks = [mark for mark in counts if counts[mark][0] > 0]
    # Names and decimal commas may bring in a second mark: the one between the cells is as frequent in the first row.
    return max(marks, key=lambda mark: (counts[mark][0] == counts[mark][1], counts[mark][0]), default=","), False


@contextmanager
def reading_told(tell: Callable[[float], None]) -> Iterator[None]:
    """Inside, `tell` is given the share of a CSV file that has been read, now and then."""
    before = _TOLD.set(tell)
    try:
        yield
    finally:
        _TOLD.reset(before)


def _lines(text: str) -> Iterator[str]:
    """The lines of a file with their ends, one after the other: a copy of all of them would be larger than the file."""
    tell, due = _TOLD.get(), _STEP
    if text.count("\r") != text.count("\r\n"):  # ends of lines as Macs once had them
        yield from io.StringIO(text, newline="")
        return
    start = 0
    while (end := text.find("\n", start) + 1) > 0:
        yield text[start:end]
        start = end
        if tell is not None and start >= due:
            tell(start / len(text))
            due = start + _STEP
    if start < len(text):
        yield text[start:]


def _unquoted(line: str) -> str:
    return re.sub(r'"[^"]*"?', "", line)


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of the line on which it begins."""
    before = 0
    known: dict[str, str] = {}  # one object for cells that are the same, such as the name of an item

    def tidied(cell: str) -> str:
        plain = cell.strip()
        plain = as_it_was(plain) if plain[:1] == "'" else plain
        if len(known) < _MOST_KNOWN:
            known[cell] = plain
        return plain

    for number, cells in enumerate(reader):
        if number % _TIMED == 0:
            check_time()
        stripped = [known.get(cell) or tidied(cell) for cell in cells]
        if any(stripped):
            yield before + 1, stripped
        before = reader.line_num


def _parquet(name: str, content: bytes, digest: str) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'coterie[parquet]', or use CSV") from None
    try:
        content_table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{name} is not a Parquet file: {' '.join(str(error).split())}", field="file") from None
    columns = tuple(str(column) for column in content_table.column_names)
    cells = [column.to_pylist() for column in content_table.columns]
    return _checked(Table(name, columns, [list(row) for row in zip(*cells, strict=True)] if cells else [], digest))


def _checked(table: Table) -> Table:
    """The table without columns that have neither a name nor a cell; two columns of one name are refused."""
    columns = table.columns
    kept = [i for i, column in enumerate(columns) if column or not all(map(is_empty, table.column(i)))]
    times = Counter(columns)
    twice = list(dict.fromkeys(columns[i] for i in kept if columns[i] and times[columns[i]] > 1))
    if twice:
        listed = ", ".join(short(column) for column in twice[:_MOST_LISTED])
        message = f"{table.name} has two columns {listed}: rename or remove one of them"
        raise TableError(message, field=twice[0])
    if len(kept) == len(columns):
        return table
    rows: Sequence[list[Any]] = [[row[i] for i in kept] for row in table.rows]
    if isinstance(table.rows, Rows):
        rows = Rows([row[i] for row in table.rows for i in kept], len(kept))
    return replace(table, columns=tuple(columns[i] for i in kept), rows=rows)


def is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing."""
    return cell is None or (isinstance(cell, str) and not cell.strip())
