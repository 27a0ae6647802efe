"""A CROC run as Python sees it.

Measurements come in the ask order of each arm, as 2·d numbers: whitened, and what floats do not hold of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie.engine.croc.entries import (
    APPLYING,
    ASK,
    ESTIMATE,
    GIVE_UP,
    LOOK,
    NO_ROOM,
    OPEN_ROUND,
    POSITION,
    RESULT,
    Entries,
    new_entries,
)
from coterie.engine.croc.family import Family
from coterie.engine.croc.state import (
    ALARM,
    ARM_SCALES,
    ASKED_IN,
    BY_PAIRS,
    CERTIFIED_EPOCH,
    CORE_ROOM,
    DEGREES,
    DONE,
    EPOCHS,
    ESTIMATED,
    FLIGHT,
    FREEZES,
    FROM_ZERO,
    KNOWN_COVARIANCE,
    LOG_INVERSE_DELTA,
    METRIC,
    OLDEST,
    OPEN_ROUNDS,
    PAIR_LEVEL,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    TO_ASK,
    UNSEEN,
    T,
    new_croc,
    share_of_epoch,
)
from coterie.engine.croc.stepping import Stepping
from coterie.engine.croc.stepping import load as load
from coterie.engine.state import Floats, Ints
from coterie.problem.partition import same_partition

_FEW_REPEATS = 6

_TABLES = ("base", "slope", "crest", "log_factorial", "price", "reserve")
"""Parts of the state that follow from its size and the prices alone."""


class CrocRun:
    """State of one run and the steps on it."""

    def __init__(
        self,
        n_arms: int,
        n_clusters: int,
        dim: int,
        log_inverse_delta: float,
        family: Family = KNOWN_COVARIANCE,
        price: Floats | None = None,
        at_once: bool = False,
    ) -> None:
        """`at_once`: steps may be uncompiled as long as there are no compiled ones (`coterie.engine.at_once`)."""
        self.family = family
        self.state = new_croc(n_arms, n_clusters, dim, log_inverse_delta, family, price)
        self._steps = Stepping(self.state, family, at_once)
        self._work = self._steps.work
        self._equal_price = np.ones(n_arms)
        # One entry: enough for what a live session does at a time.
        self._live = new_entries(
            n_arms, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros((1, 2 * dim))
        )

    @property
    def centers(self) -> Floats:
        """The estimate's centers, in the coordinates of the measurements; plain means, if the metric is estimated."""
        s = self.state
        centers: Floats = s.centers + s.origin
        if s.ints[METRIC] == 1:
            centers = np.zeros_like(s.centers)
            np.add.at(centers, s.labels, s.sums)
            centers = centers / np.maximum(np.bincount(s.labels, s.pulls, len(centers)), 1.0)[:, None] + s.origin
        return centers

    def follow(self, entries: Entries) -> int:
        """Go on with these entries; says why it came back: see `coterie.engine.croc.entries`."""
        return self._steps.follow(entries)

    def _do(self, kind: int, arm: int, of_round: int = 0, applying: bool = False) -> int:
        """Follow or apply one entry whose other parts are in place."""
        live = self._live
        live.at[POSITION], live.at[APPLYING] = 0, int(applying)
        live.kinds[0], live.arms[0], live.rounds[0] = kind, arm, of_round
        return self.follow(live)

    def pop(self) -> tuple[int, int] | None:
        """The next arm and the round that it is pulled for (0: none); counts as under way. None if all is proven."""
        s, live = self.state, self._live
        arm = self._steps.pop_planned()
        if arm >= 0:
            return arm, int(s.ints[ASKED_IN])
        self._do(ASK, -1)
        return None if self.done else (int(live.arms[0]), int(live.rounds[0]))

    def absorb(self, arm: int, value: Floats, of_round: int, asked: bool) -> None:
        """Take in a result, then plan if it is due."""
        live = self._live
        live.asked[0] = int(asked)
        live.values[0] = 0.0  # of whoever brings d numbers, floats hold all
        live.values[0, : value.size] = value
        self._do(RESULT, arm, of_round)

    def give_up(self, arm: int, of_round: int) -> None:
        """A pull under way will not come: a round asks for it again."""
        self._do(GIVE_UP, arm, of_round)

    def look(self) -> None:
        """See whether the results so far prove the groups; plan if nothing is planned."""
        self._do(LOOK, -1)

    # What was recorded, brought back without consulting the rule.

    def apply(self, entries: Entries) -> None:
        """Take in recorded asks, results and given-up asks."""
        entries.at[POSITION], entries.at[APPLYING] = 0, 1
        self.follow(entries)

    def apply_first(self, entries: Entries, origin: Floats) -> None:
        """Take in recorded entries up to the first result, with positions that count from this origin."""
        s = self.state
        if s.ints[FROM_ZERO] == 0:
            s.origin[:], s.origin_rest[:] = origin, 0.0
            s.ints[T] = 1  # so that the first result is not taken for the origin
        self.apply(entries)
        s.ints[T] = 1

    def apply_freeze(
        self, labels: Ints, cores: list[list[int]], level: float, bet: Mapping[str, Any] | None = None
    ) -> None:
        """A recorded freeze: the candidate with its cores is an epoch, at its place among the results.

        `bet`: what the family had fixed with it, if anything.
        """
        s = self.state
        e = self.freezes % EPOCHS
        s.frozen_at[e], s.frozen_number[e], s.level[e] = self.t, self.freezes, level
        s.ints[FREEZES] += 1
        s.frozen[e] = labels
        for cleared in (s.in_core, s.met_group, s.met_core, s.weight_group, s.weight_core, s.met_pair, s.weight_pair):
            cleared[e] = 0
        s.core[e] = -1
        for k, core in enumerate(cores):
            s.core[e, k * CORE_ROOM : k * CORE_ROOM + len(core)] = core
            s.in_core[e, core] = 1
        s.frozen_totals[e], s.frozen_centers[e] = 0.0, 0.0
        for m, k in enumerate(s.frozen[e].tolist()):  # Û from the origin of the group's first core arm, arm by arm
            lead = cores[k][0]
            away = s.offset[m] - s.offset[lead] + (s.offset_rest[m] - s.offset_rest[lead])
            s.frozen_totals[e, k] += s.pulls[m]
            s.frozen_centers[e, k] += s.sums[m] + s.pulls[m] * away
        s.frozen_centers[e] /= s.frozen_totals[e][:, None]
        if bet is not None:
            s.shared[e] = 0.0
            s.shared[e, : len(bet["numbers"])] = bet["numbers"]

    def apply_round(self, epoch: int, pulls: list[list[int]], bet: Mapping[str, Any] | None = None) -> None:
        """A recorded round: its composition as [arm, count], and the family's bet on it, if it has one."""
        live = self._live
        live.composition[:] = 0
        for arm, count in pulls:
            live.composition[arm] = count
        if self._do(OPEN_ROUND, epoch, applying=True) == NO_ROOM:
            raise ValueError(f"round {self.round + 1} of the record finds no room: too many rounds are open")
        if bet is not None:
            s, f = self.state, self.round % FLIGHT
            numbers = np.asarray(bet["numbers"], dtype=np.float64)
            s.round_bet[f] = numbers[: s.round_bet.shape[1]]
            if s.ints[ARM_SCALES] == 1:
                part = slice(int(s.round_first[f]), int(s.round_first[f] + s.round_size[f]))
                s.entry_scores[part, 0] = s.entry_pulls[part] * numbers[s.round_bet.shape[1] :]

    def apply_alarm(self, arms: list[int]) -> None:
        """A recorded alarm."""
        self.state.ints[ALARM], self.state.alarmed[:] = 1, arms

    def estimate(self) -> None:
        """A guess of the groups from what was applied, if every arm was measured."""
        self._do(ESTIMATE, -1, applying=True)

    def memory(self) -> dict[str, Any]:
        """Everything the run knows, as its own arrays; tables that are the same for all runs are left out."""
        return {name: array for name, array in self.state._asdict().items() if name not in _TABLES}

    @property
    def memory_bytes(self) -> int:
        """Bytes of `memory`."""
        return sum(array.nbytes for array in self.memory().values())

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave; the run must be at its beginning and of the same size."""
        for name, array in self.state._asdict().items():
            if name not in _TABLES:
                array[...] = memory[name]

    def play(self, steps: int, centers: Floats, truth: Ints, rng: np.random.Generator) -> None:
        """Simulate up to `steps` results of a world whose groups and centers are known."""
        self._steps.play(steps, centers, truth, rng, self._live)

    def pair_evidence(self, i: int, j: int, pulls_i: int, pulls_j: int) -> float:
        """Evidence from the start that arms i and j differ, at these counts."""
        return float(self.pair_evidences(np.array([[i, j, pulls_i, pulls_j]]))[0])

    def pair_evidences(self, pairs: Ints) -> Floats:
        """Evidence from the start that two arms differ, for rows (i, j, pulls of i, pulls of j)."""
        return self._steps.pair_evidences(pairs)

    def pulls_left(self) -> float:
        """A forecast of the pulls still needed; NaN if unknown."""
        return self._steps.forecast(self.state._replace(price=self._equal_price))

    def cost_left(self) -> float:
        """A forecast of what is still to be spent, in units of the cheapest arm; NaN if unknown."""
        return self._steps.forecast(self.state)

    @property
    def matching_epoch(self) -> int:
        """The slot of the epoch whose candidate is the present estimate, -1 if there is none."""
        s = self.state
        for number in range(self.freezes - 1, max(self.freezes - len(s.level), 0) - 1, -1):
            slot = number % len(s.level)
            if self.ready and same_partition(s.labels, s.frozen[slot]):
                return slot
        return -1

    def composition(self, number: int) -> tuple[int, list[list[int]]]:
        """Of a round under way: the number of its epoch, and its pulls as [arm, count]."""
        s, f = self.state, number % FLIGHT
        part = slice(int(s.round_first[f]), int(s.round_first[f] + s.round_size[f]))
        return int(s.round_epoch[f]), np.stack([s.entry_arm[part], s.entry_pulls[part]], axis=1).tolist()

    def planned(self, most: int | None = None) -> Ints:
        """The arms that will be asked for before the next plan, in that order; at most so many. Nothing is asked for.

        With one worker: no pull is under way.
        """
        s = self.state
        if s.ints[UNSEEN] > 0:
            return np.flatnonzero(s.pulls == 0)[:most]
        if s.ints[TO_ASK] == 0:
            return s.queue[s.ints[QUEUE_HEAD] : s.ints[QUEUE_TAIL]][:most].astype(np.int64)
        to_ask = int(s.ints[TO_ASK])
        return self._steps.planned(to_ask if most is None else min(most, to_ask))

    def bet_of_round(self, number: int) -> dict[str, Any] | None:
        """What the family of evidence fixed with a round under way, as plain data; None if it has no bets."""
        s, f = self.state, number % FLIGHT
        if s.round_bet.shape[1] == 0:
            return None
        numbers = s.round_bet[f].tolist()
        if s.ints[ARM_SCALES] == 1:
            part = slice(int(s.round_first[f]), int(s.round_first[f] + s.round_size[f]))
            numbers += (s.entry_scores[part, 0] / s.entry_pulls[part]).tolist()
        return {"from": s.origin.tolist(), "numbers": numbers}

    def bet_of_epoch(self, number: int) -> dict[str, Any] | None:
        """What the family of evidence fixed with a freeze, as plain data; None if it has no such numbers."""
        s, k = self.state, self.state.totals.size
        if s.shared.shape[1] == 0:
            return None
        fixed_with_it = k * s.centers.shape[1] + k * k  # what follows is gathered later
        return {"from": s.origin.tolist(), "numbers": s.shared[number % EPOCHS, :fixed_with_it].tolist()}

    def is_closed(self, number: int) -> bool:
        """Whether a round is complete and has been used."""
        s = self.state
        return number < s.ints[OLDEST] or bool(s.round_left[number % FLIGHT] < 0)

    @property
    def done(self) -> bool:
        """Whether the groups are proven."""
        return bool(self.state.ints[DONE] > 0)

    @property
    def by_pairs(self) -> bool:
        """Whether they are proven by the pairs from the start alone."""
        return bool(self.state.ints[DONE] == BY_PAIRS)

    @property
    def epoch(self) -> int:
        """The slot of the epoch that proved them."""
        return int(self.state.ints[CERTIFIED_EPOCH])

    @property
    def t(self) -> int:
        """Results so far."""
        return int(self.state.ints[T])

    @property
    def ready(self) -> bool:
        """Whether there is an estimate."""
        return bool(self.state.ints[ESTIMATED] > 0 and self.state.ints[UNSEEN] == 0)

    @property
    def freezes(self) -> int:
        """Epochs so far."""
        return int(self.state.ints[FREEZES])

    @property
    def round(self) -> int:
        """The number of the last round composed."""
        return int(self.state.ints[ROUND])

    @property
    def has_open_rounds(self) -> bool:
        """Whether a round is under way."""
        return bool(self.state.ints[OPEN_ROUNDS] > 0)

    @property
    def alarm(self) -> tuple[int, ...] | None:
        """K + 1 arms that are known to differ pairwise, if there are such: K is too small."""
        return tuple(self.state.alarmed.tolist()) if self.state.ints[ALARM] == 1 else None

    @property
    def knows_spread(self) -> bool:
        """Whether the size of the noise is known, or repeated results have shown something of it."""
        return bool(self.state.ints[METRIC] == 0 or self.state.ints[DEGREES] >= _FEW_REPEATS)

    @property
    def has_pairs(self) -> bool:
        """Whether there are pairs from the start."""
        return self.family.pair_share > 0.0

    @property
    def has_bound(self) -> bool:
        """Whether pairs from the start are in units of an upper bound on the variance."""
        return self.family.variance_share > 0.0

    @property
    def first_level(self) -> float:
        """What evidence has to reach before anything is frozen: the level of the pairs, or of the first epoch."""
        if self.has_pairs:
            return self.pair_level
        return float(self.state.numbers[LOG_INVERSE_DELTA] - np.log(share_of_epoch(0)))

    @property
    def pair_level(self) -> float:
        """log(H/(α·δ))."""
        return float(self.state.numbers[PAIR_LEVEL])
