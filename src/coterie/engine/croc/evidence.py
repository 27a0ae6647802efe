"""Evidence from the start that two arms differ, in units of the noise: logarithms, on the state's arrays.

Proofs are in docs/CROC.md, section 2. `coterie.theory.evidence` has the formulas as small functions without a state.
Families of evidence without pairs from the start have an infinite level: then no pair is evaluated.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled, compiled_sum
from coterie.engine.croc.state import (
    BLOCK_RATIOS,
    BOUNDED_AT,
    CREST_STEP,
    FAR,
    GRID_STEP,
    LOG_RATIO_WEIGHTS,
    PAIR_LEVEL,
    VARIANCE_BOUND,
    Bits,
    Croc,
)
from coterie.engine.state import Floats, Ints


@compiled
def mixture(base: Floats, slope: Floats, n: int, energy: float) -> float:
    """log of the mean over ρ of (1+ρn)^(−d/2)·exp(½·ρn/(1+ρn)·energy), energy = n‖Ȳ‖²/v. `n`: a row of the tables."""
    largest = -math.inf
    for i in range(base.shape[1]):
        largest = max(largest, base[n, i] + slope[n, i] * energy)
    total = 0.0
    for i in range(base.shape[1]):
        value = base[n, i] + slope[n, i] * energy - largest
        if value > -45.0:  # what is left out is far below the last bit
            total += math.exp(value)
    return largest + math.log(total)


@compiled
def _ceiling(crest: Floats, n: int, energy: float, dim: int) -> float:
    """What the mixture does not exceed: it is convex in the energy, so a chord; where no chord is, the sup over ρ."""
    at = energy / CREST_STEP
    if at < crest.shape[1] - 1:
        i = int(at)
        return float(crest[n, i] + (at - i) * (crest[n, i + 1] - crest[n, i]) + 1e-9)
    if energy <= dim:
        return 1e-9
    return 0.5 * (energy - dim) - 0.5 * dim * math.log(energy / dim) + 1e-9


@compiled
def grid_place(n: int, room: int) -> int:
    """The place of the largest count up to n on the grid of counts from P = `room` on; n must be at least P."""
    octave, low = 0, room
    while 2 * low <= n:
        low *= 2
        octave += 1
    return int(octave * (room // GRID_STEP) + (n - low) // (GRID_STEP << octave))


@compiled
def grid_count(place: int, room: int) -> int:
    """The count at a place of the grid."""
    steps = room // GRID_STEP
    return int((room + GRID_STEP * (place % steps)) << (place // steps))


@compiled_sum
def _gap_of_means(first: Floats, a: int, one: float, second: Floats, b: int, other: float) -> float:
    """The squared distance of two means, given by sums and the inverse of their counts."""
    total = 0.0
    for q in range(first.shape[1]):
        gap = first[a, q] * one - second[b, q] * other
        total += gap * gap
    return total


@compiled
def pair_evidence_above(
    prefixes: Floats,
    grid: Floats,
    offset: Floats,
    offset_rest: Floats,
    far: bool,
    precision: Floats,
    base: Floats,
    slope: Floats,
    crest: Floats,
    i: int,
    j: int,
    pulls_i: int,
    pulls_j: int,
    floor: float,
) -> float:
    """Evidence from the start that arms i and j differ, at these counts: weighted maximum over block ratio and side.

    `precision`: 1/σ₊² of each coordinate, empty if positions are in units of the noise.

    Exact if it is above `floor`, which is returned otherwise. Beyond P, the counts are those of the grid. It takes only
    the arrays that it reads, as handing over the whole state would take longer than the work.
    """
    room, dim, places = prefixes.shape[0] - 1, prefixes.shape[2], grid.shape[0]
    best = floor
    for side in range(2):
        a, n_a, b, n_b = i, pulls_i, j, pulls_j
        if side == 1:
            a, n_a, b, n_b = j, pulls_j, i, pulls_i
        for r in range(BLOCK_RATIOS.size):
            if r == 0 and side == 1:
                continue
            ratio = BLOCK_RATIOS[r]
            n = min(n_a, n_b // ratio)
            if n == 0:
                break
            row, its = n, n * ratio
            if its <= room:
                first, second = prefixes[n], prefixes[its]
            else:
                its = min(grid_place(its, room), places - 1)
                n = grid_count(its, room) // ratio  # whole, and on the grid itself if it is above P
                second, row = grid[its], n
                if n > room:
                    mine = grid_place(n, room)
                    first, row = grid[mine], room + 1 + mine
                else:
                    first = prefixes[n]
            one, other = 1.0 / n, 1.0 / (n * ratio)
            energy = 0.0
            if far:
                for q in range(dim):
                    gap = offset[a, q] - offset[b, q] + (offset_rest[a, q] - offset_rest[b, q])
                    gap += first[a, q] * one - second[b, q] * other
                    energy += gap * gap
            elif precision.size > 0:
                for q in range(dim):
                    gap = first[a, q] * one - second[b, q] * other
                    energy += gap * gap * precision[q]
            else:
                energy = _gap_of_means(first, a, one, second, b, other)
            energy *= n * ratio / (ratio + 1.0)  # n‖Ȳ‖²/v with v = 1 + 1/R
            short = best - LOG_RATIO_WEIGHTS[r]
            if 0.5 * energy > short and _ceiling(crest, row, energy, dim) > short:
                best = max(best, mixture(base, slope, row, energy) + LOG_RATIO_WEIGHTS[r])
    return best


@compiled
def pair_evidence_at(s: Croc, i: int, j: int, pulls_i: int, pulls_j: int) -> float:
    """Evidence from the start that arms i and j differ, at these counts; however small it is."""
    far = s.ints[FAR] == 1
    return pair_evidence_above(
        s.prefixes, s.grid, s.offset, s.offset_rest, far, s.precision, s.base, s.slope, s.crest, i, j,
        pulls_i, pulls_j, -math.inf,
    )  # fmt: skip


@compiled
def _test_pair(
    prefixes: Floats,
    grid: Floats,
    offset: Floats,
    offset_rest: Floats,
    far: bool,
    precision: Floats,
    base: Floats,
    slope: Floats,
    crest: Floats,
    pulls: Ints,
    settled: Bits,
    settled_pulls: Ints,
    settled_bound: Ints,
    evidence: Floats,
    m: int,
    k: int,
    lead: int,
    level: float,
    bounded_at: int,
) -> None:
    """Raise the latched evidence of a pair if it has grown; settle it at the level. INOUT: settled*, evidence."""
    value = pair_evidence_above(
        prefixes, grid, offset, offset_rest, far, precision, base, slope, crest, m, lead,
        pulls[m], pulls[lead], evidence[m, k],
    )  # fmt: skip
    if value > evidence[m, k]:
        evidence[m, k] = value
        settled_pulls[m, k, 0] = pulls[m]
        settled_pulls[m, k, 1] = pulls[lead]
        if settled_bound.size > 0:
            settled_bound[m, k] = bounded_at
        if value >= level:
            settled[m, k] = 1


@compiled
def pairs_have_units(ints: Ints) -> bool:
    """Whether the noise is known, or there is an upper bound on its variance."""
    return bool(ints[VARIANCE_BOUND] == 0 or ints[BOUNDED_AT] > 0)


@compiled
def test_pair(s: Croc, m: int, k: int) -> None:
    """Latch arm m against the representative of k if the evidence from the start suffices. INOUT: settled, evidence."""
    if s.settled[m, k] == 0 and s.numbers[PAIR_LEVEL] < math.inf and pairs_have_units(s.ints):
        _test_pair(
            s.prefixes, s.grid, s.offset, s.offset_rest, s.ints[FAR] == 1, s.precision, s.base, s.slope, s.crest,
            s.pulls, s.settled, s.settled_pulls, s.settled_bound, s.evidence, m, k, s.representative[k],
            s.numbers[PAIR_LEVEL], s.ints[BOUNDED_AT],
        )  # fmt: skip
