"""The wheel as people install it: it is built once, has all its files, and its command runs from a place of its own."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import coterie

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, **further: str) -> str:
    """What a command prints; without this checkout on the way to its modules."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | further
    found = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment, timeout=300
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    here = ["--no-build-isolation"] if find_spec("hatchling") else []  # then nothing is fetched
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *here, "-w", folder, source)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    wanted = {
        str(file.relative_to(ROOT / "src"))
        for file in (ROOT / "src" / "coterie").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert any(name.endswith(".html") for name in wanted)
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_the_command_runs_from_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """What `pipx install` and `uvx` do, without fetching: the dependencies are those that are here already."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python, command = (tmp_path / "venv" / "bin" / name for name in ("python", "coterie"))
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    assert run(command, "--version").strip() == f"coterie {coterie.__version__}"
    where = run(python, "-c", "import coterie, coterie.web.app; print(coterie.__file__)").strip()
    assert Path(where).is_relative_to(packages)


@pytest.mark.parametrize(
    ("tool", "words"),
    [("uvx", ("--from", "{}", "coterie", "--version")), ("pipx", ("run", "--spec", "{}", "coterie", "--version"))],
)
def test_tools_run_the_command(wheel: Path, tmp_path: Path, tool: str, words: tuple[str, ...]) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not here; the test above does the same without it")
    shown = run(tool, *(word.format(wheel) for word in words), PIPX_HOME=str(tmp_path), UV_TOOL_DIR=str(tmp_path))
    assert f"coterie {coterie.__version__}" in shown
