"""What a run of the reference knows between two results, and what it reads off at once (docs/CROC.md, section 7)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.problem.checks import IntArray, check_delta, check_shape
from coterie.problem.costs import check_costs, unit_costs
from tests.oracles.croc import rule
from tests.oracles.croc.epochs import Epoch, Round, Rounds
from tests.oracles.croc.pairs import Pairs, Stacks
from tests.oracles.croc.partitions import Partition
from tests.oracles.croc.prices import Prices
from tests.oracles.croc.risk import Risk

FIRST_PASS, PAIRS, EXPLORE, ROUNDS = "first pass", "pairs", "explore", "rounds"
NEVER = -(2**60)


class State:
    """Results, evidence, the estimate, open asks, the queue; `tests.oracles.croc.run` says what happens to them."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, delta: float, costs: Any = None) -> None:
        self.n_arms, self.n_clusters, self.dim = check_shape(n_arms, n_clusters, dim)
        m, k = self.n_arms, self.n_clusters
        self._prices = Prices(unit_costs(None if costs is None else check_costs(costs, m), m))
        self._log_inverse_delta = -math.log(check_delta(delta))
        equal_pairs = (m - k + 1) * (m - k) / 2  # H
        pair_level = math.log(equal_pairs) - math.log(rule.PAIRS_SHARE) + self._log_inverse_delta
        self.t, self.done, self.by = 0, False, ""
        self.freezes: list[Epoch] = []
        self.alarm: tuple[int, ...] | None = None
        self._stacks = Stacks(m, self.dim)
        self._pairs = Pairs(self._stacks, m, k, pair_level)
        self._risk = Risk(self._stacks, m)
        self._rounds = Rounds(m, self.dim)
        self._guess: Partition | None = None
        self._committed = [0] * m  # pulls, and those under way
        self._open: list[deque[int]] = [deque() for _ in range(m)]  # of each arm's open asks: their rounds, 0 for none
        self._queue: deque[int] = deque()
        self._mode = FIRST_PASS
        self._candidates: list[int] = []
        self._touched: list[int] = []  # arms with results since the last plan
        self._estimated_at = self._all_starts_at = self._changed_at = 0
        self._planned_at = NEVER
        self._left_group = self._closed = False
        self._greedy_spent, self._greedy_limit = 0.0, 0.0

    @property
    def labels(self) -> IntArray | None:
        """The estimate; proven once `done`."""
        return None if self._guess is None else self._guess.labels.copy()

    @property
    def rounds(self) -> list[Round]:
        """All rounds composed so far."""
        return self._rounds.all

    @property
    def _now(self) -> Partition:
        assert self._guess is not None
        return self._guess

    @property
    def _patience(self) -> int:
        return min(self.t // rule.PATIENCE_RESULTS, self.n_arms * self.n_clusters * self.dim // rule.PATIENCE_WORK)

    @property
    def _floor(self) -> float:
        """Forced exploration: no arm should have fewer pulls."""
        each = self.t / self.n_arms
        return max(rule.ROOT_FLOOR * math.sqrt(each), rule.FLOOR_SHARE * each)

    @property
    def _steady(self) -> bool:
        return self.t - self._changed_at >= rule.STEADY_SHARE * self.t

    @property
    def _remembered(self) -> list[Epoch]:
        return self.freezes[-rule.REMEMBERED_EPOCHS :]

    def _unsettled(self, m: int) -> list[int]:
        return self._pairs.unsettled(m, self._now.labels)

    def _least_pulled(self, arms: Iterable[int]) -> int:
        return min(arms, key=lambda arm: (self._committed[arm], arm))

    def _least_of(self, group: int) -> int:
        """The arm of a group whose committed pulls cost least."""
        return min(np.flatnonzero(self._now.labels == group).tolist(), key=lambda arm: (self._spent(arm), arm))

    def _spent(self, arm: int) -> float:
        return self._committed[arm] * self._prices.unit[arm]

    def _prove(self, by: str) -> None:
        self.done, self.by = True, by
