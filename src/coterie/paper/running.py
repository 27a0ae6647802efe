"""Run cells, keep every finished trial in the file of its cell, show how far it is and how long it will take.

A file has one line of JSON for each trial, appended as they finish. The first line says what was run. Every line
carries a checksum of its own text, so a line that was half written when the process was killed is found, cut off, and
its trial run again.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coterie import __version__
from coterie.methods import method_named
from coterie.methods.trials import Plan, Stops
from coterie.paper.cells import Cell, instance_named
from coterie.problem.checks import IntArray
from coterie.problem.instance import Instance
from coterie.simulate.bulk import Outcome, run_trials
from coterie.simulate.trials import Trials, trials_from

FORMAT = "coterie-trials-2"


def fingerprint(cell: Cell, plan: Plan, seed: int) -> dict[str, Any]:
    """What the numbers of a cell depend on; trials of another fingerprint are not taken over."""
    digest = hashlib.sha256(plan.instance.labels.astype("<i8").tobytes())
    # To ten digits: linear algebra libraries differ in the last ones, and the instance is still the same.
    digest.update(np.array([f"{value:.10e}" for value in plan.instance.centers.ravel()]).tobytes())
    return {
        "format": FORMAT,
        "version": __version__,
        "instance": cell.instance,
        "instance_sha256": digest.hexdigest(),
        "method": cell.method,
        "thresholds": list(cell.kinds),
        "deltas": list(cell.deltas),
        "seed": seed,
    }


class Record:
    """The trials of one cell on disk. Open with `resume` to go on with those that are there."""

    def __init__(self, path: Path, header: dict[str, Any], resume: bool) -> None:
        self.path = path
        self.outcomes: dict[int, Outcome] = {}
        self.redone = 0
        """Lines that were damaged and cut off."""
        self.set_aside = 0
        """Trials of another seed, version or run that were in the file: they are kept beside it, as .old."""
        kept = self._read(header) if resume and path.exists() else 0
        if not kept and path.exists():
            self.set_aside = max(0, path.read_bytes().count(b"\n") - 1)
            path.replace(path.with_suffix(".old"))
        if kept:
            with path.open("r+b") as file:
                file.truncate(kept)
        self._file: IO[bytes] = path.open("ab" if kept else "wb")
        if not kept:
            self._write(header)

    def _read(self, header: dict[str, Any]) -> int:
        """Take over the good lines; the bytes that they take up, 0 if the file is of another run."""
        kept = 0
        lines = self.path.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines):
            row = _checked(line)
            if row is None:
                self.redone = len(lines) - number  # after a damaged line nothing is trusted
                break
            if number == 0 and row != header:
                return 0
            if number > 0:
                outcome = _outcome(row)
                self.outcomes[outcome.trial] = outcome
            kept += len(line)
        return kept

    def add(self, outcome: Outcome) -> None:
        """Keep a finished trial: on its way to the disk when this returns, whatever happens to the process."""
        self._write(
            {
                "trial": outcome.trial,
                "stops": {threshold: own.times.tolist() for threshold, own in outcome.stops.items()},
                "correct": {threshold: own.correct.astype(int).tolist() for threshold, own in outcome.stops.items()},
                "seconds": round(outcome.seconds, 6),
            }
        )
        self.outcomes[outcome.trial] = outcome

    def _write(self, row: dict[str, Any]) -> None:
        text = json.dumps(row, separators=(",", ":"))
        self._file.write(f"{zlib.crc32(text.encode()):08x} {text}\n".encode())
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(line: bytes) -> dict[str, Any] | None:
    """The row, if its checksum is right and its end was written."""
    checksum, _, text = line.partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text.rstrip(b"\n")):
        return None
    row: dict[str, Any] = json.loads(text)
    return row


def _outcome(row: dict[str, Any]) -> Outcome:
    times, correct = row["stops"], row["correct"]
    stops = {
        threshold: Stops(np.array(times[threshold], dtype=np.int64), np.array(correct[threshold]) == 1)
        for threshold in times
    }
    return Outcome(row["trial"], stops, row["seconds"])


@dataclass(frozen=True)
class CellResult:
    """The trials of a cell, by threshold, and the time that they took."""

    cell: Cell
    instance: Instance
    by_threshold: dict[str, Trials]
    seconds: float
    """Time of all trials together, as if on one core; of those taken over from an earlier run too."""
    wall: float
    """Time that passed for those run now."""
    taken_over: int
    redone: int
    set_aside: int

    @property
    def pulls(self) -> int:
        """Measurements of all trials together, each to its last stop; CROC makes a run of its own for each δ."""
        times: IntArray = np.stack([trials.stopping_times for trials in self.by_threshold.values()])
        if not method_named(self.cell.method).has_thresholds:
            return int(times[0].sum())
        return int(times.max(axis=(0, 2)).sum())

    @property
    def pulls_per_second(self) -> float:
        """On one core."""
        return self.pulls / self.seconds if self.seconds > 0 else float("nan")


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    *,
    seed: int,
    resume: bool,
    workers: int | None,
    scheduler: str | None,
    progress: bool | None,
) -> dict[str, CellResult]:
    """All cells, each into its file in `folder`; by name."""
    console = Console(stderr=True)
    shown = console.is_terminal if progress is None else progress
    results: dict[str, CellResult] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not shown,
    ) as bars:
        whole = bars.add_task(f"all {len(cells)} cells", total=sum(cell.trials for cell in cells))
        for cell in cells:
            if cell.name in results:
                bars.advance(whole, cell.trials)
                continue
            bar = bars.add_task(cell.name, total=cell.trials)

            def advance(by: int, bar: int = bar) -> None:
                bars.advance(bar, by)  # type: ignore[arg-type]
                bars.advance(whole, by)

            results[cell.name] = _run_cell(cell, folder, seed, resume, workers, scheduler, advance)
            bars.update(bar, visible=False)  # so that the bars of forty cells do not fill the screen
            result = results[cell.name]
            note = f", {result.taken_over} of them from before" if result.taken_over else ""
            note += f"; {result.set_aside} of another run set aside (.old)" if result.set_aside else ""
            bars.console.print(f"{cell.name}: {_trials(cell.trials)}{note}, {result.wall:.1f} s", highlight=False)
    return results


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def _run_cell(
    cell: Cell,
    folder: Path,
    seed: int,
    resume: bool,
    workers: int | None,
    scheduler: str | None,
    advance: object,
) -> CellResult:
    assert callable(advance)
    plan = cell.plan()
    start = time.perf_counter()
    with Record(folder / f"{cell.name}.jsonl", fingerprint(cell, plan, seed), resume) as record:
        before = sum(trial < cell.trials for trial in record.outcomes)
        advance(before)

        def finished(outcome: Outcome) -> None:
            record.add(outcome)
            advance(1)

        missing = [trial for trial in range(cell.trials) if trial not in record.outcomes]
        if missing:
            run_trials(plan, seed, missing, workers=workers, scheduler=scheduler, finished=finished)
        outcomes = [record.outcomes[trial] for trial in range(cell.trials)]
        return CellResult(
            cell,
            instance_named(cell.instance),
            _by_threshold(cell, plan, seed, outcomes),
            sum(outcome.seconds for outcome in outcomes),
            time.perf_counter() - start,
            before,
            record.redone,
            record.set_aside,
        )


def _by_threshold(cell: Cell, plan: Plan, seed: int, outcomes: list[Outcome]) -> dict[str, Trials]:
    return {kind: trials_from(plan, kind, cell.deltas, seed, outcomes) for kind in cell.kinds}
