"""How often what is proven was wrong, beside what is allowed: all that the tests marked `guarantee` count.

The part runs these tests and reads what they noted (`tests/imported/error_rates.py`). Counts of one guarantee are added
up. Many cases are made to be hard, by luck that is chosen: they test the proof, not what a user meets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scipy.stats import beta

from bench.part import ROOT, Column, Headline, Part, Progress, Row

CONFIDENCE = 0.95
GUARANTEE = ("question", "noise", "blocks", "case", "delta")
"""What tells one guarantee from another."""

QUICK = ("tests/session/test_deadline_list.py", "tests/blocks/test_blocks_error_rate.py")


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each guarantee. RuntimeError if a test fails: then there is no table."""
    with tempfile.TemporaryDirectory() as place:
        counted = Path(place) / "counted.jsonl"
        workers = os.environ.get("WORKERS", "2")
        command = [sys.executable, "-m", "pytest", "-m", "guarantee", "-n", workers, "--dist", "worksteal"]
        environment = {**os.environ, "COTERIE_COUNTED": str(counted), "OPENBLAS_NUM_THREADS": "1"}
        ended = subprocess.run([*command, *(QUICK if quick else ())], cwd=ROOT, env=environment)
        if ended.returncode:
            raise RuntimeError(f"pytest -m guarantee ended with {ended.returncode}: see above")
        found = summed(counted.read_text(encoding="utf-8").splitlines())
    progress.done(f"{len(found)} guarantees")
    return found


def summed(lines: list[str]) -> list[Row]:
    """The counts of each guarantee, sorted by it."""
    found: dict[tuple[str, ...], Row] = {}
    for count in map(json.loads, lines):
        name = tuple(str(count[key]) for key in GUARANTEE)
        row = found.setdefault(name, {key: count[key] for key in GUARANTEE} | {"runs": 0, "wrong": 0})
        row["runs"] += count["runs"]
        row["wrong"] += count["wrong"]
    for row in found.values():
        row["bound"] = upper_bound(row["wrong"], row["runs"])
    return [found[name] for name in sorted(found)]


def upper_bound(wrong: int, runs: int) -> float:
    """Clopper and Pearson's upper confidence bound for a probability, at 95 %."""
    return 1.0 if wrong == runs else float(beta.ppf(CONFIDENCE, wrong + 1, runs - wrong))


def headlines(found: list[Row]) -> list[Headline]:
    """All runs, and the guarantee that came nearest to its δ."""
    runs = sum(row["runs"] for row in found)
    nearest = max(found, key=lambda row: row["wrong"] / row["runs"] / row["delta"])
    above = [row for row in found if row["wrong"] > row["delta"] * row["runs"]]
    share = nearest["wrong"] / nearest["runs"] / nearest["delta"]
    return [
        Headline(f"errors above δ, of {len(found)} guarantees in {runs:,} runs", str(len(above)), "0", not above),
        Headline("errors over δ, the most of any guarantee", f"{share:.2f}", "≤ 1", share <= 1.0),
    ]


PART = Part(
    "Errors that the tests of the guarantees count, beside what is allowed, and Clopper and Pearson's upper confidence "
    "bound at 95 %.\nWrong candidates are frozen on purpose, and have a share of δ; "
    "\"false candidates\" have all of it. Counts of several tests of one guarantee are added up.",
    (
        Column("question", "question", left=True),
        Column("noise", "noise", left=True),
        Column("blocks", "blocks", left=True),
        Column("case", "case", left=True),
        Column("δ", "delta", lambda value: f"{value:.3g}"),
        Column("runs", "runs", lambda value: f"{value:,}"),
        Column("wrong", "wrong", lambda value: f"{value:,}"),
        Column("rate", lambda row: f"{row['wrong'] / row['runs']:.2%}"),
        Column("at most (95 %)", "bound", lambda value: f"{value:.2%}"),
    ),
    rows,
    headlines,
    seconds=1500,
)  # fmt: skip
