"""The test of results that came in after the stop: its level holds however often one looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from coterie.tables import fit
from coterie.tables.anytime_fit import anytime_misfits


@pytest.mark.parametrize("chosen", ["in turn", "the worst"])
def test_looking_after_every_result_error_rate_within_level(chosen: str) -> None:
    """Groups and noise are right; items are measured in turn, or that next which fits worst; every result is looked at.

    At level 0.05 at most 5 % of the runs may ever name an item: more than `most` of 200 with probability below 1e-6.
    Beside it is a χ² test at that level: looked at so often, it names items far too often.
    """
    labels, level, runs = np.array([0, 0, 0, 1, 1]), 0.05, 200
    most = binom.isf(1e-6, runs, level)
    rng = np.random.default_rng(3)
    ours = naive = 0
    for _ in range(runs):
        arms = np.arange(5)
        white = rng.normal(size=(5, 2))
        named = [False, False]
        for k in range(100 if chosen == "in turn" else 50):
            worst = k % 5
            if chosen == "the worst":
                means, counts = fit.means_of(arms, white, 5)
                centers, totals = fit.means_of(labels[arms], white, 2)
                rest = totals[labels] - counts
                worst = int(np.argmax(((means - centers[labels]) ** 2).sum(axis=1) * counts * totals[labels] / rest))
            arms = np.append(arms, worst)
            white = np.vstack([white, rng.normal(size=2)])
            named[0] |= bool(anytime_misfits(labels, arms, white, level))
            named[1] |= bool(fit.misfits(labels, arms, white, level))
        ours += named[0]
        naive += named[1]
    print(f"{runs} runs, {chosen}: {ours} named an item, {naive} by the χ² test")
    assert ours <= most
    assert chosen == "the worst" or naive > most


def test_evidence_matches_oracle() -> None:
    """The closed form against the product of two mixtures, minimised numerically; the level is the evidence's own."""
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 1])
    arms = rng.integers(0, 3, size=40)
    white = rng.normal(size=(40, 1)) + 1.5 * (arms == 0)[:, None]

    def log_mixture(values: Any, rho: float, means: Any) -> Any:
        n = len(values)
        return 0.5 * rho * n**2 / (1.0 + rho * n) * (values.mean() - means) ** 2 - 0.5 * np.log(1.0 + rho * n)

    def evidence(arm: int) -> float:
        own, rest = white[arms == arm], white[arms != arm]
        grid = np.linspace(white.min(), white.max(), 200_001)
        rhos = (4.0, 1.0, 1 / 4, 1 / 16, 1 / 64)
        logs = [float(np.min(log_mixture(own, rho, grid) + log_mixture(rest, rho, grid))) for rho in rhos]
        return float(np.log(np.mean(np.exp(logs))))

    reached = {arm: evidence(arm) for arm in range(3)}
    assert reached[0] == max(reached.values())
    for arm, log_e in reached.items():
        just = 4.0 * np.exp(-log_e)  # the level at which this item is just named: M/p = E
        assert arm in anytime_misfits(labels, arms, white, just * 1.001)
        assert arm not in anytime_misfits(labels, arms, white, just * 0.999)
