"""Long runs far from zero: what is kept up pull by pull is what all measurements give, and decides the same.

`make bench BENCH=numerics` does the same for ten million pulls.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from engines import SAMPLING

from coterie.evidence.stopping import alternative_value
from coterie.methods.croc.run import CrocRun
from coterie.methods.paper.method import levels_for
from coterie.methods.paper.run import Run

PULLS = 300_000
FAR = 1e6
NEVER = 1e15  # log(1/δ)
CLOSE = 1e-10
"""10⁻⁹ is asked for at ten million pulls, and rounding grows with the root of the pulls: six times less here."""

# Labels, centers relative to FAR, the smallest gap, and whether the separation certificate decides in the end.
WORLDS = {
    "separated": (np.arange(20) % 4, np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), 1.0, True),
    "overlapping": (np.arange(6) % 3, np.array([[0, 0], [2**-9, 0], [0, 1.0]]), 2**-9, False),
}


def new_run(world: str, method: str) -> Run:
    labels, centers, *_ = WORLDS[world]
    levels = levels_for(("heuristic",), (NEVER,), labels.size, centers.shape[1])
    return Run(
        labels.size, centers.shape[0], centers.shape[1], SAMPLING[method], levels,
        distance_ratio=0.3 if method == "boc-linear" else None,
    )  # fmt: skip


def play(run: Run, world: str, rng: np.random.Generator, pulls: int, far: float, arms: Any) -> None:
    labels, centers, *_ = WORLDS[world]
    run.play(pulls, centers + far, labels, rng, arms)


def exact_sums(world: str, arms: Any, noise: Any, origin: Any) -> list[list[Fraction]]:
    """Of each arm, relative to the origin: correctly rounded sums of the noise, and the rest in rational numbers."""
    labels, centers, *_ = WORLDS[world]
    found = []
    for m in range(labels.size):
        mine = noise[arms == m]
        shift = [Fraction(c) - Fraction(o) for c, o in zip((centers[labels[m]] + FAR).tolist(), origin, strict=True)]
        found.append([Fraction(math.fsum(mine[:, q])) + len(mine) * shift[q] for q in range(len(shift))])
    return found


def assert_close(found: Any, exact: Any, scale: Any) -> None:
    np.testing.assert_array_less(np.abs(np.asarray(found) - np.asarray(exact)) / np.asarray(scale), CLOSE)


@pytest.mark.parametrize("method", ["boc", "boc-linear", "uniform"])
@pytest.mark.parametrize("world", WORLDS)
def test_running_sums_match_exact_ones(world: str, method: str) -> None:
    labels, centers, gap, separated = WORLDS[world]
    run, rng, arms = new_run(world, method), np.random.default_rng(3), np.zeros(2 * PULLS, dtype=np.int64)
    play(run, world, rng, PULLS - 1, FAR, arms)
    while run.memory()["guess.moved"].any():  # a forced pull leaves the guess as it was
        play(run, world, rng, 1, FAR, arms)
    before, guess = run.t, run.labels.copy()
    play(run, world, rng, 1, FAR, arms)
    s, t = run.memory(), run.t
    pulls, origin = s["arms.pulls"], s["origin"].tolist()
    arms, noise = arms[:t], np.random.default_rng(3).standard_normal((t, centers.shape[1]))
    assert s["certified"] == separated
    assert np.array_equal(pulls, np.bincount(arms))

    def grouped(rows: list[list[Fraction]], of: Any) -> Any:
        """Σ over the groups of the labels `of`."""
        return [[sum(row[q] for row, k in zip(rows, of, strict=True) if k == g) for q in range(centers.shape[1])]
                for g in range(len(centers))]  # fmt: skip

    sums = exact_sums(world, arms, noise, origin)
    assert_close(s["arms.sums"], np.array(sums, dtype=float), gap * pulls[:, None])
    by_group = np.array(grouped(sums, s["guess.labels"]), dtype=float)
    assert_close(s["guess.sums"], by_group, gap * s["guess.totals"][:, None])

    # Z uses the guess of the pull before: its centers, from the sums that it saw.
    earlier = exact_sums(world, arms[:before], noise[:before], origin)
    totals = np.bincount(guess, weights=np.bincount(arms[:before], minlength=labels.size))
    middle = [[x / int(n) for x in row] for row, n in zip(grouped(earlier, guess), totals, strict=True)]
    z1 = sum(
        n * sum((x / n - c) ** 2 for x, c in zip(row, middle[k], strict=True))
        for row, n, k in zip(sums, pulls.tolist(), guess.tolist(), strict=True)
    )
    z2 = alternative_value(guess, np.array(middle, dtype=float), pulls.astype(float))
    z = 0.5 * max(math.sqrt(z2) - math.sqrt(z1), 0.0) ** 2
    assert_close(run.statistic[:2], [float(z1), z2], [float(z1), z2])
    assert_close(run.statistic[2], z, max(z, 1.0))
    exact_log_sum = math.fsum(math.log(4.0 + math.log(n)) for n in pulls.tolist())
    assert_close(run.log_sum, exact_log_sum, exact_log_sum)


@pytest.mark.parametrize("world", WORLDS)
def test_a_shift_keeps_the_arms(world: str) -> None:
    """The same noise with centers at 10⁶ and near 0."""
    found = []
    for far in (FAR, 0.0):
        arms = np.zeros(PULLS, dtype=np.int64)
        play(new_run(world, "boc"), world, np.random.default_rng(3), PULLS, far, arms)
        found.append(arms)
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("world", WORLDS)
def test_putting_the_sums_right_keeps_the_arms(world: str) -> None:
    """A run whose sums are replaced by exact ones again and again chooses the arms of one that is left alone."""
    centers = WORLDS[world][1]
    runs, rngs = [new_run(world, "boc") for _ in range(2)], [np.random.default_rng(3) for _ in range(2)]
    arms = [np.zeros(PULLS, dtype=np.int64) for _ in range(2)]
    noise = np.random.default_rng(3).standard_normal((PULLS, centers.shape[1]))
    for part in range(1, 6):
        for run, rng, its in zip(runs, rngs, arms, strict=True):
            play(run, world, rng, PULLS // 5, FAR, its)
        t = runs[0].t
        assert t == part * PULLS // 5
        assert np.array_equal(arms[0], arms[1])
        s = runs[1].memory()
        s["arms.sums"] = np.array(exact_sums(world, arms[1][:t], noise[:t], s["origin"].tolist()), dtype=float)
        s["guess.since_summed"] = 2**40  # the engine then sums up all the rest anew
        runs[1].restore(s)


def croc_arms(far: float, pulls: int) -> tuple[CrocRun, Any]:
    """A CROC run at a level that it does not reach, and its arms."""
    labels, centers, *_ = WORLDS["separated"]
    run, rng = CrocRun(labels.size, centers.shape[0], centers.shape[1], NEVER), np.random.default_rng(3)
    run.play(labels.size, centers + far, labels, rng)
    arms = [np.arange(labels.size)]
    while run.t < pulls:
        arms.append(run.planned())
        assert arms[-1].size > 0
        run.play(arms[-1].size, centers + far, labels, rng)
    return run, np.concatenate(arms)


def test_croc_far_from_zero() -> None:
    """Positions are relative to the first result: 10⁶ leaves no trace in sums and tests, and the arms are the same."""
    (far, its_arms), (near, arms) = (croc_arms(shift, 100_000) for shift in (FAR, 0.0))
    assert np.array_equal(its_arms, arms)
    assert np.array_equal(far.pulls, np.bincount(its_arms))
    assert far.round == near.round > 1000
    off = np.abs(far.sums - near.sums) / far.pulls[:, None]
    assert max(off.max(), np.abs(far.positions - near.positions).max()) < 1e-9  # of a gap of 1
    for name in ("against_group", "against_core"):
        its, mine = (getattr(run.frozen(0), name) for run in (far, near))
        weight, found, exact = mine.weight, its.kept, mine.kept
        used = weight > 0
        assert used.any()
        error = np.abs(found - exact)[used] / weight[used][:, None]
        assert error.max() < 1e-9  # of a gap of 1; a result at 10⁶ is itself known to 6·10⁻¹¹
