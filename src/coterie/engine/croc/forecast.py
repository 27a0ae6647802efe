"""What the pairs from the start would still cost, or a fresh freeze; and the greedy pull for the pairs.

Forecasts use the evidence's own counts, n = min(N_i, ⌊N_j/R⌋), from the arm's mean and the groups' centers. They decide
where to pull; nothing here enters the proof. Costs are in units of the cheapest arm: pulls, if all arms cost the same.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.engine.compiled import compiled, compiled_sum
from coterie.engine.croc.epochs import next_level
from coterie.engine.croc.factors import pulls_needed
from coterie.engine.croc.state import (
    BLOCK_RATIOS,
    BOUND_TRUST,
    CANDIDATES,
    DOUBLINGS,
    LOG_RATIO_WEIGHTS,
    PAIR_LEVEL,
    PRICED,
    Croc,
    Work,
)
from coterie.engine.state import Floats, Ints
from coterie.engine.vectors import squared_distance

STEPS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
"""More pulls of an arm that forecasts look at."""
LEAD_LEVELS = 8
"""Levels 1, 2, 4, … that forecasts raise all representatives to."""
FORECAST_LOSS = 1.0
"""Mixing over scales loses about this much of the log-evidence."""
FREEZE_FACTOR = 1.15
"""A freeze needs about this many times the pulls that the gap of two centers asks for."""
FREEZE_LEAST_GAP = 0.25
"""The share of a squared gap of centers that counts in any case, after what noise adds to it was taken off."""
FREEZE_LEAST_PULLS, FREEZE_GROUP_PULLS = 1.5, 0.5
"""Pulls of an arm with an unsettled pair, at least; and further ones of its group."""
LEAST_DEFICIT = 0.2
"""A pair lacks at least this much, so that no gain counts without measure."""
LOOK_AHEAD = 3
"""Up to so many more pulls of an arm are looked at: with block ratios, a single one may gain nothing."""
TOGETHER_SHARE = 0.25
"""What raising two representatives together counts for each of them."""


@compiled_sum
def _geometry(s: Croc, m: int, k: int) -> tuple[float, float, float]:
    """How an arm lies to group k: ‖x̄_m − Û_k‖², (x̄_m − Û_k)·(Û_l − Û_k), ‖Û_l − Û_k‖², l the arm's own group."""
    away, along, apart = 0.0, 0.0, 0.0
    home = s.labels[m]
    for q in range(s.means.shape[1]):
        x = s.means[m, q] - s.centers[k, q]
        u = s.centers[home, q] - s.centers[k, q]
        away += x * x
        along += x * u
        apart += u * u
    return away, along, apart


@compiled
def _expected(shape: tuple[float, float, float], dim: int, now: int, arm: int, other: int, trust: float) -> float:
    """Forecast of the pair evidence with `arm` ≥ `now` pulls of the arm and `other` of the representative.

    `shape`: how the arm lies to the representative's group; `trust`: the share of the energy that counts.
    """
    more = arm - now
    apart = (now * now * shape[0] + 2.0 * now * more * shape[1] + more * more * shape[2] + dim * more) / (arm * arm)
    best = -math.inf
    for side in range(2):
        for r in range(BLOCK_RATIOS.size):
            ratio = BLOCK_RATIOS[r]
            n = min(arm, other // ratio) if side == 0 else min(other, arm // ratio)
            if n == 0:
                break
            energy = apart - dim / arm + dim / n + dim / (n * ratio)
            energy *= n * ratio / (ratio + 1.0) * trust
            if energy > dim:
                value = 0.5 * (energy - dim) - 0.5 * dim * math.log(energy / dim) - FORECAST_LOSS + LOG_RATIO_WEIGHTS[r]
                best = max(best, value)
    return best


@compiled
def pulls_for_pairs(s: Croc, w: Work, limit: float) -> float:
    """What the pairs from the start still cost, over levels of the representatives; inf if over `limit`."""
    if not math.isfinite(s.numbers[PAIR_LEVEL]):
        return math.inf
    dim, n_groups, trust = s.sums.shape[1], s.totals.size, s.numbers[BOUND_TRUST]
    best = limit
    level = 1
    for _ in range(LEAD_LEVELS):
        cost = 0.0
        for k in range(n_groups):
            for m in range(s.labels.size):
                if s.labels[m] != k and s.settled[m, k] == 0:
                    cost += max(0, level - s.pulls[s.representative[k]]) * s.price[s.representative[k]]
                    break
        for m in range(s.labels.size):
            if cost >= best:
                break
            home = s.labels[m]
            leads = s.representative[home] == m
            step = 0
            for k in range(n_groups):
                if k == home or s.settled[m, k] == 1:
                    continue
                shape = _geometry(s, m, k)
                other = max(level, s.pulls[s.representative[k]])
                if leads:
                    if _expected(shape, dim, s.pulls[m], max(level, s.pulls[m]), other, trust) < s.numbers[PAIR_LEVEL]:
                        cost = math.inf
                else:
                    while step < STEPS.size and (
                        _expected(shape, dim, s.pulls[m], s.pulls[m] + STEPS[step], other, trust)
                        < s.numbers[PAIR_LEVEL]
                    ):
                        step += 1
                if step == STEPS.size:
                    cost = math.inf
                if cost >= best:
                    break
            if step < STEPS.size:
                cost += STEPS[step] * s.price[m]
        best = min(best, cost)
        level *= 2
    return best if best < limit else math.inf


@compiled
def pulls_for_freeze(s: Croc, w: Work) -> float:
    """What a freeze of the present labels would cost."""
    n_groups, dim = s.centers.shape
    level = next_level(s)
    reach, touched = w.square, w.names
    for k in range(n_groups):
        for j in range(n_groups):
            if j == k:
                continue
            gap = squared_distance(s.centers, k, s.centers, j)
            sure = gap - dim * (1.0 / s.totals[k] + 1.0 / s.totals[j])
            reach[k, j] = pulls_needed(w, level, max(sure, FREEZE_LEAST_GAP * gap, 1e-300), float(s.sizes[k]), dim)
    total = 0.0
    for k in range(n_groups):
        touched[k] = 0
    for m in range(s.labels.size):
        home, worst = s.labels[m], 0.0
        for k in range(n_groups):
            if k != home and s.settled[m, k] == 0:
                worst = max(worst, reach[k, home])
        if worst > 0.0:
            total += max(FREEZE_LEAST_PULLS, worst * FREEZE_FACTOR) * s.price[m]
            touched[home] = 1
    for k in range(n_groups):
        total += FREEZE_GROUP_PULLS * touched[k] * s.price[s.representative[k]]
    return float(total)


@compiled
def _by_price(s: Croc, gains: Floats) -> None:
    """Gains of candidates and representatives for what a pull costs. INOUT: gains."""
    for c in range(s.ints[CANDIDATES]):
        m = s.candidates[c]
        if s.representative[s.labels[m]] != m:
            gains[m] /= s.price[m]
    for k in range(s.totals.size):
        gains[s.representative[k]] /= s.price[s.representative[k]]


@compiled
def greedy_gains(s: Croc, w: Work) -> int:
    """Forecast gain of a pull, Σ min(deficit, gain)/deficit over unmet pairs of s.candidates.

    OUT: w.gains of the candidates and the representatives, for what a pull of them costs. Returns the unmet pairs.
    """
    dim, n_groups, trust = s.sums.shape[1], s.totals.size, s.numbers[BOUND_TRUST]
    lead_gain, gains = w.lead_gain, w.gains
    for k in range(n_groups):
        for i in range(DOUBLINGS):
            lead_gain[k, i] = 0.0
    unmet = 0
    for c in range(s.ints[CANDIDATES]):
        m = s.candidates[c]
        gains[m] = 0.0
        home = s.labels[m]
        for k in range(n_groups):
            if k == home or s.settled[m, k] == 1:
                continue
            unmet += 1
            lead = s.representative[k]
            n_now, n_arm, n_lead = s.pulls[m], s.committed[m], s.committed[lead]
            shape = _geometry(s, m, k)
            deficit = s.numbers[PAIR_LEVEL] - s.evidence[m, k]
            now = _expected(shape, dim, n_now, n_arm, n_lead, trust)
            if n_arm > n_now or n_lead > s.pulls[lead]:  # what is under way
                deficit -= max(now - _expected(shape, dim, n_now, n_now, s.pulls[lead], trust), 0.0)
            deficit = max(deficit, LEAST_DEFICIT)
            leads = s.representative[home] == m
            if not leads:
                for more in range(1, LOOK_AHEAD + 1):
                    gain = (
                        min(_expected(shape, dim, n_now, n_arm + more, n_lead, trust) - now, deficit) / deficit / more
                    )
                    if gain > 0.0:
                        gains[m] += gain
                        break
            more = 1
            for i in range(DOUBLINGS):
                gain = min(_expected(shape, dim, n_now, n_arm, n_lead + more, trust) - now, deficit) / deficit
                if gain > 0.0:
                    lead_gain[k, i] += gain / more
                if leads:  # both are representatives: raise them together
                    gain = (
                        min(_expected(shape, dim, n_now, n_arm + more, n_lead + more, trust) - now, deficit) / deficit
                    )
                    if gain > 0.0:
                        lead_gain[k, i] += TOGETHER_SHARE * gain / more
                        lead_gain[home, i] += TOGETHER_SHARE * gain / more
                more *= 2
    for k in range(n_groups):
        best = 0.0
        for i in range(DOUBLINGS):
            best = max(best, lead_gain[k, i])
        gains[s.representative[k]] = best
    if s.ints[PRICED] == 1:
        _by_price(s, gains)
    return unmet


@compiled
def _sink(heap: Ints, gains: Floats, size: int, place: int) -> None:
    """Sink the arm at `place` of a heap with the largest gain, then the lowest index, on top. INOUT: heap."""
    arm = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size:
            a, b = heap[child], heap[child + 1]
            if gains[b] > gains[a] or (gains[b] == gains[a] and b < a):
                child += 1
        other = heap[child]
        if gains[arm] > gains[other] or (gains[arm] == gains[other] and arm < other):
            break
        heap[place] = other
        place = child
    heap[place] = arm


@compiled
def best_gains(s: Croc, w: Work, wanted: int) -> int:
    """Of candidates and representatives, those with the largest gains, at most `wanted`.

    OUT: the front of w.chosen, best first. Returns how many. Work space: w.members.
    """
    heap, size = w.members, 0
    for c in range(s.ints[CANDIDATES]):
        m = s.candidates[c]
        if w.gains[m] > 0.0 and s.representative[s.labels[m]] != m:
            heap[size] = m
            size += 1
    for k in range(s.totals.size):
        m = s.representative[k]
        if w.gains[m] > 0.0:
            heap[size] = m
            size += 1
    for place in range(size // 2, -1, -1):
        if place < size:
            _sink(heap, w.gains, size, place)
    count = min(wanted, size)
    for i in range(count):
        w.chosen[i] = heap[0]
        size -= 1
        heap[0] = heap[size]
        if size > 0:
            _sink(heap, w.gains, size, 0)
    return count
