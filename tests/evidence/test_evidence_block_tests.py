"""Tests of finished tables within blocks, against plain counting, against textbooks, and under shifts of blocks."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

import coterie
from coterie.evidence.exact.block_rearranging import signed_rank_p
from coterie.evidence.exact.block_tests import bounds_within_blocks
from coterie.evidence.exact.block_tests import test_within_blocks as within_blocks
from coterie.evidence.exact.fits import fitting
from coterie.evidence.exact.two_way import two_way
from coterie.problem.families import noise_of

DELTA = 0.05

NOISES: list[Any] = [
    None, "gaussian", 1.0, coterie.Symmetric(), coterie.AtMost(1.0), coterie.Bounded(-60, 60), coterie.Counts(30),
]  # fmt: skip


def complete(n_arms: int, n_blocks: int, seed: int = 0, times: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, blocks and one number for each row; items differ by 1, blocks by 2."""
    rng = np.random.default_rng(seed)
    arms = np.tile(np.repeat(np.arange(n_arms), times), n_blocks)
    blocks = np.repeat(np.arange(n_blocks), n_arms * times)
    rows = arms + 2.0 * rng.normal(size=n_blocks)[blocks] + rng.normal(size=arms.size)
    return arms, blocks, rows[:, None]


def with_holes(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    arms, blocks, rows = complete(5, 9, seed, times=2)
    kept = np.random.default_rng(seed).random(arms.size) < 0.7
    return arms[kept], blocks[kept], rows[kept]


def larger_statistic(contributions: list[np.ndarray]) -> float:
    """The larger of the standardised squared sums of two lists, each scaled by its own sum of squares."""
    return max(float(part.sum() ** 2 / (part**2).sum()) for part in contributions)


def test_signs_match_plain_counting() -> None:
    arms, blocks, rows = complete(2, 9, seed=3)
    table = rows[:, 0].reshape(9, 2)
    apart = table[:, 0] - table[:, 1]
    ranks = stats.rankdata(np.abs(apart))
    seen = larger_statistic([apart, np.sign(apart) * ranks])
    every = [
        larger_statistic([np.array(signs) * np.abs(apart), np.array(signs) * ranks])
        for signs in product((1.0, -1.0), repeat=9)
    ]
    tests = within_blocks(arms, blocks, rows, noise_of(None, 1), DELTA)
    assert tests.test == "block-permutations"
    assert tests.draws is None
    assert tests.p[0, 1] == pytest.approx(np.mean(np.array(every) >= seen - 1e-9))


def test_permutations_within_blocks_match_plain_counting() -> None:
    rng = np.random.default_rng(5)
    arms = np.array([0, 0, 1, 0, 1, 1, 0, 0, 0, 1])
    blocks = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    rows = rng.normal(size=10) + arms
    centred = rows - np.array([rows[blocks == b].mean() for b in range(3)])[blocks]
    ranks = stats.rankdata(centred)
    ranks = ranks - np.array([ranks[blocks == b].mean() for b in range(3)])[blocks]
    places = [np.flatnonzero(blocks == b).tolist() for b in range(3)]
    ways = [list(combinations(places[b], int((arms[blocks == b] == 0).sum()))) for b in range(3)]

    def statistic(chosen: list[int]) -> float:
        """The larger of two squared sums, each over its variance over all ways."""
        return max(float(scores[chosen].sum() ** 2 / variance[k]) for k, scores in enumerate((centred, ranks)))

    arranged = [[row for part in way for row in part] for way in product(*ways)]
    variance = [np.mean([scores[chosen].sum() ** 2 for chosen in arranged]) for scores in (centred, ranks)]
    seen = statistic(np.flatnonzero(arms == 0).tolist())
    share = np.mean([statistic(chosen) >= seen - 1e-9 for chosen in arranged])
    tests = within_blocks(arms, blocks, rows[:, None], noise_of(None, 1), DELTA)
    assert tests.p[0, 1] == pytest.approx(share)
    assert tests.least == pytest.approx(1.0 / len(arranged))


def test_groups_match_plain_counting() -> None:
    arms, blocks, rows = complete(3, 4, seed=8)
    table = rows[:, 0].reshape(4, 3)
    centred = table - table.mean(axis=1, keepdims=True)
    ranks = stats.rankdata(centred).reshape(4, 3)
    ranks -= ranks.mean(axis=1, keepdims=True)

    def statistic(orders: Any) -> float:
        widths = []
        for scores in (centred, ranks):
            sums = sum(scores[b, list(order)] for b, order in enumerate(orders))
            widths.append(float(np.ptp(sums) ** 2 / (scores**2).sum()))
        return max(widths)

    every = [statistic(orders) for orders in product(permutations(range(3)), repeat=4)]
    share = np.mean(np.array(every) >= statistic([(0, 1, 2)] * 4) - 1e-9)
    tests = within_blocks(arms, blocks, rows, noise_of(None, 1), DELTA)
    assert tests.of_group is not None
    assert tests.of_group((0, 1, 2)) == pytest.approx(share)
    assert tests.of_group((0, 2)) == tests.p[0, 2]


def test_groups_with_holes_match_plain_counting() -> None:
    """Item 2 is missing in one block, and one block has it alone: the others of a block change places."""
    rng = np.random.default_rng(6)
    there = [(0, 1, 2), (0, 1, 2), (0, 1), (0, 2), (1, 2), (2,), (0, 1, 2)]
    arms = np.array([arm for block in there for arm in block])
    blocks = np.repeat(np.arange(len(there)), [len(block) for block in there])
    rows = arms + rng.normal(size=arms.size) + 3.0 * blocks
    used = [np.flatnonzero(blocks == b) for b, block in enumerate(there) if len(block) > 1]
    centred = np.zeros(arms.size)
    for places in used:
        centred[places] = rows[places] - rows[places].mean()
    ranks = np.zeros(arms.size)
    ranks[np.concatenate(used)] = stats.rankdata(centred[np.concatenate(used)])
    for places in used:
        ranks[places] -= ranks[places].mean()
    ways = list(product(*(list(permutations(places.tolist())) for places in used)))
    arranged = np.array([[place for block in way for place in block] for way in ways])
    of_places = arms[np.concatenate(used)]
    squares = []
    for scores in (centred, ranks):
        sums = np.stack([scores[arranged][:, of_places == arm].sum(axis=1) for arm in range(3)], axis=1)
        for i, j in combinations(range(3), 2):
            apart = (sums[:, i] - sums[:, j]) ** 2
            squares.append(apart / apart.mean())
    largest = np.max(squares, axis=0)  # the first way is the one of the rows
    tests = within_blocks(arms, blocks, rows[:, None], noise_of(None, 1), DELTA)
    assert tests.of_group is not None
    assert tests.of_group((0, 1, 2)) == pytest.approx(np.mean(largest >= largest[0] - 1e-9))


def test_random_draws_agree_with_all_of_them() -> None:
    """Fifteen blocks: 32,768 choices of signs, more than are tried. 9,999 draws miss by 5 standard errors at most."""
    arms, blocks, rows = complete(2, 15, seed=2)
    rows[arms == 1] -= 0.6
    table = rows[:, 0].reshape(15, 2)
    apart = table[:, 0] - table[:, 1]
    ranks = stats.rankdata(np.abs(apart))
    signs = 1.0 - 2.0 * (np.arange(2**15)[:, None] >> np.arange(15) & 1)
    every = np.maximum((signs @ np.abs(apart)) ** 2 / (apart**2).sum(), (signs @ ranks) ** 2 / (ranks**2).sum())
    share = np.mean(every >= larger_statistic([apart, np.sign(apart) * ranks]) - 1e-9)
    tests = within_blocks(arms, blocks, rows, noise_of(None, 1), DELTA)
    assert tests.draws is not None
    assert tests.p[0, 1] == pytest.approx(share, abs=5.0 * math.sqrt(share / tests.draws) + 1e-4)


def test_counts_in_one_block_are_fisher_and_in_several_plain_sums() -> None:
    arms, blocks = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    hits = np.array([[9.0], [3.0], [7.0], [2.0]])
    one = within_blocks(arms[:2], blocks[:2], hits[:2], noise_of(coterie.Counts(10), 1), DELTA)
    assert one.p[0, 1] == pytest.approx(stats.fisher_exact([[9, 1], [3, 7]]).pvalue)
    law: dict[int, float] = {}
    for first, second in product(range(11), repeat=2):
        share = stats.hypergeom.pmf(first, 20, 12, 10) * stats.hypergeom.pmf(second, 20, 9, 10)
        law[first + second] = law.get(first + second, 0.0) + share
    both = within_blocks(arms, blocks, hits, noise_of(coterie.Counts(10), 1), DELTA)
    assert both.test == "mantel-haenszel"
    assert both.p[0, 1] == pytest.approx(sum(share for share in law.values() if share <= law[16] * (1.0 + 1e-7)))


@pytest.mark.parametrize("count", [5, 12, 20])
def test_signed_ranks_match_wilcoxon(count: int) -> None:
    values = np.random.default_rng(count).normal(0.5, 1.0, count)
    positive = int(stats.rankdata(np.abs(values))[values > 0].sum())
    assert signed_rank_p(positive, count) == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)


def test_very_many_items_by_signed_ranks() -> None:
    arms, blocks, rows = complete(150, 40, seed=1)
    rows[:, 0] += 4.0 * (arms // 75)
    tests = within_blocks(arms, blocks, rows, noise_of(None, 1), DELTA)
    assert tests.test == "block-ranks"
    values = rows[:, 0].reshape(40, 150)
    assert tests.p[3, 140] == pytest.approx(stats.wilcoxon(values[:, 3], values[:, 140], method="exact").pvalue)


def test_complete_blocks_are_the_textbook_s_two_way_analysis() -> None:
    arms, blocks, rows = complete(4, 6, seed=4)
    table = rows[:, 0].reshape(6, 4)
    fit = two_way(arms, blocks, rows)
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    assert fit.effects[:, 0] == pytest.approx(table.mean(axis=0))
    assert fit.scatter[0, 0] == pytest.approx((residuals**2).sum())
    assert fit.freedom == 15
    assert fit.variances[0, 1] == pytest.approx(2.0 / 6.0)
    tests = within_blocks(arms, blocks, rows, noise_of("gaussian", 1), DELTA)
    assert tests.test == "ranges"
    means, width = table.mean(axis=0), math.sqrt((residuals**2).sum() / 15 / 6)
    tukey = stats.studentized_range.sf(np.ptp(means) / width, 4, 15)
    low, high = int(means.argmin()), int(means.argmax())
    # The extreme pair is last to go: its p-value for all pairs is that of the group of all items.
    assert fitting(tests, DELTA).adjusted[low, high] == pytest.approx(tukey, rel=1e-4)


def test_two_way_matches_least_squares_with_dummies() -> None:
    arms, blocks, rows = with_holes(6)
    fit = two_way(arms, blocks, rows)
    design = np.concatenate([np.eye(5)[arms], np.eye(9)[blocks]], axis=1)
    solved = np.linalg.lstsq(design, rows, rcond=None)[0]
    assert fit.effects[0] - fit.effects[3] == pytest.approx(solved[0] - solved[3])
    assert fit.scatter == pytest.approx(((rows - design @ solved) ** 2).sum())
    assert fit.freedom == len(rows) - np.linalg.matrix_rank(design)
    contrast = np.zeros(14)
    contrast[[0, 3]] = 1.0, -1.0
    assert fit.variances[0, 3] == pytest.approx(contrast @ np.linalg.pinv(design.T @ design) @ contrast)
    for arm in range(5):
        assert fit.adjusted[arms == arm].mean() == pytest.approx(fit.effects[arm, 0])


def test_ranges_only_where_they_hold() -> None:
    balanced = list(combinations(range(5), 3))  # a balanced incomplete design: every pair in three blocks
    arms = np.array([arm for block in balanced for arm in block])
    blocks = np.repeat(np.arange(len(balanced)), 3)
    rows = np.random.default_rng(1).normal(size=(arms.size, 1))
    assert within_blocks(arms, blocks, rows, noise_of("gaussian", 1), DELTA).test == "ranges"
    arms, blocks, rows = with_holes(2)
    assert within_blocks(arms, blocks, rows, noise_of("gaussian", 1), DELTA).test == "t"


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_shifts_of_blocks_and_the_order_of_rows_play_no_role(noise: Any) -> None:
    for arms, blocks, rows in (complete(4, 8, seed=2), with_holes(1), complete(3, 4, seed=3, times=3)):
        model = noise_of(noise, 1)
        counted = isinstance(noise, coterie.Counts)
        values = np.clip(np.round(rows + 10.0), 0, 30) if counted else rows
        shifts = np.zeros(9) if counted else np.arange(9.0) * 4.0
        mixed = np.random.default_rng(0).permutation(len(arms))
        tests = within_blocks(arms, blocks, values, model, DELTA)
        again = within_blocks(arms[mixed], blocks[mixed], values[mixed], model, DELTA)
        assert np.array_equal(again.p, tests.p)
        moved = within_blocks(arms, blocks, values + shifts[blocks][:, None], model, DELTA)
        if moved.draws is None and noise != coterie.Symmetric():  # else other numbers are drawn
            assert moved.p == pytest.approx(tests.p, rel=1e-7)


def test_items_that_never_meet() -> None:
    """Items 0 and 2 share no block, but item 1 joins them: only the analysis of both tells anything."""
    rng = np.random.default_rng(9)
    arms = np.array([0, 1] * 6 + [1, 2] * 6 + [3, 4] * 6)
    blocks = np.repeat(np.arange(18), 2)
    rows = (5.0 * arms + rng.normal(size=arms.size))[:, None]
    for noise in NOISES[:6]:
        p = within_blocks(arms, blocks, rows, noise_of(noise, 1), DELTA).p
        assert (p[0, 2] < 1e-3) == (noise in ("gaussian", 1.0)), noise
        assert p[0, 3] == 1.0, "nothing joins these"
    bounds = bounds_within_blocks(arms, blocks, rows, noise_of("gaussian", 1), DELTA)
    assert bounds is not None
    assert bounds[1][0, 3, 0] == np.inf
    assert bounds[0][0, 3, 0] == 0.0
    assert bounds[0][0, 2, 0] > 5.0


def test_bounds_of_complete_blocks_are_tukey_s() -> None:
    arms, blocks, rows = complete(4, 6, seed=4)
    bounds = bounds_within_blocks(arms, blocks, rows, noise_of("gaussian", 1), DELTA)
    table = rows[:, 0].reshape(6, 4)
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    reach = stats.studentized_range.isf(DELTA, 4, 15) * math.sqrt((residuals**2).sum() / 15 / 6)
    means = table.mean(axis=0)
    assert bounds is not None
    assert bounds[1][0, 2, 0] == pytest.approx(abs(means[0] - means[2]) + reach, rel=1e-5)
    assert bounds_within_blocks(arms, blocks, rows, noise_of(None, 1), DELTA) is None
