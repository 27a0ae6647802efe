"""docs/SERVER.md: its commands run, and the options that it names exist."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer.main

from coterie.cli import app
from coterie.client import Client

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "SERVER.md").read_text(encoding="utf-8")


def test_examples_run(start: Any, tmp_path: Path) -> None:
    api = start().api  # of its own: a name is taken once
    (script,) = re.findall(r"^```shell\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert "http://127.0.0.1:8000" in script
    run = "set -euo pipefail\n" + script.replace("http://127.0.0.1:8000", api.url)
    answer = subprocess.run(["bash", "-c", run], env={"TOKEN": api.token, "PATH": "/usr/bin:/bin:/usr/local/bin"},
                            capture_output=True, text=True, timeout=300, cwd=tmp_path)  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    said = answer.stdout
    assert '"name":"apple"' in said
    assert '{"accepted":1,"duplicates":0,"done":false}' in said
    assert '{"accepted":0,"duplicates":1,"done":false}' in said
    assert "monday/1,apple,0.2" in said
    assert "event: told" in said
    assert '"new":2,"duplicates":0' in said
    assert '{"accepted":2,"duplicates":0,"done":false' in said
    assert (tmp_path / "groups.xlsx").read_bytes().startswith(b"PK")


def test_the_python_example_runs(start: Any) -> None:
    api = start().api  # of its own: a name is taken once
    (script,) = re.findall(r"^```py\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert "http://127.0.0.1:8000" in script
    run = "import random; random.seed(1)\n" + script.replace("http://127.0.0.1:8000", api.url)
    answer = subprocess.run([sys.executable, "-c", run], env=os.environ | {"COTERIE_TOKEN": api.token},
                            capture_output=True, text=True, timeout=120)  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert "['apple', 'pear'], ['kiwi', 'fig']" in answer.stdout


def test_the_command_of_the_systemd_unit_serves(tmp_path: Path) -> None:
    (unit,) = re.findall(r"^```ini\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    settings = configparser.ConfigParser(interpolation=None)
    settings.optionxform = str  # type: ignore[assignment,method-assign] # systemd's names have capitals
    settings.read_string(unit)
    service = settings["Service"]
    program, *words = shlex.split(service["ExecStart"])
    state = service["WorkingDirectory"]
    assert (program, state) == ("/opt/coterie/bin/coterie", f"/var/lib/{service['StateDirectory']}")
    assert words[words.index("--port") + 1] == "8000"
    words[words.index("--port") + 1] = "0"  # 8000 may be taken
    here = [word.replace(state, str(tmp_path)) for word in words]
    assert here != words
    # As systemd would: nothing in the environment but the line of /etc/coterie.env, and SIGTERM at the end.
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME", "LANG") if name in os.environ}
    with subprocess.Popen(
        [sys.executable, "-m", "coterie.cli", *here], cwd=tmp_path, env=kept | {"COTERIE_TOKEN": "x" * 40},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(f"Coterie serves sqlite:///{tmp_path}/coterie.db at http://127.0.0.1:"), line
            with Client(line.split()[-1], "x" * 40) as client:
                assert client.campaigns() == []
        finally:
            process.terminate()
        process.wait(300)
    assert (tmp_path / "coterie.db").exists()


def test_options_are_described_and_those_on_the_page_exist() -> None:
    """Of the descriptions docs/reference/command-line.md is made (tests/docs/test_docs_site.py)."""
    serve, *others = (typer.main.get_command(app).commands[name] for name in ("serve", "token", "campaign"))  # type: ignore[attr-defined]
    assert [parameter.name for parameter in serve.params if not parameter.help] == []
    known = {option for parameter in serve.params for option in parameter.opts}
    known |= {o for group in others for part in group.commands.values() for given in part.params for o in given.opts}
    others_lines = re.compile(r"curl|docker|python3|systemctl")
    lines = [line for line in PAGE.splitlines() if not others_lines.search(line)]
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", "\n".join(lines)))
    assert len(named) > 10
    assert named - known == set()


def test_every_address_is_described(api: Any) -> None:
    """Of the description docs/reference/http.md is made (tests/docs/test_docs_site.py)."""
    document = api.get("/openapi.json").json
    for path, methods in document["paths"].items():
        for method, request in methods.items():
            assert request["description"].strip(), (method, path)
    bodies = {name: schema for name, schema in document["components"]["schemas"].items() if name.endswith("Body")}
    assert len(bodies) > 10
