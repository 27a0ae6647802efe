"""A CROC run as Python sees it.

Measurements come in the ask order of each arm, as 2·d numbers: whitened, and what floats do not hold of that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coterie.engine.cached import announce_compilation
from coterie.engine.croc.family import Family
from coterie.engine.croc.script import ASK, FORGET, OPEN, TOLD, Script, new_script
from coterie.engine.croc.state import (
    ALARM,
    ASKED_IN,
    BY_PAIRS,
    CERTIFIED_EPOCH,
    DONE,
    ESTIMATED,
    FLIGHT,
    FREEZES,
    KNOWN_COVARIANCE,
    OLDEST,
    OPEN_ROUNDS,
    PAIR_LEVEL,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    UNSEEN,
    T,
    new_croc,
    new_work,
)
from coterie.engine.state import Floats, Ints, fixed
from coterie.problem.partition import same_partition

_loaded: Any = None


def load() -> Any:
    """The compiled entries. Says so, once, if they have to be compiled first."""
    global _loaded
    if _loaded is None:
        from coterie.engine.croc import drive

        here = Path(__file__)
        compiled = [path for path in here.parent.glob("*.py") if path != here]
        shared = [here.parent.parent / name for name in ("compiled.py", "heaps.py")]
        announce_compilation(drive.drive, "CROC", compiled + shared)
        _loaded = drive
    return _loaded


class CrocRun:
    """State of one run and the steps on it."""

    def __init__(
        self, n_arms: int, n_clusters: int, dim: int, log_inverse_delta: float, family: Family = KNOWN_COVARIANCE
    ) -> None:
        self._steps = load()
        self.state = new_croc(n_arms, n_clusters, dim, log_inverse_delta, family)
        self._work = new_work(n_arms, n_clusters, dim, family)
        self._x = np.zeros(2 * dim)
        self._no_centers = fixed(np.zeros((1, dim)))
        self._no_truth = fixed(np.zeros(1, dtype=np.int64))
        self._no_rng = np.random.default_rng(0)  # never drawn from: a live run brings its results
        # One entry, and one place before it: enough for what a live session does at a time.
        one, other = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        self._live = new_script(n_arms, one, other, np.zeros((1, 2 * dim)), 1)

    @property
    def centers(self) -> Floats:
        """The estimate's centers, in the coordinates of the measurements."""
        centers: Floats = self.state.centers + self.state.origin
        return centers

    def follow(self, script: Script) -> int:
        """Go on with a script; says why it came back: see `coterie.engine.croc.script`."""
        found = self._steps.drive(
            self.state, self._work, script, 0, self._no_centers, self._no_truth, self._no_rng, self._x
        )
        return int(found)

    def pop(self) -> tuple[int, int] | None:
        """The next arm and the round that it is pulled for (0: none); counts as under way. None if all is proven."""
        s, live = self.state, self._live
        arm = self._steps.pop_planned(
            s.ints, s.queue, s.labels, s.committed, s.heap, s.slot, s.first_slot,
            s.round_unasked, s.round_cursor, s.entry_arm, s.entry_pulls, s.entry_asked,
        )  # fmt: skip
        if arm >= 0:
            return arm, int(s.ints[ASKED_IN])
        live.at[:] = 0, -1, 0
        live.kinds[0], live.arms[0] = ASK, -1
        self.follow(live)
        if self.done:
            return None
        arm = int(live.arms[0])
        live.head[arm] = -1
        return arm, int(live.its_round[1])

    def absorb(self, arm: int, value: Floats, of_round: int, asked: bool) -> None:
        """Take in a result, then plan if it is due."""
        live = self._live
        live.at[:] = 1, arm, 0  # no entry left: only the line of the arm is to be counted
        live.head[arm], live.following[0], live.status[0] = 0, -1, TOLD
        live.its_arm[0], live.its_round[0] = arm, of_round if asked else -1
        live.values[0] = 0.0  # of whoever brings d numbers, floats hold all
        live.values[0, : value.size] = value
        self.follow(live)

    def give_up(self, arm: int, of_round: int) -> None:
        """A pull under way will not come: a round asks for it again."""
        live = self._live
        live.at[:] = 0, -1, 0
        live.kinds[0], live.place[0] = FORGET, 0
        live.status[0], live.its_arm[0], live.its_round[0] = OPEN, arm, of_round
        self.follow(live)

    def play(self, steps: int, centers: Floats, truth: Ints, rng: np.random.Generator) -> None:
        """Simulate up to `steps` results of a world whose groups and centers are known."""
        self._steps.drive(self.state, self._work, self._live, steps, fixed(centers), fixed(truth), rng, self._x)

    def pair_evidence(self, i: int, j: int, pulls_i: int, pulls_j: int) -> float:
        """Evidence from the start that arms i and j differ, at these counts."""
        return float(self.pair_evidences(np.array([[i, j, pulls_i, pulls_j]]))[0])

    def pair_evidences(self, pairs: Ints) -> Floats:
        """The same for rows (i, j, pulls of i, pulls of j)."""
        found = np.zeros(len(pairs))
        self._steps.pairs_at(self.state, np.ascontiguousarray(pairs, dtype=np.int64), found)
        return found

    def pulls_left(self) -> float:
        """A forecast of the pulls still needed; NaN if unknown."""
        return float(self._steps.pulls_left(self.state, self._work))

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

    @property
    def planned(self) -> tuple[Ints, int]:
        """With one worker, between two plans: the arms to be pulled next, and the round that they are of (0: none)."""
        s = self.state
        if s.ints[OPEN_ROUNDS] == 0:
            return s.queue[s.ints[QUEUE_HEAD] : s.ints[QUEUE_TAIL]].copy(), 0
        arms, counts = np.array(self.composition(self.round)[1]).T
        return np.repeat(arms, counts), self.round

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
    def alarm(self) -> tuple[int, ...] | None:
        """K + 1 arms that are known to differ pairwise, if there are such: K is too small."""
        return tuple(self.state.alarmed.tolist()) if self.state.ints[ALARM] == 1 else None

    @property
    def pair_level(self) -> float:
        """log(H/(α·δ))."""
        return float(self.state.numbers[PAIR_LEVEL])
