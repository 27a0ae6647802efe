"""Items of a table that lie far from the rest of the group that they were put in: most have few rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.tables.pool import Pool
from coterie.theory.exact.pair_tests import sorted_stacks

MOST = 12
"""Items of a group that are named."""


def thin_items(pool: Pool, labels: list[int] | None, done: bool) -> list[dict[str, Any]]:
    """Items whose own mean lies far from the rest of their group: by more than four standard errors, or, of groups that
    are proven, more than half as far as from another group. Of a group, the one farthest off is named first, and the
    others are then looked at without it.
    """
    if labels is None or max(labels) == 0:
        return []
    deviations = pool.spread().deviations
    spread = np.full(pool.dim, np.inf) if deviations is None else np.array(deviations)
    scale = pool.rows.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    stacks = sorted_stacks(pool.arms, pool.rows, len(pool.names))
    sums, counts = np.stack([one.sum(axis=0) for one in stacks]), pool.counts.astype(float)[:, None]
    means, own = sums / counts, np.array(labels)
    groups = [np.flatnonzero(own == k) for k in range(max(labels) + 1)]
    centers = np.array([sums[group].sum(axis=0) / counts[group].sum() for group in groups])
    apart = np.linalg.norm((means[:, None] - centers) / scale, axis=-1)
    apart[np.arange(own.size), own] = np.inf
    found = []
    for k, left in enumerate(groups):
        for _ in range(min(MOST, left.size - 1)):
            number = counts[left].sum() - counts[left]
            rest = (sums[left].sum(axis=0) - sums[left]) / number
            beyond = np.abs(means[left] - rest) > 4.0 * spread * np.sqrt(1.0 / counts[left] + 1.0 / number)
            lengths = np.linalg.norm((means[left] - rest) / scale, axis=-1)
            far = beyond.any(axis=1) | (done & (lengths > 0.5 * apart[left].min(axis=1)))
            if not far.any():
                break
            first = int(np.lexsort((counts[left][:, 0], -np.where(far, np.round(lengths, 9), -1.0)))[0])
            arm = int(left[first])
            found.append(
                {
                    "arm": arm, "name": pool.names[arm], "group": k + 1, "rows": int(counts[arm, 0]),
                    "mean": means[arm].tolist(), "of_the_others": rest[first].tolist(),
                }
            )  # fmt: skip
            left = np.delete(left, first)
    return sorted(found, key=lambda one: one["arm"])
