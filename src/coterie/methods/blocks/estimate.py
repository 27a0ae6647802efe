"""The groups by all results so far, with an offset for every block: a two-way fit. Nothing here enters a proof.

Positions are x = U_h + β_b + noise. With N_kb results of group k in block b the centers solve
L·U = S_k − Σ_b N_kb·S_b/N_b with L = diag(N_k) − N_kb·diag(1/N_b)·N_kb'. Only differences inside a block are known, so
centers count from the mean of all results. Parts of the arms that no block joins cannot be compared.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical

MOST_MOVES = 12
STARTS = 6
"""How often groups are looked for from scratch, in one estimate."""
FAR = 3.0
"""Standard deviations beyond which a result counts no more, where tails may be heavy."""


class Places:
    """All results told: arm, block, and the position, counted from the first result of its block."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._arms: list[int] = []
        self._blocks: list[int] = []
        self._rows: list[FloatArray] = []
        self._first: list[FloatArray] = []  # of each block
        self._numbers: dict[str, int] = {}
        self._kept = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, dim)))

    def __len__(self) -> int:
        return len(self._arms)

    @property
    def n_blocks(self) -> int:
        """Blocks that have a result."""
        return len(self._first)

    def add(self, arm: int, block: str, x: FloatArray) -> None:
        """A result (d), or (2·d) with what floats do not hold of it."""
        number = self._numbers.setdefault(block, len(self._first))
        if number == len(self._first):
            self._first.append(x)
        away = x - self._first[number]
        self._arms.append(arm)
        self._blocks.append(number)
        self._rows.append(away if away.size == self._dim else away[: self._dim] + away[self._dim :])

    def first(self, block: int) -> FloatArray:
        """The first result of a block, from which its positions count."""
        return self._first[block][: self._dim]

    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Arms (n), blocks (n) and positions (n, d)."""
        arms, blocks, rows = self._kept
        n = len(arms)
        if n < len(self._arms):
            self._kept = (
                np.concatenate([arms, np.array(self._arms[n:], dtype=np.int64)]),
                np.concatenate([blocks, np.array(self._blocks[n:], dtype=np.int64)]),
                np.concatenate([rows, np.array(self._rows[n:]).reshape(-1, self._dim)]),
            )
        return self._kept


class Fit(NamedTuple):
    """A two-way fit for given groups (or arms): centers, offsets, the matrix L and its inverse, how many parts."""

    centers: FloatArray  # (K, d), weighted mean 0
    offsets: FloatArray  # (B, d)
    inverse: FloatArray  # (K, K) of L, on what it sees
    parts: FloatArray  # (K, parts) an orthonormal base of what no block joins


def table_of(
    labels: IntArray, blocks: IntArray, rows: FloatArray, n_groups: int, n_blocks: int
) -> tuple[FloatArray, FloatArray]:
    """Counts (K, B) and sums (K, B, d) of results by group and block."""
    where, size = labels * n_blocks + blocks, n_groups * n_blocks
    counts = np.bincount(where, minlength=size).reshape(n_groups, n_blocks).astype(np.float64)
    sums = np.stack([np.bincount(where, column, size) for column in rows.T], axis=-1)
    return np.asarray(counts), np.asarray(sums.reshape(n_groups, n_blocks, -1), dtype=np.float64)


def fit_of(counts: FloatArray, sums: FloatArray) -> Fit:
    """The two-way fit of counts (K, B) and sums (K, B, d)."""
    of_block = np.maximum(counts.sum(axis=0), 1.0)
    of_group = counts.sum(axis=1)
    matrix = np.diag(of_group) - counts @ (counts / of_block).T
    right = sums.sum(axis=1) - np.einsum("kb,bq->kq", counts / of_block, sums.sum(axis=0))
    values, vectors = np.linalg.eigh(matrix)
    seen = values > 1e-9 * max(float(values[-1]), 1.0)
    inverse = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
    centers = inverse @ right
    centers -= of_group @ centers / max(float(of_group.sum()), 1.0)
    offsets = (sums.sum(axis=0) - np.einsum("kb,kq->bq", counts, centers)) / of_block[:, None]
    return Fit(centers, offsets, inverse, vectors[:, ~seen])


class Estimate(NamedTuple):
    """The groups by all results, in units of the noise (`metric`), and how sure they are."""

    labels: IntArray
    centers: FloatArray  # (K, d) in the units of the results
    scatter: FloatArray  # (d, d) the noise's covariance
    metric: FloatArray  # (d, d) T with T'T = scatter⁻¹
    freedom: float  # degrees of freedom of the scatter
    inverse: FloatArray  # (K, K) of the two-way fit's matrix
    counts: IntArray  # (M) results of each arm
    margins: FloatArray  # (M, K) how much better each arm suits its group than another; ∞ for its own
    risk: float  # that the groups are wrong, roughly
    parts: IntArray | None  # (M) the part of each arm, where blocks leave several
    far: float  # the share of results that were drawn in


class _Tried(NamedTuple):
    """A partition that was fitted: centers and offsets, means of arms, results of groups, its posterior."""

    fit: Fit
    means: FloatArray
    weights: FloatArray
    score: float


class Estimator:
    """Finds groups from places. `known`: the noise is, and has covariance I. `robust`: tails may be heavy."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, known: bool, robust: bool, seed: int) -> None:
        self.shape, self._known, self._robust, self._seed = (n_arms, n_clusters, dim), known, robust, seed
        self._searched_at = 0

    def renew(self, places: Places, old: IntArray | None, frozen: bool) -> Estimate | None:
        """The estimate by all results; None before every arm has one. `frozen`: a candidate is being tested."""
        n_arms, n_groups, dim = self.shape
        arms, blocks, rows = places.arrays()
        counts = np.bincount(arms, minlength=n_arms)
        if (counts == 0).any():
            return None
        n_blocks = places.n_blocks
        table = table_of(arms, blocks, rows, n_arms, n_blocks)
        whole = fit_of(*table)
        parts = None
        if whole.parts.shape[1] > 1:  # rows of the projection are equal within a part
            projection = np.round(whole.parts @ whole.parts.T, 6)
            parts = np.unique(projection, axis=0, return_inverse=True)[1].reshape(-1)
        scatter, freedom, far, rows = self._noise(arms, blocks, rows, table, whole, n_blocks)
        metric = np.eye(dim) if self._known else np.linalg.cholesky(np.linalg.inv(scatter)).T
        table = table_of(arms, blocks, rows @ metric.T, n_arms, n_blocks)
        starts = [] if old is None else [old]
        if old is None or not frozen or len(arms) >= 1.2 * self._searched_at:
            self._searched_at = len(arms)
            starts += self._starts(fit_of(*table).centers, len(arms))
        known: dict[bytes, _Tried] = {}
        improved = [self._improved(table, counts, canonical(start), known) for start in starts]
        scores = [known[labels.tobytes()].score for labels in improved]
        labels = improved[int(np.argmax(np.array(scores) - 1e-9 * np.arange(len(scores))))]  # the first of equals
        labels = labels if old is None else renumbered(labels, old, n_groups)
        fit, means, weights = self._fitted(table, counts, labels)
        margins = margins_of(means, counts, labels, fit.centers, weights)
        risk = 1.0 if parts is not None else float(np.exp(-np.maximum(margins, 0.0))[np.isfinite(margins)].sum())
        risk += merging_risk(fit, np.bincount(labels, minlength=n_groups), dim)
        centers = np.asarray(np.linalg.solve(metric, fit.centers.T).T)
        return Estimate(labels, centers, scatter, metric, freedom, fit.inverse, counts, margins, risk, parts, far)

    def _noise(
        self,
        arms: IntArray,
        blocks: IntArray,
        rows: FloatArray,
        table: tuple[FloatArray, FloatArray],
        whole: Fit,
        n_blocks: int,
    ) -> tuple[FloatArray, float, float, FloatArray]:
        """The scatter of results around their arm and block, its degrees of freedom, and results drawn in."""
        n_arms, _, dim = self.shape
        if self._known:
            return np.eye(dim), math.inf, 0.0, rows
        freedom = float(len(arms) - n_arms - n_blocks + whole.parts.shape[1])
        far = 0.0
        for _ in range(2 if self._robust else 1):
            fitted = whole.centers[arms] + whole.offsets[blocks]
            apart = rows - fitted
            if not self._robust or freedom < 4:
                break
            scale = np.median(np.abs(apart), axis=0) / 0.6745 * math.sqrt(len(arms) / max(freedom, 1.0))
            few = np.array([np.unique(column).size <= 4 for column in apart.T])
            reach = np.where(few | (scale <= 0.0), np.inf, FAR * np.maximum(scale, 1e-300))
            drawn = np.clip(apart, -reach, reach)
            far = float((np.abs(apart) > reach).any(axis=1).mean())
            if not far:
                break
            rows = fitted + drawn
            whole = fit_of(*table_of(arms, blocks, rows, n_arms, n_blocks))
        spread = rows - rows.mean(axis=0)
        floor = np.diag(np.maximum((spread**2).mean(axis=0), 1e-24)) * 1e-6
        if freedom < 1.0:
            return np.diag(np.maximum((spread**2).mean(axis=0), 1e-12)) + floor, 0.0, far, rows
        apart = rows - whole.centers[arms] - whole.offsets[blocks]
        scatter = apart.T @ apart / freedom * (1.0 + 2.0 / freedom)
        off = scatter - np.diag(np.diag(scatter))
        return scatter - off * min(1.0, (dim + 1.0) / freedom) + floor, freedom, far, rows

    def _starts(self, means: FloatArray, n_results: int) -> list[IntArray]:
        """Groups around arms that lie far apart."""
        n_arms, n_groups, _ = self.shape
        rng = np.random.default_rng([self._seed, n_results])
        starts = []
        for attempt in range(STARTS):
            chosen = [int(rng.integers(n_arms))]
            while len(chosen) < n_groups:
                away = ((means[:, None] - means[chosen]) ** 2).sum(axis=2).min(axis=1)
                total = float(away.sum())
                if attempt % 2 and total > 0.0:
                    chosen.append(int(rng.choice(n_arms, p=away / total)))
                else:
                    away[chosen] = -1.0
                    chosen.append(int(np.argmax(away)))
            starts.append(((means[:, None] - means[chosen]) ** 2).sum(axis=2).argmin(axis=1))
        return starts

    def _fitted(
        self, table: tuple[FloatArray, FloatArray], counts: IntArray, labels: IntArray
    ) -> tuple[Fit, FloatArray, FloatArray]:
        """The fit of groups, the arms' means without offsets, and the results of each group."""
        own = np.zeros((self.shape[1], self.shape[0]))
        own[labels, np.arange(labels.size)] = 1.0
        by_arm, sums = table
        fit = fit_of(own @ by_arm, np.einsum("km,mbq->kbq", own, sums))
        means = (sums.sum(axis=1) - by_arm @ fit.offsets) / counts[:, None]
        return fit, means, own @ counts

    def _improved(
        self, table: tuple[FloatArray, FloatArray], counts: IntArray, start: IntArray, known: dict[bytes, _Tried]
    ) -> IntArray:
        """Hartigan's moves, all arms at once, then offsets anew, as long as the posterior grows."""
        labels = filled(start, self.shape[1], counts)
        tried = self._tried(table, counts, labels, known)
        for _ in range(MOST_MOVES):
            moved = hartigan(tried.means, counts, labels, tried.fit.centers, tried.weights)
            moved = filled(moved, self.shape[1], counts)
            further = self._tried(table, counts, moved, known)
            if further.score <= tried.score:
                break
            labels, tried = moved, further
        return labels

    def _tried(
        self, table: tuple[FloatArray, FloatArray], counts: IntArray, labels: IntArray, known: dict[bytes, _Tried]
    ) -> _Tried:
        """The fit of a partition, and log of its posterior up to a constant (docs/CROC.md, section 7)."""
        key = labels.tobytes()
        if key not in known:
            fit, means, weights = self._fitted(table, counts, labels)
            sums = table[1]
            # The part of the cost that depends on the groups: −½·(S·U + S·β) with both fitted.
            explained = float((sums.sum(axis=1) * fit.centers[labels]).sum() + (sums.sum(axis=0) * fit.offsets).sum())
            orders = sum(math.lgamma(size + 1.0) for size in np.bincount(labels, minlength=self.shape[1]).tolist())
            score = 0.5 * explained + orders - 0.5 * self.shape[2] * float(np.log(weights).sum())
            known[key] = _Tried(fit, means, weights, score)
        return known[key]


def filled(labels: IntArray, n_groups: int, counts: IntArray) -> IntArray:
    """No group is empty: one gets an arm of the largest."""
    labels = labels.copy()
    for k in range(n_groups):
        if not (labels == k).any():
            sizes = np.bincount(labels, minlength=n_groups)
            labels[np.flatnonzero(labels == sizes.argmax())[0]] = k
    return labels


def hartigan(
    means: FloatArray, counts: IntArray, labels: IntArray, centers: FloatArray, weights: FloatArray
) -> IntArray:
    """Where each arm would cost least if it moved alone; one that is alone stays."""
    away = ((means[:, None] - centers) ** 2).sum(axis=2)
    n = counts.astype(np.float64)[:, None]
    cost = weights / (weights + n) * away
    arms = np.arange(labels.size)
    left = weights[labels] - counts
    own = weights[labels] / np.maximum(left, 1e-9) * away[arms, labels]
    cost[arms, labels] = np.where(left > 0, own, -1.0) - 1e-12
    return np.asarray(cost.argmin(axis=1))


def margins_of(
    means: FloatArray, counts: IntArray, labels: IntArray, centers: FloatArray, weights: FloatArray
) -> FloatArray:
    """(M, K) D_mk of docs/CROC.md, section 7; ∞ for the own group, and for an arm that is alone."""
    away = ((means[:, None] - centers) ** 2).sum(axis=2)
    n, arms = counts.astype(np.float64), np.arange(labels.size)
    left = weights[labels] - n
    own = n * weights[labels] / np.maximum(left, 0.5) * away[arms, labels]
    margins = 0.5 * (n[:, None] * weights / (n[:, None] + weights) * away - own[:, None])
    margins[arms, labels] = np.inf
    margins[left <= 0.0] = np.inf
    return np.asarray(margins)


def merging_risk(fit: Fit, sizes: IntArray, dim: int) -> float:
    """That two groups are one, split by chance: splits by a plane times the tail of χ²."""
    risk = 0.0
    for k in range(len(sizes)):
        for other in range(k):
            gap = fit.centers[k] - fit.centers[other]
            variance = fit.inverse[k, k] + fit.inverse[other, other] - 2.0 * fit.inverse[k, other]
            cost = 0.5 * float(gap @ gap) / max(float(variance), 1e-12)
            n = int(sizes[k] + sizes[other])
            ways = max(
                min((n - 1) * math.log(2.0), dim * math.log(n)),
                math.lgamma(n + 1.0) - math.lgamma(sizes[k] + 1.0) - math.lgamma(sizes[other] + 1.0),
            )
            tail = -cost + max(0.0, (dim / 2.0 - 1.0) * math.log(max(cost, 1e-12))) - math.lgamma(dim / 2.0)
            risk += min(1.0, math.exp(min(0.0, tail + ways)))
    return risk


def renumbered(labels: IntArray, old: IntArray, n_groups: int) -> IntArray:
    """Groups keep their numbers as far as they overlap, the largest overlap first."""
    overlap = np.zeros((n_groups, n_groups))
    np.add.at(overlap, (labels, old), 1.0)
    number = np.full(n_groups, -1)
    for _ in range(n_groups):
        k, before = divmod(int(overlap.argmax()), n_groups)
        number[k] = before
        overlap[k], overlap[:, before] = -1.0, -1.0
    return number[labels]
