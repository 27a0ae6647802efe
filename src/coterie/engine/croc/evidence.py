"""Evidence that two arms, or an arm and a pool, differ; logarithms, on the state's arrays (docs/CROC.md, 2 and 4).

The same formulas, one small function each and without a state, are in `coterie.theory.evidence`.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import (
    BLOCK_RATIOS,
    LOG_RATIO_WEIGHTS,
    LOG_SCALE_WEIGHTS,
    PAIR_LEVEL,
    SCALES,
    Croc,
)
from coterie.engine.state import Floats


@compiled
def mixture(n: float, energy: float, dim: int) -> float:
    """log of the mean over ρ of (1+ρn)^(−d/2)·exp(½·ρn/(1+ρn)·energy), energy = n‖Ȳ‖²/v."""
    largest = -math.inf
    for i in range(SCALES.size):
        rho = SCALES[i] * n
        value = LOG_SCALE_WEIGHTS[i] - 0.5 * dim * math.log1p(rho) + 0.5 * rho / (1.0 + rho) * energy
        largest = max(largest, value)
    total = 0.0
    for i in range(SCALES.size):
        rho = SCALES[i] * n
        value = LOG_SCALE_WEIGHTS[i] - 0.5 * dim * math.log1p(rho) + 0.5 * rho / (1.0 + rho) * energy
        total += math.exp(value - largest)
    return largest + math.log(total)


@compiled
def pair_evidence_at(s: Croc, i: int, j: int, pulls_i: int, pulls_j: int) -> float:
    """Evidence from the start that arms i and j differ, at these counts: weighted maximum over block ratio and side."""
    dim = s.sums.shape[1]
    room = s.prefixes.shape[1] - 1
    best = -math.inf
    for side in range(2):
        a, n_a, b, n_b = i, min(pulls_i, room), j, min(pulls_j, room)
        if side == 1:
            a, n_a, b, n_b = b, n_b, a, n_a
        for r in range(BLOCK_RATIOS.size):
            if r == 0 and side == 1:
                continue
            ratio = BLOCK_RATIOS[r]
            n = min(n_a, n_b // ratio)
            if n == 0:
                break
            energy = 0.0
            for q in range(dim):
                gap = s.prefixes[a, n, q] / n - s.prefixes[b, n * ratio, q] / (n * ratio)
                energy += gap * gap
            energy *= n * ratio / (ratio + 1.0)  # n‖Ȳ‖²/v with v = 1 + 1/R
            if 0.5 * energy + LOG_RATIO_WEIGHTS[r] > best:  # no mixture exceeds exp(½·energy)
                best = max(best, mixture(float(n), energy, dim) + LOG_RATIO_WEIGHTS[r])
    return best


@compiled
def directed(weight: float, total: Floats, centers: Floats, home: int, k: int, spread: float) -> float:
    """log E of a frozen test: n = weight, S = total, θ0 = Û_home − Û_k, τ² = spread (docs/CROC.md, section 4)."""
    before, after = 0.0, 0.0
    for q in range(total.size):
        theta = centers[home, q] - centers[k, q]
        before += theta * theta
        moved = theta + spread * total[q]
        after += moved * moved
    growth = 1.0 + weight * spread
    return -0.5 * total.size * math.log(growth) + (after / growth - before) / (2.0 * spread)


@compiled
def test_pair(s: Croc, m: int, k: int) -> None:
    """Latch arm m against the representative of k if the evidence from the start suffices. INOUT: settled, evidence."""
    if s.settled[m, k] == 1:
        return
    r = s.representative[k]
    value = pair_evidence_at(s, m, r, s.pulls[m], s.pulls[r])
    if value > s.evidence[m, k]:
        s.evidence[m, k] = value
        s.settled_pulls[m, k, 0] = s.pulls[m]
        s.settled_pulls[m, k, 1] = s.pulls[r]
    if value >= s.numbers[PAIR_LEVEL]:
        s.settled[m, k] = 1
