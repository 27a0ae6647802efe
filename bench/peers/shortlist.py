"""A shortlist of partitions, struck off one by one: where few fit the settled pairs, nothing has to be frozen.

Not a peer but a try of our own, for problems with at most eight arms a group on average. All others, and what comes
before there is a shortlist, are CROC's.

**How it goes.** CROC measures (with 0.15·δ). Beside it, pairs of arms are settled by paired evidence from the start
(`bench.peers.stacks`). As soon as at most 200 partitions into exactly K groups put no settled pair into one group,
these are the *list*, once and for all, and CROC is left; if CROC has frozen a candidate before that, it goes on
alone. A pair that is settled later strikes off what has it in one group. And there are rounds: how often each arm is
measured is fixed before. With p(c) and the centers from all results that were in when the round was composed,

    E(c0) ← E(c0) · Σ_{c ≠ c0} p(c | not c0) · Π_{groups g of c0} f_c(contrasts of the round within g) / f_c0(the same),

for every c0 on the list. *Contrasts within g* are the round's results of the arms of g up to a common shift. f_c0 is
their density if all arms of g have one mean. f_c has the arms of g that c puts together, a *part*, around a center of
its own: N(its estimate, its variance) with centers of parts N(place, τ²·I) and the place flat, mixed over τ² from 4⁴
to 4⁻⁵ by how likely each is so far. c0 is struck off when E(c0) reaches 1/(0.85·δ). When one partition is left, it is
the answer; if the last ones go at once, it is the likeliest of the list.

**Proof that it is wrong with probability at most δ.** Let c be the true partition, into exactly K groups. A wrong
answer means that CROC stopped with a wrong one, or that c was not on the list, or that c was struck off.

*CROC and the list.* Let Ω be the event that no two equal arms are ever settled at level log(H/(0.03·δ)). CROC with
0.15·δ has the pairs of docs/CROC.md, section 3, at the same level; here they are read on a grid of counts of their
own, and the event of Lemma 1 is that *any* count reaches the level: counts of both grids belong to it. So one event Ω
serves both, and its failure with all of CROC's frozen tests has probability at most 0.15·δ (docs/CROC.md, section 6).
That CROC is left at some moment makes no wrong answer of CROC more likely. On Ω no settled pair is inside a group of
c: c is on the list, whenever it is made, and no settled pair strikes it off.

*Rounds.* Let 𝓕_{r−1} be all that there is when round r is composed, values of all asks made before included, in or
not (docs/CROC.md, section 4; round r+1 is composed after all asks of round r are out, and a round is used when it and
all before it are complete). List, composition, p, centers and variances are fixed by 𝓕_{r−1}. Given 𝓕_{r−1} the
results of the round are independent N(μ_m, I), and for a group g of c all arms have one mean μ_g, so the contrasts
within g have the density f_c whatever μ_g is, and those of different groups are independent: their joint density is
Π_g f_c. Each rival c' has a probability density for each g, a mixture of Gaussian densities, so Π_g is a density of
all contrasts together, and so is the mean over c'. Where a group has results of only one part of c', both densities
are those of contrasts with the same law, and the factor is 1. The mean of a ratio of a density to the true one is 1:
E(c) is a martingale that starts at 1 when the list is made, a stopping time. Ville: it ever reaches 1/(0.85·δ) with
probability at most 0.85·δ. No union over partitions, for only E(c) has to stay small. Together 0.15·δ + 0.85·δ = δ. ∎

Within a part the sum of its results is enough: contrasts inside a part of g have the same law under c0 and c'.
**Whether every run ends is seen, not proven.** Every arm is measured at least a twentieth of its share, so that p and
the centers come right, and then the E of the others grow.

**Where it measures.** For every c0 alive, but the likeliest partition, and every rival c: by how much a pull of arm m
adds to log E(c0) if c is true, ½‖u_m − ū_g‖² with c's centers u and their mean ū_g over c0's group by pulls; averaged
over c by p, and over c0 by E(c0)^−0.2. A round measures each arm once that has at least half of the largest, and of
the pair c0, c that weighs most an arm of every part. p(c) is that of docs/CROC.md, section 7, with centers N(place,
τ²·I) in the place of flat ones; without that a round says much less.

**What is missing for a certificate**: the log has the asks, results and their rounds, but neither the list nor what a
round's bets were made of; for `coterie.verify` both would be decisions of their own, re-checked by other code.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bench.peers.shortlist_kernels import expected_growth, log_posterior, round_logs
from bench.peers.stacks import Stacks, pair_level
from coterie.methods import Evidence, Method, MethodRun, Pull, register
from coterie.methods.croc import CrocMethodRun
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings

MOST = 200
"""Partitions on the list."""

PLACES = 20_000
"""Steps of the search for them after which there are too many."""

CROC_SHARE = 0.15
"""Of δ: CROC's, and of it the pairs' share is CROC's α = 0.2. The rest is for the list."""

ARMS_A_GROUP = 8
"""On average, beyond which there is hardly a list: a group of n arms can fall in two in 2^(n−1) − 1 ways."""

SCALES: FloatArray = np.exp2(np.arange(8.0, -11.0, -2.0))
"""τ²: the variance of centers of parts around their place, in each coordinate."""

RIVAL = 1e-4
"""Rivals with less of p than this share of the likeliest are left out of a round."""

ALPHA = 0.2
"""CROC's share of the pairs (docs/CROC.md, section 6)."""


def partitions_without(settled: NDArray[np.bool_], n_clusters: int, most: int = MOST) -> IntArray | None:
    """All partitions into exactly K groups without a settled pair in a group; None if there are more than `most`.

    None too if it takes more than `PLACES` steps to see.
    """
    n_arms = len(settled)
    order = np.argsort(-settled.sum(axis=1), kind="stable").tolist()  # who may go to few places goes first
    against = [{int(other) for other in np.flatnonzero(settled[arm])} for arm in order]
    found: list[list[int]] = []
    groups: list[list[int]] = []
    labels = [0] * n_arms
    steps = 0

    def place(i: int) -> bool:
        """Go on with the i-th arm; False: too many."""
        nonlocal steps
        steps += 1
        if steps > PLACES:
            return False
        if i == n_arms:
            found.append(labels.copy())
            return len(found) <= most
        arm = order[i]
        if len(groups) + n_arms - i > n_clusters:  # otherwise it has to begin a group
            for k, group in enumerate(groups):
                if against[i].isdisjoint(group):
                    group.append(arm)
                    labels[arm] = k
                    if not place(i + 1):
                        return False
                    group.pop()
        if len(groups) < n_clusters:
            groups.append([arm])
            labels[arm] = len(groups) - 1
            if not place(i + 1):
                return False
            groups.pop()
        return True

    return np.array(found, dtype=np.int64).reshape(-1, n_arms) if place(0) else None


def blocks_of(listed: IntArray) -> IntArray:
    """Blocks of arms, numbered: two arms are in one if a chain of arms, neighbours in one listed group, joins them."""
    n_arms = listed.shape[1]
    together = (listed[:, :, None] == listed[:, None, :]).any(axis=0)
    blocks = np.full(n_arms, -1, dtype=np.int64)
    for start in range(n_arms):
        if blocks[start] < 0:
            number, new = blocks.max() + 1, [start]
            while new:
                arm = new.pop()
                if blocks[arm] < 0:
                    blocks[arm] = number
                    new += np.flatnonzero(together[arm] & (blocks < 0)).tolist()
    return blocks


@dataclass
class Round:
    """A round: what it takes, and what its bets are made of, fixed when it was composed."""

    wanted: IntArray
    chance: FloatArray
    pulls: FloatArray
    sums: FloatArray
    taken: FloatArray = field(init=False)
    total: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.taken, self.total = np.zeros(self.wanted.size), np.zeros_like(self.sums)

    @property
    def complete(self) -> bool:
        """Whether all of its results are in."""
        return bool((self.taken >= self.wanted).all())


class Elimination:
    """Partitions that are struck off by rounds. `pulls` and `sums` of the arms are the caller's, and it keeps them."""

    def __init__(self, listed: IntArray, level: float, pulls: FloatArray, sums: FloatArray) -> None:
        self.listed, self.level = listed, level
        self.alive = np.ones(len(listed), dtype=np.int64)
        self.log_e = np.zeros(len(listed))
        self.rounds: dict[int, Round] = {}  # those that are not used yet, by number
        self._pulls, self._sums = pulls, sums
        self._n_clusters = int(listed[0].max()) + 1
        self._possible = np.ones(len(listed), dtype=bool)  # no settled pair is in one group
        self._blocks = blocks_of(listed)
        self._composed = self._used = 0  # rounds

    @property
    def left(self) -> IntArray:
        """The partitions that are not struck off."""
        return np.flatnonzero(self.alive)

    def chances(self) -> FloatArray:
        """p of the listed partitions, by all results so far: 0 where a settled pair is in one group.

        Those that rounds have struck off stay in: if one was the true one, the others are still judged by it.
        """
        logs = log_posterior(self.listed, self._n_clusters, self._blocks, self._pulls, self._sums, SCALES)
        found = np.where(self._possible, np.exp(logs - logs[self._possible].max()), 0.0)
        return np.asarray(found / found.sum())

    def compose(self, committed: FloatArray) -> tuple[int, IntArray]:
        """The number of the next round, and its arms. `committed`: pulls of each arm, those under way included."""
        chance = self.chances()
        likeliest = int(chance.argmax())
        urgency = np.where(self.alive > 0, np.exp(-0.2 * (self.log_e - self.log_e[self.left].min())), 0.0)
        urgency[likeliest] = 0.0
        growth = np.zeros(committed.size)
        null, rival = expected_growth(self.listed, urgency, chance, self._pulls, self._sums, SCALES, growth)
        wanted = (growth >= 0.5 * growth.max()).astype(np.int64)
        group = self.listed[null] == self.listed[null, int(growth.argmax())]
        for part in np.unique(self.listed[rival, group]):
            arms = np.flatnonzero(group & (self.listed[rival] == part))
            if not wanted[arms].any():
                wanted[arms[np.lexsort((committed[arms], -growth[arms]))[0]]] = 1
        wanted[committed < committed.sum() / (20.0 * committed.size)] = 1
        chance[chance < RIVAL * chance.max()] = 0.0
        self.rounds[self._composed] = Round(wanted, chance, self._pulls.copy(), self._sums.copy())
        self._composed += 1
        return self._composed - 1, np.flatnonzero(wanted)

    def take(self, number: int, arm: int, x: FloatArray) -> None:
        """A result of a round."""
        now = self.rounds[number]
        now.taken[arm] += 1
        now.total[arm] += x
        self._use_complete()

    def settle(self, arm: int, other: int) -> None:
        """Strike off what has these two in one group: it is wrong, or Ω has failed."""
        possible = self._possible & (self.listed[:, arm] != self.listed[:, other])
        if possible.any():
            self._possible, self._blocks = possible, blocks_of(self.listed[possible])
        self._strike_off(np.flatnonzero(~possible))

    def _strike_off(self, gone: IntArray) -> None:
        """These partitions. If none is left, which has probability at most δ if K is right, the likeliest is."""
        self.alive[gone] = 0
        if not self.alive.any():
            self.alive[int(self.chances().argmax())] = 1

    def _use_complete(self) -> None:
        """Judge the complete rounds, each after all before it, and strike off, until one is left."""
        while self._used < self._composed and self.rounds[self._used].complete and self.alive.sum() > 1:
            now = self.rounds.pop(self._used)
            self._used += 1
            self.log_e += round_logs(
                self.listed, self.alive, now.chance, now.pulls, now.sums, now.taken, now.total, SCALES
            )
            self._strike_off(self.left[self.log_e[self.left] >= self.level])


class ShortlistRun(MethodRun):
    """CROC until there is a list, then the list. Rounds of CROC have even numbers, those of the list odd ones."""

    def __init__(self, settings: Settings) -> None:
        n_arms, n_clusters, dim = settings.shape
        self._n_clusters, self._dim = n_clusters, dim
        self._lists = n_arms <= ARMS_A_GROUP * n_clusters
        delta = settings.delta * CROC_SHARE if self._lists else settings.delta
        self._croc = CrocMethodRun(replace(settings, delta=delta))
        self._list_level = -math.log((1.0 - CROC_SHARE) * settings.delta)
        self._pair_level = pair_level(n_arms, n_clusters, ALPHA * delta)
        self._stacks = Stacks(n_arms, dim)
        self._settled = np.zeros((n_arms, n_arms), dtype=bool)
        self._pulls, self._sums = np.zeros(n_arms), np.zeros((n_arms, dim))
        self._under_way = np.zeros(n_arms)
        self._list: Elimination | None = None
        self._queue: deque[tuple[int, int]] = deque()  # arm, round of the list

    @property
    def listed(self) -> Elimination | None:
        """The list, once there is one."""
        return self._list

    @property
    def done(self) -> bool:
        return self._croc.done if self._list is None else self._list.alive.sum() == 1

    @property
    def t(self) -> int:
        return int(self._pulls.sum())

    @property
    def pulls(self) -> IntArray:
        return self._pulls.astype(np.int64)

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        if self._list is None:
            return self._croc.guess
        labels = self._list.listed[int(self._list.chances().argmax())]
        centers = np.zeros((self._n_clusters, self._dim))
        np.add.at(centers, labels, self._sums)
        return labels, centers / np.bincount(labels, self._pulls, self._n_clusters)[:, None]

    def evidence(self) -> Evidence:
        if self._list is None:
            return self._croc.evidence()
        level = self._list.level
        if self.done:
            return Evidence(level, level, None)
        others = np.delete(self._list.left, self._list.chances()[self._list.left].argmax())
        return Evidence(float(self._list.log_e[others].min()), level, None)

    def ask(self) -> Pull | None:
        if self._list is None:
            found = self._croc.ask()
            if found is None:
                return None
            arm, of_round = found.arm, 2 * found.round
        else:
            if not self._queue:
                number, arms = self._list.compose(self._pulls + self._under_way)
                self._queue.extend((each, number) for each in arms.tolist())
            arm, number = self._queue.popleft()
            of_round = 2 * number + 1
        self._under_way[arm] += 1
        return Pull(arm, of_round)

    def give_up(self, arm: int, of_round: int) -> None:
        self._under_way[arm] -= 1
        if of_round % 2 == 1:
            self._queue.appendleft((arm, of_round // 2))
        elif self._list is None:
            self._croc.give_up(arm, of_round // 2)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._under_way[arm] -= asked
        self._pulls[arm] += 1
        self._sums[arm] += x
        if self._list is None:
            self._croc.count(arm, x, of_round // 2, asked)
            if not self._lists or self._croc.done:
                return
        self._stacks.add(arm, x)
        new = self._newly_settled(arm)
        if self._list is None:
            self._try_list(new)
            return
        for other in new.tolist():
            self._list.settle(arm, other)
        if asked and of_round % 2 == 1 and not self.done:
            self._list.take(of_round // 2, arm, x)

    def look(self) -> None:
        if self._list is None:
            self._croc.look()

    def _newly_settled(self, arm: int) -> IntArray:
        """The arms that are now, and were not before, known to differ from an arm with a new result."""
        others = np.flatnonzero(~self._settled[arm] & (self._stacks.level > 0))
        others = others[others != arm]
        new: IntArray = others[self._stacks.evidence(others, np.full(others.size, arm)) >= self._pair_level]
        self._settled[arm, new] = self._settled[new, arm] = True
        return new

    def _try_list(self, new: IntArray) -> None:
        """Make the list if few partitions are left; not after CROC's first freeze, as that is on its way then."""
        self._lists = all(decision["event"] != "freeze" for decision in self._croc.new_decisions())
        if self._lists and (new.size or self.t == self._pulls.size) and (self._pulls > 0).all():
            listed = partitions_without(self._settled, self._n_clusters)
            if listed is not None and len(listed):
                self._list = Elimination(listed, self._list_level, self._pulls, self._sums)


SHORTLIST = Method(
    "shortlist",
    "CROC until at most 200 partitions fit the settled pairs; then rounds that strike them off",
    ShortlistRun,
    sampling="CROC's; with a list, what tells the partitions on it apart",
    stopping="one partition is left on the list, or CROC's proof",
    has_thresholds=False,
    in_ask_order=True,
)


def register_all() -> None:
    """Put it into the table of methods."""
    register(SHORTLIST, replace_existing=True)


register_all()

__all__ = ["SHORTLIST", "Elimination", "ShortlistRun", "blocks_of", "partitions_without", "register_all"]
