"""Compiled parts of a list of partitions: how likely each is, what a round says, what to measure.

Partitions are rows of labels 0 … K−1 with no empty group. `pulls` and `sums` are those of the arms, all results that
have counted; `taken` and `total` those of one round. A *place* is where the parts of a group that is to be told apart
lie around; the centers of the parts are N(place, τ²·I) for one of the `scales` τ², the place is flat. Steps must not
allocate: `ListWork` is their room.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coterie.engine.compiled import compiled, entry
from coterie.engine.held import held
from coterie.engine.state import Floats, Ints

SMALL = 1e-3
"""Of the largest product of urgency and chance: what is less is left out where growth is forecast."""

LEAST_LOG = -7.0
"""log of the share of a scale below which it is left out of a forecast."""


class ListWork(NamedTuple):
    """Work space for L partitions into K groups, d dimensions and S scales."""

    weights: Floats  # (L, K) W of the groups of each partition
    centers: Floats  # (L, K, d) Û
    terms: Floats  # (L)
    logs: Floats  # (S)
    counts: Floats  # (K) pulls, or results of a round, of each part of a group
    precision: Floats  # (K)
    part: Floats  # (K) W of the parts
    gain: Floats  # (K)
    at: Floats  # (K, d) Û of the parts
    result: Floats  # (K, d)
    off: Floats  # (K, d)
    here: Ints  # (K) groups of the rival that are parts
    home: Ints  # (K) blocks of groups
    size: Ints  # (K) arms of groups


def new_list_work(n_listed: int, n_clusters: int, dim: int, n_scales: int) -> ListWork:
    """Room for a list."""
    k, wide = n_clusters, (n_clusters, dim)
    return ListWork(
        np.zeros((n_listed, k)), np.zeros((n_listed, k, dim)), np.zeros(n_listed), np.zeros(n_scales),
        np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(wide), np.zeros(wide), np.zeros(wide),
        np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64),
    )  # fmt: skip


@compiled
def _pieces(w: ListWork, c: int, labels: Ints, pulls: Floats, sums: Floats) -> None:
    """Put W and Û of the groups of a partition into row c of the work space."""
    n_clusters, dim = w.at.shape
    for k in range(n_clusters):
        w.weights[c, k] = 0.0
        for q in range(dim):
            w.centers[c, k, q] = 0.0
    for m in range(labels.size):
        w.weights[c, labels[m]] += pulls[m]
        for q in range(dim):
            w.centers[c, labels[m], q] += sums[m, q]
    for k in range(n_clusters):
        for q in range(dim):
            w.centers[c, k, q] /= w.weights[c, k]


@compiled
def _contrast_log(precision: Floats, at: Floats, count: int) -> float:
    """log density, up to a constant, of the contrasts of `count` points N(η + 0, I/precision) with the place η flat."""
    dim = at.shape[1]
    total, logs, energy = 0.0, 0.0, 0.0
    for j in range(count):
        total += precision[j]
        logs += math.log(precision[j])
    for q in range(dim):
        middle = 0.0
        for j in range(count):
            middle += precision[j] * at[j, q]
        middle /= total
        for j in range(count):
            energy += precision[j] * (at[j, q] - middle) ** 2
    return float(0.5 * dim * (logs - math.log(total)) - 0.5 * energy)


@compiled
def _log_sum(values: Floats) -> float:
    top = -math.inf
    for i in range(values.size):
        top = max(top, values[i])
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(values.size):
        total += math.exp(values[i] - top)
    return float(top + math.log(total))


@compiled
def _scale_logs(w: ListWork, count: int, scales: Floats) -> None:
    """OUT logs: for each τ², the log density of the contrasts of so many centers that are N(place, (τ² + 1/W)·I)."""
    for r in range(scales.size):
        for j in range(count):
            w.precision[j] = 1.0 / (scales[r] + 1.0 / w.part[j])
        w.logs[r] = _contrast_log(w.precision, w.at, count)


@compiled
def _scale_shares(w: ListWork, count: int, scales: Floats) -> None:
    """OUT logs: log of how likely each τ² is, by the centers of the parts."""
    _scale_logs(w, count, scales)
    total = _log_sum(w.logs)
    for r in range(scales.size):
        w.logs[r] -= total


@entry
def log_posterior(
    w: ListWork, listed: Ints, blocks: Ints, pulls: Floats, sums: Floats, scales: Floats, found: Floats
) -> None:
    """log p(c), up to a constant: docs/CROC.md, section 7, but the centers of a block are N(place, τ²·I), τ² uniform.

    OUT: found. `blocks`: a number for each arm; arms of different blocks are in different groups of every partition
    that is asked about. For others the value means nothing.
    """
    _log_posterior(held(w), listed, blocks, pulls, sums, scales, found)


@compiled
def _log_posterior(
    w: ListWork, listed: Ints, blocks: Ints, pulls: Floats, sums: Floats, scales: Floats, found: Floats
) -> None:
    """See `log_posterior`, which Python calls."""
    n_clusters, dim = w.at.shape
    last = 0
    for m in range(blocks.size):
        last = max(last, blocks[m])
    for h in range(listed.shape[0]):
        _pieces(w, h, listed[h], pulls, sums)
        for k in range(n_clusters):
            w.size[k] = 0
        for m in range(blocks.size):
            w.home[listed[h, m]] = blocks[m]
            w.size[listed[h, m]] += 1
        value = 0.0
        for k in range(n_clusters):
            for q in range(dim):
                value += 0.5 * w.weights[h, k] * w.centers[h, k, q] ** 2
            value += math.lgamma(w.size[k] + 1.0) - 0.5 * dim * math.log(w.weights[h, k])
        for b in range(last + 1):
            count = 0
            for k in range(n_clusters):
                if w.home[k] == b:
                    w.part[count] = w.weights[h, k]
                    for q in range(dim):
                        w.at[count, q] = w.centers[h, k, q]
                    count += 1
            if count > 1:
                _scale_logs(w, count, scales)
                value += _log_sum(w.logs) - math.log(scales.size)
        found[h] = value


@compiled
def _centers_given(w: ListWork, count: int, scale: float) -> None:
    """OUT off: the centers of parts with weights W and means Û, from their place, drawn to it as τ² says."""
    for q in range(w.at.shape[1]):
        total, place = 0.0, 0.0
        for j in range(count):
            precision = 1.0 / (scale + 1.0 / w.part[j])
            total += precision
            place += precision * w.at[j, q]
        place /= total
        for j in range(count):
            w.off[j, q] = (w.at[j, q] - place) * w.part[j] / (w.part[j] + 1.0 / scale)


@compiled
def _parts(w: ListWork, c: int) -> int:
    """OUT here, part, at: the parts with a positive `counts`, with the rival's weights and centers; their number."""
    n_clusters, dim = w.at.shape
    parts = 0
    for k in range(n_clusters):
        if w.counts[k] > 0.0:
            w.here[parts] = k
            w.part[parts] = w.weights[c, k]
            for q in range(dim):
                w.at[parts, q] = w.centers[c, k, q]
            parts += 1
    return parts


@compiled
def _log_ratio(w: ListWork, null: Ints, rival: Ints, c: int, taken: Floats, total: Floats, scales: Floats) -> float:
    """log of Π over groups of the null: density of the round's contrasts under the rival over that under the null.

    c: the rival's row of weights and centers.
    """
    n_clusters, dim = w.at.shape
    found = 0.0
    for g in range(n_clusters):
        for k in range(n_clusters):
            w.counts[k] = 0.0
            for q in range(dim):
                w.result[k, q] = 0.0
        for m in range(null.size):
            if null[m] == g and taken[m] > 0.0:
                w.counts[rival[m]] += taken[m]
                for q in range(dim):
                    w.result[rival[m], q] += total[m, q]
        parts = _parts(w, c)
        if parts < 2:
            continue
        for j in range(parts):
            w.precision[j] = w.counts[w.here[j]]
            for q in range(dim):
                w.result[w.here[j], q] /= w.counts[w.here[j]]
                w.off[j, q] = w.result[w.here[j], q]
        under_null = _contrast_log(w.precision, w.off, parts)
        _scale_shares(w, parts, scales)
        for r in range(scales.size):
            for j in range(parts):
                spread = 1.0 / (w.part[j] + 1.0 / scales[r])  # of the center of the part, given its place
                w.precision[j] = 1.0 / (spread + 1.0 / w.counts[w.here[j]])
            _centers_given(w, parts, scales[r])
            for j in range(parts):
                for q in range(dim):
                    w.off[j, q] = w.result[w.here[j], q] - w.off[j, q]
            w.logs[r] += _contrast_log(w.precision, w.off, parts)
        found += _log_sum(w.logs) - under_null
    return found


@entry
def round_logs(
    w: ListWork, listed: Ints, alive: Ints, chance: Floats, pulls: Floats, sums: Floats, taken: Floats,
    total: Floats, scales: Floats, found: Floats,
) -> None:  # fmt: skip
    """log of the factor of E(c0) for each partition that is alive: the mean of the ratios over the rivals, by p.

    OUT: found, 0 for the others. `chance`: p of the listed partitions, those that count as rivals positive; `pulls` and
    `sums` are those of the moment at which the round was composed. Without a rival the factor is 1.
    """
    _round_logs(held(w), listed, alive, chance, pulls, sums, taken, total, scales, found)


@compiled
def _round_logs(
    w: ListWork, listed: Ints, alive: Ints, chance: Floats, pulls: Floats, sums: Floats, taken: Floats,
    total: Floats, scales: Floats, found: Floats,
) -> None:  # fmt: skip
    """See `round_logs`, which Python calls."""
    for c in range(listed.shape[0]):
        if chance[c] > 0.0:
            _pieces(w, c, listed[c], pulls, sums)
    for h in range(listed.shape[0]):
        found[h] = 0.0
        if alive[h] == 0:
            continue
        mass = 0.0
        for c in range(listed.shape[0]):
            w.terms[c] = -math.inf
            if c != h and chance[c] > 0.0:
                w.terms[c] = math.log(chance[c]) + _log_ratio(w, listed[h], listed[c], c, taken, total, scales)
                mass += chance[c]
        if mass > 0.0:
            found[h] = _log_sum(w.terms) - math.log(mass)


@compiled
def _add_growth(
    w: ListWork, null: Ints, rival: Ints, c: int, pulls: Floats, scales: Floats, factor: float, growth: Floats
) -> None:
    """INOUT growth: what a pull of each arm adds to log E(null) if the rival is true, counts being as they are."""
    n_clusters, dim = w.at.shape
    for g in range(n_clusters):
        for k in range(n_clusters):
            w.counts[k] = 0.0
            w.gain[k] = 0.0
        for m in range(null.size):
            if null[m] == g:
                w.counts[rival[m]] += pulls[m]
        parts = _parts(w, c)
        if parts < 2:
            continue
        _scale_shares(w, parts, scales)
        for r in range(scales.size):
            if w.logs[r] < LEAST_LOG:
                continue
            _centers_given(w, parts, scales[r])
            for q in range(dim):
                middle, all_pulls = 0.0, 0.0
                for j in range(parts):
                    middle += w.counts[w.here[j]] * w.off[j, q]
                    all_pulls += w.counts[w.here[j]]
                for j in range(parts):
                    w.gain[w.here[j]] += math.exp(w.logs[r]) * 0.5 * (w.off[j, q] - middle / all_pulls) ** 2
        for m in range(null.size):
            if null[m] == g:
                growth[m] += factor * w.gain[rival[m]]


@entry
def expected_growth(
    w: ListWork, listed: Ints, urgency: Floats, chance: Floats, pulls: Floats, sums: Floats, scales: Floats,
    growth: Floats, top: Ints,
) -> None:  # fmt: skip
    """OUT growth: by how much a pull of each arm is expected to add to the evidence against urgent partitions.

    The sum over partitions by `urgency` and, for each, over its rivals by `chance`; products of less than `SMALL` of
    the largest possible one are left out. OUT top: the pair, null and rival, of the largest product.
    """
    _expected_growth(held(w), listed, urgency, chance, pulls, sums, scales, growth, top)


@compiled
def _expected_growth(
    w: ListWork, listed: Ints, urgency: Floats, chance: Floats, pulls: Floats, sums: Floats, scales: Floats,
    growth: Floats, top: Ints,
) -> None:  # fmt: skip
    """See `expected_growth`, which Python calls."""
    most_urgent, likeliest, largest = 0.0, 0.0, -1.0
    for h in range(listed.shape[0]):
        most_urgent, likeliest = max(most_urgent, urgency[h]), max(likeliest, chance[h])
    for m in range(growth.size):
        growth[m] = 0.0
    for c in range(listed.shape[0]):
        _pieces(w, c, listed[c], pulls, sums)
        for h in range(listed.shape[0]):
            factor = urgency[h] * chance[c]
            if c == h or factor <= SMALL * most_urgent * likeliest:
                continue
            _add_growth(w, listed[h], listed[c], c, pulls, scales, factor, growth)
            if factor > largest:
                largest = factor
                top[0] = h
                top[1] = c
