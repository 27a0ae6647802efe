"""`coterie campaign` as somebody types it who has not read about it: the answer says what to type instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coterie.cli import app


def run(*arguments: object) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["campaign", *map(str, arguments)], env={"COTERIE_WORKER": ""})
    return answer.exit_code, " ".join(answer.output.split())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert run("new", "beans", "--names", "a,b,c,d", "-k", 2)[0] == 0


def test_an_item_in_place_of_an_option() -> None:
    code, said = run("tell", "beans", "a", 3.2)
    assert code == 2
    assert "coterie campaign tell beans --item a 3.2" in said
    code, said = run("tell", "beans", "--item", "a", 3.2)
    assert (code, said[:18]) == (0, "on record: a: 3.2 ")


def test_the_result_of_an_ask_is_of_whoever_asked() -> None:
    asked = json.loads(CliRunner().invoke(app, ["campaign", "ask", "beans", "--worker", "ann", "--json"]).stdout)
    assert run("tell", "beans", "--lease", asked["asks"][0]["lease"], 3.2)[0] == 0
    found = json.loads(CliRunner().invoke(app, ["campaign", "status", "beans", "--json"]).stdout)
    assert {one["worker"]: one["measurements"] for one in found["workers"]} == {"ann": 1}


def test_a_correction_by_the_name_of_an_item_lists_its_measurements() -> None:
    for k in range(14):
        assert run("tell", "beans", "--arm", "b", 3 + k, "--id", f"m{k}", "--yes")[0] == 0
    code, said = run("correct", "beans", "b", 3.14, "--reason", "typo")
    assert code == 2
    assert "name one of its measurements: m13 (16), m12 (15), " in said
    assert said.endswith("m2 (5); 2 earlier ones: coterie campaign export")
    assert "was not measured yet" in run("correct", "beans", "c", 3.14, "--reason", "typo")[1]
    assert "coterie campaign export has the ids" in run("correct", "beans", "q", 3.14, "--reason", "typo")[1]


def test_items_without_an_option_are_listed() -> None:
    assert run("tell", "beans", "--arm", "a", 3.2)[0] == 0
    assert run("items", "beans", "--retire", "d", "--reason", "broke")[0] == 0
    code, said = run("items", "beans")
    assert code == 0
    assert "│ a │ 1 │ – │" in said
    assert "│ d │ 0 │ retired │" in said
    assert "coterie campaign items beans --add NAME" in said
    found = json.loads(CliRunner().invoke(app, ["campaign", "items", "beans", "--json"]).stdout)
    assert [one["name"] for one in found] == ["a", "b", "c", "d"]


def test_a_result_of_a_retired_item_is_said_to_play_no_role() -> None:
    assert run("items", "beans", "--retire", "d", "--reason", "broke")[0] == 0
    assert "d is retired: the result is kept, and plays no role" in run("tell", "beans", "--arm", "d", 3.2)[1]
    assert "retired" not in run("tell", "beans", "--arm", "a", 3.2)[1]
