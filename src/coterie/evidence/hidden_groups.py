"""Evidence that a group hides two, for every noise: a test of K that is valid for any rule of sampling and stopping.

If the reported groups are the true ones, results of a group's items have one law (or one mean, where the noise stated
says no more). Against that stand all ways to split its items in two classes (`coterie.evidence.hidden_bets`). Two kinds
of e-process are used.

*Predicted by two classes* (a known noise, Gaussian noise, counts, and any noise by way of bins). Let M(x_1 … x_t) be
the density of a group's first t results, in the order in which they counted, under a mixture: a split by its weight,
and given it two classes, each with a law of its own, by a prior. Let L_θ be the density if all items have the law θ.
For a number r that is fixed before,

    E_t = [M(x_1 … x_t)/M(x_1 … x_r)] / sup_θ L_θ(x_{r+1} … x_t)

is at most the same with the true θ, and that is a ratio of densities of x_{r+1} … x_t given x_1 … x_r: a martingale
that starts at 1. Which item is measured next depends on the past only, so it cancels. M and what is predicted (bins,
scores) may depend on x_1 … x_r, and M may be improper, as long as it is proper given them.

*Bets* (bounded results, bounded variance, symmetric noise, and any noise by way of a bounded score):
`coterie.evidence.hidden_bets`.

Means of e-processes are e-processes. And K·w_k times that of the group k, for weights w_k that sum to 1 (here by the
number of items of a group), reaches K/0.01 in any group with probability at most 0.01 in all, by Ville's inequality.
Nothing has to be paid for groups that were found with the same results: under the hypothesis that they are the true
groups, they are no choice. As for the proof, delays of results must not depend on their values.

*Which difference would have been seen* (`visible_difference`), with stated power, by as many results as there are. A
group is taken for two halves of its items, every second one shifted by g in one number of the results, and is tested as
above. The results are drawn anew from those at hand: every item keeps its number of results and the order in which they
counted, and gets residuals of its group at random (of a known noise, noise as stated; of counts, new counts), so
nothing more is assumed about the noise. It is the group with the fewest results for an item, which shows least. The
least g is looked for, to about an eighth, at which the group is called mixed in all of ten such draws: that is in about
nine of ten runs. Seeds are fixed: the same results give the same answer. It is an estimate, not a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from scipy.special import gammaln, logsumexp

from coterie.evidence.hidden_bets import (
    MOST_RESULTS,
    Splits,
    bet_evidence,
    bounded_factors,
    scales_before,
    splits_of,
    symmetric_factors,
    variance_factors,
)
from coterie.evidence.homogeneity import group_evidence
from coterie.evidence.order import columns_looked_at
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Model, Unknown
from coterie.problem.noise import Noise
from coterie.problem.statements import LIKE_ANY, Bounded, Counts

SHIFT = 4.0
"""The prior variance of the distance of two classes, in units of the noise's."""
STILL = 1e-12
"""The share of the squares of results that is rounding."""
MOST_COLUMNS = 8
"""Numbers of a result that are looked at."""

Marginals = Callable[[int], FloatArray]

_DRAWS, _STEPS, _WIDEST = 10, 5, 16.0

_MOST_RESULTS = 2000


def hidden_evidence(noise: Model, arms: IntArray, values: FloatArray, labels: IntArray, n_groups: int) -> FloatArray:
    """The log-evidence of each group that its items are not alike; 0 for groups of fewer than two.

    Parameters
    ----------
    noise
        What is known about the noise.
    arms, values
        (N) and (N, d): the items and the results, in the order in which they counted, in the user's units.
    labels
        (M): the group of each item, -1 for items without one.
    n_groups
        K.

    Returns
    -------
    FloatArray
        (K). If the groups are right, any of them reaches log(K/0.01) with probability at most 0.01, whenever one looks.
    """
    evidence = np.zeros(n_groups)
    here = labels[arms] >= 0
    arms, values = arms[here], values[here]
    sizes = np.bincount(labels[labels >= 0], minlength=n_groups)
    several = np.flatnonzero(sizes > 1)
    columns = columns_looked_at(values.shape[1], MOST_COLUMNS)
    scales = np.zeros((arms.size, columns.size))
    if noise.kind == "symmetric":
        scales = np.stack([scales_before(arms, values[:, q]) for q in columns.tolist()], axis=1)
    by_group = np.argsort(labels[arms], kind="stable")
    ends = np.cumsum(np.bincount(labels[arms], minlength=n_groups))
    order = np.argsort(labels, kind="stable")
    last = np.cumsum(np.bincount(labels[labels >= 0], minlength=n_groups)) + (labels < 0).sum()
    for k in several.tolist():
        mine = by_group[ends[k - 1] if k else 0 : ends[k]]
        if mine.size < 2:
            continue
        place = np.searchsorted(order[last[k] - sizes[k] : last[k]], arms[mine])
        x = values[mine]
        if isinstance(noise, Noise):
            log_e = _known(noise, place, x, int(sizes[k]))
        else:
            x = noise.whiten(x - x[0]) if noise.in_units else x
            each = [
                _one_number(noise, place, x[:, q], scales[mine, i], int(sizes[k]), q)
                for i, q in enumerate(columns.tolist())
            ]
            log_e = float(logsumexp(each)) - math.log(len(each))
        evidence[k] = log_e + math.log(n_groups * sizes[k] / sizes[several].sum())
    return evidence


def _known(noise: Noise, arms: IntArray, values: FloatArray, n: int) -> float:
    """All numbers of a result together: a quarter of E is that of `coterie.evidence.homogeneity`."""
    white = noise.whiten(values - values[0])
    pulls = np.bincount(arms, minlength=n)
    means = _item_means(arms, white, n)
    old = float(group_evidence(pulls, means, np.zeros(n, dtype=np.int64), 1)[0])
    leading = int(np.argmax(np.ptp(means, axis=0)))
    splits = splits_of(means[:, leading])
    by_known = _gaussian_marginals(splits, arms, white, known=True)

    def best(start: int) -> float:
        rest = white[start:]
        return -0.5 * float(((rest - rest.mean(axis=0)) ** 2).sum()) - 0.5 * rest.size * math.log(2.0 * math.pi)

    new = _predicted(splits, by_known, best, len(white), (3, n // 2 + 2, n))
    return float(np.logaddexp(math.log(0.25) + old, math.log(0.75) + new))


def _one_number(noise: Unknown, arms: IntArray, x: FloatArray, scales: FloatArray, n: int, q: int) -> float:
    """The log-evidence of one number of the results."""
    stated = noise.statement
    if noise.kind == "gaussian":
        return _gaussian(arms, x - x[0], n)
    if isinstance(stated, Counts):
        return _counts(arms, x, n, stated.trials)
    most = min(max(MOST_RESULTS, 4 * n), 10 * MOST_RESULTS)
    arms, x = arms[:most], x[:most]
    splits = splits_of(_item_means(arms, x[:, None], n)[:, 0])
    weights = splits.log_weights
    if noise.kind in LIKE_ANY:
        return _any(arms, x, n, splits)
    if isinstance(stated, Bounded):
        lo, hi = stated.lo[q % len(stated.lo)], stated.hi[q % len(stated.hi)]
        return bet_evidence(bounded_factors, ((x - lo) / (hi - lo))[:, None], arms, splits, weights, ends=True)
    if noise.kind == "at-most":
        return bet_evidence(variance_factors, x[:, None], arms, splits, weights, ends=False)
    where = np.stack([x, scales[:most]], axis=1)
    return bet_evidence(symmetric_factors, where, arms, splits, weights, ends=False)


def _item_means(arms: IntArray, values: FloatArray, n: int) -> FloatArray:
    """(n, d) means of the items' results, 0 where there is none; correctly rounded sums, so that ties are ties."""
    order = np.argsort(arms, kind="stable")
    parts = np.split(values[order], np.cumsum(np.bincount(arms, minlength=n))[:-1])
    return np.array([[math.fsum(column.tolist()) / max(len(part), 1) for column in part.T] for part in parts])


# Predicted by two classes.


def _predicted(
    splits: Splits, marginals: Marginals, best: Callable[[int], float], n: int, starts: Iterable[int]
) -> float:
    """The log of the mean over the starts r of E; 1 while there are no results after it, or M is improper."""
    logs, now = [], marginals(n) + splits.log_weights
    for start in starts:
        if n < start + 2:
            logs.append(0.0)
            continue
        before = marginals(start)
        if not np.isfinite(before).all():
            logs.append(0.0)
        elif splits.every:
            logs.append(float(logsumexp(now) - logsumexp(before + splits.log_weights)) - best(start))
        else:  # a split by itself: what is left out of M(x_1 … x_r) would make E too large
            logs.append(float(logsumexp(now - before)) - best(start))
    return float(logsumexp(logs)) - math.log(len(logs))


def _gaussian_marginals(splits: Splits, arms: IntArray, x: FloatArray, known: bool) -> Marginals:
    """log M of each split for Gaussian results (N, d).

    The mean of the rest has a flat prior, the shift of S has N(0, SHIFT·σ²); σ = 1 if it is `known`, else it has the
    prior dσ/σ (and d = 1).
    """
    rows, dim = splits.rows[arms], x.shape[1]

    def of_first(n: int) -> FloatArray:
        own, early = rows[:n], x[:n]
        counts = np.bincount(own, minlength=splits.n_rows).astype(np.float64)
        sums = np.zeros((splits.n_rows, dim))
        np.add.at(sums, own, early)
        inside, total = splits.sums(counts), splits.sums(sums)
        rest, other = counts.sum() - inside, sums.sum(axis=0) - total
        squares = float((early**2).sum())
        within = squares - _squares(total, inside) - _squares(other, rest)
        gap = total / np.maximum(inside, 1.0)[:, None] - other / np.maximum(rest, 1.0)[:, None]
        weight = inside * rest / (inside + rest + SHIFT * inside * rest)
        form = np.maximum(within, 0.0) + weight * (gap**2).sum(axis=1)
        spread = 0.5 * dim * (np.log1p(SHIFT * inside) + np.log(rest + inside / (1.0 + SHIFT * inside)))
        half = 0.5 * (n - 1)
        if known:
            return np.asarray(-spread - 0.5 * form - half * dim * math.log(2.0 * math.pi))
        varies = form > STILL * squares  # M is infinite where results do not vary
        logs = -half * np.log(np.where(varies, math.pi * form, 1.0))
        return np.where(varies, logs - spread + gammaln(half), np.inf)

    return of_first


def _squares(sums: FloatArray, counts: FloatArray) -> FloatArray:
    squares: FloatArray = (sums**2).sum(axis=1) / np.maximum(counts, 1.0)
    return squares


def _gaussian(arms: IntArray, x: FloatArray, n: int) -> float:
    splits = splits_of(_item_means(arms, x[:, None], n)[:, 0])

    def best(start: int) -> float:
        rest = x[start:]
        variance = float(((rest - rest.mean()) ** 2).mean())
        return math.inf if variance <= 0.0 else -0.5 * rest.size * (math.log(2.0 * math.pi * variance) + 1.0)

    marginals = _gaussian_marginals(splits, arms, x[:, None], known=False)
    return _predicted(splits, marginals, best, x.size, (n // 2 + 2, n, 2 * n))


def _table_marginals(splits: Splits, arms: IntArray, table: FloatArray) -> Marginals:
    """log M of each split for results that are numbers of trials in each of B bins (N, B): Dirichlet(½) priors."""
    rows = splits.rows[arms]

    def of_first(n: int) -> FloatArray:
        counts = np.zeros((splits.n_rows, table.shape[1]))
        np.add.at(counts, rows[:n], table[:n])
        inside = splits.sums(counts)
        return _dirichlet(inside) + _dirichlet(counts.sum(axis=0) - inside)

    return of_first


def _dirichlet(counts: FloatArray) -> FloatArray:
    bins = counts.shape[1]
    each = (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=1)
    log_density: FloatArray = each - gammaln(counts.sum(axis=1) + 0.5 * bins) + gammaln(0.5 * bins)
    return log_density


def _best_table(table: FloatArray) -> Callable[[int], float]:
    def best(start: int) -> float:
        counts = table[start:].sum(axis=0)
        seen = counts[counts > 0.0]
        return float((seen * np.log(seen / counts.sum())).sum())

    return best


def _counts(arms: IntArray, x: FloatArray, n: int, trials: int) -> float:
    table = np.stack([x, trials - x], axis=1)
    splits = splits_of(_item_means(arms, x[:, None], n)[:, 0])
    return _predicted(splits, _table_marginals(splits, arms, table), _best_table(table), x.size, (n // 2 + 2, n, 2 * n))


def _any(arms: IntArray, x: FloatArray, n: int, splits: Splits) -> float:
    """Bins, and a bounded score, each made from the first results: half of the evidence each."""
    bins, scores = [], []
    for start in (max(n, 6), 2 * max(n, 6)):
        if x.size < start + 2:
            bins.append(0.0)
            scores.append(0.0)
            continue
        early = np.sort(x[:start])
        middle, scale = early[(start - 1) // 2], 1.2533 * float(np.abs(early - early[(start - 1) // 2]).mean())
        inner = early[start // 4 : start - start // 4]
        gap = int(np.argmax(np.diff(inner)))
        marginals = {}
        for cut in (middle, 0.5 * (inner[gap] + inner[gap + 1])):
            table = np.stack([x <= cut, x > cut], axis=1).astype(np.float64)
            marginals[cut] = _table_marginals(splits, arms, table)
            bins.append(_predicted(splits, marginals[cut], _best_table(table), x.size, (start,)) - math.log(2.0))
        if scale <= 0.0:
            scores.append(0.0)
            continue
        learned = splits.log_weights
        if splits.every:  # what the first results say about the splits
            learned = learned + marginals[middle](start)
            learned = learned - logsumexp(learned)
        score = 0.5 + 0.5 * np.tanh((x[start:] - middle) / scale)
        scores.append(bet_evidence(bounded_factors, score[:, None], arms[start:], splits, learned, ends=True))
    return float(logsumexp([*bins, *scores])) - math.log(4.0)


def visible_difference(
    noise: Model, arms: IntArray, values: FloatArray, labels: IntArray, n_groups: int, level: float
) -> tuple[float, ...] | None:
    """For each number of a result, the difference inside a group that would have been seen.

    Parameters
    ----------
    noise, arms, values, labels, n_groups
        As for `hidden_evidence`.
    level
        The evidence at which a group is called mixed.

    Returns
    -------
    tuple of float or None
        In the user's units (infinite: none would); None if no group has two items and four results.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=n_groups)
    results = np.bincount(labels[arms][labels[arms] >= 0], minlength=n_groups)
    able = np.flatnonzero((sizes > 1) & (results > 3))
    if able.size == 0:
        return None
    k = int(able[np.argmin(results[able] / sizes[able])])
    mine = np.flatnonzero(labels[arms] == k)[:_MOST_RESULTS]
    place = np.searchsorted(np.flatnonzero(labels == k), arms[mine])
    wanted = level - math.log(n_groups * sizes[k] / sizes[sizes > 1].sum())  # the share of other groups stays theirs
    return tuple(_in_group(noise, place, values[mine], int(sizes[k]), q, wanted) for q in range(values.shape[1]))


def _in_group(noise: Model, arms: IntArray, x: FloatArray, n: int, q: int, wanted: float) -> float:
    """The difference for one group and one number."""
    sums = np.stack([np.bincount(arms, column, minlength=n) for column in x.T], axis=1)
    means = sums / np.maximum(np.bincount(arms, minlength=n), 1)[:, None]
    own = x - means[arms]
    repeated = np.bincount(arms, minlength=n)[arms] > 1
    own = own[repeated] if repeated.any() else x - x.mean(axis=0)
    # Residuals are too small by the degree of freedom that each item's mean takes.
    own *= math.sqrt(len(own) / max(len(own) - np.unique(arms[repeated]).size, 1))
    spread = math.sqrt(float((own[:, q] ** 2).mean()))
    if isinstance(noise, Noise):
        spread = math.sqrt(float(noise.covariance[q, q]))
    if spread <= 0.0:
        return 0.0
    low, high = _WIDEST / 40.0 * spread, _WIDEST * spread
    if not _seen(noise, arms, x, own, n, q, high, wanted):
        return math.inf
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        if _seen(noise, arms, x, own, n, q, middle, wanted):
            high = middle
        else:
            low = middle
    return high


def _seen(
    noise: Model, arms: IntArray, x: FloatArray, own: FloatArray, n: int, q: int, gap: float, wanted: float
) -> bool:
    """Whether the difference is seen in all draws."""
    labels = np.zeros(n, dtype=np.int64)
    for draw in range(_DRAWS):
        rng = np.random.default_rng((draw, n, len(arms)))
        high = (rng.permutation(n) % 2 == 0)[arms]
        shift = np.where(high, 0.5 * gap, -0.5 * gap)
        y = x.mean(axis=0) + own[rng.integers(len(own), size=len(arms))]
        if isinstance(noise, Noise):
            y = x.mean(axis=0) + noise.color(rng.standard_normal(x.shape))
        y[:, q] += shift
        stated = noise.statement if isinstance(noise, Unknown) else None
        if isinstance(stated, Counts):
            rates = np.clip((x.mean(axis=0) + np.eye(x.shape[1])[q] * shift[:, None]) / stated.trials, 0.0, 1.0)
            y = rng.binomial(stated.trials, rates).astype(np.float64)
        elif isinstance(stated, Bounded):
            y = np.clip(y, stated.lo, stated.hi)
        if float(hidden_evidence(noise, arms, y, labels, 1)[0]) < wanted:
            return False
    return True
