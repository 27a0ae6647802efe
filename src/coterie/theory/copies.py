"""Numbers of a result that say the same twice: one follows from another, because they are equal or in other units."""

from __future__ import annotations

import numpy as np

from coterie.problem.checks import FloatArray

_ALMOST = 1.0 - 1e-9  # a correlation that rounding alone keeps from 1


def copied_columns(rows: FloatArray) -> list[tuple[int, int]]:
    """Pairs (first, copy) of columns of (n, d) of which one follows from the other; each is a copy at most once.

    A constant column is a copy of none. With fewer than three rows nothing is said.
    """
    if len(rows) < 3:
        return []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        away = rows - rows[0]
        away /= np.abs(away).max(axis=0)
        away -= away.mean(axis=0)
        away /= np.sqrt((away**2).sum(axis=0))
        together = np.abs(away.T @ away)
    found: list[tuple[int, int]] = []
    copied: set[int] = set()
    for first, second in np.argwhere(np.triu(together, 1) > _ALMOST).tolist():
        if first not in copied and second not in copied:
            found.append((first, second))
            copied.add(second)
    return found
