"""Output that nobody reads to its end: the command ends without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run_unread(words: list[str], folder: Path, buffered: bool) -> tuple[int, str]:
    """Exit code and standard error of a command whose standard output is a pipe that is closed already."""
    reading, writing = os.pipe()
    os.close(reading)
    environment = os.environ | ({} if buffered else {"PYTHONUNBUFFERED": "1"})
    try:
        found = subprocess.run(
            [sys.executable, "-m", "coterie.cli", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment,
        )
    finally:
        os.close(writing)
    return found.returncode, found.stderr


GROUP = ["group", "t.csv", "--alike", "1", "--apart", "4", "--noise", "1"]


@pytest.mark.parametrize(
    ("words", "buffered"), [(["--version"], True), (["methods"], True), ([*GROUP, "--json"], True), (GROUP, False)]
)
def test_a_closed_pipe_is_no_error(words: list[str], buffered: bool, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item,x\n" + "a,0\nb,0.5\nc,9\n" * 9, encoding="utf-8")
    code, errors = run_unread(words, tmp_path, buffered)
    assert errors == ""
    assert code in (141, 1)


def test_files_are_written_before_the_answer_is_printed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item,x\n" + "a,0\nb,0.5\nc,9\n" * 9, encoding="utf-8")
    run_unread([*GROUP, "--out", "out"], tmp_path, False)
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"groups.csv", "certificate.json", "log.csv"}


def test_other_errors_of_the_system_are_still_named(tmp_path: Path) -> None:
    code, errors = run_unread(["group", "missing.csv", "--clusters", "2"], tmp_path, True)
    assert code == 2
    assert errors == "coterie: No such file: missing.csv\n"
