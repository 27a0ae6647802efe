"""Pictures of simulations and runs, with matplotlib (the extra `paper`).

Every function draws on the `Axes` it is given, or on those of a new figure of its own, and returns them.
`ax.figure.savefig("x.png")` works without a screen: matplotlib's global settings are never touched, and pyplot only in
a notebook, where the picture stands below the cell. `legend=False` leaves the legend out, for figures that share one.
"""

from __future__ import annotations

from coterie.plot.course import evidence, proportions, resolution
from coterie.plot.intervals import critical_difference, intervals
from coterie.plot.pulls import stopping_times
from coterie.plot.scatter import letters, means

__all__ = [
    "critical_difference",
    "evidence",
    "intervals",
    "letters",
    "means",
    "proportions",
    "resolution",
    "stopping_times",
]
