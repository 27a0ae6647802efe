"""Pictures of simulations and runs, with matplotlib (the extra `paper`).

Every function draws on the `Axes` it is given, or on those of a new figure of its own, and returns them. pyplot and
matplotlib's global settings are never touched: `ax.figure.savefig("x.png")` works without a screen, and in a notebook
`ax.figure` shows the picture. `legend=False` leaves the legend out, for figures that share one.
"""

from __future__ import annotations

from coterie.plot.course import evidence, proportions
from coterie.plot.pulls import stopping_times
from coterie.plot.scatter import means

__all__ = ["evidence", "means", "proportions", "stopping_times"]
