"""CROC where features are measured apart: its side of the contract (docs/FEATURES.md).

The rule (`coterie.methods.features.rule`) is one course of asks that goes on when all that it waits for is answered.
With several workers further asks are handed out meanwhile: rounds on the same knowledge, or looks for later.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, deque
from typing import Any

import numpy as np

from coterie.methods.capabilities import Cells
from coterie.methods.contract import Decision, MethodRun, PanelPull
from coterie.methods.features.epoch import Epoch, Round, compose_asks, freeze_of, share_of
from coterie.methods.features.evidence import CORE, GROUP, PAIR
from coterie.methods.features.families import (
    bets_for,
    evidence_for,
    points_of,
    round_bets_for,
    scale_for,
)
from coterie.methods.features.measured import FeatureResults
from coterie.methods.features.rule import Rule
from coterie.methods.features.search import CONSTANTS, Ask, Asking, Constants, Prices
from coterie.methods.reports import Evidence, Standing, Weakest
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings


class FeatureRun(MethodRun):
    """Asks for an item and a panel of features, groups the items, and proves the groups."""

    def __init__(self, settings: Settings, constants: Constants = CONSTANTS, seed: int | None = None) -> None:
        """`seed`: of the rule's choices, for simulations; by default it follows from the settings."""
        assert settings.features is not None
        self.settings, self.constants = settings, constants
        self.features = features = settings.features
        n_items, n_groups = settings.n_arms, settings.n_clusters
        assert n_groups is not None
        self.log_inverse_delta = -math.log(settings.delta)
        if seed is None:
            stated = [n_items, n_groups, settings.delta, settings.noise.to_json(), features.to_json()]
            seed = int.from_bytes(hashlib.sha256(json.dumps(stated).encode()).digest()[:4], "big")
        self.prices = Prices(features, settings.costs)
        self._measured = FeatureResults(n_items, scale_for(settings.noise))
        self._points = points_of(settings.noise)
        rng = np.random.default_rng(seed)
        self.rule = Rule(n_items, n_groups, self._measured, features, self.prices, rng, constants)
        self._course: Asking | None = None
        self._pulls: IntArray = np.zeros(n_items, dtype=np.int64)
        self._queue: deque[tuple[int, int, int, int]] = deque()  # item, panel, count, round
        self._awaited: Counter[tuple[int, int]] = Counter()  # asks outside rounds that the course waits for
        self._until = 0  # the round that it waits for
        self._rounds: dict[int, Round] = {}
        self._n_rounds = self._freezes = 0
        self._spare: list[tuple[int, list[int], Counter[tuple[int, int]]]] = []
        self.epoch: Epoch | None = None
        self._done = False
        self._made: list[Decision] = []

    # What everybody may ask a run.

    @property
    def done(self) -> bool:
        return self._done

    @property
    def pulls(self) -> IntArray:
        return self._pulls.copy()

    @property
    def found_features(self) -> tuple[int, ...]:
        return tuple(self.rule.groups.features)

    def cells(self) -> Cells:
        return self._measured.cells()

    @property
    def labels(self) -> IntArray | None:
        """The groups proven, or estimated."""
        if self._done and self.epoch is not None:
            return self.epoch.labels.copy()
        known = self.rule.n_blocks == self.rule.groups.n_groups
        return self.rule.groups.block.copy() if known else None

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        labels = self.labels
        if labels is None:
            return None
        cells = self.cells()
        shape = (self.rule.groups.n_groups, self.features.dim)
        counts, totals = np.zeros(shape), np.zeros(shape)
        where = (labels[cells.items], cells.features)
        np.add.at(counts, where, cells.counts)
        np.add.at(totals, where, cells.counts * cells.means)
        with np.errstate(invalid="ignore"):
            return labels, totals / counts

    def evidence(self) -> Evidence:
        return evidence_of(self)

    def standing(self) -> Standing:
        return standing_of(self)

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        return certificate_of(self, decisions)

    # Asks.

    def ask(self) -> PanelPull | None:
        if not self._queue:
            self._plan()
            if self._done:
                return None
        item, panel, count, of_round = self._queue[0]
        if count == 1:
            self._queue.popleft()
        else:
            self._queue[0] = (item, panel, count - 1, of_round)
        return PanelPull(item, of_round, panel)

    def take_planned(self) -> list[tuple[int, int, int, int]]:
        """All asks that are decided, (item, panel, count, round), handed out at once: for simulations."""
        if not self._queue:
            self._plan()
        planned = list(self._queue)
        self._queue.clear()
        return planned

    @property
    def _waits(self) -> bool:
        """Whether the course waits for open asks."""
        return self._in_rounds or bool(self._awaited)

    @property
    def _in_rounds(self) -> bool:
        """Whether it waits for a round; later ones may be under way too."""
        epoch = self.epoch
        return epoch is not None and any(waiting.number <= self._until for waiting in epoch.waiting)

    def _plan(self) -> None:
        """Put at least one ask on the queue, unless the groups are proven."""
        while not self._queue and not self._done:
            if self._waits:
                self._go_ahead()
                return
            if self._course is None:
                self._course = self.rule.course(self._freeze, self._begin_round, self.epoch)
            asks = next(self._course)
            self._await(asks)

    def _await(self, asks: list[Ask]) -> None:
        for item, panel, count in asks:
            self._queue.append((item, panel, count, 0))
            self._awaited[item, panel] += count

    def _go_ahead(self) -> None:
        """Something to ask for while the course waits."""
        groups = self.rule.groups
        if self._in_rounds and self.epoch is not None:
            self._begin_round(compose_asks(groups, self.epoch), wait=False)
            return
        if self.rule.n_blocks < groups.n_groups:
            panel, items = self.rule.search.fresh(groups.block)
            asks = [(item, panel, 1) for item in items]
            self._spare.append((panel, items, Counter({(item, panel): 1 for item in items})))
        else:
            asks = groups.least_known()
        self._queue.extend((item, panel, count, 0) for item, panel, count in asks)

    # Decisions.

    def _freeze(self) -> Epoch:
        bets = bets_for(self.settings.noise, self.rule.groups)
        decision = freeze_of(self.rule.groups, bets, self._freezes, self.t, self.log_inverse_delta)
        self._made.append(decision)
        return self._open_epoch(decision)

    def _open_epoch(self, decision: Decision) -> Epoch:
        self._queue = deque(entry for entry in self._queue if not entry[3])  # of an epoch that was given up
        self._rounds.clear()
        self.epoch = Epoch(decision, self.features, evidence_for(self.settings.noise))
        self._freezes = self.epoch.number + 1
        return self.epoch

    def _begin_round(self, asks: list[Ask], wait: bool = True) -> None:
        assert self.epoch is not None
        decision: Decision = {
            "event": "round",
            "round": self._n_rounds + 1,
            "epoch": self.epoch.number,
            "asks": [list(ask) for ask in asks],
        }
        bets = round_bets_for(self.settings.noise, self.rule.groups)
        self._made.append(decision | ({"bets": bets} if bets else {}))
        self._open_round(self._made[-1])
        if wait:
            self._until = self._n_rounds

    def _open_round(self, decision: Decision) -> None:
        begun = Round(decision, self.features)
        self._n_rounds = begun.number
        self._rounds[begun.number] = begun
        assert self.epoch is not None
        self.epoch.add(begun)
        self._queue.extend((*ask, begun.number) for ask in begun.asks)

    def new_decisions(self) -> list[Decision]:
        made, self._made = self._made, []
        return made

    def apply_decision(self, decision: Decision) -> None:
        if decision["event"] == "freeze":
            self.rule.resume(self._open_epoch(decision))
        elif decision["event"] == "round" and self.epoch is not None:
            self._open_round(decision)

    # Results.

    def count_panel(self, arm: int, panel: int, x: FloatArray, of_round: int, asked: bool) -> None:
        members = self.features.features_of(panel)
        self.count_many(arm, panel, np.asarray(x, dtype=np.float64)[None, : len(members)], of_round, asked)

    def count_many(self, arm: int, panel: int, x: FloatArray, of_round: int, asked: bool = True) -> None:
        """(n, features of the panel) results of one stream at once."""
        self._pulls[arm] += len(x)
        self._measured.add(arm, self.features.features_of(panel), x)
        if not asked:
            return
        if not of_round:
            self._answer(arm, panel, len(x))
        elif of_round in self._rounds:
            self._rounds[of_round].take(arm, panel, self._points(x, self.features.features_of(panel)))
            if self.epoch is not None and self.epoch.use_complete():
                self._done = self._done or self.epoch.proven

    def _answer(self, arm: int, panel: int, count: int) -> None:
        """So many asks outside rounds are answered, or given up."""
        left = self._awaited.get((arm, panel), 0)
        if left > count:
            self._awaited[arm, panel] = left - count
        elif left:
            del self._awaited[arm, panel]
        elif self._spare:
            for place, (_, items, open_asks) in enumerate(self._spare):
                if (arm, panel) in open_asks:
                    del open_asks[arm, panel]
                    if not open_asks:
                        self.rule.search.ready.append((panel, items))
                        del self._spare[place]
                    return

    def give_up_panel(self, arm: int, panel: int, of_round: int) -> None:
        if not of_round:
            self._answer(arm, panel, 1)
        elif of_round in self._rounds:
            self._queue.append((arm, panel, 1, of_round))

    def open_panel(self, arm: int, panel: int, of_round: int) -> None:
        for place, (item, of_panel, count, number) in enumerate(self._queue):
            if (item, of_panel, number) == (arm, panel, of_round):
                if count > 1:
                    self._queue[place] = (item, of_panel, count - 1, number)
                else:
                    del self._queue[place]
                return

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        raise TypeError("features are measured apart: use count_panel")


# The certificate of a run that measures features apart: what each test of the last candidate reached, and when.


def certificate_of(run: FeatureRun, decisions: list[Decision]) -> dict[str, Any] | None:
    """The proof as plain data, in the format of other proofs of K groups; None before there is one."""
    epoch, settings = run.epoch, run.settings
    if not run.done or epoch is None:
        return None
    tests, n_arms, n_clusters = epoch.tests, settings.n_arms, int(settings.n_clusters or 0)
    labels = epoch.labels.tolist()

    def rows(kind: int) -> list[list[Any]]:
        chosen = tests.kind == kind
        others = tests.other if kind == PAIR else tests.against
        columns = tests.arm[chosen], others[chosen], epoch.evidence[chosen], epoch.met_at[chosen]
        return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    fields = ("frozen_at", "share", "level", "labels", "cores")
    return {
        "format": "coterie-certificate-2",
        "n_arms": n_arms,
        "n_clusters": n_clusters,
        "dim": run.features.dim,
        "features": run.features.to_json(),
        "delta": math.exp(-run.log_inverse_delta),
        "log_inverse_delta": run.log_inverse_delta,
        "alpha": 0.0,
        "equal_pairs": (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2,
        "pair_level": None,
        "prefix_room": None,
        "t": run.t,
        "epochs": [
            {"number": made["epoch"]} | {name: made[name] for name in fields}
            for made in decisions
            if made["event"] == "freeze"
        ],
        "labels": labels,
        "by": "epoch",
        "representatives": [core[0] for core in epoch.cores],
        "epoch": {
            "number": epoch.number,
            "rounds": list(epoch.rounds),
            "group_tests": rows(GROUP),
            "core_tests": rows(CORE),
            "pair_tests": rows(PAIR),
            "by_pairs": [],
        },
    }


# How far a run is where features are measured apart: the evidence that its stop waits for, and what is proven.


def evidence_of(run: FeatureRun) -> Evidence:
    """That of the unmet test which lacks most; of the first level before a freeze."""
    epoch = run.epoch
    if epoch is None:
        return Evidence(0.0, run.log_inverse_delta - float(np.log(share_of(0))), None)
    unmet = np.flatnonzero(epoch.met_at == 0)
    if not unmet.size:
        lowest = float((epoch.evidence - epoch.levels).min(initial=0.0))
        return Evidence(epoch.level + max(lowest, 0.0), epoch.level, None)
    worst = int(unmet[np.argmax((epoch.levels - epoch.evidence)[unmet])])
    value, level = max(float(epoch.evidence[worst]), 0.0), float(epoch.levels[worst])
    tests = epoch.tests
    other = int(tests.other[worst])
    weakest = Weakest(int(tests.arm[worst]), int(tests.against[worst]), value, level, other if other >= 0 else None)
    return Evidence(value, level, weakest)


def standing_of(run: FeatureRun) -> Standing:
    """Differences of an item and another group; each is proven by all of its tests."""
    n_items, n_groups = run.settings.n_arms, run.rule.groups.n_groups
    needed, epoch = n_items * (n_groups - 1), run.epoch
    if run.done:
        return Standing(needed, needed, n_items, 0.0, 1.0)
    if epoch is None:
        return Standing(0, needed, 0)
    unmet = np.flatnonzero(epoch.met_at == 0)
    shares = np.ones((n_items, n_groups))
    reached = np.clip((epoch.evidence / epoch.levels)[unmet], 0.0, 1.0 - 1e-9)
    tests = epoch.tests
    np.minimum.at(shares, (tests.arm[unmet], tests.against[unmet]), reached)
    pairs = tests.kind[unmet] == PAIR
    np.minimum.at(shares, (tests.other[unmet[pairs]], tests.own[unmet[pairs]]), reached[pairs])
    met = shares >= 1.0
    spent = run.t - int(epoch.frozen["frozen_at"])
    worked = float(shares.min(axis=1).mean())
    return Standing(int(met.sum()) - n_items, needed, int(met.all(axis=1).sum()), None, worked, spent)
