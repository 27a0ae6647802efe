"""Reading tables: CSV and Parquet files and rows in memory become a `Table` of names of columns and raw cells.

A file is read whole before any cell is interpreted. CSV is what spreadsheets write: commas, semicolons or tabs between
cells. Which column holds what is found in `coterie.tables.columns`, the numbers in `coterie.tables.cells`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.problem.checks import short
from coterie.tables.errors import TableError

SAVE_AS = 'save it as "CSV UTF-8" (Excel: File, Save As, CSV UTF-8; LibreOffice: Save As, Text CSV, Unicode (UTF-8))'

_LONGEST_FIELD = 1 << 20
_MOST_LISTED = 3  # columns at fault that a message lists


@dataclass(frozen=True)
class Table:
    """The content of a table, not yet interpreted: its name, its columns' names and its cells, row by row.

    `digest` is the SHA-256 of the content that was read. `decimal_comma`: the file does not separate its cells by
    commas, so that a comma inside a cell may be a decimal mark.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[list[Any]]
    digest: str
    lines: list[int] | None = None  # of a CSV file: where each row begins
    decimal_comma: bool = False

    def place(self, row: int) -> str:
        """Where people find a row: its line in a CSV file, else its number, counted from 1."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def problem(self, row: int, column: str, what: str) -> TableError:
        """The error to raise about a cell; it names the table, the place and the column."""
        place = self.place(row)
        return TableError(f"{self.name}, {place}, column {short(column)}: {what}", field=f"{place}, {column}")


def read_table(table: Any) -> Table:
    """Read a table from a path (Parquet if it ends in .parquet or .pq, else CSV) or from a list of dictionaries."""
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        content = _content(path)
        digest = hashlib.sha256(content).hexdigest()
        if path.suffix.lower() in (".parquet", ".pq"):
            return _parquet(path.name, content, digest)
        return _csv(path.name, content, digest)
    if not isinstance(table, Sequence) or not all(isinstance(row, Mapping) for row in table):
        raise TableError(f"a table is a file or a list of dictionaries, got {short(table)}", field="table")
    columns = tuple(dict.fromkeys(str(key) for row in table for key in row))
    rows = [[row.get(column) for column in columns] for row in table]
    try:
        digest = hashlib.sha256(json.dumps([columns, rows], default=repr).encode("utf-8", "replace")).hexdigest()
    except ValueError as error:
        raise TableError(f"the table cannot be read: {error}", field="table") from None
    return _checked(Table("the table", columns, rows, digest))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"No such file: {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder: name the CSV or Parquet file in it") from None


def _csv(name: str, content: bytes, digest: str) -> Table:
    text = _text(name, content)
    delimiter, declared = _delimiter(text)
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
        try:
            found = list(_numbered(reader))[1 if declared else 0 :]
        except csv.Error as error:
            raise TableError(f"{name}, line {reader.line_num}: {error}", field="file") from None
    finally:
        csv.field_size_limit(before)
    if not found:
        raise TableError(f"{name} is empty: the first line names the columns", field="file")
    header = tuple(found[0][1])
    rows: list[list[Any]] = []
    for line, cells in found[1:]:
        while len(cells) > len(header) and not cells[-1]:  # spreadsheets fill lines up
            cells.pop()
        if len(cells) != len(header):
            what = f"there are {len(cells)} cells, the header has {len(header)} columns"
            if len(cells) > len(header) and delimiter == ",":
                what += "; if it uses decimal commas, save it with semicolons between the cells"
            column = header[len(cells)] if len(cells) < len(header) else f"number {len(header) + 1}"
            raise TableError(f"{name}, line {line}, column {short(column)}: {what}", field=f"line {line}, {column}")
        rows.append(list(cells))
    lines = [line for line, _ in found[1:]]
    return _checked(Table(name, header, rows, digest, lines, delimiter != ","))


def _text(name: str, content: bytes) -> str:
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise TableError(f"{name} is a spreadsheet, not a CSV file: {SAVE_AS}", field="file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        what = f"{name} is not a CSV file in UTF-8: line {line} cannot be read; {SAVE_AS}"
        raise TableError(what, field="file") from None


def _delimiter(text: str) -> tuple[str, bool]:
    """What stands between the cells of the header, and whether the file's first line is one that says so (sep=;)."""
    lines = (line.rstrip("\r\n") for line in io.StringIO(text) if line.strip())
    header = next(lines, "")
    declared = re.fullmatch(r'"?sep=([,;\t])"?', header)
    if declared is not None:
        return declared[1], True
    first = next(lines, "")
    counts = {mark: (_unquoted(header).count(mark), _unquoted(first).count(mark)) for mark in "\t;,"}
    marks = [mark for mark in counts if counts[mark][0] > 0]
    # Names and decimal commas may bring in a second mark: the one between the cells is as frequent in the first row.
    return max(marks, key=lambda mark: (counts[mark][0] == counts[mark][1], counts[mark][0]), default=","), False


def _unquoted(line: str) -> str:
    return re.sub(r'"[^"]*"?', "", line)


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of the line on which it begins."""
    before = 0
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
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
        found = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{name} is not a Parquet file: {' '.join(str(error).split())}", field="file") from None
    columns = tuple(str(column) for column in found.column_names)
    cells = [column.to_pylist() for column in found.columns]
    return _checked(Table(name, columns, [list(row) for row in zip(*cells, strict=True)] if cells else [], digest))


def _checked(table: Table) -> Table:
    """The table without columns that have neither a name nor a cell; two columns of one name are refused."""
    columns = table.columns
    kept = [i for i, column in enumerate(columns) if column or not all(_empty(row[i]) for row in table.rows)]
    twice = list(dict.fromkeys(columns[i] for i in kept if columns[i] and columns.count(columns[i]) > 1))
    if twice:
        listed = ", ".join(short(column) for column in twice[:_MOST_LISTED])
        what = f"{table.name} has two columns {listed}: rename or remove one of them"
        raise TableError(what, field=twice[0])
    if len(kept) == len(columns):
        return table
    rows = [[row[i] for i in kept] for row in table.rows]
    return Table(table.name, tuple(columns[i] for i in kept), rows, table.digest, table.lines, table.decimal_comma)


def _empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
