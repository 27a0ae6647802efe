"""Families of evidence from outside the engine, as `coterie.methods.family` describes them.

- `known_handed_in`: the known covariance once more;
- `known_by_address`, `known_by_numba`: … as C functions, called by their address; ctypes or numba makes them;
- `at_most`: equal means only, covariance at most V = I: e_r = (1 + x + x²/2)/(1 + w/2), and no pairs from the start;
- `exchangeable`: results of equal arms have the same law, whatever it is; one score for every two groups.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from functools import cache
from typing import Any

import numpy as np

from coterie.methods.croc.run import ALPHA
from coterie.methods.family import Family

Array = Any

CLIP = 6.0


def _known_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    """docs/CROC.md, section 4: the prior N(θ0, τ²·I), multiplied out."""
    v = 1.0 / arm_pulls + 1.0 / pool_pulls
    square, along, length = 0.0, 0.0, 0.0
    for q in range(contrast.size):
        kept[q] += contrast[q] / v
        square += guess[q] * guess[q]
        along += guess[q] * kept[q]
        length += kept[q] * kept[q]
    growth = 1.0 + weight * spread
    gain = 2.0 * along + spread * length - weight * square
    return float(gain / (2.0 * growth) - 0.5 * contrast.size * math.log(growth))


def _known_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    return 2.0 * (level + 0.3 * dim) / square


def _at_most_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    """E x = 0 and E x² ≤ w for equal means and a covariance of at most I, whatever the law. parameters: c."""
    v = 1.0 / arm_pulls + 1.0 / pool_pulls
    x, w = 0.0, 0.0
    for q in range(contrast.size):
        x += parameters[0] * guess[q] * contrast[q] / v
        w += parameters[0] * parameters[0] * guess[q] * guess[q] / v
    kept[0] += math.log((1.0 + x + 0.5 * x * x) / (1.0 + 0.5 * w))
    return float(kept[0])


def _at_most_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    scaled = parameters[0] * square
    growth = math.log((1.0 + scaled + 0.5 * scaled * scaled) / (1.0 + 0.5 * parameters[0] * scaled))
    return level / max(growth, 1e-300)


def _exchangeable_bet(
    centers: Array, totals: Array, metric: Array, learned: Array, parameters: Array, bet: Array
) -> None:
    """Û of all groups: a score's direction and middle come from two of them."""
    for k in range(totals.size):
        for q in range(centers.shape[1]):
            bet[k * centers.shape[1] + q] = centers[k, q]


def _exchangeable_score(
    position: Array, bet: Array, shared: Array, parameters: Array, scores: Array, round_scores: Array, home: int
) -> None:
    """g of a result in every test that it can be in: as the arm's against k, and as the pool's for an arm of k."""
    dim = position.size
    n_groups = bet.size // dim
    for k in range(n_groups):
        along = 0.0
        for q in range(dim):
            mine, its = bet[home * dim + q], bet[k * dim + q]
            along += (mine - its) * (position[q] - 0.5 * (mine + its))
        along = min(max(along, -CLIP), CLIP)
        scores[k] += math.exp(along)
        scores[n_groups + k] += math.exp(-along)


def _exchangeable_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    """The mean of g over the arm's results, by its mean over all of both sides."""
    n_groups = pool_scores.size // 2
    mine, its = arm_scores[k], pool_scores[n_groups + home]
    kept[0] += math.log(mine / arm_pulls) - math.log((mine + its) / (arm_pulls + pool_pulls))
    return float(kept[0])


def _exchangeable_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    q = 1.0 / (1.0 + max(pool, 1.0))
    return level / max(-math.log(q + (1.0 - q) * math.exp(-0.5 * square)), 1e-300)


_Floats, _Float, _Int = ctypes.POINTER(ctypes.c_double), ctypes.c_double, ctypes.c_int64


@ctypes.CFUNCTYPE(_Float, *[_Floats] * 9, _Int, *[_Float] * 6, _Int, _Int)  # type: ignore[untyped-decorator]
def _known_factor_in_c(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, dim: int, arm_pulls: float, pool_pulls: float, spread: float, weight: float,
    level: float, share: float, home: int, k: int,
) -> float:  # fmt: skip
    """The same on pointers; nothing that this family has no room for is read."""
    total = np.ctypeslib.as_array(kept, (dim + 1,))
    handed = (np.ctypeslib.as_array(contrast, (dim,)), np.ctypeslib.as_array(guess, (dim,)))
    numbers: Any = (arm_pulls, pool_pulls, spread, weight, level, share, home, k)
    return _known_factor(*handed, None, None, None, None, None, total, None, *numbers)


@ctypes.CFUNCTYPE(_Float, _Floats, _Float, _Float, _Float, _Int)  # type: ignore[untyped-decorator]
def _known_pulls_in_c(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    return _known_pulls(None, level, square, pool, dim)


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def known_handed_in() -> Family:
    return Family("known covariance, handed in", pair_share=ALPHA, factor=_known_factor, pulls_needed=_known_pulls)


def known_by_address() -> Family:
    factor, pulls = _address(_known_factor_in_c), _address(_known_pulls_in_c)
    return Family("known covariance, by address", pair_share=ALPHA, factor=factor, pulls_needed=pulls)


def known_by_numba() -> Family:
    """The same as functions that numba's documented `cfunc` compiles, by their addresses."""
    factor, pulls_needed = _compiled_by_numba()
    return Family("known, by numba", pair_share=ALPHA, factor=factor.address, pulls_needed=pulls_needed.address)


@cache  # compiled once, and kept: an address holds nothing
def _compiled_by_numba() -> tuple[Any, Any]:
    numba: Any = importlib.import_module("numba")
    float64, int64, floats = numba.types.float64, numba.types.int64, numba.types.CPointer(numba.types.float64)
    known_factor, carray = numba.njit(_known_factor), numba.carray

    @numba.cfunc(float64(*[floats] * 9, int64, *[float64] * 6, int64, int64))  # type: ignore[untyped-decorator]
    def factor(
        contrast: Any, guess: Any, arm_scores: Any, pool_scores: Any, bet: Any, shared: Any, learned: Any, kept: Any,
        parameters: Any, dim: Any, arm_pulls: Any, pool_pulls: Any, spread: Any, weight: Any, level: Any, share: Any,
        home: Any, k: Any,
    ) -> Any:  # fmt: skip
        none = carray(contrast, 0)
        own, frozen, total = carray(contrast, dim), carray(guess, dim), carray(kept, dim + 1)
        return known_factor(
            own, frozen, none, none, none, none, none, total, none, arm_pulls, pool_pulls, spread, weight, level, share,
            home, k,
        )  # fmt: skip

    @numba.cfunc(float64(floats, float64, float64, float64, int64))  # type: ignore[untyped-decorator]
    def pulls_needed(parameters: Any, level: Any, square: Any, pool: Any, dim: Any) -> Any:
        return 2.0 * (level + 0.3 * dim) / square

    return factor, pulls_needed


def at_most(c: float = 0.5) -> Family:
    return Family(
        "covariance at most I", pair_share=0.0, kept=1, parameters=(c,),
        factor=_at_most_factor, pulls_needed=_at_most_pulls,
    )  # fmt: skip


def exchangeable(n_clusters: int, dim: int) -> Family:
    return Family(
        "any noise", pair_share=0.0, kept=1, bet_size=n_clusters * dim, scores=2 * n_clusters,
        factor=_exchangeable_factor, pulls_needed=_exchangeable_pulls, bet=_exchangeable_bet, score=_exchangeable_score,
    )  # fmt: skip
