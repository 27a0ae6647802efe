"""Tables that would take long: many columns, and a limit to the time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.tables.errors import TableError, time_limit
from coterie.tables.reading.cells import numbers
from coterie.tables.reading.columns import value_columns
from coterie.tables.reading.files import _checked, table_of_bytes
from coterie.tables.reading.spreadsheets import workbook


def test_forty_thousand_columns_are_looked_at_once() -> None:
    """Not each of them compared with all others: that took 16 seconds."""
    columns = [f"v{i}" for i in range(40_000)]
    compared = 0

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    text = ",".join(["item", *columns]) + "\n" + ",".join(["a", *(["1"] * len(columns))]) + "\n"
    table = table_of_bytes("wide.csv", text.encode())
    named = replace(table, columns=tuple(Name(column) for column in table.columns))
    assert len(value_columns(named, 0, None)) == 40_000
    assert len(value_columns(named, 0, None, columns)) == 40_000
    assert _checked(named) is named
    assert compared < 1_000_000
    with pytest.raises(TableError, match="two columns 'v7'"):
        table_of_bytes("twice.csv", text.replace("v8,", "v7,").encode())


def test_reading_ends_when_its_time_is_over() -> None:
    text = "item,x\n" + "a,1\n" * 1000
    book = workbook("s", ["item", "x"], [["a", 1.0]] * 1000)
    for name, content in (("t.csv", text.encode()), ("t.xlsx", book)):
        assert len(table_of_bytes(name, content).rows) == 1000
        with time_limit(-1.0), pytest.raises(TableError, match="took too long to be read") as caught:
            table_of_bytes(name, content)
        assert caught.value.field == "file"
    table = table_of_bytes("t.csv", text.encode())
    with time_limit(-1.0), pytest.raises(TableError, match="took too long"):
        numbers(table, [1])
