"""The ways in which a group may hide two: its items split in two classes, each way with its weight.

A split of n items is a set S and the rest. Its weight is s(n − s)/(n(n² − 1)/6) / binom(n, s) for s items in S: all
weights sum to 1, and halves weigh more than one item that stands apart. S and its complement are two splits. Up to
`MOST_ITEMS` items every split is looked at. Of more items only those that cut the line of the items' means, at most
`MOST_CUTS` of them: a sum of fewer terms, none negative, is never too large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from coterie.problem.checks import FloatArray, IntArray

MOST_ITEMS = 10
MOST_CUTS = 64


@dataclass(frozen=True)
class Splits:
    """P splits of n items. `rows` (n): items of one row are never split; `log_weights` (P).

    `inside` (P, rows), 0 and 1, where these are all splits there are; None: the first rows, or the last ones.
    """

    rows: IntArray
    log_weights: FloatArray
    inside: FloatArray | None

    @property
    def every(self) -> bool:
        """Whether no split is left out."""
        return self.inside is not None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.max()) + 1

    def sums(self, table: FloatArray) -> FloatArray:
        """(P, …): the sum over the rows of S, of a table (rows, …)."""
        if self.inside is not None:
            found: FloatArray = np.tensordot(self.inside, table, axes=1)
            return found
        before = np.cumsum(table, axis=0)[:-1]
        return np.concatenate([before, table.sum(axis=0) - before])


def splits_of(means: FloatArray) -> Splits:
    """The splits of items with these means (n).

    Of means that tie to nine digits, the one of the item with the lower number is the lower one.
    """
    n = means.size
    if n <= MOST_ITEMS:
        return _all_splits(n)
    cuts = np.unique(np.linspace(1, n - 1, min(n - 1, MOST_CUTS)).round().astype(np.int64))
    rows = np.empty(n, dtype=np.int64)
    span = np.ptp(means)
    along = np.round((means - means.min()) / span, 9) if span > 0.0 else np.zeros(n)
    rows[np.argsort(along, kind="stable")] = np.searchsorted(cuts, np.arange(n), side="right")
    return Splits(rows, np.concatenate([_log_weight(cuts, n), _log_weight(n - cuts, n)]), None)


@lru_cache(maxsize=MOST_ITEMS)
def _all_splits(n: int) -> Splits:
    inside = ((np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    return Splits(np.arange(n), _log_weight(inside.sum(axis=1), n), inside)


def _log_weight(size: FloatArray | IntArray, n: int) -> FloatArray:
    choices = gammaln(n + 1.0) - gammaln(size + 1.0) - gammaln(n - size + 1.0)
    found: FloatArray = np.log(size * (n - size) * 6.0) - math.log(n * (n**2 - 1.0)) - choices
    return found
