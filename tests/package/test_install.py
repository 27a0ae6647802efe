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
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import toolchain
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import coterie

ROOT = Path(__file__).resolve().parents[2]
BUILT = re.compile(r"_native\S*\.(so|pyd)$")  # the engine, beside the sources or in a wheel
Pip = Callable[..., str]


def run(*command: object, cwd: Path | None = None, fails: bool = False, wait: int = 300, **further: str) -> str:
    """What a command prints; without this checkout on the way to its modules."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CXX")} | further
    found = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment, timeout=wait, cwd=cwd
    )
    assert (found.returncode != 0) == fails, found.stdout + found.stderr
    return found.stdout + (found.stderr if fails else "")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From this folder as it is: nothing that was generated here gets into it."""
    folder = tmp_path_factory.mktemp("dist")
    script = "import sys; sys.path.insert(0, 'packaging'); import backend; backend.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", script, folder, cwd=ROOT)
    (built,) = folder.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Pip:
    """In an environment in which there is nothing else."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", folder)
    return lambda *words, **further: run(folder / "bin" / "python", "-m", "pip", *words, wait=3600, **further)


@pytest.fixture(scope="module")
def wheel(sdist: Path, pip: Pip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, as pip does where it finds no wheel: with what it fetches for that from a package index."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--quiet", "--no-deps", "-w", folder, sdist)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def tree(sdist: Path, tmp_path: Path) -> Path:
    """The sources, to be changed."""
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / sdist.name.removesuffix(".tar.gz")


def files_of(*folders: str) -> set[str]:
    return {
        str(file.relative_to(ROOT))
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and not BUILT.search(file.name)
    }


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_one_engine(wheel: Path) -> None:
    wanted = {name.removeprefix("src/") for name in files_of("src/coterie")}
    assert any(name.endswith(".html") for name in wanted)
    packed = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in packed if name.startswith(f"coterie-{coterie.__version__}.dist-info/")}
    (engine,) = packed - wanted - about
    assert BUILT.search(engine)
    assert wanted <= packed


def test_the_sdist_has_what_its_makefile_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as packed:
        inside = {name.split("/", 1)[1] for name in packed.getnames()}
    wanted = files_of("src/coterie", "native", "packaging", "tests", "bench", ".ci", "docs/howto", "docs/notebooks")
    wanted |= {"Makefile", "CMakeLists.txt", "README.md", "LICENSE", "pyproject.toml", ".clang-format", ".clang-tidy"}
    wanted |= {"CONTRIBUTING.md", "SECURITY.md", "requirements-dev.lock"}
    assert wanted <= inside
    generated = re.compile(r"_build/|__pycache__|\.hypothesis|\.(so|pyd|pyc)$")
    assert [name for name in inside if generated.search(name)] == []


def test_every_place_says_the_same_version(sdist: Path) -> None:
    version = coterie.__version__
    assert sdist.name == f"coterie-{version}.tar.gz"
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"version = {{{version}}}" in (ROOT / "README.md").read_text()


def test_the_lock_file_has_a_version_for_every_requirement_and_names_no_place() -> None:
    """`make lock` makes it anew; a bound that was raised in pyproject.toml is seen here."""
    text = (ROOT / "requirements-dev.lock").read_text()
    assert not re.search(r"://|^-|file:", text, re.MULTILINE)
    pins = [Requirement(line) for line in text.splitlines() if not line.startswith("#")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]:
        wanted = Requirement(line)
        versions = [
            str(pin.specifier).removeprefix("==")
            for pin in pins
            if canonicalize_name(pin.name) == canonicalize_name(wanted.name)
        ]
        assert versions, line
        assert all(wanted.specifier.contains(version) for version in versions), line


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

    def pip(self, *words: object, **further: Any) -> str:
        return run(sys.executable, "-m", "pip", "--python", self.python, *words, **further)


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("core") / "venv", wheel)


@pytest.mark.slow
def test_pip_finds_nothing_missing(core: Environment) -> None:
    assert "No broken requirements" in core.pip("check")


@pytest.mark.slow
def test_the_library_alone_groups_a_table_and_checks_the_proof(core: Environment, tmp_path: Path) -> None:
    """Without what extras bring: an import that pyproject.toml does not name would fail."""
    assert run(core.command, "--version").strip() == f"coterie {coterie.__version__}"
    assert Path(run(core.python, "-c", "import coterie; print(coterie.__file__)")).is_relative_to(core.packages)
    group_a_table(core, tmp_path)
    said = run(core.command, "serve", fails=True, cwd=tmp_path)
    assert "coterie[serve]" in said
    assert "Traceback" not in said


def group_a_table(here: Environment, folder: Path) -> None:
    centers = {"a": 0, "b": 9, "c": 0}
    rows = [f"{name},{center + shift}" for shift in (-0.1, 0.0, 0.1) * 3 for name, center in centers.items()]
    (folder / "mine.csv").write_text("\n".join(["item,value", *rows, ""]))
    run(here.command, "group", "mine.csv", "--clusters", "2", "--noise", "0.5", "--out", "found", cwd=folder)
    run(here.command, "verify", "found/certificate.json", "found/log.csv", cwd=folder)
    labels = json.loads((folder / "found" / "certificate.json").read_text())["labels"]
    assert coterie.same_partition(labels, [0, 1, 0])


@pytest.mark.slow
def test_the_server_needs_its_extra_and_nothing_more(wheel: Path, tmp_path: Path) -> None:
    serve = Environment(tmp_path / "venv", wheel, "serve")
    assert "No broken requirements" in serve.pip("check")
    run(serve.python, "-c", "import coterie.web.app, coterie.store.sql; from coterie.campaign import Campaigns")
    words = ("campaign", "new", "beans", "--names", "a,b,c", "--clusters", "2", "--dim", "1", "--noise", "1")
    run(serve.command, *words, cwd=tmp_path)
    assert "beans" in run(serve.command, "campaign", "list", cwd=tmp_path)


def no_tools(folder: Path) -> str:
    """A PATH on which there is no program at all."""
    (folder / "no tools").mkdir()
    return str(folder / "no tools")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the system's tools are found without PATH")
def test_without_any_tool_the_engine_is_built_with_a_compiler_from_the_index(
    sdist: Path, pip: Pip, tmp_path: Path
) -> None:
    """The compiler is ziglang, which builds C++'s library first: minutes."""
    pip("wheel", "--quiet", "--no-deps", "-w", tmp_path, sdist, PATH=no_tools(tmp_path))
    (built,) = tmp_path.glob("*.whl")
    group_a_table(Environment(tmp_path / "venv", built), tmp_path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the system's tools are found without PATH")
def test_without_compiler_and_index_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    """What `make demo` begins with, too."""
    words = (ROOT / "packaging" / "toolchain.py", "build")
    said = run(sys.executable, *words, fails=True, PATH=no_tools(tmp_path), PIP_NO_INDEX="1")
    assert said == toolchain.MISSING + "\n"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the system's tools are found without PATH")
@pytest.mark.parametrize("how", [[], ["-e"]], ids=["install", "editable"])
def test_pip_without_compiler_and_index_shows_the_sentence_and_installs_nothing(
    pip: Pip, tree: Path, tmp_path: Path, how: list[str]
) -> None:
    before = pip("list")
    said = pip("install", "--no-deps", *how, tree, fails=True, PATH=no_tools(tmp_path), PIP_NO_INDEX="1")
    assert toolchain.MISSING in re.sub(r"\s+", " ", said)
    assert "Traceback" not in said
    assert pip("list") == before


@pytest.mark.slow
def test_a_build_that_fails_leaves_what_was_installed(core: Environment, tree: Path, tmp_path: Path) -> None:
    (tree / "native" / "broken.cpp").write_text("int broken() { return nowhere; }\n")
    before = files_in(core)
    for words in ([tree], ["-e", tree]):
        assert "nowhere" in core.pip("install", "--no-deps", "--force-reinstall", *words, fails=True, wait=3600)
    assert files_in(core) == before
    group_a_table(core, tmp_path)


def files_in(here: Environment) -> dict[str, int]:
    """All files of an environment that are its own, with their sizes."""
    return {
        str(file): file.stat().st_size
        for file in here.packages.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "words"),
    [("uvx", ("--from", "{}", "coterie", "--version")), ("pipx", ("run", "--spec", "{}", "coterie", "--version"))],
)
def test_tools_run_the_command(wheel: Path, tmp_path: Path, tool: str, words: tuple[str, ...]) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not here; the tests above do the same without it")
    shown = run(tool, *(word.format(wheel) for word in words), PIPX_HOME=str(tmp_path), UV_TOOL_DIR=str(tmp_path))
    assert f"coterie {coterie.__version__}" in shown
