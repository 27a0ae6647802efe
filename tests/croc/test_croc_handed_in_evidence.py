"""Evidence is handed in: families from outside the engine run in the same compiled planner."""

from __future__ import annotations

import importlib.util
import math
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import handed_in_families as families
import numba
import numpy as np
import pytest

from coterie import Instance, same_partition
from coterie.engine.compiled import Kernel
from coterie.engine.croc.family import FACTOR_SIGNATURE, Family
from coterie.engine.croc.run import CrocRun, load
from coterie.engine.croc.state import EPOCHS, KNOWN_COVARIANCE

_config: Any = numba.config
JIT_OFF = bool(_config.DISABLE_JIT)

PLANE = Instance([0, 0, 1, 1, 1, 2, 2, 0], [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
CLOSE = Instance([0, 0, 0, 1, 1, 1, 1, 1, 1], [[0.0, 0.0, 0.0], [1.2, 0.6, 0.0]])
FAR = Instance([0, 0, 0, 1, 1, 1], [[0.0, 3e5], [2.0, 3e5]])
LONE = Instance([0] * 7 + [1, 2], [[0.0], [2.5], [5.0]])


def played(instance: Instance, family: Family, log_inverse_delta: float, seed: int, most: int = 20_000) -> CrocRun:
    run = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, log_inverse_delta, family)
    run.play(most, instance.centers, instance.labels, np.random.default_rng(seed))
    return run


@pytest.mark.parametrize("instance", [PLANE, CLOSE, FAR, LONE], ids=["plane", "close", "far", "lone"])
@pytest.mark.parametrize("log_inverse_delta", [2.3, 25.0])
def test_known_covariance_handed_in_equals_the_one_compiled_in(instance: Instance, log_inverse_delta: float) -> None:
    rounds = 0
    for seed in range(4):
        one = played(instance, KNOWN_COVARIANCE, log_inverse_delta, seed)
        other = played(instance, families.known_handed_in(), log_inverse_delta, seed)
        assert one.done
        rounds += one.round
        for name, mine, its in zip(one.state._fields, one.state, other.state, strict=True):
            if name.startswith("sum_"):  # a handed-in family keeps the last log E beside what it keeps
                assert np.array_equal(np.asarray(mine), np.asarray(its)[..., :-1]), name
                continue
            assert np.array_equal(np.asarray(mine), np.asarray(its)), name
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
    assert same_partition(run.state.labels, instance.labels)
    assert run.pair_level == math.inf
    assert not run.state.settled.any()
    epoch = run.epoch
    assert run.state.level[epoch] == pytest.approx(-math.log(0.05 * 0.8 * 0.2 ** run.state.frozen_number[epoch]))


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
    noting = Kernel(_noting, FACTOR_SIGNATURE)
    run = played(PLANE, Family("noting", 0.0, factor=noting, kept=8), 2.3, seed=0, most=400)
    s = run.state
    assert not run.done
    assert run.round > 5
    slots = [number % EPOCHS for number in range(max(run.freezes - EPOCHS, 0), run.freezes)]
    for e in slots:
        totals = 1.0 / s.frozen_totals[e]
        for m, k in np.argwhere(s.weight_core[e] > 0.0):
            home, kept = s.frozen[e, m], s.sum_core[e, m, k]
            assert kept[0] == s.weight_core[e, m, k] == pytest.approx(kept[1])
            assert kept[2] == pytest.approx(totals[home] + totals[k])
            assert kept[3] == pytest.approx(((s.frozen_centers[e, home] - s.frozen_centers[e, k]) ** 2).sum())
            assert kept[4:6].tolist() == [home, k]
            found, true = kept[6:8] / kept[0], PLANE.means[m] - PLANE.centers[PLANE.labels[s.core[e, 4 * k]]]
            assert np.abs(found - true).max() < 6.0 / math.sqrt(kept[0])


def _fresh_copy(folder: Path) -> ModuleType:
    """The families once more, from a file that numba has never seen."""
    path = folder / "families_never_seen.py"
    path.write_text(Path(families.__file__).read_text())
    spec = importlib.util.spec_from_file_location("families_never_seen", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(JIT_OFF, reason="nothing is compiled")
def test_first_use_of_a_family_compiles_its_kernels_only(tmp_path: Path) -> None:
    played(PLANE, KNOWN_COVARIANCE, 2.3, seed=0)
    drive = load().drive
    before = list(drive.signatures)
    start = time.process_time()
    other = _fresh_copy(tmp_path).exchangeable(3, 2)
    assert played(PLANE, other, 2.3, seed=0).done
    assert time.process_time() - start < 10.0
    assert drive.signatures == before
    assert len(before) == 1


def test_a_family_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pair_share must lie in \[0, 1\), got 1.0"):
        Family("all for the pairs", 1.0)
    with pytest.raises(ValueError, match="'half' needs both a kernel 'score' and room for it, or neither"):
        Family("half", 0.0, scores=2)
    with pytest.raises(ValueError, match="'idle' keeps 3 numbers a test, but has no kernel 'factor'"):
        Family("idle", 0.0, kept=3)
