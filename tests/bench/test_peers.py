"""The peers that CROC is compared with: right groups, the same run for a seed, errors and radii within their level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import coterie
from bench.peers import PEERS
from bench.peers.batched import play_course
from bench.peers.course import Batch, Course, Task
from bench.peers.representatives import directed
from bench.peers.stacks import KEPT, Stacks, floor_level, pair_level, radius
from coterie.evidence.pairs import directed_log
from coterie.methods.trials import RunningTrials
from coterie.simulate.bulk import plan_for

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
    trials = coterie.simulate(
        asked, peer, deltas=(0.01,), trials=3, seed=1, max_pulls=100_000, progress=False, threshold="heuristic"
    )
    assert (trials.stopping_times >= asked.n_arms).all()
    assert trials.correct.all()


@pytest.mark.parametrize("peer", PEERS)
def test_peer_repeats_itself_for_a_seed(peer: str) -> None:
    first, second, other = (
        coterie.simulate(
            instance("moderate"), peer, trials=4, seed=seed, progress=False, threshold="heuristic", deltas=(0.1,)
        )
        for seed in (5, 5, 6)
    )
    assert np.array_equal(first.stopping_times, second.stopping_times)
    assert np.array_equal(first.correct, second.correct)
    assert not np.array_equal(first.stopping_times, other.stopping_times)


@pytest.mark.parametrize("peer", PEERS)
def test_peer_keeps_to_its_budget(peer: str) -> None:
    asked = instance("challenging")
    free = coterie.simulate(
        asked, peer, deltas=(0.1,), trials=3, seed=1, progress=False, threshold="heuristic"
    ).stopping_times[:, 0]
    for most in (1, 10, 11, int(free.min()) - 1, int(free.min()), int(free.max())):
        held = coterie.simulate(
            asked, peer, deltas=(0.1,), trials=3, seed=1, max_pulls=most, progress=False, threshold="heuristic"
        )
        assert held.stopping_times[:, 0].tolist() == np.where(free <= most, free, -1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS)
def test_peer_error_rate_within_delta(peer: str) -> None:
    """False alarm: 1e-6. Arms on a line, groups one noise apart: the guess is often wrong when tests begin."""
    asked = coterie.Instance([0, 0, 0, 1, 1], [[0.0], [1.0]])
    runs, delta = 150, 0.1
    trials = coterie.simulate(
        asked,
        peer,
        deltas=(delta,),
        trials=runs,
        seed=3,
        max_pulls=1_000_000,
        workers=1,
        progress=False,
        threshold="heuristic",
    )
    assert int((~trials.correct).sum()) <= most_allowed(runs, delta)  # one that did not stop counts as wrong


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
    stacks, rng = Stacks(3, 2), np.random.default_rng(4)
    for arm, height in zip((0, 2), heights, strict=True):
        for _ in range(height):
            stacks.add(arm, asked.means[arm] + rng.standard_normal(2))
    x, y = (np.diff(stacks.sums[arm, : height + 1], axis=0) for arm, height in zip((0, 2), heights, strict=True))
    found = stacks.evidence(np.array([0, 2]), np.array([2, 0]))
    assert found == pytest.approx(coterie.pair_evidence(x, y), rel=1e-9)


@pytest.mark.parametrize("level", [5, 64, 90])
def test_evidence_reaches_its_level_where_the_gap_leaves_the_radius(level: int) -> None:
    n = int(KEPT[level - 1])
    means, stacks, rng = np.array([[0.0, 0.0], [1.0, 0.5]]), Stacks(3, 2), np.random.default_rng(4)
    for arm in (0, 1):
        for _ in range(n):
            stacks.add(arm, means[arm] + rng.standard_normal(2))
    gap = float(np.linalg.norm(stacks.means()[0] - stacks.means()[1]))
    value = float(stacks.equal_evidence(np.array([0]), 1)[0])
    assert radius(n, 1, 2, value) == pytest.approx(gap, rel=1e-6)


def test_blocks_have_the_law_of_single_results() -> None:
    """False alarm: 1e-6 together, by a normal tail of 5.2 for the mean and a chi-square bound for the spread."""
    stacks, level = Stacks(400, 1), 100
    n = int(KEPT[level - 1])
    assert n > level, "beyond 64 results come in blocks"

    def course(task: Task) -> Course:
        yield Batch(stacks, [(np.arange(400), level)], 0.0, 1.0, None)
        return np.arange(401) % 2

    plan = plan_for(coterie.Instance([0] * 400 + [1], [[2.0], [9.0]]), "elimination", 0.1, "proven")
    end = play_course(course, plan, 0.1, np.random.default_rng(12), RunningTrials())
    assert end is not None
    assert end[0] == stacks.t == 400 * n
    scaled = (stacks.means()[:, 0] - 2.0) * math.sqrt(n)
    assert abs(scaled.mean()) < 5.2 / math.sqrt(400)
    assert 270 < (scaled**2).sum() < 550


def test_stacks_keep_what_is_beyond_the_last_kept_count() -> None:
    stacks = Stacks(2, 1)
    for i in range(67):
        stacks.add(1, np.array([float(i)]))
    assert (stacks.counts.tolist(), stacks.pulls.tolist(), stacks.t) == ([0, 67], [0, 66], 66)
    assert stacks.means().ravel().tolist() == [0.0, np.arange(66).mean()]
    stacks.add(1, np.array([67.0]))
    assert stacks.pulls.tolist() == [0, 68]
    assert stacks.sums[1, stacks.level[1]].tolist() == [np.arange(68).sum()]
    assert stacks.sums[1, 5].tolist() == [np.arange(5).sum()]


def test_twice_a_kept_count_is_kept() -> None:
    kept = set(KEPT.tolist())
    assert all(2 * n in kept for n in KEPT.tolist() if 2 * n <= KEPT[-1])
    assert np.array_equal(floor_level(np.array([0, 1, 64, 65, 66])), [0, 1, 64, 64, 65])


def test_pair_level_counts_the_equal_pairs_there_can_be() -> None:
    assert pair_level(5, 2, 0.1) == pytest.approx(math.log(6 / 0.1))  # four arms in one group: six pairs
    assert pair_level(3, 2, 0.5) == pytest.approx(math.log(1 / 0.5))
