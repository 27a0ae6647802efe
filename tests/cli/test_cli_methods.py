"""Methods on the command line: the table printed, choices and help made from it, methods from outside the package."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from coterie.campaign.settings import CampaignSettings
from coterie.cli import app
from coterie.cli.methods import offered_methods
from coterie.methods import METHODS, Method, method_named, register, unregister
from coterie.methods.table import PACKAGED
from coterie.problem.settings import DELTA, METHOD, THRESHOLD

MODULE = """
from coterie.methods import Method, METHODS, register

register(Method("{name}", "{sentence}", METHODS["uniform"].start, rules={rules}))
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def same_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone after it."""
    monkeypatch.delenv("COTERIE_REGISTER", raising=False)
    before = set(METHODS)
    yield
    for name in set(METHODS) - before:
        unregister(name)


def write_module(folder: Path, name: str, rules: int = 1, sentence: str = "somebody's own") -> Path:
    path = folder / f"{name.replace('-', '_')}_module.py"
    path.write_text(MODULE.format(name=name, rules=rules, sentence=sentence), encoding="utf-8")
    return path


def test_methods_prints_the_table() -> None:
    listed = json.loads(run("methods", "--json").stdout)
    assert [one["name"] for one in listed] == list(METHODS)
    for one in listed:
        method = METHODS[one["name"]]
        assert (one["sentence"], one["needs"]) == (method.sentence, sorted(method.needs))
        assert (one["certifies"], one["always_proven"]) == (method.certifies, not method.has_thresholds)
    shown = run("methods").stdout
    assert all(name in shown for name in METHODS)
    assert "distance_ratio" in shown


def option_of(command: str, option: str) -> Any:
    found: Any = typer.main.get_command(app)
    for part in command.split():
        found = found.commands[part]
    context = typer.Context(found, info_name=command)
    return next(one for one in found.get_params(context) if option in one.opts)


@pytest.mark.parametrize(
    ("command", "simulation"),
    [("simulate", True), ("demo", True), ("group", False), ("campaign new", False), ("campaign replay", False)],
)
def test_help_lists_the_methods_with_their_sentences(command: str, simulation: bool) -> None:
    own = register(Method("listed-rule", "a rule that is registered later", METHODS["uniform"].start))
    text = option_of(command, "--method").help
    offered = offered_methods(simulation)
    assert own in offered
    assert all(f"{one.name}: {one.sentence}" in text for one in offered)
    others = [one for one in METHODS.values() if one not in offered]
    assert bool(others) != simulation
    assert not any(f"{one.name}:" in text for one in others)


def test_completion_knows_the_methods() -> None:
    complete = option_of("simulate", "--method").shell_complete
    context = typer.Context(typer.main.get_command(app))
    found = complete(context, "bo")
    assert [(one.value, one.help) for one in found] == [
        (name, METHODS[name].sentence) for name in ("boc", "boc-linear")
    ]


def test_defaults_are_those_of_the_settings() -> None:
    for command in ("group", "campaign new"):
        given = {name: option_of(command, f"--{name}").default for name in ("delta", "method", "threshold")}
        assert given == {"delta": DELTA, "method": METHOD, "threshold": THRESHOLD}
    known = inspect.signature(CampaignSettings.of).parameters
    for name in ("lease_seconds", "on_expiry"):
        assert option_of("campaign new", f"--{name.replace('_', '-')}").default == known[name].default


def test_every_command_that_opens_a_campaign_can_register() -> None:
    members = typer.main.get_command(app).commands["campaign"].commands  # type: ignore[attr-defined]
    assert len(members) >= 9
    for name in set(members) - {"backup", "delete"}:  # which open no campaign
        assert option_of(f"campaign {name}", "--register").envvar == "COTERIE_REGISTER"
    for name in ("simulate", "demo", "group", "methods", "serve"):
        assert option_of(name, "--register")


def test_a_file_registers_a_method(tmp_path: Path) -> None:
    path = write_module(tmp_path, "file-rule")
    for _ in range(2):  # a second time in one process it is there already
        answer = run("methods", "--register", path, "--json")
        assert answer.exit_code == 0, answer.stderr
        assert json.loads(answer.stdout)[-1]["name"] == "file-rule"
    assert method_named("file-rule").sentence == "somebody's own"


def test_a_module_of_this_folder_registers_a_method(tmp_path: Path) -> None:
    write_module(tmp_path, "own-rule", sentence="of this folder")
    env = os.environ | {"COTERIE_REGISTER": "own_rule_module"}
    command = [sys.executable, "-m", "coterie.cli", "methods", "--json"]
    answer = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)[-1]["sentence"] == "of this folder"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
        ("x = 1", "no method was registered: call coterie.methods.register"),
        ("raise SystemExit", "SystemExit"),
        ("def", "SyntaxError"),
        (
            "from coterie.methods import *\nregister(Method('croc', 's', METHODS['boc'].start))",
            "belongs to the package",
        ),
        (
            "from coterie.methods import *\nregister(Method('x', 's', METHODS['boc'].start, needs={'luck'}))",
            "needs luck",
        ),
    ],
)
def test_what_goes_wrong_in_a_module_is_one_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(content, encoding="utf-8")
    answer = run("methods", "--register", path)
    assert answer.exit_code == 2
    assert said in answer.stderr
    assert str(path) in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    assert "there is no file" in run("methods", "--register", tmp_path / "nowhere.py").stderr
    assert "No module named 'nowhere_at_all'" in run("methods", "--register", "nowhere_at_all").stderr
    assert "no method was registered" in run("methods", "--register", "json").stderr


@pytest.mark.parametrize("command", [("simulate", "easy", "--trials", 1), ("campaign", "new", "x", "-k", 2, "-a", 4)])
def test_an_unknown_method_lists_the_known_ones(
    command: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run(*command, "--method", "magic")
    assert answer.exit_code == 2
    assert "'magic'" in answer.stderr
    assert all(name in answer.stderr for name in PACKAGED)


def test_simulate_runs_a_registered_method(tmp_path: Path) -> None:
    path = write_module(tmp_path, "turns")
    own = run("simulate", "easy", "--method", "turns", "--register", path, "-n", 3, "--workers", 1, "--json")
    assert own.exit_code == 0, own.stderr
    packaged = run("simulate", "easy", "--method", "uniform", "-n", 3, "--workers", 1, "--json")
    found, known = json.loads(own.stdout), json.loads(packaged.stdout)
    assert found["method"] == "turns"
    assert all(row["wrong"] == 0 and row["given_up"] == 0 for row in found["results"])
    assert len(found["results"]) == len(known["results"])


def test_a_campaign_needs_its_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_module(tmp_path, "campaign-rule", rules=2)
    made = run("campaign", "new", "x", "-k", 2, "-a", 4, "--method", "campaign-rule", "--noise", 1, "--register", path)
    assert made.exit_code == 0, made.stderr
    asked = json.loads(run("campaign", "ask", "x", "--register", path, "--json").stdout)["asks"][0]
    unregister("campaign-rule")  # as in another process
    refused = run("campaign", "tell", "x", "1.5", "--lease", asked["lease"])
    assert refused.exit_code == 2
    assert "'campaign-rule', which is not known in this process (known: croc, " in refused.stderr
    assert "--register MODULE" in refused.stderr
    assert "campaign-rule" in run("campaign", "list", "--json").stdout  # a list does without the method
    register(Method("campaign-rule", "an older one", METHODS["uniform"].start, rules=1))
    refused = run("campaign", "status", "x")
    assert refused.exit_code == 2
    assert "decision rules number 2 of method 'campaign-rule', this release has number 1" in refused.stderr
    register(Method("campaign-rule", "as it was", METHODS["uniform"].start, rules=2), replace_existing=True)
    told = run("campaign", "tell", "x", "1.5", "--lease", asked["lease"])
    assert told.exit_code == 0, told.stderr
