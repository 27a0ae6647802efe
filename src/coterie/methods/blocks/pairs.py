"""Pairs from the start, by cells (docs/BLOCKS.md, Lemma 2): for a known noise.

For arms i, j with a_i, a_j results in a cell, w = a_i·a_j/(a_i + a_j) and C the difference of their means there,
n = Σw and S = Σw·C over all cells give M = Σ_ρ p(ρ)·(1+ρn)^(−d/2)·exp(½ρ‖S‖²/(1+ρn)), a martingale if both are equal.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

ALPHA = 0.2
"""The share of δ that pairs may err with."""
GENERATIONS = (0.8, 0.2)
"""Of α for the first generation of pairs in strict blocks, and of the share of each generation for the next."""
_RHO: FloatArray = 4.0 ** np.arange(3, -8, -1.0)
_WEIGHTS: FloatArray = np.array([0.08, 0.19, 0.25, 0.25, 0.12, *(0.055 * 2.0**-i for i in range(6))])


def equal_pairs(n_arms: int, n_clusters: int) -> int:
    """H, the largest possible number of equal pairs."""
    return (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2


def pair_log(sums: FloatArray, n: FloatArray) -> FloatArray:
    """log M of S (…, d) and n (…)."""
    dim = sums.shape[-1]
    energy = np.einsum("...q,...q->...", sums, sums)[..., None]
    grown = 1.0 + _RHO * n[..., None]
    terms = np.log(_WEIGHTS) - 0.5 * dim * np.log(grown) + 0.5 * _RHO * energy / grown
    top = terms.max(axis=-1)
    return np.asarray(top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)))


class Pairs:
    """The evidence of every two arms, and where it first was at its level."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, log_inverse_delta: float, strict: bool) -> None:
        self._shape, self._strict = (n_arms, dim), strict
        self._base = math.log(equal_pairs(n_arms, n_clusters)) - math.log(ALPHA) + log_inverse_delta
        self.generation = -1
        self.next_generation(1)

    def next_generation(self, first_cell: int) -> None:
        """Forget everything; cells count from this number on."""
        n_arms, dim = self._shape
        self.generation, self.first_cell = self.generation + 1, first_cell
        first, further = GENERATIONS
        share = math.log(first) + self.generation * math.log(further) if self._strict else 0.0
        self.level = self._base - share
        self._n, self._sums = np.zeros((n_arms, n_arms)), np.zeros((n_arms, n_arms, dim))
        self.evidence: FloatArray = np.full((n_arms, n_arms), -np.inf)
        self.cell: IntArray = np.zeros((n_arms, n_arms), dtype=np.int64)  # 0: not settled

    @property
    def settled(self) -> np.ndarray:
        """(M, M) whether a pair is known to differ."""
        return self.cell > 0

    def use(self, number: int, arms: IntArray, x: FloatArray) -> None:
        """The results of a cell, in order; none is left out."""
        if number < self.first_cell:
            return
        present, where = np.unique(arms, return_inverse=True)
        if present.size < 2:
            return
        counts = np.bincount(where).astype(np.float64)
        means = np.zeros((present.size, x.shape[1]))
        np.add.at(means, where, x)
        means /= counts[:, None]
        grid = np.ix_(present, present)
        weight = counts[:, None] * counts / (counts[:, None] + counts)
        np.fill_diagonal(weight, 0.0)
        self._n[grid] += weight
        self._sums[grid] += weight[:, :, None] * (means[:, None] - means)
        value = pair_log(self._sums[grid], self._n[grid])
        np.fill_diagonal(value, -np.inf)
        value = np.maximum(value, value.T)  # S of (j, i) is −S of (i, j)
        open_pairs = self.cell[grid] == 0
        self.evidence[grid] = np.where(open_pairs, value, self.evidence[grid])
        self.cell[grid] = np.where(open_pairs & (value >= self.level), number, self.cell[grid])
