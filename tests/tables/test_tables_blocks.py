"""Tables in blocks: the column that names them, what is wrong with it, and what is proven within blocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.tables import TableError

RATERS = ("Ann", "Ben", "Cem", "Dot", "Eva", "Fay", "Gil", "Hal", "Ida", "Jim")


def ratings(raters: Sequence[str] = RATERS, spread: float = 5.0) -> list[dict[str, Any]]:
    """Beers of two kinds, rated by people who differ more than the beers do."""
    rng = np.random.default_rng(3)
    rows = []
    for rater in raters:
        shift = spread * rng.normal()
        for item, mean in (("ale", 3.0), ("bock", 3.0), ("cider", 5.0), ("dunkel", 5.0)):
            rows.append({"item": item, "rater": rater, "score": round(float(mean + shift + 0.4 * rng.normal()), 2)})
    return rows


def written(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_blocks_tell_apart_what_raters_hide() -> None:
    free, within = coterie.group(ratings()), coterie.group(ratings(), blocks="rater")
    assert set(free.letters) == {"a"}
    assert within.letters == ("a", "a", "b", "b")
    assert within.columns == ("score",)
    assert "each order of its results" in within.verdict
    gaussian = coterie.group(ratings(), blocks="rater", n_clusters=2, noise="gaussian")
    assert gaussian.groups == [["ale", "bock"], ["cider", "dunkel"]]
    assert gaussian.done
    assert "differences between items are the same in every rater" in gaussian.verdict
    assert coterie.verify(gaussian.certificate, gaussian.events).valid


def test_means_are_freed_of_blocks_where_items_are_missing() -> None:
    """Ida and Jim, who rate far higher, never rated the ale."""
    rows = ratings(spread=0.0)
    rows = [row | {"score": row["score"] + 20.0 * (row["rater"] in ("Ida", "Jim"))} for row in rows]
    rows = [row for row in rows if row["item"] != "ale" or row["rater"] not in ("Ida", "Jim")]
    grouping = coterie.group(rows, blocks="rater", noise="gaussian")
    ale, bock = grouping.means[:2, 0]
    assert abs(ale - bock) < 0.5
    assert grouping.letters == ("a", "a", "b", "b")


def test_items_in_columns_with_a_row_for_each_block(tmp_path: Path) -> None:
    rows = ratings()
    wide = [{"rater": rater} | {row["item"]: row["score"] for row in rows if row["rater"] == rater} for rater in RATERS]
    grouping = coterie.group(written(tmp_path / "wide.csv", wide), wide="columns", blocks="rater")
    long = coterie.group(rows, blocks="rater")
    assert grouping.letters == long.letters
    assert grouping.certificate == long.certificate


def test_successes_and_trials_are_cut_within_blocks() -> None:
    rng = np.random.default_rng(2)
    rows = []
    for day, rate in enumerate((0.1, 0.3, 0.6, 0.2, 0.5)):
        for item, better in (("A", 0.0), ("B", 0.0), ("C", 0.25)):
            trials = int(rng.integers(80, 120))
            rows.append({"item": item, "day": f"d{day}", "clicks": int(rng.binomial(trials, rate + better)),
                         "views": trials})  # fmt: skip
    grouping = coterie.group(rows, blocks="day", noise=coterie.Counts())
    assert grouping.letters == ("a", "a", "b")
    assert coterie.verify(grouping.certificate, grouping.events).valid


def test_a_known_noise_is_compared_with_what_is_left_within_blocks() -> None:
    assert coterie.group(ratings(), blocks="rater", noise=0.5).certificate is not None
    assert coterie.group(ratings(), blocks="rater", noise=0.1).analysis.noise_too_small
    assert coterie.group(ratings(), noise=0.5).analysis.noise_too_small, "raters differ"


def test_a_slip_is_named_in_words_of_blocks() -> None:
    rows = ratings()
    rows[6]["score"] += 30.0
    checks = coterie.group(rows, blocks="rater").analysis.checks
    assert [slip.row for slip in checks.slips.values] == [6]
    assert "its rater" in checks.sentence(checks.slips.values[0])


def test_blocks_with_one_item_are_named_and_left_out() -> None:
    rows = [*ratings(), {"item": "ale", "rater": "Kim", "score": 99.0}]
    grouping = coterie.group(rows, blocks="rater")
    assert grouping.letters == ("a", "a", "b", "b")
    assert any("Kim" in remark for remark in grouping.analysis.reading.remarks)
    assert len(grouping.events) == len(rows) - 1


@pytest.mark.parametrize(
    ("change", "given", "words"),
    [
        ({}, {"blocks": "raters"}, "no column 'raters'; its columns are item, rater, score"),
        ({"rater": "Ann"}, {"blocks": "rater"}, "all rows have Ann, and one block is no block"),
        ({}, {"blocks": "rater", "items": "rater"}, "cannot name the items and the blocks"),
        ({}, {"blocks": "rater", "values": ["rater", "score"]}, "rater names the blocks, so it is no value"),
        ({}, {"blocks": "rater", "growing": True}, "blocks are for a finished table"),
        ({}, {"blocks": "rater", "wide": True}, "--items-in-columns"),
        ({}, {"blocks": "rater", "resolution": (0.1, 1.0)}, "cannot be proven under any noise within blocks"),
    ],
)  # fmt: skip
def test_bad_blocks_are_named(change: dict[str, Any], given: dict[str, Any], words: str) -> None:
    with pytest.raises(TableError) as refused:
        coterie.group([row | change for row in ratings()], **given)
    assert words in str(refused.value)


def test_blocks_of_single_items_and_empty_cells_are_named() -> None:
    alone = [row | {"rater": f"{row['rater']} {row['item']}"} for row in ratings()]
    with pytest.raises(TableError, match="every block has a single item, so nothing can be compared"):
        coterie.group(alone, blocks="rater")
    apart = [*ratings(), {"item": "elder", "rater": "Kim", "score": 1.0}]
    with pytest.raises(TableError, match="elder shares no block with another item"):
        coterie.group(apart, blocks="rater")
    empty = [*ratings(), {"item": "ale", "rater": "", "score": 1.0}]
    with pytest.raises(TableError, match="row 41, column 'rater': it is empty: every measurement needs its block"):
        coterie.group(empty, blocks="rater")
    left = coterie.group(empty, blocks="rater", leave_out_holes=True)
    assert any("row 41" in remark for remark in left.analysis.reading.remarks)
    with pytest.raises(TableError, match="a dictionary of arrays"):
        coterie.group({"a": [1.0, 2.0], "b": [3.0, 4.0]}, blocks="rater")


def test_few_blocks_prove_nothing_whatever_the_noise() -> None:
    grouping = coterie.group(ratings(RATERS[:6]), blocks="rater")  # two pairs of alike items: 4 of 64 signs
    assert "no two of 4 items can be proven to differ" in grouping.verdict
    assert coterie.group(ratings(RATERS[:7]), blocks="rater").apart.any(), "seven raters: 2 of 128 signs, twice"


def command(*words: str) -> str:
    ran = CliRunner().invoke(app, list(words), env={"COLUMNS": "500"})
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_the_command_that_a_remark_offers_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("ratings.csv"), ratings())
    offered = command("group", "ratings.csv", "--noise", "gaussian", "--finished")
    line = next(line for line in offered.splitlines() if line.startswith("  coterie group") and "--block" in line)
    assert line.split() == ["coterie", "group", "ratings.csv", "--finished", "--block", "rater", "--noise", "gaussian"]
    answer = command(*line.split()[1:], "--verbose", "--out", "answer")
    assert "4 of 6 pairs of items are proven to differ" in answer
    assert "10 blocks (column rater)" in answer
    assert "--block" not in answer.split("check:")[0].split("letters")[0], "it is used already"
    assert command("verify", "answer/certificate.json", "answer/log.csv").startswith("valid")


def test_no_remark_where_a_column_is_no_block(tmp_path: Path) -> None:
    nested = [row | {"rater": f"{row['rater']} {row['item']}"} for row in ratings()]  # every rater has one item
    assert "--block" not in command("group", str(written(tmp_path / "nested.csv", nested)))
    named = [{"item": row["item"], "colour": row["rater"], "score": row["score"]} for row in ratings()]
    assert "--block" not in command("group", str(written(tmp_path / "named.csv", named)))
