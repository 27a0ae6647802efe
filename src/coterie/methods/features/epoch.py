"""A frozen candidate where features are measured apart: its freeze, its tests, its rounds (docs/FEATURES.md)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from coterie.methods.features.evidence import (
    FIRST_SHARE,
    NEXT_SHARE,
    PAIR,
    Evidence,
    FrozenTests,
    PanelRows,
)
from coterie.methods.features.grouping import Groups
from coterie.methods.features.search import Ask
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.features import Features

MakeEvidence: TypeAlias = Callable[[FrozenTests, IntArray, IntArray, int], Evidence]
"""(tests, labels, core of each item or −1, K) → what the tests gather."""


class Round:
    """The asks of a round, fixed before any of its results, and the results so far."""

    def __init__(self, decision: Mapping[str, Any], features: Features) -> None:
        self.number, self.epoch = int(decision["round"]), int(decision["epoch"])
        self.asks: list[Ask] = [(arm, panel, count) for arm, panel, count in decision["asks"]]
        self.bets = {bet["feature"]: bet for bet in decision.get("bets", ())}
        self._features = features
        self._left: dict[tuple[int, int], int] = {}
        for arm, panel, count in self.asks:
            self._left[arm, panel] = self._left.get((arm, panel), 0) + count
        self._in: dict[int, tuple[list[int], list[FloatArray]]] = {}
        self._open = sum(self._left.values())

    def take(self, arm: int, panel: int, x: FloatArray) -> None:
        """(n, features of the panel) results; those beyond what was asked for do not count."""
        rows = min(len(x), self._left.get((arm, panel), 0))
        if not rows:
            return
        self._left[arm, panel] -= rows
        self._open -= rows
        arms, values = self._in.setdefault(panel, ([], []))
        arms += [arm] * rows
        values.append(x[:rows])

    @property
    def complete(self) -> bool:
        """Whether every ask of it is answered."""
        return self._open == 0

    def rows(self) -> list[PanelRows]:
        """The results, panel by panel."""
        return [
            PanelRows(self._features.features_of(panel), np.array(arms), np.concatenate(values))
            for panel, (arms, values) in sorted(self._in.items())
        ]


class Epoch:
    """The tests of a freeze, what each has, and the round at which it was met.

    `frozen` is the decision, with `epoch`, `level`, `labels`, `cores` and `features`, what was bet on each.
    """

    def __init__(self, frozen: dict[str, Any], features: Features, evidence: MakeEvidence) -> None:
        self.frozen, self.number, self.level = frozen, int(frozen["epoch"]), float(frozen["level"])
        self.labels: IntArray = np.array(frozen["labels"], dtype=np.int64)
        self.cores: list[list[int]] = [list(core) for core in frozen["cores"]]
        self._features = features
        core_of: IntArray = np.full(self.labels.size, -1)
        for k, core in enumerate(self.cores):
            core_of[core] = k
        self.tests = FrozenTests(self.labels, self.cores)
        self._gathered = evidence(self.tests, self.labels, core_of, len(self.cores))
        for bet in frozen["features"]:
            self._gathered.join(bet)
        self.levels: FloatArray = np.where(self.tests.whole, 1.0, 0.5) * self.level
        self.evidence: FloatArray = np.zeros(len(self.tests))
        self.met_at: IntArray = np.zeros(len(self.tests), dtype=np.int64)  # the round; 0: not met
        self.rounds: list[int] = []  # used, in their order
        self.waiting: deque[Round] = deque()

    def add(self, new: Round) -> None:
        """A round of the epoch, the next one."""
        self.waiting.append(new)

    def use_complete(self) -> bool:
        """Use the rounds that are complete, in their order; whether there was one."""
        used = False
        while self.waiting and self.waiting[0].complete:
            used = True
            self._use(self.waiting.popleft())
        return used

    def _use(self, used: Round) -> None:
        self.rounds.append(used.number)
        unmet = np.flatnonzero(self.met_at == 0)
        if not unmet.size:
            return
        self._gathered.take(used.rows(), used.bets, unmet)
        value = self._gathered.log_e(unmet)
        self.evidence[unmet] = value
        self.met_at[unmet[value >= self.levels[unmet]]] = used.number

    @property
    def proven(self) -> bool:
        """Whether every test is met."""
        return bool((self.met_at > 0).all())

    def lacks(self) -> FloatArray:
        """(tests) nats that each lacks of its level; 0 for what is met."""
        return np.where(self.met_at > 0, 0.0, np.maximum(self.levels - self.evidence, 1e-6))


def share_of(number: int) -> float:
    """π_j."""
    return FIRST_SHARE * NEXT_SHARE**number


def freeze_of(groups: Groups, bets: list[dict[str, Any]], number: int, t: int, log_inverse_delta: float) -> Any:
    """The candidate: labels, cores, level, and what is bet on each feature."""
    constants = groups.constants
    logs, _ = groups.margins()
    least = groups.gap_of(logs).min(axis=1)
    cores = []
    for k in range(groups.n_groups):
        members = np.flatnonzero(groups.block == k)
        if members.size > constants.large_group:
            members = members[np.argsort(-least[members], kind="stable")[: constants.core]]
        cores.append([int(item) for item in members])
    share = share_of(number)
    return {
        "event": "freeze",
        "epoch": number,
        "frozen_at": t,
        "share": share,
        "level": log_inverse_delta - math.log(share),
        "labels": groups.block.tolist(),
        "cores": cores,
        "features": bets,
    }


def compose_asks(groups: Groups, epoch: Epoch) -> list[Ask]:
    """A round: each item on the feature with the most to gain over its unmet tests, and cores beside them.

    Rounds under way are forecast to have brought some of what is lacking.
    """
    tests, lacks = epoch.tests, epoch.lacks() * 0.5 ** len(epoch.waiting)
    features, forecast = groups.features, groups.constants.forecast
    rates = groups.rates()  # by what is known by now; the bets stay as frozen
    centers = groups.centers().means
    square = np.maximum((centers[:, None] - centers[None]) ** 2, 1e-9)
    n_items, n_groups = epoch.labels.size, len(epoch.cores)
    counts: IntArray = np.zeros((n_items, len(features)), dtype=np.int64)
    unmet = lacks > 0.0
    for test in np.flatnonzero(unmet & (tests.kind == PAIR)):
        p, q = int(tests.arm[test]), int(tests.other[test])
        k, other = epoch.labels[p], epoch.labels[q]
        place = int(rates[k, other].argmax())
        pulls = max(1, round(float(lacks[test]) * forecast / float(square[k, other, place])))
        counts[[p, q], place] = np.maximum(counts[[p, q], place], pulls)
    lack = np.zeros((n_items, n_groups))
    chosen = unmet & (tests.kind != PAIR)
    np.maximum.at(lack, (tests.arm[chosen], tests.against[chosen]), lacks[chosen])
    demand = np.zeros((2, n_groups, len(features)))  # how many items ask for a pool, and for how much in all
    for k in range(n_groups):
        items = np.flatnonzero((epoch.labels == k) & (lack > 0.0).any(axis=1))
        if not items.size:
            continue
        need = lack[items]  # (n, K)
        growth = rates[k] / 2.0  # (K, F) for a result's cost
        gain = np.minimum(1.0, growth[None] / np.maximum(need, 0.3)[:, :, None]) + 1e-3 * growth
        best = np.where((need > 0.0)[:, :, None], gain, 0.0).sum(axis=1).argmax(axis=1)  # (n)
        good = (need > 0.0) & (0.25 * rates[k].max(axis=1) <= rates[k][:, best].T)
        want = np.where(good, need * forecast / square[k][:, best].T, 0.0).max(axis=1)
        want = np.where(good.any(axis=1), want, 1.0)
        count = np.maximum(1, np.rint(np.where(want < 3.0, want, want / 2.0))).astype(np.int64)
        counts[items, best] = np.maximum(counts[items, best], count)
        asked = (need > 0.0) & (0.05 * rates[k].max(axis=1) <= rates[k][:, best].T)
        for other in range(n_groups):
            np.add.at(demand[0, other], best[asked[:, other]], 1.0)
            np.add.at(demand[1, other], best[asked[:, other]], count[asked[:, other]])
    for k, place in zip(*np.nonzero(demand[0]), strict=True):
        users, total = demand[:, k, place]
        _top_up(counts[:, place], epoch.cores[int(k)], math.ceil(0.5 * total / math.sqrt(users)))
    return [
        (int(item), groups.prices.panel_for(features[place]), int(counts[item, place]))
        for item, place in zip(*np.nonzero(counts), strict=True)
    ]


def _top_up(counts: IntArray, core: Sequence[int], want: int) -> None:
    """Share out results among a core until it has as many as are wanted."""
    have = int(counts[core].sum())
    while have < want:
        item = core[int(counts[core].argmin())]
        more = max(1, (want - have) // len(core))
        counts[item] += more
        have += more
