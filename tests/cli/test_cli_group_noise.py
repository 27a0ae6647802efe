"""`coterie group`: what it says about the noise, about rows and columns that do not belong, and about their order."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from grouping import grown, ok, refused, rows, text

NOISE = "0.2,25"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "plain.csv").write_text(text("sample,ph,turbidity", rows()))
    return tmp_path


# The noise.


def test_without_a_noise_nothing_is_assumed_and_it_says_what_the_repeats_tell(here: Path) -> None:
    shown = grown("plain.csv", "-k", 3)
    assert (
        "Noise: any noise. Assumed: results of items in one group have the same distribution, whatever it is" in shown
    )
    assert "Nothing is assumed or checked about how much results vary." in shown
    assert re.search(r"\d+ of 160 measurements would have been enough\.\n", shown)
    assert "Proven, if the noise is as assumed: at least 3 groups; and if there are exactly 3 groups, " in shown
    assert "those of different groups are not; wrong with probability at most 0.05" in shown
    assert "All 160 measurements fit these groups (tested by ranks at level 0.001)." in shown
    assert "warning" not in shown
    assert re.search(r"Repeats vary by ph \S+, turbidity \S+ \(140 degrees of freedom\)\.\n", shown)
    proposed = re.search(r"note: .*--noise ('\S+') has", shown)
    assert proposed is not None
    covariance = json.loads(proposed[1].strip("'"))
    assert all(1.0 < covariance[i][i] / true < 1.8 for i, true in enumerate((0.04, 625.0)))
    again = grown("plain.csv", "-k", 3, "--noise", proposed[1].strip("'"))
    assert "Proven, if the noise is as stated: at least 3 groups; and if there are exactly 3 groups, " in again
    assert "warning" not in again
    found = json.loads(grown("plain.csv", "-k", 3, "--json"))
    assert found["noise"]["stated"] == {"family": "any"}
    assert found["noise"]["upper_covariance"] == covariance
    assert grown("plain.csv", "-k", 3, "--noise", "any") == shown
    (here / "few.csv").write_text(text("sample,ph,turbidity", rows(repeats=1)))
    assert "No item was measured twice, so the table does not tell how much" in grown("few.csv", "-k", 3)
    (here / "copies.csv").write_text(text("sample,ph,turbidity", [row for row in rows(repeats=1) for _ in range(3)]))
    assert "--noise" not in grown("copies.csv", "-k", 3)  # nothing is proposed


@pytest.mark.parametrize(
    ("noise", "what"),
    [
        ("gaussian", "Noise: Gaussian noise of unknown covariance. Assumed: results are Gaussian and do not depend on"),
        ("symmetric", "Whether all measurements fit these groups is not tested"),
        ("bounded:[4,0],[8,450]", "Noise: results between [4.0, 0.0] and [8.0, 450.0]"),
        ("at-most:0.2,25", "Assumed: results vary by no more than the covariance stated, whatever their distribution"),
    ],
)
def test_other_noises_say_what_is_assumed(here: Path, noise: str, what: str) -> None:
    (here / "many.csv").write_text(text("sample,ph,turbidity", rows(repeats=60)))
    shown = grown("many.csv", "-k", 3, "--noise", noise)
    assert what in shown
    assert "Proven, if the noise is as assumed: at least 3 groups; and if there are exactly 3 groups, " in shown
    assert "wrong with probability at most 0.05" in shown
    assert "warning" not in shown


def test_a_proposal_is_written_for_any_number_of_columns(here: Path) -> None:
    rng = np.random.default_rng(4)
    content = [[f"i{k % 6}", *(f"{9.0 * (k % 2) + x:.3f}" for x in rng.normal(size=7))] for k in range(240)]
    (here / "wide.csv").write_text(text("item,a,b,c,d,e,f,g", content))
    shown = ok("wide.csv", "-k", 2, "--propose-noise", "noise.csv")
    assert "the covariance that --propose-noise FILE writes has a margin for chance" in shown
    with (here / "noise.csv").open() as file:
        proposed = np.array([[float(x) for x in row] for row in csv.reader(file)])
    assert proposed.shape == (7, 7)
    assert np.linalg.eigvalsh(proposed)[0] >= 1.0
    found = json.loads(ok("wide.csv", "-k", 2, "--noise", "noise.csv", "--json"))
    assert found["noise"]["stated"] == proposed.tolist() == found["noise"]["upper_covariance"]
    assert found["done"]
    message = refused("wide.csv", "-k", 2, "--propose-noise", "noise.csv")
    assert message == "coterie: --propose-noise noise.csv: it is there already, name another file\n"
    assert "name a .csv file" in refused("wide.csv", "-k", 2, "--propose-noise", "noise")
    (here / "few.csv").write_text(text("item,a,b,c,d,e,f,g", content[:24]))
    few = refused("few.csv", "-k", 2, "--propose-noise", "few-noise.csv")
    assert "few.csv has too few repeats to tell the noise (18 degrees of freedom, 21 are needed)" in few
    still = [[row[0], "1", *row[2:]] for row in content]
    (here / "still.csv").write_text(text("item,a,b,c,d,e,f,g", still))
    assert "repeats of a do not vary at all" in refused("still.csv", "-k", 2, "--propose-noise", "still-noise.csv")


# Rows.


def test_rows_that_do_not_belong_are_named(here: Path) -> None:
    content = rows()
    content[93][2] = "1310.0"  # for 131.0 or so
    (here / "slip.csv").write_text(text("sample,ph,turbidity", content))
    shown = grown("slip.csv", "-k", 3, "--noise", NOISE)
    named = re.search(
        r"warning: line 95: item S14, turbidity 1310 lies (\S+) standard deviations from the item's other results "
        r"\(\d+(?:\.\d)?\): a slip\?\n",
        shown,
    )
    assert named is not None
    assert 35.0 < float(named[1]) < 60.0
    assert "any row of a table is named with probability at most 0.01" in shown
    assert "139 degrees of freedom, without the row that may be a slip." in shown
    assert shown.startswith("Nothing is proven: line 95 cannot come from the noise stated. Correct slips in the file")
    assert "wrong with probability" not in shown
    assert shown.index("groups, a guess") < shown.index("warning: line 95") < shown.index("Noise as stated")
    found = json.loads(grown("slip.csv", "-k", 3, "--noise", NOISE, "--json"))
    (one,) = found["slips"]["rows"]
    assert (one["place"], one["name"], one["column"], one["value"]) == ("line 95", "S14", "turbidity", 1310.0)
    free = json.loads(grown("slip.csv", "-k", 3, "--json"))
    assert free["slips"]["rows"][0]["text"] == one["text"]
    assert not free["noise"]["rows_contradict"]


def test_heavy_tails_are_said_in_one_line(here: Path) -> None:
    rng = np.random.default_rng(7)
    content = [[f"i{k % 8}", f"{9.0 * (k % 2) + x:.3f}"] for k, x in enumerate(rng.standard_t(2.5, size=800))]
    (here / "heavy.csv").write_text(text("item,x", content))
    shown = ok("heavy.csv", "-k", 2)
    assert "warning: the noise of x has heavy tails: more values than Gaussian noise allows lie far from" in shown
    assert "a slip?" not in shown
    assert "note: if you know that the noise is Gaussian" not in shown
    found = json.loads(ok("heavy.csv", "-k", 2, "--json"))
    assert found["slips"]["heavy_tails"] == ["x"]
    assert len(found["slips"]["rows"]) > 3
    assert found["done"]
    assert found["labels"] == [0, 1] * 4
    assert "has heavy tails, which no covariance describes" in refused("heavy.csv", "-k", 2, "--propose-noise", "n.csv")


def test_an_order_that_goes_with_the_values_is_said(here: Path) -> None:
    content = sorted(rows(), key=lambda row: float(row[2]))
    (here / "sorted.csv").write_text(text("sample,ph,turbidity", content))
    shown = ok("sorted.csv", "-k", 3, "--noise", NOISE)
    assert "note: the rows of an item are sorted by turbidity (rank correlation 1.00; by chance in at most 1 %" in shown
    assert "wrong with probability at most 0.05" in shown
    kept = ok("sorted.csv", "-k", 3, "--noise", NOISE, "--growing")
    assert kept.startswith("Nothing is proven: the rows of an item are sorted by turbidity")
    assert "to do with the values. If the file was sorted, say --shuffled." in kept
    assert "wrong with probability" not in kept
    assert "groups, a guess" in kept
    assert json.loads(ok("sorted.csv", "-k", 3, "--noise", NOISE, "--json"))["row_order"]["kind"] == "sorted"
    assert "are sorted" not in ok("plain.csv", "-k", 3, "--noise", NOISE)


# Columns that say nothing.


@pytest.mark.parametrize("noise", [(), ("--noise", "gaussian"), ("--noise", "1")])
def test_columns_that_say_nothing_are_named(here: Path, noise: tuple[str, ...]) -> None:
    content = [[row[0], row[1], f"{2.0 * float(row[1]):.2f}", "7"] for row in rows(repeats=30)]
    (here / "own.csv").write_text(text("sample,ph,double,still", content))
    shown = grown("own.csv", "-k", 3, *noise)
    assert "warning: still has one value in all rows and says nothing; leave it out with --values." in shown
    assert "warning: double follows from ph (equal, or in other units): it counts the same result twice." in shown
    (here / "equal.csv").write_text(text("sample,x", [[row[0], "5"] for row in rows()]))
    shown = grown("equal.csv", "-k", 3, *noise)
    assert "warning: all results are equal: there is nothing by which items could be told apart." in shown
    assert "measurements are not enough to prove 3 groups" in shown


def test_a_noise_too_small_proves_nothing(here: Path) -> None:
    for noise in ("1", "0.02,2.5"):
        shown = grown("plain.csv", "-k", 3, "--noise", noise)
        assert "turbidity vary more than the noise stated. Use --noise " in shown
        assert re.search(r"Alarm: S\d+, S\d+, S\d+, S\d+ are pairwise known to differ, so the noise is larger", shown)
        assert "Certain" not in shown
        assert "Undecided" not in shown
        assert "groups, a guess" in shown
    shown = grown(
        "plain.csv", "-k", 3, "--noise", "0.2,15", "--delta", 0.2
    )  # proven, but for a noise that is not the true one
    assert "for the noise stated, which is too small: no proof." in shown
    assert "wrong with probability" not in shown


def test_a_bound_too_small_proves_nothing(here: Path) -> None:
    (here / "many.csv").write_text(text("sample,ph,turbidity", rows(repeats=60)))
    shown = grown("many.csv", "-k", 3, "--noise", "at-most:0.2,5")
    assert shown.startswith("Nothing is proven: repeats of turbidity vary more than the noise stated, whatever its")
    assert "State a larger bound, or leave --noise out" in shown
    assert "for the noise stated, which is too small: no proof." in shown or "are not enough" in shown
    assert "wrong with probability" not in shown


def test_repeats_that_never_vary_are_no_gaussian_noise(here: Path) -> None:
    (here / "still.csv").write_text(text("sample,x", [[f"i{k % 6}", f"{k % 2}"] for k in range(120)]))
    shown = grown("still.csv", "-k", 2, "--noise", "gaussian")
    assert "warning: repeats of an item are always the same: that is no Gaussian noise" in shown
    assert "are not enough to prove 2 groups" in shown
    shown = grown("still.csv", "-k", 2)
    assert "warning" not in shown
    assert "would have been enough" in shown


@pytest.mark.parametrize("unit", [0.01, 1.0, 100.0])
def test_a_proposal_for_one_column_is_read_as_it_was_meant(here: Path, unit: float) -> None:
    """A single number in a file is a standard deviation, and no variance."""
    rng = np.random.default_rng(5)
    content = [[f"i{k % 6}", f"{unit * (9.0 * (k % 2) + rng.normal()):.6g}"] for k in range(240)]
    (here / "one.csv").write_text(text("item,x", content))
    ok("one.csv", "-k", 2, "--propose-noise", "noise.csv")
    found = json.loads(ok("one.csv", "-k", 2, "--noise", "noise.csv", "--json"))
    assert found["done"]
    assert found["noise"]["stated"] == found["noise"]["upper"][0]
    assert 1.0 < found["noise"]["stated"] / unit < 1.3
    assert found["noise"]["verdicts"] == [None]


def test_a_noise_too_large_is_harmless_and_said(here: Path) -> None:
    shown = ok("plain.csv", "-k", 3, "--noise", "0.4,25")
    assert "note: repeats of ph vary less than the noise stated. That does not harm the proof" in shown


@pytest.mark.parametrize(
    ("noise", "what"),
    [
        ("big", "--noise big: write one of any, any:shape, gaussian, "),
        ("", "a standard deviation, one for each number (0.2,25), a covariance [[1,0],[0,2]], or a file"),
        ("0,1", "--noise 0,1: noise standard deviations must be positive, got 0.0"),
        ("nan", "--noise nan: noise must be finite, got nan"),
        ("none.csv", "--noise none.csv: the file cannot be read: No such file"),
        ("1,2,3", "has 2 value columns (ph, turbidity), --noise has 3 entries: give 2, or one for all\n"),
        ("[[1,0],[0]]", "rows differ in length"),
        ("[[1,2],[2,1]]", "positive definite"),
    ],
)
def test_noises_that_are_none(here: Path, noise: str, what: str) -> None:
    assert what in refused("plain.csv", "-k", 3, "--noise", noise)


def test_forms_of_the_same_noise(here: Path) -> None:
    first = json.loads(ok("plain.csv", "-k", 3, "--noise", NOISE, "--json"))
    for noise in ("0.2 25", "0.2; 25", "[0.2, 25]"):
        assert json.loads(ok("plain.csv", "-k", 3, "--noise", noise, "--json")) == first
    whole = json.loads(ok("plain.csv", "-k", 3, "--noise", "[[0.04,0],[0,625]]", "--json"))
    assert whole["labels"] == first["labels"]
