"""The course of a run: search, cut, better features, explore, freeze, prove; and the sweeps that end every run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracles.features import constants as c
from tests.oracles.features.proof import Frozen, round_of
from tests.oracles.features.search import Ask, Better, Race, Results, cut


class PlainRun:
    """A run to its proof. `draw`: (item, feature, how often) → results."""

    def __init__(
        self, n: int, d: int, n_groups: int, delta: float, draw: Callable[[int, int, int], list[float]], seed: int
    ) -> None:
        self.n, self.d, self.K, self.delta = n, d, n_groups, delta
        self.rng = np.random.default_rng(seed)
        self.results = Results(n, d, draw)
        self.race, self.better = Race(self.results, self.rng), Better(self.results, self.rng)
        self.block = np.zeros(n, dtype=int)
        self.gaps: dict[int, float] = {}  # of the features found, in their order
        self.freezes: list[tuple[int, list[int], list[list[int]], list[int]]] = []  # t, groups, cores, features
        self.rounds = 0

    # What the features found say of the groups.

    @property
    def t(self) -> int:
        return sum(count for _, _, count, _ in self.results.asked)

    def members(self, k: int) -> list[int]:
        return [item for item in range(self.n) if self.block[item] == k]

    def table(self) -> tuple[Any, Any]:
        """(n, F) numbers and means on the features found."""
        cells = [[(self.results.count(m, f), self.results.mean(m, f)) for f in self.gaps] for m in range(self.n)]
        both = np.array(cells, dtype=float).reshape(self.n, len(self.gaps), 2)
        return both[:, :, 0], both[:, :, 1]

    def centers(self) -> tuple[Any, Any]:
        """(K, F) means of groups and numbers of results."""
        counts, means = self.table()
        weights = np.array([counts[self.block == k].sum(axis=0) for k in range(self.K)])
        totals = np.array([(counts * means)[self.block == k].sum(axis=0) for k in range(self.K)])
        return totals / np.maximum(weights, 1e-9), weights

    def rates(self) -> Any:
        """(K, K, F) squared differences of groups, less their errors."""
        means, weights = self.centers()
        made = np.zeros((self.K, self.K, len(self.gaps)))
        for k in range(self.K):
            for other in range(self.K):
                gap = abs(means[k] - means[other])
                error = np.sqrt(1 / np.maximum(weights[k], 1e-9) + 1 / np.maximum(weights[other], 1e-9))
                made[k, other] = np.maximum(np.maximum(gap - error, gap / 3), 1e-2) ** 2
        return made

    def nearest(self) -> Any:
        """(K, K) the best rate of any feature, infinite for a group with itself."""
        near = self.rates().max(axis=2)
        near[np.arange(self.K), np.arange(self.K)] = np.inf
        return near

    def likelihoods(self) -> Any:
        """(n, K) of each item in each group, its own results left out of the group's, with its share."""
        counts, x = self.table()
        means, weights = self.centers()
        logs = np.zeros((self.n, self.K))
        for m in range(self.n):
            for k in range(self.K):
                own = self.block[m] == k
                size = len(self.members(k)) - own
                if own and size == 0:
                    logs[m, k] = math.log(0.5)
                    continue
                for f in range(len(self.gaps)):
                    weight = weights[k, f] - own * counts[m, f]
                    if counts[m, f] and weight > 0:
                        center = (weights[k, f] * means[k, f] - own * counts[m, f] * x[m, f]) / weight
                        logs[m, k] -= (x[m, f] - center) ** 2 / (2 * (1 / counts[m, f] + 1 / max(weight, 0.25)))
                logs[m, k] += math.log(max(size, 0.5))
        return logs

    def margins(self) -> Any:
        logs = self.likelihoods()
        gaps = logs[np.arange(self.n), self.block][:, None] - logs
        gaps[np.arange(self.n), self.block] = np.inf
        return gaps

    def collapsed(self) -> tuple[int, int] | None:
        means, weights = self.centers()
        worst: tuple[float, tuple[int, int] | None] = (c.COLLAPSED, None)
        for k in range(self.K):
            for other in range(self.K):
                if k != other:
                    error = np.sqrt(1 / np.maximum(weights[k], 1e-9) + 1 / np.maximum(weights[other], 1e-9))
                    kept = ((abs(means[k] - means[other]) + error) / list(self.gaps.values())).max() ** 2
                    if kept < worst[0]:
                        worst = (float(kept), (k, other))
        return worst[1]

    # The course.

    def run(self) -> PlainRun:
        frozen, undoings, searching = None, 0, True
        while undoings < c.UNDOINGS and searching:
            while searching and self.block.max() + 1 < self.K:
                searching = self.find()
            if not searching:
                break
            self.better_features()
            for _ in range(c.FAILURES):
                if not self.explore():
                    break
                self.better_features()
                frozen = self.freeze()
                if self.prove(frozen):
                    return self
            self.join()
            undoings += 1
        return self.sweep()

    def find(self) -> bool:
        lead = self.race.run(self.block)
        if lead is None:
            return False
        feature, first, second, gap = lead
        label, blocks = int(self.block[first]), int(self.block.max()) + 1
        members = np.flatnonzero(self.block == label)
        barred = {f for of, f in self.race.barred if of == label}
        feature, gap = self.better.lead(feature, (first, second), gap, members.size, barred)
        ends = (self.results.mean(first, feature), self.results.mean(second, feature))
        made = cut(self.results, members, feature, gap, ends, self.K - blocks + 1)
        if made is None:
            self.race.barred.add((label, feature))
            return True
        labels, step = made
        for new, part in enumerate(sorted(set(labels.tolist()))[1:]):
            self.block[members[labels == part]] = blocks + new
        self.gaps[feature] = max(self.gaps.get(feature, 0.0), step)
        return True

    def fill(self) -> None:
        for _ in range(3):
            asks: list[Ask] = []
            for f in self.gaps:
                for k in range(self.K):
                    order = sorted(self.members(k), key=lambda m: (self.results.count(m, f), m))
                    lack = 4 - sum(self.results.count(m, f) for m in order)
                    asks += [(order[i % len(order)], f, 1) for i in range(lack)]
            if not asks:
                return
            self.results.ask(asks)

    def better_features(self) -> None:
        self.fill()
        sizes = [len(self.members(k)) for k in range(self.K)]
        while self.collapsed() is None:
            near = self.nearest()
            k = int(np.argmax(8 / near.min(axis=1) * sizes))
            other = int(near[k].argmin())
            users = sizes[k] + (sizes[other] if near[other].argmin() == k else 0)
            s, pay = self.better.worth(float(near[k, other]), users)
            if pay < 1:
                return
            feature = int(self.rng.integers(self.d))
            if feature in self.gaps:
                self.better.fails(s)
                continue
            gap = self.better.compare(self.members(k), self.members(other), feature, s)
            if gap is not None:
                self.gaps[feature] = min(gap, 1.5 * s)
                self.fill()

    def explore(self) -> bool:
        self.fill()
        nearest = self.nearest().min(axis=1)
        left = c.TOO_DEAR * (sum(max(1.0, 8 / nearest[k]) for k in self.block) + 10)
        for _ in range(2000):
            if left < 0 or self.collapsed():
                return False
            logs, sizes = self.likelihoods(), [len(self.members(k)) for k in range(self.K)]
            for item, best in enumerate(logs.argmax(axis=1)):
                if best != self.block[item] and sizes[self.block[item]] > 1:
                    sizes[self.block[item]] -= 1
                    sizes[best] += 1
                    self.block[item] = best
            gaps = self.margins()
            if np.exp(-np.maximum(gaps, 0)).sum() <= c.DOUBTS:
                return True
            asks = self.doubtful(gaps)
            left -= sum(count for _, _, count in asks)
            self.results.ask(asks)
        return False

    def doubtful(self, gaps: Any) -> list[Ask]:
        features, least, rates = list(self.gaps), gaps.min(axis=1), self.rates()
        counts, _ = self.table()
        weights = self.centers()[1]
        up_to = min(max(1.0, least.min() + 2, -math.log(0.05 / self.n)), 12.0)
        asks: list[Ask] = []
        for item in range(self.n):
            if least[item] < up_to:
                k, other = self.block[item], int(gaps[item].argmin())
                f = int(rates[k, other].argmax())
                pulls = min(4000, max(1, int(2 / max(rates[k, other, f], 1e-3))))
                asks.append((item, features[f], pulls))
                if weights[other, f] < 3 * (counts[item, f] + pulls):
                    asks.append((min(self.members(other), key=lambda m: (counts[m, f], m)), features[f], pulls))
        return asks

    def freeze(self) -> Frozen:
        least = self.margins().min(axis=1)
        cores = []
        for k in range(self.K):
            surest = sorted(self.members(k), key=lambda m: (-least[m], m))
            cores.append(self.members(k) if len(surest) <= c.WHOLE_CORE else surest[: c.CORE])
        means, weights = self.centers()
        bets = {f: (means[:, i].tolist(), weights[:, i].tolist()) for i, f in enumerate(self.gaps)}
        self.freezes.append((self.t, self.block.tolist(), cores, list(self.gaps)))
        level = -math.log(self.delta * 0.8 * 0.2 ** (len(self.freezes) - 1))
        return Frozen(self.block.tolist(), cores, bets, level)

    def prove(self, frozen: Frozen, leave: bool = True) -> bool:
        near = self.nearest().min(axis=1)
        expected = 10 + sum(max(1.0, c.PULLS_A_NAT * (frozen.level + 2) / near[k]) for k in frozen.block)
        cost = 0
        while not frozen.proven:
            asks = round_of(frozen, self.centers()[0], self.rates(), list(self.gaps))
            if sum(count for _, _, count in asks) > c.TOO_DEAR * expected:
                break
            self.rounds += 1
            frozen.take(asks, self.results.ask(asks, self.rounds))
            cost += sum(count for _, _, count in asks)
            if frozen.proven or cost > c.TOO_DEAR * expected:
                break
            if leave and (self.margins().min() < -1 or self.collapsed()):
                break
        return frozen.proven

    def join(self) -> None:
        near = self.nearest()
        pair = self.collapsed() or divmod(int(near.argmin()), self.K)
        k, other = sorted(pair)
        self.block[self.block == other] = k
        self.block[self.block > other] -= 1
        self.race.barred.clear()
        means, _ = self.centers()
        for i, f in enumerate(list(self.gaps)):
            if np.ptp(means[: self.K - 1, i]) ** 2 < c.COLLAPSED * self.gaps[f] ** 2:
                del self.gaps[f]
                self.race.barred |= {(label, f) for label in range(self.K)}

    def sweep(self) -> PlainRun:
        pulls = 1
        while True:
            for f in range(self.d):
                self.results.ask([(item, f, pulls) for item in range(self.n)])
            pulls *= 2
            x = np.array([[self.results.mean(m, f) for f in range(self.d)] for m in range(self.n)])
            leads = [0]
            while len(leads) < self.K:
                leads.append(int(np.argmax([min(((row - x[lead]) ** 2).sum() for lead in leads) for row in x])))
            block = np.array([int(np.argmin([((row - x[lead]) ** 2).sum() for lead in leads])) for row in x])
            block[leads] = range(self.K)
            if len(set(block.tolist())) < self.K:
                continue
            self.block, self.gaps = block, {}
            for k in range(self.K):
                for other in range(k):
                    apart = abs(x[block == k].mean(axis=0) - x[block == other].mean(axis=0))
                    f = int(apart.argmax())
                    self.gaps[f] = max(self.gaps.get(f, 0.0), float(apart[f]), 1e-6)
            self.fill()
            if self.prove(self.freeze(), leave=False):
                return self
