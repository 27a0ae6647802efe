"""What a measurement of each arm costs, in units of the cheapest (docs/CROC.md, section 7)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from coterie.problem.checks import FloatArray


class Prices:
    """`unit`: the cost of a pull of each arm; `reserve`: by how much the margin of an arm counts as larger."""

    def __init__(self, unit: FloatArray) -> None:
        self.unit: list[float] = unit.tolist()
        self.reserve: list[float] = np.log(unit).tolist()

    def of(self, arms: Iterable[int]) -> float:
        """What one measurement of each of these arms costs."""
        total = 0.0
        for arm in arms:
            total += self.unit[arm]
        return total

    def balance(self, arm: int, other: int) -> float:
        """How many pulls of the other arm one of the arm is to have, so that 1/n + 1/n' is least for what both cost."""
        return math.sqrt(self.unit[arm] / self.unit[other])
