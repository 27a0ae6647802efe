"""A run of one of the paper's methods, as Python sees it: arrays in, arrays out. Its steps are in `native/paper`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie import _native
from coterie.methods.paper import LINEAR, ORACLE
from coterie.problem.checks import FloatArray, IntArray

__all__ = ["Run"]


class Run:
    """State of one run and the steps on it. Measurements are whitened: unit noise in every direction.

    A run belongs to one thread at a time: a second one gets a RuntimeError. `play` and `follow` let other
    threads go on meanwhile.
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
        self._native = _native.PaperRun(*self._made_of)
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
        return self._native.follow(arms, _floats(values), kinds)

    def play(self, steps: int, centers: FloatArray, truth: IntArray, rng: np.random.Generator, arms: IntArray) -> None:
        """Simulate up to `steps` measurements of a world whose groups and centers are known: X = centers[truth[arm]]
        plus standard Gaussian noise from `rng`. OUT: arms, the first ones of the run, as many as fit.
        """
        truth = np.ascontiguousarray(truth, dtype=np.int64)
        with rng.bit_generator.lock:
            self.next = self._native.play(steps, _floats(centers), truth, rng, arms)

    def cancel(self) -> None:
        """From any thread: end what is under way after the present measurement, for good."""
        self._native.cancel()

    def commit(self, arm: int, change: int) -> None:
        """Count a pull as under way (+1) or as given up (−1), and choose the next arm anew."""
        self._native.commit(arm, change)
        self.absorb(self._no_arms, self._no_values, self._no_arms)

    def memory(self) -> dict[str, Any]:
        """Everything the run knows, as arrays and plain numbers."""
        return self._native.memory() | {"next": self.next}

    @property
    def memory_bytes(self) -> int:
        """About how many bytes `memory` has."""
        return self._native.memory_bytes

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave, of a run of the same size; ValueError for anything else, and the run is as it was."""
        native = _native.PaperRun(*self._made_of)
        native.restore(memory)
        self._native, self.next = native, int(memory["next"])

    @property
    def done(self) -> bool:
        """Whether every level is met."""
        return self._native.done

    @property
    def t(self) -> int:
        """Measurements so far."""
        return self._native.t

    @property
    def ready(self) -> bool:
        """Whether there is a guess: every arm was measured."""
        return self._native.ready

    @property
    def degenerate(self) -> bool:
        """Whether the guess has an empty cluster or two equal centers."""
        return self._native.degenerate

    @property
    def pending(self) -> int:
        """Pulls under way."""
        return self._native.pending

    @property
    def statistic(self) -> tuple[float, float, float]:
        """Z1(t), Z2(t), Z(t)."""
        return self._native.statistic

    @property
    def log_sum(self) -> float:
        """Σ_m log(4 + log N_m(t)), the part of β that grows with the counts."""
        return self._native.log_sum

    @property
    def pulls(self) -> IntArray:
        """N_m(t) (M), as a view."""
        return self._native.pulls

    @property
    def labels(self) -> IntArray:
        """The guess (M), as a view."""
        return self._native.labels

    @property
    def relative_centers(self) -> FloatArray:
        """The guess's centers (K, d) relative to the first measurement, as a view: no digits are lost."""
        return self._native.centers

    @property
    def centers(self) -> FloatArray:
        """The guess's centers (K, d), in the coordinates of the measurements."""
        centers: FloatArray = self._native.centers + self._native.origin
        return centers

    @property
    def stops(self) -> IntArray:
        """The t at which each level was met (2, L), 0 if it was not; a view."""
        return self._native.stops

    @property
    def correct(self) -> IntArray:
        """Whether the guess was the truth of `play` then (2, L); a view."""
        return self._native.correct


def _floats(array: Any) -> FloatArray:
    return np.ascontiguousarray(array, dtype=np.float64)
