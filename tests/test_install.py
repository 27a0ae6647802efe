"""The release as people install it: sdist and wheel, built once, and used in environments with nothing else in them."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import coterie

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, cwd: Path | None = None, fails: bool = False, **further: str) -> str:
    """What a command prints; without this checkout on the way to its modules."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | further
    found = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment, timeout=300, cwd=cwd
    )
    assert (found.returncode != 0) == fails, found.stdout + found.stderr
    return found.stdout + (found.stderr if fails else "")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From a copy of what is in the repository: nothing that was generated here gets into it."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    generated = shutil.ignore_patterns("__pycache__", "_build", ".hypothesis")
    for name in (*included(), "pyproject.toml"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=generated)
        else:
            shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=source)
    (built,) = folder.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, as pip does where it finds no wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=folder / sdist.name[:-7])
    (built,) = folder.glob("*.whl")
    return built


def included() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return list(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])


def files_of(*folders: str) -> set[str]:
    return {
        str(file.relative_to(ROOT))
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    wanted = {name.removeprefix("src/") for name in files_of("src/coterie")}
    assert any(name.endswith(".html") for name in wanted)
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert wanted <= packed
    assert {name.split("/")[0] for name in packed} == {"coterie", f"coterie-{coterie.__version__}.dist-info"}


def test_the_sdist_has_what_its_makefile_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as packed:
        inside = {name.split("/", 1)[1] for name in packed.getnames()}
    wanted = files_of("src/coterie", "tests", "bench", ".ci") | {"Makefile", "README.md", "LICENSE", "pyproject.toml"}
    assert wanted <= inside
    assert not any("_build" in name or "__pycache__" in name for name in inside)


def test_every_place_says_the_same_version(wheel: Path) -> None:
    version = coterie.__version__
    assert wheel.name == f"coterie-{version}-py3-none-any.whl"
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"version = {{{version}}}" in (ROOT / "README.md").read_text()


def needs(requirements: Iterable[str]) -> dict[str, metadata.Distribution]:
    """What these requirements install, from what is installed here."""
    found: dict[str, metadata.Distribution] = {}
    ahead = [(Requirement(line), "") for line in requirements]
    while ahead:
        requirement, extra = ahead.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        if name in found and not requirement.extras:
            continue
        found[name] = metadata.distribution(name)
        lines = found[name].requires or []
        ahead += [(Requirement(line), asked) for line in lines for asked in ("", *requirement.extras)]
    return found


class Environment:
    """A new environment with the wheel and its dependencies, and nothing else: what pip installs, without fetching.

    The dependencies are linked to, from where they are installed here.
    """

    def __init__(self, folder: Path, wheel: Path, extra: str | None = None) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", folder)  # this environment's pip works on it
        self.python, self.command = (folder / "bin" / name for name in ("python", "coterie"))
        (self.packages,) = folder.glob("lib/python*/site-packages")
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        wanted = [*project["dependencies"], *(project["optional-dependencies"][extra] if extra else [])]
        homes = {Path(place).resolve() for place in site.getsitepackages()}
        for package in needs(wanted).values():
            assert package.files is not None
            for name in {file.parts[0] for file in package.files if file.parts[0] not in ("..", "__pycache__")}:
                home = Path(str(package.locate_file(name)))
                assert home.parent.resolve() in homes, home
                if not (self.packages / name).exists():
                    (self.packages / name).symlink_to(home)
        self.pip("install", "--quiet", "--no-deps", "--no-index", wheel)

    def pip(self, *words: object) -> str:
        return run(sys.executable, "-m", "pip", "--python", self.python, *words)


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("core") / "venv", wheel)


def test_pip_finds_nothing_missing(core: Environment) -> None:
    assert "No broken requirements" in core.pip("check")


def test_the_library_alone_groups_a_table_and_checks_the_proof(core: Environment, tmp_path: Path) -> None:
    """Without what extras bring: an import that pyproject.toml does not name would fail."""
    assert run(core.command, "--version").strip() == f"coterie {coterie.__version__}"
    assert Path(run(core.python, "-c", "import coterie; print(coterie.__file__)")).is_relative_to(core.packages)
    centers = {"a": 0, "b": 9, "c": 0}
    rows = [f"{name},{center + shift}" for shift in (-0.1, 0.0, 0.1) * 3 for name, center in centers.items()]
    (tmp_path / "mine.csv").write_text("\n".join(["item,value", *rows, ""]))
    # Without compiled code: the engine of this place would be compiled anew, for three items.
    words = ("group", "mine.csv", "--clusters", "2", "--noise", "0.5", "--out", "found")
    run(core.command, *words, cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    run(core.command, "verify", "found/certificate.json", "found/log.csv", cwd=tmp_path)
    labels = json.loads((tmp_path / "found" / "certificate.json").read_text())["labels"]
    assert coterie.same_partition(labels, [0, 1, 0])
    said = run(core.command, "serve", fails=True, cwd=tmp_path)
    assert "coterie[serve]" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_the_server_needs_its_extra_and_nothing_more(wheel: Path, tmp_path: Path) -> None:
    serve = Environment(tmp_path / "venv", wheel, "serve")
    assert "No broken requirements" in serve.pip("check")
    run(serve.python, "-c", "import coterie.web.app, coterie.store.sql; from coterie.campaign import Campaigns")
    words = ("campaign", "new", "beans", "--names", "a,b,c", "--clusters", "2", "--dim", "1", "--noise", "1")
    run(serve.command, *words, cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    assert "beans" in run(serve.command, "campaign", "list", cwd=tmp_path)


@pytest.mark.parametrize(
    ("tool", "words"),
    [("uvx", ("--from", "{}", "coterie", "--version")), ("pipx", ("run", "--spec", "{}", "coterie", "--version"))],
)
def test_tools_run_the_command(wheel: Path, tmp_path: Path, tool: str, words: tuple[str, ...]) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not here; the tests above do the same without it")
    shown = run(tool, *(word.format(wheel) for word in words), PIPX_HOME=str(tmp_path), UV_TOOL_DIR=str(tmp_path))
    assert f"coterie {coterie.__version__}" in shown
