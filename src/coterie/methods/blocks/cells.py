"""Cells: asks of one block that were decided together, and what came of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray


class Cell:
    """Asks of one block, fixed before any of their results, in the order in which they are made.

    Parameters
    ----------
    number
        From 1, in the order in which cells are composed.
    block
        The name of its block.
    epoch
        The number of the last freeze before it; None before the first.
    pulls
        The arms, in ask order; one that is asked for twice stands twice.
    bet
        What was bet on its results, for the tests of its epoch; None if nothing is.
    """

    def __init__(self, number: int, block: str, epoch: int | None, pulls: Any, bet: dict[str, Any] | None) -> None:
        self.number, self.block, self.epoch, self.bet = number, block, epoch, bet
        self.pulls: IntArray = np.array(pulls, dtype=np.int64)
        self._results: list[FloatArray | None] = [None] * self.pulls.size
        self._gone = np.zeros(self.pulls.size, dtype=bool)
        self.left = int(self.pulls.size)  # results that may still come

    def take(self, arm: int, x: FloatArray) -> None:
        """A result of an arm: the first place of the arm that is still open."""
        self._results[self._open_place(arm)] = x
        self.left -= 1

    def give_up(self, arm: int) -> None:
        """A result of an arm will not come."""
        self._gone[self._open_place(arm)] = True
        self.left -= 1

    def _open_place(self, arm: int) -> int:
        for place in np.flatnonzero(self.pulls == arm).tolist():
            if self._results[place] is None and not self._gone[place]:
                return int(place)
        raise ValueError(f"cell {self.number} waits for no result of arm {arm}")

    @property
    def ended(self) -> bool:
        """Whether all of its results are in, or will not come."""
        return self.left == 0

    @property
    def missing(self) -> list[int]:
        """The arms whose results will not come, in ask order."""
        return [int(arm) for arm in self.pulls[self._gone]]

    @property
    def awaited(self) -> list[int]:
        """The arms whose results may still come, in ask order."""
        places = zip(self.pulls.tolist(), self._results, self._gone.tolist(), strict=True)
        return [arm for arm, x, gone in places if x is None and not gone]

    def results(self, dim: int) -> tuple[IntArray, FloatArray]:
        """Arms (n) and results (n, d) that came, in ask order; results count from the first of them.

        Everything is computed from differences within the cell, so that an offset of its block cancels before
        anything is rounded. Of a result (2·d) the second half is what floats do not hold of the first.
        """
        came = [place for place, x in enumerate(self._results) if x is not None]
        if not came:
            return self.pulls[:0], np.zeros((0, dim))
        rows = np.array([self._results[place] for place in came])
        away = rows - rows[0]
        return self.pulls[came], away if away.shape[1] == dim else away[:, :dim] + away[:, dim:]

    def values(self, dim: int) -> FloatArray:
        """The results that came, (n, d), as they are: for counts."""
        came = [x for x in self._results if x is not None]
        return np.array(came).reshape(-1, came[0].size)[:, :dim] if came else np.zeros((0, dim))
