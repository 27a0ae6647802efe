"""Intervals as bars, and groups under an axis of means, as critical-difference diagrams show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.plot.canvas import axes_for, colour_of, counted, marker_of
from coterie.problem.checks import FloatArray, IntArray, check_count, short
from coterie.session import Result, Session
from coterie.session.intervals import Intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 60
"""Intervals that a picture names; of more, none is named."""

_ROOM = 0.06  # of the width, beyond the farthest end


def intervals(of: Intervals | Session | Result | Any, *, ax: Any = None, number: int = 0, legend: bool = True) -> Axes:
    """Intervals as bars, one below the other, with the mean or quantile of the results read as a mark.

    An end that is not known yet is an arrow. Intervals of differences have a line at 0.

    Parameters
    ----------
    of : Intervals, Session, Result or Grouping
        What `intervals()` gave; of anything else, its intervals of groups are drawn.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.
    number : int
        Which number of a result.
    legend : bool
        Whether the axis says how often any of them is wrong at most, and what they are if not proven.

    Returns
    -------
    Axes
        What was drawn on.
    """
    shown = of if isinstance(of, Intervals) else _intervals_of(of)
    place = check_number(number, shown.low.shape[1])
    axes = axes_for(ax)
    low, high, middle = (end[:, place] for end in (shown.low, shown.high, shown.middle))
    left, right = _range(low, high, np.append(middle, 0.0) if shown.of == "differences" else middle)
    rows = np.arange(len(shown.rows))[::-1]  # the first one on top
    groups = _row_groups(shown)
    for row, k, a, b, m in zip(rows.tolist(), groups.tolist(), low, high, middle, strict=True):
        if np.isnan(a):  # no value fits
            axes.annotate("no value fits", (left, row), va="center", fontsize="small", color="#B00020")
            continue
        ends = max(a, left), min(b, right)
        axes.plot(ends, (row, row), color=colour_of(k), linewidth=2.2, solid_capstyle="butt")
        for end, limit, arrow in ((a, left, "<"), (b, right, ">")):
            mark, at = ("|", end) if np.isfinite(end) else (arrow, limit)
            axes.plot(at, row, marker=mark, color=colour_of(k), markersize=7, linestyle="none")
        if np.isfinite(m):
            axes.plot(m, row, marker=marker_of(k), color=colour_of(k), markersize=5, linestyle="none", zorder=3)
    if shown.of == "differences":
        axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(rows if len(rows) <= MOST_ROWS else [], shown.names if len(rows) <= MOST_ROWS else [])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(left - _ROOM * (right - left), right + _ROOM * (right - left))
    axes.set_xlabel(_said(shown) if legend else "")
    return axes


def critical_difference(run: Session | Result | Any, *, ax: Any = None, number: int = 0, legend: bool = True) -> Axes:
    """Items on an axis of means, and under it a bar for each group: a critical-difference diagram.

    A bar reaches from the lowest to the highest mean of its items, with the proven interval of the group's mean as a
    light band. Where no number of groups was given, a bar joins the items that share a letter: none of these are proven
    to differ.

    Parameters
    ----------
    run : Session, Result or Grouping
        With a group for each item, or letters.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.
    number : int
        Which number of a result.
    legend : bool
        Whether the line below says what bars and bands are.

    Returns
    -------
    Axes
        What was drawn on.
    """
    names, means, labels, letters = _items_of(run)
    place = check_number(number, means.shape[1])
    x = means[:, place]
    bars = _bars(x, labels, letters)
    proven = None if labels is None else _group_intervals(run)
    bands = None if proven is None else np.column_stack([proven.low[:, place], proven.high[:, place]])
    axes = axes_for(ax)
    _draw_axis(axes, names, x, labels, len(bars))
    for row, (k, members) in enumerate(bars):
        y = -0.55 * (row + 1)
        if bands is not None and np.isfinite(bands[k]).all():
            axes.fill_betweenx((y - 0.17, y + 0.17), *bands[k], color=colour_of(k), alpha=0.22, linewidth=0)
        least = 0.004 * float(np.ptp(x) or 1.0)  # a group of one item is a bar too
        ends = x[members].min() - least, x[members].max() + least
        axes.plot(ends, (y, y), color=colour_of(k), linewidth=5.0, solid_capstyle="round")
    if legend:
        axes.set_xlabel(_bars_said(run, labels, proven))
    return axes


def _intervals_of(run: Any) -> Intervals:
    if not hasattr(run, "intervals"):
        raise TypeError(f"intervals needs Intervals, or a Session, Result or Grouping that has them, got {short(run)}")
    shown: Intervals = run.intervals()
    return shown


def check_number(number: Any, dim: int) -> int:
    """Which number of a result is drawn."""
    place = check_count(number, "number", 0)
    if place >= dim:
        raise ValueError(f"number must be from 0 to {dim - 1}, got {place}: results have {dim}")
    return place


def _range(low: FloatArray, high: FloatArray, middle: FloatArray) -> tuple[float, float]:
    """From where to where there is something to be seen."""
    known = np.concatenate([low, high, middle])
    known = known[np.isfinite(known)]
    left, right = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    return (left, right) if right > left else (left - 0.5, right + 0.5)


def _row_groups(shown: Intervals) -> IntArray:
    """The colour of each row: that of its group; of a difference none."""
    if shown.of == "groups":
        return np.array(shown.rows, dtype=np.int64)
    if shown.of == "items" and shown.labels is not None:
        return np.asarray(shown.labels)
    return np.zeros(len(shown.rows), dtype=np.int64)


def _said(shown: Intervals) -> str:
    kind = {None: "mean", 0.5: "median"}.get(shown.quantile, f"{shown.quantile}-quantile")
    held = "proven" if shown.proven else "if these are the groups"
    quantity = f"difference of {kind}s" if shown.of == "differences" else kind
    return f"{quantity} ({held}; any is wrong with probability at most {shown.delta:g})"


def _items_of(run: Any) -> tuple[list[str], FloatArray, IntArray | None, tuple[str, ...]]:
    """Names, means (M, d), labels and letters."""
    if isinstance(run, Session | Result):
        session = run.session if isinstance(run, Result) else run
        labels = session.labels
        if labels is None:
            raise ValueError("critical_difference needs groups: measure every item first")
        arms, values = counted(session)
        sums, counts = np.zeros((session.n_arms, session.dim)), np.bincount(arms, minlength=session.n_arms)
        np.add.at(sums, arms, values)
        names = [str(m) for m in range(session.n_arms)] if session.names is None else list(session.names)
        with np.errstate(invalid="ignore"):
            return names, sums / counts[:, None], labels, ()
    if not hasattr(run, "letters"):
        raise TypeError(f"critical_difference needs a Session, a Result or a Grouping, got {short(run)}")
    return list(run.names), run.means, run.labels, run.letters


def _bars(x: FloatArray, labels: IntArray | None, letters: tuple[str, ...]) -> list[tuple[int, IntArray]]:
    """(number, items) of each bar, by where they begin."""
    if labels is not None:
        bars = [(k, np.flatnonzero(labels == k)) for k in range(int(labels.max()) + 1)]
    else:
        every = sorted({letter for shared in letters for letter in shared})
        bars = [(k, np.array([i for i, own in enumerate(letters) if s in own])) for k, s in enumerate(every)]
    kept = [(k, members) for k, members in bars if members.size]
    return sorted(kept, key=lambda bar: float(x[bar[1]].min()))


def _group_intervals(run: Any) -> Intervals | None:
    """The intervals of the groups; None if there are none."""
    try:
        shown: Intervals = run.intervals()
    except ValueError:  # a resolution, linkage, or after a revision
        return None
    return shown


def _draw_axis(axes: Axes, names: list[str], x: FloatArray, labels: IntArray | None, n_bars: int) -> None:
    """The axis of means on top, a mark for each item, and its name at the end of a line to the nearer side."""
    order = np.argsort(x, kind="stable")
    half = (len(order) + 1) // 2
    left, right = float(np.nanmin(x)), float(np.nanmax(x))
    room = 0.12 * ((right - left) or 1.0)
    bottom = -0.55 * (n_bars + 1)
    for row, item in enumerate(order.tolist()):
        on_left = row < half
        step = row if on_left else len(order) - 1 - row
        y, end = bottom - 0.5 * step, (left - room) if on_left else (right + room)
        k = 0 if labels is None else int(labels[item])
        axes.plot((x[item], x[item], end), (0.0, y, y), color="#999999", linewidth=0.7, zorder=1)
        axes.plot(x[item], 0.0, marker=marker_of(k), color=colour_of(k), markersize=5, zorder=3, clip_on=False)
        side, shift = ("right", -3) if on_left else ("left", 3)
        beside: Any = {"textcoords": "offset points", "ha": side, "va": "center", "fontsize": "small"}
        axes.annotate(names[item], (end, y), (shift, 0), **beside)
    axes.set_ylim(bottom - 0.5 * half - 0.2, 0.0)
    widest = max(len(name) for name in names)
    margin = room * (1.0 + 0.16 * min(widest, 24))
    axes.set_xlim(left - room - margin, right + room + margin)
    axes.xaxis.set_ticks_position("top")
    axes.spines[["bottom", "left", "right"]].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.set_yticks([])
    axes.grid(False)


def _bars_said(run: Any, labels: IntArray | None, proven: Intervals | None) -> str:
    if labels is None:
        return "bars join items that are not proven to differ"
    said = "bars: the groups" + ("" if run.done else " as they are guessed")
    if proven is None:
        return said
    return f"{said}; bands: intervals of their {'means' if proven.quantile is None else 'quantiles'}" + (
        ", proven" if proven.proven else ", if these are the groups"
    )
