"""What the pictures share: axes to draw on, colours that the colour-blind tell apart, where the legend goes, and the
run of a session, told again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods import method_named
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.session import Result, Session
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


# A session told again from its own log, so that what it read at any time can be shown.
#
# There is no second implementation of any rule here: the session is made anew from its settings, and asked, told and
# told to forget what its history says, in the same order and with the same tickets.


@dataclass(frozen=True)
class Course:
    """`Session.evidence` at some times of a run. The threshold is infinite before every arm was measured."""

    times: IntArray
    statistics: FloatArray
    thresholds: FloatArray


def session_of(given: Any, asker: str, *, guess: bool) -> Session:
    """The session itself, or that of a result of `cluster`; with `guess`, it must have one already."""
    session = given.session if isinstance(given, Result) else given
    if not isinstance(session, Session):
        raise TypeError(f"{asker} needs a coterie.Session or the result of coterie.cluster, got {short(given)}")
    if session.t == 0:
        raise ValueError(f"{asker} needs measurements, this session has none that count yet: tell it some first")
    if guess and session.labels is None:
        unseen = np.flatnonzero(session.pulls == 0)
        raise ValueError(
            f"{asker} needs a guess of the groups, this session has none yet: "
            + (f"measure {unseen.size} arms at least once ({short(unseen.tolist())})" if unseen.size else "ask on")
        )
    return session


def counted(session: Session) -> tuple[IntArray, FloatArray]:
    """Arms (t) and values (t, d) of the measurements that counted, in the order in which they did."""
    if method_named(session.method).certifies:  # counts in ask order, so that some results told may still wait
        results = [event for event in session.events if event["event"] == "result"]
        rows = [(event["arm"], event["values"]) for event in results]
    else:
        rows = session.log[: session.t]
    arms = np.array([arm for arm, _ in rows], dtype=np.int64)
    return arms, np.array([value for _, value in rows], dtype=np.float64).reshape(len(rows), session.dim)


def freezes(session: Session) -> list[int]:
    """How many measurements had counted when CROC froze each of its candidates; empty for other methods."""
    times: list[int] = []
    t = 0
    for event in session.events if method_named(session.method).certifies else ():
        if event["event"] == "result":
            t += 1
        elif event["event"] == "freeze":
            times.append(t)
    return times


def course(session: Session, points: int) -> Course:
    """The evidence at about `points` times, spread evenly; the last is that of the session as it is now."""
    goals = np.unique(np.linspace(1, session.t, points).round().astype(np.int64))
    rows: list[tuple[int, float, float]] = []
    for again in _told_again(session, goals.tolist()):
        now = again.evidence
        rows.append((again.t, now.statistic, now.threshold))
    now = session.evidence
    if rows and rows[-1][0] == session.t:  # an ask, too, may end a run: what counts is what is known in the end
        rows.pop()
    rows.append((session.t, now.statistic, now.threshold))
    times, statistics, thresholds = zip(*rows, strict=True)
    return Course(np.array(times), np.array(statistics), np.array(thresholds))


def _do_again(session: Session, deed: str, number: Any) -> None:
    """Somebody looked, chose a resolution, or gave an ask up: results that waited for that one may count now."""
    if deed == "look":
        session.check()
    elif deed == "choose":
        session.choose_resolution(number)
    else:
        session.forget(number)


def _told_again(session: Session, goals: list[int]) -> Iterator[Session]:
    """The session from its first measurement on, handed out whenever its time has reached the next of the goals.

    Of one that other rules have decided only its end is known: nothing is handed out from where the present rules go
    another way.
    """
    saved, again = session.to_dict(), Session.of(session.first_settings)
    log, asks = saved["log"], iter(saved["asks"])
    left = deque(goals)

    def reached() -> bool:
        """Whether the next goal is; it is struck off, with all that were passed."""
        due = bool(left) and again.t >= left[0]
        while left and left[0] <= again.t:
            left.popleft()
        return due

    row = 0
    # Where results count as they are told, whatever was asked, the log is all the history.
    ordered = method_named(session.method).in_ask_order
    deeds: list[list[Any]] = saved["history"] if ordered else [["tell", len(log)]]
    for deed, number in deeds:
        if deed == "ask":
            opened = again.open(number, wanted=len(saved["asks"]))  # however far ahead it was: it was asked for
            if any(ticket.arm != next(asks)[0] for ticket in opened):
                return
        elif deed != "tell":
            _do_again(again, deed, number)
            if reached():
                yield again
        end = row + number if deed == "tell" else row
        while row < end and left:
            told = log[row : min(end, row + left[0] - again.t)]
            tickets = [entry["ticket"] for entry in told] if ordered else None
            again.tell([entry["arm"] for entry in told], [entry["values"] for entry in told], ticket=tickets)
            row += len(told)
            if reached():
                yield again
        if not left:
            return
