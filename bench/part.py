"""What a part of the benchmark is: rows of figures, how to print them, and which of them belong in the one table."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
QUICK_RESULTS = ROOT / "build" / "bench"


class LeftOutError(Exception):
    """A part cannot be measured here; the message says why in one line."""


@dataclass(frozen=True)
class Column:
    """A heading, and what a row has under it: a key, or a function of the row."""

    heading: str
    of: str | Callable[[Row], Any]
    text: Callable[[Any], str] = str
    left: bool = False

    def cell(self, row: Row) -> str:
        """– for what was not measured, nothing for what does not apply."""
        value = row.get(self.of) if isinstance(self.of, str) else self.of(row)
        return "–" if value is None else self.text(value)


@dataclass(frozen=True)
class Table:
    """A further table of a part, over those of its rows that `has` picks."""

    title: str
    columns: Sequence[Column]
    has: Callable[[Row], bool]
    section: str = ""  # a line in the table where the row's value under this key changes


@dataclass(frozen=True)
class Headline:
    """A figure of the one table. `met` is None where nothing was asked for."""

    what: str
    measured: str
    asked: str = ""
    met: bool | None = None


class Progress:
    """Says what is done; for work that takes long also how much, and about how long the rest will take."""

    def __init__(self, say: Callable[[str], None] = print) -> None:
        self._say, self._start = say, time.perf_counter()

    def done(self, text: str, share: float | None = None) -> None:
        """`share`: how much of the part is done, roughly in time."""
        taken = time.perf_counter() - self._start
        left = f" ({share:.0%}, about {duration(taken / share - taken)} left)" if share and taken > 10 else ""
        self._say(f"  {text}{left}")


@dataclass(frozen=True)
class Part:
    """`rows(quick, progress, folder)` measures; pictures go into the folder."""

    title: str
    columns: Sequence[Column]
    rows: Callable[[bool, Progress, Path], list[Row]]
    headlines: Callable[[list[Row]], list[Headline]] = lambda rows: []
    section: str = ""  # a line in the table where the row's value under this key changes
    seconds: float = 30.0  # a first guess; later the time that the kept run took
    has: Callable[[Row], bool] = lambda row: True
    more: Sequence[Table] = ()
    with_trials: Callable[[int, bool, Progress, Path], list[Row]] | None = None  # `rows` with so many trials a cell

    def tables(self, rows: list[Row]) -> list[tuple[Table, list[Row]]]:
        """Its tables, each with its rows; those without rows are left out."""
        every = (Table(self.title, self.columns, self.has, self.section), *self.more)
        found = [(table, [row for row in rows if table.has(row)]) for table in every]
        return [(table, own) for table, own in found if own]


PARTS = {
    "speed": "pulls a second beside the usual libraries, a version from scratch, and the random numbers alone",
    "needed": "measurements needed by every method and peer, beside the bounds; on families of hard instances too",
    "ablation": "sampling × stopping: CROC's halves beside BOC's tracking, arms in turn, pairs, universal inference",
    "crews": "hard families with 1, 8 and 64 workers, and with results that CROC did not ask for",
    "asymptotic": "measurements over log(1/δ) as δ → 0: computed from the rounds, and measured",
    "conservatism": "errors of CROC beside δ, at large δ on hard small instances, and where the slack is",
    "guarantees": "what the tests of the guarantees count: errors beside δ, with confidence bounds (on request)",
    "shortlists": "a list of partitions in place of a freeze, beside CROC, on small instances (on request)",
    "noise": "measurements of CROC by what is known about the noise, and what happens if that is wrong (on request)",
    "shape": "groups that differ in spread or shape: any noise with shape beside any noise, and energy distances",
    "classic": "CROC beside fixed designs with Tukey's letters or Scott–Knott groups: measurements, wrong groups",
    "tables": "finished tables: pairs told apart beside Tukey, Mann–Whitney and permutations, and wrong tables",
    "intervals": "widths of proven intervals over those for one number of results, and how often one is ever wrong",
    "linkage": "single linkage with K: CROC beside peers in the manner of ATBOC, LUCBBOC, BOC-Elim, EBC (on request)",
    "resolution": "groups up to a resolution: CROC beside the same tests with items in turn (on request)",
    "costs": "items that differ in cost: what CROC spends if it weighs costs, and if not (on request)",
    "deadline": "a fixed number of measurements: pairs proven, items misplaced, beside CROC stopped there (on request)",
    "scan": "measurements of CROC on random instances, over what may be expected",
    "forecast": "how many more measurements are forecast, over the truth, on families that no forecast was fitted to",
    "hands": "measurements of CROC with several workers always busy, over those with one",
    "foreign": "results that CROC did not ask for: measurements until it stops, beside Uniform",
    "toofew": "one group more than K: how often an alarm or a mixed group is seen",
    "blocks": "blocks: what cells cost, what they spare with shifts and with the same question for all (on request)",
    "features": "features one by one: the experiments of Graf et al., K = 3 and 5, dense and sparse (on request)",
    "evenly": "features one by one, beside features picked evenly and CROC on whole measurements (on request)",
    "engine": "the engine's own bounds: d = 400, M = 100 000, memory, the import",
    "growth": "how time and measurements grow with M, K and d",
    "million": "a million arms by CROC in one process",
    "numerics": "rounding after ten million pulls",
    "replay": "following a record again",
    "workers": "threads against processes",
    "network": "bytes that a simulation on a cluster sends",
    "server": "round trips over HTTP, and the page",
    "service": "the server beside a bare FastAPI and SQLAlchemy handler with two durable writes (on request)",
    "draws": "which draw of MNIST comes nearest to the paper (minutes; only on request)",
}
ON_REQUEST = (
    "guarantees", "features", "evenly", "shortlists", "noise", "linkage", "resolution", "costs", "blocks", "deadline",
    "service", "draws",
)  # fmt: skip


def part_named(name: str) -> Part:
    """The part, its module loaded now: some need packages that are not always installed."""
    try:
        part: Part = importlib.import_module(f"bench.{name}").PART
    except ModuleNotFoundError as error:
        raise LeftOutError(f'needs {error.name}: pip install -e ".[paper,cluster,serve]"') from None
    return part


def duration(seconds: float) -> str:
    """For people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def number(value: float) -> str:
    """Three figures, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def mean_with_error(row: Row) -> str | None:
    """The mean of a row with its standard error, where there is one."""
    if row["mean"] is None:
        return None
    error = row["standard_error"]
    return number(row["mean"]) + (f" ± {number(error)}" if error is not None else "")


def times(value: float) -> str:
    """A ratio."""
    return f"{number(value)}×"


def sign(met: bool | None) -> str:
    return "" if met is None else "✓" if met else "✗"
