"""Cold starts and the installed size: `python -m bench.cold [--rounds N]`. The exit code is 1 if a goal is missed.

Everything runs in fresh processes, in turn, with the files in the disk's cache and Python's bytecode written (a round
before the first does that); what counts is the processor's time of a process, its start included. A goal that is a
multiple of `import numpy` is held to the median of the rounds' own ratios.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import median

from bench.licences import wanted
from bench.part import ROOT, Headline

ROUNDS = 9
ASKS = 34
MEGABYTES = 15.0
"""Of the package with its core dependencies, without NumPy and SciPy."""

NUMPY = "import numpy"
SESSION = """
import math, coterie
session = coterie.Session(8, 2, 2, 1e-9{noise})
for i in range({asks}):
    arm = session.ask()
    session.tell(arm, [3.0 * (arm % 2) + math.sin(7.0 * i), math.cos(5.0 * i)])
assert session.t == {asks} and not session.done
"""
COMMAND = "import sys; sys.argv[0] = 'coterie'; from coterie.cli import main; main()"


@dataclass(frozen=True)
class Start:
    """A program, by the words behind `python`, and what is asked of it. `before`: what prepares it, in its folder."""

    what: str
    words: tuple[str, ...]
    times_numpy: float | None = None
    seconds: float | None = None
    before: tuple[tuple[str, ...], ...] = ()


def starts() -> list[Start]:
    """All programs that are timed; `import numpy` comes first."""
    command = ("-c", COMMAND)
    new = (*command, "campaign", "new", "beans", "--names", "a,b,c,d,e,f", "-k", "2", "--dim", "1", "--noise", "1")
    tell = (*command, "campaign", "tell", "beans", "--yes", "--arm", "a", "1.5")
    known, default = (SESSION.format(noise=noise, asks=ASKS) for noise in (", noise=1.0", ""))
    what = f"import coterie and a session of {ASKS} asks and tells (CROC)"
    return [
        Start(NUMPY, ("-c", NUMPY)),
        Start("import coterie", ("-c", "import coterie")),
        Start("import coterie; coterie.Session", ("-c", "import coterie; coterie.Session")),
        Start(f"{what}, known noise", ("-c", known), times_numpy=2.5),
        Start(f"{what}, any noise", ("-c", default), times_numpy=2.5),
        Start("coterie --help", (*command, "--help"), seconds=0.5),
        Start("coterie campaign tell, a small campaign", tell, seconds=0.5, before=(new, tell)),
    ]


def cpu_seconds(words: tuple[str, ...], folder: Path) -> float:
    """The processor's time of a fresh `python` with these words, in this folder."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    env["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    process = subprocess.Popen([sys.executable, *words], cwd=folder, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"exit code {process.returncode} of: python {' '.join(words)}")
    return used.ru_utime + used.ru_stime


def cold_starts(rounds: int = ROUNDS, say: Callable[[str], None] = print) -> Iterator[Headline]:
    """Medians over `rounds` fresh processes each, in turn."""
    listed = starts()
    found: dict[str, list[float]] = {one.what: [] for one in listed}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for words in (words for one in listed for words in one.before):
            cpu_seconds(words, folder)
        for i in range(rounds + 1):
            for one in listed:
                found[one.what].append(cpu_seconds(one.words, folder))
            say(f"cold starts: round {i} of {rounds}")
    for one in listed:
        taken = found[one.what][1:]
        over = median(a / b for a, b in zip(taken, found[NUMPY][1:], strict=True))
        measured = f"{median(taken):.3f} s ({min(taken):.3f} – {max(taken):.3f}), {over:.2f} × {NUMPY}"
        if one.times_numpy is not None:
            yield Headline(one.what, measured, f"≤ {one.times_numpy:g} × {NUMPY}", over <= one.times_numpy)
        elif one.seconds is not None:
            yield Headline(one.what, measured, f"≤ {one.seconds:g} s", median(taken) <= one.seconds)
        else:
            yield Headline(one.what, measured)


def sizes() -> dict[str, int]:
    """Bytes of the package and of each core dependency as they are installed, without bytecode."""
    names = wanted(["core"]).keys() - {"numpy", "scipy"}
    package = [path for path in (ROOT / "src" / "coterie").rglob("*") if "__pycache__" not in path.parts]
    found = {"coterie": sum(path.stat().st_size for path in package if path.is_file())}
    for name in sorted(names):
        files = [Path(str(file.locate())) for file in metadata.files(name) or [] if file.suffix != ".pyc"]
        found[name] = sum(path.stat().st_size for path in files if path.is_file())
    return found


def size() -> Headline:
    """The installed size, and what takes most of it."""
    found = {name: count / 1e6 for name, count in sizes().items()}
    total = sum(found.values())
    most = ", ".join(f"{name} {found[name]:.1f}" for name in sorted(found, key=lambda one: -found[one])[:5])
    what = f"package with core dependencies, without NumPy and SciPy ({most} MB)"
    return Headline(what, f"{total:.1f} MB", f"≤ {MEGABYTES:g} MB", total <= MEGABYTES)


def main() -> None:
    """Measure all of it and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    figures = [*cold_starts(parser.parse_args().rounds, lambda line: print(line, file=sys.stderr)), size()]
    signs = {None: "", True: "✓", False: "✗"}
    print("| figure | measured | asked | |\n| --- | --- | --- | --- |")
    for one in figures:
        print(f"| {one.what} | {one.measured} | {one.asked} | {signs[one.met]} |")
    sys.exit(1 if any(one.met is False for one in figures) else 0)


if __name__ == "__main__":
    main()
