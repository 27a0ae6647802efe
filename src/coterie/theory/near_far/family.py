"""What a family of near and far tests is: the contract between the evidence for a noise and whoever plans measurements.

A test compares an item with a reference by *contrasts*: the s-th result of the item against the mean of the s-th block
of R results of the reference, all asked for after the freeze, each in its order. Results are in scaled units z = x/s
(`Scale`). A near test has the null "θ is not near" and a far test the null "θ is not far", θ the difference of the two
means. If the null is true, the evidence of a test ever reaches log(1/a) with probability at most a, whatever made
anybody read the two stacks so far: it is a mixture of test martingales in the number of contrasts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from coterie.problem.checks import FloatArray

Parameters: TypeAlias = dict[str, Any]
"""The numbers of a test that are fixed at the freeze, as plain JSON. Any numbers are valid; some are better."""


@dataclass(frozen=True)
class Guess:
    """What is believed about an item and a reference when a test is made; nothing here enters a proof.

    `item`, `reference`: their estimated means (d). `doubt`: the variance of `gap` in each coordinate (d). `variance`:
    of one result in each coordinate (d).
    """

    item: FloatArray
    reference: FloatArray
    doubt: FloatArray
    variance: FloatArray

    @property
    def gap(self) -> FloatArray:
        """The estimated difference of the means."""
        return self.item - self.reference


class PairTest(ABC):
    """One test of an item against a reference: contrasts go in one by one, in order."""

    count: int = 0
    """Contrasts so far."""
    evidence: float = -np.inf
    """The least of its sides, each at its largest so far: log E."""

    @abstractmethod
    def add(self, item: FloatArray, block: FloatArray) -> None:
        """One contrast: a result of the item (d) and a block of R results of the reference (R, d)."""


class Family(ABC):
    """The near and far tests for one noise, d numbers a result, one norm.

    `bound`: (d) of a near or far claim in scaled units; for the norm "distance" all its entries are the same number, a
    distance.
    """

    norm: str
    dim: int

    @abstractmethod
    def near_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        """Parameters of a near test that should reach this level soon."""

    @abstractmethod
    def far_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        """Parameters of a far test that should reach this level soon."""

    @abstractmethod
    def near_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        """The null: the means differ by `bound` or more."""

    @abstractmethod
    def far_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        """The null: the means differ by `bound` or less."""

    @abstractmethod
    def near_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        """(n) forecasts of contrasts for true gaps (n, d); infinite where a gap is not near."""

    @abstractmethod
    def far_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        """(n) forecasts of contrasts for true gaps (n, d); infinite where a gap is not far."""
