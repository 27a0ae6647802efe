"""figure3: how fast each curve climbs with log(1/δ), beside D*.

With Z(t) = ½(√Z2 − √Z1)², Z2 ≈ 2t/D and Z1 ≈ χ² with (M − K)·d degrees of freedom, a method whose proportions
settle at hardness D stops at t = ½·D·(√(2β) + √Z1)², so that dt/dlog(1/δ) = D·(1 + √(Z1/(2β)))·dβ/dlog(1/δ): the
slope is above D and falls towards it as δ → 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.evidence.allocation import hardness
from coterie.evidence.stopping import closest_alternative, threshold_from_log
from coterie.methods import method_named
from coterie.paper.cells import PAPERS_METHOD
from coterie.paper.running import CellResult
from coterie.paper.summary import Check, Row
from coterie.problem.instance import Instance

END = 1e-200
"""The end of a curve: δ from here to 1e-300."""

SLOPE_AT_END = 1.25
"""BOC's slope at the end is to be below this many D*."""

PAPER_RANGE = 1e-10

EQUAL_SHARES = ("uniform",)
"""Methods that pull every arm equally often: their slope tends to the hardness at equal proportions, not to D*."""


@dataclass(frozen=True)
class Slope:
    """The slope of one curve of figure3."""

    instance: str
    threshold: str
    method: str
    hardness: float
    limit: float
    """What the slope tends to: D* for BOC and Oracle, the hardness at equal proportions for Uniform."""
    fitted_paper: float
    """Least squares, δ from 1e-1 to 1e-10."""
    fitted_end: float
    """Least squares, δ from 1e-200 to 1e-300."""
    error_end: float
    """Its standard error, from the spread of the trials."""
    predicted_end: float | None
    """The formula above over the same stretch."""

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as columns of a CSV file."""
        return asdict(self)


def hardness_at(instance: Instance, proportions: Any) -> float:
    """What D* would be if the pulls went this way: 2 over the smallest weighted change that gives another answer."""
    return 2.0 / closest_alternative(instance, proportions).value


def slopes_of(results: list[CellResult]) -> list[Slope]:
    """All curves, instance by instance."""
    slopes = []
    for result in results:
        instance, method = result.instance, result.cell.method
        own = hardness(instance)
        certifies = method_named(method).certifies
        equal = np.full(instance.n_arms, 1.0 / instance.n_arms)
        limit = hardness_at(instance, equal) if method in EQUAL_SHARES else own
        for kind, runs in result.by_threshold.items():
            logs = np.array([-math.log(delta) for delta in runs.deltas])
            deltas = np.array(runs.deltas)
            end = deltas <= END * (1 + 1e-9)
            times = runs.stopping_times.astype(float)
            each = _fit(logs[end], times[:, end])
            slopes.append(
                Slope(
                    result.cell.instance,
                    result.cell.threshold_shown(kind),
                    method,
                    own,
                    limit,
                    float(_fit(logs[deltas >= PAPER_RANGE / 2], times[:, deltas >= PAPER_RANGE / 2]).mean()),
                    float(each.mean()),
                    float(each.std(ddof=1) / math.sqrt(len(each))) if len(each) > 1 else 0.0,
                    None if certifies else _predicted(instance, kind, limit, logs[end], times[:, end]),
                )
            )
    return slopes


def _fit(logs: Any, times: Any) -> Any:
    """The least-squares slope of each trial's curve."""
    centered = logs - logs.mean()
    return times @ centered / (centered @ centered)


def _predicted(instance: Instance, kind: str, limit: float, logs: Any, times: Any) -> float:
    """The formula, averaged over the stretch, with β at the mean stopping time and dβ/dlog(1/δ) at those counts."""
    freedom = (instance.n_arms - instance.n_clusters) * instance.dim
    step = 1e-3
    slopes = []
    for log, t in zip(logs, times.mean(axis=0), strict=True):
        pulls = np.full(instance.n_arms, max(1, round(t / instance.n_arms)))
        low, here, high = (
            threshold_from_log(value, pulls, instance.dim, kind) for value in (log - step, log, log + step)
        )
        slopes.append(limit * (1 + math.sqrt(freedom / (2 * here))) * (high - low) / (2 * step))
    return float(np.mean(slopes))


def local_slopes(row_group: list[Row]) -> list[tuple[float, float]]:
    """(log(1/δ) half-way, slope) between neighbouring points of a curve."""
    ordered = sorted(row_group, key=lambda row: -row.delta)
    return [
        (
            -0.5 * (math.log(a.delta) + math.log(b.delta)),
            (b.mean - a.mean) / (math.log(a.delta) - math.log(b.delta)),
        )
        for a, b in pairwise(ordered)
    ]


def slope_checks(slopes: list[Slope]) -> list[Check]:
    """What should hold of the slopes of BOC and Uniform, and of the formula for all that have one."""
    by_method: dict[str, list[Slope]] = defaultdict(list)
    for slope in slopes:
        by_method[slope.method].append(slope)
    boc = by_method[PAPERS_METHOD]
    steepest = max(boc, key=lambda slope: slope.fitted_end / slope.hardness)
    uniform = [slope for method in EQUAL_SHARES for slope in by_method[method]]
    flattest = min(uniform, key=lambda slope: slope.fitted_end / slope.hardness)
    predicted = [slope for slope in slopes if slope.predicted_end is not None]
    off = max(predicted, key=lambda slope: abs(slope.fitted_end / (slope.predicted_end or 1.0) - 1))
    falling = all(slope.fitted_end < slope.fitted_paper for slope in boc)
    return [
        Check(
            "figure3",
            f"BOC's slope falls towards D* and is below {SLOPE_AT_END:g}·D* for δ from 1e-200 to 1e-300",
            falling and steepest.fitted_end <= SLOPE_AT_END * steepest.hardness,
            f"the steepest is {steepest.fitted_end / steepest.hardness:.3f}·D* ({steepest.instance}, "
            f"{steepest.threshold})",
        ),
        Check(
            "figure3",
            "the slopes there are those of (1 + √(Z1/2β))·dβ/dlog(1/δ), within 10 %",
            abs(off.fitted_end / (off.predicted_end or 1.0) - 1) <= 0.1,
            f"the farthest is {off.fitted_end / (off.predicted_end or 1.0) - 1:+.1%}: {off.method} on {off.instance}, "
            f"{off.threshold}",
        ),
        Check(
            "figure3",
            "Uniform's slope falls towards its own, larger limit, and is within 20 % of it",
            all(slope.limit < slope.fitted_end < min(slope.fitted_paper, 1.2 * slope.limit) for slope in uniform),
            f"the flattest is {flattest.fitted_end / flattest.hardness:.2f}·D*, where its limit is "
            f"{flattest.limit / flattest.hardness:.2f}·D* ({flattest.instance}, {flattest.threshold})",
        ),
    ]
