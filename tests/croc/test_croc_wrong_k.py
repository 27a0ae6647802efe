"""What CROC does when there are not K groups.

Every binomial test fails with probability at most ALARM if the true rate is exactly δ; seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import coterie
from coterie.methods.croc.run import CrocRun

pytestmark = pytest.mark.guarantee

ALARM = 1e-6


SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize("seed", range(8))
def test_more_groups_than_k_raise_the_alarm(seed: int) -> None:
    """Four groups, far apart, and K = 3: four arms, one of each, are known to differ, and it is said.

    An alarm needs about the evidence that a proof needs: groups this far apart show both at once, and it goes first.
    It does not hold the run: asking goes on, and if that should end with a proof for K, the alarm stands beside it.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(12) % 4)
    session = coterie.Session(12, 3, 2, 0.01, noise=1.0)
    found = None
    for _ in range(400):
        if session.done:
            break
        arm = session.ask()
        session.tell(arm, 12.0 * SQUARE[truth[arm]] + rng.standard_normal(2))
        now = session.evidence  # says something at every moment
        assert session.done or now.statistic < now.threshold
        assert found is None or session.alarm is not None  # never taken back
        found = session.alarm
        assert found is not None or not session.done
        assert found is None or sorted(truth[arm] for arm in found.arms) == [0, 1, 2, 3]
    assert found is not None
    assert found.probability == pytest.approx(0.002)
    assert coterie.Session.from_dict(session.to_dict()).alarm == found
    if session.done:
        assert session.certificate is not None
        assert session.certificate["alarm"] == {"arms": list(found.arms)}
        assert "the data refute K = 3" in repr(session)
    else:
        assert session.certificate is None


def test_proof_with_too_small_k_holds_in_part() -> None:
    """200 runs at δ = 0.1 with four groups and K = 3 that end with the alarm, or by the pairs from the start.

    Such a proof still shows that the representatives are of different groups, and that the whole true group of each is
    within its group of the result; it fails to with probability at most α·δ = 0.02. False alarm: at most ALARM.
    """
    false, ended, alarms = 0, 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = rng.permutation(np.arange(12) % 4)
        run = CrocRun(12, 3, 2, -math.log(0.1))
        run.play(400, 6.0 * SQUARE, truth, rng)
        alarms += run.alarm is not None
        if run.by_pairs:
            ended += 1
            labels, leads = run.labels, run.representative
            whole = all((labels[truth == truth[lead]] == labels[lead]).all() for lead in leads)
            false += not (whole and len(set(truth[leads])) == 3)
    assert min(ended, alarms) > 20
    assert false <= binom.isf(ALARM, ended, 0.02)


def test_alarm_is_silent_when_k_is_right() -> None:
    """300 runs at δ = 0.1: an alarm needs a settled pair of equal arms, which has probability at most α·δ = 0.02.

    False alarm of this test: at most ALARM.
    """
    alarms = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        truth = np.arange(8) % 2
        run = CrocRun(8, 2, 1, -math.log(0.1))
        while not run.done and run.t < 2000:
            run.play(10, np.array([[0.0], [1.0]]), truth, rng)
            if run.alarm is not None:
                alarms += 1
                break
    assert alarms <= binom.isf(ALARM, 300, 0.02)


@pytest.mark.parametrize(
    ("truth", "gap", "n_groups"), [([0] * 5, 0.0, 2), ([0, 0, 0, 1, 1, 1], 1.0, 3), ([0, 1, 0, 1, 1, 1], 8.0, 4)]
)
def test_fewer_groups_than_k_error_rate_within_delta(truth: list[int], gap: float, n_groups: int) -> None:
    """600 runs at δ = 0.3 with one or two groups and a larger K: any proof is wrong. False alarm: ALARM each."""
    proven = 0
    for seed in range(600):
        run = CrocRun(len(truth), n_groups, 1, -math.log(0.3))
        run.play(2000, np.array([[0.0], [gap]]), np.array(truth), np.random.default_rng(seed))
        proven += run.done
    assert proven <= binom.isf(ALARM, 600, 0.3)
