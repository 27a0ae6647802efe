"""All results told in blocks, and the two-way fit of them, x = U_h + β_b + noise. Nothing here enters a proof.

With N_kb results of group k in block b the centers solve L·U = S_k − Σ_b N_kb·S_b/N_b with
L = diag(N_k) − N_kb·diag(1/N_b)·N_kb'. Only differences inside a block are known, so centers count from the mean of all
results. Parts of the arms that no block joins cannot be compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray


class Places:
    """All results told: arm, block, and the position, counted from the first result of its block."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._arms: list[int] = []
        self._blocks: list[int] = []
        self._rows: list[FloatArray] = []
        self._first: list[FloatArray] = []  # of each block
        self._sizes: list[int] = []
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
            self._sizes.append(0)
        self._sizes[number] += 1
        away = x - self._first[number]
        self._arms.append(arm)
        self._blocks.append(number)
        self._rows.append(away if away.size == self._dim else away[: self._dim] + away[self._dim :])

    def count(self, block: str) -> int:
        """How many results a block has."""
        number = self._numbers.get(block)
        return 0 if number is None else self._sizes[number]

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
