"""How many groups there are at every resolution: the plateau plot of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.plot.canvas import add_legend, axes_for, colour_of
from coterie.plot.replay import session_of
from coterie.session import Result, Session
from coterie.session.resolution_curve import resolution_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def resolution(
    run: Session | Result,
    *,
    ax: Any = None,
    norm: str | None = None,
    scale: Any = None,
    points: int = 200,
    legend: bool = True,
) -> Axes:
    """The proven smallest and the proven sufficient number of groups, against the radius r.

    Where the sufficient number is larger, the rest is not known yet. A *plateau*, where both agree over a range of
    radii, is a number of groups that the items have by themselves: choose `alike` and `apart` of a resolution there.
    (At large radii the sufficient number can be smaller: within r of one item, items may be up to 2r from each other.)
    If the session has a resolution, its ε and η are marked where they are one number each. `norm`, `scale`, `points` as
    in `coterie.resolution_curve`.
    """
    session = session_of(run, "resolution", guess=False)
    found = resolution_curve(session, norm, scale, points)
    axes = axes_for(ax)
    # Between two radii: at least as many as at the next one, and as many are enough as at the one before.
    least, enough = found.least[1:], found.enough[:-1]
    places = np.repeat(found.radius, 2)[1:-1]
    low, high = np.repeat(least, 2), np.repeat(enough, 2)
    axes.fill_between(places, low, np.maximum(low, high), color="#E4E4E4", label="not known yet")
    axes.plot(places, high, color=colour_of(3), linewidth=1.4, label="enough: balls of radius $r$")
    axes.plot(places, low, color=colour_of(0), linewidth=1.4, label="at least: items\n$r$ apart")
    for i, (start, end) in enumerate(_plateaus(least, enough)):
        axes.plot(
            [found.radius[start], found.radius[end + 1]], [least[start]] * 2, color="black", linewidth=3.0,
            solid_capstyle="butt", label="_" if i else "proven number",
        )  # fmt: skip
    asked = session.resolution
    if asked is not None and len(set(asked.alike)) == len(set(asked.apart)) == 1 and scale is None:
        for value, style, name in ((asked.alike[0], ":", "ε"), (asked.apart[0], "--", "η")):
            axes.axvline(value, color="#777777", linewidth=0.9, linestyle=style, label=f"{name} = {value:g}")
    axes.set_yscale("log")
    top = int(found.enough.max())
    ticks = [tick for tick in (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 3000) if tick <= top]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    unit = "" if set(found.scale) == {1.0} else " (in units of the scale)"
    kind = "distance" if found.norm == "distance" or len(found.scale) == 1 else "largest difference"
    axes.set(xlabel=f"radius $r$, {kind}{unit}", ylabel="number of groups", ylim=(0.9, 1.15 * top))
    axes.set_xlim(0.0, float(found.radius[-1]))
    add_legend(axes, legend)
    return axes


def _plateaus(least: Any, enough: Any) -> list[tuple[int, int]]:
    """First and last intervals of the runs in which both numbers agree on one number."""
    same = np.asarray(least == enough)
    found: list[tuple[int, int]] = []
    for i in np.flatnonzero(same).tolist():
        if found and found[-1][1] == i - 1 and least[i] == least[i - 1]:
            found[-1] = (found[-1][0], i)
        else:
            found.append((i, i))
    return found
