"""Missing values: refused by name with what to do, or left out by name where the caller says so."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.tables import TableError, replay_pool
from coterie.tables.reading.pools import read_pool


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    items = [name for name in "abcd" for _ in range(20)]
    values = np.array([9.0 * (name in "cd") for name in items]) + rng.normal(size=len(items))
    return pd.DataFrame({"item": items, "x": values, "y": rng.normal(size=len(items))})


HOLES = {3: "x", 10: "y", 65: "x"}


def holed() -> pd.DataFrame:
    found = frame()
    for row, column in HOLES.items():
        found.loc[row, column] = np.nan
    return found


def as_rows(table: pd.DataFrame, empty: Any) -> list[dict[str, Any]]:
    return [
        {key: empty if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]


@pytest.mark.parametrize(
    "table",
    [holed(), as_rows(holed(), None), as_rows(holed(), math.nan), as_rows(holed(), ""), as_rows(holed(), "NA")],
    ids=repr,
)
def test_rows_with_holes_are_left_out_as_if_they_had_not_been_there(table: Any) -> None:
    answer = replay_pool(table, 2, noise=1.0, leave_out_holes=True)
    without = replay_pool(frame().drop(index=list(HOLES)).reset_index(drop=True), 2, noise=1.0)
    assert answer["read"]["holes"] == ["row 4", "row 11", "row 66"]
    for key in ("t", "labels", "means", "counts", "certificate", "recorded"):
        assert answer[key] == without[key], key


@pytest.mark.parametrize("table", [holed(), as_rows(holed(), None), as_rows(holed(), math.nan)], ids=repr)
def test_otherwise_they_are_refused_and_it_says_what_to_do(table: Any) -> None:
    with pytest.raises(TableError, match=r"row 4, column 'x'.*3 such cells.*leave_out_holes=True") as found:
        replay_pool(table, 2, noise=1.0)
    assert found.value.field == "row 4, x"


def test_cells_that_are_no_holes_are_refused_all_the_same() -> None:
    rows = as_rows(holed(), None)
    rows[7]["x"] = "<0.1"
    with pytest.raises(TableError, match=r"row 8, column 'x': a number is needed, got '<0.1'"):
        replay_pool(rows, 2, noise=1.0, leave_out_holes=True)


def test_an_item_of_which_nothing_is_left_is_named() -> None:
    table = frame()
    table.loc[table["item"] == "b", "y"] = np.nan
    with pytest.raises(TableError, match="every row of b has an empty cell"):
        replay_pool(table, 2, noise=1.0, leave_out_holes=True)
    assert replay_pool(table, 2, noise=1.0, values=["x"])["read"]["holes"] == []


def test_places_of_other_rows_stay_what_they_were(tmp_path: Path) -> None:
    file = tmp_path / "holes.csv"
    file.write_text("item,x\n" + "a,1\n" * 3 + "a,\n" + "b,5\n" * 3)
    pool = read_pool(file, leave_out_holes=True)
    assert [pool.place(row) for row in range(6)] == [f"line {i}" for i in (2, 3, 4, 6, 7, 8)]
    assert pool.holes == ("line 5",)
    table = read_pool([{"item": "a", "x": 1.0}, {"item": "a"}, {"item": "b", "x": 2.0}], leave_out_holes=True)
    assert [table.place(row) for row in range(2)] == ["row 1", "row 3"]


def test_the_command_names_what_it_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "holes.csv"
    holed().to_csv(file, index=False)
    run = CliRunner()
    refused = run.invoke(app, ["group", str(file), "--clusters", "2", "--noise", "1"])
    assert refused.exit_code != 0
    assert "--leave-out-holes" in str(refused.exception) + refused.output
    shown = run.invoke(app, ["group", str(file), "--clusters", "2", "--noise", "1", "--leave-out-holes"])
    assert shown.exit_code == 0, shown.output
    assert "Left out, 3 rows with an empty cell: line 5, line 12, line 67." in " ".join(shown.output.split())


def test_the_estimator_takes_frames_and_arrays_with_holes() -> None:
    table = holed()
    estimator = coterie.BanditClustering(2, noise=1.0, leave_out_holes=True)
    by_frame = estimator.fit(table).labels_
    assert by_frame is not None
    assert by_frame.tolist() == [0, 0, 1, 1]
    counted = estimator.n_measurements_
    by_array = estimator.fit(table[["x", "y"]].to_numpy(), table["item"]).labels_
    assert by_array is not None
    assert by_array.tolist() == [0, 0, 1, 1]
    assert estimator.n_measurements_ == counted
    with pytest.raises(ValueError, match="must be finite, got nan at position"):
        coterie.BanditClustering(2, noise=1.0).fit(table[["x", "y"]].to_numpy(), table["item"])
    with pytest.raises(TableError, match="leave_out_holes is for a table"):
        estimator.fit({"a": [1.0, 2.0], "b": [5.0], "c": [7.0]})


@pytest.mark.parametrize("value", [[1.0, math.nan], [1.0, None], pd.Series([1.0, np.nan]), [1.0, pd.NA]], ids=repr)
def test_a_result_with_a_hole_is_refused_and_nothing_changes(value: Any) -> None:
    session = coterie.Session(3, 2, 2, noise=1.0)
    arm = session.ask()
    with pytest.raises((ValueError, TypeError), match=r"with all its numbers or not at all.*Session\.forget"):
        session.tell(arm, value)
    assert session.n_measurements == 0
    assert len(session.pending) == 1
    with pytest.raises((ValueError, TypeError)) as found:
        session.tell(arm, "text")
    assert "all its numbers" not in str(found.value)


@pytest.mark.parametrize("empty", ["NA", "NaN", "#N/A", "null"])
def test_what_programs_write_for_no_value_is_a_hole_and_may_be_a_name(tmp_path: Path, empty: str) -> None:
    file = tmp_path / "t.csv"
    lines = [
        "item,x,block",
        *(f"{item},{10 * (item == empty) + k % 3},{empty}{k}" for item in ("a", empty) for k in range(9)),
    ]
    file.write_text("\n".join(lines).replace(f"{empty},10,", f"{empty},{empty},", 1))
    with pytest.raises(TableError, match=r"line 11, column 'x'.*leave_out_holes=True"):
        read_pool(file, ["x"])
    pool = read_pool(file, ["x"], leave_out_holes=True, blocks="block")
    assert set(pool.names) == {"a", empty}
    assert pool.holes == ("line 11",)
    assert len(pool.rows) == 16  # with its block's other row, which nothing is left to compare with


@pytest.mark.parametrize("empty", ["", "NA"])
def test_cells_without_value_are_none_of_a_wide_table(tmp_path: Path, empty: str) -> None:
    (tmp_path / "t.csv").write_text(f"item,r1,r2,r3\na,1,2,3\nb,4,5,{empty}\n")
    assert read_pool(tmp_path / "t.csv", wide=True).rows.ravel().tolist() == [1, 2, 3, 4, 5]
    (tmp_path / "t.csv").write_text(f"a,b\n1,4\n2,5\n3,{empty}\n")
    assert sorted(read_pool(tmp_path / "t.csv", wide="columns").rows.ravel().tolist()) == [1, 2, 3, 4, 5]
