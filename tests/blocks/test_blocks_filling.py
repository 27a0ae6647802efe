"""What a cell for tests has, where its block cannot hold all that is wanted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.methods.blocks.epoch import Epoch
from coterie.methods.blocks.factors import Factors
from coterie.methods.blocks.filling import worthiest
from coterie.problem.checks import IntArray
from coterie.problem.families import noise_of

LABELS = np.arange(24) % 4
CORES = [[0, 4], [1, 5], [2, 6], [3, 7]]
RATES = 2.0 * np.array([[1.0, 1.0, 2.0, 1.0], [1.0, 1.0, 1.0, 2.0], [2.0, 1.0, 1.0, 1.0], [1.0, 2.0, 1.0, 1.0]])


def _epoch() -> Epoch:
    frozen = {"epoch": 0, "level": 2.75, "labels": LABELS.tolist(), "cores": CORES}
    return Epoch(frozen, Factors(noise_of(1.0, 2), 4, 2), True)


def _worth(epoch: Epoch, unmet: IntArray, cell: Any) -> float:
    """By the formula, test by test."""
    total, tests = 0.0, epoch.tests
    for t in unmet.tolist():
        a, others = float(cell[tests.arm[t]]), float(tests.pool[t] @ cell)
        rate, lack = float(RATES[tests.group[t], tests.against[t]]), float(epoch.levels[t] - epoch.evidence[t])
        if a and others:
            total += lack / rate * (1.0 - math.exp(-rate * a * others / (a + others) / lack))
    return total


@pytest.mark.parametrize("room", [2, 3, 5, 12, 20])
def test_a_cell_that_has_to_choose_is_worth_more_than_any_by_chance(room: int) -> None:
    epoch, rng = _epoch(), np.random.default_rng(room)
    epoch.evidence[:] = rng.uniform(0.0, 0.9, len(epoch.tests)) * epoch.levels
    unmet = np.flatnonzero(rng.random(len(epoch.tests)) < 0.6)
    wanted = np.ones(24, dtype=np.int64)
    cell = worthiest(wanted, room, epoch, unmet, RATES, rng)
    assert cell.sum() == room
    assert (cell <= wanted).all()
    by_chance = [np.isin(np.arange(24), rng.choice(24, room, replace=False)) for _ in range(300)]
    assert _worth(epoch, unmet, cell) > np.quantile([_worth(epoch, unmet, other) for other in by_chance], 0.95)


def test_items_whose_tests_are_met_leave_their_place_to_others() -> None:
    epoch = _epoch()
    tests = epoch.tests
    unmet = np.flatnonzero(((tests.arm == 8) & (tests.against == 1)) | ((tests.arm == 12) & (tests.against == 1)))
    cell = worthiest(np.ones(24, dtype=np.int64), 4, epoch, unmet, RATES, np.random.default_rng(0))
    assert cell[[8, 12]].tolist() == [1, 1]
    assert cell[CORES[1]].tolist() == [1, 1]


@pytest.mark.parametrize("noise", [1.0, None], ids=str)
def test_runs_end_in_rooms_for_fewer_items_than_groups(noise: Any) -> None:
    instance = coterie.Instance(np.arange(9) % 3, [[0.0], [3.0], [6.0]])
    trials = coterie.simulate(
        instance, noise=noise, blocks="offset", room=2, deltas=0.1, trials=1, seed=1, max_pulls=3000, workers=1
    )
    assert (trials.stopping_times > 0).all()
