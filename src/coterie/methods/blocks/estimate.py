"""The groups by all results so far, with an offset for every block, and how sure they are. It enters no proof."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from coterie.methods.blocks.partitions import FREEZE_RISK, Partitions
from coterie.methods.blocks.places import Fit, fit_of, table_of
from coterie.methods.blocks.within import Within
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical

STARTS = 6
"""How often groups are looked for from scratch, in one estimate."""
OFTEN, RARELY = 1.05, 1.2
"""By how much there are more results when that is done again, before and after a freeze."""
FAR = 3.0
"""Standard deviations beyond which a result counts no more, where tails may be heavy."""


class Placed(Protocol):
    """Results in a space, each of an arm and of a block: places, or features of them."""

    @property
    def n_blocks(self) -> int:
        """Blocks that have a result."""

    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Arms (n), blocks (n) and positions (n, d)."""


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
    doubted: tuple[int, ...]  # groups that may be cut or merged otherwise
    parts: IntArray | None  # (M) the part of each arm, where blocks leave several
    far: float  # the share of results that were drawn in


class Estimator:
    """Finds groups from places. `known`: the noise is, and has covariance I. `robust`: tails may be heavy."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, known: bool, robust: bool, seed: int) -> None:
        self.shape, self._known, self._robust, self._seed = (n_arms, n_clusters, dim), known, robust, seed
        self._searched_at = 0

    def renew(self, places: Placed, old: IntArray | None, frozen: bool) -> Estimate | None:
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
        within = Within(table_of(arms, blocks, rows @ metric.T, n_arms, n_blocks), n_groups)
        worlds = Partitions(within)
        labels = None if old is None else worlds.improved(canonical(old))
        search = len(arms) >= (RARELY if frozen else OFTEN) * self._searched_at
        sure = labels is not None and not frozen and worlds.margins(labels).min() > -math.log(FREEZE_RISK)
        if labels is None or search or sure:
            self._searched_at = len(arms)
            labels = worlds.searched(labels, self._starts(whole.centers @ metric.T, len(arms)))
        labels = labels if old is None else renumbered(labels, old, n_groups)
        groups, margins = worlds.groups(labels), worlds.margins(labels)
        risk = 1.0 if parts is not None else float(np.exp(-np.maximum(margins, 0.0))[np.isfinite(margins)].sum())
        more, doubted = worlds.risk(labels, cuts=not frozen and n_groups > 2 and risk < 1.0)
        results = counts.astype(np.float64)
        of_groups = groups.centers - np.bincount(labels, results, n_groups) @ groups.centers / results.sum()
        centers = np.asarray(np.linalg.solve(metric, of_groups.T).T)
        return Estimate(
            labels, centers, scatter, metric, freedom, groups.inverse, counts, margins, risk + more, doubted, parts, far
        )

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
