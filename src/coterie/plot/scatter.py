"""Items by their means: as measured, coloured by the group they are in; or in order, with their letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.plot.canvas import add_legend, axes_for, colour_of, counted, marker_of, session_of
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.families import Model
from coterie.session import Result, Session
from coterie.session.intervals import Intervals, is_quick

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from coterie.tables.grouping import Grouping

_THIN: dict[str, Any] = {"linewidth": 0.9, "alpha": 0.6, "zorder": 1.5}
"""How an interval is drawn."""

FEW_ARMS = 30
"""Up to so many items are named in the picture."""

AREA = 30.0
"""Of the marker of an item with the mean number of measurements, in square points; less if there are many items."""

LOADINGS = 8
"""So many numbers of a measurement at most have an arrow where principal components are drawn: the longest."""


def means(
    run: Session | Result,
    *,
    ax: Any = None,
    groups: Sequence[str] | None = None,
    legend: bool = True,
) -> Axes:
    """The items' mean measurements, coloured by group, with the groups' centers; area: how often each was measured.

    One number a measurement: against the item's index. Two: as they are. More: the two principal components of the
    means, each number in units of the noise (of the spread of repeats where the noise is not known), with an arrow for
    each number: the direction in which it grows. Up to 30 items are named. Of one or two numbers, lines are the proven
    intervals of the items' means, where there are any and they are quick.

    Parameters
    ----------
    run : Session or Result
        The run.
    ax, legend
        As in `coterie.plot.proportions`.
    groups : sequence of str, optional
        What the legend calls the groups, in the order of `labels`.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> import coterie
    >>> result = coterie.cluster(lambda item: 5.0 * (item > 2), 6, 2, noise=1.0, progress=False)
    >>> coterie.plot.means(result).get_ylabel()
    'mean measurement'
    """
    session = session_of(run, "means", guess=True)
    labels, centers = session.labels, session.centers
    assert labels is not None
    assert centers is not None
    n_clusters = session.n_clusters or len(centers)
    if groups is not None and (isinstance(groups, str) or len(groups) != n_clusters):
        raise ValueError(f"groups must be {n_clusters} names, one for each group, got {short(groups)}")
    columns = run.columns if isinstance(run, Result) else None
    called = columns or tuple(f"v{i}" for i in range(session.dim))
    placed = _placed(session, _running_means(session), centers, called)
    points, middles, axis_names = placed.points, placed.centers, placed.axes
    axes = axes_for(ax)
    area = _areas(session.pulls)
    for k in range(n_clusters):
        mine = labels == k
        size = int(mine.sum())
        name = f"group {k}: {size} item{'' if size == 1 else 's'}" if groups is None else str(groups[k])
        axes.scatter(
            points[mine, 0],
            points[mine, 1],
            s=area[mine],
            c=colour_of(k),
            marker=marker_of(k),
            alpha=0.75,
            linewidths=0,
            label=name,
        )
    _draw_centers(axes, middles, np.unique(labels), strip=session.dim == 1)
    _draw_loadings(axes, placed)
    if session.dim <= 2 and (proven := _intervals(session.intervals, session.noise, points.size)) is not None:
        colours = [colour_of(k) for k in labels]
        if session.dim == 2:
            axes.hlines(points[:, 1], _ends(proven.low[:, 0]), _ends(proven.high[:, 0]), colors=colours, **_THIN)
        axes.vlines(points[:, 0], _ends(proven.low[:, -1]), _ends(proven.high[:, -1]), colors=colours, **_THIN)
    if session.n_arms <= FEW_ARMS:
        _name_arms(axes, session, points)
    axes.set(xlabel=axis_names[0], ylabel=axis_names[1])
    add_legend(axes, legend)
    return axes


def _intervals(intervals: Callable[..., Intervals], noise: Model, numbers: int) -> Intervals | None:
    """Those of the items' means; None if they take long, if none exist, or if they are of medians."""
    if not is_quick(noise, numbers):
        return None
    try:
        of_items = intervals(of="items")
    except ValueError:  # after a revision, in blocks, or where the rows contradict what was stated
        return None
    return of_items if of_items.quantile is None else None


def _ends(ends: FloatArray) -> FloatArray:
    """Ends that can be drawn."""
    drawn: FloatArray = np.where(np.isfinite(ends), ends, np.nan)
    return drawn


def _running_means(session: Session) -> FloatArray:
    arms, values = counted(session)
    sums = np.zeros((session.n_arms, session.dim))
    np.add.at(sums, arms, values)
    running: FloatArray = sums / session.pulls[:, None]
    return running


class _Placement(NamedTuple):
    """Where items and centers are drawn, what the axes are called, and where each number of a measurement grows."""

    points: FloatArray  # (M, 2)
    centers: FloatArray  # (K, 2)
    axes: tuple[str, str]
    loadings: tuple[tuple[str, FloatArray], ...] = ()


def _placed(session: Session, x: FloatArray, centers: FloatArray, columns: Sequence[str]) -> _Placement:
    if session.dim == 1:
        items = np.arange(session.n_arms)
        across = np.full(len(centers), np.nan)  # a center belongs to no item: it is a line
        return _Placement(
            np.column_stack([items, x]), np.column_stack([across, centers]),
            ("item", "mean measurement" if columns[0] == "v0" else f"mean {columns[0]}"),
        )  # fmt: skip
    if session.dim == 2:
        return _Placement(x, centers, (f"mean {columns[0]}", f"mean {columns[1]}"))
    spread = np.ones(session.dim) if session.noise.in_units else _spread_of_repeats(session, x)
    white, middles = session.noise.whiten(x) / spread, session.noise.whiten(centers) / spread
    origin = white.mean(axis=0)
    _, lengths, directions = np.linalg.svd(white - origin, full_matrices=False)
    # The sign of a component is arbitrary: its largest entry is made positive, so that pictures can be compared.
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(len(directions)), largest])[:, None]
    variance = lengths**2 / max(float((lengths**2).sum()), np.finfo(float).tiny)
    names = [f"{which} principal component ({v:.0%} of the variance)"
             for which, v in zip(("first", "second"), variance, strict=False)]  # fmt: skip
    plane = directions[:2].T
    steps = session.noise.whiten(np.eye(session.dim)) / spread  # of each number by one
    grows = steps / np.linalg.norm(steps, axis=1, keepdims=True) @ plane
    shown = np.argsort(-np.linalg.norm(grows, axis=1), kind="stable")[:LOADINGS]
    return _Placement(
        (white - origin) @ plane, (middles - origin) @ plane,
        (names[0], names[1].replace(" of the variance", "")),
        tuple((columns[i], grows[i]) for i in sorted(shown.tolist())),
    )  # fmt: skip


def _spread_of_repeats(session: Session, means: FloatArray) -> FloatArray:
    """(d) the standard deviation of an item's results, pooled; that of the means where no item was measured twice."""
    items, values = counted(session)
    freedom = len(items) - np.unique(items).size
    squares = ((values - means[items]) ** 2).sum(axis=0) / max(freedom, 1) if freedom else means.var(axis=0)
    return np.where(squares > 0.0, np.sqrt(squares), 1.0)


def _draw_loadings(axes: Axes, placed: _Placement) -> None:
    """Arrows from the middle, the longest a quarter of the picture long."""
    if not placed.loadings:
        return
    from matplotlib.patheffects import withStroke

    longest = max(float(np.linalg.norm(grows)) for _, grows in placed.loadings)
    scale = 0.25 * float(np.ptp(placed.points, axis=0).max()) / max(longest, 1e-300)
    axes.update_datalim([1.15 * scale * grows for _, grows in placed.loadings])
    axes.autoscale_view()
    for column, grows in placed.loadings:
        x, y = scale * grows
        axes.annotate(
            column, (0.0, 0.0), (x, y), color="#333333", fontsize="x-small", ha="center", va="center",
            arrowprops={"arrowstyle": "<-", "color": "#777777", "linewidth": 0.8}, zorder=4,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],  # names are read over the points
        )  # fmt: skip


def _areas(pulls: IntArray) -> FloatArray:
    """In proportion to the pulls, but never too small to be seen nor so large that others are hidden."""
    typical = AREA * min(1.0, (200.0 / pulls.size) ** 0.5)
    areas: FloatArray = typical * np.clip(pulls / pulls.mean(), 0.4, 9.0)
    return areas


def _draw_centers(axes: Axes, middles: FloatArray, used: IntArray, *, strip: bool) -> None:
    if strip:
        for k in used:
            axes.axhline(middles[k, 1], color=colour_of(int(k)), linewidth=1.0, linestyle="--", zorder=1)
        axes.plot([], [], color="#444444", linewidth=1.0, linestyle="--", label="centers")
        return
    axes.scatter(
        middles[used, 0],
        middles[used, 1],
        s=140,
        facecolors="none",  # a ring hides no item
        edgecolors="black",
        linewidths=1.0,
        zorder=3,
        label="centers",
    )


def _name_arms(axes: Axes, session: Session, points: FloatArray) -> None:
    names = [str(m) for m in range(session.n_arms)] if session.names is None else list(session.names)
    if session.dim == 1:  # the items are on the axis already
        axes.set_xticks(range(session.n_arms), names, rotation=0 if session.names is None else 90, fontsize="small")
        return
    axes.margins(0.1)  # names may reach beyond the outermost points
    for name, (x, y), (right, up) in zip(names, points, _away(points), strict=True):
        axes.annotate(
            name,
            (x, y),
            xytext=(3 if right else -3, 3 if up else -3),
            textcoords="offset points",
            ha="left" if right else "right",
            va="bottom" if up else "top",
            fontsize="x-small",
            color="#444444",
        )


def _away(points: FloatArray) -> list[tuple[bool, bool]]:
    """For each point, whether right and up lead away from the others, the nearest above all: names go apart."""
    scaled = points / np.maximum(np.ptp(points, axis=0), np.finfo(float).tiny)
    gaps = scaled[:, None, :] - scaled[None, :, :]
    push = (gaps / ((gaps**2).sum(axis=2, keepdims=True) ** 1.5 + 1e-9)).sum(axis=1)  # as charges would
    return [(bool(right >= 0.0), bool(up >= 0.0)) for right, up in push]


def letters(grouping: Grouping, *, ax: Any = None, column: str | None = None) -> Axes:
    """The items in the order of their means, each with its letters: items that share one are not proven to differ.

    Lines are the intervals of the items' means, where there are any and they are quick.

    Parameters
    ----------
    grouping : Grouping
        What `coterie.group` found.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.
    column : str, optional
        Which of several numbers is drawn; the first if left out.

    Returns
    -------
    Axes
        With a point for each item, coloured by its group if there are groups.

    Examples
    --------
    >>> import coterie
    >>> grouping = coterie.group({"A": [4.9, 5.1, 5.0], "B": [7.9, 8.1, 8.0]}, noise=0.2)
    >>> coterie.plot.letters(grouping).get_ylabel()
    'mean v0'
    """
    columns = grouping.columns
    if column is None:
        column = columns[0]
    if column not in columns:
        raise ValueError(f"column must be one of {', '.join(columns)}, got {short(column)}")
    axes = axes_for(ax)
    means, labels = grouping.means[:, columns.index(column)], grouping.labels
    order = np.argsort(means, kind="stable")
    groups = np.zeros(len(means), dtype=np.int64) if labels is None else labels
    for k in np.unique(groups).tolist():
        places = np.flatnonzero(groups[order] == k)
        axes.scatter(places, means[order][places], c=colour_of(k), marker=marker_of(k), zorder=3)
    tops = means  # where the letters stand
    if (proven := _intervals(grouping.intervals, grouping.analysis.checks.noise, means.size)) is not None:
        at, colours = columns.index(column), [colour_of(k) for k in groups[order]]
        low, high = _ends(proven.low[order, at]), _ends(proven.high[order, at])
        axes.vlines(np.arange(len(order)), low, high, colors=colours, **_THIN)
        tops = np.where(np.isfinite(proven.high[:, at]), proven.high[:, at], means)
    for place, item in enumerate(order.tolist()):
        if grouping.letters:
            axes.annotate(grouping.letters[item], (place, tops[item]), (0, 6), textcoords="offset points", ha="center")
    axes.margins(y=0.15)
    axes.set_xticks(range(len(order)), [grouping.names[item] for item in order], rotation=45, ha="right")
    axes.set_ylabel(f"mean {column}")
    return axes
