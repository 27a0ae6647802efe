"""A frozen candidate: its tests, their evidence, and the rounds (docs/FEATURES.md, section 2; docs/CROC.md, 4, 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from tests.oracles.features import constants as c
from tests.oracles.features.search import Ask


@dataclass
class Test:
    """An item against a pool of another group, with the level to reach; `kind`: group, core or pair."""

    kind: str
    item: int
    own: int
    other: int
    pool: list[int]
    level: float
    evidence: float = 0.0
    met: bool = False
    sums: dict[int, list[float]] = field(default_factory=dict)  # n and S of each feature


class Frozen:
    """A freeze: groups, cores, and the bets on each feature."""

    def __init__(
        self, block: list[int], cores: list[list[int]], bets: dict[int, tuple[list[float], list[float]]], level: float
    ) -> None:
        self.block, self.cores, self.bets, self.level = block, cores, bets, level
        self.tests: list[Test] = []
        k_of, groups = block, range(len(cores))
        in_core = {item for core in cores for item in core}
        for item, k in product(range(len(block)), groups):
            if k != k_of[item] and item not in in_core:
                pool = [m for m in range(len(block)) if k_of[m] == k]
                self.tests.append(Test("group", item, k_of[item], k, pool, level))
            if k != k_of[item]:
                whole = level if item in in_core else level / 2
                self.tests.append(Test("core", item, k_of[item], k, cores[k], whole))
        for k, other in product(groups, groups):
            if other < k and min(len(cores[k]), len(cores[other])) > 1:
                self.tests += [Test("pair", p, k, other, [q], level / 2) for p in cores[k] for q in cores[other]]

    @property
    def proven(self) -> bool:
        return all(test.met for test in self.tests)

    def take(self, asks: list[Ask], answers: list[list[float]]) -> None:
        """A round, complete."""
        for test in self.tests:
            if test.met:
                continue
            for feature in self.bets:
                told = [(item, x) for (item, f, _), x in zip(asks, answers, strict=True) if f == feature]
                own = [x for item, xs in told if item == test.item for x in xs]
                pool = [x for item, xs in told if item in test.pool for x in xs]
                if own and pool:
                    v = 1 / len(own) + 1 / len(pool)
                    so_far = test.sums.setdefault(feature, [0.0, 0.0])
                    so_far[0] += 1 / v
                    so_far[1] += (sum(own) / len(own) - sum(pool) / len(pool)) / v
            test.evidence = 0.0
            for feature, (n, s) in test.sums.items():
                centers, weights = self.bets[feature]
                theta = centers[test.own] - centers[test.other]
                tau = 1 / weights[test.own] + 1 / weights[test.other]
                test.evidence += -0.5 * math.log(1 + n * tau)
                test.evidence += ((theta + tau * s) ** 2 / (1 + n * tau) - theta**2) / (2 * tau)
            test.met = test.evidence >= test.level

    def lack(self, test: Test) -> float:
        return 0.0 if test.met else max(test.level - test.evidence, 1e-6)


def round_of(frozen: Frozen, means: Any, rates: Any, features: list[int]) -> list[Ask]:
    """Each item on the feature with the most to gain over its unmet tests, and cores beside them.

    `means`: of groups and features, as estimated by now; `rates`: (k, l, f) what a result is worth.
    """
    n, n_groups = len(frozen.block), len(frozen.cores)
    counts = np.zeros((n, len(features)), dtype=int)
    for test in frozen.tests:
        if test.kind == "pair" and not test.met:
            f = int(np.argmax(rates[test.own, test.other]))
            square = max((means[test.own, f] - means[test.other, f]) ** 2, 1e-9)
            pulls = max(1, round(frozen.lack(test) * c.PULLS_A_NAT / square))
            for item in (test.item, test.pool[0]):
                counts[item, f] = max(counts[item, f], pulls)
    lacks = np.zeros((n, n_groups))
    for test in frozen.tests:
        if test.kind != "pair":
            lacks[test.item, test.other] = max(lacks[test.item, test.other], frozen.lack(test))
    users, pulls_of_users = np.zeros((n_groups, len(features))), np.zeros((n_groups, len(features)))
    for item, k in enumerate(frozen.block):
        unmet = [other for other in range(n_groups) if lacks[item, other] > 0]
        if not unmet:
            continue
        gains = [
            sum(min(1.0, rates[k, o, f] / 2 / max(lacks[item, o], 0.3)) + 1e-3 * rates[k, o, f] / 2 for o in unmet)
            for f in range(len(features))
        ]
        f = int(np.argmax(gains))
        good = [o for o in unmet if rates[k, o, f] >= 0.25 * max(rates[k, o])]
        square = np.maximum((means[k] - means) ** 2, 1e-9)[:, f]
        want = max([lacks[item, o] * c.PULLS_A_NAT / square[o] for o in good], default=1.0)
        pulls = max(1, round(want if want < 3 else want / 2))
        counts[item, f] = max(counts[item, f], pulls)
        for o in unmet:
            if rates[k, o, f] >= 0.05 * max(rates[k, o]):
                users[o, f] += 1
                pulls_of_users[o, f] += pulls
    for k, f in product(range(n_groups), range(len(features))):
        if users[k, f]:
            _top_up(counts[:, f], frozen.cores[k], math.ceil(0.5 * pulls_of_users[k, f] / math.sqrt(users[k, f])))
    return [(m, features[f], int(counts[m, f])) for m, f in product(range(n), range(len(features))) if counts[m, f]]


def _top_up(counts: Any, core: list[int], want: int) -> None:
    while (have := sum(int(counts[item]) for item in core)) < want:
        item = min(core, key=lambda item: (counts[item], core.index(item)))
        counts[item] += max(1, (want - have) // len(core))
