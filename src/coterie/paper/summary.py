"""Our numbers beside the printed ones: a row for each, and the checks of a part on all its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coterie.evidence.allocation import lower_bound
from coterie.methods import method_named
from coterie.paper.agreement import (
    FALSE_ALARM,
    MNIST_DIMS,
    TABLE_LINEAR,
    TABLE_MNIST,
    TABLE_REAL,
    PrintedNumber,
    combined_error,
    family_level,
)
from coterie.paper.cells import PAPERS_METHOD, Cell, cells_of
from coterie.paper.running import CellResult
from coterie.problem.checks import FloatArray

WITHIN_SHARE = 0.05
"""table3 at the implied scale: a mean agrees within this share, because the paper's draw of images is not known."""


@dataclass(frozen=True)
class Row:
    """One number of a table or one point of a curve."""

    part: str
    instance: str
    method: str
    threshold: str
    delta: float
    trials: int
    mean: float
    std: float
    standard_error: float
    median: float
    wrong: int
    given_up: int
    lower_bound: float
    printed: float | None = None
    printed_std: float | None = None
    difference: float | None = None
    """Share of the printed number."""
    difference_in_errors: float | None = None
    """In combined standard errors, ours and theirs."""
    family_level: float | None = None
    """table1 and table2: so many of these the farthest mean of the table may be off (`coterie.paper.agreement`)."""

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as columns of a CSV file."""
        return asdict(self)


@dataclass(frozen=True)
class Check:
    """Something that should hold, and whether it does."""

    part: str
    claim: str
    holds: bool
    detail: str


def rows_of(part: str, results: dict[str, CellResult], trials: int | None) -> list[Row]:
    """Every number of a part, ours beside the printed."""
    rows: list[Row] = []
    cells = cells_of(part, trials)
    level = _family_level(part, cells, results)
    for cell in cells:
        result = results[cell.name]
        for kind, runs in result.by_threshold.items():
            means, deviations, medians, errors = runs.mean(), runs.std(), runs.median(), runs.errors()
            for column, delta in enumerate(runs.deltas):
                count = len(runs.stopping_times)
                mean, std = float(means[column]), float(deviations[column])
                rows.append(
                    Row(
                        part,
                        cell.instance,
                        cell.method,
                        cell.threshold_shown(kind),
                        delta,
                        count,
                        mean,
                        std,
                        std / math.sqrt(count),
                        float(medians[column]),
                        int(errors[column]),
                        int((runs.stopping_times[:, column] < 0).sum()),
                        lower_bound(result.instance, delta),
                        **_beside(_printed(part, cell.instance, cell.method, kind, column), mean, std, count, level),
                    )
                )
    return rows


def _printed(part: str, instance: str, method: str, kind: str, column: int) -> PrintedNumber | None:
    if kind != "heuristic":
        return None
    if part == "table1":
        return TABLE_REAL[instance, method][column]
    if part == "table2":
        return TABLE_LINEAR[instance, method][column]
    if part == "table3":
        return TABLE_MNIST[method][MNIST_DIMS.index(int(instance.split("-")[1]))]
    return None


def _family_level(part: str, cells: Sequence[Cell], results: dict[str, CellResult]) -> float | None:
    """For the farthest of all means of table1 or table2 that have a printed one beside them."""
    if part not in ("table1", "table2"):
        return None
    ours: list[FloatArray] = [
        runs.stopping_times.astype(float)
        for cell in cells
        for kind, runs in results[cell.name].by_threshold.items()
        if _printed(part, cell.instance, cell.method, kind, 0) is not None
    ]
    return family_level(ours) if ours else None


def _beside(
    printed: PrintedNumber | None, mean: float, std: float, count: int, level: float | None
) -> dict[str, float | None]:
    if printed is None:
        return {}
    return {
        "printed": printed.mean,
        "printed_std": printed.std,
        "difference": mean / printed.mean - 1.0,
        "difference_in_errors": (mean - printed.mean) / float(combined_error(std, count, printed.std)),
        "family_level": level,
    }


def judged_by_share(row: Row) -> bool:
    """Whether agreement is judged by the share of the printed mean, not by standard errors: table3's images differ."""
    return row.part == "table3"


def agrees(row: Row) -> bool:
    """Whether a mean is as near to the printed one as its table requires."""
    if judged_by_share(row):
        return abs(row.difference or 0.0) <= WITHIN_SHARE
    return row.family_level is not None and abs(row.difference_in_errors or 0.0) <= row.family_level


def checks_of(part: str, rows: list[Row]) -> list[Check]:
    """What the rows of a table should show (those of the figure are in `coterie.paper.slopes`)."""
    checks: list[Check] = []
    if part in ("table1", "table2"):
        checks.append(_agreement(part, [row for row in rows if row.printed is not None]))
    if part == "table3":
        implied = [row for row in rows if row.printed is not None and row.instance.endswith("implied")]
        far = max(implied, key=lambda row: abs(row.difference or 0.0))
        checks.append(
            Check(
                part,
                f"at the implied scale (draw and scale fitted) each mean is within {WITHIN_SHARE:.0%} of the printed",
                abs(far.difference or 0.0) <= WITHIN_SHARE,
                f"{len(implied)} means; the farthest is {far.difference:+.1%}: {far.method} on {far.instance}",
            )
        )
        described = [row for row in rows if row.printed is not None and row.instance.endswith("described")]
        near = min(described, key=lambda row: row.difference or 0.0)
        checks.append(
            Check(
                part,
                "as described (D* = 2) the printed numbers are out of reach: each mean is over 1.4 times as large",
                (near.difference or 0.0) > 0.4,
                f"the nearest is {1 + (near.difference or 0.0):.2f} times the printed one: "
                f"{near.method} on {near.instance}",
            )
        )
    checks += croc_checks(part, rows, tables=True)
    checks.append(errors_check(part, rows))
    return checks


def _agreement(part: str, rows: list[Row]) -> Check:
    far = max(rows, key=lambda row: abs(row.difference_in_errors or 0.0))
    within = sum(agrees(row) for row in rows)
    return Check(
        part,
        f"all means together agree with the printed ones: if they do, the farthest of the {len(rows)} is beyond "
        f"{far.family_level:.2f} combined standard errors with a probability of at most {FALSE_ALARM:.0%}",
        within == len(rows),
        f"{within} of {len(rows)} within; the farthest is {far.difference_in_errors:+.1f}: "
        f"{far.method} on {far.instance} at δ = {far.delta:.0e}",
    )


def croc_checks(part: str, rows: list[Row], *, tables: bool) -> list[Check]:
    """CROC is never above BOC with the proven β, nor, at the tables' δ, above BOC with the heuristic one."""
    checks = []
    for kind in ("proven", "heuristic") if tables else ("proven",):
        papers = (PAPERS_METHOD, kind)
        boc = {(row.instance, row.delta): row.mean for row in rows if (row.method, row.threshold) == papers}
        pairs = [
            (row, boc[row.instance, row.delta])
            for row in rows
            if method_named(row.method).certifies and (row.instance, row.delta) in boc
        ]
        worst, other = max(pairs, key=lambda pair: pair[0].mean / pair[1])
        best, rival = min(pairs, key=lambda pair: pair[0].mean / pair[1])
        checks.append(
            Check(
                part,
                f"CROC needs no more than BOC with the {kind} threshold",
                all(row.mean <= limit for row, limit in pairs),
                f"between {worst.mean / other:.3g} of its measurements ({worst.instance}, δ = {worst.delta:.0e}) and "
                f"{best.mean / rival:.3g} ({best.instance}, δ = {best.delta:.0e})",
            )
        )
    return checks


def errors_check(part: str, rows: Iterable[Row]) -> Check:
    """That no row has more wrong partitions than its δ allows (`allowed_errors`)."""
    counted = list(rows)
    wrong = sum(row.wrong for row in counted)
    over = [row for row in counted if row.wrong > allowed_errors(row.trials, row.delta)]
    return Check(
        part,
        "wrong partitions stay within δ (the paper reports none)",
        not over,
        f"{wrong} in {sum(row.trials for row in counted)} stops"
        + (f"; too many: {over[0].method} on {over[0].instance} at δ = {over[0].delta:.0e}" if over else ""),
    )


def allowed_errors(trials: int, delta: float) -> int:
    """The most errors that a method with error probability δ makes in so many trials, but for chance 1e-4."""
    from scipy.stats import binom

    return int(binom.ppf(1 - 1e-4, trials, delta))
