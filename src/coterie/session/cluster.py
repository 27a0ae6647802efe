"""`cluster`: a session run to its end with a function that measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_count, check_real_array, short
from coterie.problem.instance import Instance
from coterie.session.conversation import Session


@dataclass(frozen=True)
class Result:
    """What `cluster` found. If the budget ended first, `done` is False and labels and centers are a guess."""

    labels: IntArray | None
    centers: FloatArray | None
    pulls: IntArray
    t: int
    done: bool
    session: Session


def cluster(
    measure: Callable[[int], Any],
    n_arms: int,
    n_clusters: int,
    delta: float = 0.05,
    method: str = "croc",
    budget: int | None = None,
    progress: bool = True,
    threshold: str = "proven",
    noise: Any = None,
    distance_ratio: float | None = None,
    instance: Instance | None = None,
    names: Sequence[str] | None = None,
) -> Result:
    """Call `measure(arm)` until the groups are proven (error probability at most delta) or the budget ends.

    The dimension is that of the first measurement. `progress`: a line on the terminal says how far it is.
    """
    if not callable(measure):
        raise TypeError(f"measure must be a function of the arm, got {short(measure)}")
    limit = None if budget is None else check_count(budget, "budget", 1)
    # A measurement costs: all settings that do not hang on the dimension are checked before the first one.
    dim = instance.dim if isinstance(instance, Instance) else 1
    Session(n_arms, n_clusters, dim, delta, method, threshold, None, distance_ratio, instance, names)
    x = np.atleast_1d(check_real_array(measure(0), "a measurement"))
    session = Session(n_arms, n_clusters, x.size, delta, method, threshold, noise, distance_ratio, instance, names)
    session.tell(session.ask(), x)
    with _Progress(progress) as show:
        while not session.done and (limit is None or session.t < limit):
            arm = session.ask()
            session.tell(arm, measure(arm))
            show(session)
    return Result(session.labels, session.centers, session.pulls, session.t, session.done, session)


class _Progress:
    """A line on the terminal that follows a session; silent where there is no terminal."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._status: Any = None
        self._next = 0

    def __enter__(self) -> _Progress:
        if self._wanted:
            from rich.console import Console

            console = Console(stderr=True)
            if console.is_terminal:
                self._status = console.status("measuring …")
                self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, session: Session) -> None:
        if self._status is None or session.t < self._next:
            return
        self._next = session.t + max(1, session.t // 100)
        now = session.evidence
        self._status.update(f"{session.t} measurements, evidence {now.statistic:.1f} of {now.threshold:.1f}")
