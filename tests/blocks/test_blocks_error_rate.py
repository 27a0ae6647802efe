"""Whole runs in blocks, with offsets that are drawn and offsets that are aimed: all end, and at most δ of them wrong.

They freeze what is nearly always right, so that few are wrong; `test_blocks_wrong_freeze.py` is the harder test. False
alarm: each assertion fails by chance with probability below 1e-6 if the error probability is δ.
"""

from __future__ import annotations

import numpy as np
import pytest
from block_worlds import NOISES, STATED, reading
from error_rates import Guarantee, assert_rate_at_most

from coterie.methods.blocks.method import BlockRun
from coterie.problem.partition import same_partition
from coterie.problem.settings import Settings

RUNS, DELTA, GAP, MOST = 60, 0.2, 2.0, 5000


def _wrong(blocks: str, noise: str) -> int:
    """Of `RUNS` runs those that end with wrong groups: three items, two of them equal. All runs end.

    In every second run offsets are aimed: up if the first item asked for in a block is item 0, else down.
    """
    truth, wrong = np.array([0, 0, 1]), 0
    settings = Settings.of(3, 2, 1, DELTA, noise=STATED[noise], blocks=blocks)
    rng = np.random.default_rng(NOISES.index((blocks, noise)))
    for trial in range(RUNS):
        run, number, aimed = BlockRun(settings), 0, bool(trial % 2)
        while not run.done and run.t < MOST:
            number += 1
            pulls = run.compose(f"block {number}", 3 if blocks == "drawn" else 8)
            offset = 2.0 - 4.0 * (pulls[0].arm == 0) if aimed and pulls else 2.0 * rng.standard_normal()
            for pull in pulls:
                run.ask()
                x = reading(blocks, noise, GAP * (truth[pull.arm] - 0.5), offset, rng)
                run.count(pull.arm, settings.noise.whiten_fully(np.array([[x]]))[0], pull.round, True)
        assert run.done
        labels = run.labels
        wrong += labels is None or not same_partition(labels, truth)
    return wrong


@pytest.mark.guarantee
@pytest.mark.parametrize(("blocks", "noise"), NOISES, ids=str)
def test_blocks_error_rate_within_delta(blocks: str, noise: str) -> None:
    assert_rate_at_most(DELTA, _wrong(blocks, noise), RUNS, Guarantee(noise, blocks=blocks))
