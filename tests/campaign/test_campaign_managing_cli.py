"""`coterie campaign undo`, `lease-time`, `archive`, `unarchive`, `delete` and `list --archived`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coterie.cli import app


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def command(*words: str) -> Any:
        return CliRunner().invoke(app, ["campaign", *words, "--store", str(tmp_path / "store.db")])

    made = command("new", "beans", "--arms", "4", "--clusters", "2", "--noise", "1", "--method", "uniform")
    assert made.exit_code == 0, made.output
    return command


def test_an_ask_is_undone(run: Any) -> None:
    (ask,) = json.loads(run("ask", "beans", "--worker", "ann", "--json").stdout)["asks"]
    assert run("undo", "beans", ask["lease"], "--reason", "by mistake").stdout == "undone: 0\n"
    assert json.loads(run("undo", "beans", ask["lease"], "--json").stdout)["ended"] == "undone"
    (ask,) = json.loads(run("ask", "beans", "--worker", "ann", "--json").stdout)["asks"]
    run("fail", "beans", ask["lease"])
    assert "nothing to undo" in run("undo", "beans", ask["lease"]).stdout
    shown = " ".join(run("status", "beans").stdout.split())
    assert "Of 2 asks: 1 failed and 1 undone." in shown
    assert json.loads(run("status", "beans", "--json").stdout)["failures"]["undone"] == 1
    wrong = run("undo", "beans", "nobody's")
    assert wrong.exit_code != 0
    assert "there is no lease" in wrong.output


def test_the_lease_time_is_changed(run: Any) -> None:
    assert run("lease-time", "beans", "60").stdout == "from the next ask on: 60 seconds (before: 3600)\n"
    assert run("lease-time", "beans", "60").stdout == "nothing has changed: it is 60 seconds already\n"
    assert json.loads(run("lease-time", "beans", "90", "--json").stdout)["lease_seconds"] == 90.0
    assert run("lease-time", "beans", "0").exit_code != 0


def test_a_campaign_is_archived_and_taken_up_again(run: Any) -> None:
    assert "archived since 20" in run("archive", "beans").stdout
    refused = run("ask", "beans")
    assert refused.exit_code != 0
    assert "unarchive it first" in refused.output
    assert "read-only" in run("status", "beans").stdout
    assert "beans" not in run("list").stdout
    assert "archived" in run("list", "--archived").stdout
    assert "coterie campaign ask beans" in run("unarchive", "beans").stdout
    assert run("ask", "beans").exit_code == 0
    assert json.loads(run("archive", "beans", "--json").stdout)["archived"]
    assert json.loads(run("unarchive", "beans", "--json").stdout) == {"archived": None}


def test_deleting_has_to_be_meant(run: Any) -> None:
    run("tell", "beans", "--arm", "0", "1.5")
    refused = run("delete", "beans")
    assert refused.exit_code != 0
    assert "has 1 measurements" in refused.output
    assert "--yes" in refused.output
    assert "beans" in run("list").stdout
    assert run("delete", "beans", "--yes").stdout.startswith("deleted: beans (")
    assert run("status", "beans").exit_code != 0


def test_the_command_that_comes_next_works_with_blocks(run: Any) -> None:
    assert run("new", "plates", "--names", "a,b,c", "--clusters", "2", "--blocks", "offset").exit_code == 0
    for name in ("status", "unarchive"):
        said = run(name, "plates").stdout.splitlines()[-1]
        assert said.startswith("next: coterie campaign ask plates"), said
        result = CliRunner().invoke(app, shlex.split(said)[2:])
        assert result.exit_code == 0, result.output
