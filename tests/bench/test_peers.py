"""The peers that CROC is compared with: right groups, the same run for a seed, errors and radii within their level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import coterie
from bench.peers import PEERS
from bench.peers.representatives import directed
from bench.peers.stacks import KEPT, Stacks, floor_level, pair_level, radius
from coterie.theory.evidence import directed_log

pytestmark = pytest.mark.guarantee

FALSE_ALARM = 1e-6


def most_allowed(runs: int, rate: float) -> int:
    """More events than this happen with probability at most FALSE_ALARM if each has probability at most `rate`."""
    return int(binom.isf(FALSE_ALARM, runs, rate))


def instance(name: str) -> coterie.Instance:
    return coterie.datasets.iris().with_hardness(2.0) if name == "iris" else coterie.datasets.synthetic(name)


@pytest.mark.parametrize("name", ["easy", "moderate", "iris"])
@pytest.mark.parametrize("peer", PEERS)
def test_peer_finds_the_groups(peer: str, name: str) -> None:
    asked = instance(name)
    for seed in range(3):
        found = PEERS[peer].run(asked, 0.01, np.random.default_rng(seed), 100_000)
        assert found.done
        assert coterie.same_partition(found.labels, asked.labels)
        assert found.t == found.pulls.sum() >= asked.n_arms
        assert found.pulls.min() >= 1


@pytest.mark.parametrize("peer", PEERS)
def test_peer_repeats_itself_for_a_seed(peer: str) -> None:
    asked = instance("moderate")
    first, second, other = (PEERS[peer].run(asked, 0.1, np.random.default_rng(seed), 100_000) for seed in (5, 5, 6))
    assert np.array_equal(first.pulls, second.pulls)
    assert np.array_equal(first.labels, second.labels)
    assert not np.array_equal(first.pulls, other.pulls)


@pytest.mark.parametrize("most", [0, 10, 11, 60])
@pytest.mark.parametrize("peer", PEERS)
def test_peer_keeps_to_its_budget(peer: str, most: int) -> None:
    found = PEERS[peer].run(instance("challenging"), 1e-6, np.random.default_rng(1), most)
    assert not found.done
    assert found.t == found.pulls.sum() <= most


@pytest.mark.parametrize("peer", PEERS)
def test_peer_error_rate_within_delta(peer: str) -> None:
    """False alarm: 1e-6. Arms on a line, groups one noise apart: the guess is often wrong when tests begin."""
    asked = coterie.Instance([0, 0, 0, 1, 1], [[0.0], [1.0]])
    runs, delta = 150, 0.1
    wrong = 0
    for seed in range(runs):
        found = PEERS[peer].run(asked, delta, np.random.default_rng([3, seed]), 1_000_000)
        wrong += not (found.done and coterie.same_partition(found.labels, asked.labels))
    assert wrong <= most_allowed(runs, delta)


@pytest.mark.parametrize(("dim", "ratio"), [(1, 1), (4, 2), (30, 8)])
def test_radius_covers_equal_pairs_and_half_of_it_does_not(dim: int, ratio: int) -> None:
    """False alarm: 1e-6. Ever outside, over all kept counts up to 200; level 0.2."""
    paths, longest, miss = 1500, 200, 0.2
    rng = np.random.default_rng([dim, ratio])
    counts = KEPT[longest >= KEPT]
    radii = np.array([radius(int(n), ratio, dim, math.log(1.0 / miss)) for n in counts])
    outside = {1.0: 0, 0.5: 0}
    for _ in range(paths):
        contrasts = rng.normal(scale=math.sqrt(1.0 + 1.0 / ratio), size=(longest, dim))
        gaps = np.linalg.norm(np.cumsum(contrasts, axis=0)[counts - 1] / counts[:, None], axis=1)
        for factor in outside:
            outside[factor] += bool((gaps > factor * radii).any())
    assert outside[1.0] <= most_allowed(paths, miss)
    assert outside[0.5] > most_allowed(paths, miss)


def test_directed_covers_equal_pairs_and_with_too_small_a_variance_does_not() -> None:
    """False alarm: 1e-6. The average over two guessed differences, ever at level log 5 in 200 contrasts."""
    paths, longest, miss = 1500, 200, 0.2
    rng = np.random.default_rng(8)
    thetas, spreads = np.array([[1.0, 0.0, 0.5], [0.0, -0.7, 0.2]]), np.array([0.1, 0.3])
    totals = np.cumsum(rng.normal(scale=math.sqrt(1.25), size=(paths, longest, 3)), axis=1)
    reached = {}
    for variance in (1.25, 0.4):
        values = [directed(n, totals[:, n - 1], variance, thetas, spreads) for n in range(1, longest + 1)]
        reached[variance] = int((np.max(values, axis=0) >= math.log(1.0 / miss)).sum())
    assert reached[1.25] <= most_allowed(paths, miss)
    assert reached[0.4] > most_allowed(paths, miss)


def test_directed_matches_oracle() -> None:
    rng = np.random.default_rng(9)
    totals, thetas, spreads = rng.normal(size=(5, 3)) * 4.0, rng.normal(size=(2, 3)), np.array([0.1, 0.4])
    found = directed(7, totals, 1.5, thetas, spreads)
    for total, value in zip(totals, found, strict=True):
        terms = [directed_log(7 / 1.5, total / 1.5, theta, s) for theta, s in zip(thetas, spreads, strict=True)]
        assert value == pytest.approx(math.log(np.mean(np.exp(terms))), rel=1e-9)


@pytest.mark.parametrize("heights", [(1, 1), (3, 17), (40, 5), (64, 64)])
def test_evidence_of_stacks_matches_oracle(heights: tuple[int, int]) -> None:
    """Up to 64 every count is kept, so each single result can be read from the prefix sums."""
    asked = coterie.Instance([0, 0, 1], [[0.0, 0.0], [1.0, 0.5]])
    stacks = Stacks(asked, np.random.default_rng(4))
    for arm, height in zip((0, 2), heights, strict=True):
        stacks.raise_to(np.array([arm]), height)
    x, y = (np.diff(stacks.sums[arm, : height + 1], axis=0) for arm, height in zip((0, 2), heights, strict=True))
    found = stacks.evidence(np.array([0, 2]), np.array([2, 0]))
    assert found == pytest.approx(coterie.pair_evidence(x, y), rel=1e-9)


@pytest.mark.parametrize("level", [5, 64, 90])
def test_evidence_reaches_its_level_where_the_gap_leaves_the_radius(level: int) -> None:
    asked = coterie.Instance([0, 1, 1], [[0.0, 0.0], [1.0, 0.5]])
    stacks = Stacks(asked, np.random.default_rng(4))
    stacks.raise_to(np.arange(2), level)
    n = int(KEPT[level - 1])
    gap = float(np.linalg.norm(stacks.means()[0] - stacks.means()[1]))
    value = float(stacks.equal_evidence(np.array([0]), 1)[0])
    assert radius(n, 1, 2, value) == pytest.approx(gap, rel=1e-6)


def test_stacks_have_the_law_of_single_results() -> None:
    """False alarm: 1e-6 together, by a normal tail of 5.2 for the mean and a chi-square bound for the spread."""
    asked = coterie.Instance([0] * 400 + [1], [[2.0], [9.0]])
    stacks = Stacks(asked, np.random.default_rng(12))
    stacks.raise_to(np.arange(400), 100)
    n = int(KEPT[99])
    assert n > 100, "beyond 64 results come in blocks"
    scaled = (stacks.means()[:400, 0] - 2.0) * math.sqrt(n)
    assert abs(scaled.mean()) < 5.2 / math.sqrt(400)
    assert 270 < (scaled**2).sum() < 550
    assert stacks.t == 400 * n


def test_twice_a_kept_count_is_kept() -> None:
    kept = set(KEPT.tolist())
    assert all(2 * n in kept for n in KEPT.tolist() if 2 * n <= KEPT[-1])
    assert np.array_equal(floor_level(np.array([0, 1, 64, 65, 66])), [0, 1, 64, 64, 65])


def test_pair_level_counts_the_equal_pairs_there_can_be() -> None:
    assert pair_level(5, 2, 0.1) == pytest.approx(math.log(6 / 0.1))  # four arms in one group: six pairs
    assert pair_level(3, 2, 0.5) == pytest.approx(math.log(1 / 0.5))
