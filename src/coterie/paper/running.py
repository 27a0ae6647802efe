"""Run cells, keep every finished trial, show how far it is and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coterie.methods import method_named
from coterie.paper.cells import Cell, instance_named
from coterie.paper.records import Record, fingerprint
from coterie.problem.checks import IntArray
from coterie.problem.instance import Instance
from coterie.simulate.bulk import run_trials
from coterie.simulate.plan import Outcome, Plan
from coterie.simulate.trials import Trials, trials_from


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
