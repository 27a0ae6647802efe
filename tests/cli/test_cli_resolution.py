"""`--alike`, `--apart`, `--norm`, `--claim` and `--groups` on the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from equal_design import EACH, METHOD
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.cli.noise import noise_from_text
from coterie.cli.options import asked_for
from coterie.methods import Method, register, unregister
from coterie.problem.families import noise_of

MEANS = {"ash": 0.0, "bay": 10.0, "elm": 0.3, "fir": 2.4, "oak": 10.2}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own() -> Iterator[Method]:
    yield register(METHOD)
    unregister(METHOD.name)


@pytest.fixture
def table(here: Path) -> Path:
    """Five items, six measurements each, in two columns."""
    path = here / "trees.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "height", "width"])
        for i in range(6):
            for name, mean in MEANS.items():
                writer.writerow([name, mean + 0.01 * (i % 3), 100 * mean + i % 2])
    return path


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


WRONG: list[tuple[list[str], str]] = [
    (["--alike", "0.8", "--apart", "0.2"], "--alike must be smaller than --apart, got 0.8 and 0.2"),
    (["--alike", "0.2", "--apart", "0.2"], "got 0.2 and 0.2"),
    (["--alike", "-1", "--apart", "2"], "--alike must not be negative, got -1: 0 asks for exact equality"),
    (["--alike", "nan", "--apart", "2"], "--alike must be finite, got nan"),
    (["--alike", "0", "--apart", "inf"], "--apart must be finite, got inf"),
    (["--alike", "small", "--apart", "2"], "--alike must be a number, or one for each number of a measurement"),
    (["--alike", "", "--apart", "2"], "--alike must be a number"),
    (["--alike", "0.1,15,3", "--apart", "0.4,60,9"], "the resolution has 3 numbers, but the measurements have 2"),
    (["--alike", "0.1,15,3", "--apart", "0.4,60"], "--alike has 3 numbers and --apart 2"),
    (["--alike", "0.1"], "say with --apart which differences matter"),
    (["--apart", "0.1"], "say with --alike which differences do not matter"),
    (["--alike", "0.1", "--apart", "1", "--norm", "max"], "--norm must be one of each, distance, got 'max'"),
    (["--alike", "0.1", "--apart", "1", "--claim", "all"], "--claim must be one of references, any-two, got 'all'"),
    (["--alike", "0.1", "--apart", "1", "-k", "2"], "not both: got --clusters 2, --alike 0.1 and --apart 1"),
    (["--alike", "0.1", "--apart", "1", "--groups", "linkage"], "--groups linkage is for a number of groups"),
    (["-k", "2", "--norm", "distance"], "--norm distance is for a resolution: give --alike and --apart too"),
    (["-k", "2", "--claim", "any-two"], "--claim any-two is for a resolution"),
    (["-k", "2", "--groups", "ward"], "--groups must be one of equal, linkage, got ward"),
    (["--alike", "0.1", "--apart", "1", "--noise", "any"], "cannot be proven under any noise"),
    (["-k", "2", "--groups", "linkage"], "State what is known: bounds of the results"),
    (["--alike", "0.1", "--apart", "1", "--noise", "1", "-m", "boc"], 'method "boc" does not find groups up to'),
]


@pytest.mark.parametrize(("options", "why"), WRONG)
def test_what_cannot_be_asked_is_said_in_a_line(table: Path, options: list[str], why: str) -> None:
    for command in (["group", str(table)], ["campaign", "new", "x", "-a", "5", "--dim", "2", "--store", "store.db"]):
        answer = run(*command, *options)
        assert answer.exit_code == 2, answer.output
        assert why in answer.stderr
        assert answer.stderr.count("\n") == 1, "one line, no traceback"
    assert not Path("store.db").exists() or run("campaign", "list", "--json", "--store", "store.db").stdout == "[]\n"


def test_a_new_campaign_must_say_what_is_asked_for(table: Path) -> None:
    answer = run("campaign", "new", "x", "-a", "5", "--dim", "2", "--store", "store.db")
    assert answer.exit_code == 2, answer.output
    wanted = "say how many groups there are, with --clusters, or which differences matter, with --alike and --apart"
    assert wanted in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert not Path("store.db").exists() or run("campaign", "list", "--json", "--store", "store.db").stdout == "[]\n"


def test_the_options_are_a_resolution() -> None:
    found = asked_for(None, "0.1, 15", "0.4;60", "distance", "any-two", "equal", 2)["resolution"]
    with pytest.raises(ValueError, match="same share"):
        asked_for(None, "0.1,15", "0.5,60", "distance", "any-two", "equal", 2)
    assert found == coterie.Resolution([0.1, 15], [0.4, 60], "distance", "any-two")
    assert asked_for(None, "0.1", "1", "each", "references", "equal")["resolution"] == coterie.Resolution(0.1, 1)
    assert asked_for(4, None, None, "each", "references", "linkage") == {
        "n_clusters": 4, "resolution": None, "groups": "linkage",
    }  # fmt: skip


def test_a_noise_that_is_known_exactly() -> None:
    assert noise_of(noise_from_text("exactly:0.5", 2), 2) == noise_of(coterie.Exactly(0.5), 2)
    assert noise_of(noise_from_text("Exactly:0.5,2", 2), 2) == noise_of(coterie.Exactly([0.5, 2.0]), 2)
    assert noise_of(noise_from_text("exactly:0.5", 2), 2) != noise_of(0.5, 2)
    for text, why in (
        ("exactly", "as in exactly:0.5"),
        ("exactly:-1", "must be positive"),
        ("exactly:x", "write one of"),
    ):
        with pytest.raises(ValueError, match=why):
            noise_from_text(text, 2)


def test_a_table_is_grouped_up_to_a_resolution(table: Path, own: Method) -> None:
    options = ["--alike", "1,100", "--apart", "3,300", "--noise", "0.1,1", "-m", own.name]
    found = json.loads(run("group", str(table), *options, "--json").stdout)
    assert found["n_clusters"] is None
    assert found["question"]["kind"] == "resolution"
    assert [one["names"] for one in found["groups"]] == [["ash", "elm"], ["bay", "oak"], ["fir"]]
    assert found["references"] == ["ash", "bay", "fir"]
    assert found["borders"] == {"ash": [3], "elm": [3], "fir": [1]}
    assert (found["alarm"], found["homogeneity"], found["misfits"], found["fewer"]) == (None, None, [], None)
    assert found["forecast"] == {"total": 5.0 * EACH, "enough": True}
    said = run("group", str(table), *options, "--out", "found")
    text = " ".join(said.stdout.split())
    assert "20 of 30 measurements would have been enough: 3 groups; if the noise is as stated, every item" in text
    assert "within (3, 300) of its reference, any two references are more than (1, 100) apart" in text
    assert (
        "Near a border, and could belong elsewhere: ash (also group 3), elm (also group 3), fir (also group 1)." in text
    )
    assert "None" not in text
    rows = list(csv.DictReader(Path("found/groups.csv").read_text().splitlines()))
    assert [row["reference"] for row in rows] == ["ash", "bay", "ash", "fir", "bay"]
    assert [row["could also be in group"] for row in rows] == ["3", "", "3", "1", ""]


def test_a_table_that_is_too_short_says_what_it_would_allow(here: Path, own: Method) -> None:
    lines = ["item,v0", *(f"{name},{mean}" for _ in range(2) for name, mean in MEANS.items())]
    (here / "short.csv").write_text("\n".join(lines) + "\n")
    said = run("group", "short.csv", "--alike", "1", "--apart", "3", "--noise", "bounded:0,20", "-m", own.name)
    assert said.exit_code == 0, said.stderr
    text = " ".join(said.stdout.split())
    assert "it takes about 20, more than the 10 measurements that the table has." in text
    assert "They are expected to be enough for --apart 4.25." in text
    assert "All 10 measurements are not enough to prove groups up to a resolution of 1 and 3" in text
    assert "None" not in text


@pytest.mark.parametrize("question", [["--alike", "1", "--apart", "3"], ["-k", "2", "--groups", "linkage"]])
def test_what_croc_says_of_a_table_that_is_too_short(here: Path, question: list[str]) -> None:
    lines = ["item,v0", *(f"{name},{mean}" for _ in range(2) for name, mean in MEANS.items())]
    (here / "short.csv").write_text("\n".join(lines) + "\n")
    said = run("group", "short.csv", *question, "--noise", "2", "--growing")
    assert said.exit_code == 0, said.stderr
    assert "All 10 measurements are not enough to prove" in " ".join(said.stdout.split())
    assert "None" not in said.stdout
    assert "exactly" not in said.stdout


@pytest.mark.slow
def test_a_campaign_is_created_and_followed(here: Path, own: Method) -> None:
    options = ["--alike", "1", "--apart", "3", "--noise", "bounded:0,20", "-m", own.name]
    made = run("campaign", "new", "trees", "--names", "ash,bay,elm,fir,oak", *options)
    assert made.exit_code == 0, made.stderr
    assert "5 items, groups up to a resolution of 1 and 3, 1 number each" in made.stdout
    assert "What will be proven: every item of a group is within 3 of its reference" in made.stdout
    assert "same mean" not in made.stdout, "items of a group need not be equal"
    assert "found" in run("campaign", "list").stdout
    status = json.loads(run("campaign", "status", "trees", "--json").stdout)
    assert status["resolution"] == {"alike": 1.0, "apart": 3.0, "norm": "each", "claim": "references"}
    for i in range(EACH):
        for name, mean in MEANS.items():
            run("campaign", "ask", "trees", "--worker", "w")
            told = run("campaign", "tell", "trees", "--arm", name, "--worker", "w", "--id", f"{name}{i}", str(mean))
            assert told.exit_code == 0, told.stderr
    text = " ".join(run("campaign", "status", "trees").stdout.split())
    assert "Proven after 20 measurements: 3 groups; every item of a group is within 3 of its reference" in text
    assert "Near a border, and could belong elsewhere: ash (also group 3)" in text
    assert "Asked for: groups up to a resolution of 1 and 3" in text
    assert "None" not in text


def test_a_campaign_by_single_linkage(here: Path, own: Method) -> None:
    made = run("campaign", "new", "trees", "-a", "5", "-k", "2", "--groups", "linkage", "--noise", "1", "-m", own.name)
    assert made.exit_code == 0, made.stderr
    assert "5 items, 2 groups by single linkage" in made.stdout
    status = json.loads(run("campaign", "status", "trees", "--json").stdout)
    assert (status["groups"], status["question"]["kind"], status["n_clusters"]) == ([], "linkage", 2)


def test_simulations_of_other_questions_have_no_lower_bound(here: Path, own: Method) -> None:
    (here / "known.json").write_text('{"labels": [0, 0, 1, 1], "centers": [[0.0], [30.0]]}')
    simulate = ["simulate", "--instance", "known.json", "-n", "2", "-m", own.name]
    answer = run(*simulate, "--alike", "5", "--apart", "10", "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert found["resolution"] == {"alike": 5.0, "apart": 10.0, "norm": "each", "claim": "references"}
    assert found["results"][0] | {"std_pulls": 0.0} == {
        "delta": 0.05, "mean_pulls": 16.0, "std_pulls": 0.0, "wrong": 0, "given_up": 0, "lower_bound": None,
    }  # fmt: skip
    assert "single linkage" in run(*simulate, "--groups", "linkage").stdout
    assert json.loads(run(*simulate, "--json").stdout)["results"][0]["lower_bound"] > 0
