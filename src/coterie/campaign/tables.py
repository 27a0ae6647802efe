"""Tables of measurements: CSV and Parquet files, or rows in memory, read whole before anything is believed.

Errors name the row and the column. Rows are counted from 1, without the header, as spreadsheets count records.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.campaign.errors import BadValue
from coterie.campaign.settings import Settings, check_text
from coterie.problem.checks import short

_LONGEST_FIELD = 1 << 20


@dataclass(frozen=True)
class Recorded:
    """A table as it was read: names of columns, cells, and a digest of the content it came from."""

    name: str
    columns: tuple[str, ...]
    rows: list[list[Any]]
    digest: str

    def problem(self, row: int, column: str, what: str) -> BadValue:
        """An error in a cell."""
        return BadValue(f"{self.name}, row {row + 1}, column {short(column)}: {what}", field=f"row {row + 1}, {column}")


def read_table(table: Any) -> Recorded:
    """A table from a path (.parquet, else CSV) or from a list of dictionaries."""
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        content = path.read_bytes()
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
    return _checked("the table", columns, rows, digest)


def _csv(name: str, content: bytes, digest: str) -> Recorded:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadValue(f"{name} is not a CSV file in UTF-8: line {line} cannot be read", field="file") from None
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        try:
            lines = [line for line in reader if line]
        except csv.Error as error:
            raise BadValue(f"{name}, line {reader.line_num}: {error}", field="file") from None
    finally:
        csv.field_size_limit(before)
    if not lines:
        raise BadValue(f"{name} is empty: the first line names the columns", field="file")
    header = tuple(cell.strip() for cell in lines[0])
    rows: list[list[Any]] = []
    for number, cells in enumerate(lines[1:]):
        if len(cells) != len(header):
            what = f"there are {len(cells)} cells, the header has {len(header)} columns"
            column = header[len(cells)] if len(cells) < len(header) else f"number {len(header) + 1}"
            raise BadValue(
                f"{name}, row {number + 1}, column {short(column)}: {what}", field=f"row {number + 1}, {column}"
            )
        rows.append([cell.strip() for cell in cells])
    return _checked(name, header, rows, digest)


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
    return _checked(name, columns, [list(row) for row in zip(*cells, strict=True)] if cells else [], digest)


def _checked(name: str, columns: tuple[str, ...], rows: list[list[Any]], digest: str) -> Recorded:
    twice = next((column for i, column in enumerate(columns) if column in columns[:i]), None)
    if twice is not None:
        raise BadValue(f"{name} has two columns {short(twice)}", field=twice)
    if "arm" not in columns:
        raise BadValue(f"{name} needs a column arm; its columns are {short(list(columns))}", field="arm")
    return Recorded(name, columns, rows, digest)


def value_columns(table: Recorded, dim: int | None, wanted: Sequence[str] | None = None) -> list[int]:
    """The places of the columns that hold the values: those wanted, or v0, v1, …, or all but arm and id."""
    columns = table.columns
    if wanted is not None:
        missing = next((column for column in wanted if column not in columns), None)
        if missing is not None:
            what = f"{table.name} has no column {short(missing)}; its columns are {short(list(columns))}"
            raise BadValue(what, field=str(missing))
        found = [columns.index(column) for column in wanted]
    elif "v0" in columns:
        numbered = [f"v{i}" for i in range(len(columns))]
        found = [columns.index(column) for column in numbered if column in columns]
    else:
        found = [i for i, column in enumerate(columns) if column not in ("arm", "id")]
    if not found or (dim is not None and len(found) != dim):
        named = [columns[i] for i in found]
        expected = "at least one column" if dim is None else f"{dim} column{'s' if dim > 1 else ''}"
        raise BadValue(f"{table.name} needs {expected} of values, it has {short(named)}", field="values")
    return found


def measurements(table: Recorded, settings: Settings, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows as results to be told. Without a column id, ids follow from the content and the row's number."""
    places = value_columns(table, settings.dim, wanted)
    arm_at = table.columns.index("arm")
    id_at = table.columns.index("id") if "id" in table.columns else None
    index = {} if settings.names is None else {name: arm for arm, name in enumerate(settings.names)}
    seen: dict[str, int] = {}
    found = []
    for number, row in enumerate(table.rows):
        arm = _arm(table, number, row[arm_at], index, settings.n_arms)
        values = [_number(table, number, i, row[i]) for i in places]
        name = f"import-{table.digest[:24]}-{number + 1}" if id_at is None else _id(table, number, row[id_at])
        if seen.setdefault(name, number) != number:
            raise table.problem(number, "id", f"{short(name)} is the id of row {seen[name] + 1} too")
        found.append({"id": name, "arm": arm, "values": values})
    return found


def _id(table: Recorded, number: int, cell: Any) -> str:
    number_given = isinstance(cell, int) and not isinstance(cell, bool)
    try:
        return check_text(str(cell) if number_given else cell, "an id")
    except BadValue as error:
        raise table.problem(number, "id", error.message) from None


def _arm(table: Recorded, number: int, cell: Any, index: Mapping[str, int], n_arms: int) -> int:
    if isinstance(cell, str) and cell in index:
        return index[cell]
    arm = whole(cell)
    if arm is None or not 0 <= arm < n_arms:
        known = f"a name such as {short(next(iter(index)))}, or " if index else ""
        raise table.problem(number, "arm", f"unknown arm {short(cell)}: use {known}a number from 0 to {n_arms - 1}")
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


def _number(table: Recorded, row: int, place: int, cell: Any) -> float:
    column = table.columns[place]
    try:
        if isinstance(cell, bool) or not isinstance(cell, str | int | float) or (isinstance(cell, str) and "_" in cell):
            raise ValueError
        number = float(cell)
    except (ValueError, OverflowError):
        raise table.problem(row, column, f"a number is needed, got {short(cell)}") from None
    if not math.isfinite(number):
        raise table.problem(row, column, f"a finite number is needed, got {short(cell)}")
    return number


def numbers(table: Recorded, places: Sequence[int]) -> list[list[float]]:
    """The values of every row."""
    return [[_number(table, number, i, row[i]) for i in places] for number, row in enumerate(table.rows)]
