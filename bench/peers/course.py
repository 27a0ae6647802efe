"""A peer as its author would write it: from batch to batch. Who measures them is somebody else (`bench.peers.batched`).

A course is a generator. It yields the batch that it wants measured, goes on when all of it is there, and returns the
groups when they are proven; None if its stacks have come to their end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bench.peers.stacks import KEPT, Stacks
from coterie.problem.checks import IntArray


@dataclass(frozen=True)
class Batch:
    """What is to be measured next, how far the proof is, and the groups guessed so far.

    `wanted`: arms, and the level that each of them is to reach in `stacks`: at least KEPT[level−1] results.
    """

    stacks: Stacks
    wanted: list[tuple[IntArray, int]]
    statistic: float
    threshold: float
    labels: IntArray | None

    @property
    def targets(self) -> IntArray:
        """Results that each arm is to have, 0 for one that the batch has no use for."""
        targets = np.zeros_like(self.stacks.counts)
        for arms, level in self.wanted:
            targets[arms] = np.maximum(targets[arms], KEPT[level - 1] if level > 0 else 0)
        return targets

    @property
    def cost(self) -> int:
        """Measurements that it takes."""
        return int(np.maximum(self.targets - self.stacks.counts, 0).sum())

    def steps(self) -> Iterator[tuple[IntArray, int]]:
        """Arms that stand at the same kept count, and the measurements that each takes to the next: level by level."""
        for arms, level in self.wanted:
            now = self.stacks.level[arms]
            for to in range(int(now.min(initial=level)) + 1, level + 1):
                those = arms[now < to]
                if those.size:
                    yield those, int(KEPT[to - 1] - (KEPT[to - 2] if to > 1 else 0))


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
