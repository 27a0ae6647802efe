"""Numbers that measure nothing are no values: row numbers, ids, dates, times, plans. Nor is the index of a frame."""

from __future__ import annotations

import tracemalloc
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.tables import TableError
from coterie.tables.growing import differing_items
from coterie.tables.reading.cells import numbers_and_others, numbers_of
from coterie.tables.reading.columns import no_measurement
from coterie.tables.reading.files import Table, reading_told, table_of_bytes
from coterie.tables.reading.pools import read_pool

ITEMS = np.repeat(np.arange(6), 12)
"""The items of a table with 12 rows each, one after the other."""


def why(cells: list[Any], name: str = "x", arms: Any = ITEMS) -> str | None:
    assert arms is None or len(cells) == len(arms)
    return no_measurement(Table("t.csv", ("item", name), [["", cell] for cell in cells], ""), 1, arms)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_are_on_their_lines_whatever_ends_these(end: str) -> None:
    whole = table_of_bytes("t.csv", end.join(["item,x", "a,1", " b ,2", "c,3"]).encode())
    assert [whole.place(row) for row in range(3)] == ["line 2", "line 3", "line 4"]
    assert whole.rows == [["a", "1"], ["b", "2"], ["c", "3"]]
    gaps = table_of_bytes("t.csv", end.join(["sep=;", "item;x", "a;1", "", f'"b{end}c";2', "'=d;3", ""]).encode())
    assert gaps.rows == [["a", "1"], [f"b{end}c", "2"], ["=d", "3"]]
    assert [gaps.place(row) for row in range(3)] == ["line 3", "line 5", "line 7"]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


DATES = [f"2024{1 + k % 12:02d}{1 + k % 28:02d}" for k in range(72)]


@pytest.mark.parametrize(
    ("cells", "name", "words"),
    [
        (list(range(1, 73)), "x", "counts the rows: 1, 2, 3, …"),
        (list(range(72)), "x", "counts the rows"),
        ([str(k) for k in range(72, 0, -1)], "x", "counts the rows: 72, 71, 70"),
        (list(range(101, 173)), "x", "counts the rows"),
        ((1 + rng().permutation(72)).tolist(), "x", "every whole number from 1 to 72 once"),
        (rng().choice(10_000, 72, replace=False).tolist(), "rownames", "counts the rows"),
        ((0.5 * np.arange(72)).tolist(), "x", "equal steps"),
        (list(range(1, 13)) * 6, "x", "counts"),
        ([k for _ in range(6) for k in rng().permutation(12).tolist()], "x", "the rows of each item"),
        ([0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 21] * 6, "x", "the same in every item"),
        ([0.5] * 4 + [1.0] * 4 + [2.0] * 4 + [1.0, 0.5, 2.0] * 20, "dose", "the same in every item"),
        (rng().integers(10_000, 99_999, 72).tolist(), "patient_id", "an id"),
        (rng().integers(10_000, 99_999, 72).tolist(), "patientId", "an id"),
        ([f"{k:05d}" for k in rng().integers(0, 99_999, 72)], "x", "a code"),
        ([str(uuid.UUID(int=int(k))) for k in rng().integers(0, 2**60, 72)], "x", "an id"),
        (DATES, "x", "a date"),
        ([int(day) for day in DATES], "x", "a date"),
        ((1950 + np.sort(rng().integers(0, 70, 72))).tolist(), "x", "a year"),
        ((1950 + rng().integers(0, 70, 72)).tolist(), "Year", "a year"),
        ((1.7e9 + np.cumsum(rng().random(72))).tolist(), "x", "since 1970"),
        (np.cumsum(rng().random(72)).tolist(), "time (s)", "a time"),
        (np.repeat([11, 7, 19, 3, 2, 5], 12).tolist(), "x", "stands for the item"),
    ],
)  # fmt: skip
def test_numbers_that_measure_nothing_are_known_by_their_content(cells: list[Any], name: str, words: str) -> None:
    found = why(cells, name)
    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (rng().normal(size=72).tolist(), "x"),
        (rng().normal(size=72).round(1).tolist(), "time"),  # a duration that was measured
        (rng().integers(1, 6, 72).tolist(), "rating"),
        (rng().integers(0, 2, 72).tolist(), "ok"),
        (np.sort(rng().poisson(9, 72)).tolist(), "count"),  # a file sorted by value
        (np.sort(rng().normal(size=72)).tolist(), "x"),
        ((1900 + rng().integers(0, 200, 72)).tolist(), "mass"),
        ([1] * 36 + [0] * 36, "passed"),  # each item always passes, or always fails
        ([7.5] * 72, "x"),
        ([f"{k}" for k in rng().integers(0, 1000, 72)], "x"),
    ],
)
def test_measurements_are_left_as_they_are(cells: list[Any], name: str) -> None:
    assert why(cells, name) is None


def test_very_short_tables_are_left_as_they_are() -> None:
    assert why([0, 1], arms=np.array([0, 1])) is None
    assert why([0, 1, 0, 1, 0, 1], arms=np.array([0, 0, 1, 1, 2, 2])) is None
    assert why([1, 2, 3], arms=np.array([0, 0, 1])) is None
    assert why([1, 2, 3, 4], arms=np.array([0, 0, 1, 1])) is not None


def test_false_alarms_on_short_scales_are_rare() -> None:
    """Of results drawn from 0/1 or a scale of 1 to 5, at most 1 % are taken for bookkeeping (bound for 1e-6: 2.2 %)."""
    draw, alarms, runs = rng(), 0, 2000
    for run in range(runs):
        items, each = int(draw.integers(2, 7)), int(draw.integers(2, 6))
        low, high = ((0, 2), (1, 6), (1, 4))[run % 3]
        arms = np.repeat(np.arange(items), each)
        alarms += why(draw.integers(low, high, arms.size).tolist(), arms=arms) is not None
    assert alarms <= 44


def test_row_numbers_of_an_r_export_prove_nothing(tmp_path: Path) -> None:
    """Items that do not differ; `rownames` alone would prove nearly every pair."""
    draw = rng()
    lines = [f'"{k + 1}",{draw.poisson(9)},"{"ABCDEF"[k // 12]}"' for k in range(72)]
    (tmp_path / "sprays.csv").write_text("\n".join(['"rownames","count","spray"', *lines]) + "\n")
    pool = read_pool(tmp_path / "sprays.csv")
    assert pool.columns == ["count"]
    assert pool.unmeasured == ("rownames",)
    assert differing_items(pool).pairs.apart == []
    assert read_pool(tmp_path / "sprays.csv", values=["rownames", "count"]).columns == ["rownames", "count"]


def test_where_nothing_else_is_left_the_error_says_how_to_take_it() -> None:
    table = [{"item": "ab"[k // 5], "rank": k + 1} for k in range(10)]
    with pytest.raises(TableError, match=r"rank was left out \(counts the rows: 1, 2, 3, …\).*--values rank"):
        read_pool(table)
    assert read_pool(table, values=["rank"]).columns == ["rank"]
    plain = [{"item": "ab"[k // 5], "v0": k + 1} for k in range(10)]
    assert read_pool(plain).columns == ["v0"]  # the name says that it is a value


@pytest.mark.parametrize("name", ["idx", "item", None])
@pytest.mark.parametrize("kind", [int, float, str])
def test_the_index_of_a_frame_is_never_a_value(name: str | None, kind: type) -> None:
    draw = rng()
    frame = pd.DataFrame({"sample": np.repeat(["a", "b", "c"], 20), "x": draw.normal(size=60)})
    frame.index = pd.Index([kind(k * k) for k in range(60)], name=name)
    for items in (None, "sample"):
        pool = read_pool(frame, items=items)
        assert pool.columns == ["x"]
        assert pool.names == ["a", "b", "c"]
    two = frame.set_index("sample", append=True)
    assert read_pool(two, items="sample").columns == ["x"]
    if name is not None and kind is not str:
        assert read_pool(frame, items="sample", values=[name]).columns == [name]


def test_wide_tables_and_items_in_columns_leave_row_numbers_out() -> None:
    draw = rng()
    wide = [{"item": f"S{k}", "rownames": k, "m1": draw.normal(), "m2": draw.normal()} for k in range(8)]
    assert len(read_pool(wide, wide=True).rows) == 16
    columns = [{"row": k, "a": draw.normal(), "b": draw.normal()} for k in range(8)]
    assert read_pool(columns, wide="columns").names == ["a", "b"]
    assert read_pool(columns, values=["row", "a"], wide="columns").names == ["a", "row"]


def test_the_estimator_says_what_it_left_out() -> None:
    draw = rng()
    frame = pd.DataFrame({"sample": np.repeat(["a", "b", "c"], 20), "n": np.arange(60), "x": draw.normal(size=60)})
    frame["x"] += 9.0 * (frame["sample"] == "a")
    with pytest.warns(UserWarning, match="measure nothing: n "):
        found = coterie.BanditClustering(2).fit(frame)
    assert found.cluster_centers_ is not None
    assert found.cluster_centers_.shape == (2, 1)


def test_how_far_a_large_file_is_read_is_told() -> None:
    told: list[float] = []
    content = b"item,x\n" + b"a,1.25\nb,2.5\n" * 300_000
    with reading_told(told.append):
        assert len(table_of_bytes("large.csv", content).rows) == 600_000
    assert len(told) == len(content) >> 20
    assert told == sorted(told)
    assert 0.0 < told[0] < told[-1] <= 1.0


def test_reading_a_csv_file_takes_less_than_ten_times_its_size() -> None:
    values = rng().normal(size=20_000).tolist()
    content = "\n".join(["item,x", *(f"item {k % 20},{value}" for k, value in enumerate(values))]).encode()
    read_pool(table_of_bytes("small.csv", content[: content.index(b"\n", 10_000)]))  # imports what it needs
    tracemalloc.start()
    try:
        pool = read_pool(table_of_bytes("large.csv", content))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert pool.rows[:, 0].tolist() == values
    assert peak < 10 * len(content)


def test_rows_of_a_file_are_those_of_a_list() -> None:
    rows = table_of_bytes("t.csv", b"item,x,,y\na,1,,2\nb,3,,4\nc,5,,6\n").rows
    plain = [["a", "1", "2"], ["b", "3", "4"], ["c", "5", "6"]]
    assert rows == plain
    assert (rows[-1], rows[1:], rows[:1], rows[::-2], rows[7:]) == (plain[-1], plain[1:], plain[:1], plain[::-2], [])
    with pytest.raises(IndexError):
        rows[3]


@pytest.mark.parametrize("cell", ["1_0", "inf", "nan", "1,5", "1e400", "x", True, 2**2000, np.float32(2), " 2.5", "٣"])
def test_a_column_is_read_as_its_cells_are(cell: Any) -> None:
    table = Table("t.csv", ("x",), [["0.5"], [cell], ["1"]], "", decimal_comma=True)
    values = numbers_of(table, 0)
    rows, bad = numbers_and_others(table, [0], holes=True)
    assert (values is None) == bool(bad)
    assert values is None or np.array_equal(values, np.array(rows)[:, 0], equal_nan=True)


def test_items_that_two_columns_name_and_values_that_nobody_picked() -> None:
    rows = [
        {"wool": wool, "tension": tension, "breaks": 20 + k} for k in (1, 4, 2) for wool in "AB" for tension in "LM"
    ]
    with pytest.raises(TableError, match="one column names the items: join these to one first"):
        read_pool(rows, items="wool,tension")
    rows[3] |= {"breaks": "many", "site": 3.5}
    with pytest.raises(TableError, match=r"--values \(in Python values=\) picks the columns of results"):
        read_pool([{"site": 2.5, **row} for row in rows], items="wool")
