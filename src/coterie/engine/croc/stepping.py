"""A CROC run's steps: compiled, or, in a run that answers at once, plain until the compiled ones are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coterie.engine.at_once import MOST_COPIED, PATIENCE, Entrance, plain_seconds, tried
from coterie.engine.compiled import kernel_named
from coterie.engine.croc.entries import APPLYING, ESTIMATE, POSITION, Entries, new_entries
from coterie.engine.croc.family import Family
from coterie.engine.croc.state import KNOWN_COVARIANCE, UNSEEN, Croc, new_croc, new_work
from coterie.engine.plain import has_plain, number_of
from coterie.engine.state import Floats, Ints, fixed


def _sources() -> list[Path]:
    here = Path(__file__)
    not_compiled = (here, here.parent / "run.py")
    compiled = [path for path in here.parent.glob("*.py") if path not in not_compiled]
    around = here.parent.parent
    compiled += [around / name for name in ("compiled.py", "heaps.py", "held.py", "inner.py")]
    return [*compiled, *(around / "direct").glob("*.py")]


_entrance = Entrance("CROC", "coterie.engine.croc.drive", "drive", __name__, _sources)


def load() -> Any:
    """The compiled entries. Says so, once, if they have to be compiled first."""
    return _entrance.compiled()


def compile_ahead(*kernels: str) -> None:
    """Have the entries, and kernels ("module:name"), in numba's cache: types are the same for every size."""
    for kernel in kernels:
        _ = kernel_named(*kernel.split(":")).address  # it is compiled when this is asked for
    steps = Stepping(new_croc(3, 2, 1, 0.0), KNOWN_COVARIANCE)
    steps.pop_planned()
    steps.forecast(steps.state)
    steps.pair_evidences(np.zeros((0, 4), dtype=np.int64))
    nothing = np.zeros(0, dtype=np.int64)
    steps.follow(new_entries(3, nothing, nothing, np.zeros((0, 2))))  # last: this one tells that all are there


class Stepping:
    """The steps of one run, on its state and with its work space."""

    def __init__(self, state: Croc, family: Family, at_once: bool = False) -> None:
        """`at_once`: plain code may do the steps as long as the compiled ones are not there."""
        self.state, self._family = state, family
        self._shape = (state.labels.size, state.totals.size, state.origin.size)
        self._size = sum(array.nbytes for array in state)
        self._plain = self._find_plain() if at_once else None
        self._steps = load() if self._plain is None else self._plain
        kernels = family.addresses() if self._plain is None else family.stand_ins(number_of)
        self.work = new_work(*self._shape, family, kernels)
        dim = self._shape[2]
        self._x = np.zeros(2 * dim)
        self._no_centers = fixed(np.zeros((1, dim)))
        self._no_truth = fixed(np.zeros(1, dtype=np.int64))
        self._no_rng = np.random.default_rng(0)  # never drawn from: a live run brings its results

    @property
    def is_plain(self) -> bool:
        """Whether plain code has done the last steps."""
        return self._plain is not None

    def _find_plain(self) -> Any:
        """Plain steps, if a process compiles them now, and the family is of this room."""
        kernels = self._family.kernels
        if not all(has_plain(kernel) for kernel in kernels):
            return None
        return _entrance.plain([f"{kernel.module}:{kernel.name}" for kernel in kernels])

    def _become_compiled(self) -> None:
        """From now on the steps are compiled; waits for them if they are not there yet."""
        if self._plain is not None:
            self._steps = load()
            self.work.kernels[:] = self._family.addresses()
            self._plain = None

    def follow(self, entries: Entries) -> int:
        """Go on with these entries; says why it came back: see `coterie.engine.croc.entries`."""
        if self._plain is not None:
            found = None
            if _entrance.is_behind and self._is_quick(entries):
                state = self.state if self._size <= MOST_COPIED else ()
                found = tried(lambda: self._drive(entries), [*state, entries.at, entries.arms, entries.rounds])
            if found is not None:
                return int(found)
            self._become_compiled()
        return int(self._drive(entries))

    def _drive(self, entries: Entries) -> Any:
        no_world = (self._no_centers, self._no_truth, self._no_rng)
        return self._steps.drive(self.state, self.work, entries, 0, *no_world, self._x)

    def _is_quick(self, entries: Entries) -> bool:
        """Whether plain code may go on with these entries. No plan is due before the last arm is measured."""
        n = entries.kinds.size - int(entries.at[POSITION])
        plans = 0 if n < self.state.ints[UNSEEN] else min(n, 4 + n // 4)
        if entries.at[APPLYING] == 1:
            plans = int((entries.kinds == ESTIMATE).sum())
        return plain_seconds(self._shape, n, plans) <= PATIENCE and (plans == 0 or self._size <= MOST_COPIED)

    def play(self, steps: int, centers: Floats, truth: Ints, rng: np.random.Generator, entries: Entries) -> None:
        """Simulate up to `steps` results of a world whose groups and centers are known."""
        self._become_compiled()
        self._steps.drive(self.state, self.work, entries, steps, fixed(centers), fixed(truth), rng, self._x)

    def pop_planned(self) -> int:
        """The next arm if it is planned already, -1 if not: see `coterie.engine.croc.drive`."""
        return self._pop_planned(self.state)

    def planned(self, most: int) -> Ints:
        """At most so many arms that are planned, in the order in which they will be asked for; the state stays."""
        s = self.state
        ahead = s._replace(
            ints=s.ints.copy(), committed=s.committed.copy(), heap=s.heap.copy(), slot=s.slot.copy(),
            round_unasked=s.round_unasked.copy(), round_cursor=s.round_cursor.copy(),
            entry_asked=s.entry_asked.copy(), round_drawn=s.round_drawn.copy(),
        )  # fmt: skip
        return np.array([self._pop_planned(ahead) for _ in range(most)], dtype=np.int64)

    def _pop_planned(self, s: Croc) -> int:
        found = self._steps.pop_planned(
            s.ints, s.queue, s.labels, s.committed, s.heap, s.slot, s.first_slot,
            s.round_unasked, s.round_cursor, s.entry_arm, s.entry_pulls, s.entry_asked,
            s.round_first, s.round_size, s.round_pulls, s.round_drawn, s.entry_before,
        )  # fmt: skip
        return int(found)

    def pair_evidences(self, pairs: Ints) -> Floats:
        """Evidence from the start that two arms differ, for rows (i, j, pulls of i, pulls of j)."""
        found, pairs = np.zeros(len(pairs)), np.ascontiguousarray(pairs, dtype=np.int64)
        done = None
        if self._plain is not None and plain_seconds(self._shape, len(pairs), 0) <= PATIENCE:
            done = tried(lambda: (self._steps.pairs_at(self.state, pairs, found),), [])
        if done is None:
            self._become_compiled()
            self._steps.pairs_at(self.state, pairs, found)
        return found

    def forecast(self, state: Croc) -> float:
        """What is still to be spent by this state, which may have other prices than the run's; NaN if unknown."""
        found = None
        if self._plain is not None and self._size <= MOST_COPIED and plain_seconds(self._shape, 0, 2) <= PATIENCE:
            found = tried(lambda: self._steps.pulls_left(state, self.work), self.state)
        if found is None:
            self._become_compiled()
            found = self._steps.pulls_left(state, self.work)
        return float(found)
