"""Campaigns whose items differ in cost: from lists, files and over HTTP; on record, in status and exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from coterie.campaign import Campaigns
from coterie.campaign.errors import BadValue
from coterie.cli import app
from coterie.web.page_content import spent

COSTS = [1.0, 1.0, 20.0, 1.0]


def coterie(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["campaign", *map(str, arguments)], env={"COTERIE_WORKER": "ann"})


def measured(store: Campaigns, id: str, n: int = 4) -> None:
    for ask in store.ask(id, "ann", n)["asks"]:
        store.tell(
            id, [{"id": ask["lease"], "arm": ask["arm"], "values": [4.0 * (ask["arm"] % 2)], "lease": ask["lease"]}]
        )


def test_costs_are_kept_and_reported(opened: Callable[[], Campaigns]) -> None:
    made = opened().create("x", 4, 2, 1, noise=1.0, costs=COSTS, cost_unit="EUR")
    assert (made["costs"], made["cost_unit"]) == (COSTS, "EUR")
    measured(opened(), made["id"])
    status = opened().status(made["id"])
    assert (status["cost"], status["costs"], status["cost_unit"]) == (23.0, COSTS, "EUR")
    assert status["cost_left"] is None or status["cost_left"] > 0.0
    assert (spent(status) or "").startswith("Spent so far: 23 EUR")
    header, *rows = opened().export(made["id"], "groups").splitlines()
    place = header.split(",").index("cost")
    assert [float(row.split(",")[place]) for row in rows] == COSTS


def test_without_costs_all_is_as_before(opened: Callable[[], Campaigns]) -> None:
    made = opened().create("x", 4, 2, 1, noise=1.0)
    assert "costs" not in made
    measured(opened(), made["id"])
    status = opened().status(made["id"])
    assert (status["cost"], status["cost_left"]) == (None, None)
    assert "costs" not in status
    assert spent(status) is None
    assert "cost" not in opened().export(made["id"], "groups").splitlines()[0].split(",")


@pytest.mark.parametrize(
    ("costs", "method", "said"),
    [
        ([1, 2], "croc", "4 positive numbers, one for each item, got 2"),
        ([1, 1, 0, 1], "croc", "costs must be positive, got 0.0 for item 2"),
        (["a"] * 4, "croc", "costs must hold real numbers"),
        (COSTS, "boc", "method 'boc' does not weigh costs"),
    ],
)
def test_bad_costs_are_refused_by_name(tmp_path: Path, costs: Any, method: str, said: str) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        with pytest.raises(BadValue, match=said) as refused:
            store.create("x", 4, 2, 1, noise=1.0, method=method, costs=costs)
        assert refused.value.field == "costs"
        assert store.list() == []


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({}, ["--names", "a,b,c,d", "--costs", "1,1,20,1"]),
        ({"costs.txt": "1\n1\n20\n1\n"}, ["--names", "a,b,c,d", "--costs", "costs.txt"]),
        ({"costs.csv": "item,cost\nd,1\nc,20\nb,1\na,1\n"}, ["--names", "a,b,c,d", "--costs", "costs.csv"]),
        ({"items.csv": "item,cost\na,1\nb,1\nc,20\nd,1\n"}, ["--names-file", "items.csv"]),
        ({"items.csv": "cost,item\n1,a\n1,b\n20,c\n1,d\n"}, ["--names-file", "items.csv"]),
    ],
)
def test_costs_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).write_text(text)
    made = coterie("new", "x", "--clusters", 2, "--noise", 1, "--cost-unit", "EUR", *options, "--json")
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    assert (found["names"], found["costs"]) == (["a", "b", "c", "d"], COSTS)
    assert "spent: 0 EUR" in coterie("status", "x").stdout


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", ["--names", "a,b,c", "--costs", "1,x,2"], "a cost is a positive number, got 'x' for item 1"),
        ("a,1\nb,2\n", ["--names", "a,b,c", "--costs", "f.csv"], "has no cost for c"),
        ("a,1\nz,2\n", ["--names", "a,b,c", "--costs", "f.csv"], "no item is called 'z'"),
        ("a,1\na,2\n", ["--names", "a,b,c", "--costs", "f.csv"], "two costs for 'a'"),
        ("a,1\nb,2\n", ["--arms", "2", "--costs", "f.csv"], "the items have no names"),
        ("item,cost\na,1\nb\nc,2\n", ["--names-file", "f.csv"], "line 3"),
        ("item,cost\na,1\nb,dear\nc,2\n", ["--names-file", "f.csv"], "column cost: a number is needed, got 'dear'"),
        ("", ["--names", "a,b,c", "--costs", "nofile.csv"], "got 'nofile.csv'"),
    ],
)
def test_bad_costs_on_the_command_line_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.csv").write_text(text)
    answer = coterie("new", "x", "--clusters", 2, "--noise", 1, *options)
    assert answer.exit_code == 2, answer.output
    assert said in answer.stderr
    assert answer.stderr.count("\n") == 1
