"""`coterie campaign`: what the commands do and print, on real stores."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from coterie.campaign import Campaigns
from coterie.cli import app


def coterie(*arguments: object, **environment: str) -> Result:
    return CliRunner().invoke(app, ["campaign", *map(str, arguments)], env={"COTERIE_WORKER": "", **environment})


def ok(*arguments: object, **environment: str) -> str:
    answer = coterie(*arguments, **environment)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def refused(*arguments: object, **environment: str) -> str:
    answer = coterie(*arguments, **environment)
    assert answer.exit_code == 2, answer.output
    assert answer.stderr.startswith("coterie: ")
    assert answer.stderr.count("\n") == 1, "one line"
    return answer.stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def test_every_option_of_every_command_is_documented() -> None:
    family = typer.main.get_command(app).commands["campaign"]
    assert set(family.commands) >= {"new", "ask", "tell", "fail", "status", "list", "import", "export", "replay"}
    for name, command in family.commands.items():
        assert command.help, name
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options, name
        assert "--store" in options or name == "replay", name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_a_campaign_from_beginning_to_end(here: Path) -> None:
    made = json.loads(ok("new", "beans", "--names", "a,b,c", "-k", 2, "--json"))
    assert (made["n_arms"], made["names"], made["dim"]) == (3, ["a", "b", "c"], 1)
    heights = {"a": 9.0, "b": -9.0, "c": 9.5}
    count = 0
    while not (answer := json.loads(ok("ask", "beans", "-n", 2, "--worker", "w", "--json")))["done"]:
        for ask in answer["asks"]:
            count += 1
            told = ok("tell", "beans", "--lease", ask["lease"], heights[ask["name"]])
            assert f"on record: lease-{ask['lease']}" in told
            again = ok("tell", "beans", "--lease", ask["lease"], heights[ask["name"]])
            assert "was on record already" in again
    assert count >= 3
    assert "nothing: the groups are found" in ok("ask", "beans")
    shown = ok("status", "beans")
    assert re.search(r"Proven after \d+ measurements: 2 groups", shown)
    assert "a, c" in shown
    found = json.loads(ok("status", made["id"], "--json"))
    assert found["labels"] == [0, 1, 0]
    assert "beans" in ok("list")
    assert made["id"] in ok("list")
    (listed,) = json.loads(ok("list", "--json"))
    assert (listed["id"], listed["done"], listed["measurements"]) == (made["id"], True, count)
    ok("export", "beans", "--kind", "certificate", "-o", "certificate.json")
    ok("export", "beans", "--kind", "log", "-o", "log.csv")
    verdict = CliRunner().invoke(app, ["verify", "certificate.json", "log.csv"])
    assert verdict.exit_code == 0, verdict.output
    assert json.loads(ok("export", "beans", "--json"))["format"] == "coterie-campaign-1"


@pytest.mark.parametrize(
    "values", [("-1.5", "2"), ("--", "-1.5", "2"), ("2", "-1.5"), ("-1e-3", "-.5"), ("--", "2", "-3")]
)
def test_negative_numbers_are_values(here: Path, values: tuple[str, ...]) -> None:
    ok("new", "beans", "-a", 3, "-k", 2, "--dim", 2)
    ok("tell", "beans", "--arm", 1, "--id", "m", *values)
    with Campaigns(here / "coterie.db") as store:
        (row,) = store.measurements(store.list()[0]["id"])["measurements"]
    assert row["values"] == [float(value) for value in values if value != "--"]
    assert (row["id"], row["arm"]) == ("m", 1)


def test_telling_by_arm_answers_ones_own_ask(here: Path) -> None:
    ok("new", "beans", "--names", "0,1,2", "-k", 2)  # names that look like numbers, in their order
    ok("ask", "beans", "-w", "ann")
    ok("ask", "beans", "-w", "bob")
    ok("tell", "beans", "--arm", "1", "-w", "bob", 3.0)
    found = json.loads(ok("status", "beans", "--json"))
    assert [(one["name"], one["worker"]) for one in found["open_leases"]] == [("0", "ann")]
    told = json.loads(ok("tell", "beans", "--arm", "2", 1.0, "--json", COTERIE_WORKER="cleo"))
    assert told["accepted"] == 1
    found = json.loads(ok("status", "beans", "--json"))
    assert [one["worker"] for one in found["workers"]] == ["ann", "bob", "cleo"]
    assert "ann" in ok("status", "beans")


def test_fail_frees_the_lease(here: Path) -> None:
    ok("new", "beans", "-a", 3, "-k", 2)
    (ask,) = json.loads(ok("ask", "beans", "--json"))["asks"]
    assert "freed: 0" in ok("fail", "beans", ask["lease"], "--reason", "spilled")
    assert json.loads(ok("fail", "beans", ask["lease"], "--json"))["freed"]
    assert json.loads(ok("status", "beans", "--json"))["open_leases"] == []


def test_import_and_export(here: Path) -> None:
    ok("new", "one", "--names", "a,b,c", "-k", 2, "--dim", 2, "--noise", "1.5,2")
    ok("new", "two", "--names", "a,b,c", "-k", 2, "--dim", 2, "--noise", "[[2.25,0],[0,4]]")
    (here / "old.csv").write_text("when,arm,h,w\nmon,a,1,2\ntue,b,3,4\n")
    assert "2 measurements taken in" in ok("import", "one", "old.csv", "--values", "h,w")
    assert "0 measurements taken in, 2 were on record" in ok("import", "one", "old.csv", "--values", "h,w")
    ok("export", "one", "--out", "one.csv")
    assert json.loads(ok("import", "two", "one.csv", "--json"))["accepted"] == 2
    assert ok("export", "two") == (here / "one.csv").read_text() == ok("export", "one")
    (here / "bad.csv").write_text("arm,a,b\nz,1,2")
    assert "row 1, column 'arm'" in refused("import", "one", "bad.csv")
    assert "No such file" in refused("import", "one", "nowhere.csv")


def test_replay_of_a_pool(here: Path) -> None:
    rows = ["arm,v", *(f"{name},{value + k / 50}" for k in range(30) for name, value in [("a", 0), ("b", 5), ("c", 5)])]
    (here / "pool.csv").write_text("\n".join(rows))
    assert re.search(r"\d+ of 90 measurements would have been enough", ok("replay", "pool.csv", "-k", 2))
    found = json.loads(ok("replay", "pool.csv", "-k", 2, "--json"))
    assert found["done"]
    (here / "pool.csv").write_text("\n".join(rows[:4]))
    shown = ok("replay", "pool.csv", "-k", 2, "--delta", 1e-9)
    assert "ran dry" in shown
    assert "All 3 measurements are not enough" in shown
    assert "Undecided" in shown
    (here / "pool.csv").write_text("\n".join(rows))
    shown = ok("replay", "pool.csv", "-k", 2, "-m", "uniform", "--threshold", "heuristic")
    assert "heuristic threshold, no proof" in shown
    assert not (here / "coterie.db").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("new", "x", "-k", 2), "say how many items there are"),
        (("new", "x", "-k", 2, "-a", 3, "--names", "a,b"), "--arms is 3, but there are 2 names"),
        (("new", "x", "-k", 3, "-a", 3), "n_clusters must be smaller"),
        (("new", "x", "-k", 2, "-a", 3, "--noise", "big"), "--noise must be a number"),
        (("new", "x", "-k", 2, "-a", 3, "--noise", "-1"), "must be positive"),
        (("new", "x", "-k", 2, "-a", 3, "--names-file", "nowhere"), "No such file"),
        (("ask", "peas"), "there is no campaign 'peas'"),
        (("ask", "twice"), "2 campaigns are called 'twice'"),
        (("ask", "beans", "-n", 0), "n must be at least 1"),
        (("tell", "beans", 1.0), "say what was measured"),
        (("tell", "beans", "--arm", 0, "x"), "a measurement is numbers, got 'x'"),
        (("tell", "beans", "--arm", 0, "nan"), "must be finite"),
        (("tell", "beans", "--arm", 0, "--leese", "5"), "a measurement is numbers, got '--leese'"),
        (("tell", "beans", "--arm", 9, 1.0), "unknown arm 9"),
        (("tell", "beans", "--arm", "z", 1.0), "unknown arm 'z'"),
        (("tell", "beans", "--arm", 0, 1.0, 2.0), "shape"),
        (("tell", "beans", "--lease", "q", 1.0), "there is no lease 'q'"),
        (("fail", "beans", "q"), "there is no lease 'q'"),
        (("export", "beans", "--kind", "certificate"), "has no certificate yet"),
        (("replay", "nowhere.csv", "-k", 2), "No such file"),
        (("status", "beans", "--store", "elsewhere.db"), "there is no store at elsewhere.db"),
        (("list", "--store", "mysql://x/y"), "a store is sqlite:///FILE or postgresql://"),
    ],
)
def test_what_is_wrong_is_one_line(here: Path, arguments: tuple[Any, ...], what: str) -> None:
    for name in ("beans", "twice", "twice"):
        ok("new", name, "-a", 3, "-k", 2)
    assert what in refused(*arguments)
    assert not (here / "elsewhere.db").exists()


def test_the_store_is_named_by_option_or_environment(here: Path, url: str) -> None:
    ok("new", "beans", "-a", 3, "-k", 2, "--store", url)
    assert "beans" in ok("list", COTERIE_STORE=url)
    (here / "names.txt").write_text("oak\n\nash\nelm\n")
    made = json.loads(ok("new", "trees", "--names-file", "names.txt", "-k", 2, "--json", COTERIE_STORE=url))
    assert made["names"] == ["oak", "ash", "elm"]
    assert "oak" in ok("ask", made["id"][:8], COTERIE_STORE=url)
    assert not (here / "coterie.db").exists()
