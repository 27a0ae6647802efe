"""Certificates by a list after corrections: the engine bets on what its record says, as `verify` does."""

from __future__ import annotations

import numpy as np
import pytest

import coterie


def corrected_run(seed: int) -> coterie.Session:
    """A run in which some values are told wrong and corrected later."""
    rng = np.random.default_rng(seed)
    m, k, d = int(rng.integers(5, 11)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    centers = 2.0 * rng.normal(size=(k, d))
    labels = np.concatenate([np.arange(k), rng.integers(0, k, m - k)])
    session = coterie.Session(m, k, d, delta=0.1, method="shortlist", noise=1.0)
    slips: dict[int, np.ndarray] = {}
    while not session.done:
        arm = session.ask()
        right = centers[labels[arm]] + rng.normal(size=d)
        told = right.copy()
        if rng.random() < 0.05:
            told = right + 3.0 * rng.normal(size=d)
            slips[session.n_measurements] = right
        session.tell(arm, told)
        if slips and rng.random() < 0.1:
            row = min(slips)
            session.correct(row, slips.pop(row), "slip")
    return session


@pytest.mark.parametrize("seed", [74, 97])
def test_a_pair_that_only_corrected_values_settle(seed: int) -> None:
    """Such a pair was in the engine's bets before any round of the log named it: honest certificates were refused."""
    session = corrected_run(seed)
    certificate = session.certificate
    assert certificate is not None
    assert certificate["by"] == "list"
    assert session.corrections
    verdict = coterie.verify(certificate, session.events)
    assert verdict, verdict.problems
