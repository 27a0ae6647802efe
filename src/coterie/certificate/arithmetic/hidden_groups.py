"""Evidence that a group hides two, from the log, for every noise: a warning that K may be too small.

What is computed is in docs/EVIDENCE.md, section 12; nothing of it enters the proof. A group's items are split in two
classes, in all ways (of more than ten items: along the line of their means). A split is judged by how well two classes
predict the results after the first r, against the best single law, or by bets that one class lies above and the other
below a common mean, against the best such mean. Release 0.2 looked for unequal means alone, under a known noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coterie.certificate.arithmetic.known import Record
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import LIKE_ANY, Model, Unknown
from coterie.problem.noise import Noise

SEARCHED = (*sorted(LIKE_ANY), "bounded", "at-most", "symmetric")
NEAR = 0.2
"""By how much stated evidence may differ for these: the best common mean is searched for, in another way here."""

_MOST_SETS, _MOST_CUTS, _MOST_LOOKED, _MOST_NUMBERS, _KEPT, _POINTS = 10, 64, 5_000, 8, 64, 400
_SHIFT = 4.0
_ARM_SCALES = 64.0 / 4.0 ** np.arange(11)  # ρ, of the arms
_REST_SCALES = 1.0 / 16.0 ** np.arange(6)  # ρ', of the pool of the others
Bet = Callable[[FloatArray, FloatArray, float, bool], FloatArray]


def hidden_groups(
    noise: Model, arms: Sequence[int], values: Sequence[Sequence[float]], labels: IntArray, n_groups: int
) -> FloatArray:
    """The log-evidence that each group hides two; 0 for a group of one arm."""
    rows, arm = np.array(values, dtype=np.float64), np.array(arms, dtype=np.int64)
    sizes = np.bincount(labels, minlength=n_groups)
    total = int(sizes[sizes > 1].sum())
    numbers = sorted({round(i * (rows.shape[1] - 1) / (_MOST_NUMBERS - 1)) for i in range(_MOST_NUMBERS)})
    spreads = {q: _earlier_spread(arm, rows[:, q]) for q in numbers} if noise.kind == "symmetric" else {}
    evidence = np.zeros(n_groups)
    for k in np.flatnonzero(sizes > 1).tolist():
        own = np.flatnonzero(labels[arm] == k)
        if own.size < 2:
            continue
        members = np.flatnonzero(labels == k)
        item, x = np.searchsorted(members, arm[own]), rows[own]
        if isinstance(noise, Noise):
            log_e = _known(noise.whiten(x - x[0]), item, members.size)
        else:
            if noise.in_units:
                x = noise.whiten(x - x[0])
            each = [
                _number(noise, x[:, q], item, members.size, q, spreads[q][own] if spreads else None) for q in numbers
            ]
            log_e = _log_mean(each)
        evidence[k] = log_e + math.log(n_groups * members.size / total)
    return evidence


def homogeneity(record: Record, labels: IntArray, n_groups: int) -> FloatArray:
    """The rule of release 0.2: the log-evidence against each group's having one mean; 0 for a group of one arm."""
    arms = record.results.pooled(record.arms, labels.size)
    leads = np.unique(labels, return_index=True)[1]  # means are seen from one arm of the group: so none lies far off
    means = record.units.gap(arms, arms.rows(leads[labels]))
    evidence = np.zeros(n_groups)
    for k in range(n_groups):
        members = np.flatnonzero(labels == k)
        if members.size > 1:
            evidence[k] = split_from_one(arms.counts[members], means[members])
    return evidence


def split_from_one(counts: IntArray, means: FloatArray) -> float:
    """The log-evidence that arms with these means (n, d), in units of the noise, do not have one mean.

    The mean of two e-values, each a mixture (docs/CROC.md): of the spread of all arms around one mean, and of one arm
    that stands apart from the pool of the others.
    """
    count, dim = counts.astype(np.float64), means.shape[1]
    spread, odd = -np.inf, -np.inf
    for scale in _ARM_SCALES:
        weight = scale * count**2 / (1.0 + scale * count)
        away = means - weight @ means / weight.sum()
        terms = 0.5 * weight * (away**2).sum(axis=1) - 0.5 * dim * np.log1p(scale * count)
        spread = np.logaddexp(spread, terms.sum())
        for its_scale in _REST_SCALES:
            rest = counts.sum() - count
            its_weight = its_scale * rest**2 / (1.0 + its_scale * rest)
            both = np.where(count * rest > 0.0, weight * its_weight / np.maximum(weight + its_weight, 1e-300), 0.0)
            gap = means - (count @ means - count[:, None] * means) / np.maximum(rest, 1.0)[:, None]
            price = np.log1p(scale * count) + np.log1p(its_scale * rest)
            odd = np.logaddexp(odd, np.logaddexp.reduce(0.5 * both * (gap**2).sum(axis=1) - 0.5 * dim * price))
    spread -= np.log(_ARM_SCALES.size)
    odd -= np.log(count.size * _ARM_SCALES.size * _REST_SCALES.size)
    return float(np.logaddexp(spread, odd) - np.log(2.0))


def _number(noise: Unknown, x: FloatArray, item: IntArray, n: int, q: int, spread: FloatArray | None) -> float:
    if noise.kind == "gaussian":
        return _predictions(_Gauss((x - x[0])[:, None], False), item, n, x, [n // 2 + 2, n, 2 * n])
    given = noise.to_json()
    if noise.kind == "counts":
        hits = np.stack([x, given["trials"] - x], axis=1)
        return _predictions(_Bins(hits), item, n, x, [n // 2 + 2, n, 2 * n])
    looked = min(max(_MOST_LOOKED, 4 * n), 10 * _MOST_LOOKED)
    x, item = x[:looked], item[:looked]
    if noise.kind in LIKE_ANY:
        return _any(x, item, n)
    sets = _Sets(x, item, n)
    if noise.kind == "bounded":
        lo, hi = (given[side][q % len(given[side])] for side in ("lo", "hi"))
        return _bets(_bounded, (0.1, 0.4, 0.9), (x - lo) / (hi - lo), item, sets, sets.log_weights, None)
    if noise.kind == "at-most":
        ends = float(x.min()), float(x.max())
        return _bets(_limited, (0.0, 0.35, 0.8, 1.8), x, item, sets, sets.log_weights, ends)
    assert spread is not None
    ends = float(x.min()), float(x.max())
    deviations = spread[: x.size]

    def bet(where: FloatArray, mean: FloatArray, size: float, up: bool) -> FloatArray:
        lean = np.tanh(size * (where[:, None] - mean) / deviations[:, None])
        return np.log1p(0.98 * lean if up else -0.98 * lean)

    return _bets(bet, (0.0, 0.4, 0.8, 1.6), x, item, sets, sets.log_weights, ends)


class _Sets:
    """The sets S of items, and their weights."""

    def __init__(self, x: FloatArray, item: IntArray, n: int) -> None:
        self.complete = n <= _MOST_SETS
        if self.complete:
            some = [members for members in itertools.product((0.0, 1.0), repeat=n) if 0 < sum(members) < n]
            self.members = np.array(some)
        else:
            sums: list[list[float]] = [[] for _ in range(n)]
            for i, value in zip(item.tolist(), x.tolist(), strict=True):
                sums[i].append(value)
            means = np.array([math.fsum(values) / len(values) if values else 0.0 for values in sums])
            span = float(means.max() - means.min())
            key = np.round((means - means.min()) / span, 9) if span > 0.0 else means * 0.0
            line = sorted(range(n), key=lambda i: (key[i], i))
            sizes = sorted({round(size) for size in np.linspace(1, n - 1, min(n - 1, _MOST_CUTS)).tolist()})
            lower = np.zeros((len(sizes), n))
            for row, size in zip(lower, sizes, strict=True):
                row[line[:size]] = 1.0
            self.members = np.concatenate([lower, 1.0 - lower])
        s = self.members.sum(axis=1)
        ways = -np.log(n + 1.0) - _log_beta(s + 1.0, n - s + 1.0)  # log binom(n, s)
        self.log_weights = np.log(6.0 * s * (n - s) / (n * (n * n - 1.0))) - ways


# Two classes predict.


class _Gauss:
    """Two Gaussian classes with one variance: 1, or unknown."""

    def __init__(self, x: FloatArray, known: bool) -> None:
        self.x, self.known = x, known

    def two(self, item: IntArray, n: int, upto: int, members: FloatArray) -> FloatArray:
        """The log-density of the first results, for every set."""
        x, d = self.x[:upto], self.x.shape[1]
        count = members @ np.bincount(item[:upto], minlength=n).astype(np.float64)
        by_item = np.array([np.bincount(item[:upto], x[:, i], minlength=n) for i in range(d)]).T
        inside = members @ by_item
        squares, other, rest = float((x * x).sum()), by_item.sum(axis=0) - inside, upto - count
        # The covariance of all results is σ²(1 + 4·1_S 1_S'), and their mean has a flat prior.
        shrunk = count / (1.0 + _SHIFT * count)
        precision = shrunk + rest
        whole = inside / (1.0 + _SHIFT * count)[:, None] + other
        form = squares - _SHIFT / (1.0 + _SHIFT * count) * (inside**2).sum(axis=1)
        form = np.maximum(form - (whole**2).sum(axis=1) / precision, 0.0)
        log_size = -0.5 * d * (np.log(1.0 + _SHIFT * count) + np.log(precision))
        free = (upto - 1) * d
        if self.known:
            return np.asarray(log_size - 0.5 * form - 0.5 * free * math.log(2.0 * math.pi))
        form[form <= 1e-12 * squares] = 0.0
        with np.errstate(divide="ignore"):  # results that do not vary
            return np.asarray(log_size + math.lgamma(0.5 * free) - 0.5 * free * np.log(math.pi * form))

    def single(self, start: int) -> float:
        """The largest log-density of the results from `start` on, of one class."""
        x = self.x[start:]
        rest = float(((x - x.mean(axis=0)) ** 2).sum())
        if self.known:
            return -0.5 * rest - 0.5 * x.size * math.log(2.0 * math.pi)
        return math.inf if rest <= 0.0 else -0.5 * x.size * (math.log(2.0 * math.pi * rest / x.size) + 1.0)


class _Bins:
    """Two classes, each with its shares of bins."""

    def __init__(self, hits: FloatArray) -> None:
        self.hits = hits

    def two(self, item: IntArray, n: int, upto: int, members: FloatArray) -> FloatArray:
        """The log-density of the first results, for every set; two bins, each class's share Beta(½, ½)."""
        table = np.array([np.bincount(item[:upto], self.hits[:upto, b], minlength=n) for b in (0, 1)]).T
        inside = members @ table
        outside = table.sum(axis=0) - inside
        some = [_log_beta(0.5 + hits[:, 0], 0.5 + hits[:, 1]) - _log_beta(0.5, 0.5) for hits in (inside, outside)]
        return np.asarray(some[0] + some[1])

    def single(self, start: int) -> float:
        """The largest log-density of the results from `start` on, of one class."""
        hits = self.hits[start:].sum(axis=0).tolist()
        return math.fsum(h * math.log(h / sum(hits)) for h in hits if h > 0.0)


def _predictions(
    model: _Gauss | _Bins, item: IntArray, n: int, line: FloatArray, starts: list[int], sets: _Sets | None = None
) -> float:
    """The log of the mean over the starts of the evidence from the results after them."""
    some = _Sets(line, item, n) if sets is None else sets
    now, logs = model.two(item, n, item.size, some.members), []
    for start in starts:
        before = model.two(item, n, start, some.members) if item.size >= start + 2 else np.array([math.inf])
        if not np.isfinite(before).all():
            logs.append(0.0)
        elif some.complete:
            share = _log_sum(before + some.log_weights)
            logs.append(_log_sum(now + some.log_weights) - share - model.single(start))
        else:
            logs.append(_log_sum(now - before + some.log_weights) - model.single(start))
    return _log_mean(logs)


def _known(white: FloatArray, item: IntArray, n: int) -> float:
    count = np.bincount(item, minlength=n)
    means = np.array([np.bincount(item, column, minlength=n) for column in white.T]).T / np.maximum(count, 1)[:, None]
    widest = int(np.argmax(means.max(axis=0) - means.min(axis=0)))
    new = _predictions(_Gauss(white, True), item, n, white[:, widest], [3, n // 2 + 2, n])
    return float(np.logaddexp(math.log(0.25) + split_from_one(count, means), math.log(0.75) + new))


def _any(x: FloatArray, item: IntArray, n: int) -> float:
    sets, logs = _Sets(x, item, n), []
    for start in (max(n, 6), 2 * max(n, 6)):
        if x.size < start + 2:
            logs += [0.0, 0.0]
            continue
        first = sorted(x[:start].tolist())
        middle = first[(start - 1) // 2]
        inner = first[start // 4 : start - start // 4]
        gaps = [b - a for a, b in itertools.pairwise(inner)]
        at = gaps.index(max(gaps))
        bins = [
            _Bins(np.array([x <= cut, x > cut], dtype=float).T) for cut in (middle, 0.5 * (inner[at] + inner[at + 1]))
        ]
        logs.append(_log_mean([_predictions(model, item, n, x, [start], sets) for model in bins]))
        size = 1.2533 * sum(abs(value - middle) for value in first) / start
        weights = sets.log_weights
        if sets.complete:
            weights = weights + bins[0].two(item, n, start, sets.members)
            weights = weights - _log_sum(weights)
        if size > 0.0:
            score = (1.0 + np.tanh((x[start:] - middle) / size)) / 2.0
            logs.append(_bets(_bounded, (0.1, 0.4, 0.9), score, item[start:], sets, weights, None))
        else:
            logs.append(0.0)
    return _log_mean(logs)


# Bets on a common mean.


def _bounded(x: FloatArray, mean: FloatArray, size: float, up: bool) -> FloatArray:
    """Results between 0 and 1."""
    part, whole = (x, mean) if up else (1.0 - x, 1.0 - mean)
    return np.log1p(size * (part[:, None] / np.maximum(whole, 1e-9) - 1.0))


def _limited(x: FloatArray, mean: FloatArray, size: float, up: bool) -> FloatArray:
    """Results with a variance of at most 1."""
    lean = np.maximum((size if up else -size) * (x[:, None] - mean), -1.0)
    return np.log((1.0 + lean + lean**2 / 2.0) / (1.0 + size**2 / 2.0))


def _bets(
    bet: Bet, sizes: tuple[float, ...], x: FloatArray, item: IntArray, sets: _Sets, log_weights: FloatArray,
    ends: tuple[float, float] | None,
) -> float:  # fmt: skip
    """The log of the sum over the sets of weight times the least gain over all common means.

    `ends`: of the results, if there may be means beyond them; None: means are from 0 to 1.
    """
    n, members, weights = sets.members.shape[1], sets.members, log_weights
    low, high = ends or (0.0, 1.0)
    beyond = np.full(len(members), math.inf)
    least = beyond
    for look in range(3):
        mean = np.linspace(low, high, _POINTS)
        up, down = (_gains(bet, sizes, x, item, n, mean, way) for way in (True, False))
        above = np.logaddexp.reduce(np.tensordot(members, up, axes=1), axis=1) - math.log(len(sizes))
        below = np.logaddexp.reduce(np.tensordot(1.0 - members, down, axes=1), axis=1) - math.log(len(sizes))
        if look == 0 and ends is not None:
            beyond = np.minimum(above[:, 0], below[:, -1]) - math.log(len(sizes))
        least = np.minimum((above + below).min(axis=1), beyond)
        if look == 0:
            kept = np.argsort(-(least + weights), kind="stable")[:_KEPT]
            members, weights, beyond, least = members[kept], weights[kept], beyond[kept], least[kept]
            above, below = above[kept], below[kept]
        where = np.argmin(above + below, axis=1)
        low, high = mean[max(int(where.min()) - 1, 0)], mean[min(int(where.max()) + 1, _POINTS - 1)]
        if high <= low:
            break
    return _log_sum(least + weights)


def _gains(
    bet: Bet, sizes: tuple[float, ...], x: FloatArray, item: IntArray, n: int, mean: FloatArray, up: bool
) -> FloatArray:
    """(n, sizes, means): what the results of each item gain."""
    gains = np.zeros((n, len(sizes), mean.size))
    order = np.argsort(item, kind="stable")
    present, starts = np.unique(item[order], return_index=True)
    for j, size in enumerate(sizes):
        gains[present, j] = np.add.reduceat(bet(x, mean, size, up)[order], starts, axis=0)
    return gains


def _earlier_spread(arm: IntArray, x: FloatArray) -> FloatArray:
    """1.2533 times the mean of |x − mean of the arm's earlier ones|·√(m/(m+1)), over the results before each one."""
    earlier: dict[int, tuple[int, float]] = {}
    away: list[float] = []
    spreads = []
    total = 0.0
    for item, value in zip(arm.tolist(), x.tolist(), strict=True):
        spreads.append(1.2533 * total / len(away) if len(away) >= 3 and total > 0.0 else math.inf)
        m, mean = earlier.get(item, (0, 0.0))
        if m:
            away.append(abs(value - mean) * math.sqrt(m / (m + 1)))
            total += away[-1]
        earlier[item] = (m + 1, (m * mean + value) / (m + 1))
    return np.array(spreads)


_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


def _log_beta(a: Any, b: Any) -> FloatArray:
    """The logarithm of the beta function."""
    return np.asarray(_lgamma(a) + _lgamma(b) - _lgamma(np.asarray(a) + b))


def _log_sum(logs: FloatArray) -> float:
    return float(np.logaddexp.reduce(logs))


def _log_mean(logs: list[float]) -> float:
    return _log_sum(np.array(logs)) - math.log(len(logs))
