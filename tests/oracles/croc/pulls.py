"""Which arms to pull next: for the pairs from the start, to explore, in a round (docs/CROC.md, section 7)."""

from __future__ import annotations

import math

from tests.oracles.croc import rule
from tests.oracles.croc.epochs import Epoch, Test, arms_of
from tests.oracles.croc.forecasts import Forecast
from tests.oracles.croc.state import State


class Pulls(State):
    """The queue is filled here, and rounds are composed."""

    def _greedy(self) -> bool:
        """Queue pulls for the pairs from the start; False if the candidates have no unsettled pair."""
        least = self._least_pulled(range(self.n_arms))
        if self._committed[least] < self._floor:
            self._queue.append(least)
            return True
        pairs = [(m, k) for m in self._candidates for k in self._unsettled(m)]
        if not pairs:
            return False
        gains = Forecast(self._stacks, self._now, self._pairs, self._prices).gains(pairs, self._committed)
        wanted = min(max(1, len(pairs) // rule.PAIRS_PER_PULL), self.n_arms)
        best = sorted((m for m in gains if gains[m] > 0.0), key=lambda m: (-gains[m], m))[:wanted]
        self._queue.extend(best or [least])
        self._greedy_spent += self._prices.of(best or [least])
        return True

    def _expected_margin(self, m: int) -> float:
        """D_mk grows with the arm's pulls: what it will be when those under way are in."""
        margin, n = self._risk.margin[m], self._stacks.count(m)
        return margin if margin <= 0.0 or self._committed[m] == n else margin * self._committed[m] / n

    def _explore(self) -> None:
        """Queue pulls where the estimate is doubtful, in index order."""
        margins = {m: self._expected_margin(m) + self._prices.reserve[m] for m in self._candidates}
        limit = min(rule.MARGIN_CAP, min(margins.values(), default=math.inf) + rule.MARGIN_WINDOW)
        wanted = set()
        for m, margin in margins.items():
            if margin < limit:
                wanted.add(m)
                other = self._least_of(self._risk.rival[m])
                balance = rule.RIVAL_PULLS * self._stacks.count(m) * self._prices.balance(m, other)
                if self._now.totals[self._risk.rival[m]] < balance:
                    wanted.add(other)
            elif self._committed[m] < self._floor:
                wanted.add(m)
        margin, cut, *merged = self._risk.merge
        alone = self._least_of(cut)
        if margin < rule.MERGE_CAP:
            others = [self._least_of(k) for k in merged]
            wanted.add(alone)
            wanted.update(m for m in others if self._spent(m) <= rule.BALANCE * self._spent(alone))
        chance, a, b = self._risk.chance
        if chance > rule.CHANCE_SHARE * rule.FREEZE_RISK:
            first = self._least_of(a)
            wanted.update((first, self._least_of(b)))
            if math.isfinite(margin) and rule.BALANCE * self._spent(alone) <= self._spent(first):
                wanted.add(alone)
        if not wanted:
            finite = [m for m in margins if margins[m] < math.inf]
            wanted = {min(finite, key=lambda m: margins[m])} if finite else {self._least_pulled(range(self.n_arms))}
        self._queue.extend(sorted(wanted))

    def _composition(self, epoch: Epoch, unmet: list[Test]) -> dict[int, int]:
        """The pulls of the next round: arms of unmet tests and neglected ones; pools topped up by their core."""
        marked, floor = arms_of(unmet), rule.ROUND_FLOOR_SHARE * self.t / self.n_arms
        price = self._prices.unit
        pulls = {m: int(m in marked or self._committed[m] < floor) for m in range(self.n_arms)}
        for k, core in enumerate(epoch.cores):
            lacks, cheapest = 0, min(price[m] for m in core)
            for kind, pool in (("core", core), ("group", [m for m in pulls if epoch.labels[m] == k])):
                prices = (price[test.arm] for test in unmet if test.kind == kind and test.rival == k)
                tests = sum(min(one / cheapest, rule.POOL_PRICE) for one in prices)
                wanted = math.ceil(rule.POOL_TOP_UP * math.sqrt(tests))
                lacks = max(lacks, wanted - sum(pulls[m] for m in pool))
            for _ in range(lacks):
                pulls[min(core, key=lambda m: (self._committed[m] + pulls[m]) * price[m])] += 1
        times = 2 ** (len(self._rounds.open) // rule.ROUNDS_PER_DOUBLING)
        return {m: times * n for m, n in pulls.items() if n > 0}
