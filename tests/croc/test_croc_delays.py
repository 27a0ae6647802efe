"""Delays that depend on the values: harmless when results count in ask order, not when they count as they arrive.

Every binomial test fails with probability at most ALARM if the true rate is at its bound; seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import coterie

pytestmark = pytest.mark.guarantee

ALARM = 1e-6
DELTA = 0.3


def wanted(arm: int, x: np.ndarray, truth: np.ndarray) -> float:
    """How much an adversary likes this result to be counted early: it pulls equal arms apart and groups together."""
    return float(x.sum()) * (1.0 if (arm + truth[arm]) % 2 else -1.0)


def delayed_run(seed: int) -> tuple[bool, bool]:
    """(done, wrong) of a session in which the results that mislead come at once, and the others when they must.

    An ask is answered after 30 later ones at the latest.
    """
    rng = np.random.default_rng(seed)
    n_arms, dim = int(rng.integers(5, 7)), int(rng.integers(1, 3))
    truth = rng.permutation(np.concatenate([[0, 1], rng.integers(0, 2, n_arms - 2)]))
    means = np.outer(truth * rng.uniform(0.4, 1.0), np.ones(dim) / math.sqrt(dim))
    session = coterie.Session(n_arms, 2, dim, DELTA, noise=1.0)
    under_way: list[tuple[int, int, np.ndarray]] = []
    asked = 0
    while not session.done and session.t < 1200:
        try:
            arm = session.ask()
        except coterie.SessionDone:  # what came since the last plan was enough
            break
        under_way.append((asked, arm, means[arm] + rng.standard_normal(dim)))
        asked += 1
        if len(under_way) > 15:
            overdue = asked - under_way[0][0] > 30
            best = 0 if overdue else max(range(16), key=lambda i: wanted(under_way[i][1], under_way[i][2], truth))
            ticket, arm, x = under_way.pop(best)
            session.tell(arm, x, ticket)
    return session.done, session.done and not coterie.same_partition(session.labels, truth)


def test_value_dependent_delays_error_rate_within_delta() -> None:
    """160 runs at δ = 0.3, counted by ask order. False alarm: at most ALARM."""
    done, wrong = np.sum([delayed_run(seed) for seed in range(160)], axis=0)
    assert wrong <= binom.isf(ALARM, 160, DELTA)
    assert done > 80  # or it would say nothing


# The same on a pair of equal arms, where every crossing is an error.

A = 0.1
WINDOW = 12


def pair_crosses(seed: int, dim: int, by_arrival: bool) -> bool:
    """Whether the evidence of two equal arms ever reaches log(1/a) when the results that pull them apart come first.

    Of each arm, WINDOW asks are always under way; the largest of these values arrives for one, the smallest for the
    other, but first an ask that 3·WINDOW later ones have overtaken.
    """
    rng = np.random.default_rng(seed)
    counted = []
    for sign in (1.0, -1.0):
        values = rng.standard_normal((64 + 4 * WINDOW, dim))
        liked = sign * values.sum(axis=1)
        order: list[int] = []
        heights = [0]  # of the gap-free beginning of what has arrived
        under_way = list(range(WINDOW))
        for fresh in range(WINDOW, len(values)):
            overdue = fresh - under_way[0] > 3 * WINDOW
            number = under_way[0] if overdue else max(under_way, key=liked.__getitem__)
            order.append(number)
            under_way.remove(number)
            under_way.append(fresh)
            heights.append(under_way[0])
        counted.append([values[order[:n]] if by_arrival else values[: heights[n]] for n in range(len(heights))])
    level = math.log(1 / A)
    return any(coterie.pair_evidence(x, y, grid_from=64) >= level for x, y in zip(*counted, strict=True))


@pytest.mark.parametrize("dim", [1, 3])
def test_pair_counted_in_ask_order_error_rate_within_a(dim: int) -> None:
    """200 pairs. False alarm: at most ALARM."""
    crossed = sum(pair_crosses(seed, dim, by_arrival=False) for seed in range(200))
    assert crossed <= binom.isf(ALARM, 200, A)


@pytest.mark.parametrize("dim", [1, 3])
def test_pair_counted_by_arrival_breaks_the_guarantee(dim: int) -> None:
    """200 pairs. If the rate were at most a, so many crossings would have a probability of at most ALARM."""
    crossed = sum(pair_crosses(seed, dim, by_arrival=True) for seed in range(200))
    assert crossed > binom.isf(ALARM, 200, A)
