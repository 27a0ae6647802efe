"""docs/SERVER.md: its commands run, and every option of `coterie serve` is in it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import typer.main

from coterie.cli import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "SERVER.md").read_text(encoding="utf-8")


def test_examples_run(api: Any) -> None:
    (script,) = re.findall(r"^```shell\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert "http://127.0.0.1:8000" in script
    run = "set -euo pipefail\n" + script.replace("http://127.0.0.1:8000", api.url)
    answer = subprocess.run(["bash", "-c", run], env={"TOKEN": api.token, "PATH": "/usr/bin:/bin:/usr/local/bin"},
                            capture_output=True, text=True, timeout=60)  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    said = answer.stdout
    assert '"name":"apple"' in said
    assert '{"accepted":1,"duplicates":0,"done":false}' in said
    assert '{"accepted":0,"duplicates":1,"done":false}' in said
    assert "monday/1,apple,0.2" in said
    assert "event: told" in said


def test_every_option_is_described() -> None:
    command = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in parameter.opts} - {"--help"}
    assert options == set(re.findall(r"^\| `(--[\w-]+)` \|", PAGE, flags=re.MULTILINE))


def test_every_address_is_described(api: Any) -> None:
    document = api.get("/openapi.json").json
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"`{method.upper()} {path}" in PAGE, (method, path)
