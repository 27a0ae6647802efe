"""One million arms (K = 10, d = 8, smallest gap 12) by CROC, in one process: `coterie bench million`.

`python -m bench.million` takes them through a campaign: see `bench.million_campaign`.
"""

from __future__ import annotations

import time
from pathlib import Path

from bench.part import Column, Headline, Part, Progress, Row, sign
from bench.rounds import apart

ARMS = 1_000_000
ASKED_GIB = 4.0


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """Seconds are the processor's; on the wall they also hold the interpreter's start and the loading of the code."""
    n_arms = 20_000 if quick else ARMS
    start = time.perf_counter()
    row = apart("bench.pace:measured", n_arms, 10, 8, 12.0)
    row["wall"] = time.perf_counter() - start
    row["met"] = bool(row["gib"] < ASKED_GIB and row["right"])
    progress.done(f"{n_arms:,} arms: {row['t']:,} measurements in {row['seconds']:.1f} s, {row['gib']:.2f} GiB")
    return [row]


def headlines(found: list[Row]) -> list[Headline]:
    (row,) = found
    arms = f"{row['n_arms']:,} arms by CROC"
    return [
        Headline(f"{arms}: memory", f"{row['gib']:.2f} GiB", f"< {ASKED_GIB:g} GiB, right", row["met"]),
        Headline(f"{arms}: time, all of it", f"{row['wall']:.1f} s"),
        Headline(f"{arms}: measurements over arms", f"{row['t'] / row['n_arms']:.3f}×"),
    ]


COLUMNS = (
    Column("M", "n_arms", "{:,}".format),
    Column("gap", "gap", "{:g}".format),
    Column("measurements", "t", "{:,}".format),
    Column("proven", lambda row: "yes" if row["done"] else "not yet"),
    Column("right", lambda row: "yes" if row["right"] else "no" if row["done"] else ""),
    Column("seconds", "seconds", "{:.2f}".format),
    Column("µs a measurement", "microseconds", "{:.1f}".format),
    Column("memory, GiB", "gib", "{:.2f}".format),
)

PART = Part(
    "A million arms by CROC in one process (K = 10, d = 8, δ = 0.1).",
    (
        *COLUMNS,
        Column("seconds on the wall", "wall", "{:.1f}".format),
        Column("goal", lambda row: f"< {ASKED_GIB:g} GiB {sign(row['met'])}"),
    ),
    rows,
    headlines,
    seconds=20,
)


if __name__ == "__main__":
    from bench.million_campaign import main

    main()
