"""A CROC run as Python sees it: `coterie._native.CrocRun` (native/croc/run.hpp), what plain data make of it, and what
runs of methods have in common whose state is the engine's (`NativeRun`).

Measurements come in the ask order of each arm, as 2·d numbers: whitened, and what floats do not hold of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np

from coterie._native import CrocEntries, croc_constants, seed_of_round
from coterie._native import CrocRun as EngineRun
from coterie.methods.contract import MethodRun
from coterie.methods.paper.run import Run as PaperRun
from coterie.problem.checks import FloatArray, IntArray

__all__ = [
    "ALPHA",
    "CORE_ROOM",
    "DECIDED",
    "ENDED",
    "FIRST_SHARE",
    "OTHER_ARM",
    "PREFIX_ROOM",
    "PROVEN",
    "PROVEN_ASKING",
    "VARIANCE_SHARE",
    "CrocEntries",
    "CrocRun",
    "NativeRun",
    "grid_counts",
    "seed_of_round",
    "share_of_epoch",
]

ENDED, DECIDED, PROVEN, PROVEN_ASKING, OTHER_ARM = 0, 1, 2, 3, 4
"""Why a run that follows the entries of a record came back, as in native/croc/run.hpp."""

# Numbers of the rule that Python needs; all of them are in native/croc/constants.hpp (docs/CROC.md).
_RULE = croc_constants()

ALPHA = 0.2
"""Share of δ for the pairs from the start."""
VARIANCE_SHARE = 0.1
"""… and for an upper bound on the variance, where pairs need one."""
FIRST_SHARE: float = _RULE["first_share"]
CORE_ROOM: int = _RULE["core"] + 1
"""Places of a core: a group with at most so many arms is its own core."""
PREFIX_ROOM: int = _RULE["prefix_room"]
"""P, the prefixes of an arm that are all kept, if the run is not too large."""


def share_of_epoch(j: int) -> float:
    """π_j: the part of (1 − α)·δ that epoch j may use; they add up to 1."""
    return FIRST_SHARE * (1.0 - FIRST_SHARE) ** j


@cache
def grid_counts(room: int) -> IntArray:
    """The counts from P on at which prefixes are kept: P·2^j + i·8·2^j, P/8 of them in each octave."""
    step = _RULE["grid_step"]
    counts = np.concatenate([(room + step * np.arange(room // step)) * 2**j for j in range(_RULE["octaves"])])
    counts.setflags(write=False)
    return counts


class CrocRun(EngineRun):
    """State of one run and the steps on it."""

    @property
    def centers(self) -> FloatArray:
        """The estimate's centers, in the coordinates of the measurements; plain means, if the metric is estimated."""
        if not self.is_estimated:
            return self.positions + self.origin
        centers = np.zeros((self.n_groups, self.dim))
        np.add.at(centers, self.labels, self.sums)
        return centers / np.maximum(np.bincount(self.labels, self.pulls, len(centers)), 1.0)[:, None] + self.origin

    def record_freeze(
        self, labels: IntArray, cores: Sequence[Sequence[int]], level: float, bet: Mapping[str, Any] | None = None
    ) -> None:
        """A recorded freeze, at its place among the results. `bet`: what the family had fixed with it, if anything."""
        self.apply_freeze(labels, cores, level, [] if bet is None else bet["numbers"])

    def record_round(self, epoch: int, pulls: Sequence[Sequence[int]], bet: Mapping[str, Any] | None = None) -> None:
        """A recorded round: its composition as [arm, count], and the family's bet on it, if it has one."""
        if not self.apply_round(epoch, pulls, [] if bet is None else bet["numbers"]):
            raise ValueError(f"round {self.round + 1} of the record finds no room: too many rounds are open")

    def pair_evidence(self, i: int, j: int, pulls_i: int, pulls_j: int) -> float:
        """Evidence from the start that arms i and j differ, at these counts."""
        return float(self.pair_evidences(np.array([[i, j, pulls_i, pulls_j]]))[0])

    def bet_of_round(self, number: int) -> dict[str, Any] | None:
        """What the family of evidence fixed with a round under way, as plain data; None if it has no bets."""
        numbers = self.round_bet(number) if self.has_bets else []
        return {"from": self.origin.tolist(), "numbers": numbers} if numbers else None

    def bet_of_epoch(self, number: int) -> dict[str, Any] | None:
        """What the family of evidence fixed with a freeze, as plain data; None if it has no such numbers."""
        shared = self.frozen(number % self.n_epochs).shared
        if self.has_shape:
            named: dict[str, Any] = {"features": self.feature_names}
            if self.feature_seed is not None:
                named["seed"] = self.feature_seed
            return {"from": self.origin.tolist(), "numbers": shared.tolist()} | named
        fixed_with_it = self.n_groups * (self.dim + self.n_groups)  # what follows is gathered later
        return {"from": self.origin.tolist(), "numbers": shared[:fixed_with_it].tolist()} if shared.size else None

    @property
    def has_pairs(self) -> bool:
        """Whether there are pairs from the start."""
        return self.pair_share > 0.0

    @property
    def has_bound(self) -> bool:
        """Whether pairs from the start are in units of an upper bound on the variance."""
        return self.variance_share > 0.0

    @property
    def first_level(self) -> float:
        """What evidence has to reach before anything is frozen: the level of the pairs, or of the first epoch."""
        return self.pair_level if self.has_pairs else float(self.log_inverse_delta - np.log(share_of_epoch(0)))


State = TypeVar("State", bound="PaperRun | CrocRun")


class NativeRun(MethodRun, Generic[State]):
    """A run whose state, `_run`, is the engine's."""

    _run: State

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def t(self) -> int:
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        pulls: IntArray = self._run.pulls.astype(np.int64)  # not NumPy's other type of 64 bits
        return pulls

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return (np.asarray(self._run.labels, dtype=np.int64), self._run.centers) if self._run.ready else None

    def memory(self) -> dict[str, Any]:
        return self._run.memory()

    @property
    def memory_bytes(self) -> int:
        return self._run.memory_bytes

    def restore(self, memory: Mapping[str, Any]) -> None:
        self._run.restore(memory)
