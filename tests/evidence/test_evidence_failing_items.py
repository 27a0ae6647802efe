"""Evidence that an item fails more often than others: against a plain oracle, its false alarms, its power."""

from __future__ import annotations

import math

import numpy as np
import pytest

from coterie.evidence.faults import STRENGTHS, item_evidence


def plain(failed: list[bool], arms: list[int]) -> float:
    """Ask by ask, as the module's docstring says it."""
    wealth = [0.0] * len(STRENGTHS)
    k = n = 0
    own: dict[int, tuple[int, int]] = {}
    best = 0.0
    for i, (fails, arm) in enumerate(zip(failed, arms, strict=True)):
        if i and failed[i - 1]:
            continue
        its_k, its_n = own.get(arm, (0, 0))
        rate = (k + 0.5) / (n + 1)
        for j, strength in enumerate(STRENGTHS.tolist()):
            p = (its_k + strength * rate) / (its_n + strength)
            wealth[j] += math.log(p if fails else 1.0 - p)
        k, n = k + fails, n + 1
        own[arm] = (its_k + fails, its_n + 1)
        largest = sum(count * math.log(count / n) for count in (k, n - k) if count)
        if k:
            best = max(best, math.log(sum(math.exp(one - largest) for one in wealth) / len(wealth)))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_item_evidence_matches_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 120))
    arms = rng.integers(0, 5, n)
    failed = rng.random(n) < np.array([0.5, 0.1, 0.1, 0.0, 0.2])[arms]
    found = item_evidence(failed, arms)
    assert found.value == pytest.approx(plain(failed.tolist(), arms.tolist()), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.02, 0.2, 0.6])
def test_item_evidence_error_rate_within_level(rate: float) -> None:
    """1000 records of 300 asks, whose items are picked by what failed before; false-alarm probability of the test
    below 1e-6 (at a level of 1/200 for the half that this alarm has).
    """
    rng = np.random.default_rng(int(1000 * rate))
    rung = 0
    for _ in range(1000):
        failed = rng.random(300) < rate
        arms = rng.integers(0, 6, 300)
        arms[1:][failed[:-1]] = arms[:-1][failed[:-1]]  # what failed is asked for again
        rung += item_evidence(failed, arms).value >= math.log(200.0)
    assert rung <= 20


def test_an_item_that_fails_is_found_and_named() -> None:
    rng = np.random.default_rng(4)
    seen = 0
    for _ in range(50):
        arms = rng.integers(0, 4, 240)
        failed = rng.random(240) < np.where(arms == 2, 0.5, 0.02)
        found = item_evidence(failed, arms)
        seen += found.value >= math.log(200.0)
        assert found.arm == 2
        assert found.failed <= int(failed[arms == 2].sum())
    assert seen >= 48


def test_bursts_and_nothing_at_all_say_nothing() -> None:
    assert item_evidence(np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)).value == 0.0
    assert item_evidence(np.zeros(50, dtype=bool), np.arange(50) % 3).value == 0.0
    burst = np.zeros(200, dtype=bool)
    burst[60:100] = True  # the instrument is out of order, while one item is asked for
    arms = np.arange(200) % 5
    arms[60:100] = 3
    assert item_evidence(burst, arms).value < math.log(200.0)
