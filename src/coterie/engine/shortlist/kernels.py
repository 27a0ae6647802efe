"""Compiled parts of a list of partitions: how likely each is, what a round says, what to measure.

Partitions are rows of labels 0 … K−1 with no empty group. `pulls` and `sums` are those of the arms, all results that
have counted; `taken` and `total` those of one round. A *place* is where the parts of a group that is to be told apart
lie around; the centers of the parts are N(place, τ²·I) for one of the `scales` τ², the place is flat.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.engine.compiled import allocating
from coterie.problem.checks import FloatArray, IntArray

SMALL = 1e-3
"""Of the largest product of urgency and chance: what is less is left out where growth is forecast."""

LEAST_LOG = -7.0
"""log of the share of a scale below which it is left out of a forecast."""


@allocating
def _pieces(labels: IntArray, n_clusters: int, pulls: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """W and Û of the groups of a partition."""
    dim = sums.shape[1]
    weight, center = np.zeros(n_clusters), np.zeros((n_clusters, dim))
    for m in range(labels.size):
        weight[labels[m]] += pulls[m]
        for q in range(dim):
            center[labels[m], q] += sums[m, q]
    for k in range(n_clusters):
        for q in range(dim):
            center[k, q] /= weight[k]
    return weight, center


@allocating
def _contrast_log(precision: FloatArray, at: FloatArray, count: int) -> float:
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


@allocating
def _log_sum(values: FloatArray) -> float:
    top = float(values.max())
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(values.size):
        total += math.exp(values[i] - top)
    return top + math.log(total)


@allocating
def _scale_logs(weight: FloatArray, center: FloatArray, count: int, scales: FloatArray, logs: FloatArray) -> None:
    """OUT logs: for each τ², the log density of the contrasts of so many centers that are N(place, (τ² + 1/W)·I)."""
    precision = np.empty(count)
    for r in range(scales.size):
        for j in range(count):
            precision[j] = 1.0 / (scales[r] + 1.0 / weight[j])
        logs[r] = _contrast_log(precision, center, count)


@allocating
def log_posterior(
    listed: IntArray,
    n_clusters: int,
    blocks: IntArray,
    pulls: FloatArray,
    sums: FloatArray,
    scales: FloatArray,
) -> FloatArray:
    """log p(c), up to a constant: docs/CROC.md, section 7, but the centers of a block are N(place, τ²·I), τ² uniform.

    `blocks`: a number for each arm; arms of different blocks are in different groups of every partition that is asked
    about. For others the value means nothing.
    """
    dim, found = sums.shape[1], np.empty(len(listed))
    part, at, logs = np.empty(n_clusters), np.empty((n_clusters, dim)), np.empty(scales.size)
    home, size = np.empty(n_clusters, np.int64), np.empty(n_clusters, np.int64)
    for h in range(len(listed)):
        weight, center = _pieces(listed[h], n_clusters, pulls, sums)
        size[:] = 0
        for m in range(blocks.size):
            home[listed[h, m]] = blocks[m]
            size[listed[h, m]] += 1
        value = 0.0
        for k in range(n_clusters):
            for q in range(dim):
                value += 0.5 * weight[k] * center[k, q] ** 2
            value += math.lgamma(size[k] + 1.0) - 0.5 * dim * math.log(weight[k])
        for b in range(blocks.max() + 1):
            count = 0
            for k in range(n_clusters):
                if home[k] == b:
                    part[count], at[count] = weight[k], center[k]
                    count += 1
            if count > 1:
                _scale_logs(part, at, count, scales, logs)
                value += _log_sum(logs) - math.log(scales.size)
        found[h] = value
    return found


@allocating
def _log_ratio(
    null: IntArray,
    rival: IntArray,
    weight: FloatArray,
    center: FloatArray,
    taken: FloatArray,
    total: FloatArray,
    scales: FloatArray,
) -> float:
    """log of Π over groups of the null: density of the round's contrasts under the rival over that under the null."""
    n_clusters, dim = center.shape
    result, count, here = np.empty((n_clusters, dim)), np.empty(n_clusters), np.empty(n_clusters, np.int64)
    part, at = np.empty(n_clusters), np.empty((n_clusters, dim))
    precision, off, logs = np.empty(n_clusters), np.empty((n_clusters, dim)), np.empty(scales.size)
    found = 0.0
    for g in range(n_clusters):
        count[:] = 0.0
        result[:] = 0.0
        for m in range(null.size):
            if null[m] == g and taken[m] > 0.0:
                count[rival[m]] += taken[m]
                for q in range(dim):
                    result[rival[m], q] += total[m, q]
        parts = 0
        for k in range(n_clusters):
            if count[k] > 0.0:
                here[parts], part[parts], at[parts] = k, weight[k], center[k]
                precision[parts] = count[k]
                result[k] /= count[k]
                off[parts] = result[k]
                parts += 1
        if parts < 2:
            continue
        under_null = _contrast_log(precision, off, parts)
        _scale_logs(part, at, parts, scales, logs)
        logs -= _log_sum(logs)
        for r in range(scales.size):
            for j in range(parts):
                spread = 1.0 / (part[j] + 1.0 / scales[r])  # of the center of the part, given its place
                precision[j] = 1.0 / (spread + 1.0 / count[here[j]])
            _centers_given(part, at, parts, scales[r], off)
            for j in range(parts):
                for q in range(dim):
                    off[j, q] = result[here[j], q] - off[j, q]
            logs[r] += _contrast_log(precision, off, parts)
        found += _log_sum(logs) - under_null
    return found


@allocating
def _centers_given(part: FloatArray, at: FloatArray, count: int, scale: float, out: FloatArray) -> None:
    """OUT out: the centers of parts with weights W and means Û, from their place, drawn to it as τ² says."""
    for q in range(at.shape[1]):
        total, place = 0.0, 0.0
        for j in range(count):
            precision = 1.0 / (scale + 1.0 / part[j])
            total += precision
            place += precision * at[j, q]
        place /= total
        for j in range(count):
            out[j, q] = (at[j, q] - place) * part[j] / (part[j] + 1.0 / scale)


@allocating
def round_logs(
    listed: IntArray,
    alive: IntArray,
    chance: FloatArray,
    pulls: FloatArray,
    sums: FloatArray,
    taken: FloatArray,
    total: FloatArray,
    scales: FloatArray,
) -> FloatArray:
    """log of the factor of E(c0) for each partition that is alive: the mean of the ratios over the rivals, by p.

    `chance`: p of the listed partitions, those that count as rivals positive; `pulls` and `sums` are those of the
    moment at which the round was composed. Without a rival the factor is 1.
    """
    n_clusters = listed[0].max() + 1
    found, logs = np.zeros(len(listed)), np.empty(len(listed))
    weights, centers = np.empty((len(listed), n_clusters)), np.empty((len(listed), n_clusters, sums.shape[1]))
    for c in range(len(listed)):
        if chance[c] > 0.0:
            weights[c], centers[c] = _pieces(listed[c], n_clusters, pulls, sums)
    for h in range(len(listed)):
        if alive[h] == 0:
            continue
        logs[:] = -math.inf
        mass = 0.0
        for c in range(len(listed)):
            if c != h and chance[c] > 0.0:
                ratio = _log_ratio(listed[h], listed[c], weights[c], centers[c], taken, total, scales)
                logs[c] = math.log(chance[c]) + ratio
                mass += chance[c]
        if mass > 0.0:
            found[h] = _log_sum(logs) - math.log(mass)
    return found


@allocating
def _add_growth(
    null: IntArray,
    rival: IntArray,
    weight: FloatArray,
    center: FloatArray,
    pulls: FloatArray,
    scales: FloatArray,
    factor: float,
    growth: FloatArray,
) -> None:
    """INOUT growth: what a pull of each arm adds to log E(null) if the rival is true, counts being as they are."""
    n_clusters, dim = center.shape
    count, here = np.empty(n_clusters), np.empty(n_clusters, np.int64)
    part, at, off = np.empty(n_clusters), np.empty((n_clusters, dim)), np.empty((n_clusters, dim))
    logs, gain = np.empty(scales.size), np.empty(n_clusters)
    for g in range(n_clusters):
        count[:] = 0.0
        for m in range(null.size):
            if null[m] == g:
                count[rival[m]] += pulls[m]
        parts = 0
        for k in range(n_clusters):
            if count[k] > 0.0:
                here[parts], part[parts], at[parts] = k, weight[k], center[k]
                parts += 1
        if parts < 2:
            continue
        _scale_logs(part, at, parts, scales, logs)
        logs -= _log_sum(logs)
        gain[:] = 0.0
        for r in range(scales.size):
            if logs[r] < LEAST_LOG:
                continue
            _centers_given(part, at, parts, scales[r], off)
            for q in range(dim):
                middle, all_pulls = 0.0, 0.0
                for j in range(parts):
                    middle += count[here[j]] * off[j, q]
                    all_pulls += count[here[j]]
                for j in range(parts):
                    gain[here[j]] += math.exp(logs[r]) * 0.5 * (off[j, q] - middle / all_pulls) ** 2
        for m in range(null.size):
            if null[m] == g:
                growth[m] += factor * gain[rival[m]]


@allocating
def expected_growth(
    listed: IntArray,
    urgency: FloatArray,
    chance: FloatArray,
    pulls: FloatArray,
    sums: FloatArray,
    scales: FloatArray,
    growth: FloatArray,
) -> tuple[int, int]:
    """OUT growth: by how much a pull of each arm is expected to add to the evidence against urgent partitions.

    The sum over partitions by `urgency` and, for each, over its rivals by `chance`; products of less than `SMALL` of
    the largest possible one are left out. Returns the pair, null and rival, of the largest product.
    """
    n_clusters = listed[0].max() + 1
    growth[:] = 0.0
    top, top_null, top_rival = -1.0, 0, 0
    largest = urgency.max() * chance.max()
    for c in range(len(listed)):
        weight, center = _pieces(listed[c], n_clusters, pulls, sums)
        for h in range(len(listed)):
            factor = urgency[h] * chance[c]
            if c == h or factor <= SMALL * largest:
                continue
            _add_growth(listed[h], listed[c], weight, center, pulls, scales, factor, growth)
            if factor > top:
                top, top_null, top_rival = factor, h, c
    return top_null, top_rival
