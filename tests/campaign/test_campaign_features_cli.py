"""Campaigns with features on the command line: new, ask, tell, status, import; bad input in words, no traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from feature_stub import use_in_turn_by_feature
from typer.testing import CliRunner

from coterie.cli import app

NEW = ["campaign", "new", "beans", "--names", "borlotti,navy,pinto", "--clusters", "2", "--noise", "1"]
FEATURES = ["--features", "ph,iron,zinc", "--panel", "blood=iron,zinc"]


@pytest.fixture(autouse=True)
def _in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_in_turn_by_feature(monkeypatch)
    monkeypatch.chdir(tmp_path)


def run(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(app, list(words))
    assert (result.exit_code != 0) is fails, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output


def test_a_campaign_is_measured_by_feature() -> None:
    out = run(*NEW, *FEATURES, "--feature-costs", "1,,", "--panel-costs", "blood=5", "--holes", "at-random")
    assert "2 panels of 3 features" in out
    assert "which numbers of a result are missing has nothing to do with" in out
    out = run("campaign", "ask", "beans", "-n", "4")
    assert "feature" in out
    assert "cost" in out
    assert "then, for ph of borlotti" in out
    assert "blood" in run("campaign", "status", "beans")  # under way
    asks = json.loads(run("campaign", "ask", "beans", "-n", "4", "--json"))["asks"]
    assert [(ask["name"], ask["feature"], ask["cost"]) for ask in asks] == [
        ("borlotti", "ph", 1.0), ("navy", "ph", 1.0), ("pinto", "ph", 1.0), ("borlotti", "blood", 5.0),
    ]  # fmt: skip
    out = run("campaign", "tell", "beans", "--lease", asks[3]["lease"], "3.1", "nan")
    assert "on record: blood of borlotti" in out
    out = run("campaign", "tell", "beans", "--arm", "navy", "--feature", "ph", "6.9")
    assert "on record: ph of navy: 6.9" in out
    assert "beans" in run("campaign", "status", "beans")
    exported = run("campaign", "export", "beans", "--kind", "csv")
    assert "navy,ph,6.9" in exported


def test_features_come_from_a_file_or_are_counted(tmp_path: Path) -> None:
    (tmp_path / "assays.txt").write_text("ph\niron\n")
    assert "2 features, measured one by one" in run(*NEW, "--features", "assays.txt")
    assert "10000 features" in run(
        "campaign", "new", "wide", "--arms", "9", "--clusters", "2", "--noise", "1", "--features", "10000"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--panel", "blood=iron"], "name them with --features"),
        (["--features", "ph,iron", "--panel", "blood"], "written as blood=iron,zinc"),
        (["--features", "ph,iron", "--panel", "blood=tin"], "unknown feature 'tin'"),
        (["--features", "ph,iron", "--feature-costs", "1,x"], "a cost is a positive number"),
        (["--features", "ph,iron", "--feature-costs", "1"], "--feature-costs must be 2 positive numbers"),
        (["--features", "ph,iron", "--holes", "always"], "--holes must be at-random"),
        (["--features", "ph,ph"], "'ph' is there twice"),
        (["--features", "ph,iron", "--dim", "3"], "dim is the number of features"),
        (["--features", "ph,iron", "--method", "boc"], "does not measure features one by one"),
        (["--features", "20000000"], "at most 1,000,000"),
    ],
)
def test_bad_options_are_named(options: list[str], message: str) -> None:
    assert message in " ".join(run(*NEW, *options, fails=True).split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arm", "navy", "6.9"], "say which feature or panel was measured"),
        (["--arm", "navy", "--feature", "tin", "6.9"], "'tin'"),
        (["--arm", "navy", "--feature", "blood", "6.9"], "must have ['iron', 'zinc']"),
        (["--arm", "navy", "--feature", "blood", "6.9", "nan"], "--holes at-random"),
    ],
)
def test_bad_results_are_named(words: list[str], message: str) -> None:
    run(*NEW, *FEATURES)
    assert message in " ".join(run("campaign", "tell", "beans", *words, fails=True).split())


def test_words_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert "--features must be at least 1, got -3" in run(*NEW, "--features", "-3", fails=True)
    assert "1 feature, measured" in run(*NEW, "--features", "1")
    run("campaign", "new", "peas", *NEW[3:], *FEATURES)
    out = run("campaign", "tell", "peas", "--item", "navy", "1", fails=True)
    assert "--feature 'ph', or --lease" in out
    assert "…" not in out
    assert "there is no deadline to change" in run("campaign", "deadline", "peas", "9", fails=True)
    for option, value in (("--dim", "4"), ("--values", "x,y,z")):
        assert f"coterie: {option} " in run("campaign", "new", "lupin", *NEW[3:], *FEATURES, option, value, fails=True)
