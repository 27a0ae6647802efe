"""One run: shares of the pulls against λ*, evidence against its threshold, groups at every resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.evidence.allocation import allocation
from coterie.methods import method_named
from coterie.plot.canvas import Course, add_legend, axes_for, colour_of, counted, course, freezes, session_of
from coterie.problem.checks import FloatArray, IntArray, check_arm, check_count, short
from coterie.problem.instance import Instance
from coterie.session import Result, Session
from coterie.session.resolution_curve import resolution_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW_ARMS = 6
"""Up to so many arms each has a curve of its own; else each true cluster has one."""

MOST_TIMES = 2000
"""Times at which shares are drawn: more than a picture can show."""

HEADROOM = 1.3
"""How far above its threshold the statistic is shown: at the stop it may jump far beyond."""


def proportions(
    run: Session | Result | Sequence[int] | IntArray,
    instance: Instance,
    *,
    ax: Any = None,
    by: str | None = None,
    legend: bool = True,
) -> Axes:
    """The share of the pulls that each true cluster has had over time, and λ* (dashed).

    Parameters
    ----------
    run : Session, Result or sequence of int
        A session, a result of `cluster`, or the arms in the order in which they were pulled.
    instance : Instance
        The truth. λ* is that of unit noise, or of the session's noise.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.
    by : {"cluster", "arm"}, optional
        By default arms if there are at most six.
    legend : bool
        Whether there is one.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> import coterie
    >>> result = coterie.cluster(lambda item: 5.0 * (item > 2), 6, 2, noise=1.0, progress=False)
    >>> truth = coterie.Instance([0, 0, 0, 1, 1, 1], [[0.0], [5.0]])
    >>> coterie.plot.proportions(result, truth).get_ylabel()
    'share of the measurements'
    """
    if not isinstance(instance, Instance):
        raise TypeError(f"proportions needs the true coterie.Instance, got {short(instance)}")
    arms, best = _pulled(run, instance)
    if by not in (None, "cluster", "arm"):
        raise ValueError(f"by must be 'cluster', 'arm' or None, got {short(by)}")
    each_arm = by == "arm" or (by is None and instance.n_arms <= FEW_ARMS)
    if each_arm:
        group, names = np.arange(instance.n_arms), [f"arm {m}" for m in range(instance.n_arms)]
    else:
        group = instance.labels
        names = [f"cluster {k}: {_arms(int(size))}" for k, size in enumerate(instance.sizes)]
    goals = np.bincount(group, weights=best)
    times = np.unique(np.linspace(1, arms.size, MOST_TIMES).round().astype(np.int64))

    axes = axes_for(ax)
    top = float(goals.max())
    for k, name in enumerate(names):
        share = np.cumsum(group[arms] == k)[times - 1] / times
        axes.plot(times, share, color=colour_of(k), linewidth=1.4, label=name)
        top = max(top, float(share[times >= min(arms.size, instance.n_arms)].max()))
    for k, goal in enumerate(goals):
        # Goals that fall together are drawn as dashes that alternate, so that every colour is seen.
        same = np.flatnonzero(np.abs(goals - goal) < 0.01)
        dashes = (4.0 * int(np.argmax(same == k)), (4.0, 4.0 * max(1, same.size - 1)))
        axes.axhline(goal, color=colour_of(k), linewidth=1.2, linestyle=dashes)
    axes.plot([], [], color="#444444", linewidth=1.2, linestyle=(0, (4, 4)), label=r"$\lambda^*$, the best share")
    axes.set(xlabel="measurements $t$", ylabel="share of the measurements")
    axes.set_ylim(-0.03 * top, 1.1 * top)  # before every arm was measured once, shares say nothing
    add_legend(axes, legend)
    return axes


def _arms(count: int) -> str:
    return "1 arm" if count == 1 else f"{count} arms"


def _pulled(run: Any, instance: Instance) -> tuple[IntArray, FloatArray]:
    """The arms pulled, in order, and λ* of each arm."""
    if not isinstance(run, Session | Result):
        if isinstance(run, str | Mapping) or not isinstance(run, Sequence | np.ndarray):
            raise TypeError(f"proportions needs a session or the arms in the order of their pulls, got {short(run)}")
        arms = np.array([check_arm(arm, instance.n_arms) for arm in run], dtype=np.int64)
        if arms.size == 0:
            raise ValueError("proportions needs at least one pull, got none")
        return arms, allocation(instance)
    session = session_of(run, "proportions", guess=False)
    if (session.n_arms, session.dim) != (instance.n_arms, instance.dim):
        raise ValueError(
            f"the instance has {instance.n_arms} arms and dimension {instance.dim}, "
            f"the session {session.n_arms} and {session.dim}"
        )
    white = Instance(instance.labels, session.noise.whiten(instance.centers))
    return counted(session)[0], allocation(white)


def evidence(
    run: Session | Result | Mapping[str, Session | Result],
    *,
    ax: Any = None,
    points: int = 200,
    legend: bool = True,
) -> Axes:
    """What the stopping rule read over a run: `Session.evidence`, its statistic and its threshold.

    The session's own log is replayed. CROC's freezes are marked, and so is the stop.

    Parameters
    ----------
    run : Session, Result or mapping
        Label → session draws several sessions, each statistic as a share of its threshold.
    points : int
        It is read at about so many times; with at least `t` of them, after every measurement.
    ax, legend
        As in `coterie.plot.proportions`.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> import coterie
    >>> run = coterie.cluster(lambda item: 5.0 * (item % 2), 4, 2, noise=1.0, progress=False)
    >>> coterie.plot.evidence(run).get_xlabel()
    'measurements $t$'
    """
    count = check_count(points, "points", 2)
    if isinstance(run, Mapping):
        if not run:
            raise ValueError("evidence needs at least one session, got none")
        sessions = {str(label): session_of(given, "evidence", guess=True) for label, given in run.items()}
        axes = axes_for(ax)
        _draw_shares(axes, sessions, count)
    else:
        session = session_of(run, "evidence", guess=True)
        axes = axes_for(ax)
        _draw_evidence(axes, session, course(session, count))
    add_legend(axes, legend)
    return axes


def _draw_evidence(axes: Axes, session: Session, readings: Course) -> None:
    certifies = method_named(session.method).certifies
    if certifies:
        name, limit = "evidence of the\nweakest test", "level that it must reach"
    else:
        name = "evidence $Z(t)$"
        limit = (
            r"threshold $\beta(\delta, t)$" if session.threshold == "proven" else r"threshold $\tilde\beta(\delta, t)$"
        )
    set_at = np.isfinite(readings.thresholds)  # there is none before every arm was measured
    axes.plot(
        readings.times, readings.statistics, color=colour_of(0), linewidth=1.4, drawstyle="steps-post", label=name
    )
    axes.plot(
        readings.times[set_at],
        readings.thresholds[set_at],
        color=colour_of(3),
        linestyle="--",
        drawstyle="steps-post",
        label=limit,
    )
    for i, t in enumerate(freezes(session)):
        axes.axvline(t, color="#777777", linewidth=0.9, linestyle="-.", label="_" if i else "candidate frozen")
    if session.done:
        axes.axvline(session.t, color="black", linewidth=0.9, linestyle=":", label=f"stop at $t$ = {session.t}")
    top = HEADROOM * float(readings.thresholds[set_at].max())
    axes.set(xlabel="measurements $t$", ylabel=f"evidence (nats), $\\delta$ = {session.delta:g}", ylim=(0.0, top))


def _draw_shares(axes: Axes, sessions: dict[str, Session], points: int) -> None:
    for k, (label, session) in enumerate(sessions.items()):
        readings = course(session, points)
        colour = colour_of(k)
        share = readings.statistics / readings.thresholds
        axes.plot(readings.times, share, color=colour, linewidth=1.4, drawstyle="steps-post", label=label)
        if session.done:
            axes.axvline(session.t, color=colour, linewidth=0.9, linestyle=":")
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle="--")
    axes.set(
        xlabel="measurements $t$",
        ylabel="evidence, as a share of the threshold",
        ylim=(-0.02 * HEADROOM, HEADROOM),
    )


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
    If the session has a resolution, its ε and η are marked where they are one number each.

    Parameters
    ----------
    run : Session or Result
        The run.
    norm, scale, points
        As in `coterie.resolution_curve`.
    ax, legend
        As in `coterie.plot.proportions`.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> import coterie
    >>> result = coterie.cluster(lambda item: 5.0 * (item > 2), 6, 2, noise=1.0, progress=False)
    >>> coterie.plot.resolution(result).get_ylabel()
    'number of groups'
    """
    session = session_of(run, "resolution", guess=False)
    curve = resolution_curve(session, norm, scale, points)
    axes = axes_for(ax)
    # Between two radii: at least as many as at the next one, and as many are enough as at the one before.
    least, enough = curve.least[1:], curve.enough[:-1]
    places = np.repeat(curve.radius, 2)[1:-1]
    low, high = np.repeat(least, 2), np.repeat(enough, 2)
    axes.fill_between(places, low, np.maximum(low, high), color="#E4E4E4", label="not known yet")
    axes.plot(places, high, color=colour_of(3), linewidth=1.4, label="enough: balls of radius $r$")
    axes.plot(places, low, color=colour_of(0), linewidth=1.4, label="at least: items\n$r$ apart")
    for i, (start, end) in enumerate(_plateaus(least, enough)):
        axes.plot(
            [curve.radius[start], curve.radius[end + 1]], [least[start]] * 2, color="black", linewidth=3.0,
            solid_capstyle="butt", label="_" if i else "proven number",
        )  # fmt: skip
    asked = session.resolution
    if asked is not None and len(set(asked.alike)) == len(set(asked.apart)) == 1 and scale is None:
        for value, style, name in ((asked.alike[0], ":", "ε"), (asked.apart[0], "--", "η")):
            axes.axvline(value, color="#777777", linewidth=0.9, linestyle=style, label=f"{name} = {value:g}")
    axes.set_yscale("log")
    top = int(curve.enough.max())
    ticks = [tick for tick in (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 3000) if tick <= top]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    unit = "" if set(curve.scale) == {1.0} else " (in units of the scale)"
    kind = "distance" if curve.norm == "distance" or len(curve.scale) == 1 else "largest difference"
    axes.set(xlabel=f"radius $r$, {kind}{unit}", ylabel="number of groups", ylim=(0.9, 1.15 * top))
    axes.set_xlim(0.0, float(curve.radius[-1]))
    add_legend(axes, legend)
    return axes


def _plateaus(least: Any, enough: Any) -> list[tuple[int, int]]:
    """First and last intervals of the runs in which both numbers agree on one number."""
    same = np.asarray(least == enough)
    plateaus: list[tuple[int, int]] = []
    for i in np.flatnonzero(same).tolist():
        if plateaus and plateaus[-1][1] == i - 1 and least[i] == least[i - 1]:
            plateaus[-1] = (plateaus[-1][0], i)
        else:
            plateaus.append((i, i))
    return plateaus
