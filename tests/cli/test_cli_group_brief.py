"""`coterie group` prints its answer first, and at most three remarks after it unless all are asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from grouping import ok, rows, text
from typer.testing import CliRunner

from coterie.cli import app
from coterie.cli.group_remarks import by_weight


def brief(*arguments: object) -> list[str]:
    """The lines that are printed where nothing more is asked for."""
    answer = CliRunner().invoke(app, ["group", *map(str, arguments)])
    assert answer.exit_code == 0, answer.output
    return answer.stdout.rstrip("\n").split("\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


def test_warnings_come_before_notes_and_notes_before_what_is_so() -> None:
    mixed = ["a.csv: 3 items", "note: n", "warning: w", "Left out: line 3", "Repeats vary", "warning: v"]
    assert by_weight(mixed) == ["warning: w", "warning: v", "note: n", "Left out: line 3", mixed[0], mixed[4]]


@pytest.mark.parametrize("more", [(), ("--clusters", 3), ("--clusters", 3, "--growing")])
def test_the_answer_stands_first_and_three_remarks_after_it(here: Path, more: tuple[object, ...]) -> None:
    """Two warnings of doubtful names, one of a constant column and one of a copy; a note; what was read."""
    content = [[row[0], row[1], f"{2.0 * float(row[1]):.2f}", "7"] for row in rows(repeats=30, items=8)]
    content[4][0], content[5][0] = "s05", "s06"
    (here / "t.csv").write_text(text("sample,ph,double,still", content))
    shown = brief("t.csv", *more)
    blank = shown.index("")
    answer, remarks, last = shown[:blank], shown[blank + 1 : -1], shown[-1]
    assert not any(line.startswith(("warning", "note", "t.csv:")) for line in answer)
    assert len(remarks) == 3
    assert all(line.startswith("warning: ") for line in remarks)
    every = ok("t.csv", *more).rstrip("\n").split("\n")
    assert every[: blank + 4] == shown[:-1]
    count = int(last.split()[0])
    assert last == f"{count} more remarks: --verbose"
    assert every[blank + 4].startswith("warning: ")  # the fourth; then notes, then what is so
    assert "t.csv: 10 items" in "\n".join(every[blank + 5 :])
    assert "more remarks" not in "\n".join(every)
    kept = len(every) - (blank + 4)
    assert count <= kept <= count + 1  # what was read takes two lines


def test_few_remarks_are_all_printed_and_none_is_offered(here: Path) -> None:
    (here / "t.csv").write_text(text("sample,ph,turbidity", rows(items=6)))
    shown = brief("t.csv", "--clusters", 3, "--noise", "0.2,25")
    assert shown[0].startswith("Proven")
    assert shown == ok("t.csv", "--clusters", 3, "--noise", "0.2,25").rstrip("\n").split("\n")
    assert not any("--verbose" in line for line in shown)


@pytest.mark.parametrize("more", [(), ("--clusters", 2), ("--clusters", 2, "--growing")])
def test_what_voids_the_proof_is_the_answer(here: Path, more: tuple[object, ...]) -> None:
    rng = np.random.default_rng(0)
    content = [[name, f"{9.0 * (name > 'b') + rng.normal():.3f}"] for _ in range(20) for name in "abcd"]
    (here / "t.csv").write_text(text("item,x", content))
    shown = brief("t.csv", *more, "--noise", "0.3")
    assert shown[0].startswith("Nothing is proven: repeats of x vary more than the noise stated. Use --noise ")
    assert not any("Proven" in line for line in shown)
    content[30][1] = "90"
    (here / "t.csv").write_text(text("item,x", content))
    shown = brief("t.csv", *more, "--noise", "1.1")
    assert shown[0].startswith("Nothing is proven: line 32 cannot come from the noise stated.")
    first = shown[shown.index("") + 1]
    assert first.startswith("warning: line 32: item c, x 90 lies ")
