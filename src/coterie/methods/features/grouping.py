"""Grouping a block on one feature, and what all features that were found say of the groups (docs/FEATURES.md)."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from coterie.methods.features.measured import FeatureResults
from coterie.methods.features.search import Ask, Asking, Constants, Lead, Prices
from coterie.problem.checks import FloatArray, IntArray

_STEPS = 60


class Mixture(NamedTuple):
    """Normal components of known variances that fit results: log-likelihood, centers, shares, posteriors (n, r)."""

    log_likelihood: float
    centers: FloatArray
    shares: FloatArray
    posterior: FloatArray


def fit_mixture(x: FloatArray, variances: FloatArray, starts: Sequence[FloatArray]) -> Mixture:
    """By expectation and maximization from each start, the best of them."""
    best: Mixture | None = None
    for start in starts:
        centers = np.array(start, dtype=np.float64)
        shares = np.full(centers.size, 1.0 / centers.size)
        last = -math.inf
        for _ in range(_STEPS):
            logs = np.log(shares + 1e-300) - (x[:, None] - centers) ** 2 / (2.0 * variances[:, None])
            top = logs.max(axis=1)
            posterior = np.exp(logs - top[:, None])
            total = posterior.sum(axis=1)
            likelihood = float((top + np.log(total)).sum())
            posterior /= total[:, None]
            if likelihood - last < 1e-3:
                break
            last = likelihood
            weight = posterior / variances[:, None]
            centers = (weight * x[:, None]).sum(axis=0) / (weight.sum(axis=0) + 1e-12)
            shares = (posterior.sum(axis=0) + 0.5) / (x.size + 0.5 * centers.size)
        if best is None or likelihood > best.log_likelihood:
            best = Mixture(likelihood, centers, shares, posterior)
    assert best is not None
    return best


def _starts(x: FloatArray, parts: int, hint: Sequence[float]) -> list[FloatArray]:
    """Where the centers may be: quantiles, even steps, the largest gaps, and what led here."""
    ordered = np.sort(x)
    cuts = np.sort(np.argsort(-np.diff(ordered), kind="stable")[: parts - 1])
    starts = [
        np.quantile(x, (np.arange(parts) + 0.5) / parts),
        np.linspace(ordered[0], ordered[-1], parts),
        np.array([part.mean() for part in np.split(ordered, cuts + 1)]),
    ]
    return [*starts, np.array(hint)] if parts == 2 else starts


class Cut(NamedTuple):
    """A block in parts on one feature, and the least step between neighbours."""

    labels: IntArray
    gap: float


def cut_block(
    measured: FeatureResults,
    prices: Prices,
    members: IntArray,
    lead: Lead,
    hint: tuple[float, float],
    most: int,
    constants: Constants,
) -> Generator[list[Ask], None, Cut | None]:
    """Group the items of a block on a feature, in up to so many parts; None if they do not look different.

    `hint`: the means of the two items that lead here.
    """
    gap, feature = max(abs(hint[1] - hint[0]), 0.5 * lead.gap, 0.05), lead.feature
    panel = prices.panel_for(feature)
    n_items = members.size

    def more(items: IntArray, counts: FloatArray) -> list[Ask]:
        return [(int(item), panel, int(count)) for item, count in zip(items, np.maximum(1.0, counts), strict=True)]

    misses = 0
    for _ in range(200):
        step = max(2 if measured.scale.learns else 1, int(1.0 / gap**2))
        have = measured.column(feature)[0][members]
        few = have < min(step, 2.0 / gap**2 + 1.0)  # all, so that the far ones do not stay as they first looked
        if few.any():
            yield more(members[few], step - have[few])
        counts, sums = (part[members] for part in measured.column(feature))
        there = counts > 0.0
        if there.sum() < 2:
            return None
        x, variances = sums[there] / counts[there], 1.0 / counts[there]
        parts = range(2, min(most, int(there.sum())) + 1)
        fits = [fit_mixture(x, variances, [np.array([x.mean()])])]
        fits += [fit_mixture(x, variances, _starts(x, r, hint)) for r in parts]
        best = int(np.argmax([fit.log_likelihood - q * math.log(n_items) for q, fit in enumerate(fits)]))
        if best == 0:
            misses += 1
            if len(fits) < 2 or fits[1].log_likelihood - fits[0].log_likelihood < 0.5 or misses > 6:
                return None
            small = fits[1].posterior[:, int(fits[1].shares.argmin())] > 0.2
            yield more(members[there][small], np.full(int(small.sum()), step))
            gap = max(gap / 1.1, 0.05)
            continue
        fit = fits[best]
        order = np.argsort(fit.centers, kind="stable")
        steps = np.diff(fit.centers[order])
        wide = steps >= constants.near * steps.max()  # what is close stays together for now
        part = np.concatenate([[0], np.cumsum(wide)])
        posterior = np.stack([fit.posterior[:, order[part == p]].sum(axis=1) for p in range(part[-1] + 1)], axis=1)
        clear = float(steps[wide].min())
        doubt = 1.0 - posterior.max(axis=1)
        if doubt.sum() <= constants.settled:
            labels = np.zeros(n_items, dtype=np.int64)
            labels[there] = posterior.argmax(axis=1)
            return Cut(labels, clear) if np.unique(labels[there]).size > 1 else None
        gap = max(clear, 0.03)
        unclear = doubt > 0.03 / n_items
        yield more(members[there][unclear], np.floor(np.minimum(1.0, 0.3 + 2.0 * doubt[unclear]) / gap**2))
    return None


class Centers(NamedTuple):
    """Of each group and feature found: the mean and number of results."""

    means: FloatArray
    weights: FloatArray


class Groups:
    """The groups so far, on the features that were found, and what is known of them."""

    def __init__(self, measured: FeatureResults, prices: Prices, block: IntArray, n_groups: int, constants: Constants):
        self.measured, self.prices, self.constants = measured, prices, constants
        self.block, self.n_groups = block, n_groups
        self.gaps: dict[int, float] = {}  # with which each feature was found

    @property
    def features(self) -> list[int]:
        """Found so far."""
        return list(self.gaps)

    @property
    def costs(self) -> FloatArray:
        """Of a result of each feature, in units of one that is drawn."""
        return np.array([self.prices.relative(feature) for feature in self.gaps])

    def note_gap(self, feature: int, gap: float) -> None:
        """Groups differ on a feature."""
        self.gaps[feature] = max(self.gaps.get(feature, 0.0), gap)

    def table(self) -> tuple[FloatArray, FloatArray]:
        """(M, F) numbers and sums of results on the features found."""
        return self.measured.columns(self.features)

    def centers(self) -> Centers:
        """Means and weights of the groups, (K, F)."""
        counts, sums = self.table()
        weights, totals = np.zeros((self.n_groups, len(self.gaps))), np.zeros((self.n_groups, len(self.gaps)))
        np.add.at(weights, self.block, counts)
        np.add.at(totals, self.block, sums)
        return Centers(totals / np.maximum(weights, 1e-9), weights)

    def rates(self, centers: Centers | None = None) -> FloatArray:
        """(K, K, F) squared differences, less their errors, for a result's cost."""
        means, weights = self.centers() if centers is None else centers
        gap = np.abs(means[:, None] - means[None])
        errors = errors_of(weights)
        kept = np.maximum(gap - errors, gap / 3.0)
        return np.asarray(np.maximum(kept, 1e-2) ** 2 / self.costs)

    def fill(self) -> Asking:
        """Every group has a few results on every feature found, so that any difference of two is known."""
        for _ in range(3):
            asks: list[Ask] = []
            for feature in self.gaps:
                counts = self.measured.column(feature)[0]
                panel = self.prices.panel_for(feature)
                for k in range(self.n_groups):
                    members = np.flatnonzero(self.block == k)
                    lack = int(4 - counts[members].sum())
                    if lack > 0:
                        order = members[np.argsort(counts[members], kind="stable")]
                        asks += [(int(item), panel, 1) for item in np.resize(order, lack)]
            if not asks:
                return
            yield asks

    def margins(self) -> tuple[FloatArray, Centers]:
        """(M, K) log-likelihood of each item in each group, its own results left out of the group's, with its share."""
        centers = self.centers()
        means, weights = centers
        counts, sums = self.table()
        x = sums / np.maximum(counts, 1.0)
        block = self.block
        sizes = np.bincount(block, minlength=self.n_groups)
        logs = np.zeros((block.size, self.n_groups))
        for k in range(self.n_groups):
            own = (block == k)[:, None]
            weight = np.where(own, weights[k] - counts, weights[k])
            mean = np.where(own, (weights[k] * means[k] - sums) / np.maximum(weight, 1e-9), means[k])
            variance = 1.0 / np.maximum(counts, 1.0) + 1.0 / np.maximum(weight, 0.25)
            terms = np.where((counts > 0.0) & (weight > 0.0), -((x - mean) ** 2) / (2.0 * variance), 0.0)
            logs[:, k] = terms.sum(axis=1)
            if sizes[k] == 1:
                logs[own[:, 0], k] = 0.0
            logs[:, k] += np.log(np.maximum(sizes[k] - own[:, 0], 0.5))  # few items are of a small group
        return logs, centers

    def gap_of(self, logs: FloatArray) -> FloatArray:
        """(M, K) by how much each item's own group is likelier than each other; infinite for its own."""
        items = np.arange(self.block.size)
        gaps = logs[items, self.block][:, None] - logs
        gaps[items, self.block] = np.inf
        return np.asarray(gaps)

    def collapsed(self) -> tuple[int, int] | None:
        """Two groups that no feature found tells apart as it seemed when it was found."""
        means, weights = self.centers()
        most = np.abs(means[:, None] - means[None]) + errors_of(weights)
        kept = (most / np.array(list(self.gaps.values()))).max(axis=2) ** 2
        np.fill_diagonal(kept, np.inf)
        k, other = np.unravel_index(int(kept.argmin()), kept.shape)
        return (int(k), int(other)) if kept[k, other] < self.constants.collapse else None

    def closest(self) -> tuple[int, int]:
        """The two groups that cost most to tell apart."""
        near = self.rates().max(axis=2)
        np.fill_diagonal(near, np.inf)
        k, other = np.unravel_index(int(near.argmin()), near.shape)
        return int(k), int(other)

    def relabel(self, logs: FloatArray) -> bool:
        """Items move to the group that they fit best, none of them empties; whether any did."""
        block, sizes, moved = self.block.copy(), np.bincount(self.block, minlength=self.n_groups), False
        best = logs.argmax(axis=1)
        for item in np.flatnonzero(best != block):
            if sizes[block[item]] > 1:
                sizes[block[item]] -= 1
                block[item] = best[item]
                sizes[block[item]] += 1
                moved = True
        self.block = block
        return moved

    def explore(self) -> Generator[list[Ask], None, bool]:
        """Measure items of small margins until the risk is small; False if two groups have collapsed, or if it takes
        far more than groups with such gaps do."""
        yield from self.fill()
        near = self.rates().max(axis=2)
        np.fill_diagonal(near, np.inf)
        left = self.constants.late * float(np.maximum(1.0, 8.0 / near.min(axis=1))[self.block].sum() + 10.0)
        for _ in range(2000):
            if left < 0.0 or self.collapsed():
                return False
            logs, centers = self.margins()
            if self.relabel(logs):
                logs, centers = self.margins()
            gaps = self.gap_of(logs)
            least = gaps.min(axis=1)
            if np.exp(-np.maximum(gaps, 0.0)).sum() <= self.constants.settled:
                return True
            asks = self._doubtful(gaps, least, centers)
            left -= sum(count for _, _, count in asks)
            yield asks
        return False

    def _doubtful(self, gaps: FloatArray, least: FloatArray, centers: Centers) -> list[Ask]:
        """Asks for the items whose group is least sure, and for groups that are not known well enough beside them."""
        features, rates, counts = self.features, self.rates(centers), self.table()[0]
        cut = min(max(1.0, float(least.min()) + 2.0, -math.log(0.05 / self.block.size)), 12.0)
        asks: list[Ask] = []
        for item in np.flatnonzero(least < cut):
            k, other = int(self.block[item]), int(gaps[item].argmin())
            place = int(rates[k, other].argmax())
            step = min(4000, max(1, int(2.0 / max(float(rates[k, other, place]), 1e-3))))
            panel = self.prices.panel_for(features[place])
            asks.append((int(item), panel, step))
            if centers.weights[other, place] < 3.0 * (counts[item, place] + step):
                members = np.flatnonzero(self.block == other)
                asks.append((int(members[counts[members, place].argmin()]), panel, step))
        return asks

    def least_known(self) -> list[Ask]:
        """A result of each of some items, on the feature that tells their group from the nearest one."""
        rates, counts = self.rates(), self.table()[0]
        near = rates.max(axis=2)
        np.fill_diagonal(near, np.inf)
        place = rates[np.arange(self.n_groups), near.argmin(axis=1)].argmax(axis=1)[self.block]
        few = np.argsort(counts[np.arange(self.block.size), place], kind="stable")[: self.constants.batch]
        features = self.features
        return [(int(item), self.prices.panel_for(features[place[item]]), 1) for item in few]


def farthest_groups(measured: FeatureResults, dim: int, n_groups: int) -> tuple[IntArray, dict[int, float]]:
    """Groups around items that are far from one another in all features, and for each two of them the feature on which
    they differ most, with the difference; no features if there are not so many different items."""
    counts, sums = measured.columns(range(dim))
    x = sums / np.maximum(counts, 1.0)
    leads = [0]
    distances = ((x - x[0]) ** 2).sum(axis=1)[:, None]
    while len(leads) < n_groups:
        leads.append(int(distances.min(axis=1).argmax()))
        distances = np.column_stack([distances, ((x - x[leads[-1]]) ** 2).sum(axis=1)])
    distances[leads, np.arange(n_groups)] = -1.0
    block: IntArray = distances.argmin(axis=1)
    if np.unique(block).size < n_groups:
        return block, {}
    centers = np.stack([x[block == k].mean(axis=0) for k in range(n_groups)])
    gaps: dict[int, float] = {}
    for k in range(n_groups):
        for other in range(k):
            differences = np.abs(centers[k] - centers[other])
            feature = int(differences.argmax())
            gaps[feature] = max(gaps.get(feature, 0.0), float(differences[feature]), 1e-6)
    return block, gaps


def errors_of(weights: FloatArray) -> FloatArray:
    """(K, K, F) the standard errors of differences of group means."""
    inverse = 1.0 / np.maximum(weights, 1e-9)
    return np.asarray(np.sqrt(inverse[:, None] + inverse[None]))
