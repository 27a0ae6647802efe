"""The means of a table's items with their letters, as people print them beside Tukey's test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.plot.canvas import axes_for, colour_of, marker_of
from coterie.problem.checks import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from coterie.tables.grouping import Grouping


def letters(grouping: Grouping, *, ax: Any = None, column: str | None = None) -> Axes:
    """The items in the order of their means, each with its letters: items that share one are not proven to differ.

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
    for place, item in enumerate(order.tolist()):
        if grouping.letters:
            axes.annotate(grouping.letters[item], (place, means[item]), (0, 6), textcoords="offset points", ha="center")
    axes.margins(y=0.15)
    axes.set_xticks(range(len(order)), [grouping.names[item] for item in order], rotation=45, ha="right")
    axes.set_ylabel(f"mean {column}")
    return axes
