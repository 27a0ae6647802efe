"""CROC's guarantee on hard instances of every shape, with one worker and with several.

P(the groups are called proven and are wrong) ≤ δ for every run, so the number of wrong runs is at most that of a
binomial distribution. Every test fails with probability at most 1e-6 if the true rate is exactly δ (it is lower);
there are 9 of them, so a false alarm in the whole file has probability at most 1e-5. Seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most

import coterie
from bench.crew import Crew, new_session
from bench.families import grouped, on_a_line, random_instance

pytestmark = pytest.mark.guarantee

DELTAS = (0.3, 0.1, 0.05)
FIRST_SEED = 910_000
MOST = 30_000
"""Measurements; a run that is not done by then is no error, but must be rare."""

SMALL: dict[str, coterie.Instance] = {
    "two and two": grouped((2, 2), on_a_line((0.0, 0.5), 1)),
    "one beside a large group": grouped((7, 1), on_a_line((0.0, 1.0), 1)),
    "a close pair beside a large group": grouped((6, 1, 1), on_a_line((0.0, 6.0, 7.0), 1)),
    "two close pairs": grouped((4, 1, 1, 1, 1), on_a_line((0.0, 6.0, 7.0, 13.0, 14.0), 2)),
    "a chain": grouped((2, 2, 2, 2), on_a_line((0.0, 1.0, 2.0, 3.0), 2)),
    "all but one alone": grouped((2, 1, 1, 1), on_a_line((0.0, 1.0, 2.0, 3.0), 3)),
    "halving": grouped((4, 2, 1), on_a_line((0.0, 0.8, 1.6), 1)),
    "far apart, and two close": grouped((3, 3, 2), on_a_line((0.0, 0.8, 500.0), 5)),
}
"""Cheap, and so hard that the guess is often wrong when something is first tested."""


def instances(count: int) -> Iterator[coterie.Instance]:
    """Small hard ones at random: M 4 … 9, d 1 … 4, smallest gap 0.5 … 1.5, sizes of every kind."""
    for i in range(count):
        rng = np.random.default_rng(FIRST_SEED + i)
        yield random_instance(rng, arms=(4, 9), dims=(1, 4), gaps=(0.5, 1.5)).instance


@pytest.mark.parametrize("delta", DELTAS)
def test_families_error_rate_within_delta(delta: float) -> None:
    """800 runs on 8 families, then 800 on 200 random instances; 4 800 in all. False alarm: 1e-6 each."""
    wrong, unfinished, runs = 0, 0, 0
    for trials, chosen in ((100, list(SMALL.values())), (4, list(instances(200)))):
        for i, instance in enumerate(chosen):
            found = coterie.simulate(
                instance, "croc", deltas=(delta,), trials=trials, seed=FIRST_SEED + i, max_pulls=MOST, progress=False
            )
            wrong += int(found.errors()[0])
            unfinished += int((found.stopping_times < 0).sum())
            runs += trials
    assert runs == 1600
    assert_rate_at_most(delta, wrong, runs, Guarantee("known", case="families and random instances"))
    assert unfinished <= 0.01 * runs


def with_workers(instance: coterie.Instance, delta: float, workers: int, seed: int) -> tuple[int, int]:
    """(done, done and wrong) of a session whose answers come in any order, some never, and some without an ask."""
    session = new_session(instance, delta)
    Crew(session, instance, [FIRST_SEED, seed]).always_busy(workers, 4_000, forgotten=0.03, unasked=0.05)
    return int(session.done), int(session.done and not coterie.same_partition(session.labels, instance.labels))


@pytest.mark.parametrize("workers", [3, 8])
@pytest.mark.parametrize("delta", DELTAS)
def test_several_workers_error_rate_within_delta(delta: float, workers: int) -> None:
    """160 runs, half on families and half on random instances; 960 in all. False alarm: 1e-6 each."""
    chosen = [*list(SMALL.values()) * 10, *instances(80)]
    ends = [with_workers(instance, delta, workers, seed) for seed, instance in enumerate(chosen)]
    done, wrong = np.sum(ends, axis=0)
    assert_rate_at_most(delta, int(wrong), len(chosen), Guarantee("known", case=f"{workers} workers, answers lost"))
    assert done > 0.9 * len(chosen)  # or it would say nothing
