"""Regroupings: cut one group in two and merge two others, where the posterior grows. No single move does that."""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.moves import copy_centers, hartigan
from coterie.engine.croc.splitting import POSTERIOR_TIE, SIZE_PRICE, cost_alone, cut_worth, log_posterior, two_means
from coterie.engine.croc.state import Croc, Work
from coterie.engine.state import Floats, Ints
from coterie.engine.vectors import squared_distance

REGROUPINGS = 4
"""So many at most for each estimate from scratch."""


@compiled
def posterior_of(s: Croc, labels: Ints, totals: Floats, cost: float, w: Work) -> float:
    """log posterior of a partition with this cost, up to a constant. OUT: w.counts, the sizes of its groups."""
    for k in range(totals.size):
        w.counts[k] = 0
    for m in range(labels.size):
        w.counts[labels[m]] += 1
    return log_posterior(s.log_factorial, cost, w.counts, totals, s.means.shape[1])


@compiled
def _costs(s: Croc, w: Work) -> None:
    """OUT: w.gain, the cost of every group of w.winner."""
    for k in range(w.gain.size):
        w.gain[k] = 0.0
    for m in range(w.winner.size):
        w.gain[w.winner[m]] += w.weights[m] * squared_distance(s.means, m, w.won_centers, w.winner[m])


@compiled
def _best_cut(s: Croc, w: Work, k: int) -> tuple[float, int]:
    """The worth of the best cut of group k of w.winner: its costliest arm alone, or 2-means.

    OUT: w.members, w.inside. Returns the worth and how many members there are. Sizes are in w.counts.
    """
    size, farthest, most = 0, -1, -1.0
    total = w.won_totals[k]
    for m in range(w.winner.size):
        if w.winner[m] == k:
            w.members[size] = m
            size += 1
    if size < 2:
        return -math.inf, size
    for i in range(size):
        m = w.members[i]
        alone = cost_alone(s.means, m, w.weights[m], w.won_centers, k, total)
        if alone > most:
            farthest, most = m, alone
    n, d = w.weights[farthest], s.means.shape[1]
    single = cut_worth(s.log_factorial, most, 1, size - 1, n * (total - n) / total, d)
    if size == 2:
        for i in range(size):
            w.inside[i] = w.members[i] == farthest
        return single, size
    gain, weight, part = two_means(s.means, s.pulls, w.won_centers, w.won_totals, k, size, farthest, w)
    worth = cut_worth(s.log_factorial, gain, part, size - part, weight, d)
    if single > worth:
        for i in range(size):
            w.inside[i] = w.members[i] == farthest
        return single, size
    return worth, size


@compiled
def _merge_worth(s: Croc, w: Work, k: int, j: int) -> float:
    """By how much log posterior grows if two groups of w.winner are merged."""
    together = w.won_totals[k] * w.won_totals[j] / (w.won_totals[k] + w.won_totals[j])
    gap = squared_distance(w.won_centers, k, w.won_centers, j)
    return -cut_worth(s.log_factorial, gap * together, w.counts[k], w.counts[j], together, w.won_centers.shape[1])


@compiled
def _best_merge(s: Croc, w: Work, without: int) -> tuple[float, int, int]:
    """The best merge of two groups, neither of them `without`: its worth and the groups."""
    best, one, other = -math.inf, -1, -1
    for k in range(w.won_totals.size):
        for j in range(k):
            if k != without and j != without:
                worth = _merge_worth(s, w, k, j)
                if worth > best:
                    best, one, other = worth, k, j
    return best, one, other


@compiled
def regroup(s: Croc, w: Work, best: float) -> None:
    """Improve w.winner, whose log posterior is `best`. INOUT: w.winner, w.won_centers, w.won_totals."""
    n_groups, d = w.won_centers.shape
    if n_groups < 3:
        return
    for _ in range(REGROUPINGS):
        posterior_of(s, w.winner, w.won_totals, 0.0, w)  # sizes
        any_merge, one, other = _best_merge(s, w, -1)
        _costs(s, w)
        most, cut, k, j = 0.0, -1, -1, -1
        for h in range(n_groups):
            # No cut gains more than the whole cost, costs fewer ways than an arm alone, or weighs less than ½.
            if 0.5 * w.gain[h] - SIZE_PRICE * math.log(w.counts[h]) + 0.5 * d * math.log(2.0) + any_merge <= most:
                continue
            worth, _ = _best_cut(s, w, h)
            merge, a, b = any_merge, one, other
            if h == one or h == other:
                if worth + any_merge <= most:
                    continue
                merge, a, b = _best_merge(s, w, h)
            if worth + merge > most:
                most, cut, k, j = worth + merge, h, a, b
        if cut < 0:
            return
        _, size = _best_cut(s, w, cut)
        for m in range(w.winner.size):
            w.labels[m] = k if w.winner[m] == j else w.winner[m]
        for i in range(size):
            if w.inside[i] == 1:
                w.labels[w.members[i]] = j
        cost = hartigan(s.means, w.weights, w.labels, w.centers, w.totals)
        value = posterior_of(s, w.labels, w.totals, cost, w)
        if value <= best + POSTERIOR_TIE:
            return
        best = value
        for m in range(w.winner.size):
            w.winner[m] = w.labels[m]
        copy_centers(w.centers, w.totals, w.won_centers, w.won_totals)
