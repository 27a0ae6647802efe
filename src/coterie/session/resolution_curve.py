"""How many groups there are at every resolution: what a session has proven so far, for all radii at once.

It is what to look at before a resolution is chosen: where both numbers agree, and stay the same over a range of radii,
the items fall into so many groups by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.evidence.intervals.by_noise import has_distances
from coterie.evidence.pair_graphs import group_numbers
from coterie.problem.checks import FloatArray, IntArray, check_count, check_real, check_real_array, short
from coterie.problem.families import Model
from coterie.problem.question import NORMS
from coterie.problem.settings import Settings
from coterie.session.moment import Moment, check_size, distances_at, log_inverse_budget, moment_of
from coterie.session.session import Session


@dataclass(frozen=True, eq=False)
class ResolutionCurve:
    """For each radius r: how many groups there are at least, and how many are enough, both proven.

    Parameters
    ----------
    radius : array
        The radii, ascending from 0.
    least : array of int
        So many items are pairwise more than r apart; no two of them can be in a group whose items are all within r of
        each other.
    enough : array of int
        So many items can be named such that every item is within r of one of them.
    norm : {"each", "distance"}
        What a radius bounds: the largest difference in any number, or the Euclidean distance.
    scale : tuple of float
        The unit of a radius, for each number of a measurement.
    error : float
        All of it, at all radii and all moments together, is wrong with probability at most `error`.
    """

    radius: FloatArray
    least: IntArray
    enough: IntArray
    norm: str
    scale: tuple[float, ...]
    error: float

    def at(self, radius: float) -> tuple[int, int]:
        """(least, enough) for any radius r >= 0.

        Between two of the radii: at least as many as at the next one, and no more are needed than at the one before.
        """
        r = check_real(radius, "radius")
        if r < 0.0:
            raise ValueError(f"radius must not be negative, got {r!r}")
        after = int(np.searchsorted(self.radius, r, side="left"))
        before = int(np.searchsorted(self.radius, r, side="right")) - 1
        return int(self.least[after]) if after < self.radius.size else 1, int(self.enough[before])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "radius": self.radius.tolist(),
            "least": self.least.tolist(),
            "enough": self.enough.tolist(),
            "norm": self.norm,
            "scale": list(self.scale),
            "error": self.error,
        }


def resolution_curve(session: Any, norm: str | None = None, scale: Any = None, points: int = 200) -> ResolutionCurve:
    """The proven smallest and the proven sufficient number of groups of a session, for all radii at once.

    Parameters
    ----------
    session : Session or Result
        Whatever its question and however far it is, if some measurements count.
    norm : {"each", "distance"}, optional
        By default that of the session's resolution, otherwise "distance".
    scale : float or sequence of float, optional
        What a radius of 1 is, one number or one for each number of a measurement; by default η of the session's
        resolution where it differs between the numbers, otherwise 1, the unit of the measurements.
    points : int
        Radii at most.

    Returns
    -------
    ResolutionCurve

    Raises
    ------
    ValueError
        Without results, and under a noise that says nothing about how far apart items are.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(4, dim=1, resolution=(1.0, 4.0), noise=1.0)
    >>> session.tell([0, 1, 2, 3] * 20, [0.0, 9.0, 0.0, 9.0] * 20)
    >>> least, enough = coterie.resolution_curve(session).at(4.0)
    >>> enough
    2
    """
    session = getattr(session, "session", session)
    if not isinstance(session, Session):
        raise TypeError(f"resolution_curve needs a coterie.Session or the result of cluster, got {short(session)}")
    return curve_at(moment_of(session), norm, scale, points)


def curve_at(moment: Moment, norm: str | None = None, scale: Any = None, points: int = 200) -> ResolutionCurve:
    """The same of a moment of a session."""
    settings, asked = moment.settings, moment.settings.resolution
    check_size(settings.n_arms, "resolution_curve")
    count = check_count(points, "points", 2)
    norm = (asked.norm if asked is not None else "distance") if norm is None else norm
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {short(norm)}")
    unit = _scale(settings, scale)
    if moment.t == 0:
        raise ValueError("resolution_curve needs measurements, this session has none that count yet: tell it some")
    if not has_distances(settings.noise):
        raise ValueError(no_distances(settings.noise))
    level = log_inverse_budget(settings)
    bounds = distances_at(moment, norm, unit)
    lower, upper = bounds.at_least, bounds.at_most
    radii = _radii(lower, upper, count)
    least, enough = group_numbers(lower, upper, radii)
    return ResolutionCurve(radii, least, enough, norm, tuple(unit.tolist()), float(np.exp(-level)))


def no_distances(noise: Model) -> str:
    """Why there is no curve under this noise, and what to state instead."""
    return (
        f"how far apart items are cannot be proven under {noise.words}: a rare large value could hide a "
        "difference of any size. State bounds of the results (coterie.Bounded(lo, hi)), counts "
        '(coterie.Counts(trials)), Gaussian noise (noise="gaussian"), or a standard deviation'
    )


def _scale(settings: Settings, given: Any) -> FloatArray:
    dim = settings.dim
    if given is None:
        eta = None if settings.resolution is None else settings.resolution.eta(dim)
        return np.ones(dim) if eta is None or (eta == eta[0]).all() else eta
    value = check_real_array(given, "scale")
    if value.ndim > 1 or value.size not in (1, dim) or (value <= 0.0).any():
        raise ValueError(f"scale must be a positive number, or {dim} of them, got {short(given)}")
    return np.array(np.broadcast_to(value, dim))


def _radii(lower: FloatArray, upper: FloatArray, points: int) -> FloatArray:
    """Radii from 0 to where one group is enough: as far as that is known, all at which something can change."""
    off = ~np.eye(len(lower), dtype=bool)
    finite = upper[off & np.isfinite(upper)]
    top = 1.05 * float(finite.max()) if finite.size else max(1.0, 2.0 * float(lower.max(initial=0.0)))
    changes = np.unique(np.concatenate([lower[off], finite]))
    changes = changes[(changes > 0.0) & (changes < top)]
    if changes.size > points - 2:
        changes = np.unique(np.quantile(changes, np.linspace(0.0, 1.0, (points - 2) // 2)))
        even = np.linspace(0.0, top, points - changes.size)
        return np.unique(np.concatenate([even, changes]))
    return np.concatenate([[0.0], changes, [top]])
