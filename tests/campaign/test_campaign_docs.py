"""docs/CAMPAIGNS.md is executed from top to bottom: its Python and its commands, in one folder."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coterie.cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "CAMPAIGNS.md"


@pytest.mark.slow
def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    shown: list[tuple[str, str]] = []
    folder = os.getcwd()
    os.chdir(tmp_path)
    try:
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
            if language == "python":
                exec(compile(block, str(PAGE), "exec"), names)
            elif language == "sh":
                for line in block.splitlines():
                    words = shlex.split(line)
                    if words[0] == "coterie":
                        # In this process: another one for each of the commands would take most of the time.
                        answer = CliRunner().invoke(app, words[1:])
                        assert answer.exit_code == 0, (line, answer.output)
                        shown.append((line, answer.stdout))
            elif language == "text":
                # The page shows what the last command printed; how many were enough may change with the method.
                kept, found = (re.sub(r"\d[\d.]*|[\s─━┃│┏┓┡┩┳╇┴└┘]", "", part) for part in (block, shown[-1][1]))
                assert kept == found, shown[-1]
    finally:
        os.chdir(folder)
    assert any("valid: 6 items in 2 groups" in out for _, out in shown)
    enough = re.search(r"(\d+) of 2400 measurements would have been enough", text)
    printed = next(re.search(r"(\d+) of 2400", out) for line, out in shown if "--growing" in line)
    assert enough is not None
    assert printed is not None
    assert 0.5 < int(printed[1]) / int(enough[1]) < 2.0
