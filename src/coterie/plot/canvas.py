"""What the pictures share: axes to draw on, colours that the colour-blind tell apart, and where the legend goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coterie.problem.checks import short
from coterie.session.progress import in_notebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#777777")
"""Okabe and Ito's, without the yellow and the black: the one is lost on white, the other is for references."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
"""One more than colours: group 7 has the first colour again, and another marker."""

SIZE = (6.8, 3.8)
"""Inches: the width of a printed page's text, so that the letters need not be scaled."""

_ROWS = 14
"""Legend entries that fit beside the axes of a figure of our own."""


def check_matplotlib(asker: str = "coterie.plot") -> None:
    """Say which extra to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(f'{asker} needs matplotlib: pip install "coterie[paper]"', name="matplotlib") from None


def axes_for(ax: Any) -> Axes:
    """The axes given, checked; or those of a new figure: in a notebook one of pyplot, which is shown there."""
    check_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        axes: Axes = _new_figure().add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#E4E4E4", linewidth=0.6)
        axes.set_axisbelow(True)
        return axes
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {short(ax)}")
    return ax


def _new_figure() -> Any:
    if in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(figsize=SIZE, layout="constrained")
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained")


def colour_of(k: int) -> str:
    """The colour of the k-th curve or group."""
    return COLOURS[k % len(COLOURS)]


def marker_of(k: int) -> str:
    """The marker of the k-th curve or group."""
    return MARKERS[k % len(MARKERS)]


def add_legend(ax: Axes, wanted: bool) -> None:
    """Beside the axes, where it covers nothing; inside where no layout would make room for it."""
    if not wanted:
        return
    from matplotlib.collections import PathCollection
    from matplotlib.container import Container

    entries = list(zip(*ax.get_legend_handles_labels(), strict=True))
    # matplotlib lists lines before error bars: references (lines) go below what was measured.
    entries.sort(key=lambda entry: not isinstance(entry[0], Container))
    handles, labels = [handle for handle, _ in entries], [label for _, label in entries]
    columns = -(-len(labels) // _ROWS)
    if ax.figure.get_layout_engine() is None:
        box = ax.legend(handles, labels, loc="best", fontsize="small", ncols=columns)
    else:
        box = ax.legend(
            handles,
            labels,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            frameon=False,
            fontsize="small",
            ncols=columns,
        )
    for handle in box.legend_handles:
        if isinstance(handle, PathCollection):  # else its area is that of some arm
            handle.set_sizes([28.0])
