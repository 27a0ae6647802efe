"""Excel files: read with the rows' own numbers, and never beyond their limits; written so that text stays text."""

from __future__ import annotations

import io
import os
import re
import zipfile
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.tables.errors import TableError
from coterie.tables.reading import spreadsheets
from coterie.tables.reading.cells import numbers
from coterie.tables.reading.files import read_table, table_of_bytes
from coterie.tables.reading.spreadsheets import workbook

openpyxl = pytest.importorskip("openpyxl")


def made(*sheets: tuple[str, list[list[Any]]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def changed(content: bytes, part: str, change: Any) -> bytes:
    """The same packed folder with one part changed."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.infolist():
            new.writestr(one.filename, change(old.read(one)) if one.filename == part else old.read(one))
    return written.getvalue()


def refused(content: bytes, sheet: str | None = None) -> str:
    with pytest.raises(TableError) as error:
        table_of_bytes("own.xlsx", content, sheet)
    return error.value.message


def test_rows_keep_their_numbers_and_blank_ones_are_left_out() -> None:
    content = made(("a", [[], ["item", "x"], ["p", 1], [], [None, " "], ["q", 2.5], ["r", "low"]]))
    table = table_of_bytes("own.xlsx", content)
    assert (table.columns, table.rows) == (("item", "x"), [["p", 1], ["q", 2.5], ["r", "low"]])
    assert [table.place(row) for row in range(3)] == ["row 3", "row 6", "row 7"]
    with pytest.raises(TableError, match=r"own\.xlsx, row 7, column 'x': a number is needed, got 'low'"):
        numbers(table, [1])


def test_a_sheet_is_the_first_or_the_one_named() -> None:
    content = made(("a", [["x"], [1]]), ("b", [["y"], [2]]))
    first, second = table_of_bytes("own.xlsx", content), table_of_bytes("own.xlsx", content, "b")
    assert (first.columns, first.name, second.columns) == (("x",), "own.xlsx, sheet 'a'", ("y",))
    assert first.digest != second.digest
    assert "has no sheet 'c'; its sheets are 'a', 'b'" in refused(content, "c")
    with pytest.raises(TableError, match="only Excel files have sheets"):
        table_of_bytes("own.csv", b"x\n1\n", "a")


def test_a_path_that_ends_otherwise_is_read_by_its_content(tmp_path: Any) -> None:
    (tmp_path / "own.csv").write_bytes(made(("a", [["x"], [1]])))
    assert read_table(tmp_path / "own.csv").rows == [[1]]


def test_dates_are_no_numbers() -> None:
    table = table_of_bytes("own.xlsx", made(("a", [["item", "x"], ["p", date(2026, 3, 1)]])))
    with pytest.raises(TableError, match=r"row 2, column 'x': a number is needed, not a date or time, got 2026-03-01"):
        numbers(table, [1])


def test_a_formula_gives_its_saved_result_and_without_one_it_is_named() -> None:
    content = made(("a", [["item", "x"], ["p", 1], ["q", "=B2*2"]]))  # a program wrote it: no result
    assert "row 3, column 'x': the formula has no result in the file" in refused(content)
    saved = changed(content, "xl/worksheets/sheet1.xml", lambda xml: re.sub(rb"<v\s*/>|<v></v>", b"<v>2</v>", xml))
    assert table_of_bytes("own.xlsx", saved).rows == [["p", 1], ["q", 2]]


def test_what_would_be_too_large_unpacked_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    content = made(("a", [["x"], [1]]))
    bomb = changed(content, "xl/worksheets/sheet1.xml", lambda xml: xml + b" " * (80 * 2**20))
    assert len(bomb) < 2**20
    assert "is too large unpacked: 80 MiB" in refused(bomb)


def test_cells_are_counted_whatever_the_file_says_of_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    content = made(("a", [["x"], [1]]))
    lying = changed(content, "xl/worksheets/sheet1.xml",
                    lambda xml: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:XFD1048576"', xml))  # fmt: skip
    assert table_of_bytes("own.xlsx", lying).rows == [[1]]
    far = changed(content, "xl/worksheets/sheet1.xml",
                  lambda xml: xml.replace(b'r="2"', b'r="999999999"').replace(b"A2", b"A999999999"))  # fmt: skip
    assert "row 1048577: at most" in refused(far)
    monkeypatch.setattr(spreadsheets, "MOST_CELLS", 10)
    assert "row 4: at most 10 cells" in refused(made(("a", [["x", "y", "z"]] * 5)))


def test_entities_that_grow_are_not_expanded() -> None:
    laughs = b"".join(b'<!ENTITY a%d "%s">' % (k, b"&a%d;" % (k - 1) * 10) for k in range(1, 10))
    head = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">' + laughs + b"]>"
    content = made(("a", [["x"], ["name"]]))
    bent = changed(content, "xl/worksheets/sheet1.xml",
                   lambda xml: head + re.sub(rb"^<\?xml[^>]*>", b"", xml).replace(b"<t>name", b"<t>&a9;"))  # fmt: skip
    assert "cannot be read as an Excel file" in refused(bent)


@pytest.mark.parametrize(
    "content",
    [b"PK\x03\x04", b"PK\x03\x04" + b"\0" * 100, made(("a", [["x"], [1]]))[:-40]],
    ids=["begun", "zeros", "cut"],
)
def test_broken_files_get_a_sentence(content: bytes) -> None:
    assert "own.xlsx cannot be read as an Excel file" in refused(content)


def test_a_packed_folder_that_is_no_workbook() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        packed.writestr("holiday.jpg", b"...")
    assert "cannot be read as an Excel file" in refused(written.getvalue())


GOOD = made(("a", [["item", "x"], ["p", 1], ["q", 2.5]]))


@settings(max_examples=int(os.environ.get("COTERIE_EXAMPLES", 60)), deadline=None)
@given(st.data())
def test_bent_files_are_read_or_refused(data: Any) -> None:
    """Whatever byte of a good file is another, the answer is a table or a `TableError`."""
    print("1 file")  # counted by `python -m bench.faults`
    content = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(TableError):
        assert table_of_bytes("own.xlsx", bytes(content)).columns


def test_written_text_is_text_numbers_are_numbers_dates_are_dates() -> None:
    risky = ["=1+1", "+1", "-x", "@a", "\tb", "'c", "#N/A", "plain", "1.5", "2026-01-01"]
    at = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    content = workbook("log", ["=name", "x", "when"], [[name, 0.1 + 0.2, at] for name in risky])
    sheet = openpyxl.load_workbook(io.BytesIO(content))["log"]
    assert sheet["A1"].data_type == "s"
    for row, name in enumerate(risky, start=2):
        text, number, when = sheet[row]
        assert (text.value, text.data_type) == (name, "s")
        assert text.quotePrefix == (name[0] in "=+-@\t'")
        assert (number.value, number.data_type) == (0.1 + 0.2, "n")
        assert (when.value, when.is_date) == (at.replace(tzinfo=None), True)
    assert b"<f>" not in zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml")


def test_characters_that_no_file_can_hold_are_replaced() -> None:
    assert table_of_bytes("own.xlsx", workbook("a", ["x"], [["a\x07b"]])).rows == [["a\ufffdb"]]


def test_without_openpyxl_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    for use in (lambda: table_of_bytes("own.xlsx", b"PK\x03\x04"), lambda: workbook("a", ["x"], [])):
        with pytest.raises(ImportError, match="pip install openpyxl"):
            use()
