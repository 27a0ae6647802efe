"""Tables of measurements: CSV and Parquet files, or rows in memory, read whole before anything is believed.

CSV is what spreadsheets write: commas, semicolons or tabs between cells, with a decimal comma where the comma is free.
Errors name the line of the file (of Parquet and of rows in memory: the row, counted from 1) and the column.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.campaign.errors import BadValue
from coterie.campaign.settings import Settings, check_text
from coterie.problem.checks import short

ITEM_NAMES = ("arm", "item", "sample", "name")
"""What the column of the items may be called, in any case; in a pool `id` too, if there is none of these."""

SAVE_AS = 'save it as "CSV UTF-8" (Excel: File, Save As, CSV UTF-8; LibreOffice: Save As, Text CSV, Unicode (UTF-8))'
ABOUT_CELLS = (
    "leave a whole row out only if the reason has nothing to do with its value (docs/CAMPAIGNS.md, "
    '"Cells that are not numbers")'
)

_LONGEST_FIELD = 1 << 20
_NAMED = 3  # of many cells that cannot be read, so many are named
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Recorded:
    """A table as it was read: names of columns, cells, and a digest of the content it came from."""

    name: str
    columns: tuple[str, ...]
    rows: list[list[Any]]
    digest: str
    lines: list[int] | None = None  # of a CSV file: where each row begins
    decimal_comma: bool = False

    def place(self, row: int) -> str:
        """Where people find a row."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def problem(self, row: int, column: str, what: str) -> BadValue:
        """An error in a cell."""
        place = self.place(row)
        return BadValue(f"{self.name}, {place}, column {short(column)}: {what}", field=f"{place}, {column}")


def read_table(table: Any) -> Recorded:
    """A table from a path (.parquet, else CSV) or from a list of dictionaries."""
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        content = _content(path)
        digest = hashlib.sha256(content).hexdigest()
        if path.suffix.lower() in (".parquet", ".pq"):
            return _parquet(path.name, content, digest)
        return _csv(path.name, content, digest)
    if not isinstance(table, Sequence) or not all(isinstance(row, Mapping) for row in table):
        raise BadValue(f"a table is a file or a list of dictionaries, got {short(table)}", field="table")
    columns = tuple(dict.fromkeys(str(key) for row in table for key in row))
    rows = [[row.get(column) for column in columns] for row in table]
    try:
        digest = hashlib.sha256(json.dumps([columns, rows], default=repr).encode("utf-8", "replace")).hexdigest()
    except ValueError as error:
        raise BadValue(f"the table cannot be read: {error}", field="table") from None
    return _checked(Recorded("the table", columns, rows, digest))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"No such file: {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder: name the CSV or Parquet file in it") from None


def _csv(name: str, content: bytes, digest: str) -> Recorded:
    text = _text(name, content)
    delimiter, declared = _delimiter(text)
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
        try:
            found = list(_numbered(reader))[1 if declared else 0 :]
        except csv.Error as error:
            raise BadValue(f"{name}, line {reader.line_num}: {error}", field="file") from None
    finally:
        csv.field_size_limit(before)
    if not found:
        raise BadValue(f"{name} is empty: the first line names the columns", field="file")
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
            raise BadValue(f"{name}, line {line}, column {short(column)}: {what}", field=f"line {line}, {column}")
        rows.append(list(cells))
    lines = [line for line, _ in found[1:]]
    return _checked(Recorded(name, header, rows, digest, lines, delimiter != ","))


def _text(name: str, content: bytes) -> str:
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise BadValue(f"{name} is a spreadsheet, not a CSV file: {SAVE_AS}", field="file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        what = f"{name} is not a CSV file in UTF-8: line {line} cannot be read; {SAVE_AS}"
        raise BadValue(what, field="file") from None


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
    """Rows that are not blank, with the line on which they begin."""
    before = 0
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            yield before + 1, stripped
        before = reader.line_num


def _parquet(name: str, content: bytes, digest: str) -> Recorded:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'coterie[parquet]', or use CSV") from None
    try:
        found = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadValue(f"{name} is not a Parquet file: {' '.join(str(error).split())}", field="file") from None
    columns = tuple(str(column) for column in found.column_names)
    cells = [column.to_pylist() for column in found.columns]
    return _checked(Recorded(name, columns, [list(row) for row in zip(*cells, strict=True)] if cells else [], digest))


def _checked(table: Recorded) -> Recorded:
    """Without columns that have neither a name nor a cell; every other name must be there once."""
    columns = table.columns
    kept = [i for i, column in enumerate(columns) if column or not all(_empty(row[i]) for row in table.rows)]
    twice = list(dict.fromkeys(columns[i] for i in kept if columns[i] and columns.count(columns[i]) > 1))
    if twice:
        listed = ", ".join(short(column) for column in twice[:_NAMED])
        what = f"{table.name} has two columns {listed}: rename or remove one of them"
        raise BadValue(what, field=twice[0])
    if len(kept) == len(columns):
        return table
    rows = [[row[i] for i in kept] for row in table.rows]
    return Recorded(table.name, tuple(columns[i] for i in kept), rows, table.digest, table.lines, table.decimal_comma)


def _empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


# Which column is what.


def column_named(table: Recorded, wanted: str) -> int:
    """The place of a column: of exactly this name or, if there is one only, of this name in another case."""
    if wanted in table.columns:
        return table.columns.index(wanted)
    alike = [i for i, column in enumerate(table.columns) if column.casefold() == wanted.strip().casefold()]
    if len(alike) != 1:
        what = f"{table.name} has no column {short(wanted)}; its columns are {listed(table.columns)}"
        raise BadValue(what, field=str(wanted))
    return alike[0]


def listed(columns: Sequence[str]) -> str:
    """Names of columns in a message."""
    text = ", ".join(column or "(no name)" for column in columns)
    return text if len(text) <= 200 else text[:197] + "..."


def item_column(table: Recorded, names: Sequence[str] = ITEM_NAMES) -> int | None:
    """The place of the column that says what was measured, if it has one of these names."""
    for name in names:
        alike = [column for column in table.columns if column.casefold() == name]
        if alike:
            return table.columns.index(name if name in alike else alike[0])
    return None


def value_columns(
    table: Recorded, item: int, dim: int | None, wanted: Sequence[str] | None = None, numeric: bool = False
) -> list[int]:
    """The places of the columns that hold the values: those wanted, or v0, v1, …, or all but items and id.

    With `numeric`, columns without a single number are left out of the last.
    """
    columns = table.columns
    if wanted is not None:
        found = [column_named(table, column) for column in wanted]
        if item in found or len(set(found)) < len(found):
            raise BadValue(f"the columns of values must differ, and from that of the items, got {short(list(wanted))}")
    elif "v0" in columns:
        numbered = [f"v{i}" for i in range(len(columns))]
        found = [columns.index(column) for column in numbered if column in columns]
    else:
        rest = [i for i, column in enumerate(columns) if i != item and column and column.casefold() != "id"]
        found = [i for i in rest if not numeric or has_numbers(table, i)]
    if not found or (dim is not None and len(found) != dim):
        named = [columns[i] for i in found]
        expected = "at least one column" if dim is None else f"{dim} column{'s' if dim > 1 else ''}"
        raise BadValue(f"{table.name} needs {expected} of values, it has {short(named)}", field="values")
    return found


def has_numbers(table: Recorded, place: int) -> bool:
    """Whether any cell of a column is a number."""
    return any(_read(table, row[place])[0] is not None for row in table.rows)


def measurements(table: Recorded, settings: Settings, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows as results to be told. Without a column id, ids follow from the content and the row's number."""
    arm_at = item_column(table)
    if arm_at is None:
        others = " or ".join(ITEM_NAMES[1:])
        what = f"{table.name} needs a column arm (or {others}); its columns are {listed(table.columns)}"
        raise BadValue(what, field="arm")
    if wanted is None and settings.value_names is not None and set(settings.value_names) <= set(table.columns):
        wanted = settings.value_names
    rows = numbers(table, value_columns(table, arm_at, settings.dim, wanted))
    id_at = table.columns.index("id") if "id" in table.columns else None
    index = {} if settings.names is None else {name: arm for arm, name in enumerate(settings.names)}
    seen: dict[str, int] = {}
    found = []
    for number, (row, values) in enumerate(zip(table.rows, rows, strict=True)):
        arm = _arm(table, number, arm_at, row[arm_at], index, settings.n_arms)
        name = f"import-{table.digest[:24]}-{number + 1}" if id_at is None else _id(table, number, row[id_at])
        if seen.setdefault(name, number) != number:
            raise table.problem(number, "id", f"{short(name)} is the id of {table.place(seen[name])} too")
        found.append({"id": name, "arm": arm, "values": values})
    return found


def _id(table: Recorded, number: int, cell: Any) -> str:
    number_given = isinstance(cell, int) and not isinstance(cell, bool)
    try:
        return check_text(str(cell) if number_given else cell, "an id")
    except BadValue as error:
        raise table.problem(number, "id", error.message) from None


def _arm(table: Recorded, number: int, place: int, cell: Any, index: Mapping[str, int], n_arms: int) -> int:
    if isinstance(cell, str) and cell in index:
        return index[cell]
    arm = whole(cell)
    if arm is None or not 0 <= arm < n_arms:
        known = f"a name such as {short(next(iter(index)))}, or " if index else ""
        what = f"unknown arm {short(cell)}: use {known}a number from 0 to {n_arms - 1}"
        raise table.problem(number, table.columns[place], what)
    return arm


def whole(cell: Any) -> int | None:
    """A cell as a whole number, if it is one."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, str):
        digits = cell.removeprefix("-")
        return int(cell) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    if isinstance(cell, float):
        return int(cell) if math.isfinite(cell) and cell == math.floor(cell) and abs(cell) < 2**53 else None
    return cell if isinstance(cell, int) else None


# Numbers.


def _read(table: Recorded, cell: Any) -> tuple[float | None, str]:
    """The number in a cell, or why there is none."""
    needed = "a number is needed"
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None, needed
    if isinstance(cell, str):
        if "_" in cell:
            return None, needed
        if table.decimal_comma and _DECIMAL_COMMA.fullmatch(cell):
            cell = cell.replace(",", ".")
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None, needed
    return (number, "") if math.isfinite(number) else (None, "a finite number is needed")


def numbers(table: Recorded, places: Sequence[int]) -> list[list[float]]:
    """The values of every row; the error counts all cells that are none, and names the first of them."""
    found: list[list[float]] = []
    bad: list[tuple[int, int, str]] = []
    for number, row in enumerate(table.rows):
        values = []
        for i in places:
            value, what = _read(table, row[i])
            if value is None:
                bad.append((number, i, what))
            else:
                values.append(value)
        found.append(values)
    if bad:
        raise _bad_cells(table, bad)
    _one_decimal_mark(table, places)
    return found


def _bad_cells(table: Recorded, bad: list[tuple[int, int, str]]) -> BadValue:
    row, place, what = bad[0]
    more = [
        f"{table.place(row)}, column {_cut(table.columns[i])}: {_cut(table.rows[row][i])}"
        for row, i, _ in bad[1 : 1 + _NAMED]
    ]
    left = len(bad) - 1 - len(more)
    others = f"; {len(bad)} such cells, also {'; '.join(more)}{f'; and {left} more' if left else ''}" if more else ""
    what = f"{what}, got {_cut(table.rows[row][place])}{others}; {ABOUT_CELLS}"
    return table.problem(row, table.columns[place], what)


def _cut(cell: Any) -> str:
    text = short(cell)
    return text if len(text) <= 24 else text[:21] + "..."


def _one_decimal_mark(table: Recorded, places: Sequence[int]) -> None:
    """1,234 is 1.234 to some and a thousand to others: a file with both marks is not guessed at."""
    if not table.decimal_comma:
        return
    seen: dict[str, tuple[int, int]] = {}
    for number, row in enumerate(table.rows):
        for i in places:
            for mark in ",.":
                if mark in row[i]:
                    seen.setdefault(mark, (number, i))
    if len(seen) == 2:
        (comma, i), (point, j) = seen[","], seen["."]
        what = (
            f"{_cut(table.rows[comma][i])} has a decimal comma, but {table.place(point)}, column "
            f"{_cut(table.columns[j])}, has a point, {_cut(table.rows[point][j])}: use one of the two everywhere"
        )
        raise table.problem(comma, table.columns[i], what)
