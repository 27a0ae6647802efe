"""Pairs from the start in a run in blocks, under a known noise: one martingale for each two arms, cell by cell.

docs/BLOCKS.md, Lemma 2. For arms i and j a cell with a_i and a_j results gives the contrast C of their means with the
weight w = a_i·a_j/(a_i + a_j); n = Σw, S = Σw·C over the cells of a generation, and
M = Σ_ρ p(ρ)·(1+ρn)^{−d/2}·exp(½ρ‖S‖²/(1+ρn)).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.arithmetic.known import SCALES, WEIGHTS, Record
from coterie.certificate.composed import Composition
from coterie.problem.checks import FloatArray, IntArray

_LOG_LATER = math.log(5.0)
"""By how much the level of a generation lies above that of the one before."""
_MOST_ARMS = 300
"""Of so many arms, all pairs are looked at together."""


class CellPairs:
    """The evidence of pairs of arms by cells. `ended`: which cells are complete, or lapsed as the certificate says.

    `generation`: the one whose level `between` is for.
    """

    def __init__(
        self, record: Record, cells: tuple[Composition, ...], ended: list[bool], n_arms: int, generation: int = 0
    ) -> None:
        self._record, self._ended, self._generation = record, ended, generation
        self.generations: IntArray = np.array([cell.generation for cell in cells], dtype=np.int64)
        self.heights: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._table: FloatArray | None = None  # of all pairs, if somebody wants to know
        self._arms: list[IntArray] = []  # of each cell
        for cell, composed in zip(cells, record.rounds, strict=True):
            self._arms.append(np.array(cell.arms, dtype=np.int64))
            self.heights[composed.arms] += composed.sums.counts

    def evidence(self, first: IntArray, second: IntArray, last: IntArray) -> FloatArray:
        """log M of pairs of arms, each by the cells up to `last` (from 1) of its generation; nan if one has not ended.

        A cell that lacks one of the two arms gives a pair nothing, so whether it has ended does not matter.
        """
        evidence, stopped = self._before_open(first, second, last)
        return np.where(stopped, np.nan, evidence)

    def _before_open(self, first: IntArray, second: IntArray, last: IntArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The same by the cells before the first of the two arms that has not ended, and where there is one."""
        stopped = np.zeros(first.size, dtype=bool)
        n, total = np.zeros(first.size), np.zeros((first.size, self._record.results.rest.shape[1]))
        generation = self.generations[last - 1]
        place = np.full(self.heights.size, -1)
        for number, (listed, composed) in enumerate(zip(self._arms, self._record.rounds, strict=True), start=1):
            place[listed] = np.arange(listed.size)
            use = ~stopped & (last >= number) & (generation == self.generations[number - 1])
            use &= (place[first] >= 0) & (place[second] >= 0)
            place[listed] = -1
            some = np.flatnonzero(use)
            if not self._ended[number - 1]:
                stopped[some] = True
                continue
            place[composed.arms] = np.arange(composed.arms.size)
            a, b = place[first[some]], place[second[some]]
            place[composed.arms] = -1
            some, a, b = (column[(a >= 0) & (b >= 0)] for column in (some, a, b))  # of a lapse one may be missing
            of_first, of_second = composed.sums.rows(a), composed.sums.rows(b)
            weight = of_first.counts * of_second.counts / (of_first.counts + of_second.counts)
            n[some] += weight
            total[some] += weight[:, None] * self._record.units.gap(of_first, of_second)
        return self._mixture(n, total), stopped

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The largest evidence of pairs by generations, less what the level of each lies above that of the claim."""
        if self.heights.size <= _MOST_ARMS:
            if self._table is None:
                every = np.triu_indices(self.heights.size, 1)
                self._table = np.full((self.heights.size, self.heights.size), -np.inf)
                self._table[every] = self._table.T[every] = self._largest(*every)
            return np.asarray(self._table[first, second])
        return self._largest(first, second)

    def _largest(self, first: IntArray, second: IntArray) -> FloatArray:
        best = np.full(first.size, -np.inf)
        for generation in np.unique(self.generations).tolist():
            last = int(np.flatnonzero(self.generations == generation)[-1]) + 1
            evidence, _ = self._before_open(first, second, np.full(first.size, last))
            best = np.maximum(best, evidence - (generation - self._generation) * _LOG_LATER)
        return best

    @staticmethod
    def _mixture(n: FloatArray, total: FloatArray) -> FloatArray:
        growth = 1.0 + n[:, None] * SCALES
        square = np.einsum("id,id->i", total, total)[:, None]
        exponents = np.log(WEIGHTS) - total.shape[1] / 2.0 * np.log(growth) + 0.5 * SCALES * square / growth
        largest = exponents.max(axis=1, initial=-np.inf)
        return np.asarray(largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))
