"""Closing rounds: the contrasts of a complete one go to the unmet tests of its epoch (docs/CROC.md, 4 to 6)."""

from __future__ import annotations

from coterie.engine.compiled import compiled
from coterie.engine.croc.evidence import directed
from coterie.engine.croc.flight import entry_of, forget_closed
from coterie.engine.croc.state import CLOSED, CORE_ROOM, EPOCHS, FLIGHT, OLDEST, OPEN_ROUNDS, ROUND, Croc, Work
from coterie.engine.state import Floats


@compiled
def close_ready(s: Croc, w: Work) -> None:
    """Close every complete round that no earlier incomplete one of its epoch holds up. INOUT: s."""
    held = 0  # bits: slots of epochs
    for number in range(s.ints[OLDEST], s.ints[ROUND] + 1):
        f = number % FLIGHT
        e = s.round_epoch[f] % EPOCHS
        remembered = s.frozen_number[e] == s.round_epoch[f]
        if s.round_left[f] == 0 and not (remembered and (held >> e) & 1):
            if remembered:
                _close_round(s, w, number, e)
            s.round_left[f] = -1
            s.ints[OPEN_ROUNDS] -= 1
            s.ints[CLOSED] = 1
        elif s.round_left[f] >= 0 and remembered:
            held |= 1 << e
    forget_closed(s)


@compiled
def _pool(s: Croc, e: int, first: int, last: int, w: Work) -> None:
    """Pulls and means of a round in every group and every core, from the origin of the core's first arm.

    OUT: w.group_*, w.core_*.
    """
    n_groups, d = s.centers.shape
    for k in range(n_groups):
        w.group_pulls[k], w.core_pulls[k] = 0.0, 0.0
        for q in range(d):
            w.group_mean[k, q], w.core_mean[k, q] = 0.0, 0.0
    for i in range(first, last):
        m, n = s.entry_arm[i], s.entry_pulls[i]
        k = s.frozen[e, m]
        lead = s.core[e, k * CORE_ROOM]
        core = s.in_core[e, m] == 1
        w.group_pulls[k] += n
        if core:
            w.core_pulls[k] += n
        for q in range(d):
            away = s.offset[m, q] - s.offset[lead, q] + (s.offset_rest[m, q] - s.offset_rest[lead, q])
            w.group_mean[k, q] += s.entry_sums[i, q] + n * away
            if core:
                w.core_mean[k, q] += s.entry_sums[i, q] + n * away
    for k in range(n_groups):
        for q in range(d):
            w.group_mean[k, q] /= max(w.group_pulls[k], 1.0)
            w.core_mean[k, q] /= max(w.core_pulls[k], 1.0)


@compiled
def _add_contrast(weight: float, v: float, contrast: Floats, total: Floats) -> float:
    """Add a contrast of variance v to a test. INOUT: total. Returns its new weight."""
    for q in range(contrast.size):
        # Sums of an earlier epoch in this slot are not cleared: a weight of 0 says that they do not count.
        total[q] = (total[q] if weight > 0.0 else 0.0) + contrast[q] / v
    return weight + 1.0 / v


@compiled
def _close_round(s: Croc, w: Work, number: int, e: int) -> None:
    """All results of the round are in: add its contrasts to every unmet test with pulls on both sides. INOUT: tests."""
    n_groups, d = s.centers.shape
    first = s.round_first[number % FLIGHT]
    last = first + s.round_size[number % FLIGHT]
    _pool(s, e, first, last, w)
    b = s.level[e]
    for i in range(first, last):
        m, pulls = s.entry_arm[i], s.entry_pulls[i]
        home, core = s.frozen[e, m], s.in_core[e, m] == 1
        for k in range(n_groups):
            if k == home:
                continue
            lead = s.core[e, k * CORE_ROOM]
            spread = 1.0 / s.frozen_totals[e, k] + 1.0 / s.frozen_totals[e, home]
            for against in range(2):
                if against == 0:
                    met, pool, mean, level = s.met_core, w.core_pulls[k], w.core_mean, b if core else 0.5 * b
                    weight, total, found_at = s.weight_core, s.sum_core, s.last_core
                else:
                    met, pool, mean, level = s.met_group, w.group_pulls[k], w.group_mean, b
                    weight, total, found_at = s.weight_group, s.sum_group, s.last_group
                if met[e, m, k] == 1 or pool == 0.0 or (against == 1 and core):
                    continue
                for q in range(d):
                    away = s.offset[m, q] - s.offset[lead, q] + (s.offset_rest[m, q] - s.offset_rest[lead, q])
                    w.contrast[q] = away + (s.entry_sums[i, q] / pulls - mean[k, q])
                v = 1.0 / pulls + 1.0 / pool
                weight[e, m, k] = _add_contrast(weight[e, m, k], v, w.contrast, total[e, m, k])
                if directed(s, e, weight[e, m, k], total[e, m, k], home, k, spread) >= level:
                    met[e, m, k], found_at[e, m, k] = 1, number
    _close_core_pairs(s, w, number, e)


@compiled
def _close_core_pairs(s: Croc, w: Work, number: int, e: int) -> None:
    """The same for pairs of core arms, at half the level. INOUT: tests."""
    contrast = w.contrast
    for i in range(s.core.shape[1]):
        w.core_entry[i] = -1 if s.core[e, i] < 0 else entry_of(s, number, s.core[e, i])
    for i in range(s.core.shape[1]):
        p, mine = s.core[e, i], w.core_entry[i]
        if mine < 0:
            continue
        home = i // CORE_ROOM
        for j in range(home * CORE_ROOM):
            o, its, k = s.core[e, j], w.core_entry[j], j // CORE_ROOM
            if its < 0 or s.met_pair[e, i, j] == 1:
                continue
            for q in range(contrast.size):
                away = s.offset[p, q] - s.offset[o, q] + (s.offset_rest[p, q] - s.offset_rest[o, q])
                here, there = s.entry_sums[mine, q] / s.entry_pulls[mine], s.entry_sums[its, q] / s.entry_pulls[its]
                contrast[q] = away + (here - there)
            v = 1.0 / s.entry_pulls[mine] + 1.0 / s.entry_pulls[its]
            total = s.sum_pair[e, i, j]
            s.weight_pair[e, i, j] = _add_contrast(s.weight_pair[e, i, j], v, contrast, total)
            spread = 1.0 / s.frozen_totals[e, k] + 1.0 / s.frozen_totals[e, home]
            if directed(s, e, s.weight_pair[e, i, j], total, home, k, spread) >= 0.5 * s.level[e]:
                s.met_pair[e, i, j], s.last_pair[e, i, j] = 1, number
