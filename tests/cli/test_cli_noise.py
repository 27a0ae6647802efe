"""`--noise`: the words, numbers and files that it takes, and what it says to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from coterie import AtMost, Bounded, Counts, Exponential, Gaussian, Poisson, Symmetric
from coterie.cli import app
from coterie.cli.noise import noise_from_text
from coterie.problem.families import noise_of


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


COVARIANCE = [[1.0, 0.5], [0.5, 2.0]]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (None, None),
        ("any", None),
        ("gaussian", Gaussian()),
        ("Gaussian:Scalar", Gaussian("scalar")),
        ("gaussian:diagonal", Gaussian("diagonal")),
        ("gaussian:full", Gaussian("full")),
        ("counts", Counts(1)),
        ("counts:100", Counts(100)),
        ("bounded:1,5", Bounded(1, 5)),
        ("bounded: -1.5 2", Bounded(-1.5, 2)),
        ("bounded:[0,1],[1,5]", Bounded([0, 1], [1, 5])),
        ("at-most:0.5", AtMost(0.5)),
        ("at-most:0.2,25", AtMost([0.2, 25])),
        ("at-most:[[1,0.5],[0.5,2]]", AtMost(COVARIANCE)),
        ("symmetric", Symmetric()),
        ("poisson", Poisson()),
        ("Exponential", Exponential()),
        ("1.5", 1.5),
        ("0.2,25", [0.2, 25]),
        ("0.2; 25", [0.2, 25]),
        ("[[1,0.5],[0.5,2]]", COVARIANCE),
    ],
)
def test_words_and_numbers(text: str | None, stated: Any) -> None:
    assert noise_of(noise_from_text(text, 2), 2) == noise_of(stated, 2) == noise_of(noise_from_text(text), 2)


FILES: dict[str, Any] = {
    "covariance.csv": "1,0.5\n0.5,2\n",
    "named.csv": "ph,turbidity\n1,0.5\n0.5,2\n",
    "both-named.csv": ";ph;turbidity\nph;1;0.5\nturbidity;0.5;2\n",
    "tabs.txt": "1\t0.5\n\n0.5\t2\n",
    "blanks.TXT": "  1   0.5\n  0.5 2\n",
    "covariance.json": json.dumps(COVARIANCE),
    "covariance.npy": np.array(COVARIANCE),
}


def write(folder: Path, name: str, content: Any) -> None:
    if isinstance(content, np.ndarray):
        np.save(folder / name, content)
    else:
        (folder / name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_covariance(here: Path, name: str) -> None:
    write(here, name, FILES[name])
    assert noise_from_text(name, 2) == COVARIANCE
    assert noise_from_text(f"at-most:{name}", 2) == AtMost(COVARIANCE)
    assert noise_from_text(str(here / name)) == COVARIANCE


@pytest.mark.parametrize("content", ["0.2,25\n", "0.2\n25\n", "ph,turbidity\n0.2,25\n"])
def test_a_file_with_standard_deviations(here: Path, content: str) -> None:
    write(here, "deviations.csv", content)
    assert noise_from_text("deviations.csv", 2) == [0.2, 25.0]
    write(here, "one.txt", "0.5")
    assert noise_from_text("one.txt", 3) == 0.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("big", "--noise big: write one of any, any:shape, gaussian"),
        ("", "--noise : write one of any"),
        ("any:1", "any takes nothing after it but shape: write --noise any"),
        ("gaussian:round", "one of gaussian:scalar, gaussian:diagonal, gaussian:full"),
        ("counts:many", "say out of how many trials each count is, a whole number, as in counts:100"),
        ("counts:0", "trials must be at least 1, got 0"),
        ("counts:9999999999", "trials must be at most 1000000000"),
        ("bounded", "say between what all numbers lie, as in bounded:1,5"),
        ("bounded:1", "as in bounded:1,5"),
        ("bounded:5,1", "lo must be below hi, got 5 and 1"),
        ("bounded:[0,0,0],[1,1,1]", "3 bounds, but the measurements have 2 numbers"),
        ("bounded:nan,1", "lo must be finite, got nan"),
        ("at-most", "as in at-most:0.5"),
        ("at-most:-1", "must be positive, got -1.0"),
        ("at-most:much", "write one of any"),
        ("-1", "must be positive, got -1.0"),
        ("nan", "must be finite, got nan"),
        ("1,2,3", "2 of them, or a 2x2 covariance, got shape (3,)"),
        ("[[1,2],[2,1]]", "positive definite"),
        ("[[1,2],[2]]", "differ in length"),
        ("[1,", "write one of any"),
        ("nowhere.csv", "--noise nowhere.csv: the file cannot be read: No such file"),
        ("words.csv", "row 1 of the file's numbers has 'x', which is no number"),
        ("empty.csv", "the file holds no numbers"),
        ("three.csv", "got shape (3, 3)"),
        ("ragged.csv", "differ in length"),
        ("broken.json", "the file is not JSON"),
        ("null.json", "the file holds null"),
        ("words.json", "got 'loud'"),
        ("objects.npy", "not an array of numbers that numpy.save wrote"),
        ("bytes.txt", "the file is not text"),
        ("noise.dat", "*.csv, *.json, *.npy, *.txt: rename it"),
    ],
)
def test_what_it_cannot_use_is_named(here: Path, text: str, why: str) -> None:
    for name, content in {
        "words.csv": "1,x\n2,3\n", "empty.csv": "\n\n", "three.csv": "1,0,0\n0,1,0\n0,0,1\n", "ragged.csv": "1,2\n3\n",
        "broken.json": "[[1,", "null.json": "null", "words.json": '"loud"', "noise.dat": "1",
        "objects.npy": "not numpy",
    }.items():  # fmt: skip
        write(here, name, content)
    (here / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError) as caught:
        noise_from_text(text, 2)
    assert why in str(caught.value)
    assert str(caught.value).startswith(f"--noise {text}: ")
    answer = CliRunner().invoke(
        app, ["campaign", "new", "x", "-k", "2", "-a", "3", "--dim", "2", "--noise", text, "--store", "store.db"]
    )
    assert answer.exit_code == 2
    assert why in answer.stderr
    assert answer.stderr.count("\n") == 1, "one line, no traceback"
    assert not (here / "store.db").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "any noise: results of items in one group have the same distribution"),
        (["--noise", "gaussian:scalar"], "Gaussian noise of one unknown standard deviation: results are Gaussian"),
        (
            ["--noise", "counts:20"],
            "counts out of 20 trials: each number of a result is a number of successes out of 20",
        ),
        (["--noise", "0.5"], "noise of standard deviation 0.5: results are Gaussian with exactly"),
    ],
)
def test_a_new_campaign_says_what_it_assumes(here: Path, options: list[str], said: str) -> None:
    made = CliRunner().invoke(app, ["campaign", "new", "x", "-k", "2", "-a", "3", *options])
    assert made.exit_code == 0, made.stderr
    assert said in made.stdout
    assert ("say so with --noise" in made.stdout) == (not options)
    status = CliRunner().invoke(app, ["campaign", "status", "x"])
    assert f"; {said}"[:60] in " ".join(status.stdout.split())


@pytest.mark.parametrize("command", [("group",), ("campaign", "new")])
def test_the_help_shows_what_to_type(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"}).output
    assert "counts:20: each number is a count out of 20" in " ".join(shown.replace("│", " ").split())


def test_a_method_of_the_paper_needs_a_number(here: Path) -> None:
    made = CliRunner().invoke(app, ["campaign", "new", "x", "-k", "2", "-a", "3", "--method", "boc"])
    assert made.exit_code == 2
    assert 'method "boc" needs to know the noise' in made.stderr
    assert "--method croc" in made.stderr
