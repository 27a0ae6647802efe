"""What the pairs, or a freeze, would still cost, and what a pull would gain for its cost (docs/CROC.md, section 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.oracles.croc import rule
from tests.oracles.croc.pairs import Pairs, Stacks
from tests.oracles.croc.partitions import Partition, ordered_sum, squared
from tests.oracles.croc.prices import Prices


@dataclass
class Forecast:
    """What the arms' means and the groups' centers let one expect."""

    stacks: Stacks
    guess: Partition
    pairs: Pairs
    prices: Prices

    def evidence(self, m: int, k: int, arm: int, other: int) -> float:
        """Of arm m against the lead of k, with so many pulls of each; −inf if no block ratio promises anything.

        The arm's results so far stay where they are, further ones are expected at the center of its group, and the
        lead's at the center of k.
        """
        now, dim = self.stacks.count(m), self.guess.centers.shape[1]
        x = self.stacks.mean(m) - self.guess.centers[k]
        u = self.guess.centers[self.guess.labels[m]] - self.guess.centers[k]
        more = arm - now
        apart = now * now * float(squared(x)) + 2.0 * now * more * float(ordered_sum(x * u))
        apart = (apart + more * more * float(squared(u)) + dim * more) / (arm * arm)
        best = -math.inf
        for side in range(2):
            for ratio, weight in zip(rule.BLOCK_RATIOS, rule.RATIO_WEIGHTS, strict=True):
                n = min(arm, other // ratio) if side == 0 else min(other, arm // ratio)
                if n == 0:
                    break
                energy = (apart - dim / arm + dim / n + dim / (n * ratio)) * (n * ratio / (ratio + 1.0))
                if energy > dim:
                    value = 0.5 * (energy - dim) - 0.5 * dim * math.log(energy / dim) - rule.FORECAST_LOSS
                    best = max(best, value + math.log(weight))
        return best

    def cost_of_pairs(self, limit: float) -> float:
        """Cost until all pairs are settled: the least over levels 1, 2, 4, … of all leads; inf from `limit` on."""
        labels, leads, best, price = self.guess.labels, self.pairs.leads, limit, self.prices.unit
        unsettled = [self.pairs.unsettled(m, labels) for m in range(len(labels))]
        wanted = {k for groups in unsettled for k in groups}
        for level in (2**i for i in range(rule.LEAD_LEVELS)):
            cost: float = sum(max(0, level - self.stacks.count(leads[k])) * price[leads[k]] for k in sorted(wanted))
            for m, groups in enumerate(unsettled):
                if cost >= best:
                    break
                cost += self._pulls_of(m, groups, level) * price[m]
            best = min(best, cost)
        return best if best < limit else math.inf

    def _pulls_of(self, m: int, groups: list[int], level: int) -> float:
        """More pulls of arm m until its pairs are settled, one pair after the other; a lead gets those of its level."""
        step, now, leads = 0, self.stacks.count(m), self.pairs.leads
        for k in groups:
            other = max(level, self.stacks.count(leads[k]))
            if m in leads:
                if self.evidence(m, k, max(level, now), other) < self.pairs.level:
                    return math.inf
                continue
            while self.evidence(m, k, now + rule.FORECAST_STEPS[step], other) < self.pairs.level:
                step += 1
                if step == len(rule.FORECAST_STEPS):
                    return math.inf
        return rule.FORECAST_STEPS[step]

    def cost_of_freeze(self, level: float) -> float:
        """What a freeze of the present labels would cost at this level b."""
        guess, dim, total = self.guess, self.guess.centers.shape[1], 0.0
        aim = 2.0 * (level + rule.FREEZE_DIM_PRICE * dim)
        concerned = set()
        for m, home in enumerate(guess.labels.tolist()):
            worst = 0.0
            for k in self.pairs.unsettled(m, guess.labels):
                gap = float(squared(guess.centers[k] - guess.centers[home]))
                sure = gap - dim * (1.0 / guess.totals[k] + 1.0 / guess.totals[home])
                worst = max(worst, aim / max(sure, rule.FREEZE_LEAST_GAP * gap, 1e-300))
            if worst > 0.0:
                total += max(rule.FREEZE_LEAST_PULLS, worst * rule.FREEZE_FACTOR) * self.prices.unit[m]
                concerned.add(home)
        return total + rule.FREEZE_GROUP_PULLS * self.prices.of(self.pairs.leads[k] for k in sorted(concerned))

    def gains(self, pairs: list[tuple[int, int]], committed: list[int]) -> dict[int, float]:
        """Of a pull of each arm of these unsettled pairs, and of each lead: what it gains, as a share of what lacks.

        An arm is looked at 1, 2, 3 pulls ahead, up to the first that gains anything; a lead 1, 2, 4, …, 32 ahead, and
        the best counts. Two leads are also raised together, which counts a quarter for each. All for what a pull costs.
        """
        gains = dict.fromkeys((m for m, _ in pairs), 0.0)
        lead_gains = [[0.0] * rule.LEAD_DOUBLINGS for _ in self.pairs.leads]
        for m, k in pairs:
            home, lead = self.guess.labels[m], self.pairs.leads[k]
            arm, other = committed[m], committed[lead]
            now = self.evidence(m, k, arm, other)
            deficit = self.pairs.level - float(self.pairs.evidence[m, k])
            if arm > self.stacks.count(m) or other > self.stacks.count(lead):  # what is under way will bring some of it
                deficit -= max(now - self.evidence(m, k, self.stacks.count(m), self.stacks.count(lead)), 0.0)
            deficit = max(deficit, rule.LEAST_DEFICIT)
            is_lead = self.pairs.leads[home] == m
            if not is_lead:
                for more in range(1, rule.LOOK_AHEAD + 1):
                    gain = min(self.evidence(m, k, arm + more, other) - now, deficit) / deficit
                    if gain > 0.0:
                        gains[m] += gain / more
                        break
            for i, more in enumerate(2**i for i in range(rule.LEAD_DOUBLINGS)):
                gain = min(self.evidence(m, k, arm, other + more) - now, deficit) / deficit
                if gain > 0.0:
                    lead_gains[k][i] += gain / more
                if is_lead:
                    gain = min(self.evidence(m, k, arm + more, other + more) - now, deficit) / deficit
                    if gain > 0.0:
                        lead_gains[k][i] += rule.TOGETHER_SHARE * gain / more
                        lead_gains[home][i] += rule.TOGETHER_SHARE * gain / more
        for lead, found in zip(self.pairs.leads, lead_gains, strict=True):
            gains[lead] = max(0.0, *found)
        return {m: gain / self.prices.unit[m] for m, gain in gains.items()}
