"""The tests of a family one at a time: the families make and read many at once, one a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.evidence.near_far.family import Family, Guess, PairTests, Parameters
from coterie.problem.checks import FloatArray


@dataclass
class SingleTest:
    """The only test of `tests`."""

    tests: PairTests

    @property
    def count(self) -> int:
        return int(self.tests.count[0])

    @property
    def evidence(self) -> float:
        return float(self.tests.evidence[0])

    def add(self, item: FloatArray, block: FloatArray) -> None:
        """One contrast: a result of the item (d), and a block of R results of the reference (R, d)."""
        self.tests.add(np.zeros(1, dtype=np.int64), item[None], block.mean(axis=0)[None])


@dataclass(frozen=True)
class Single:
    """A family, asked for one test at a time: bounds (d), one ratio, a guess of (d)."""

    family: Family

    def near_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        return self._made(self.family.near_parameters, bound, ratio, guess, level)

    def far_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        return self._made(self.family.far_parameters, bound, ratio, guess, level)

    def _made(self, make: Any, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        row = Guess(guess.item[None], guess.reference[None], guess.doubt[None], guess.variance)
        found: list[Parameters] = make(bound[None], np.array([ratio]), row, level)
        return found[0]

    def near_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> SingleTest:
        return SingleTest(self.family.near_tests(bound[None], np.array([ratio]), [parameters]))

    def far_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> SingleTest:
        return SingleTest(self.family.far_tests(bound[None], np.array([ratio]), [parameters]))
