"""The documentation runs: its examples are executed, its commands, targets and names exist.

README.md and the pages directly in docs/ have examples for several situations: their Python is executed, their commands
are looked up. The pages in its folders (tutorial, how-to, reference, theory) tell one story each: they are run from top
to bottom, commands too, in an empty folder, and what they say is printed is compared with what is.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer.main

import coterie
from coterie.cli import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
STORIES = sorted(page for page in DOCS.glob("[!_]*/**/*.md"))
ABOUT = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")]
PAGES = [ROOT / "README.md", *ABOUT, *sorted(DOCS.glob("*.md"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))

# Setting up happens once, elsewhere; and a server ends only when it is told to.
NOT_IN_STORIES = ("pip install", "make ", "git ", "cd ", "python3 -m venv", "source ", "pipx ", "uvx ", "uv ")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
each_story = pytest.mark.parametrize("page", STORIES, ids=name_of)
everywhere = pytest.mark.parametrize("page", [*PAGES, *STORIES], ids=name_of)


def all_blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in all_blocks(page) if language in languages]


def check_command(line: str) -> None:
    """One line of a shell block: its program, and what it is asked to do, exist."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["make"]:
        assert set(words[1:]) <= TARGETS, line
    elif words[:2] == ["pip", "install"] or words[:1] in (["pipx"], ["uv"], ["uvx"]):
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
        assert words[:1] in (["git"], ["cd"], ["source"], ["python"], ["python3"]), f"unknown command: {line}"


@pytest.mark.parametrize(
    "page", [PAGES[0], *(pytest.param(page, marks=pytest.mark.slow) for page in PAGES[1:])], ids=name_of
)
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


@everywhere
def test_targets_and_commands_in_the_text_exist(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"`make ([\w-]+)`", prose):
        assert target in TARGETS, target
    for line in re.findall(r"`(coterie [^`\n]+)`", prose):
        check_command(line)


# Pages that are executed from top to bottom.


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_python(block: str, page: Path, names: dict[str, Any]) -> str:
    """What a block prints; one that begins with `# name.py` is saved under that name instead."""
    file = re.match(r"# (\w+\.py)\n", block)
    if file is not None:
        Path(file[1]).write_text(block, encoding="utf-8")
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, name_of(page), "exec"), names)
    return printed.getvalue()


def environment() -> dict[str, str]:
    """That of a newcomer who has switched to this virtual environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {name: value for name, value in os.environ.items() if not name.startswith("COTERIE_")} | {"PATH": path}


def run_shell(block: str) -> str:
    """What the commands of a block print; they must succeed."""
    lines = []
    for line in block.splitlines():
        if line.startswith(NOT_IN_STORIES):
            check_command(line)
        elif line == "coterie serve":
            check_server()
        else:
            lines.append(line)
    command = ["bash", "-euo", "pipefail", "-c", "\n".join(lines)]
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    answer = subprocess.run(command, env=environment(), text=True, stdout=pipe, stderr=both)
    assert answer.returncode == 0, (block, answer.stdout)
    return answer.stdout


def check_server() -> None:
    """`coterie serve` says where it is and gives a token, with which one sees campaigns; it ends when told to."""
    command, pipe = [sys.executable, "-m", "coterie.cli", "serve", "--port", "0"], subprocess.PIPE
    with subprocess.Popen(command, env=environment(), stdout=pipe, stderr=pipe, text=True) as server:
        try:
            assert server.stdout is not None
            first = server.stdout.readline()
            assert "Coterie serves" in first, (first, server.communicate(timeout=60))
            second = server.stdout.readline()
            assert second.startswith("Token"), second
            address, bearer = f"{first.split()[-1]}/api/campaigns", f"Bearer {second.split()[-1]}"
            request = urllib.request.Request(address, headers={"Authorization": bearer})
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert len(json.load(answer)["campaigns"]) == 1
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)


def matches(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, `…` standing for anything.

    The lines of tables are left out, and numbers: rounding differs between processors, and then so may how many
    measurements are enough. COTERIE_EXACT=1 looks at numbers too, before a release.
    """
    numbers = "" if os.environ.get("COTERIE_EXACT") else r"-?\d[\d.]*(e-\d+)?|"
    kept, found = (re.sub(numbers + r"[\s─━┃│┏┓┡┩┳╇┴└┘]", "", text) for text in (shown, printed))
    return re.fullmatch(".*".join(map(re.escape, kept.split("…"))), found) is not None


@pytest.mark.slow
@each_story
def test_pages_run_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    with inside(tmp_path):
        for language, block in all_blocks(page):
            if language == "python":
                printed = run_python(block, page, names)
            elif language == "sh":
                printed = run_shell(block)
            elif language == "text":
                assert matches(block, printed), f"the page shows:\n{block}\nbut this was printed:\n{printed}"
            else:
                raise AssertionError(f"{name_of(page)} has a block of {language!r}, which nothing executes")


def test_the_comparison_sees_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTERIE_EXACT", raising=False)
    assert matches("t = 51 │ box1 …\nvalid", "t = 7\n│ box2  anything valid\n")
    assert not matches("t = 51 │ box1", "t = 51 │ crate")
    assert not matches("valid …", "not valid: x")
    monkeypatch.setenv("COTERIE_EXACT", "1")
    assert not matches("t = 51", "t = 52")


# Names.


def test_the_version_to_cite_is_this_one() -> None:
    for page in ("README.md", "docs/theory/theorems.md", "CITATION.cff"):
        stated = re.findall(r"^version: (\S+)$|version *= \{([\d.]+)\}", (ROOT / page).read_text(), flags=re.MULTILINE)
        assert ["".join(version) for version in stated] == [coterie.__version__], page


@everywhere
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
