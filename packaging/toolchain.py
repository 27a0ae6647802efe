"""What it takes to build the engine: a C++20 compiler, and what pyproject.toml lists under `build`.

`python packaging/toolchain.py build` prints what has to be installed from a package index: only what is missing here. A
machine without a compiler gets one from there, too (ziglang). Any other words are parts of pyproject.toml, whose
requirements are printed: core, paper, dev.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILDING = "building the engine, about a minute"
ZIG = "ziglang>=0.14"
MISSING = (
    "Coterie's engine is written in C++, and here is neither a compiler for C++20 nor a package index with ziglang to "
    "take one from: install g++ 10 or clang++ 13 or later (Debian, Ubuntu: apt install g++; Fedora: dnf install "
    "gcc-c++; macOS: xcode-select --install), and try again."
)


def compiler() -> str | None:
    """The command of a C++20 compiler that works, or None. $CXX has the first and the last word."""
    if sys.platform == "win32":
        return os.environ.get("CXX", "cl")  # CMake finds Visual Studio, which is on no PATH
    for command in [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]:
        words = shlex.split(command)
        if shutil.which(words[0]) and _compiles(words):
            return command
    return None


def _compiles(words: list[str]) -> bool:
    """Whether it is more than a name: macOS has a c++ that only says what to install."""
    program = "#include <span>\nint main() { return static_cast<int>(std::span<int>().size()); }"
    flags = ["-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run([*words, *flags], input=program.encode(), capture_output=True).returncode == 0


def listed(*parts: str) -> list[str]:
    """What pyproject.toml asks for: `core`, or the name of an extra."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    places = {"core": project["dependencies"], **project["optional-dependencies"]}
    return [line for part in parts for line in places[part]]


def to_build() -> list[str]:
    """What a package index has to provide for building: only what is missing here.

    Ends with one sentence where there is no way to a compiler.
    """
    wanted = [line for line in listed("build") if not _is_here(*line.split(">="))]
    if compiler() is None:
        if not (_importable("ziglang") or _index_has_zig()):
            raise SystemExit(MISSING)
        wanted.append(ZIG)
    return wanted


def _is_here(name: str, lowest: str) -> bool:
    """CMake and ninja are asked for only where the system has none, or an older one."""
    if name not in ("cmake", "ninja") or shutil.which(name) is None:
        return False
    said = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found is not None and _numbers(found[0]) >= _numbers(lowest)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _importable(name: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True).returncode == 0


def _index_has_zig() -> bool:
    """Asked of pip, which knows the index, the proxy and the folders of this machine; yes where there is no pip to ask.

    In the environment that pip isolates for a build, -I leads back to the one that pip itself is in.
    """
    pip = [sys.executable, "-I", "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
        return True
    asked = [*pip, "--retries", "0", "--timeout", "20", "--disable-pip-version-check", "index", "versions", "ziglang"]
    return subprocess.run(asked, capture_output=True).returncode == 0


def use_compiler(folder: Path) -> None:
    """Sets the environment for CMake. `folder`: for the commands of a compiler that is a Python package."""
    if compiler() is not None:
        return
    if not _importable("ziglang"):
        raise SystemExit(MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    # Python's extension modules on Linux are for glibc 2.28 and later, whatever this machine has.
    glibc = sysconfig.get_platform() == "linux-x86_64" and "gnu" in (sysconfig.get_config_var("SOABI") or "")
    for name in ("c++", "ar", "ranlib"):
        target = "-target x86_64-linux-gnu.2.28 " if name == "c++" and glibc else ""
        script = folder / f"zig-{name}"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {name} {target}"$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    tools = f"-DCMAKE_AR={folder}/zig-ar -DCMAKE_RANLIB={folder}/zig-ranlib"
    os.environ["CXX"] = str(folder / "zig-c++")
    os.environ["CMAKE_ARGS"] = f"{os.environ.get('CMAKE_ARGS', '')} {tools}".strip()


if __name__ == "__main__":
    print(*(to_build() if sys.argv[1:] == ["build"] else listed(*sys.argv[1:])), sep="\n")
