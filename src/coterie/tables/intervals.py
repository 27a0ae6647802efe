"""Intervals of a table: fixed-sample ones if it is finished, those of every moment if it grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.evidence.exact.differences import FixedIntervals
from coterie.evidence.exact.pair_tests import sorted_stacks
from coterie.evidence.intervals.streams import FORMULAS, StreamIntervals
from coterie.problem.checks import check_delta
from coterie.problem.question import ExactGroups
from coterie.session.intervals import Intervals, center_of, check_kind, checked_quantile, in_words, row_names
from coterie.tables.analysis import Analysis
from coterie.tables.errors import TableError, checked

FIXED = {
    "known": "z", "gaussian": "t", "counts": "clopper-pearson", "bounded": "bets", "at-most": "catoni, one bet",
    "any": "order statistics", "symmetric": "order statistics", "poisson": "order statistics",
    "exponential": "order statistics",
}  # fmt: skip
"""The formulas of finished tables, by the kind of the noise."""

_FINISHED = "if the number of rows did not depend on their values"


def table_intervals(analysis: Analysis, of: Any, delta: Any, quantile: Any) -> Intervals:
    """See `Grouping.intervals`."""
    if analysis.session is not None:
        answer: Intervals = analysis.session.intervals(of, delta, quantile)
        return answer
    pool, noise = analysis.pool, analysis.checks.noise
    checked("of", check_kind, of)
    p = checked("quantile", checked_quantile, quantile, noise, of)
    error = analysis.delta if delta is None else checked("delta", check_delta, delta)
    if pool.blocks is not None:
        message = f"in blocks ({pool.blocks.column}) means of items are not told apart from what blocks add"
        raise TableError(f"{message}: there are no intervals; read pairs and letters", field="blocks")
    if pool.has_holes:
        raise TableError("rows lack some numbers: there are no intervals; read pairs and letters", field="holes")
    if analysis.noise_too_small:
        raise TableError("the rows contradict the noise stated, on which intervals rest: state another", field="noise")
    labels, n_rows = _labels(analysis, of)
    count = n_rows if of != "differences" else n_rows * (n_rows - 1) // 2
    if count == 0:
        raise TableError(
            "there is one group so far, and no difference of two: ask for intervals(of='groups')", field="of"
        )
    formula: FixedIntervals | StreamIntervals
    if analysis.finished is None:  # without groups: items only
        values = pool.rows[pool.rearranged(analysis.order)]
        formula = StreamIntervals(noise, count * pool.dim, error, pool.arms, values, p)
    else:
        values = pool.rows
        items = sorted_stacks(pool.arms, values, len(pool.names))
        formula = FixedIntervals(noise, count * pool.dim, error, items, p)
    own = labels[pool.arms]
    streams = [values[own == k] for k in range(n_rows)]
    rows: tuple[Any, ...]
    lengths: tuple[Any, ...]
    if of == "differences":
        rows = tuple((k, other) for k in range(n_rows) for other in range(k + 1, n_rows))
        pairs = [(streams[k], streams[other]) for k, other in rows]
        (low, high), lengths = formula.differences(pairs), tuple((len(a), len(b)) for a, b in pairs)
        middle = np.array([center_of(a, p) - center_of(b, p) for a, b in pairs])
    else:
        rows = tuple(range(n_rows))
        (low, high), lengths = formula.means(streams), tuple(len(stream) for stream in streams)
        middle = np.array([center_of(stream, p) for stream in streams])
    proven = of == "items" or analysis.done
    moment = "" if analysis.finished is None else _FINISHED
    words = in_words(of, count, error, noise, p, proven, analysis.delta, moment)
    name = (FORMULAS if analysis.finished is None else FIXED)[noise.kind]
    return Intervals(
        of, rows, low, high, middle.reshape(low.shape), lengths, error, count * pool.dim, name, proven, p, words,
        row_names(of, rows, list(pool.names)), None if analysis.labels is None else np.array(analysis.labels),
    )  # fmt: skip


def _labels(analysis: Analysis, of: str) -> tuple[Any, int]:
    """The label of each item, and how many there are."""
    n_items = len(analysis.pool.names)
    if of == "items":
        return np.arange(n_items), n_items
    if analysis.question is not None and not isinstance(analysis.question, ExactGroups):
        message = f"items of a group need not have one mean ({analysis.question.words}): ask for intervals(of='items')"
        raise TableError(message, field="of")
    if analysis.question is None or analysis.labels is None:
        reason = "no number of groups was given" if analysis.question is None else "no grouping fits the rows"
        raise TableError(f"there are no groups, as {reason}: ask for intervals(of='items')", field="of")
    return np.array(analysis.labels), max(analysis.labels) + 1
