"""Tables of True and False, yes and no, pass and fail: read as 1 and 0, and counts is advised for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.campaign.service.campaigns import Campaigns
from coterie.cli import app
from coterie.tables.reading.pools import read_pool


def rates(words: tuple[Any, Any], count: int = 40) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    shares = {"A": 0.1, "B": 0.1, "C": 0.9}
    return [
        {"machine": name, "result": words[int(rng.random() < p)]} for _ in range(count) for name, p in shares.items()
    ]


@pytest.mark.parametrize(
    "words", [("False", "True"), ("no", "yes"), ("FAIL", "Pass"), ("failed", "passed"), (False, True)]
)
def test_two_words_are_zero_and_one(words: tuple[Any, Any], tmp_path: Path) -> None:
    rows = rates(words)
    wanted = [float(row["result"] == words[1]) for row in rows]
    path = tmp_path / "runs.csv"
    path.write_text("machine,result\n" + "".join(f"{row['machine']},{row['result']}\n" for row in rows))
    for given in (rows, path):
        pool = read_pool(given)
        assert pool.item_column == "machine"
        assert pool.rows[:, 0].tolist() == wanted
        assert pool.remarks == (
            f"Words were read as numbers: result ({_word(words[1])} is 1, {_word(words[0])} is 0).",
        )
    shown = CliRunner().invoke(app, ["group", str(path)])
    assert shown.exit_code == 0, shown.output
    assert "state --noise counts" in " ".join(shown.output.split())
    proven = CliRunner().invoke(app, ["group", str(path), "-k", "2", "--noise", "counts"])
    assert proven.exit_code == 0, proven.output


def _word(given: Any) -> str:
    return str(given).casefold()


def test_beside_numbers_such_a_column_is_no_value_unless_picked() -> None:
    rows = [row | {"x": 0.5 * k * k} for k, row in enumerate(rates(("no", "yes")))]
    assert read_pool(rows, items="machine").columns == ["x"]
    assert read_pool(rows, items="machine", values=["x", "result"]).columns == ["x", "result"]
    numbered = [row | {"rownames": k} for k, row in enumerate(rates(("no", "yes")))]
    assert read_pool(numbered, items="machine").columns == ["result"]


def test_words_are_imported_into_a_campaign(tmp_path: Path) -> None:
    store = Campaigns(str(tmp_path / "c.db"))
    id = store.create("x", 3, 2, 1, names=["A", "B", "C"], noise=coterie.Counts(), value_names=["result"])["id"]
    (tmp_path / "t.csv").write_text("item,result\nA,pass\nB,fail\nC,Pass\n")
    assert store.preview_import(id, tmp_path / "t.csv")["problems"] == []
    assert store.import_table(id, tmp_path / "t.csv")["accepted"] == 3
    assert sorted(row["values"][0] for row in store.measurements(id)["measurements"]) == [0.0, 1.0, 1.0]
