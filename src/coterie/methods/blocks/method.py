"""CROC by cells at work (docs/BLOCKS.md): its side of the contract. Freezes, cells and lapses are its decisions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.methods.blocks import filling
from coterie.methods.blocks.bets import logits_of
from coterie.methods.blocks.cells import Cell
from coterie.methods.blocks.deciding import DecidingRun
from coterie.methods.blocks.epoch import Epoch
from coterie.methods.blocks.estimate import Estimate
from coterie.methods.blocks.places import fit_of, table_of
from coterie.methods.contract import Decision, Pull, Record
from coterie.problem.checks import FloatArray, IntArray, check_count, short

LEAST_ROOM = 6
"""Or 2 for each group: with less room in a block that was begun, a cell that does not fit waits for the next block."""
ROOM = 24
"""Results of a cell at most, where nobody says how many fit; 4 for each group if that is more."""


class BlockRun(DecidingRun):
    """CROC by cells."""

    def compose(
        self, block: str, room: int | None, among: Sequence[int] | None = None, fill: bool = True
    ) -> list[Pull]:
        if self._queue:
            rest = self._queue[0]
            of = self._cells[rest.round].block
            raise ValueError(
                f"{len(self._queue)} asks that were decided together in block {of!r} are left: ask for them first, or "
                f"close the block with close_block({of!r})"
            )
        if self._blocks.get(block, False):
            raise ValueError(f"block {block!r} is closed: nothing more is measured in it; name another block")
        n_groups = self._shape[1]
        left = max(ROOM, 4 * n_groups) if room is None else check_count(room, "the room of a block", 1)
        begun = block in self._blocks
        if left < 2 and not begun:
            raise ValueError(
                f"block {block!r} has room for one result: items are compared inside a block only, so that it would "
                "prove nothing; give a block with room for two or more"
            )
        allowed = self._allowed(among)
        self._room = left if not begun else max(self._room, left)
        self._blocks.setdefault(block, False)
        self._block = block
        self._decide()
        pulls: list[Pull] = []
        while not self._done and not (begun and (self._drawn or left < 2)):
            wanted = self._wanted(block, allowed, left)
            if wanted.sum() < 1 or (begun and left < min(int(wanted.sum()), max(LEAST_ROOM, 2 * n_groups))):
                break
            pulls += self._begin(block, self._chosen(wanted, left))
            left, begun = left - len(self._cells[self.n_cells].pulls), True
            if not fill:
                break
        self._queue.extend(pulls)
        return pulls

    def _allowed(self, among: Sequence[int] | None) -> Any:
        """(M) the arms that may be measured."""
        n_arms = self._shape[0]
        if among is None:
            return np.ones(n_arms, dtype=bool)
        allowed = np.zeros(n_arms, dtype=bool)
        allowed[list(among)] = True
        if allowed.sum() < 2:
            raise ValueError(
                f"among must name at least two items, since items are compared inside a block, got {short(list(among))}"
            )
        return allowed

    def _rng(self) -> np.random.Generator:
        """Of the next cell: it follows from the settings and the number of the cell."""
        return np.random.default_rng([self._seed, self.n_cells + 1])

    def _wanted(self, block: str, allowed: Any, room: int) -> IntArray:
        """(M) what the next cell would have, were there room."""
        estimate, epoch = self.estimate, self.epoch
        asked, rng = self._asked, self._rng()
        if (asked[allowed] == 0).any():
            cell = filling.first_cell(np.where(allowed, asked, 1), room, rng)
        elif estimate is None or (not self._noise.in_units and estimate.freedom < self._least_freedom):
            cell = (asked <= asked[allowed].min()).astype(np.int64)
            if (cell * allowed).sum() < 2:
                cell = np.ones_like(asked)
        elif self._matches(estimate) and epoch is not None and estimate.risk < 1.0:
            least = 0 if self._noise.kind == "known" or self._drawn else min(filling.LEAST_CELL, room)
            if self._shape_estimate is not None and not self._drawn:
                least = min(filling.LEAST_SHAPE_CELL, room) // 2 + 1
            cell = filling.for_tests(epoch, epoch.unmet(self.settled), asked, least)
        else:
            anchored = not self._drawn and self._places.count(block) >= self._shape[1]
            cell = filling.to_explore(estimate, asked, anchored)
            if anchored and (cell * allowed).any():  # compared with what the block has already: by the estimate only
                return np.where(allowed, cell, 0)
        cell = np.where(allowed, cell, 0)
        if np.count_nonzero(cell) < 2:
            cell = np.where(allowed & (asked <= np.sort(asked[allowed])[1]), 1, cell)
        return np.minimum(cell, 1) if self._drawn else cell

    def _chosen(self, wanted: IntArray, room: int) -> list[int]:
        """The asks of a cell that fits, in order."""
        rng, estimate = self._rng(), self.estimate
        if wanted.sum() > room:
            if estimate is None:
                places = rng.permutation(np.flatnonzero(wanted))[:room]
                wanted = np.zeros_like(wanted)
                wanted[places] = 1
            else:
                epoch = self.epoch
                if epoch is None or not self._matches(estimate):
                    wanted = filling.fitted(wanted, room, estimate.labels, filling.urgency_of(estimate), rng)
                else:
                    rates = self._bettor.rates(self._as_frozen(epoch))
                    wanted = filling.worthiest(wanted, room, epoch, epoch.unmet(self.settled), rates, rng)
        return filling.in_order(wanted, rng, self.n_cells == 0)

    def _begin(self, block: str, arms: list[int]) -> list[Pull]:
        """A cell is decided."""
        number, epoch = self.n_cells + 1, self.epoch
        bet = None
        if epoch is not None and self.estimate is not None:
            logits = None if self._trials is None else self._logits(epoch.labels)
            estimate = self._as_frozen(epoch)
            bet = self._bettor.of_cell(estimate, np.array(arms), epoch.labels, logits, self._shape_estimate)
        decision: Decision = {"event": "cell", "cell": number, "block": block}
        decision |= {"epoch": None if epoch is None else epoch.number, "pulls": arms}
        self._made.append(decision if bet is None else decision | {"bet": bet})
        self._open_cell(self._made[-1])
        return [Pull(arm, number) for arm in arms]

    def _as_frozen(self, epoch: Epoch) -> Estimate:
        """The estimate with centers of the frozen groups, by all results."""
        estimate = self.estimate
        assert estimate is not None
        if self._location is not None and np.array_equal(self._location.labels, epoch.labels):
            return self._location
        arms, blocks, rows = self._places.arrays()
        fit = fit_of(
            *table_of(epoch.labels[arms], blocks, rows @ estimate.metric.T, self._shape[1], self._places.n_blocks)
        )
        centers = np.asarray(np.linalg.solve(estimate.metric, fit.centers.T).T)
        return estimate._replace(labels=epoch.labels, centers=centers, inverse=fit.inverse)

    def _logits(self, labels: IntArray) -> FloatArray:
        """(K, d) of the groups, by all counts."""
        assert self._trials is not None
        arms, blocks, rows = self._raw.arrays()
        firsts = np.array([self._raw.first(b) for b in range(self._raw.n_blocks)])
        counts, sums = table_of(labels[arms], blocks, rows + firsts[blocks], self._shape[1], self._raw.n_blocks)
        return logits_of(sums, counts * self._trials)

    def _open_cell(self, decision: Decision) -> None:
        cell = Cell(decision["cell"], decision["block"], decision["epoch"], decision["pulls"], decision.get("bet"))
        self.n_cells = cell.number
        self._cells[cell.number] = cell
        self._blocks.setdefault(cell.block, False)
        np.add.at(self._asked, cell.pulls, 1)

    def close_block(self, block: str) -> None:
        if block not in self._blocks:
            raise ValueError(
                f"block {block!r} was not asked for: nothing to close; open blocks are {short(self.open_blocks)}"
            )
        if self._blocks[block]:
            raise ValueError(f"block {block!r} is closed already")
        self._blocks[block] = True
        if self._block == block:
            self._block = None
        if self._queue and self._cells[self._queue[0].round].block == block:
            self._queue.clear()
        for cell in [cell for cell in self._cells.values() if cell.block == block and not cell.ended]:
            for arm in cell.awaited:
                self._asked[arm] -= 1
                cell.give_up(arm)
            self._end(cell)
        self._advance()

    @property
    def open_blocks(self) -> list[str]:
        """Blocks that were named and are not closed."""
        return [block for block, closed in self._blocks.items() if not closed]

    def ask(self) -> Pull | None:
        if not self._queue and not self._done:
            if self._block is None:
                raise ValueError('name the block that is measured in: ask(block="…")')
            self.compose(self._block, None, fill=False)
        return self._queue.popleft() if self._queue else None

    @property
    def planned(self) -> Sequence[Pull]:
        return tuple(self._queue)

    def take_step(self, step: Mapping[str, Any]) -> None:
        if step["step"] == "compose":
            self.compose(step["block"], step["room"], step["among"], step["fill"])
        elif step["step"] == "close":
            self.close_block(step["block"])
        else:
            self._placed = step["block"]

    # Records.

    def apply(self, record: Record) -> None:
        self._applying = True
        try:
            super().apply(record)
        finally:
            self._applying = False
        self._decided_at = -1

    def open_recorded(self, arm: int, of_round: int) -> None:
        if self._queue and self._queue[0] == (arm, of_round):
            self._queue.popleft()

    def apply_step(self, step: Mapping[str, Any]) -> None:
        if step["step"] == "compose":
            self._blocks.setdefault(step["block"], False)
            self._block = step["block"]
        elif step["step"] == "close":
            self._blocks[step["block"]] = True
            self._block = None if self._block == step["block"] else self._block
        else:
            self._placed = step["block"]

    def apply_decision(self, decision: Decision) -> None:
        if decision["event"] == "freeze":
            self._begin_epoch(decision)
        elif decision["event"] == "cell":
            self._open_cell(decision)
            self._queue.extend(Pull(int(arm), self.n_cells) for arm in decision["pulls"])
        elif decision["event"] == "lapse":
            cell = self._cells.get(decision["cell"])
            if cell is not None and not cell.ended:
                self._queue = deque(pull for pull in self._queue if pull.round != cell.number)
                for arm in cell.awaited:  # some of those missing may have been given up before
                    self._asked[arm] -= 1
                    cell.give_up(arm)
                self._end(cell)
                self._advance()
        elif decision["event"] == "alarm":
            self.alarm_arms = tuple(int(arm) for arm in decision["arms"])
