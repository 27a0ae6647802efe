"""The commands that lead, those for researchers with their former names, and `--json`."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

import coterie
from coterie.certificate import write_log
from coterie.cli import FIRST, app
from coterie.paper.summary import Check
from coterie.web.serving import announce

RESEARCH = ("simulate", "budget", "hardness", "methods", "reproduce", "bench")


def test_help_lists_what_leads_first_and_no_former_names() -> None:
    commands = typer.main.get_command(app)
    context = typer.Context(commands)
    shown = [name for name in commands.list_commands(context) if not commands.get_command(context, name).hidden]  # type: ignore[attr-defined]
    assert tuple(shown[: len(FIRST)]) == FIRST
    assert set(shown) == {*FIRST, "token", "research"}


@pytest.mark.parametrize("name", RESEARCH)
def test_a_former_name_is_the_same_command(name: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    former, now = commands[name], commands["research"].commands[name]
    assert former.callback.__wrapped__ is now.callback.__wrapped__
    assert [parameter.opts for parameter in former.params] == [parameter.opts for parameter in now.params]


def test_a_former_option_says_what_to_write(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("item,x\na,0.1\nb,0.2\nc,9.1\na,0.2\nb,0.1\nc,9\n")
    now, former = (
        CliRunner().invoke(app, ["group", str(table), "--noise", "1", option, "--json"])
        for option in ("--growing", "--in-order")
    )
    assert json.loads(former.stdout) == json.loads(now.stdout)
    assert "--in-order is deprecated: say --growing" in former.stderr


@pytest.mark.parametrize("kept", [True, False])
def test_verify_prints_its_verdict_as_json(kept: bool, tmp_path: Path) -> None:
    session, rng = coterie.Session(4, 2, 1, noise=1.0), np.random.default_rng(0)
    while not session.done:
        item = session.ask()
        session.tell(item, 5.0 * (item % 2) + rng.standard_normal())
    certificate, log = tmp_path / "certificate.json", tmp_path / "log.csv"
    certificate.write_text(json.dumps(session.certificate))
    write_log(log, session.events, dim=1)
    if not kept:
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(lines[:-2]))
    answer = CliRunner().invoke(app, ["verify", str(certificate), str(log), "--json"])
    verdict = json.loads(answer.stdout)
    assert (answer.exit_code, verdict["valid"]) == (0 if kept else 1, kept)
    assert (verdict["problems"] == []) == (verdict["claim"] is not None) == kept


def test_the_demo_as_json(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "run.png"
    answer = CliRunner().invoke(app, ["demo", "--out", str(picture), "--seed", "1", "--json"])
    assert answer.exit_code == 0, answer.stderr
    run = json.loads(answer.stdout)  # and nothing else is printed
    assert (run["method"], run["proven"], run["right"], run["picture"]) == ("croc", True, True, str(picture))
    assert sum(run["pulls"]) == run["measurements"]
    assert [run["labels"].count(group) for group in range(3)] == [50, 50, 50]
    assert len(run["others"]) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_checks_of_a_reproduction_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check("table1", "as printed", True, "0.1 %"), Check("figure3", "slopes", False, "2 of 9")]
    done = SimpleNamespace(checks=checks, seconds=2.5, report=tmp_path / "report.html")
    monkeypatch.setattr("coterie.paper.reproduce.reproduce", lambda *given, **named: done)
    answer = CliRunner().invoke(app, ["research", "reproduce", "--json"])
    assert json.loads(answer.stdout) == {
        "checks": [
            {"part": "table1", "claim": "as printed", "holds": True, "detail": "0.1 %"},
            {"part": "figure3", "claim": "slopes", "holds": False, "detail": "2 of 9"},
        ],
        "seconds": 2.5,
        "report": str(tmp_path / "report.html"),
    }


def test_kept_benchmarks_as_json(tmp_path: Path) -> None:
    (tmp_path / "speed.json").write_text('{"rows": [{"n": 1}]}')
    bench = ["research", "bench", "--show", "--json", "--out", str(tmp_path)]
    for more in ([], ["speed"]):
        answer = CliRunner().invoke(app, [*bench, *more])
        assert answer.exit_code == 0, answer.output
        assert json.loads(answer.stdout) == {"speed": {"rows": [{"n": 1}]}}
    answer = CliRunner().invoke(app, [*bench, "needed"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "needed.json is not there: measure it with coterie bench needed" in answer.stderr
    answer = CliRunner().invoke(app, ["research", "bench", "--json"])
    assert "give --show too" in answer.stderr


def test_help_fits_80_columns_and_names_no_label_of_the_paper() -> None:
    def shown(path: list[str], command: Any) -> None:
        assert "\n" not in (command.help or "").replace("\n\n", ""), "paragraphs wrap where the terminal ends"
        text = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).stdout
        assert max(map(len, text.splitlines())) <= 80, path
        assert "equation" not in text, path
        for name, below in getattr(command, "commands", {}).items():
            shown([*path, name], below)

    shown([], typer.main.get_command(app))


def test_every_command_answers_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    def without(path: str, command: Any) -> list[str]:
        if hasattr(command, "commands"):
            return [found for name, below in command.commands.items() for found in without(f"{path} {name}", below)]
        return [] if any("--json" in option.opts for option in command.params) else [path]

    assert without("coterie", typer.main.get_command(app)) == []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        announce("store.db", listening, "secret", (None, None), as_json=True)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    assert json.loads(capsys.readouterr().out) == {"store": "store.db", "address": address, "token": "secret"}
