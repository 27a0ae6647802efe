"""Evidence that two arms differ, on the log scale: paired, product, and directed. Proofs: docs/CROC.md.

Names and symbols: `x` and `y` are the stacks of two arms in the order in which their results were asked for, one row
each, in units in which the noise is N(0, I); N_i and N_j are their heights. `ratio` is R, `scale` is ρ, `center_gap` is
θ0, `spread` is τ². "Equal" means that both arms have the same mean; a level log(1/a) is what evidence has to reach.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coterie.problem.checks import (
    FloatArray,
    check_count,
    check_positive,
    check_real,
    check_real_array,
    short,
)

#: R, the number of results of one arm that are averaged against one result of the other, and the weights of each R
#: for each arm that can be averaged (R = 1 has only one side): 0.4 + 6·0.1 = 1.
BLOCK_RATIOS = (1, 2, 4, 8)
RATIO_WEIGHTS = (0.4, 0.1, 0.1, 0.1)

#: ρ, from 4³ down to 4⁻⁷, and their weights; these add up to a little less than 1, which is allowed.
SCALES: FloatArray = np.array([4.0**power for power in range(3, -8, -1)])
SCALE_WEIGHTS: FloatArray = np.array([0.08, 0.19, 0.25, 0.25, 0.12] + [0.055 * 0.5**i for i in range(6)])
for _constant in (SCALES, SCALE_WEIGHTS):
    _constant.setflags(write=False)

KINDS = ("paired", "product", "directed")

#: Up to how many results CROC may read every prefix; beyond that only those on a grid (`grid_floor`).
GRID_ROOMS = (8, 16, 32, 64)


def mixture_log(n: Any, energy: Any, dim: int) -> FloatArray:
    """log Σ_ρ p(ρ)·(1+ρn)^(−d/2)·exp(½·ρn/(1+ρn)·energy) with energy = n‖Ȳ_n‖²/v; n and energy may be arrays.

    For independent Y_s ~ N(0, v·I) this is, in n, the logarithm of a non-negative martingale that starts at Σ p <= 1: a
    Gaussian mixture over the mean of Y. By Ville's inequality it ever reaches log(1/a) with probability at most a.
    """
    counts = check_real_array(n, "n")[..., None]
    energies = check_real_array(energy, "energy")[..., None]
    if (counts < 0.0).any() or (energies < 0.0).any():
        raise ValueError(f"n and energy must not be negative, got {short(n)} and {short(energy)}")
    growth = SCALES * counts
    terms = (
        np.log(SCALE_WEIGHTS)
        - 0.5 * check_count(dim, "dim", 1) * np.log1p(growth)
        + 0.5 * growth / (1.0 + growth) * energies  # docs/CROC.md: M_n(ρ)
    )
    return log_sum(terms)


def paired_evidence(x: Any, y: Any, ratio: int) -> float:
    """The evidence of one block ratio: one result of x against the mean of the next R results of y, without its weight.

    Y_s = x_s − mean(y_{(s−1)R+1}, …, y_{sR}) has variance v = 1 + 1/R, and n = min(N_i, ⌊N_j/R⌋) of them can be formed.
    −inf if that is none. If the arms are equal, it reaches log(1/a) for any n with probability at most a, whatever made
    anybody read the two stacks so far.
    """
    first, second = _stacks(x, y)
    return _paired(first, second, check_count(ratio, "ratio", 1))


def _paired(first: FloatArray, second: FloatArray, ratio: int, grid_from: int | None = None) -> float:
    n = min(len(first), len(second) // ratio)
    if grid_from is not None:
        n = grid_floor(n * ratio, grid_from) // ratio
    if n == 0:
        return -math.inf
    # The mean of the blocks' means is the mean of all of them: only two prefixes of the stacks are read.
    gap = first[:n].mean(axis=0) - second[: n * ratio].mean(axis=0)
    variance = 1.0 + 1.0 / ratio
    return float(mixture_log(n, n * float(gap @ gap) / variance, first.shape[1]))


def directed_log(weight: float, total: Any, center_gap: Any, spread: float) -> float:
    """log E of contrasts C_s ~ N(θ, v_s·I) for a guess θ ~ N(θ0, τ²·I): weight is n = Σ 1/v_s, total is S = Σ C_s/v_s.

    θ0, τ² and every v_s must be fixed before the contrasts that they judge are seen. If then C_s, given everything
    before it, has mean 0, E is a non-negative martingale that starts at 1: it ever reaches 1/a with probability at most
    a. Two of them may be multiplied if their arms are disjoint and their contrasts are from the same rounds, each round
    composed before any of its results is seen (docs/CROC.md); paired by stack position they may not.
    """
    n = check_real(weight, "weight")
    if n < 0.0:
        raise ValueError(f"weight is a sum of 1/v and must not be negative, got {n!r}")
    tau2 = check_positive(spread, "spread")
    s, theta = check_real_array(total, "total"), check_real_array(center_gap, "center_gap")
    if s.ndim != 1 or s.size == 0 or s.shape != theta.shape:
        raise ValueError(f"total and center_gap must be two vectors of d numbers, got shapes {s.shape}, {theta.shape}")
    growth = 1.0 + n * tau2
    # [‖θ0+τ²S‖²/(1+nτ²) − ‖θ0‖²]/(2τ²), multiplied out: no digits are lost when τ² is small.
    fit = (2.0 * float(theta @ s) + tau2 * float(s @ s) - n * float(theta @ theta)) / (2.0 * growth)
    return fit - 0.5 * s.size * math.log1p(n * tau2)


def pair_evidence(
    x: Any,
    y: Any,
    kind: str = "paired",
    *,
    prefix_room: int | None = None,
    grid_from: int | None = None,
    center_gap: Any = None,
    spread: float | None = None,
) -> float:
    """The log-evidence that two arms differ.

    If the arms are equal, each kind ever reaches log(1/a) with probability at most a, over all counts at once. They
    differ in what that rests on (docs/CROC.md):

    - "paired": the weighted maximum of `paired_evidence` over R and over which of the arms is averaged. The event
      belongs to the two stacks alone, so no sampling rule, not even a clairvoyant one, can break it. It is not an
      e-process in real time: never average or multiply paired evidence.
    - "product": both arms' mixtures multiplied and minimised over the unknown common mean, averaged over ρ. Any counts,
      twice the degrees of freedom; an e-process for every sampling rule that does not anticipate results.
    - "directed": results paired by position, against a guess of the difference of the means. An event of the two
      stacks, like "paired", and like it not to be averaged or multiplied.

    Parameters
    ----------
    x, y : array-like of shapes (N_i, d) and (N_j, d)
        The results of the two arms in the order in which they were asked for, with unit noise. With known noise other
        than I, give results that `Noise.whiten` has treated.
    kind : {"paired", "product", "directed"}
        See above.
    prefix_room : int, optional
        Of "paired": read only so many results of each arm.
    grid_from : {8, 16, 32, 64}, optional
        Of "paired": read all counts up to so many and then those of `grid_floor`, as CROC does.
    center_gap : array-like of shape (d,), optional
        Of "directed": θ0, the guess of the difference of the means of x and y.
    spread : float, optional
        Of "directed": τ²; the guess is off by N(0, τ²·I). Both must be fixed before the first result is seen.

    Returns
    -------
    float
        −inf if there is nothing to compare.

    Examples
    --------
    >>> import coterie
    >>> x, y = [[0.1], [-0.3], [0.2]], [[5.0], [4.8], [5.3]]
    >>> round(coterie.pair_evidence(x, y), 2)
    14.89
    """
    _check_options(kind, prefix_room, grid_from, center_gap, spread)
    first, second = _stacks(x, y)
    if kind == "product":
        return _product(first, second)
    if kind == "directed":
        n = min(len(first), len(second))
        contrasts = first[:n] - second[:n]
        value = directed_log(n / 2.0, contrasts.sum(axis=0) / 2.0, center_gap, spread)  # type: ignore[arg-type]
        return value if n else -math.inf
    room = None if prefix_room is None else check_count(prefix_room, "prefix_room", 1)
    first, second = first[:room], second[:room]
    best = -math.inf
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True):
        best = max(best, math.log(weight) + _paired(first, second, ratio, grid_from))
        if ratio > 1:  # with one result against one there is only one side
            best = max(best, math.log(weight) + _paired(second, first, ratio, grid_from))
    return best


def _check_options(kind: Any, prefix_room: Any, grid_from: Any, center_gap: Any, spread: Any) -> None:
    """The options of `pair_evidence`: a known kind, and only those that belong to it."""
    if not isinstance(kind, str):
        raise TypeError(f"kind must be one of {', '.join(KINDS)}, got {short(kind)}")
    if kind not in KINDS:
        raise ValueError(f"unknown kind of evidence {kind!r}: choose one of {', '.join(KINDS)}")
    for name, given in (("prefix_room", prefix_room), ("grid_from", grid_from)):
        if kind != "paired" and given is not None:
            raise ValueError(f"{name} is for paired evidence: leave it out for {kind!r}, got {short(given)}")
    if grid_from is not None and check_count(grid_from, "grid_from", 1) not in GRID_ROOMS:
        raise ValueError(f"grid_from must be one of {', '.join(map(str, GRID_ROOMS))}, got {grid_from}")
    if kind != "directed" and (center_gap is not None or spread is not None):
        raise ValueError(f"center_gap and spread are for directed evidence: leave them out for {kind!r}")
    if kind == "directed" and (center_gap is None or spread is None):
        raise ValueError("directed evidence needs center_gap (θ0) and spread (τ²), fixed before the results")


def grid_floor(n: int, room: int) -> int:
    """The largest count up to n that CROC reads: all up to P = `room`, then P·2^j + i·8·2^j; 8 divides all of these."""
    if n <= room:
        return n
    octave = int(n).bit_length() - int(room).bit_length()
    return n - n % (8 << octave)


def _product(first: FloatArray, second: FloatArray) -> float:
    n_i, n_j = len(first), len(second)
    if n_i == 0 or n_j == 0:
        return -math.inf
    gap = first.mean(axis=0) - second.mean(axis=0)
    g_i = SCALES * n_i**2 / (1.0 + SCALES * n_i)
    g_j = SCALES * n_j**2 / (1.0 + SCALES * n_j)
    penalty = 0.5 * gap.size * (np.log1p(SCALES * n_i) + np.log1p(SCALES * n_j))
    # docs/CROC.md, product: the least over the common mean μ, in closed form, for each ρ
    return float(log_sum(np.log(SCALE_WEIGHTS) + 0.5 * g_i * g_j / (g_i + g_j) * float(gap @ gap) - penalty))


def _stacks(x: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    first, second = check_real_array(x, "x"), check_real_array(y, "y")
    for name, stack in (("x", first), ("y", second)):
        if stack.ndim != 2 or stack.shape[1] == 0:
            raise ValueError(f"{name} must hold one result a row, shape (N, d) with d >= 1, got shape {stack.shape}")
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"x and y must have the same dimension, got shapes {first.shape} and {second.shape}")
    return first, second


def log_sum(terms: FloatArray) -> FloatArray:
    """log Σ exp over the last axis."""
    largest = terms.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(terms - largest[..., None]).sum(axis=-1)))
