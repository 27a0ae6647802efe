"""A run with a deadline: all that may be measured is fixed. Another method's run, which a frozen list may replace.

As long as the deadline may be enough for the whole proof, or the groups are still being found, the run inside decides.
Otherwise CROC's run is left, under a known noise: single statements are frozen and proven, the cheapest first
(docs/DEADLINE.md). Where the deadline ends, nothing is asked for any more: who asks sees to that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.methods.contract import (
    ASK,
    GIVE_UP,
    RESULT,
    STEP,
    Decision,
    Followed,
    HeldUp,
    MethodRun,
    PanelPull,
    Pull,
    Record,
)
from coterie.methods.croc.method import CrocMethodRun
from coterie.methods.croc.run import ALPHA, share_of_epoch
from coterie.methods.deadline.statements import Bet, Statements, composition, costs_of, memberships, share_in_reach
from coterie.methods.records import apply_steps, follow_steps
from coterie.methods.reports import Evidence
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings

CLEAR = 0.03
"""A list is begun when at most this share of the items is expected to be in a wrong group of the guess …"""

SHORT, WORTH_IT = 0.65, 0.55
"""… if CROC's own forecast of what it needs is at least this share of what is left (it leaves out what exploration will
still take), and what is left is expected to prove the place of at least this share of the items …"""

ITEMS_A_GROUP = 15
"""… of which there are so many on average, or more."""

SURE = 0.98
"""The statement about the item's own group is not listed if the group is so probable."""

RESERVED = 0.05
"""Of the deadline, kept to its end for the most doubtful items, one by one."""

FLOOR = 0.01
"""Of the weights of a bet, spread over all groups."""

MOVES = 10
"""Times that all items move to their likeliest group, at most, until none does."""


class DeadlineRun(MethodRun):
    """A run of any method up to a deadline."""

    inner: MethodRun

    def __init__(self, inner: MethodRun, settings: Settings) -> None:
        assert settings.deadline is not None
        self.inner, self._deadline = inner, settings.deadline
        self._prices = unit_prices(settings)
        self._open = np.zeros(settings.n_arms)
        enough = settings.n_arms >= ITEMS_A_GROUP * (settings.n_clusters or settings.n_arms)
        self._able = enough and isinstance(inner, CrocMethodRun) and settings.noise.kind == "known"
        self._log_inverse_delta = -math.log(settings.delta)
        self._n_groups = settings.n_clusters or 0
        self._sums = np.zeros((settings.n_arms, settings.dim)) if self._able else np.zeros((0, 0))
        self._origin: FloatArray | None = None
        self._list: Statements | None = None
        self._epochs = self._rounds = 0  # of the run inside, then of the list
        self._looked_at = -1
        self._guessed = -1, np.zeros(0, dtype=np.int64)  # with a list: t, and the labels then
        self._hidden: list[Decision] = []  # of the run inside, after the list: nobody follows them
        self._queue: deque[tuple[int, int]] = deque()  # item and round
        self._new: list[Decision] = []

    @property
    def done(self) -> bool:
        return self.inner.done

    @property
    def proven(self) -> bool:
        return self.inner.proven

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        """With a list the run inside waits for a round of its own: then items move to their likeliest group."""
        if self._list is None or self.inner.done or self._origin is None:
            return self.inner.guess
        if self._guessed[0] != self.inner.t:
            labels = self._guessed[1]
            for _ in range(MOVES):
                moved = memberships(self._sums, self.inner.pulls, labels, self._n_groups)[0].argmax(axis=1)
                if np.unique(moved).size < self._n_groups or np.array_equal(moved, labels):
                    break
                labels = moved
            self._guessed = self.inner.t, labels
        labels, dim = self._guessed[1], self._sums.shape[1]
        centers = memberships(self._sums, self.inner.pulls, labels, self._n_groups)[1]
        return labels, centers + self._origin[:dim] + self._origin[dim:]

    @property
    def statements(self) -> Statements | None:
        return self._list

    def evidence(self) -> Evidence:
        return self.inner.evidence()

    @property
    def _left(self) -> float:
        """What is left, if all open asks are answered."""
        return float(self._deadline - self._prices @ (self.inner.pulls + self._open))

    def ask(self) -> Pull | PanelPull | None:
        if self._able and self._list is None:
            self._look_for_list()
        if self._list is None or self.inner.done:
            inside = self.inner.ask()
            if inside is None or isinstance(inside, PanelPull):
                return inside
            pull = inside
        else:
            if not self._queue:
                self._compose(self._list)
            pull = Pull(*self._queue.popleft())
        self._open[pull.arm] += 1
        return pull

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._open[arm] -= asked
        value = self._take_in(arm, x)
        if self._list is not None and asked and of_round in self._list.open_rounds:
            self.inner.count(arm, x, 0, False)
            self._list.take(of_round, arm, value)
        else:
            self.inner.count(arm, x, of_round, asked)

    def _take_in(self, arm: int, x: FloatArray) -> FloatArray:
        """Add a result to the sums of the items, as a place from the first result."""
        if not self._able:
            return x
        if self._origin is None:
            self._origin = np.array(x)
        dim = self._sums.shape[1]
        value: FloatArray = (x[:dim] - self._origin[:dim]) + (x[dim:] - self._origin[dim:])
        self._sums[arm] += value
        return value

    def give_up(self, arm: int, of_round: int) -> None:
        self._open[arm] -= 1
        if self._list is not None and of_round in self._list.open_rounds:
            self._queue.appendleft((arm, of_round))
        else:
            self.inner.give_up(arm, of_round)

    def look(self) -> None:
        self.inner.look()

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        if self._list is None:
            return self.inner.held_up(asks)
        if self._queue:
            return None
        behind = list(self._list.open_rounds.values())[1:]
        results = sum(sum(later.pulls.values()) - later.left for later in behind)
        return HeldUp(results, [i for i, ask in enumerate(asks) if ask.round in self._list.open_rounds])

    # The list.

    def _look_for_list(self) -> None:
        """Freeze a list where the deadline is too short for CROC, and long enough to prove much of it."""
        t, n_arms = self.inner.t, self._open.size
        if t < n_arms or t < self._looked_at + max(1, n_arms // 10) or self.inner.done or self.inner.alarm is not None:
            return
        self._looked_at = t
        guess, standing = self.inner.guess, self.inner.standing()
        if guess is None or standing is None or standing.left is None or (self.inner.pulls == 0).any():
            return
        likely, centers, weights = memberships(self._sums, self.inner.pulls, guess[0], self._n_groups)
        short = standing.left * float(self._prices.mean()) > SHORT * self._left
        if not short or 1.0 - likely.max(axis=1).mean() > CLEAR or (weights <= 0.0).any():
            return
        own = np.where(likely.argmax(axis=1) == guess[0], likely.max(axis=1), 0.0)
        members = guess[0][:, None] == np.arange(self._n_groups)
        worth = np.where(members, (own + 1e-9 * self.inner.pulls)[:, None], -1.0)
        representatives = worth.argmax(axis=0).tolist()
        listed = np.ones((n_arms, self._n_groups), dtype=bool)
        sure = np.flatnonzero(likely.max(axis=1) >= SURE)
        listed[sure, likely.argmax(axis=1)[sure]] = False
        listed[representatives] = False
        self._begin(representatives, listed)
        assert self._list is not None
        costs = costs_of(self._list, likely, centers, weights)
        if share_in_reach(self._list, costs, self._prices, self._left) < WORTH_IT:
            self._list = None
            return
        groups = [np.flatnonzero(row).tolist() for row in listed]
        self._new.append(
            {"event": "statements", "epoch": self._epochs, "representatives": representatives, "listed": groups}
        )

    def _begin(self, representatives: Sequence[int], listed: np.ndarray) -> None:
        share = (1.0 - ALPHA) * share_of_epoch(self._epochs)
        self._list = Statements(representatives, listed, self._log_inverse_delta - math.log(share))
        assert self.inner.guess is not None
        self._guessed = -1, self.inner.guess[0]

    def _compose(self, of: Statements) -> None:
        """The next round: doubtful items, then those whose statements are cheapest; one item alone if nothing fits."""
        assert self.guess is not None
        labels = self.guess[0]
        likely, centers, weights = memberships(self._sums, self.inner.pulls, labels, self._n_groups)
        order = labels[of.representatives]
        doubts = (1.0 - likely.max(axis=1)) / self._prices
        doubts[of.representatives] = -1.0
        if np.unique(order).size < order.size:  # the guess has joined two groups: first that has to be cleared
            self._alone(doubts)
            return
        likely, centers, weights = likely[:, order], centers[order], weights[order]
        costs, left = costs_of(of, likely, centers, weights), self._left - RESERVED * self._deadline
        pulls = composition(of, doubts, costs, self._prices, left)
        if not pulls:
            self._alone(doubts)
            return
        items = sorted(pulls)
        rows = (1.0 - FLOOR) * likely[items] + FLOOR / order.size
        groups = of.group_of
        for i, item in enumerate(items):
            if item in groups:
                rows[i] = np.arange(order.size) == groups[item]
        self._rounds += 1
        bet = Bet(centers, 1.0 / weights, rows)
        listed = [[item, pulls[item]] for item in items]
        of.add_round(self._rounds, listed, bet)
        self._queue.extend((item, self._rounds) for item, count in listed for _ in range(count))
        self._new.append(
            {"event": "round", "round": self._rounds, "epoch": self._epochs, "pulls": listed, "bet": bet.to_json()}
        )

    def _alone(self, doubts: FloatArray) -> None:
        """An item for the guess, in no round: the most doubtful that can be paid for."""
        affordable = self._prices <= max(self._left, float(self._prices.min()))
        self._queue.append((int(np.argmax(np.where(affordable, doubts, -2.0))), 0))

    # Decisions, steps and records.

    def new_decisions(self) -> list[Decision]:
        made, own = self.inner.new_decisions(), self._new
        self._new = []
        if self._list is None:
            self._note(made)
            return [*made, *own]
        self._hidden += [decision for decision in made if decision["event"] != "alarm"]
        return [*(decision for decision in made if decision["event"] == "alarm"), *own]

    def _note(self, made: Sequence[Decision]) -> None:
        self._epochs += sum(decision["event"] == "freeze" for decision in made)
        self._rounds += sum(decision["event"] == "round" for decision in made)

    def apply_decision(self, decision: Decision) -> None:
        if decision["event"] == "statements":
            listed = np.zeros((self._open.size, self._n_groups), dtype=bool)
            for item, groups in enumerate(decision["listed"]):
                listed[item, groups] = True
            self._begin(decision["representatives"], listed)
        elif self._list is not None and decision["event"] == "round":
            self._rounds = int(decision["round"])
            self._list.add_round(self._rounds, decision["pulls"], Bet.of(decision["bet"]))
            self._queue.extend((int(item), self._rounds) for item, count in decision["pulls"] for _ in range(count))
        else:
            self.inner.apply_decision(decision)
            if self._list is None:
                self._note([decision])

    def take_step(self, step: Mapping[str, Any]) -> None:
        if step["step"] == "deadline":
            self._deadline = float(step["deadline"])
        else:
            self.inner.take_step(step)

    def apply_step(self, step: Mapping[str, Any]) -> None:
        self.take_step(step)

    def open_recorded(self, arm: int, of_round: int) -> None:
        self._open[arm] += 1
        if (arm, of_round) in self._queue:
            self._queue.remove((arm, of_round))

    def follow(self, record: Record) -> Followed:
        if self._able or (record.kinds == STEP).any():
            return follow_steps(self, record)
        return self.inner.follow(record)

    def apply(self, record: Record) -> None:
        """The run inside takes in at once what lies before the list, between steps; what comes after, one by one."""
        at = next((i for i, (_, made) in enumerate(record.decisions) if made["event"] == "statements"), None)
        end = record.kinds.size if at is None or self._list is not None else record.decisions[at][0]
        start, left = 0, list(record.decisions)
        if self._list is None:
            early, left = left[:at], [] if at is None else left[at:]
            steps = [int(place) for place in np.flatnonzero(record.kinds[:end] == STEP)]
            for stop in [*steps, end]:
                here = [entry for entry in early if start <= entry[0] <= stop]
                early = early[len(here) :]
                self._apply_inside(part_of(record, start, stop, here))
                if stop < end:
                    self.apply_step(record.steps[record.ask[stop]])
                start = stop + 1
            start = end
        else:
            start = 0
        apply_steps(self, record._replace(decisions=left), start)
        self._new = []

    def _apply_inside(self, record: Record) -> None:
        self.inner.apply(record)
        self._note([decision for _, decision in record.decisions])
        for kind, arm, asked, x in zip(record.kinds, record.arms, record.asked, record.white, strict=True):
            if kind == ASK:
                self._open[arm] += 1
            elif kind == GIVE_UP:
                self._open[arm] -= 1
            elif kind == RESULT:
                self._open[arm] -= asked
                self._take_in(int(arm), x)

    def memory(self) -> dict[str, Any] | None:
        return None  # the record is read again

    @property
    def memory_bytes(self) -> int:
        return 0

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        at = next((i for i, made in enumerate(decisions) if made["event"] == "statements"), len(decisions))
        own = decisions[:at]
        proof = self.inner.certificate([*own, *self._hidden])
        recorded = sum(decision["event"] == "freeze" for decision in own)
        if proof is None or (proof["by"] == "epoch" and proof["epoch"]["number"] >= recorded):
            return None
        return proof | {"epochs": proof["epochs"][:recorded]} if self._list is not None else proof


def unit_prices(settings: Settings) -> FloatArray:
    """(M) what a measurement of each item takes of the deadline."""
    return np.ones(settings.n_arms) if settings.costs is None else np.array(settings.costs)


def part_of(record: Record, start: int, stop: int, decisions: Sequence[tuple[int, Decision]]) -> Record:
    """Entries of a record as one of their own: asks before them are older than it."""
    part, asks = slice(start, stop), record.ask[start:stop]
    older = (asks >= 0) & (asks < start) & (record.kinds[part] != STEP)
    return Record(
        record.kinds[part], record.arms[part],
        np.where(older, record.rounds[np.maximum(asks, 0)], record.rounds[part]),
        np.where(asks >= start, asks - start, -1), record.asked[part], record.white[part],
        [(place - start, made) for place, made in decisions], record.choices, record.origin,
    )  # fmt: skip
