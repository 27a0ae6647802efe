"""A run of one of the paper's methods, as Python sees it: arrays in, arrays out, numba loaded when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie.engine.at_once import MOST_COPIED, PATIENCE, Entrance, plain_seconds, tried
from coterie.engine.state import (
    BOC,
    DEGENERATE,
    FLOOR,
    LINEAR,
    LOG_SUM,
    N_GAUGES,
    ORACLE,
    PENDING,
    READY,
    UNSEEN,
    Z1,
    Z2,
    Floats,
    Ints,
    T,
    Z,
    fixed,
    new_state,
)

__all__ = ["N_GAUGES", "Run", "compile_ahead", "load"]


_NOT_COMPILED = ("run.py", "ahead.py", "at_once.py", "cached.py", "compile_watch.py", "plain.py")


def _sources() -> list[Path]:
    here = Path(__file__).parent
    compiled = [path for path in here.glob("*.py") if path.name not in _NOT_COMPILED]
    return [*compiled, *(here / "direct").glob("*.py")]


_entrance = Entrance("the engine", "coterie.engine.advance", "advance", __name__, _sources)


def load() -> Any:
    """The compiled entries. Says so, once, if they have to be compiled first."""
    return _entrance.compiled()


def compile_ahead() -> None:
    """Have the entries in numba's cache: types are the same for every size."""
    Run(3, 2, 1, BOC, np.array([[1.0], [np.nan]])).commit(0, +1)


class Run:
    """State of one run and the steps on it. Measurements are whitened: unit noise in every direction."""

    def __init__(
        self,
        n_arms: int,
        n_clusters: int,
        dim: int,
        sampling: int,
        levels: Floats,
        *,
        distance_ratio: float | None = None,
        oracle: tuple[Ints, Floats] | None = None,
        at_once: bool = False,
    ) -> None:
        """`levels` (2, L): see `coterie.engine.advance`. `oracle`: true labels and λ* a cluster (K). `at_once`: steps
        may be uncompiled as long as there are no compiled ones (`coterie.engine.at_once`).
        """
        from coterie.engine.forest import new_forest

        self._shape = (n_arms, n_clusters, dim)
        self._plain = _entrance.plain() if at_once else None
        self._entries = load() if self._plain is None else self._plain
        self.state = new_state(n_arms, n_clusters, dim, sampling)
        self._forest = new_forest(n_clusters)
        self.levels = np.ascontiguousarray(levels, dtype=np.float64)
        self.met = np.where(np.isnan(self.levels[:, 0]), self.levels.shape[1], 0).astype(np.int64)
        self.stops = np.zeros(self.levels.shape, dtype=np.int64)
        self.correct = np.zeros(self.levels.shape, dtype=np.int64)
        self._x = np.zeros(dim)
        self._no_arms = np.zeros(0, dtype=np.int64)
        self._no_values = np.zeros((0, dim))
        self._no_centers = fixed(self._no_values)
        self._no_truth = fixed(np.zeros(n_arms, dtype=np.int64))
        self._no_rng = np.random.default_rng(0)  # never drawn from: scripted runs bring their measurements
        self.next = 0
        if sampling == LINEAR:
            assert distance_ratio is not None
            self.state.gauges[FLOOR] = distance_ratio**2 / (2 * n_arms)  # proposition_distance
        if sampling == ORACLE:
            assert oracle is not None
            self.state.group[:], self.state.shares[:] = oracle

    def absorb(self, arms: Ints, values: Floats, asked: Ints) -> None:
        """Take in measurements in this order; stops noting them once every level is met."""
        self.next = self.follow(arms, values, asked)

    def follow(self, arms: Ints, values: Floats, what: Ints) -> int:
        """Take in a script of measurements, asks and given-up asks (see `advance`); the next arm. INOUT: arms."""

        def advance() -> int:
            found = self._entries.advance(
                self.state, self._forest, len(arms), True, arms, what, values, self._no_centers, self._no_truth,
                self._no_rng, self.levels, self.met, self.stops, self.correct, self._x,
            )  # fmt: skip
            return int(found)

        if self._plain is not None:
            changed: list[Any] = [*self.state, *self._forest, arms, self.met, self.stops, self.correct]
            found = None
            if _entrance.is_behind and self._is_quick(len(arms), sum(array.nbytes for array in changed)):
                found = tried(advance, changed)
            if found is not None:
                return int(found)
            self._become_compiled()
        return advance()

    def _is_quick(self, n: int, size: int) -> bool:
        """Whether plain code may take in n entries. Every one of them is settled and chosen anew."""
        return size <= MOST_COPIED and plain_seconds(self._shape, n, n + 1) <= PATIENCE

    def _become_compiled(self) -> None:
        """From now on the steps are compiled; waits for them if they are not there yet."""
        if self._plain is not None:
            self._entries, self._plain = load(), None

    def play(self, steps: int, centers: Floats, truth: Ints, rng: np.random.Generator, arms: Ints) -> None:
        """Simulate up to `steps` measurements of a world whose groups and centers are known."""
        self._become_compiled()
        self.next = self._entries.advance(
            self.state, self._forest, steps, False, arms, self._no_arms, self._no_values, fixed(centers), fixed(truth),
            rng, self.levels, self.met, self.stops, self.correct, self._x,
        )  # fmt: skip

    def commit(self, arm: int, change: int) -> None:
        """Count a pull as under way (+1) or as given up (−1), and choose the next arm anew."""
        s = self.state
        self._entries.commit(s.counters, s.committed, s.group, s.heap, s.slot, s.first_slot, arm, change)
        self.absorb(self._no_arms, self._no_values, self._no_arms)

    def memory(self) -> dict[str, Any]:
        """Everything the run knows, as arrays and plain numbers."""
        found: dict[str, Any] = {f"state.{name}": array.copy() for name, array in self.state._asdict().items()}
        found |= {f"forest.{name}": array.copy() for name, array in self._forest._asdict().items()}
        return found | {"met": self.met.copy(), "stops": self.stops.copy(), "next": self.next}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave; the run must be at its beginning and of the same size."""
        for name, array in self.state._asdict().items():
            array[...] = memory[f"state.{name}"]
        for name, array in self._forest._asdict().items():
            array[...] = memory[f"forest.{name}"]
        self.met[:], self.stops[:], self.next = memory["met"], memory["stops"], int(memory["next"])

    @property
    def done(self) -> bool:
        """Whether every level is met."""
        return bool((self.met == self.levels.shape[1]).all())

    @property
    def t(self) -> int:
        """Measurements so far."""
        return int(self.state.counters[T])

    @property
    def ready(self) -> bool:
        """Whether there is a guess: every arm was measured."""
        return bool(self.state.counters[READY] == 1 and self.state.counters[UNSEEN] == 0)

    @property
    def degenerate(self) -> bool:
        """Whether the guess has an empty cluster or two equal centers."""
        return bool(self.state.counters[DEGENERATE] == 1)

    @property
    def pending(self) -> int:
        """Pulls under way."""
        return int(self.state.counters[PENDING])

    @property
    def statistic(self) -> tuple[float, float, float]:
        """Z1(t), Z2(t), Z(t)."""
        g = self.state.gauges
        return float(g[Z1]), float(g[Z2]), float(g[Z])

    @property
    def log_sum(self) -> float:
        """Σ_m log(4 + log N_m(t)), the part of β that grows with the counts."""
        return float(self.state.gauges[LOG_SUM])

    @property
    def centers(self) -> Floats:
        """The guess's centers, in the coordinates of the measurements."""
        centers: Floats = self.state.centers + self.state.origin
        return centers
