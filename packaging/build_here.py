"""Builds the engine in build/ and puts it beside the Python sources: `make engine`, and editable installs.

ninja knows what has changed since, so that this is done before every test and takes no time when nothing has.

    python packaging/build_here.py            coterie._native into src/coterie
    python packaging/build_here.py --checked  with asserts and sanitizers: build/checked is a copy of the package, made
                                              of links, with that module in it (make checked)
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import toolchain

ROOT = toolchain.ROOT
PACKAGE = ROOT / "src" / "coterie"
FAILED = "the engine could not be built (see above); what was installed before is still there"
CHECKED = ["-DCMAKE_BUILD_TYPE=Debug", "-DCOTERIE_CHECKED=ON", "-DCOTERIE_SANITIZED=ON"]


def build(checked: bool = False) -> Path:
    """The folder that holds the package, for sys.path."""
    # Scripts of an environment that is not activated: cmake, ninja.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    toolchain.use_compiler(ROOT / "build" / "compiler")
    folder = ROOT / "build" / (sys.implementation.cache_tag + ("-checked" if checked else ""))
    _configure(folder, CHECKED if checked else ["-DCMAKE_BUILD_TYPE=Release"])
    _compile(folder)
    (module,) = (file for file in folder.glob("_native*") if file.name.endswith(tuple(EXTENSION_SUFFIXES)))
    if not checked:
        shutil.copy(folder / "compile_commands.json", ROOT / "build")  # for clang-tidy and editors
        _put(module, PACKAGE)
        return PACKAGE.parent
    copy = ROOT / "build" / "checked"
    shutil.rmtree(copy, ignore_errors=True)
    (copy / "coterie").mkdir(parents=True)
    for each in PACKAGE.iterdir():
        if not each.name.endswith(tuple(EXTENSION_SUFFIXES)) and each.name != "__pycache__":
            (copy / "coterie" / each.name).symlink_to(each)
    _put(module, copy / "coterie")
    (copy / "preload").write_text(" ".join(map(_library, ("libasan.so", "libubsan.so", "libstdc++.so.6"))))
    return copy


def _library(name: str) -> str:
    """Where the compiler has it: the sanitizers have to be in the process before Python is."""
    asked = [*shlex.split(os.environ["CXX"]), f"-print-file-name={name}"]
    found = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    if not Path(found).is_absolute():
        raise SystemExit(f"a checked build needs g++ with its sanitizers; {os.environ['CXX']} has no {name}")
    return str(Path(found).resolve())


def _configure(folder: Path, settings: list[str]) -> None:
    """Anew whenever it is not the same compiler, interpreter or nanobind. All else CMake notices by itself."""
    python = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    asked = subprocess.run(python, capture_output=True, text=True)
    if asked.returncode != 0:
        raise SystemExit("nanobind is not installed here: make engine, or pip install -e .")
    settings = [
        *("-G", "Ninja", *settings),
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={asked.stdout.strip()}",
        *shlex.split(os.environ.get("CMAKE_ARGS", "")),
    ]
    os.environ["CXX"] = toolchain.compiler() or ""
    note, wanted = folder / "configured.json", json.dumps([settings, os.environ["CXX"], os.environ.get("CXXFLAGS", "")])
    if note.is_file() and note.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    cmake = ["cmake", "-S", str(ROOT), "-B", str(folder), *settings]
    found = subprocess.run(cmake, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if found.returncode != 0:
        raise SystemExit(found.stdout + FAILED)
    note.write_text(wanted)


def _compile(folder: Path) -> None:
    """Says that it takes a while, if it does, and on a terminal how far it is; shows warnings and errors."""
    command = ["ninja", "-C", str(folder)]
    working, said = False, ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ninja:
        for line in ninja.stdout or ():
            step = re.match(r"\[\d+/(\d+)\] (Building)?", line)
            if step is None:
                said += line
                continue
            if step[2] and not working:
                working = True
                some = "building a part of the engine anew"
                print(toolchain.BUILDING if int(step[1]) > 15 else some, file=sys.stderr, flush=True)
            if working and sys.stderr.isatty():
                print("\r" + line.split(" ")[0], end="", file=sys.stderr, flush=True)
    if working and sys.stderr.isatty():
        print(file=sys.stderr)
    if ninja.returncode != 0 or "warning:" in said:
        print(said, file=sys.stderr)
    if ninja.returncode != 0:
        raise SystemExit(FAILED)


def _put(module: Path, folder: Path) -> None:
    """In one step, and as the only one that this interpreter finds."""
    for suffix in EXTENSION_SUFFIXES:
        if f"_native{suffix}" != module.name:
            (folder / f"_native{suffix}").unlink(missing_ok=True)
    there = folder / module.name
    if there.is_file() and there.read_bytes() == module.read_bytes():
        return
    half = folder / f".{module.name}.{os.getpid()}"
    shutil.copy(module, half)
    half.replace(there)


if __name__ == "__main__":
    build(checked="--checked" in sys.argv[1:])
