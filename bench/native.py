"""The engine beside the last one that numba compiled: `python -m bench.native [pulls] [live] [threads] …`.

Two processes, one of each tree, do the same work with the same seeds, block by block in turn, so that whatever else the
machine does hits both; each block gives a ratio of thread times, and medians and quartiles of the ratios are printed
beside what is asked for. A block in which the two did not do the same to the last arm is an error.

The old tree is checked out in a temporary folder, or given by `--old`; its Python, which needs numba and must not have
another coterie installed, by `--old-python`. `--new` and `--new-python` likewise: with the old tree for both, the
printed quartiles are those of a ratio that is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.part import ROOT, Headline, duration

OLD_COMMIT = "f9d8f45bb845c1c8b74bbc78d03917754eadc632"
"""The last one with the old engine."""

PULLS = {
    **{
        f"{method}, {name}": 1.0
        for name in ("Iris", "Yeast", "challenging", "M=40 K=4 d=5 gap 1", "M=1000")
        for method in ("BOC", "CROC")
    },
    **{f"CROC, {what}": 1.0 for what in ("d=400", "any noise", "Gaussian", "counts")},
}
LIVE = {"ask + tell, Iris": 0.5, "ask + tell, M=150 gap 1.5": 0.5}
THREADS = ("BOC, Yeast: 16 trials", "CROC, challenging: 400 trials", "CROC, Iris: 1024 trials")
"""Cases of `bench.native_work`, and the ratio asked for."""

BLOCK, ROUNDS, QUICK = 0.2, 25, (0.04, 5)
"""Seconds of a block of the old engine, and how many there are; in a short run."""


@dataclass(frozen=True)
class Tree:
    """A checkout and the Python that runs it. `installed`: that Python imports the checkout's coterie by itself."""

    folder: Path
    python: str
    installed: bool = False

    def env(self) -> dict[str, str]:
        own = [str(self.folder)] if self.installed else [str(self.folder / "src"), str(self.folder)]
        kept = os.environ.get("PYTHONPATH", "") if self.installed else ""
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        path = os.pathsep.join([*own, *filter(None, [kept])])
        return {**os.environ, **threads, "PYTHONPATH": path, "COTERIE_BACKGROUND_COMPILER": "0"}


class Worker:
    """A process of `bench.native_work`."""

    def __init__(self, tree: Tree) -> None:
        words = [tree.python, "-P", str(Path(__file__).with_name("native_work.py"))]
        self._process = subprocess.Popen(
            words, env=tree.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tree.folder
        )
        found = Path(self._answer()["coterie"])
        if not tree.installed and not found.is_relative_to(tree.folder):
            self.end()
            raise SystemExit(
                f"{tree.python} imports {found}, not the one of {tree.folder}: give it a Python of its own"
            )

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r}: ended with code {self._process.wait()}; what it said is above")
        found: dict[str, Any] = json.loads(line)
        return found

    def measure(self, case: str, seed: int, often: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([case, seed, often]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Pair:
    """Old and new in turn."""

    def __init__(self, old: Tree, new: Tree, quick: bool) -> None:
        self.trees, (self.block, self.rounds) = (old, new), QUICK if quick else (BLOCK, ROUNDS)
        self.workers = Worker(old), Worker(new)

    def often(self, case: str) -> int:
        """How often a case makes a block; both have loaded their code then."""
        for worker in self.workers:
            worker.measure(case, 0, 1)
        start = time.perf_counter()
        self.workers[0].measure(case, 0, 1)
        return min(500, max(1, round(self.block / (time.perf_counter() - start))))

    def blocks(self, case: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """The same work by both, block by block."""
        often = self.often(case)
        for i in range(1, self.rounds + 1):
            order = (0, 1) if i % 2 else (1, 0)
            found = {which: self.workers[which].measure(case, i, often) for which in order}
            if found[0]["digest"] != found[1]["digest"] or found[0]["count"] != found[1]["count"]:
                raise SystemExit(f"{case}: the two engines did not decide the same in block {i}")
            yield found[0], found[1]

    def end(self) -> None:
        for worker in self.workers:
            worker.end()


def quartiles(ratios: list[float]) -> tuple[float, str]:
    """The median, and how it is printed."""
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    return float(middle), f"{middle:.3f}× ({low:.3f} – {high:.3f})"


def compared(pair: Pair, cases: dict[str, float]) -> Iterator[Headline]:
    """Ratios of thread times, new over old."""
    for case, asked in cases.items():
        each = list(pair.blocks(case))
        middle, text = quartiles([new["seconds"] / old["seconds"] for old, new in each])
        pace = [min(one["seconds"] / one["count"] for one in side) * 1e6 for side in zip(*each, strict=True)]
        yield Headline(f"{case}, {pace[0]:.3f} µs before", text, f"≤ {asked:g}×", middle <= asked)


def pulls(pair: Pair) -> Iterator[Headline]:
    """The old process also draws the Gaussians alone, in a compiled loop."""
    yield from compared(pair, PULLS)
    over, ratios = "BOC, d=400", ([], [])  # type: tuple[str, tuple[list[float], list[float]]]
    often = pair.often(over)
    for i in range(1, pair.rounds + 1):
        floor = pair.workers[0].measure("400 Gaussians", i, often)
        for worker, into in zip(pair.workers, ratios, strict=True):
            one = worker.measure(over, i, often)
            into.append(one["seconds"] / one["count"] / (floor["seconds"] / floor["count"]))
    middle, text = quartiles(ratios[1])
    yield Headline(f"{over}, over its Gaussians; {quartiles(ratios[0])[1]} before", text, "≤ 2×", middle <= 2.0)


def live(pair: Pair) -> Iterator[Headline]:
    """A session, until the groups are proven."""
    return compared(pair, LIVE)


def threads(pair: Pair) -> Iterator[Headline]:
    """`simulate` in two threads over one, by the new engine alone."""
    for case in THREADS:
        gain, cost, lost = [], [], []
        often = pair.often(f"{case}, threads: 1")
        for i in range(1, pair.rounds + 1):
            one, two = (pair.workers[1].measure(f"{case}, threads: {n}", i, often) for n in (1, 2))
            before = pair.workers[0].measure(f"{case}, threads: 2", i, often)
            gain.append(one["wall"] / two["wall"])
            cost.append(two["seconds"] / one["seconds"])
            lost.append(two["seconds"] / before["seconds"])
        middle, text = quartiles(gain)
        yield Headline(f"{case}: wall, one thread over two (best {max(gain):.2f})", text, "≥ 1.8×", middle >= 1.8)
        middle, text = quartiles(cost)
        yield Headline(f"{case}: CPU a trial, two threads over one", text, "≤ 1.1×", middle <= 1.1)
        yield Headline(f"{case}: CPU in two threads, over the old engine's", quartiles(lost)[1])


def million(pair: Pair) -> Iterator[Headline]:
    """A million arms (fewer in a short run) in a process of their own for each engine."""
    n_arms = 1_000_000 if pair.rounds == ROUNDS else 20_000
    code = f"import json; from bench.pace import measured; print(json.dumps(measured({n_arms}, 10, 8, 12.0)))"
    found = []
    for tree in pair.trees:
        done = subprocess.run(
            [tree.python, "-P", "-c", code], env=tree.env(), stdout=subprocess.PIPE, text=True, check=True
        )
        found.append(json.loads(done.stdout.splitlines()[-1]))
    old, new = found
    if (old["t"], old["right"]) != (new["t"], new["right"]):
        raise SystemExit(f"{n_arms:,} arms: {old['t']} measurements before, {new['t']} now")
    yield Headline(
        f"{n_arms:,} arms: memory, {old['gib']:.2f} GiB before", f"{new['gib']:.2f} GiB", "≤ 2.3 GiB", new["gib"] <= 2.3
    )
    yield Headline(
        f"{n_arms:,} arms: CPU, {old['seconds']:.1f} s before",
        f"{new['seconds']:.1f} s",
        "≤ 17 s",
        new["seconds"] <= 17,
    )


def build(pair: Pair) -> Iterator[Headline]:
    """The extension from nothing, two compilers at a time."""
    tree = pair.trees[1]
    if not (tree.folder / "CMakeLists.txt").exists():
        return
    ask = [tree.python, "-m", "nanobind", "--cmake_dir"]
    nanobind = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as into:
        options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={tree.python}", f"-Dnanobind_DIR={nanobind}"]
        before, wall = _children(), time.perf_counter()
        for words in (
            ["cmake", "-S", str(tree.folder), "-B", into, "-G", "Ninja", *options],
            ["cmake", "--build", into, "--parallel", "2"],
        ):
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        seconds, wall = _children() - before, time.perf_counter() - wall
    text = f"cold build, two cores: CPU ({wall:.0f} s on the wall)"
    yield Headline(text, f"{seconds:.1f} s", "≤ 60 s", seconds <= 60)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cold(pair: Pair) -> Iterator[Headline]:
    """Cold starts have a program of their own; its table is printed here."""
    if Path(__file__).with_name("cold.py").exists():
        tree = pair.trees[1]
        done = subprocess.run([tree.python, "-m", "bench.cold"], env=tree.env(), cwd=tree.folder)
        yield Headline(
            "cold starts, size (python -m bench.cold, above)", f"exit code {done.returncode}", "0", done.returncode == 0
        )


PARTS: dict[str, Callable[[Pair], Iterator[Headline]]] = {
    "pulls": pulls, "live": live, "threads": threads, "million": million, "build": build, "cold": cold,
}  # fmt: skip


@contextmanager
def checkout(given: str | None) -> Iterator[Path]:
    """The old tree: a folder that was given, or a worktree for as long as it is needed."""
    if given is not None:
        yield Path(given).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder).resolve() / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(into), OLD_COMMIT], check=True)
        try:
            yield into
        finally:
            subprocess.run([*git, "remove", "--force", str(into)], check=True)


def table(figures: list[Headline]) -> str:
    """For people, and for docs/PERFORMANCE.md."""
    lines = ["| figure | measured | asked | |", "| --- | --- | --- | --- |"]
    signs = {None: "", True: "✓", False: "✗"}
    return "\n".join(
        [*lines, *(f"| {one.what} | {one.measured} | {one.asked} | {signs[one.met]} |" for one in figures)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.native", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all, if none is named")
    parser.add_argument("--quick", action="store_true", help="few and short blocks: to see that it works")
    parser.add_argument("--old", help=f"a checkout of the old engine; left out, {OLD_COMMIT} is checked out")
    parser.add_argument("--old-python", default=sys.executable, help="a Python that has numba and the dependencies")
    parser.add_argument("--new", help="another tree than this one")
    parser.add_argument("--new-python", default=sys.executable)
    given = parser.parse_args()
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}: there are {', '.join(PARTS)}")
    figures: list[Headline] = []
    with ExitStack() as stack:
        old = Tree(stack.enter_context(checkout(given.old)), given.old_python)
        new = Tree(ROOT if given.new is None else Path(given.new).resolve(), given.new_python, given.new is None)
        pair = Pair(old, new, given.quick)
        stack.callback(pair.end)
        for name in given.parts or PARTS:
            start = time.perf_counter()
            for figure in PARTS[name](pair):
                figures.append(figure)
                print(f"{figure.what}: {figure.measured}", flush=True)
            print(f"{name}: {duration(time.perf_counter() - start)}", flush=True)
    print(table(figures))
    print(f"load of the machine in the end: {os.getloadavg()[0]:.1f}; seconds on the wall mean something if it is low")


if __name__ == "__main__":
    main()
