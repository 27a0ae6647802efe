"""Evidence is handed in: families from outside the engine, Python functions or C functions, run in the same planner."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import handed_in_families as families
import numpy as np
import pytest

from coterie import Instance, same_partition
from coterie._native import CrocFamily
from coterie.methods.croc.run import CrocRun
from coterie.methods.family import Family

PLANE = Instance([0, 0, 1, 1, 1, 2, 2, 0], [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
CLOSE = Instance([0, 0, 0, 1, 1, 1, 1, 1, 1], [[0.0, 0.0, 0.0], [1.2, 0.6, 0.0]])
FAR = Instance([0, 0, 0, 1, 1, 1], [[0.0, 3e5], [2.0, 3e5]])
LONE = Instance([0] * 7 + [1, 2], [[0.0], [2.5], [5.0]])


def played(instance: Instance, family: CrocFamily, log_inverse_delta: float, seed: int, most: int = 20_000) -> CrocRun:
    run = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, log_inverse_delta, family)
    run.play(most, instance.centers, instance.labels, np.random.default_rng(seed))
    return run


@pytest.mark.parametrize(
    "make",
    [families.known_handed_in, families.known_by_address, families.known_by_numba],
    ids=["python", "address", "numba"],
)
@pytest.mark.parametrize("instance", [PLANE, CLOSE, FAR, LONE], ids=["plane", "close", "far", "lone"])
@pytest.mark.parametrize("log_inverse_delta", [2.3, 25.0])
def test_known_covariance_handed_in_equals_the_one_built_in(
    instance: Instance, log_inverse_delta: float, make: Callable[[], Family]
) -> None:
    rounds = 0
    for seed in range(4):
        one = played(instance, CrocFamily.known(), log_inverse_delta, seed)
        other = played(instance, make(), log_inverse_delta, seed)
        assert one.done
        rounds += one.round
        mine, its = one.memory(), other.memory()
        assert mine.keys() == its.keys()
        for name in mine:
            if name.endswith(".kept"):  # a handed-in family keeps the last log E beside what it keeps
                assert np.array_equal(mine[name], its[name][..., :-1]), name
            else:
                assert np.array_equal(mine[name], its[name]), name
    assert rounds > 0


@pytest.mark.parametrize("instance", [PLANE, CLOSE, LONE], ids=["plane", "close", "lone"])
@pytest.mark.parametrize("name", ["at_most", "exchangeable"])
def test_other_families_prove_the_groups(instance: Instance, name: str) -> None:
    """No pair from the start takes part, and all of δ is for the frozen tests."""
    made = families.at_most() if name == "at_most" else families.exchangeable(instance.n_clusters, instance.dim)
    run = played(instance, made, -math.log(0.05), seed=3)
    assert run.done
    assert not run.by_pairs
    assert run.round > 0
    assert same_partition(run.labels, instance.labels)
    assert run.pair_level == math.inf
    assert not run.settled.any()
    epoch = run.frozen(run.epoch)
    assert epoch.level == pytest.approx(-math.log(0.05 * 0.8 * 0.2**epoch.number))


def _noting(
    contrast: Any, guess: Any, arm_scores: Any, pool_scores: Any, bet: Any, shared: Any, learned: Any, kept: Any,
    parameters: Any, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float, share: float,
    home: int, k: int,
) -> float:  # fmt: skip
    """Keep what was handed over: n twice, τ², ‖θ0‖², the groups, and the contrast times 1/v; prove nothing."""
    kept[0] = weight
    kept[1] += 1.0 / (1.0 / arm_pulls + 1.0 / pool_pulls)
    kept[2] = spread
    kept[3] = 0.0
    for q in range(guess.size):
        kept[3] += guess[q] * guess[q]
        kept[6 + q] += contrast[q] / (1.0 / arm_pulls + 1.0 / pool_pulls)
    kept[4], kept[5] = home, k
    return -math.inf


def test_factor_is_handed_the_round_and_the_freeze() -> None:
    run = played(PLANE, Family("noting", 0.0, factor=_noting, kept=8), 2.3, seed=0, most=400)
    assert not run.done
    assert run.round > 5
    seen = 0
    for number in range(max(run.freezes - run.n_epochs, 0), run.freezes):
        epoch = run.frozen(number % run.n_epochs)
        totals, tests = 1.0 / epoch.totals, epoch.against_core
        for m, k in np.argwhere(tests.weight > 0.0):
            home, kept = epoch.labels[m], tests.kept[m, k]
            assert kept[0] == tests.weight[m, k] == pytest.approx(kept[1])
            assert kept[2] == pytest.approx(totals[home] + totals[k])
            assert kept[3] == pytest.approx(((epoch.centers[home] - epoch.centers[k]) ** 2).sum())
            assert kept[4:6].tolist() == [home, k]
            found, true = kept[6:8] / kept[0], PLANE.means[m] - PLANE.centers[PLANE.labels[epoch.core[4 * k]]]
            assert np.abs(found - true).max() < 6.0 / math.sqrt(kept[0])
            seen += 1
    assert seen > 0


def _raising(*handed: Any) -> float:
    raise LookupError("no such table of quantiles")


def test_a_kernel_that_raises_is_heard_and_its_run_is_over() -> None:
    broken = Family("raising", 0.0, kept=1, factor=_raising)
    run = CrocRun(8, 3, 2, 2.3, broken)
    rng = np.random.default_rng(0)
    with pytest.raises(LookupError, match="no such table of quantiles"):
        run.play(20_000, PLANE.centers, PLANE.labels, rng)
    for step in (run.pop, run.look, lambda: run.play(1, PLANE.centers, PLANE.labels, rng), lambda: run.give_up(0, 0)):
        with pytest.raises(RuntimeError, match="broke off in the middle of a step"):
            step()
    assert played(PLANE, families.at_most(), 2.3, seed=0).done  # others go on


@pytest.mark.parametrize("answer", [None, "much", [1.0, 2.0]])
def test_a_factor_that_returns_no_number_is_refused(answer: Any) -> None:
    with pytest.raises(TypeError, match="the kernel 'factor' of the family 'odd' must return a number, got"):
        played(PLANE, Family("odd", 0.0, kept=1, factor=lambda *handed: answer), 2.3, seed=0)


def test_what_is_handed_over_cannot_be_changed_and_may_be_kept() -> None:
    """Arrays not marked OUT are read-only; a kernel that keeps one keeps a copy, whatever becomes of the run."""
    held: list[Any] = []

    def keeping(*handed: Any) -> float:
        held.extend(handed[:9])
        return -math.inf

    played(PLANE, Family("keeping", 0.0, kept=1, parameters=(1.0, 2.0), factor=keeping), 2.3, seed=0, most=100)
    assert len(held) > 9
    assert held[8].tolist() == [1.0, 2.0]
    assert [each.flags.writeable for each in held[:9]] == [False] * 6 + [True, True, False]
    assert all(np.isfinite(contrast).all() for contrast in held[::9])

    def writing(contrast: Any, *others: Any) -> float:
        contrast[0] = 1.0
        return 0.0

    with pytest.raises(ValueError, match="read-only"):
        played(PLANE, Family("writing", 0.0, kept=1, factor=writing), 2.3, seed=0)


def test_runs_in_several_threads_share_a_family() -> None:
    family, found = families.exchangeable(3, 2), {}

    def play(seed: int) -> None:
        found[seed] = played(PLANE, family, 2.3, seed).t

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {seed: played(PLANE, family, 2.3, seed).t for seed in range(4)}


def test_a_family_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pair_share must lie in \[0, 1\), got 1.0"):
        Family("all for the pairs", 1.0)
    with pytest.raises(ValueError, match="'half' needs both a kernel 'score' and room for it, or neither"):
        Family("half", 0.0, scores=2)
    with pytest.raises(ValueError, match="'idle' keeps 3 numbers a test, but has no kernel 'factor'"):
        Family("idle", 0.0, kept=3)
    with pytest.raises(TypeError, match="'factor' must be a function, or the address of a C function, got str"):
        Family("spelled", 0.0, kept=1, factor="log")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the address of the kernel 'factor' must not be 0"):
        Family("nowhere", 0.0, kept=1, factor=0)
    with pytest.raises(ValueError, match="metric_shape must be 'full', 'diagonal' or 'scalar', got 'round'"):
        Family("shapeless", 0.0, metric_shape="round")
