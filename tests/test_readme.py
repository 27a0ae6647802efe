"""The documentation runs: its Python is executed, its commands, targets, links and names exist."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer.main

from coterie.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, *languages: str) -> list[str]:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [text for language, text in found if language in languages]


def check_command(line: str) -> None:
    """One line of a shell block: its program, and what it is asked to do, exist."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["make"]:
        assert set(words[1:]) <= TARGETS, line
    elif words[:2] == ["pip", "install"]:
        for extra in re.findall(r"\[([\w,]+)\]", line):
            assert set(extra.split(",")) <= EXTRAS.keys(), line
    elif words[:1] == ["coterie"]:
        command, rest = typer.main.get_command(app), words[1:]
        while rest and not rest[0].startswith("-") and hasattr(command, "commands"):  # a command, or a family of them
            assert rest[0] in command.commands, line
            command, rest = command.commands[rest[0]], rest[1:]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known | {"--help", "--"}, line
    elif words[:1] == ["dask"]:
        assert words[1] in {command.name for command in entry_points(group="dask_cli")}, line
    else:
        assert words[:1] in (["git"], ["cd"], ["python"], ["python3"]), f"unknown command: {line}"


@each_page
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    # In a fresh interpreter, as the reader would; later examples of a page build on earlier ones.
    script = tmp_path / f"{page.stem}.py"
    script.write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    answer = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


@each_page
def test_shell_commands_exist(page: Path) -> None:
    for text in blocks(page, "sh", "bash", "console"):
        for line in text.replace("\\\n", " ").splitlines():
            command = line.removeprefix("$ ").strip()
            if command and not command.startswith("#"):
                check_command(command)
    for target in re.findall(r"`make (\w+)`", page.read_text(encoding="utf-8")):
        assert target in TARGETS, target


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    anchors = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    }
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("#"):
            assert link[1:] in anchors, link
        elif "://" not in link and not link.endswith(".png"):  # the pictures are generated
            assert (page.parent / link.split("#")[0]).exists(), link


@each_page
def test_dotted_names_can_be_imported(page: Path) -> None:
    for name in set(re.findall(r"`(coterie(?:\.\w+)+)`", page.read_text(encoding="utf-8"))):
        module, found = name, None
        while found is None:
            try:
                found = importlib.import_module(module)
            except ModuleNotFoundError:
                module = module.rpartition(".")[0]
                assert module, name
        for attribute in name.removeprefix(module).strip(".").split("."):
            if attribute:
                found = getattr(found, attribute)
