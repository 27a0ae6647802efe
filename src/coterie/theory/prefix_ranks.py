"""The rank of every result among the earlier results of its item, for all items at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray, IntArray

_SHORT = 8
"""Entries of a group up to which each is compared with each."""


def places(groups: IntArray) -> IntArray:
    """The place of every entry among those of its group, from 0."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(starts, append=order.size)
    found = np.empty(groups.size, dtype=np.int64)
    found[order] = np.arange(order.size) - np.repeat(starts, lengths)
    return found


def repeats(groups: IntArray) -> IntArray:
    """The entries whose group has another one: of a million items most may have been measured once."""
    return np.flatnonzero(np.bincount(groups, minlength=1)[groups] > 1)


def fixed_noise(first: IntArray, second: IntArray) -> NDArray[np.uint64]:
    """A number for every (first, second) that looks random and is always the same (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = first.astype(np.uint64) * np.uint64(0xD1342543DE82EF95) + second.astype(np.uint64)
        x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def ranks_among_earlier(groups: IntArray, values: FloatArray) -> IntArray:
    """How many earlier entries of its group lie below each entry, which is so many from 0 to its place.

    `groups` (n) are numbers from 0 on, `values` (n) in the order of the results. Equal values are put in an order that
    looks random and is always the same. If the results of a group are exchangeable, these ranks are independent, and
    each is uniform. O(n·log²n): blocks of 1, 2, 4, … entries are compared with their neighbours; in groups of a few,
    each with each.
    """
    place = places(groups)
    found = np.zeros(groups.size, dtype=np.int64)
    sizes = np.bincount(groups, minlength=1)
    noise = fixed_noise(groups, place)
    of_short = sizes[groups] <= _SHORT
    _rank_short(np.flatnonzero(of_short), groups, sizes, values, noise, found)
    rest = np.flatnonzero(~of_short)
    by_value = rest[np.lexsort((noise[rest], values[rest]))]
    width, longest = 1, int(place[rest].max(initial=-1)) + 1
    while width < longest:
        if width > 1:
            by_value = by_value[sizes[groups[by_value]] > width]
        its = place[by_value]
        key = groups[by_value] * (longest // (2 * width) + 1) + its // (2 * width)
        inner = np.argsort(key, kind="stable")
        left = (its[inner] // width) % 2 == 0
        before = np.cumsum(left)
        starts = np.flatnonzero(np.diff(key[inner], prepend=-1))
        base = np.repeat(before[starts] - left[starts], np.diff(starts, append=inner.size))
        found[by_value[inner]] += np.where(left, 0, before - base)
        width *= 2
    return found


def _rank_short(
    entries: IntArray, groups: IntArray, sizes: IntArray, values: FloatArray, noise: NDArray[np.uint64], found: IntArray
) -> None:
    """The ranks of these entries, of groups of a few: those of as many at once. `found`: OUT."""
    order = entries[np.argsort(groups[entries], kind="stable")]
    lengths = sizes[groups[order]]
    for length in np.unique(lengths[lengths > 1]).tolist():
        own = order[lengths == length].reshape(-1, length)  # (groups, entries)
        x, y = values[own], noise[own]
        for s in range(1, length):
            now, before = x[:, s, None], x[:, :s]
            below = (before < now) | ((before == now) & (y[:, :s] <= y[:, s, None]))
            found[own[:, s]] = below.sum(axis=1)


def rank_factors(ranks: IntArray, place: IntArray, slope: float, width: float, shift: float = 0.0) -> FloatArray:
    """log s·f_s(R_s) of results at these places (from 0) of their items, one item after the other.

    f_s(k), of the rank of the s-th result, is the mass of `slope`·L⁻¹(u) + `shift` + `width`·L between the quantiles
    k/s and (k+1)/s of L, the logistic distribution; u is where the result before stands among those up to it.
    """
    count = place + 1.0
    before = np.concatenate([[0], ranks[:-1]])
    last = (before + 0.5) / np.maximum(place, 1)
    with np.errstate(divide="ignore"):
        at = np.where(place > 0, slope * (np.log(last) - np.log1p(-np.minimum(last, 1.0 - 1e-12))), 0.0) + shift
        low, high = (np.log(k) - np.log(count - k) for k in (ranks.astype(np.float64), ranks + 1.0))
    mass = _logistic((high - at) / width) - _logistic((low - at) / width)
    return np.where(place > 0, np.log(np.maximum(mass * count, 1e-12)), 0.0)


def _logistic(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
