"""A frozen list of statements "item m is not equal to representative l", proven one by one (docs/DEADLINE.md).

Rounds measure items and representatives. A statement's evidence is the product of the likelihood ratios of its rounds:
of the difference of the two means, where the item may be in any other group, against equality. What a round bets on,
centers, their variances and how likely each item is in which group, was fixed when the round was composed. Nothing is
claimed before all representatives are proven to differ from one another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray


@dataclass(frozen=True)
class Bet:
    """What a round bets on: centers (K, d), the variance of each in every number (K), and for each item of the round
    (in the order of its pulls) how likely it is in which group, (n, K) with rows that sum to 1."""

    centers: FloatArray
    variances: FloatArray
    weights: FloatArray

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        named = {"centers": self.centers, "variances": self.variances, "weights": self.weights}
        return {name: values.tolist() for name, values in named.items()}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Bet:
        """What `to_json` gave."""
        parts = (np.array(saved[name], dtype=np.float64) for name in ("centers", "variances", "weights"))
        return cls(*parts)


@dataclass
class Round:
    """A round under way: how often each item is measured, the bet, and what came so far."""

    number: int
    pulls: dict[int, int]
    bet: Bet
    left: int
    sums: dict[int, FloatArray] = field(default_factory=dict)


class Statements:
    """The list, its rounds, and what is proven by now.

    `listed`: (M, K) the statements of items that are no representatives. `level`: log(1/δ') of all that is ever proven.
    """

    def __init__(self, representatives: Sequence[int], listed: np.ndarray, level: float) -> None:
        self.representatives = np.array(representatives, dtype=np.int64)
        self.listed, self.level = listed, level
        self.evidence = np.zeros(listed.shape)
        self.proven_in = np.zeros(listed.shape, dtype=np.int64)  # the round that proved a statement; 0: none
        n_groups = self.representatives.size
        self.between = np.zeros((n_groups, n_groups))  # evidence that representatives k < l differ
        self.apart_in = np.zeros((n_groups, n_groups), dtype=np.int64)
        self.open_rounds: dict[int, Round] = {}
        self.used = 0  # results of rounds that were used

    @property
    def group_of(self) -> dict[int, int]:
        """The group of each representative."""
        return {item: group for group, item in enumerate(self.representatives.tolist())}

    @property
    def unproven(self) -> np.ndarray:
        """(M, K) statements that are not proven."""
        return np.asarray(self.listed & (self.proven_in == 0))

    @property
    def all_apart(self) -> bool:
        """Whether all representatives are proven to differ."""
        return bool((self.apart_in[np.triu_indices(self.representatives.size, 1)] > 0).all())

    @property
    def level_now(self) -> float:
        """What the next statement has to reach, if no other is proven with it."""
        return self.level + float(np.log1p(self.unproven.any(axis=1).sum()))

    def add_round(self, number: int, pulls: Sequence[Sequence[int]], bet: Bet) -> None:
        """A round that was composed."""
        counts = {int(item): int(count) for item, count in pulls}
        self.open_rounds[number] = Round(number, counts, bet, sum(counts.values()))

    def take(self, number: int, item: int, value: FloatArray) -> None:
        """A result of a round; rounds are used in their order, each once it is complete."""
        of_round = self.open_rounds[number]
        of_round.sums[item] = of_round.sums.get(item, 0.0) + value
        of_round.left -= 1
        while self.open_rounds and (first := next(iter(self.open_rounds.values()))).left == 0:
            del self.open_rounds[first.number]
            self._use(first)

    def _use(self, of_round: Round) -> None:
        self.used += sum(of_round.pulls.values())
        items = np.array(list(of_round.pulls), dtype=np.int64)
        counts = np.array(list(of_round.pulls.values()), dtype=np.float64)
        means = np.stack([of_round.sums[item] for item in items.tolist()]) / counts[:, None]
        groups = self.group_of
        own = np.array([groups.get(item, -1) for item in items.tolist()])
        place = {item: i for i, item in enumerate(items.tolist())}
        for group, lead in enumerate(self.representatives.tolist()):
            if lead not in place:
                continue
            at = place[lead]
            gained = log_factors(means - means[at], 1.0 / counts + 1.0 / counts[at], of_round.bet, group)
            for i in np.flatnonzero((own >= 0) & (own < group)).tolist():
                if self.apart_in[own[i], group] == 0:
                    self.between[own[i], group] += gained[i]
                    if self.between[own[i], group] >= self.level:
                        self.apart_in[own[i], group] = of_round.number
            others = np.flatnonzero((own < 0) & self.unproven[items, group])
            self.evidence[items[others], group] += gained[others]
        if self.all_apart:
            unproven = self.unproven
            new = step_down(self.evidence, unproven, self.level)
            self.proven_in[new] = of_round.number

    def pairs(self) -> np.ndarray:
        """(M, M) the items that are proven to differ."""
        n_arms = len(self.listed)
        apart = np.zeros((n_arms, n_arms), dtype=bool)
        if self.all_apart:
            leads = self.representatives
            apart[np.ix_(leads, leads)] = ~np.eye(leads.size, dtype=bool)
            items, groups = np.nonzero(self.proven_in)
            apart[items, leads[groups]] = apart[leads[groups], items] = True
        return apart

    def rows(self) -> tuple[list[list[Any]], list[list[Any]]]:
        """What is proven as [representative, group, evidence, round], and as [item, group, evidence, round]."""
        between = [
            [int(self.representatives[k]), int(group), float(self.between[k, group]), int(self.apart_in[k, group])]
            for k, group in zip(*np.nonzero(self.apart_in), strict=True)
        ]
        items = [
            [int(item), int(group), float(self.evidence[item, group]), int(self.proven_in[item, group])]
            for item, group in zip(*np.nonzero(self.proven_in), strict=True)
        ]
        return between, items


def log_factors(contrasts: FloatArray, variances: FloatArray, bet: Bet, group: int) -> FloatArray:
    """log of the factors (n) of contrasts (n, d) of items with the representative of a group.

    The density of a contrast is, under equality, N(0, v·I); else a mixture over the other groups k, with the item's
    weights, of N(center of k − center of `group`, (v + their variances)·I).
    """
    dim = contrasts.shape[1]
    weights = bet.weights.copy()
    weights[:, group] = 0.0
    total = weights.sum(axis=1, keepdims=True)
    spread = variances[:, None] + bet.variances + bet.variances[group]
    off = contrasts[:, None] - (bet.centers - bet.centers[group])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(weights / total)
    logs = logs - 0.5 * dim * np.log(spread / variances[:, None]) - 0.5 * (off**2).sum(axis=2) / spread
    largest = logs.max(axis=1)
    with np.errstate(invalid="ignore"):
        mixed = largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1))
    gained = mixed + 0.5 * (contrasts**2).sum(axis=1) / variances
    return np.where(total[:, 0] > 0.0, gained, 0.0)


def step_down(evidence: FloatArray, unproven: np.ndarray, level: float) -> np.ndarray:
    """(M, K) the largest set of unproven statements that are proven together.

    Each must reach level + log(1+u), u the number of items that are left with an unproven statement.
    """
    items = np.flatnonzero(unproven.any(axis=1))
    weakest = np.sort(np.where(unproven, evidence, np.inf).min(axis=1)[items])[::-1]
    for whole in range(items.size, -1, -1):
        needed = level + np.log1p(items.size - whole)
        if whole == 0 or weakest[whole - 1] >= needed:
            return np.asarray(unproven & (evidence >= needed))
    return np.zeros_like(unproven)


def memberships(
    sums: FloatArray, counts: IntArray, labels: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How likely each item is in which group (M, K), by its mean and the centers without it; centers; their weights."""
    dim = sums.shape[1]
    members = (labels[:, None] == np.arange(n_groups)).astype(np.float64)
    weights, totals = members.T @ counts, members.T @ sums
    others = np.maximum(weights - members * counts[:, None], 0.0)  # (M, K)
    centers = (totals - members[:, :, None] * sums[:, None]) / np.maximum(others, 1.0)[:, :, None]
    variance = 1.0 / np.maximum(counts, 0.5)[:, None] + 1.0 / np.maximum(others, 0.5)
    off = ((sums / np.maximum(counts, 1)[:, None])[:, None] - centers) ** 2
    logs = -0.5 * off.sum(axis=2) / variance - 0.5 * dim * np.log(variance)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likely / likely.sum(axis=1, keepdims=True), totals / np.maximum(weights, 1.0)[:, None], weights


# What a round of a frozen list measures: doubtful items for the guess, then the statements that are cheapest to prove.
#
# Nothing here enters a proof (docs/DEADLINE.md).


RESULTS_AN_ITEM = 6.0
"""A list is for items whose place so many results prove, or fewer: elsewhere representatives take too much of the
rounds, and CROC proves more (`coterie bench deadline`)."""

DOUBTFUL = 0.001
"""An item that is in another group with so much probability is measured in every round, for the guess."""

FILLED, FOR_DOUBTS = 0.85, 0.8
"""Of what is left, for the statements that are taken up, and at most for doubtful items."""


def costs_of(statements: Statements, likely: FloatArray, centers: FloatArray, weights: FloatArray) -> FloatArray:
    """(M, K) about how many results of an item prove each open statement; infinite for the others.

    `likely`: (M, K) how likely each item is in the group of each representative; of these groups the centers and how
    many results each rests on.
    """
    dim = centers.shape[1]
    variances = 1.0 / weights[:, None] + 1.0 / weights
    gaps = ((centers[:, None] - centers) ** 2).sum(axis=2)
    gaps = np.maximum(gaps - dim * variances, 0.25 * gaps)
    best = likely.argmax(axis=1)
    lack = statements.level_now - statements.evidence + 0.06 * dim
    with np.errstate(divide="ignore"):
        costs = np.maximum(2.4 * lack / gaps[best], 0.7)
    costs[~statements.unproven] = np.inf
    costs[np.arange(best.size), best] = np.inf
    return np.asarray(costs)


def share_in_reach(statements: Statements, costs: FloatArray, prices: FloatArray, left: float) -> float:
    """Of the items, the share whose place what is left is expected to prove; 0 if a list is not worth it."""
    whole = np.where(np.isfinite(costs), costs, 0.0).max(axis=1)
    rounds, users = float(np.ceil(np.median(whole))), len(costs) / statements.representatives.size
    if rounds > RESULTS_AN_ITEM:
        return 0.0
    overhead = rounds * prices[statements.representatives].sum() * pulls_of_representative(users)
    spent = np.cumsum(np.sort(whole * prices)) + overhead
    return float((spent <= FILLED * left).mean())


def composition(
    statements: Statements, doubts: FloatArray, costs: FloatArray, prices: FloatArray, left: float
) -> dict[int, int]:
    """How often each item is measured in the next round; nothing if no round fits into what is left."""
    n_groups = statements.representatives.size
    ranked, many = np.sort(costs, axis=1), np.arange(1, n_groups + 1)
    values = np.where(np.isfinite(ranked), many / np.where(np.isfinite(ranked), ranked, 1.0), 0.0)
    best = values.argmax(axis=1)
    values, price = values.max(axis=1) / prices, ranked[np.arange(best.size), best] * prices
    chosen: list[int] = []
    used = 0.0
    for item in np.argsort(-doubts, kind="stable").tolist():
        if doubts[item] <= DOUBTFUL or used + prices[item] > FOR_DOUBTS * left:
            break
        chosen.append(item)
        used += prices[item]
    taken = set(chosen)
    for item in np.argsort(-values, kind="stable").tolist():
        if values[item] <= 0.0 or used + price[item] > FILLED * left:
            break
        if item not in taken:
            chosen.append(item)
            used += price[item]
    pulls = dict.fromkeys(chosen, 1) | _of_representatives(statements, chosen)
    spent = sum(prices[item] * count for item, count in pulls.items())
    for item in chosen[::-1]:  # the last round has to fit
        if spent <= left:
            break
        del pulls[item]
        spent -= prices[item]
    of_use = bool(set(pulls) - set(statements.group_of)) or not statements.all_apart
    return pulls if of_use and spent <= left else {}


def _of_representatives(statements: Statements, chosen: Sequence[int]) -> dict[int, int]:
    n_groups = statements.representatives.size
    users = statements.unproven[list(chosen)].sum(axis=0) if chosen else np.zeros(n_groups)
    met = statements.apart_in + statements.apart_in.T + np.eye(n_groups, dtype=np.int64) > 0
    return {
        int(lead): pulls_of_representative(float(users[group]))
        for group, lead in enumerate(statements.representatives)
        if users[group] or not met[group].all()
    }


def pulls_of_representative(users: float) -> int:
    """How often a representative is measured in a round in which so many items are compared with it."""
    return max(1, math.ceil(0.7 * math.sqrt(users)))
