"""Every run ends (docs/CROC.md, section 14): from bad starts, through alarms, with any sampling that goes on."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from coterie.methods.croc.run import CrocRun


def ends_from(session: coterie.Session, means: np.ndarray, rng: np.random.Generator, cap: int) -> bool:
    while not session.done and session.t < cap:
        arm = session.ask()
        session.tell(arm, means[arm] + rng.standard_normal(means.shape[1]))
    return session.done


def bad_start(session: coterie.Session, means: np.ndarray, how: str, rng: np.random.Generator) -> None:
    """First results that mislead: of another group, all alike, or far off."""
    n_arms, dim = means.shape
    for turn in range(6):
        for arm in range(n_arms):
            x = rng.standard_normal((dim,))
            if how == "another group":
                x += means[(arm + 1) % n_arms]
            elif how == "all alike":
                x = np.zeros(dim)
            elif how == "one outlier":
                x += means[arm] + (40.0 if arm == turn == 0 else 0.0)
            elif how == "a large group cut":
                x += means[arm] + 1.5 * (-1.0) ** arm
            session.tell(arm, x)


@pytest.mark.parametrize("how", ["another group", "all alike", "one outlier", "a large group cut"])
@pytest.mark.parametrize("sizes", [(3, 3), (8, 1, 1), (4, 3, 2, 1)])
def test_runs_end_from_bad_starts(how: str, sizes: tuple[int, ...]) -> None:
    """What was told first contradicts the model: settled pairs may be wrong for good, and an alarm may be raised."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        means = np.repeat(1.5 * np.arange(len(sizes)), sizes)[:, None] * np.ones(2)
        session = coterie.Session(sum(sizes), len(sizes), 2, 0.05, noise=1.0)
        bad_start(session, means, how, rng)
        assert ends_from(session, means, rng, 20_000)


def test_a_false_alarm_does_not_hold_the_run() -> None:
    """K is right, but the first results of one arm were those of no group: K + 1 arms are known to differ."""
    alarms = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        means = np.array([0.0, 0.0, 0.0, 60.0, 60.0, 60.0])[:, None]
        session = coterie.Session(6, 2, 1, 0.05, noise=1.0)
        for arm in range(6):
            session.tell(arm, (30.0 if arm == 2 else means[arm]) + rng.standard_normal(1))
        alarms += session.alarm is not None
        assert not session.done
        assert ends_from(session, means, rng, 20_000)
        assert coterie.same_partition(session.labels, [0, 0, 0, 1, 1, 1])
        problems = coterie.verify(session.certificate, session.events).problems
        assert any("refutes K" in problem for problem in problems)
    assert alarms == 10


@pytest.mark.parametrize("steps", [2000, 8000])
def test_every_arm_keeps_its_share(steps: int) -> None:
    """N_m ≥ t/(60M), in rounds that are about few arms too: a level that is never reached."""
    centers, truth = np.array([[0.0], [0.4], [60.0]]), np.array([0] * 5 + [1] * 5 + [2] * 20)
    run = CrocRun(30, 3, 1, 1e7)
    run.play(steps, centers, truth, np.random.default_rng(1))
    assert run.t == steps
    assert run.round > 0
    assert run.pulls.min() >= steps / (60 * 30)


@pytest.mark.parametrize("shape", [(4, 2, 1, 1.0), (8, 3, 2, 1.3), (12, 2, 3, 1.0), (6, 5, 1, 2.0)])
def test_results_told_in_turn_are_enough(shape: tuple[int, int, int, float]) -> None:
    """Foreign sampling: within 1.5 times what Uniform with its proven threshold takes on the same results."""
    n_arms, n_groups, dim, gap = shape
    mine, its = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        centers = gap * np.arange(n_groups)[:, None] * np.eye(1, dim)
        truth = np.arange(n_arms) % n_groups
        croc = coterie.Session(n_arms, n_groups, dim, 0.05, noise=1.0)
        uniform = coterie.Session(n_arms, n_groups, dim, 0.05, method="uniform", noise=1.0)
        for i in range(20_000):
            x = centers[truth[i % n_arms]] + rng.standard_normal(dim)
            for session in (croc, uniform):
                if not session.done:
                    session.tell(i % n_arms, x)
            if croc.done and uniform.done:
                break
        assert croc.done
        assert uniform.done
        assert coterie.verify(croc.certificate, croc.events).problems == []
        mine.append(croc.t)
        its.append(uniform.t)
    assert np.mean(mine) <= 1.5 * np.mean(its)
