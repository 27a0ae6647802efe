"""Records what an engine does in many conversations, and compares another engine with that.

    python tests/recording/record.py record FILE [--only TEXT] [--kept]    what the package at hand does
    python tests/recording/record.py compare FILE [--only TEXT]            the package at hand, with a recording
    python tests/recording/record.py compare FILE --only NAME --old TREE   … and both states where they first differ
    python tests/recording/record.py values NAME ENTRY FILE                the state after an entry of one conversation
    python tests/recording/record.py remake FILE                           record with the old engine, checked out

The package at hand is the one on PYTHONPATH. kept.npz in this folder is the part that test_recording.py plays; it was
recorded with `--kept`: fewer conversations, and floats as numbers, since other processors and libraries may round them
differently. A release that changes a rule on purpose makes it anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, cases
from playing import PORTABLE_TOLERANCE, Tape, played
from probe import NOT_EXPOSED

HERE = Path(__file__).parent

OLD_ENGINE = "9aa90b502e24dd810f67b5dff6f4f85b6e122443"
"""The last commit with the engine compiled by numba; it has the script by which the recordings were made with it."""

KEPT = HERE / "kept.npz"
PLAIN = ("facts", "samples", "entries", "tolerance")
"""What of a tape is written as JSON."""
FIRST = "state: first at entry "
SHOWN = 6


def chosen(only: str = "", kept: bool = False) -> list[Case]:
    """Cases by a part of their name, or by their whole name."""
    found = [case for case in cases() if only in case.name and (case.kept or not kept)]
    return [case for case in found if case.name == only] or found


def written(tape: Tape) -> dict[str, Any]:
    """What is kept of a tape, as arrays."""
    plain = {"names": list(tape.names)} | {part: getattr(tape, part) for part in PLAIN}
    return {
        "plain": np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8),
        "changes": np.array(tape.changes, dtype=np.uint16).reshape(-1, 3).T,
    }


def saved(path: Path, tapes: Iterator[tuple[str, Tape]]) -> None:
    """Write a recording: an npz file with two arrays for each conversation."""
    arrays = {f"{name}/{part}": array for name, tape in tapes for part, array in written(tape).items()}
    np.savez_compressed(path, **arrays)


def loaded(path: Path) -> dict[str, dict[str, Any]]:
    """A recording by the names of its conversations."""
    found: dict[str, dict[str, Any]] = {}
    with np.load(path) as file:
        for key in file.files:
            name, part = key.rsplit("/", 1)
            found.setdefault(name, {})[part] = file[key]
    return {name: read(parts) for name, parts in found.items()}


def read(parts: dict[str, Any]) -> dict[str, Any]:
    """A conversation as it was kept."""
    plain: dict[str, Any] = json.loads(parts["plain"].tobytes())
    return plain | {"changes": parts["changes"].T}


def differences(kept: dict[str, Any], case: Case) -> list[str]:
    """What differs from a recorded conversation, in words; the first differing entry comes first."""
    found = read(written(played(case, kept["tolerance"] == PORTABLE_TOLERANCE)))
    return [*_in_state(kept, found), *_in_samples(kept, found), *_in_facts(kept, found)]


def _in_state(kept: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    both = set(kept["names"]) & set(found["names"])
    missing = set(kept["names"]) - both - NOT_EXPOSED
    if missing and found["entries"]:
        yield f"state: the engine has no {', '.join(sorted(missing))}"
    sides = []
    for one in (kept, found):
        changes: dict[int, dict[str, int]] = {}
        for at, name, value in one["changes"].tolist():
            if one["names"][name] in both - NOT_EXPOSED:
                changes.setdefault(at, {})[one["names"][name]] = value
        sides.append(changes)
    for at, (its, mine) in enumerate(zip(kept["entries"], found["entries"], strict=False)):
        old, new = (side.get(at, {}) for side in sides)
        if its != mine or old != new:
            other = [name for name in kept["names"] if old.get(name) != new.get(name)]
            done = its if its == mine else f"{its}, now {mine}"
            yield f"{FIRST}{at} ({done}): {', '.join(other) or 'what was done'}"
            return
    if len(kept["entries"]) != len(found["entries"]):
        yield f"state: {len(found['entries'])} entries, {len(kept['entries'])} in the recording"


def _in_samples(kept: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    for place, numbers in kept["samples"].items():
        mine = found["samples"].get(place, [])
        if place.split(" ", 1)[1] not in NOT_EXPOSED and not near(numbers, mine, kept["tolerance"]):
            yield f"numbers after entry {place}: {numbers[:4]}, now {mine[:4]}"


def _in_facts(kept: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    for name in [*kept["facts"], *(name for name in found["facts"] if name not in kept["facts"])]:
        its, mine = (one["facts"].get(name, ["nothing", 0]) for one in (kept, found))
        if its[0] != mine[0] or not near(its[1], mine[1], kept["tolerance"]):
            yield f"{name}: {its if len(str(its)) < 200 else its[0]}, now {mine if len(str(mine)) < 200 else mine[0]}"


def near(its: Any, mine: Any, tolerance: float) -> bool:
    """Whether numbers are the same up to a tolerance, relative to each and to the largest of their array."""
    if not isinstance(mine, list) or not isinstance(its, list) or len(its) != len(mine):
        return bool(its == mine)
    if not its:
        return True
    one, other = np.array(its), np.array(mine)
    size = np.abs(one[-2]) if one.size > 1 else 0.0
    with np.errstate(invalid="ignore"):
        close = np.abs(one - other) <= tolerance * np.maximum(np.abs(one), size)
    return bool((close | (one == other) | (np.isnan(one) & np.isnan(other))).all())


def record(path: Path, only: str, kept: bool) -> None:
    """Play and write."""
    began = time.process_time()
    todo = chosen(only, kept)
    saved(path, ((case.name, played(case, kept)) for case in todo))
    print(f"{len(todo)} conversations in {time.process_time() - began:.0f} s of CPU: {path}")


def compare(path: Path, only: str, old: str | None) -> int:
    """Play what a recording has and say what differs; the number of conversations that do."""
    recording, wrong, began, n = loaded(path), 0, time.process_time(), 0
    for case in chosen(only):
        if case.name not in recording:
            continue
        n += 1
        try:
            found = differences(recording[case.name], case)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            wrong += 1
            print(f"{case.name}\n  " + "\n  ".join(found[:SHOWN]), flush=True)
            first = [line for line in found if line.startswith(FIRST)]
            if old is not None and first:
                _explain(case, int(first[0].removeprefix(FIRST).split(" ")[0]), old)
                break
    print(f"{n - wrong} of {n} conversations are the same, {time.process_time() - began:.0f} s of CPU")
    return wrong


def _explain(case: Case, at: int, old: str) -> None:
    """Both states after an entry, where they differ."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "old.npz"
        script = Path(old) / "tests" / "recording" / "record.py"
        command = [sys.executable, str(script), "values", case.name, str(at), str(path)]
        source = {"PYTHONPATH": str(Path(old) / "src")}
        subprocess.run(command, env=os.environ | source, check=True, stdout=subprocess.DEVNULL)
        before = dict(np.load(path))
    now = played(case, watch=at).watched
    for name in before:
        its, mine = before[name], np.asarray(now.get(name, np.zeros(0)))
        if its.size != mine.size or not np.array_equal(its.ravel(), mine.ravel(), equal_nan=its.dtype.kind == "f"):
            print(f"  {name} {its.shape} after entry {at}: in the recording, and now {mine.shape}")
            if its.size == mine.size and its.ndim:
                places = np.flatnonzero(its.ravel() != mine.ravel())
                print(f"    {places.size} places, first {np.unravel_index(places[0], its.shape)}")
                its, mine = its.ravel()[places], mine.ravel()[places]
            print(f"    {its.ravel()[:8].tolist()}\n    {mine.ravel()[:8].tolist()}")


def values(name: str, at: int, path: Path) -> None:
    """Write the state after one entry of a conversation."""
    (case,) = chosen(name)
    np.savez(path, **played(case, watch=at).watched)


def remake(path: Path) -> None:
    """Record with the old engine, in a checkout and an environment of its own: it needs numba."""
    with tempfile.TemporaryDirectory() as folder:
        tree, room = Path(folder) / "tree", Path(folder) / "venv"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), OLD_ENGINE], cwd=HERE, check=True)
        try:
            venv.create(room, with_pip=True)
            python = str(room / ("Scripts" if os.name == "nt" else "bin") / "python")
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--editable", str(tree)], check=True)
            clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            script = tree / "tests" / "recording" / "record.py"
            subprocess.run([python, str(script), "record", str(path.resolve())], env=clean, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=HERE, check=True)


WIDE_LOGARITHMS = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
"""NumPy's logarithms on processors that have these differ from the C library's in the last bit of some numbers."""


def main() -> int:
    """The command line. It runs again in a process whose NumPy computes as the C library does."""
    if "NPY_DISABLE_CPU_FEATURES" not in os.environ:
        os.environ["NPY_DISABLE_CPU_FEATURES"] = WIDE_LOGARITHMS
        return subprocess.run([sys.executable, *sys.argv]).returncode
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "compare", "values", "remake"):
        command = commands.add_parser(name)
        if name == "values":
            command.add_argument("name")
            command.add_argument("entry", type=int)
        command.add_argument("file", type=Path)
        if name in ("record", "compare"):
            command.add_argument("--only", default="", help="a part of the name, or the name, of conversations")
        if name == "record":
            command.add_argument("--kept", action="store_true", help="the part in this folder, with floats as numbers")
        if name == "compare":
            command.add_argument("--old", help=f"a checkout of {OLD_ENGINE[:7]}, with a Python that has numba")
    given = parser.parse_args()
    if given.command == "record":
        record(given.file, given.only, given.kept)
    elif given.command == "compare":
        return min(compare(given.file, given.only, given.old), 1)
    elif given.command == "values":
        values(given.name, given.entry, given.file)
    else:
        remake(given.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
