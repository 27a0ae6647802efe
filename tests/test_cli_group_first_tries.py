"""`coterie group` at the first try: what people forget is named, with what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from grouping import ok, refused, rows, text
from typer.testing import CliRunner

from coterie.cli import app


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "my wells.csv").write_text(text("sample,ph,turbidity", rows()))
    return tmp_path


def test_without_a_number_of_groups_a_resolution_is_proposed_that_can_be_copied() -> None:
    answer = CliRunner().invoke(app, ["group", "my wells.csv"])
    assert answer.exit_code == 2
    assert "say how many groups there are, with --clusters" in answer.stderr
    assert answer.stderr.count("\n") == 1
    _, _, command = answer.stderr.partition("a first try is: coterie ")
    import shlex

    words = shlex.split(command)
    assert words[:2] == ["group", "my wells.csv"]
    alike, apart = (
        [float(part) for part in words[words.index(option) + 1].split(",")] for option in ("--alike", "--apart")
    )
    for small, large, noise in zip(alike, apart, (0.2, 25.0), strict=True):
        assert 0.3 * noise < small < 0.7 * noise
        assert 2.0 * noise < large < 4.0 * noise
    again = CliRunner().invoke(app, words)
    assert again.exit_code in (0, 1), again.stderr  # an answer, proven or partial
    assert "Gaussian noise of unknown covariance" in again.stdout


def test_no_proposal_without_repeats_that_vary(here: Path) -> None:
    for name, content in (("once.csv", "item,x\na,1\nb,2\nc,3\n"), ("still.csv", "item,x\na,1\na,1\nb,2\nc,3\n")):
        (here / name).write_text(content)
        said = refused(name)
        assert "say how many groups there are" in said
        assert "first try" not in said


def test_a_file_without_names_of_columns_is_doubted(here: Path) -> None:
    content = (here / "my wells.csv").read_text().partition("\n")[2]
    (here / "bare.csv").write_text(content)
    shown = ok("bare.csv", "-k", 3, "--noise", "0.2,25")
    first = content.split("\n")[0].split(",")[1:]
    assert f"warning: the first line was read as the names of the columns, but {', '.join(first)} are numbers" in shown
    shown = ok("my wells.csv", "-k", 3, "--noise", "0.2,25")
    assert "names of the columns" not in shown


def test_numbers_are_good_names_of_columns_in_a_wide_table(here: Path) -> None:
    lines = ["sample,1,2,3", *(f"{name},{k},{k + 0.1},{k - 0.1}" for k, name in enumerate("aabbcc"[::2]))]
    (here / "days.csv").write_text("\n".join(lines) + "\n")
    shown = CliRunner().invoke(app, ["group", "days.csv", "-k", "2", "--noise", "0.2", "--wide"]).stdout
    assert "names of the columns" not in shown
    shown = CliRunner().invoke(app, ["group", "days.csv", "-k", "2", "--noise", "0.2"]).stdout
    assert "If each cell of a line is one measurement of its item, say --wide." in shown


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("sample,ph\n", "t.csv has no measurements: its only line names the columns sample, ph"),
        (
            "sample ph\na 7.1\nb 7.2\n",
            "t.csv has a single cell in each line, 'sample ph': one column must name the items",
        ),
        ("", "t.csv is empty: the first line names the columns"),
    ],
)
def test_tables_that_are_none(here: Path, content: str, said: str) -> None:
    (here / "t.csv").write_text(content)
    assert said in refused("t.csv", "-k", 2)
