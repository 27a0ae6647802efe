"""Whole sessions whose data are made in a way that they should not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import coterie

Draw = Callable[[np.random.Generator], Any]


def converse(
    seed: int,
    *,
    n_arms: int = 12,
    n_clusters: int = 3,
    gap: float = 2.0,
    results: int = 300,
    workers: int = 1,
    noise: float = 1.0,
    draw: Draw = lambda rng: rng.standard_normal(2),
    drift: float = 0.0,
    fails: Callable[[np.random.Generator, Any], bool] = lambda rng, x: False,
    delay: Callable[[np.random.Generator, Any], float] = lambda rng, away: rng.exponential(),
    method: str = "croc",
) -> coterie.Session:
    """Ask and tell until the groups are found or so many results were told or given up.

    `draw` is the noise of a result (two numbers), `noise` what is stated; `drift` is added to a result for every one
    before it; `fails(rng, x)` says whether it is thrown away, `delay(rng, x − mean)` how long it takes.
    """
    rng = np.random.default_rng(seed)
    centers = np.zeros((n_clusters, 2))
    centers[:, 0] = gap * np.arange(n_clusters)
    session = coterie.Session(n_arms, n_clusters, 2, noise=noise, method=method)
    under_way: list[tuple[float, Any, Any]] = []
    now = 0.0
    for told in range(results):
        while len(under_way) < workers and not session.done:
            for ticket in session.open(1):
                away = draw(rng)
                x = centers[ticket.arm % n_clusters] + away + drift * told
                under_way.append((now + delay(rng, away), ticket, x))
        if not under_way or session.done:
            break
        under_way.sort(key=lambda one: one[0])
        now, ticket, x = under_way.pop(0)
        if fails(rng, x):
            session.forget(ticket.number)
        else:
            session.tell(ticket.arm, x, ticket=ticket.number)
    return session


def kinds(session: coterie.Session) -> set[str]:
    """What its alarms are about."""
    return {alarm.kind for alarm in session.alarms}
