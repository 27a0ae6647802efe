"""Deliberately wrong candidates in blocks: how often is what is frozen proven, when that is wrong?

Runs by cells freeze what is nearly always right, and so are wrong far less often than δ. Here every candidate is wrong,
one arm in the wrong group or two in each other's place, so that its tests bear the whole guarantee. Groups lie far
apart: all tests but the void ones are met soon, and a run ends by a false proof or not at all; with the right candidate
all of them end. Cells are of all arms or of some, bets are right or random, offsets are drawn, or aimed at the arm that
was moved; with `strict` a cell is left unfinished whenever it speaks against the candidate so far.

Epoch 0 is proven with probability at most (1 − α)·δ·π_0, and pairs from the start add at most α·δ; all epochs together
at most δ (docs/BLOCKS.md). False alarm: below 1e-6 for each of the cases if the rate is exactly that bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from block_worlds import NOISES, STATED, reading
from error_rates import Guarantee, assert_rate_at_most

from coterie.methods.blocks.bets import Bettor
from coterie.methods.blocks.cells import Cell
from coterie.methods.blocks.epoch import Epoch, next_level, share_of_epoch
from coterie.methods.blocks.estimate import Estimate
from coterie.methods.blocks.exchangeable import factors_for
from coterie.methods.blocks.pairs import ALPHA, Pairs
from coterie.methods.blocks.shape import Features, feature_count
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import noise_of

pytestmark = pytest.mark.guarantee

RUNS, DELTA, CELLS, GAP, RIGHT_CELLS = 2000, 0.3, 8, 3.0, 400
TRUTH = np.array([0, 0, 0, 1, 1, 1])
WRONG = [np.array([0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 0, 1, 1])]  # arm 2 moved; arms 2 and 3 in each other's place
CORES = [([[0, 1], [2, 3, 4, 5]], [[0, 1], [4, 5]]), ([[0, 1, 3], [2, 4, 5]], [[0, 1], [4, 5]])]
CASES = [(blocks, noise, False) for blocks, noise in NOISES] + [("offset", "known", True), ("offset", "any", True)]


def _guess(candidate: IntArray, rng: np.random.Generator) -> Estimate:
    """An estimate from which bets are made: right, or of any direction and size."""
    centers = GAP * np.array([[-0.5], [0.5]]) if rng.random() < 0.8 else rng.normal(0.0, GAP, (2, 1))
    margins = np.full((candidate.size, 2), 9.0)
    one = np.eye(1)
    return Estimate(candidate, centers, one, one, 9.0, 0.05 * np.eye(2), candidate, margins, 0.0, (), None, 0.0)


class _ShapeBets:
    """Bets on features of results, right or of any direction and size, in place of those of an estimate."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def freeze_bet(self) -> dict[str, Any]:
        """Weights of the three scores."""
        return {"from": [0.0], "numbers": self._rng.dirichlet(np.ones(3)).tolist(), "features": Features(1).names}

    def cell_bet(self, labels: IntArray, cell_mean: FloatArray) -> list[FloatArray]:
        """By the clipped place alone, or by all features."""
        vectors = np.zeros((2, feature_count(1)))
        vectors[:, 0] = [-0.5 * GAP, 0.5 * GAP]
        if self._rng.random() < 0.5:
            vectors = self._rng.normal(0.0, 2.0, vectors.shape)
        return [-cell_mean, np.ones(1), vectors, np.zeros(2), np.ones((2, 2))]


def proven(blocks: str, noise: str, strict: bool, candidate: IntArray, cores: list[list[int]], seed: int) -> bool:
    """One run in which these groups, with these cores, are frozen, and again after every strict lapse."""
    rng, model = np.random.default_rng(seed), noise_of(STATED[noise], 1)
    right = bool((candidate == TRUTH).all())
    factors, bettor, halves = factors_for(model, 2, 1), Bettor(model, 1), (blocks, noise) != ("drawn", "bounded")
    alpha, log_inverse = ALPHA if noise == "known" else 0.0, -math.log(DELTA)
    pairs = Pairs(6, 2, 1, log_inverse, strict) if noise == "known" else None
    shape: Any = _ShapeBets(rng) if noise == "shape" else None
    epoch, aimed = None, bool(seed % 2)
    freezes = 0
    for number in range(1, (RIGHT_CELLS if right else CELLS) + 1):
        guess = _guess(candidate, rng)
        if epoch is None:
            frozen = {"epoch": freezes, "level": next_level(freezes, log_inverse, alpha), "labels": candidate.tolist()}
            epoch, freezes = (
                Epoch(frozen | {"cores": cores, "bet": bettor.of_freeze(guess, shape)}, factors, halves),
                freezes + 1,
            )
        arms = np.arange(6) if rng.random() < 0.7 else rng.permutation(6)[: rng.integers(2, 6)]
        if blocks == "offset" and rng.random() < 0.3:
            arms = np.append(arms, rng.integers(6, size=2))
        arms = rng.permutation(arms)
        offset = 2.0 - 4.0 * (arms[0] == 2) if aimed else 2.0 * rng.standard_normal()
        bet = bettor.of_cell(guess, arms, candidate, GAP * np.array([[-0.5], [0.5]]), shape)
        cell = Cell(number, f"block {number}", epoch.number, arms, bet)
        seen = 0.0
        for place, arm in enumerate(arms.tolist()):
            if strict and place == arms.size - 1 and seen < 0.0:
                cell.give_up(arm)
                break
            level = GAP * (TRUTH[arm] - 0.5)
            x = reading(blocks, noise, level, offset, rng)
            seen += (x - offset - level) * (2 * candidate[arm] - 1) * (arm in (2, 3))
            cell.take(arm, np.asarray(model.whiten_fully(np.array([[x]]))[0]))
        if cell.missing:  # strict: the cell never counts, its epoch is left, and pairs begin anew
            epoch = None
            if pairs is not None:
                pairs.next_generation(number + 1)
            continue
        came, rows = cell.results(1)
        if pairs is not None:
            pairs.use(number, came, rows)
        epoch.use(cell, came, rows, cell.values(1))
        if not epoch.unmet(None if pairs is None else pairs.settled).size:
            return True
    return False


@pytest.mark.parametrize(("blocks", "noise", "strict"), CASES, ids=str)
def test_wrong_candidates_in_blocks_are_proven_within_delta(blocks: str, noise: str, strict: bool) -> None:
    cores = [[0, 1, 2], [3, 4, 5]], [[0, 1], [4, 5]]
    assert all(proven(blocks, noise, False, TRUTH, cores[seed % 2], seed) for seed in range(20))  # so runs do end
    wrong = 0
    for seed in range(RUNS):
        which = seed // 2 % 2
        wrong += proven(blocks, noise, strict, WRONG[which], CORES[which][seed // 4 % 2], seed)
    alpha = ALPHA if noise == "known" else 0.0
    bound = DELTA if strict else (1.0 - alpha) * DELTA * share_of_epoch(0) + alpha * DELTA
    of = Guarantee(noise, blocks=blocks, case="wrong candidates frozen; their share of δ")
    assert_rate_at_most(bound, wrong, RUNS, of)
