"""Epochs: a candidate is written down with a level of its own, before the results that will judge it.

Whatever the question is, an epoch is a number j, the time of the freeze, the level b_j and the candidate: labels, and
the number and mean of all results of each group (docs/CROC.md, sections 4 and 6). Which claims it has is the question's
affair, `coterie.engine.croc.claims`.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import (
    EPOCHS,
    FIRST_SHARE,
    FREEZES,
    LOG_FROZEN_SHARE,
    LOG_INVERSE_DELTA,
    Croc,
    T,
)
from coterie.engine.state import Floats, Ints


@compiled
def next_level(s: Croc) -> float:
    """b_j of the epoch that would be frozen next."""
    share = math.log(FIRST_SHARE) + s.ints[FREEZES] * math.log(1.0 - FIRST_SHARE)
    return float(s.numbers[LOG_INVERSE_DELTA] - s.numbers[LOG_FROZEN_SHARE] - share)


@compiled
def open_epoch(s: Croc) -> int:
    """A new epoch for the present labels, without its claims. OUT: one slot of the epochs. Returns it."""
    n_groups, dim = s.centers.shape
    e = s.ints[FREEZES] % EPOCHS
    s.frozen_at[e] = s.ints[T]
    s.frozen_number[e] = s.ints[FREEZES]
    s.level[e] = next_level(s)
    s.ints[FREEZES] += 1
    for k in range(n_groups):
        s.frozen_totals[e, k] = 0.0
        for q in range(dim):
            s.frozen_centers[e, k, q] = 0.0
    for m in range(s.labels.size):  # Û anew, from the origin of the group's representative
        k = s.labels[m]
        s.frozen[e, m] = k
        lead = s.representative[k]
        s.frozen_totals[e, k] += s.pulls[m]
        for q in range(dim):
            away = s.offset[m, q] - s.offset[lead, q] + (s.offset_rest[m, q] - s.offset_rest[lead, q])
            s.frozen_centers[e, k, q] += s.sums[m, q] + s.pulls[m] * away
    for k in range(n_groups):
        for q in range(dim):
            s.frozen_centers[e, k, q] /= s.frozen_totals[e, k]
    return int(e)


@compiled
def find_epoch(s: Croc, name: Ints) -> int:
    """The newest remembered epoch whose candidate is the present partition, -1 if there is none. Work space: name."""
    n_groups = s.totals.size
    for back in range(min(EPOCHS, s.ints[FREEZES])):
        e = (s.ints[FREEZES] - 1 - back) % EPOCHS
        for k in range(n_groups):
            name[k] = -1
        same = True
        for m in range(s.labels.size):
            k = s.labels[m]
            if name[k] < 0:
                name[k] = s.frozen[e, m]
            elif name[k] != s.frozen[e, m]:
                same = False
                break
        for k in range(n_groups):
            for j in range(k):
                same = same and name[k] != name[j]
        if same:
            return int(e)
    return -1


@compiled
def frozen_difference(s: Croc, e: int, home: int, k: int, here: int, there: int, guess: Floats) -> float:
    """θ0 = Û_home − Û_k of an epoch, from the origins of the arms `here` and `there`. OUT: guess. Returns τ²."""
    for q in range(guess.size):
        theta = s.offset[here, q] - s.offset[there, q] + (s.offset_rest[here, q] - s.offset_rest[there, q])
        theta += s.frozen_centers[e, home, q] - s.frozen_centers[e, k, q]
        guess[q] = theta
    return float(1.0 / s.frozen_totals[e, k] + 1.0 / s.frozen_totals[e, home])
