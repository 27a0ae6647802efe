"""A run that freezes candidates, ask by ask: the part of `plain_sampling` that does not know the question."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plain_near_far as plain
from plain_groupings import Rule
from single_tests import Single

from coterie.evidence.near_far.family import Family, Guess

Vector = Any


@dataclass
class Test:
    """A planned test; `reading`: of a frozen one."""

    kind: str
    item: int
    reference: int
    ratio: int
    bound: Vector
    guess: Guess
    sure: float = 1.0
    parameters: Any = None
    reading: Any = None
    met: bool = False


@dataclass
class Candidate:
    labels: list[int]
    references: list[int]
    tests: list[Test]
    pulls: list[float]
    centers: list[Vector]
    means: list[Vector]
    stated: Any = None

    @property
    def cost(self) -> float:
        return math.fsum(self.pulls)


@dataclass
class Known:
    """What all results so far say: counts, means, the variance of a result."""

    counts: list[int]
    means: list[Vector]
    variance: Vector


@dataclass
class Frozen:
    number: int
    level: float
    candidate: Candidate
    stacks: list[list[Vector]]
    asked: list[int] = field(default_factory=list)  # of each arm since the freeze


class PlainRun:
    """A run. `near`, `far`: η and ε (d); `world`: the noise of `plain_near_far`; `variance`: None if not known."""

    def __init__(
        self, family: Family, world: plain.World, n_arms: int, delta: float, near: Vector, far: Vector,
        any_two: bool = False, variance: Vector | None = None, least: Vector = 0.0, price: Vector | None = None,
    ) -> None:  # fmt: skip
        self.family, self.world, self.n_arms, self.delta = family, world, n_arms, delta
        self.near, self.far, self.any_two = near, far, any_two
        self.variance, self.least, self.price = variance, least, price
        self.results: list[list[Vector]] = [[] for _ in range(n_arms)]
        self.pending = [0] * n_arms
        self.queue: list[int] = []
        self.epoch: Frozen | None = None
        self.candidate: Candidate | None = None
        self.freezes: list[Any] = []
        self.asks = self.t = self.searched = 0
        self.started, self.forecast, self.compare_at = 0, math.inf, 0
        self.done = False

    @property
    def level(self) -> float:
        share = Rule.LEVEL_SHARE * self.delta * Rule.FIRST_SHARE * Rule.NEXT_SHARE ** len(self.freezes)
        return math.log(1.0 / share)

    @property
    def known(self) -> Known:
        counts = [len(stack) for stack in self.results]
        means = [np.mean(stack, axis=0) for stack in self.results]
        variance = self.variance
        if variance is None:
            squares = sum(((np.array(s) - m) ** 2).sum(axis=0) for s, m in zip(self.results, means, strict=True))
            variance = np.maximum(squares / (sum(counts) - self.n_arms), self.least)
        return Known(counts, means, variance)

    def distance(self, gap: Vector, widths: Vector) -> float:
        away = np.abs(gap) / widths
        return float(away.max() if self.family.norm == "each" else math.sqrt(math.fsum(away**2)))

    # Asks and results.

    def ask(self) -> int | None:
        while not self.done:
            while self.queue:
                arm = self.queue.pop(0)
                if self.epoch is None or self.wants(self.epoch, arm):
                    self.pending[arm] += 1
                    self.asks += 1
                    if self.epoch is not None:
                        self.epoch.asked[arm] += 1
                    return arm
            self.plan()
        return None

    def tell(self, arm: int, z: Vector, of_round: int) -> None:
        self.pending[arm] -= 1
        self.results[arm].append(z)
        self.t += 1
        if self.epoch is not None and of_round == self.epoch.number + 1:
            self.epoch.stacks[arm].append(z)
            for test in self.epoch.candidate.tests:
                if not test.met and arm in (test.item, test.reference):
                    test.met = test.reading.evidence() >= self.epoch.level
            self.done = all(test.met for test in self.epoch.candidate.tests)

    @staticmethod
    def wants(epoch: Frozen, arm: int) -> bool:
        return any(not test.met and arm in (test.item, test.reference) for test in epoch.candidate.tests)

    def plan(self) -> None:
        if self.epoch is not None:
            if self.goes_on(self.epoch):
                self.queue = sweep(self.epoch)
                return
            self.epoch = None
        counts = [len(stack) for stack in self.results]
        taken = [count + under_way for count, under_way in zip(counts, self.pending, strict=True)]
        wanted = max(Rule.FIRST_RESULTS, len(self.freezes) + 1)
        if min(taken) < wanted:
            self.queue = [arm for arm in range(self.n_arms) for _ in range(wanted - taken[arm])]
            return
        if min(counts) < wanted:
            self.queue = [arm for arm in range(self.n_arms) if taken[arm] == min(taken)]
            return
        known = self.known
        if self.candidate is not None and self.t < self.searched + Rule.SEARCH_AGAIN * self.n_arms:
            self.candidate = self.again(self.candidate, known, self.level)
            self.queue = self.lacking(self.candidate, known, taken)
            if self.queue:
                return
        self.candidate, self.searched = self.best(known, self.level), self.t
        self.queue = self.lacking(self.candidate, known, taken)
        if not self.queue:
            self.freeze(self.candidate)

    def lacking(self, candidate: Candidate, known: Known, taken: list[int]) -> list[int]:
        few: list[int] = []
        for arm, pulls in enumerate(candidate.pulls):
            wanted = math.floor(min(Rule.EXPLORED * pulls, Rule.GROWTH * taken[arm] + Rule.GROWTH))
            few += [arm] * (wanted - taken[arm])
        if few:
            return few
        doubts = self.doubts(candidate, known)
        average = sum(candidate.pulls) / self.n_arms
        for arm, pulls in enumerate(candidate.pulls):
            if taken[arm] >= Rule.MOST_EXPLORED * max(pulls, average):
                doubts[arm] = 0.0
        if sum(doubts) <= Rule.DOUBT:
            return []
        price = [1.0] * self.n_arms if self.price is None else self.price
        order = sorted(range(self.n_arms), key=lambda arm: (-doubts[arm] / price[arm], arm))
        chosen: list[int] = []
        for arm in order:
            chosen.append(arm)
            if sum(doubts[other] for other in order[len(chosen) :]) <= Rule.REST * Rule.DOUBT:
                break
        settled = [arm for arm in chosen if self.pending[arm] <= Rule.UNDER_WAY]
        return sorted(settled or chosen)

    # Freezes.

    def freeze(self, candidate: Candidate) -> None:
        level, stacks = self.level, [[] for _ in range(self.n_arms)]  # type: ignore[var-annotated]
        self.epoch = Frozen(len(self.freezes), level, candidate, stacks, [0] * self.n_arms)
        for test in candidate.tests:
            make = Single(self.family).near_parameters if test.kind == "near" else Single(self.family).far_parameters
            test.parameters = make(test.bound, test.ratio, test.guess, level)
            row = (test.item, test.reference, test.ratio, test.bound, test.parameters)
            test.reading = plain.Reading(self.world, test.kind, row, stacks[test.item], stacks[test.reference])
        self.freezes.append(facts_of(candidate, level, self.t))
        self.started, self.forecast, self.compare_at = self.asks, candidate.cost, 0
        self.done = not candidate.tests

    def goes_on(self, epoch: Frozen) -> bool:
        known, spent = self.known, self.asks - self.started
        if self.misplaced(epoch, known):
            return False
        unmet = [test for test in epoch.candidate.tests if not test.met]
        against = any(self.left(one, epoch, known) == math.inf for one in unmet if one.reading.n >= Rule.BEGUN)
        late = against or spent >= Rule.LATE * self.forecast
        if spent < self.compare_at or (not late and spent < Rule.COMPARED * self.forecast):
            return True
        other = self.best(known, self.level).cost
        if late:
            rest = self.rest_of(epoch, known)
        else:
            rest = self.again_without(epoch, known, spent)
        if rest > Rule.BETTER * other and other < math.inf:
            return False
        self.compare_at = spent + max(self.n_arms, spent // Rule.COMPARE_AGAIN)
        return True

    def again_without(self, epoch: Frozen, known: Known, spent: int) -> float:
        again = self.again(epoch.candidate, known, epoch.level).cost
        return max(again - spent, Rule.LEAST_AGAIN * again)

    def rest_of(self, epoch: Frozen, known: Known) -> float:
        wanted = [0.0] * self.n_arms
        for test in epoch.candidate.tests:
            if not test.met:
                left = self.left(test, epoch, known)
                wanted[test.item] = max(wanted[test.item], left)
                wanted[test.reference] = max(wanted[test.reference], left * test.ratio)
        return sum(wanted)

    def forecast_of_all(self) -> float | None:
        """Results that are needed in all, by what is known now."""
        if self.done:
            return float(self.t)
        known = self.known
        left = self.best(known, self.level).cost if self.epoch is None else self.rest_of(self.epoch, known)
        return self.t + left if left < math.inf else None

    def left(self, test: Test, epoch: Frozen, known: Known) -> float:
        gap = known.means[test.item] - known.means[test.reference]
        doubt = known.variance / known.counts[test.item] + known.variance / known.counts[test.reference]
        guess, sd = Guess(gap, 0.0 * gap, doubt, known.variance), np.sqrt(doubt)
        if test.kind == "far":
            hopeful = gap + np.sign(gap) * sd
            needed = self.family.far_needed(test.bound, test.ratio, hopeful[None], guess, epoch.level)[0]
        else:
            hopeful = np.sign(gap) * np.maximum(np.abs(gap) - sd, 0.0)
            if self.family.norm == "distance":
                length = math.sqrt(math.fsum(gap**2))
                believed_length = math.sqrt(max(length**2 - math.fsum(doubt), 0.0)) - math.fsum(sd) / sd.size
                hopeful = gap * max(believed_length, 0.0) / length
            needed = self.family.near_needed(test.bound, test.ratio, hopeful[None], guess, epoch.level)[0]
        n, evidence = test.reading.n, test.reading.evidence()
        if n < needed or needed == math.inf:
            return float(max(needed - n, Rule.LEAST_LEFT * needed))
        return float(n * (epoch.level - evidence) / max(evidence, Rule.LEAST_PACE * epoch.level))

    # The question: candidates, and what is doubtful about one.

    def best(self, known: Known, level: float) -> Candidate:
        raise NotImplementedError

    def again(self, candidate: Candidate, known: Known, level: float) -> Candidate:
        raise NotImplementedError

    def doubts(self, candidate: Candidate, known: Known) -> list[float]:
        raise NotImplementedError

    def misplaced(self, epoch: Frozen, known: Known) -> bool:
        return False


def facts_of(candidate: Candidate, level: float, t: int) -> Any:
    """What a freeze says, without its parameters."""
    tests = sorted(candidate.tests, key=lambda test: test.kind == "far")
    rows = [[test.kind, test.item, test.reference, test.ratio] for test in tests]
    return {
        "at": t, "level": round(level, 9), "labels": candidate.labels, "references": candidate.references,
        "tests": rows, "stated": candidate.stated,
    }  # fmt: skip


def sweep(epoch: Frozen) -> list[int]:
    unmet = [test for test in epoch.candidate.tests if not test.met]
    ahead = [min(epoch.asked[test.item], epoch.asked[test.reference] // test.ratio) for test in unmet]
    under_way = [there - test.reading.n for test, there in zip(unmet, ahead, strict=True)]
    wanted: dict[int, int] = {}
    for test, there, now in zip(unmet, ahead, under_way, strict=True):
        if now == min(under_way):
            for arm, count in ((test.item, there + 1), (test.reference, (there + 1) * test.ratio)):
                wanted[arm] = max(wanted.get(arm, 0), count - epoch.asked[arm])
    return [arm for turn in range(max(wanted.values())) for arm in sorted(wanted) if wanted[arm] > turn]
