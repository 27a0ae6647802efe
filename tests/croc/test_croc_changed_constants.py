"""Buffers have the size that the constants ask for: with other constants nothing is written beside them.

`make checked` runs this on a build where every index is checked.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.methods.croc import method as croc
from coterie.methods.croc.run import CrocRun

CHANGES: dict[str, dict[str, Any]] = {
    "larger pools and cores, fewer rounds": {"top_up": 1.5, "core": 5, "flight": 8, "scale_up": 4},
    "fewer epochs, cores of one, hardly any room for rounds": {
        "epochs": 2, "core": 1, "round_places": 4, "freeze_risk": 0.9, "steady": 0.0,
    },
    "more epochs, a short grid, longer forecasts": {
        "epochs": 5, "prefix_room": 8, "octaves": 1,
        "doublings": 9, "lead_levels": 12, "steps": np.arange(40), "pairs_per_pull": 1,
    },
    "other block ratios, a wider subspace": {
        "block_ratios": np.array([1, 2, 3, 6]), "grid_step": 6, "prefix_room": 48, "subspace_extra": 40,
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 7, 40])
@pytest.mark.parametrize("what", CHANGES)
def test_changed_constants_keep_within_buffers(what: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(croc, "CONSTANTS", CHANGES[what])
    labels, gap = {
        1: ([0, 0, 0, 0, 0, 0, 1, 1], 3.0), 7: ([0, 0, 0, 0, 1, 1, 1, 2], 4.0), 40: ([0, 0, 0, 1, 2], 6.0),
    }[workers]  # fmt: skip
    truth, rng = np.array(labels), np.random.default_rng(workers)
    centers = gap * np.eye(3)[: truth.max() + 1]
    session = coterie.Session(len(labels), truth.max() + 1, 3, delta=1e-4)
    while not session.done and session.t < 1500:
        while len(session.pending) < workers and not session.done:
            with contextlib.suppress(coterie.SessionDone):
                session.ask()
        for ticket, arm in [session.pending[i] for i in rng.permutation(len(session.pending))[: workers // 2 + 1]]:
            session.tell(arm, centers[truth[arm]] + rng.standard_normal(3), ticket=ticket)
    assert session.done
    assert coterie.same_partition(session.labels, truth)


def test_constants_that_no_run_can_have_are_refused() -> None:
    for wrong, error in (
        ({"epochs": 0}, "sizes must be positive"), ({"flight": 1}, "sizes must be positive"),
        ({"no_such": 1}, "has no constant no_such"), ({"scales": np.ones(3)}, "another size"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=error):
            CrocRun(4, 2, 1, 1.0, constants=wrong)
