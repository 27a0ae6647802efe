"""A peer as its author would write it: from batch to batch. Who measures them is somebody else (`bench.peers.batched`).

A course is a generator. It yields the batch that it wants measured, goes on when all of it is there, and returns the
groups when they are proven; None if its stacks have come to their end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from bench.peers.stacks import KEPT, Stacks
from coterie.problem.checks import IntArray


class Request(NamedTuple):
    """Bring these arms to at least KEPT[level−1] results in these stacks."""

    stacks: Stacks
    arms: IntArray
    level: int

    @property
    def target(self) -> int:
        """Results that each of the arms is to have."""
        return int(KEPT[self.level - 1]) if self.level > 0 else 0

    @property
    def cost(self) -> int:
        """Measurements that it takes."""
        return int(np.maximum(self.target - self.stacks.counts[self.arms], 0).sum())

    def steps(self) -> Iterator[tuple[IntArray, int]]:
        """Arms that stand at the same kept count, and the measurements that each takes to the next: level by level."""
        level = self.stacks.level[self.arms]
        for to in range(int(level.min(initial=self.level)) + 1, self.level + 1):
            those = self.arms[level < to]
            if those.size:
                yield those, int(KEPT[to - 1] - (KEPT[to - 2] if to > 1 else 0))


@dataclass(frozen=True)
class Batch:
    """What is to be measured next, how far the proof is, and the groups guessed so far."""

    requests: list[Request]
    statistic: float
    threshold: float
    labels: IntArray | None


Course: TypeAlias = Generator[Batch, None, IntArray | None]


@dataclass(frozen=True)
class Task:
    """The problem of a course. `random_order()` gives the arms in random order."""

    n_arms: int
    n_clusters: int
    dim: int
    delta: float
    random_order: Callable[[], IntArray]


CourseOf: TypeAlias = Callable[[Task], Course]
