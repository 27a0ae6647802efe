"""The engine's own bounds: d = 400 against its random numbers, a pull at M = 100 000, memory, the import."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

from bench import rivals
from bench.instances import separated
from bench.part import Column, Headline, Part, Progress, Row, number, sign, times
from bench.rounds import endless, in_turn, ratio, seconds_a_pull

ROUNDS = 9


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row a figure: what, measured ratio, the bound asked for, and the two times behind it."""
    found: list[Row] = []

    def add(what: str, value: float, unit: str, asked: str, met: bool | None, detail: str) -> None:
        met = None if met is None else bool(met)
        found.append({"what": what, "ratio": value, "unit": unit, "asked": asked, "met": met, "detail": detail})
        progress.done(f"{what}: {value:.4g} ({detail})")

    def compare(what: str, asked: float, above: list[float], below: list[float]) -> None:
        over = ratio(above, below)
        detail = " and ".join(f"{min(each) * 1e6:.2f} µs" for each in (above, below))
        add(what, over["median"], "×", f"≤ {asked:g}×", over["median"] <= asked,
            f"{over['low']:.2f} – {over['high']:.2f}; at best {detail}")  # fmt: skip

    rounds, share = (2, 10) if quick else (ROUNDS, 1)
    wide, small, large = separated(500, 10, 400), separated(1_000, 10, 8), separated(100_000, 10, 8)
    taken = in_turn(
        {
            "wide": lambda i: seconds_a_pull(wide, 20_000 // share, warm=1000, seed=i),
            "floor": lambda i: rivals.random_numbers_alone(400, 20_000 // share, i),
            "small": lambda i: seconds_a_pull(small, 50_000 // share, warm=1000, seed=i),
            "large": lambda i: seconds_a_pull(large, 200_000 // share, warm=1000, seed=i),
        },
        rounds,
    )
    compare("M=500, K=10, d=400: a pull over its 400 Gaussians", 2, taken["wide"], taken["floor"])
    compare("a pull at M=100 000 over one at M=1 000 (K=10, d=8)", 2, taken["large"], taken["small"])
    tracemalloc.start()
    endless(large, "boc")
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    add("memory at M=100 000, over 8·M·d bytes", size / (8 * 100_000 * 8), "×", "", None,
        f"{size / 2**20:.0f} MiB, most of it untouched until groups overlap")  # fmt: skip
    importing = min(_import_time() for _ in range(rounds))
    add("import coterie", importing, " s", "< 0.3 s", importing < 0.3, "without the interpreter's own start")
    return found


def _import_time() -> float:
    code = "import time; s = time.perf_counter(); import coterie; coterie.Instance; print(time.perf_counter() - s)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def _value(row: Row) -> str:
    return times(row["ratio"]) if row["unit"] == "×" else number(row["ratio"]) + row["unit"]


PART = Part(
    "Bounds of the engine; ratios are medians over rounds, groups well apart.",
    (
        Column("figure", "what", left=True),
        Column("measured", _value),
        Column("goal", "asked", left=True),
        Column("", lambda row: sign(row["met"])),
        Column("behind it", "detail", left=True),
    ),
    rows,
    lambda found: [Headline(row["what"], _value(row), row["asked"], row["met"]) for row in found],
    seconds=60,
)
