"""Lists of items: text, CSV and Excel, with everything that is wrong named by its row."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.tables.errors import TableError
from coterie.tables.reading.item_lists import read_items, read_pasted_items
from coterie.tables.reading.spreadsheets import workbook


def excel(*rows: list[Any]) -> bytes:
    pytest.importorskip("openpyxl")
    return workbook("items", *([*rows[:1], list(rows[1:])]))


@pytest.mark.parametrize(
    ("name", "content", "names", "costs"),
    [
        ("a.txt", b"x, left\n\ny\n", ["x, left", "y"], None),
        ("a.csv", b"x\ny\n", ["x", "y"], None),
        ("a.csv", b"Name\nx\ny\n", ["x", "y"], None),
        ("a.txt", b"name\nx\n", ["name", "x"], None),  # one name a line, and nothing else
        ("a.csv", b"cost,Sample\n2,x\n3.5,y\n", ["x", "y"], [2.0, 3.5]),
        ("a.csv", "name;cost\nß;1,5\ny;2\n".encode(), ["ß", "y"], [1.5, 2.0]),
        ("a.csv", b"cost,thing\n2,x\n3,y\n", ["x", "y"], [2.0, 3.0]),
    ],
)
def test_texts_and_csv(name: str, content: bytes, names: list[str], costs: list[float] | None) -> None:
    found = read_items(name, content)
    assert (found.names, found.costs) == (names, costs)


def test_excel() -> None:
    found = read_items("a.xlsx", excel(["Item", "cost", "shelf"], ["x", 2, "A"], [None, None, None], [7, 3.5, "B"]))
    assert (found.names, found.costs) == (["x", "7"], [2.0, 3.5])
    assert found.remarks == ["Not used: column shelf.", "1 blank row left out."]
    alone = read_items("a.xlsx", excel(["x"], ["y"]))
    assert alone.names == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.csv", b"x\ny\nx\n", "a.csv: line 3: 'x' is the name of line 1 too"),
        ("a.csv", b"name,cost\nx,1\n,2\ny,zero\nz,-1\n", "line 3: there is no name; line 4, column cost: a number"),
        ("a.csv", b"name,cost\nx,0\n", "line 2, column cost: a cost is above 0, got 0"),
        ("a.csv", b"apple,3\npear,4\n", "the first row must name the columns, name and cost if there is one; it is"),
        ("a.csv", b"name,cost\n", "names no item"),
        ("a.txt", b"\n \n", "names no item"),
        ("a.txt", b"a\xff\n", "a.txt is not a CSV file in UTF-8"),
        ("a.csv", "name\na\u202eb\n".encode(), "line 2: a name must not hold control or direction characters (U+202E)"),
        ("a.csv", b"a,b,cost\nx,y,1\n", "a.csv needs a column name"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(name: str, content: bytes, what: str) -> None:
    with pytest.raises(TableError) as error:
        read_items(name, content)
    assert what in error.value.message


def test_dates_truth_values_and_errors_of_a_spreadsheet_are_no_names() -> None:
    rows: list[list[Any]] = [["name"], [datetime(2026, 3, 1)], [True], ["#N/A"], ["x"]]
    with pytest.raises(TableError) as error:
        read_items("a.xlsx", excel(*rows))
    for what in ("row 2: 2026-03-01 00:00:00 is a date", "row 3: True is no name", "row 4: '#N/A' is no name"):
        assert what in error.value.message


def test_many_problems_are_counted() -> None:
    with pytest.raises(TableError, match="and 4 more"):
        read_items("a.csv", b"x\n" * 10)


NAME = st.text(st.characters(whitelist_categories=("L", "N")), min_size=1, max_size=8)


@given(st.lists(NAME, min_size=1, max_size=20, unique=True))
def test_a_list_keeps_its_names_and_their_order(names: list[str]) -> None:
    assert read_items("a.txt", "\n".join(names).encode()).names == names
    assert read_pasted_items("\r\n".join(names)).names == names
    cells = "item\tcost\n" + "".join(f"{name}\t{i + 1}\n" for i, name in enumerate(names))
    found = read_pasted_items(cells)
    assert (found.names, found.costs) == (names, [float(i + 1) for i in range(len(names))])
