"""With the corrected Z2 the proven threshold keeps δ where the printed one fails (docs/PAPER.md, erratum).

The printed form's failure is shown in tests/oracles/test_oracles_paper.py; here the corrected form runs to its stop.
"""

from __future__ import annotations

import numpy as np
import pytest

import coterie

pytestmark = pytest.mark.guarantee

SINGLETONS = coterie.Instance([0, 1, 2, 2], [[0.0], [0.5], [10.0]])
CLOSE_PAIRS = coterie.Instance([0, 0, 1, 1, 2, 2, 3, 3], [[0.0, 0.0], [0.1, 0.0], [0.0, 10.0], [10.0, 0.0]])


@pytest.mark.parametrize(("instance", "trials"), [(SINGLETONS, 200), (CLOSE_PAIRS, 8)])
def test_corrected_threshold_error_rate_within_delta(instance: coterie.Instance, trials: int) -> None:
    """δ = 1e-6: one error among the trials would have probability below 2e-4, the false-alarm probability."""
    found = coterie.simulate(
        instance, "boc", deltas=(1e-6,), threshold="proven", trials=trials, seed=11, max_pulls=20_000_000
    )
    assert (found.stopping_times > 0).all()
    assert found.errors().tolist() == [0]
    assert np.isfinite(found.mean()).all()
