"""`coterie reproduce`: run the cells of tables and figures, and write them beside the printed numbers.

In the folder: `trials/` (one file a cell, appended as trials finish), and for each part CSV, Markdown, PNG and SVG, and
`report.html` for all of them.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coterie.paper.cells import PARTS, Cell, cells_of, instance_named
from coterie.paper.report import check_jinja2, figures_of, markdown_of, save, write_report
from coterie.paper.running import CellResult, run_cells
from coterie.paper.slopes import Slope, slope_checks, slopes_of
from coterie.paper.summary import Check, Row, checks_of, croc_checks, errors_check, rows_of
from coterie.plot.canvas import check_matplotlib
from coterie.problem.checks import check_count, short


@dataclass
class Reproduction:
    """What was run, and what it says.

    Attributes
    ----------
    parts : tuple of str
        Tables and figures that were run.
    trials : int or None
        Of each cell; None: as many as the tables say.
    seed : int
        The numbers depend on it alone.
    folder : Path
        Where everything was written.
    results : dict
        Name of a cell to its trials.
    rows, pictures : dict
        Of each part: the rows of its tables, and its pictures as SVG.
    checks, slopes : list
        What was checked, and the slopes of figure 3.
    cluster : str or None
        The scheduler's address, if the trials were run on a Dask cluster.
    seconds : float
        How long it took.
    """

    parts: tuple[str, ...]
    trials: int | None
    seed: int
    folder: Path
    results: dict[str, CellResult] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    slopes: list[Slope] = field(default_factory=list)
    pictures: dict[str, dict[str, str]] = field(default_factory=dict)
    cluster: str | None = None
    seconds: float = 0.0

    @property
    def report(self) -> Path:
        """The page."""
        return self.folder / "report.html"


def reproduce(
    part: str = "all",
    *,
    trials: int | None = None,
    out: str | Path = "reproduction",
    seed: int = 0,
    workers: int | None = None,
    scheduler: Any = None,
    resume: bool = False,
    progress: bool | None = None,
) -> Reproduction:
    """Run a part of the paper's experiments, and write its tables, pictures and report into a folder.

    Parameters
    ----------
    part : {"table1", "table2", "table3", "figure3", "all"}
        What is run.
    trials : int, optional
        Of each cell. None: as many as the paper's 256, and fewer where it would take hours.
    out : str or Path
        The folder.
    seed : int
        The numbers depend on it alone.
    workers, scheduler : optional
        As in `coterie.simulate`.
    resume : bool
        Take over the trials that an earlier run left in the folder.
    progress : bool, optional
        Bars on the terminal; by default if there is one.

    Returns
    -------
    Reproduction
        What was run, and what it says.
    """
    if not isinstance(part, str) or part not in (*PARTS, "all"):
        raise ValueError(f"unknown table or figure {short(part)}: choose from {', '.join((*PARTS, 'all'))}")
    parts = PARTS if part == "all" else (part,)
    count = None if trials is None else check_count(trials, "trials", 1)
    root = check_count(seed, "seed", 0)
    if workers is not None:
        check_count(workers, "workers", 1)
    check_matplotlib("coterie reproduce")
    check_jinja2()
    folder = Path(out)
    start = time.perf_counter()
    reproduction = Reproduction(parts, count, root, folder, cluster=None if scheduler is None else str(scheduler))
    cells = [cell for each in parts for cell in cells_of(each, count)]
    with _connected(scheduler) as client:  # first: a cluster that is not there is said at once
        _make_writable(folder)
        _build_instances(cells)
        reproduction.results = run_cells(
            cells, folder / "trials", seed=root, resume=resume, workers=workers, scheduler=client, progress=progress
        )
    for each in parts:
        _write_part(reproduction, each)
    reproduction.seconds = time.perf_counter() - start
    write_report(reproduction)
    return reproduction


def _write_part(reproduction: Reproduction, part: str) -> None:
    rows = rows_of(part, reproduction.results, reproduction.trials)
    reproduction.rows[part] = rows
    if part == "figure3":
        reproduction.slopes = slopes_of(
            [reproduction.results[cell.name] for cell in cells_of(part, reproduction.trials)]
        )
        reproduction.checks += [
            *slope_checks(reproduction.slopes),
            *croc_checks(part, rows, tables=False),
            errors_check(part, rows),
        ]
        _write_csv(reproduction.folder / "figure3-slopes.csv", reproduction.slopes)
    else:
        reproduction.checks += checks_of(part, rows)
    _write_csv(reproduction.folder / f"{part}.csv", rows)
    (reproduction.folder / f"{part}.md").write_text(markdown_of(part, rows), encoding="utf-8")
    reproduction.pictures[part] = save(
        figures_of(part, reproduction.results, rows, reproduction.trials), reproduction.folder
    )


def _write_csv(path: Path, rows: Sequence[Row | Slope]) -> None:
    """One line for each row, its fields as columns."""
    listed = [row.to_dict() for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, listed[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)


def _build_instances(cells: list[Cell]) -> None:
    """All data sets before the first trial: a missing package is said at once, not after an hour."""
    for cell in cells:
        instance_named(cell.instance)


def _make_writable(folder: Path) -> None:
    """Make the folder and its `trials/` if need be; OSError that names it if nothing can be written there."""
    try:
        (folder / "trials").mkdir(parents=True, exist_ok=True)
        probe = folder / "trials" / f".writable-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"cannot write to {folder} ({reason}): give another folder with --out") from None


def _connected(scheduler: Any) -> AbstractContextManager[Any]:
    """One connection for all cells."""
    if scheduler is None:
        return nullcontext(None)
    from coterie.simulate.connecting import connected

    return connected(scheduler)
