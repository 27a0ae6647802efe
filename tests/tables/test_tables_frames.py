"""Data frames as tables, and wide tables: one row an item."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.tables import TableError, replay_pool
from coterie.tables.pool import Pool
from coterie.tables.reading.pools import read_pool

QUESTION: dict[str, Any] = {"resolution": (0.5, 4.0), "noise": 1.0}


def long_frame(count: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    names = np.repeat(["S1", "S2", "S10"], count)
    middles = np.repeat([0.0, 9.0, 0.1], count)
    return pd.DataFrame({"sample": names, "x": middles + rng.standard_normal(3 * count)})


def same(one: Pool, other: Pool) -> bool:
    return one.names == other.names and np.array_equal(one.arms, other.arms) and np.array_equal(one.rows, other.rows)


def test_one_column_of_values_may_be_a_word() -> None:
    frame = long_frame().assign(y=1.0)
    assert same(read_pool(frame, values="x"), read_pool(frame, values=["x"]))


def test_columns_of_codes_are_named_where_no_column_names_the_items() -> None:
    frame = pd.DataFrame({"class": [0, 1, 2] * 10, "x": np.linspace(0.5, 9.5, 30)})
    with pytest.raises(TableError, match=r"perhaps class \(3 different entries in 30 rows\); if each column"):
        read_pool(frame)


def test_a_frame_is_the_table_that_it_would_be_as_a_file(tmp_path: Path) -> None:
    frame = long_frame()
    frame.to_csv(tmp_path / "samples.csv", index=False)
    assert same(read_pool(frame), read_pool(tmp_path / "samples.csv"))
    of_frame, of_file = (replay_pool(table, **QUESTION) for table in (frame, str(tmp_path / "samples.csv")))
    assert of_frame["labels"] == of_file["labels"] == [0, 1, 0]
    assert of_frame["t"] == of_file["t"]
    assert coterie.BanditClustering(**QUESTION).fit(frame).n_measurements_ == of_file["t"]


def test_an_index_with_a_name_or_with_names_is_a_column() -> None:
    frame, wanted = long_frame(), read_pool(long_frame())
    assert same(read_pool(frame.set_index("sample")), wanted)
    assert same(read_pool(frame.set_index("sample").rename_axis(None)), wanted)
    assert same(read_pool(frame[frame["x"] > -99.0].iloc[::1]), wanted)
    shuffled = frame.sample(frac=1.0, random_state=0)  # its index is numbers out of order
    assert read_pool(shuffled).columns == ["x"]
    typed = frame.astype({"sample": "category", "x": "Float64"})
    assert same(read_pool(typed), wanted)


@pytest.mark.parametrize("hole", [None, float("nan"), pd.NA])
def test_a_hole_in_a_frame_is_named(hole: Any) -> None:
    frame = pd.DataFrame({"item": ["a", "b"], "x": pd.Series([1.0, hole], dtype=object)})
    with pytest.raises(TableError, match="row 2, column 'x': a number is needed, got None"):
        read_pool(frame)


def test_what_is_no_table_is_named_with_its_type() -> None:
    with pytest.raises(TableError, match=r"a file, a DataFrame or a list of dictionaries, got .*\(Series\)"):
        read_pool(pd.Series([1.0]))


def test_a_wide_table_is_the_long_one() -> None:
    frame = long_frame()
    frame["repeat"] = frame.groupby("sample").cumcount()
    wide = frame.pivot(index="sample", columns="repeat", values="x")
    found = read_pool(wide, wide=True)
    plain = read_pool(frame[["sample", "x"]])
    assert found.names == plain.names
    for arm in range(3):
        assert np.array_equal(found.rows[found.arms == arm], plain.rows[plain.arms == arm])
    assert found.columns == ["value"]
    assert replay_pool(wide, wide=True, **QUESTION)["labels"] == [0, 1, 0]
    assert coterie.BanditClustering(wide=True, **QUESTION).fit(wide).names_ == ("S1", "S2", "S10")


def test_empty_cells_of_a_wide_table_are_no_measurements(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text("item;first;second;third\na;1,5;;2,5\nb;;3,5;\na;4,5;;\n", encoding="utf-8")
    found = read_pool(file, wide=True)
    assert found.rows[:, 0].tolist() == [1.5, 2.5, 3.5, 4.5]
    assert found.arms.tolist() == [0, 0, 1, 0]
    assert [found.place(row) for row in range(4)] == ["line 2", "line 2", "line 3", "line 4"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,1,2\nb,,\n", "line 3, column 'x': the item of this row has no measurement"),
        ("a,1,2\nb,1,n.d.\n", "line 3, column 'y': a number is needed, got 'n.d.'"),
    ],
)
def test_what_a_wide_table_cannot_have_is_named(rows: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text("item,x,y\n" + rows, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_pool(file, wide=True)
    with pytest.raises(TableError, match="wide is for a table"):
        read_pool({"a": [1.0]}, wide=True)


def test_the_command_reads_wide_tables(tmp_path: Path) -> None:
    frame = long_frame()
    frame["repeat"] = frame.groupby("sample").cumcount()
    frame.pivot(index="sample", columns="repeat", values="x").to_csv(tmp_path / "wide.csv")
    words = ["group", str(tmp_path / "wide.csv"), "--wide", "--alike", "0.5", "--apart", "4", "--noise", "1", "--json"]
    found = subprocess.run([sys.executable, "-m", "coterie.cli", *words], capture_output=True, text=True, check=True)
    answer = json.loads(found.stdout)
    assert (answer["labels"], answer["dim"], answer["recorded"]) == ([0, 1, 0], 1, 90)
