"""A run of one of the paper's methods, as Python sees it: arrays in, arrays out. Its steps are in `native/paper`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie._native import PaperRun
from coterie.methods.paper import LINEAR, ORACLE
from coterie.problem.checks import FloatArray, IntArray

__all__ = ["Run"]


class Run(PaperRun):
    """State of one run and the steps on it. Measurements are whitened: unit noise in every direction.

    A run belongs to one thread at a time: a second one gets a RuntimeError. `play` and `follow` let other
    threads go on meanwhile. `next` is the arm that comes next.
    """

    def __init__(
        self,
        n_arms: int,
        n_clusters: int,
        dim: int,
        sampling: int,
        levels: FloatArray,
        *,
        distance_ratio: float | None = None,
        oracle: tuple[IntArray, FloatArray] | None = None,
    ) -> None:
        """`levels` (2, L): thresholds of both kinds in increasing order (`levels_for`). `oracle`: true labels and λ* a
        cluster (K). What the sampling rule does not need is not looked at.
        """
        floor = labels = shares = None
        if sampling == LINEAR and distance_ratio is not None:
            floor = distance_ratio**2 / (2 * n_arms)  # proposition_distance
        if sampling == ORACLE and oracle is not None:
            labels, shares = (np.ascontiguousarray(oracle[0], dtype=np.int64), _floats(oracle[1]))
        self._made_of = n_arms, n_clusters, dim, sampling, _floats(levels), floor, labels, shares
        super().__init__(*self._made_of)
        self._no_arms = np.zeros(0, dtype=np.int64)
        self._no_values = np.zeros((0, dim))
        self.next = 0

    def absorb(self, arms: IntArray, values: FloatArray, asked: IntArray) -> None:
        """Take in measurements in this order; stops noting them once every level is met."""
        self.next = self.follow(arms, values, asked)

    def follow(self, arms: IntArray, values: FloatArray, kinds: IntArray) -> int:
        """Take in a script of measurements, asks and given-up asks; the next arm. INOUT: arms.

        `kinds` says what each entry is (`coterie.methods.paper`). An ask for arm −1 is for the one that the rule says,
        which is noted in `arms`; the answer is −1−i if entry i asks for another.
        """
        return super().follow(arms, _floats(values), kinds)

    def play(self, steps: int, centers: FloatArray, truth: IntArray, rng: np.random.Generator, arms: IntArray) -> int:
        """Simulate up to `steps` measurements of a world whose groups and centers are known: X = centers[truth[arm]]
        plus standard Gaussian noise from `rng`. OUT: arms, the first ones of the run, as many as fit. The next arm.
        """
        truth = np.ascontiguousarray(truth, dtype=np.int64)
        with rng.bit_generator.lock:
            self.next = super().play(steps, _floats(centers), truth, rng, arms)
        return self.next

    def commit(self, arm: int, change: int) -> None:
        """Count a pull as under way (+1) or as given up (−1), and choose the next arm anew."""
        super().commit(arm, change)
        self.absorb(self._no_arms, self._no_values, self._no_arms)

    def memory(self) -> dict[str, Any]:
        """Everything the run knows, as arrays and plain numbers."""
        return super().memory() | {"next": self.next}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave, of a run of the same size; ValueError for anything else, and the run is as it was."""
        PaperRun(*self._made_of).restore(memory)  # after an error in it a run is of no more use
        following = int(memory["next"])
        super().restore(memory)
        self.next = following

    @property
    def relative_centers(self) -> FloatArray:
        """The guess's centers (K, d) relative to the first measurement, as a view: no digits are lost."""
        return super().centers

    @property
    def centers(self) -> FloatArray:
        """The guess's centers (K, d), in the coordinates of the measurements."""
        centers: FloatArray = super().centers + self.origin
        return centers


def _floats(array: Any) -> FloatArray:
    return np.ascontiguousarray(array, dtype=np.float64)
