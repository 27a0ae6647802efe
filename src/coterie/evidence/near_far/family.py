"""What a family of near and far tests is: the contract between the evidence for a noise and whoever plans measurements.

A test compares an item with a reference by *contrasts*: the s-th result of the item against the mean of the s-th block
of R results of the reference, all asked for after the freeze, each in its order. Results are in scaled units z = x/s
(`Scale`). A near test has the null "θ is not near" and a far test the null "θ is not far", θ the difference of the two
means. If the null is true, the evidence of a test ever reaches log(1/a) with probability at most a, whatever made
anybody read the two stacks so far: it is a mixture of test martingales in the number of contrasts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

Parameters: TypeAlias = dict[str, Any]
"""The numbers of a test that are fixed at the freeze, as plain JSON. Any numbers are valid; some are better."""


@dataclass(frozen=True)
class Guess:
    """What is believed about items and references when tests are made; nothing here enters a proof.

    `item`, `reference`: their estimated means (n, d), one row a test. `doubt`: the variance of `gap` in each coordinate
    (n, d). `variance`: of one result in each coordinate (d). Forecasts also take one row for all, as (d).
    """

    item: FloatArray
    reference: FloatArray
    doubt: FloatArray
    variance: FloatArray

    @property
    def gap(self) -> FloatArray:
        """The estimated difference of the means."""
        return self.item - self.reference


class PairTests(ABC):
    """n tests of items against references: contrasts go in one by one, in the order of each test.

    `count` (n): contrasts so far. `sides` (n, sides): log E of each side now. `evidence` (n): log E, the least of the
    sides of a test, each at its largest so far.
    """

    def __init__(self, n: int, n_sides: int = 1) -> None:
        self.count: IntArray = np.zeros(n, dtype=np.int64)
        self.sides: FloatArray = np.zeros((n, n_sides))
        self.evidence: FloatArray = np.full(n, -np.inf)
        self._largest = np.full((n, n_sides), -np.inf)

    def _take(self, which: IntArray, sides: FloatArray) -> None:
        """log E of all sides of some tests, after one contrast more."""
        self.sides[which] = sides
        self._largest[which] = np.maximum(self._largest[which], sides)
        self.evidence[which] = self._largest[which].min(axis=1)

    @abstractmethod
    def add(self, which: IntArray, item: FloatArray, block: FloatArray) -> None:
        """One contrast for each of some tests, none of them twice.

        `item` (k, d): results of their items; `block` (k, d): means of blocks of R results of their references.
        """


class Family(ABC):
    """The near and far tests for one noise, d numbers a result, one norm.

    Tests are made many at a time, one a row. `bound`: (n, d) of near or far claims in scaled units; for the norm
    "distance" all entries of a row are the same number, a distance. `ratio`: (n), the results of R in a block.
    Forecasts also take one bound (d) and one ratio for all.
    """

    norm: str
    dim: int

    @abstractmethod
    def near_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        """Parameters of near tests that should reach this level soon."""

    @abstractmethod
    def far_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        """Parameters of far tests that should reach this level soon."""

    @abstractmethod
    def near_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        """The nulls: the means differ by `bound` or more."""

    @abstractmethod
    def far_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        """The nulls: the means differ by `bound` or less."""

    @abstractmethod
    def near_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        """(n) forecasts of contrasts for true gaps (n, d); infinite where a gap is not near."""

    @abstractmethod
    def far_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        """(n) forecasts of contrasts for true gaps (n, d); infinite where a gap is not far."""

    def coordinate_bounds(self, bound: FloatArray) -> FloatArray:
        """A gap is near if each coordinate is within these; a distance is shared out equally."""
        return bound if self.norm == "each" else bound / math.sqrt(self.dim)

    def far_offsets(self, bound: FloatArray, directions: FloatArray) -> FloatArray:
        """(n) the most that gaps that are not far can have in directions (n, d)."""
        if self.norm == "each":
            return dot(np.abs(directions), bound)
        return np.asarray(bound[:, 0] * np.linalg.norm(directions, axis=1))


def both_sides(gap: FloatArray) -> FloatArray:
    """(n, 2d): gaps (n, d) seen from above and from below, coordinate by coordinate."""
    return np.asarray(np.stack([gap, -gap], axis=2).reshape(len(gap), 2 * gap.shape[1]))


def dot(first: FloatArray, second: FloatArray) -> FloatArray:
    """(n): the inner products of the rows of two arrays (n, d)."""
    return np.asarray(np.einsum("nd,nd->n", first, second))


def column(parameters: Sequence[Parameters], name: str) -> FloatArray:
    """One parameter of all tests, (n, …)."""
    return np.array([row[name] for row in parameters], dtype=np.float64)
