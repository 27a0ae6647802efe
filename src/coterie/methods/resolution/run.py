"""One run for a question that is answered by freezing candidates: what to measure next, and whether it is proven.

docs/RESOLUTION.md has the proof. Only `Epoch` enters it; all else chooses measurements. A result counts for the tests
of an epoch if it was asked for after the epoch's freeze: the number of an ask is that of the last freeze before it,
from 1, and 0 before the first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.methods.resolution.candidate import Candidate, PlannedTests
from coterie.methods.resolution.epoch import FAR, NEAR, Epoch
from coterie.methods.resolution.estimates import Tally
from coterie.methods.resolution.questions import AskedQuestion
from coterie.problem.checks import FloatArray, IntArray

ALPHA = 0.1
"""The share of δ that is left to pairs from the start, which serve partial answers."""
FIRST_SHARE, NEXT_SHARE = 0.8, 0.2
"""Of (1−α)·δ for the first freeze, and of the share of each freeze for the next."""

EXPLORED = 0.22
"""Of the results that the tests of a candidate need by forecast: so many are wanted of an arm before the freeze."""
GROWTH = 2
"""Results of an arm, as a multiple of those it has, and so many more, that are asked for at once before a freeze."""
DOUBT, REST = 0.05, 0.5
"""Of the grouping: above it, exploration goes on, of so many arms that the others have that part of it left."""
UNDER_WAY = 2
"""Asks of a doubtful arm that may be under way when another is made."""
MOST_EXPLORED = 3.0
"""Of the forecast for an arm, or for all on average: beyond it no doubt is a reason to measure the arm."""
SEARCH_AGAIN = 0.25
"""Of the arms: after so many new results candidates are looked for again while exploring; before a freeze always."""
BEGUN = 2
"""Contrasts of a test from which on all results may speak against it."""
COMPARED, LATE = 0.25, 1.2
"""Of the forecast: an epoch that has taken so much is compared with the best other candidate, again and again; beyond
the second, by how its tests went."""
BETTER = 1.1
"""How many times the forecast of another candidate an epoch must still need to be left for it."""
LEAST_AGAIN = 0.1
"""Of its forecast: an epoch is taken to need no less, however much it has had."""
COMPARE_AGAIN = 4
"""An epoch that was compared is compared again after one part in so many of what it has taken, or M asks."""
FACTORS: FloatArray = np.geomspace(1.0, 64.0, 49)
"""Multiples of η that are tried for a budget."""


def share_of_epoch(number: int) -> float:
    """π_j, the share of (1−α)·δ that the tests of epoch j may err with."""
    return FIRST_SHARE * NEXT_SHARE**number


def level_of_epoch(number: int, log_inverse_delta: float) -> float:
    """b_j = log 1/((1−α)·δ·π_j)."""
    return log_inverse_delta - math.log(1.0 - ALPHA) - math.log(share_of_epoch(number))


class FreezingRun:
    """The state of a run: results, the epoch at work, what is planned."""

    def __init__(self, asked: AskedQuestion, n_arms: int, log_inverse_delta: float) -> None:
        self.asked, self.n_arms, self._log_inverse_delta = asked, n_arms, log_inverse_delta
        self.price: FloatArray = np.ones(n_arms)  # of a result of each arm, in units of the cheapest
        self.tally = Tally(n_arms, asked.dim, asked.evidence.known_variance, asked.evidence.least_variance)
        self.epoch: Epoch | None = None
        self.freezes: list[dict[str, Any]] = []
        self.t = 0
        self.done = False
        self._asked_results: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._queue: deque[int] = deque()
        self._candidate: Candidate | None = None
        self._started_at = 0  # asks when the epoch began
        self._forecast_of_epoch = math.inf
        self._asks = 0
        self._compare_at = 0
        self._searched_at = 0  # results when candidates were last looked for

    @property
    def labels(self) -> IntArray | None:
        """The groups of the candidate at work, or of the last one that was looked at; None before there is one."""
        if self.epoch is not None:
            return self.epoch.labels
        return None if self._candidate is None else self._candidate.labels

    @property
    def references(self) -> IntArray | None:
        """The reference of each of these groups."""
        if self.epoch is not None:
            return self.epoch.references
        return None if self._candidate is None else self._candidate.references

    @property
    def planned_tests(self) -> int:
        """Tests of the candidate at work, or of the last one that was looked at; 0 before there is one."""
        if self.epoch is not None:
            return len(self.epoch)
        return 0 if self._candidate is None else self._candidate.near.item.size + self._candidate.far.item.size

    @property
    def spent(self) -> int:
        """Asks since the candidate at work was frozen; 0 if there is none."""
        return 0 if self.epoch is None else self._asks - self._started_at

    # Results.

    @property
    def number(self) -> int:
        """Of the asks that are made now."""
        return len(self.freezes)

    def count(self, arm: int, z: FloatArray, number: int, asked: bool) -> None:
        """One result of an arm, in scaled units."""
        self.tally.add(arm, z)
        self.t += 1
        if asked:
            self._answered(arm, number)
            self._asked_results[arm] += 1
            self.asked.evidence.observe(arm, z)
        if asked and self.epoch is not None and number == self.epoch.number + 1:
            self.epoch.add(arm, z)
            self.done = self.epoch.done

    def give_up(self, arm: int, number: int) -> None:
        """The result of an ask will not come."""
        self._answered(arm, number)

    def _answered(self, arm: int, number: int) -> None:
        self.tally.pending[arm] -= 1
        if self.epoch is not None and number == self.epoch.number + 1:
            self.epoch.pending[arm] -= 1

    def held_up(self, asks: Sequence[tuple[int, int]]) -> tuple[int, list[int]] | None:
        """Results of no use before open asks, (arm, number), are answered, and the places of these; None if the next
        ask was planned before.

        Before a freeze: results beyond those that every arm must have. Then: results that no contrast has used.
        """
        epoch = self.epoch
        if any(epoch is None or epoch.wants(arm) for arm in self._queue):
            return None
        if epoch is not None:
            places = [i for i, (arm, number) in enumerate(asks) if number == epoch.number + 1 and epoch.wants(arm)]
            return epoch.unused, places
        missing = self._missing(self.tally.counts)
        if not (missing > 0).any():
            return 0, []
        return int(np.maximum(-missing, 0).sum()), [i for i, (arm, _) in enumerate(asks) if missing[arm] > 0]

    # Asks.

    def ask(self) -> int | None:
        """The next arm, counted as under way; None if the groups are proven."""
        while not self.done:
            if self._queue:
                arm = self._queue.popleft()
                if self.epoch is None or self.epoch.wants(arm):
                    self.open(arm)
                    return arm
            else:
                self._plan()
        return None

    def open(self, arm: int, number: int | None = None) -> None:
        """An ask of the arm is under way. `number`: that of a recorded ask."""
        self.tally.pending[arm] += 1
        self._asks += 1
        if self.epoch is not None and (number is None or number == self.epoch.number + 1):
            self.epoch.pending[arm] += 1

    def _plan(self) -> None:
        """Fill the queue, or freeze a candidate."""
        if self.epoch is not None:
            if self._still_best(self.epoch):
                self._queue.extend(self.epoch.sweep())
                return
            self.epoch = None
        taken = self.tally.counts + self.tally.pending
        missing = self._missing(taken)
        if (missing > 0).any():
            few = np.flatnonzero(missing > 0)
            self._queue.extend(np.repeat(few, missing[few]).tolist())
            return
        if (self._missing(self.tally.counts) > 0).any():  # results are under way: measure on meanwhile
            self._queue.extend(np.flatnonzero(taken == taken.min()).tolist())
            return
        if self._candidate is not None and self.t < self._searched_at + SEARCH_AGAIN * self.n_arms:
            self._candidate = self.asked.again(self._candidate, self.tally, self._level)
            if self._explores(self._candidate, taken):
                return
        self._candidate = candidate = self._best()
        self._searched_at = self.t
        if not self._explores(candidate, taken):
            self.freeze(candidate)

    def _explores(self, candidate: Candidate, taken: IntArray) -> bool:
        """Fill the queue with arms that want a further result before this candidate is frozen, if there are any."""
        lacking = self._lacking(candidate, taken)
        self._queue.extend(lacking.tolist())
        return lacking.size > 0

    def _missing(self, taken: IntArray) -> IntArray:
        """(M) results that arms lack before the next freeze, if so many of them count as taken."""
        pending = taken - self.tally.counts
        wanted = max(self.asked.evidence.first_results, len(self.freezes) + 1)  # it grows, so that a run ends
        return np.asarray(np.maximum(wanted - taken, self.asked.evidence.first_results - self._asked_results - pending))

    def _cost(self, candidate: Candidate) -> float:
        """Results that its tests are forecast to need."""
        return candidate.cost

    def _best(self) -> Candidate:
        return self.asked.best(self.tally, self._level)

    @property
    def _level(self) -> float:
        """Of the tests of the next freeze."""
        return level_of_epoch(len(self.freezes), self._log_inverse_delta - self.asked.evidence.log_share)

    def _lacking(self, candidate: Candidate, taken: IntArray) -> IntArray:
        """Arms that want a further result before this candidate is frozen."""
        wanted = np.floor(np.minimum(EXPLORED * candidate.pulls, GROWTH * (taken + 1.0))).astype(np.int64)
        lacking = np.flatnonzero(taken < wanted)
        if lacking.size:
            return np.repeat(lacking, (wanted - taken)[lacking])
        doubts = self.asked.doubts(candidate, self.tally)
        doubts[taken >= MOST_EXPLORED * np.maximum(candidate.pulls, candidate.pulls.mean())] = 0.0  # so that it ends
        if doubts.sum() > DOUBT:
            worst = np.argsort(-doubts / self.price, kind="stable")  # most doubt for what it costs to remove it
            rest = doubts.sum() - np.cumsum(doubts[worst])
            chosen = worst[: 1 + int(np.count_nonzero(rest > REST * DOUBT))]  # what the others add up to is enough
            settled = chosen[self.tally.pending[chosen] <= UNDER_WAY]  # do not wait for what is under way
            return np.sort(settled if settled.size else chosen)
        return np.zeros(0, dtype=np.int64)

    # Freezes.

    def freeze(self, candidate: Candidate) -> None:
        """Write a candidate and its tests down; from here on they are tested.

        One whose tests would not say all that is claimed is left: another result of every arm may give a better one.
        """
        level = self._level
        frozen: dict[str, Any] = {
            "event": "freeze",
            "epoch": len(self.freezes),
            "frozen_at": self.t,
            "share": share_of_epoch(len(self.freezes)),
            "level": level,
            "labels": candidate.labels.tolist(),
            "references": candidate.references.tolist(),
        } | self.asked.stated(candidate)
        for kind, tests in ((NEAR, candidate.near), (FAR, candidate.far)):
            frozen[kind] = self._written(kind, tests, level)
        epoch = self._tested(frozen)
        if not epoch.covered:
            self._queue.extend(range(self.n_arms))
            return
        self._begin(epoch)
        self._forecast_of_epoch = self._cost(candidate)
        self._candidate = candidate

    def _written(self, kind: str, tests: PlannedTests, level: float) -> list[list[Any]]:
        family = self.asked.family
        make = family.near_parameters if kind == NEAR else family.far_parameters
        parameters = make(tests.bound, tests.ratio, tests.guess, level)
        columns = (column.tolist() for column in (tests.item, tests.reference, tests.ratio, tests.bound))
        return [list(row) for row in zip(*columns, parameters, strict=True)]

    def change(self, asked: AskedQuestion, factor: FloatArray) -> None:
        """Ask for another resolution from here on: the epoch at work is left, and all results keep serving estimates.

        Its level is spent; the next freeze has the new bounds. `factor` (d): the old units in the new ones.
        """
        asked.evidence.take_over(self.asked.evidence, factor)
        self.tally.rescale(factor, asked.evidence.known_variance, asked.evidence.least_variance)
        self.asked, self.epoch = asked, None
        self._queue.clear()
        self._searched_at = -self.n_arms  # the old candidate is only shown: another one is looked for
        if not (self._missing(self.tally.counts) > 0).any():
            self._candidate, self._searched_at = self._best(), self.t

    def apply_freeze(self, frozen: dict[str, Any]) -> None:
        """A freeze that was decided: its tests begin."""
        self._begin(self._tested(frozen))

    def _tested(self, frozen: dict[str, Any]) -> Epoch:
        epoch = Epoch(frozen, self.asked.family, self.n_arms)
        epoch.covered = self.asked.covers(epoch)
        return epoch

    def _begin(self, epoch: Epoch) -> None:
        self.freezes.append(epoch.frozen)
        self.epoch = epoch
        self._queue.clear()
        self._started_at = self._asks
        self._forecast_of_epoch = math.inf
        self._compare_at = 0
        self.done = epoch.done

    def _still_best(self, epoch: Epoch) -> bool:
        """Whether it pays to go on with the tests of an epoch."""
        spent = self._asks - self._started_at
        if not epoch.covered or self.asked.misplaced(epoch, self.tally):
            return False
        begun = np.flatnonzero((epoch.met_at == 0) & (epoch.count >= BEGUN))
        contradicted = not np.isfinite(self._left(epoch, begun)).all()
        doubtful = contradicted or spent >= LATE * self._forecast_of_epoch
        if not doubtful and spent < COMPARED * self._forecast_of_epoch:
            return True
        if spent < self._compare_at:  # it was compared a little while ago
            return True
        other = self._best()
        left = self._remaining(epoch) if doubtful else self._forecast_again(epoch, spent)
        cost = self._cost(other)
        if left <= BETTER * cost or not math.isfinite(cost):
            self._compare_at = spent + max(self.n_arms, spent // COMPARE_AGAIN)
            return True
        return False

    def _forecast_again(self, epoch: Epoch, spent: int) -> float:
        """Results that an epoch still needs if its candidate were made now, with what is known by now."""
        if self._candidate is None or not np.array_equal(self._candidate.labels, epoch.labels):
            return 0.0
        again = self._cost(self.asked.again(self._candidate, self.tally, epoch.level))
        return max(again - spent, LEAST_AGAIN * again)

    def _left(self, epoch: Epoch, tests: IntArray) -> FloatArray:
        """Forecasts of the contrasts that unmet tests still need, by all results so far."""
        tally, items, references = self.tally, epoch.item[tests], epoch.reference[tests]
        gap, variance = tally.means[items] - tally.means[references], tally.variance
        doubt = variance / tally.counts[items][:, None] + variance / tally.counts[references][:, None]
        return self.asked.left(epoch, tests, gap, doubt, variance)

    def remaining(self) -> float:
        """Results still needed, by forecast; infinite before every arm was measured."""
        if self.done:
            return 0.0
        if self.epoch is not None:
            return self._remaining(self.epoch)
        if (self._missing(self.tally.counts) > 0).any():
            return math.inf
        return self._best().cost

    def forecast(self) -> float | None:
        """Results needed in all, by forecast; None before every arm was measured often enough."""
        left = self.remaining()
        return self.t + left if math.isfinite(left) else None

    def factor_for(self, budget: int) -> float | None:
        """The smallest f ≥ 1, roughly, for which near means f·η and the forecast is within the budget."""
        if (self._missing(self.tally.counts) > 0).any():
            return None
        level = self._level
        left = budget - self.t
        for factor in FACTORS:
            if self.asked.widened(float(factor), self.tally, level) <= left:
                return float(factor)
        return None

    def cost_left(self) -> float:
        """What is still to be spent, by forecast, in units of the cheapest arm; infinite if nobody knows."""
        if self.done:
            return 0.0
        if self.epoch is not None:
            return float((self._wanted(self.epoch) * self.price).sum())
        if (self._missing(self.tally.counts) > 0).any():
            return math.inf
        return float((self._best().pulls * self.price).sum())

    def _remaining(self, epoch: Epoch) -> float:
        """Results that the unmet tests of an epoch still need, by forecast."""
        return float(self._wanted(epoch).sum())

    def _wanted(self, epoch: Epoch) -> FloatArray:
        """(M) results of each arm that the unmet tests of an epoch still need, by forecast."""
        wanted, unmet = np.zeros(self.n_arms), np.flatnonzero(epoch.met_at == 0)
        left = self._left(epoch, unmet)
        np.maximum.at(wanted, epoch.item[unmet], left)
        np.maximum.at(wanted, epoch.reference[unmet], left * epoch.ratio[unmet])
        return wanted
