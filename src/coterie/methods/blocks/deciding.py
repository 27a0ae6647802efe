"""What a run by cells has taken in, and what it decides by that: estimates, freezes, the stop, the alarm."""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from typing import Any

import numpy as np

from coterie.methods.blocks.bets import Bettor
from coterie.methods.blocks.cells import Cell
from coterie.methods.blocks.epoch import Epoch, next_level, share_of_epoch
from coterie.methods.blocks.estimate import Estimate, Estimator
from coterie.methods.blocks.exchangeable import factors_for
from coterie.methods.blocks.pairs import ALPHA, Pairs
from coterie.methods.blocks.partitions import FREEZE_RISK
from coterie.methods.blocks.places import Places, fit_of, table_of
from coterie.methods.blocks.proof import certificate_of, evidence_of, pairs_needed, standing_of
from coterie.methods.blocks.shape import Shape
from coterie.methods.contract import Decision, MethodRun, Pull
from coterie.methods.reports import Evidence, Standing
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import bets_on_shape, trials_of
from coterie.problem.partition import same_partition
from coterie.problem.settings import Settings

FREEZE_RISK_UNKNOWN, SURE_RISK = 0.08, 0.01
"""The misgrouping risk at which a candidate is frozen, where the noise is not known; and at which it is at once."""
LEAST_FREEDOM = 6
"""Degrees of freedom of an estimated scatter for each number of a result, before which nothing is frozen: with fewer
there is a direction in which the noise looks small, and groups along it look sure."""
STEADY = 0.02
"""Otherwise the candidate has stood for this share of all results."""
LARGE_GROUP, CORE, SMALL_CORE = 4, 3, 2
"""All of a group of at most so many arms are its core, else so many; the last where a block cannot hold all arms."""
MOST_JOINED = 10
"""Of more groups the cores have one arm each where pairs are tested two by two."""


class DecidingRun(MethodRun):
    """A run by cells without its cells: results may come in any order; cells are used in theirs."""

    def __init__(self, settings: Settings) -> None:
        n_arms, n_groups, dim = self._shape = settings.shape
        self._noise, self._drawn, self._strict = settings.noise, settings.blocks == "drawn", settings.strict_blocks
        self._log_inverse_delta = -math.log(settings.delta)
        self._trials = trials_of(settings.noise)
        known = settings.noise.kind == "known"
        stated = [*self._shape, settings.delta, settings.noise.to_json(), settings.blocks]
        self._seed = int.from_bytes(hashlib.sha256(json.dumps(stated).encode()).digest()[:4], "big")
        in_units = settings.noise.in_units
        robust = settings.noise.kind in ("any", "symmetric")
        self._estimator = Estimator(n_arms, n_groups, dim, in_units, robust, self._seed)
        self._shape_estimate = Shape(*self._shape, self._seed) if bets_on_shape(settings.noise) else None
        self._risk = FREEZE_RISK if in_units else FREEZE_RISK_UNKNOWN
        self._factors, self._bettor = factors_for(settings.noise, n_groups, dim), Bettor(settings.noise, dim)
        self._halves = not (self._drawn and settings.noise.kind == "bounded")
        self.alpha = ALPHA if known else 0.0
        self.pairs = Pairs(*self._shape, self._log_inverse_delta, self._strict) if known else None
        self._places = Places(dim)  # what the estimate sees
        self._raw = self._places if self._trials is None else Places(dim)
        self._total = np.zeros(dim)  # of all results told in a block, as they are
        self._pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._asked: IntArray = np.zeros(n_arms, dtype=np.int64)  # results and asks under way
        self._cells: dict[int, Cell] = {}  # not used yet, by number
        self.n_cells = self._used = 0  # the numbers of the last cell composed, and used
        self._queue: deque[Pull] = deque()
        self._blocks: dict[str, bool] = {}  # those named, and whether each is closed
        self._block: str | None = None  # the one named last
        self._room = 0  # of the block named last, when it was first named
        self._placed: str | None = None  # of the next result that nobody asked for
        self.lapsed: list[int] = []
        self.epoch: Epoch | None = None
        self._freezes = 0
        self._location: Estimate | None = None
        self.estimate: Estimate | None = None  # the one that leads
        self._changed_at = 0  # how many results there were when the estimate got its groups
        self.alarm_arms: tuple[int, ...] | None = None
        self.by_pairs: tuple[int, ...] | None = None  # the representatives, if pairs have proven the groups
        self._done = False
        self._decided_at = -1
        self._applying = False
        self._made: list[Decision] = []

    # What everybody may ask a run.

    @property
    def done(self) -> bool:
        return self._done

    @property
    def pulls(self) -> IntArray:
        return self._pulls.copy()

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return self.alarm_arms

    @property
    def labels(self) -> IntArray | None:
        """The groups proven, or estimated."""
        if self._done and self.by_pairs is None:
            assert self.epoch is not None
            return self.epoch.labels
        return None if self.estimate is None else self.estimate.labels

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        labels = self.labels
        if labels is None:
            return None
        arms, blocks, rows = self._raw.arrays()
        fit = fit_of(*table_of(labels[arms], blocks, rows, self._shape[1], self._raw.n_blocks))
        return labels.copy(), fit.centers + self._total / max(len(arms), 1)

    def evidence(self) -> Evidence:
        return evidence_of(self)

    def standing(self) -> Standing:
        return standing_of(self)

    def certificate(self, decisions: list[Decision]) -> dict[str, Any]:
        return certificate_of(self, self._shape, self._log_inverse_delta, decisions, self._drawn, self._strict)

    @property
    def settled(self) -> Any:
        """(M, M) pairs that are known to differ; None where there are none, or they prove nothing any more."""
        return None if self.pairs is None or self.alarm_arms is not None else self.pairs.settled

    # Results.

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._pulls[arm] += 1
        cell = self._cells.get(of_round) if asked else None
        block = self._placed if cell is None else cell.block
        if cell is None:
            self._placed = None
            self._asked[arm] += 1
        if block is not None:
            self._add(arm, block, x)
        if cell is not None:
            cell.take(arm, x)
            if cell.ended:
                self._end(cell)
                self._advance()

    def _add(self, arm: int, block: str, x: FloatArray) -> None:
        dim = self._shape[2]
        self._total = self._total + x[:dim]
        if self._trials is None:
            self._places.add(arm, block, x)
            return
        n = float(self._trials)
        self._raw.add(arm, block, x[:dim])
        self._places.add(arm, block, 2.0 * math.sqrt(n + 0.5) * np.arcsin(np.sqrt((x[:dim] + 0.375) / (n + 0.75))))

    def give_up(self, arm: int, of_round: int) -> None:
        cell = self._cells.get(of_round)
        if cell is None or cell.ended:
            return
        self._asked[arm] -= 1
        cell.give_up(arm)
        if cell.left == 0:
            self._end(cell)
            self._advance()

    def _end(self, cell: Cell) -> None:
        """All results of a cell are in, or will not come."""
        missing = cell.missing
        if not missing:
            return
        self.lapsed.append(cell.number)
        if not self._applying:
            self._made.append({"event": "lapse", "cell": cell.number, "missing": missing, "strict": self._strict})
        if self._strict:
            if self.epoch is not None and cell.epoch == self.epoch.number:
                self.epoch = None
            if self.pairs is not None:
                self.pairs.next_generation(self.n_cells + 1)

    def _advance(self) -> None:
        """Use the cells that are complete, in their order."""
        used = self._used
        while not self._done and (cell := self._cells.get(self._used + 1)) is not None and cell.ended:
            del self._cells[cell.number]
            self._used = cell.number
            if self._strict and cell.missing:
                continue
            arms, x = cell.results(self._shape[2])
            if self._shape_estimate is not None:
                self._shape_estimate.judge(self._location, arms, x, self.t)
            if self.pairs is not None:
                self.pairs.use(cell.number, arms, x)
            if self.epoch is not None and cell.epoch == self.epoch.number:
                self.epoch.use(cell, arms, x, cell.values(self._shape[2]))
        if self._used > used:
            self._decide()

    # Decisions.

    @property
    def _least_freedom(self) -> float:
        return float(min(LEAST_FREEDOM * self._shape[2], max(self._shape[0], 4)))

    def _matches(self, estimate: Estimate) -> bool:
        """Whether the candidate that is being tested is the estimate."""
        return self.epoch is not None and same_partition(self.epoch.labels, estimate.labels)

    def look(self) -> None:
        self._decide()

    def _decide(self) -> None:
        """See whether the groups are found; renew the estimate, and freeze it if it is sure enough."""
        if self._done or self._finished() or len(self._places) == self._decided_at:
            return
        self._decided_at = len(self._places)
        old = None if self.estimate is None else self.estimate.labels
        estimate = self._renewed()
        if estimate is None:
            return
        self._look_at_pairs(estimate)
        if self._done or self._applying or self._matches(estimate):
            return
        if old is None or not same_partition(old, estimate.labels):
            self._changed_at = self._decided_at
        steady = self._decided_at - self._changed_at >= STEADY * self._decided_at or estimate.risk <= SURE_RISK
        known = self._noise.in_units or estimate.freedom >= self._least_freedom
        if estimate.risk <= self._risk and steady and known:
            self._freeze(estimate)
            self._finished()

    def _renewed(self) -> Estimate | None:
        """The estimate by all results."""
        old, frozen = None if self._location is None else self._location.labels, self.epoch is not None
        self._location = self.estimate = self._estimator.renew(self._places, old, frozen)
        if self._shape_estimate is not None and self._location is not None:
            self.estimate = self._shape_estimate.renewed(self._places, self._location, frozen)
        return self.estimate

    def _finished(self) -> bool:
        """Whether the candidate that is tested is proven."""
        if self.epoch is not None and not self.epoch.unmet(self.settled).size:
            self._done = True
        return self._done

    def _look_at_pairs(self, estimate: Estimate) -> None:
        """The stop by pairs, and the alarm."""
        if self.pairs is None or self.alarm_arms is not None:
            return
        representatives, complete = pairs_needed(self.pairs.settled, estimate.labels, self._shape[1])
        settled = self.pairs.settled
        grid = settled[np.ix_(representatives, representatives)]
        if grid.sum() == grid.size - len(grid):
            extra = np.flatnonzero(settled[:, representatives].all(axis=1))
            if extra.size:
                self.alarm_arms = (*representatives, int(extra[0]))
                if not self._applying:
                    self._made.append({"event": "alarm", "arms": list(self.alarm_arms)})
                return
        if complete:
            self.by_pairs, self._done = tuple(representatives), True

    def _freeze(self, estimate: Estimate) -> None:
        labels, number = estimate.labels, self._freezes
        least = np.where(np.isfinite(estimate.margins), estimate.margins, np.inf).min(axis=1)
        cores = []
        for k in range(self._shape[1]):
            members = np.flatnonzero(labels == k)
            order = members[np.lexsort((members, -least[members]))]
            size = SMALL_CORE if self._room < labels.size else order.size if order.size <= LARGE_GROUP else CORE
            if not self._halves:  # pair tests go two by two: their number grows with the fourth power
                size = min(size, 1 if self._shape[1] > MOST_JOINED else SMALL_CORE if self._shape[1] > CORE else size)
            cores.append([int(arm) for arm in order[:size]])
        decision: Decision = {
            "event": "freeze",
            "epoch": number,
            "frozen_at": self.t,
            "share": share_of_epoch(number),
            "level": next_level(number, self._log_inverse_delta, self.alpha),
            "labels": [int(label) for label in labels],
            "cores": cores,
        }
        bet = self._bettor.of_freeze(estimate, self._shape_estimate)
        self._made.append(decision if bet is None else decision | {"bet": bet})
        self._begin_epoch(self._made[-1])

    def _begin_epoch(self, decision: Decision) -> None:
        self.epoch = Epoch(decision, self._factors, self._halves)
        self._freezes = self.epoch.number + 1

    def new_decisions(self) -> list[Decision]:
        made, self._made = self._made, []
        return made
