"""Groups by the spread and shape of results in a run by cells, beside those by location (docs/EVIDENCE.md, section 3).

Features of positions that are freed of blocks are results of an estimate of their own. Each of the two estimates is
judged by what it has predicted; the one that leads says what to measure and when to freeze. Nothing here enters a
proof: bets on features are seen from the mean of the cell, and any numbers in them are valid.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from coterie.methods.blocks.estimate import Estimate, Estimator
from coterie.methods.blocks.places import Places, fit_of, table_of
from coterie.problem.checks import FloatArray, IntArray

MOST, SEED, FAR = 64, 1, 1e6
"""Features at most, else so many random waves; the seed of these; |z| counts for no more."""
MOST_INFORMATION, FORGETTING = 3.0, 3.0
"""Nats by which a result speaks for or against an estimate; what was predicted at s counts (s/t)³ at t."""
LEAD, LEAD_RATIO = 4.0, 2.0
"""The shape leads if its J is above 4 + 2·max(J of the location, 0), and until it falls below that of the location."""
LEAST_WEIGHT, SMALL_SHARE = 0.02, 0.02
"""Of the scores of either estimate; of the weight of the shape, what small bets have."""
LEAST_FRACTION, LEAST_SQUARE = 0.3, 1e-9
_TO_DEVIATION = 1.4826
_WORD = 2**64


def feature_count(dim: int) -> int:
    """How many features a result of so many numbers has."""
    return min(MOST, 7 * dim + dim * (dim - 1) // 2)


class Features:
    """The features of a result of so many numbers, by the names that the log has."""

    def __init__(self, dim: int) -> None:
        pairs = [(a, b) for a in range(dim) for b in range(a + 1, dim)]
        kinds = ("clip", "abs", "log", "tanh", "tanh2", "cos", "sin")
        self.names = [f"{kind} {q}" for q in range(dim) for kind in kinds] + [f"product {a} {b}" for a, b in pairs]
        self.seed: int | None = None
        if len(self.names) > feature_count(dim):
            self.names, self.seed = [f"wave {i}" for i in range(MOST)], SEED
            self._waves = _waves(dim)

    def of(self, z: FloatArray) -> FloatArray:
        """(n, D) of positions (n, d) in units of their spread."""
        z = np.clip(z, -FAR, FAR)
        if self.seed is not None:
            return np.asarray(np.cos(z @ self._waves[:, :-1].T + self._waves[:, -1]))
        along, steep = np.tanh(z), np.tanh(2.0 * z)
        of_numbers = np.stack(
            [np.clip(z, -6.0, 6.0), np.minimum(np.abs(z), 6.0), np.log1p(z * z), along, steep * steep,
             np.cos(2.0 * z), np.sin(2.0 * z)], axis=2,
        ).reshape(len(z), -1)  # fmt: skip
        first, second = np.triu_indices(z.shape[1], 1)
        return np.concatenate([of_numbers, along[:, first] * along[:, second]], axis=1)


def _waves(dim: int) -> FloatArray:
    """(64, d + 1): ω and τ, by the numbers of splitmix64, Box and Muller's first of two."""
    state, table = SEED, np.empty((MOST, dim + 1))

    def uniform() -> float:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % _WORD
        mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % _WORD
        return (((mixed ^ (mixed >> 31)) >> 11) + 0.5) * 2.0**-53

    for row in table:
        for q in range(dim):
            length = math.sqrt(-2.0 * math.log(uniform()))
            row[q] = length * math.cos(2.0 * math.pi * uniform()) / math.sqrt(dim)
        row[dim] = 2.0 * math.pi * uniform()
    return table


class Discriminant(NamedTuple):
    """A linear score of features for every two groups: (P_l·φ − p_l) − (P_k·φ − p_k), times f."""

    vectors: FloatArray  # P (K, D)
    heights: FloatArray  # p (K)
    fractions: FloatArray  # f (K, K)


class Table(NamedTuple):
    """Features of all results, in the form in which an estimate reads places."""

    arms: IntArray
    blocks: IntArray
    rows: FloatArray
    n_blocks: int

    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """As `Places.arrays`."""
        return self.arms, self.blocks, self.rows


class Shape:
    """The second estimate of a run."""

    def __init__(self, n_arms: int, n_groups: int, dim: int, seed: int) -> None:
        self.features, self._n_groups = Features(dim), n_groups
        self._estimator = Estimator(n_arms, n_groups, len(self.features.names), False, False, seed)
        self.estimate: Estimate | None = None
        self.leads = False
        self.predicted = np.zeros(2)  # J of the location, and of the shape
        self._middle, self._scale = np.zeros(dim), np.ones(dim)
        self._table = Table(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 0)), 0)

    def renewed(self, places: Places, location: Estimate, frozen: bool) -> Estimate:
        """The estimate that leads, by all results: that of the location, or with the groups of the shape."""
        arms, blocks, rows = places.arrays()
        fit = fit_of(*table_of(location.labels[arms], blocks, rows, self._n_groups, places.n_blocks))
        rows = rows - fit.offsets[blocks]
        self._middle, self._scale = _units(rows)
        features = self.features.of((rows - self._middle) / self._scale)
        self._table = Table(arms, blocks, features, places.n_blocks)
        old = None if self.estimate is None else self.estimate.labels
        self.estimate = own = self._estimator.renew(self._table, old, frozen)
        other = max(float(self.predicted[0]), 0.0)
        self.leads = bool(self.predicted[1] > (other if self.leads else LEAD + LEAD_RATIO * other))
        if own is None or not self.leads:
            return location
        return location._replace(labels=own.labels, margins=own.margins, risk=own.risk, doubted=own.doubted)

    def judge(self, location: Estimate | None, arms: IntArray, x: FloatArray, t: int) -> None:
        """What both estimates have predicted of a cell's results (n, d), before they know them."""
        if location is None or self.estimate is None or arms.size < 2:
            return
        positions = x - x.mean(axis=0) + location.centers[location.labels[arms]].mean(axis=0)
        weighted = np.linalg.solve(location.scatter, location.centers.T).T
        by_location = positions @ weighted.T - 0.5 * np.einsum("kq,kq->k", location.centers, weighted)
        shape = self._discriminant(self.estimate.labels)
        features = self.features.of((positions - self._middle) / self._scale)
        by_shape = features @ shape.vectors.T - shape.heights
        said = [_information(location, by_location, arms), _information(self.estimate, by_shape, arms)]
        kept = max(1.0 - FORGETTING / max(t, 1), 0.0) ** arms.size
        self.predicted = kept * self.predicted + np.array(said)

    def weights(self) -> list[float]:
        """Of the scores at a freeze: location, shape, small bets."""
        lead = min(max(float(self.predicted[1] - self.predicted[0]), -40.0), 40.0)
        location = min(max(1.0 / (1.0 + math.exp(lead)), LEAST_WEIGHT), 1.0 - LEAST_WEIGHT)
        small = SMALL_SHARE * (1.0 - location)
        return [location, 1.0 - location - small, small]

    def freeze_bet(self) -> dict[str, Any]:
        """What is bet with a freeze."""
        seed = {} if self.features.seed is None else {"seed": self.features.seed}
        bet = {"from": [0.0] * self._middle.size, "numbers": self.weights(), "features": list(self.features.names)}
        return bet | seed

    def cell_bet(self, labels: IntArray, cell_mean: FloatArray) -> list[FloatArray]:
        """The numbers that a cell's bet has for the shape; `cell_mean`: where the mean of the cell will lie."""
        shape = self._discriminant(labels)
        return [self._middle - cell_mean, self._scale, shape.vectors, shape.heights, shape.fractions]

    def _discriminant(self, labels: IntArray) -> Discriminant:
        """Of groups with these labels. Coordinates of their centers that are no larger than chance are left out."""
        assert self.estimate is not None
        arms, blocks, rows = self._table.arrays()
        fit = fit_of(*table_of(labels[arms], blocks, rows, self._n_groups, self._table.n_blocks))
        metric, variance = self.estimate.metric, np.diag(fit.inverse)[:, None]
        along = fit.centers @ metric.T
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(along == 0.0, 0.0, np.maximum(0.0, 1.0 - variance / (along * along)))
        along = along * share
        vectors = along @ metric
        heights = 0.5 * (along * along).sum(axis=1) + vectors @ rows.mean(axis=0)
        gaps = along[:, None] - along
        squares = LEAST_SQUARE + (gaps * gaps).sum(axis=2)
        chance = share.sum(axis=1) * variance[:, 0]
        fractions = np.clip(1.0 - (chance[:, None] + chance) / squares, LEAST_FRACTION, 1.0)
        return Discriminant(vectors, heights, fractions)


def _units(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """o and s of each number: median and, in standard deviations, median distance from it."""
    middle = np.median(rows, axis=0)
    scale = _TO_DEVIATION * np.median(np.abs(rows - middle), axis=0)
    scale = np.where(scale > 0.0, scale, np.sqrt(((rows - middle) ** 2).mean(axis=0)))
    return np.asarray(middle), np.where(scale > 0.0, scale, 1.0)


def _information(estimate: Estimate, heights: FloatArray, arms: IntArray) -> float:
    """Σ log of how much better the group of a result's arm fits it than a group drawn by weight."""
    labels = estimate.labels[arms]
    totals = np.bincount(estimate.labels, estimate.counts, heights.shape[1])
    mine = heights[np.arange(arms.size), labels][:, None]
    mean = np.exp(np.minimum(heights - mine, 40.0)) @ (totals / totals.sum())
    return float(np.clip(-np.log(mean), -MOST_INFORMATION, MOST_INFORMATION).sum())
