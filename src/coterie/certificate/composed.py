"""Rounds and cells: what was composed before any of its results was asked for, as a log has it.

A cell (docs/BLOCKS.md) is the round of a run in blocks: its results are all of one block. `Cells` has the rules that a
log of such a run must keep; what breaks one is refused with a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.certificate.freezes import LogSubject
from coterie.problem.checks import IntArray, check_arm, check_count, short

_NO_PAIRS = np.empty((0, 4), dtype=np.int64)


@dataclass
class Composition:
    """A round, its arms in the order listed, or a cell, its arms ascending; and which results of the log are its own.

    The epoch of a cell that is for none is -1. A cell that lapsed consists of what came of it, unless the lapse is
    strict: then it is never complete.
    """

    number: int
    epoch: int
    arms: tuple[int, ...]
    to_come: dict[Any, int]  # results to come, of each arm; where features are apart, of each arm and panel
    bet: Any = None  # as it stands in the log
    at: int = 0  # results before it was composed
    settled: IntArray = field(default_factory=lambda: _NO_PAIRS)
    came: list[int] = field(default_factory=list)
    block: str | None = None  # of a cell: where all of its results are from
    generation: int = 0  # of a cell: how many strict lapses came before it was composed
    lapsed: bool = False  # of a cell: it ended unfinished
    joins: tuple[dict[str, Any], ...] = ()  # bets on features that the tests use from this round on

    @property
    def complete(self) -> bool:
        """Whether all of its results are there."""
        return not any(self.to_come.values())

    @property
    def rows(self) -> IntArray:
        """Its results; none of a round that is not complete, which may be composed of anything, and is not used."""
        return np.array(self.came if self.complete else [], dtype=np.int64)


class PanelRounds:
    """The rounds of a log whose results are of panels of features, and the rules that it must keep.

    INOUT: the list of rounds. `frozen`: the features that the tests of each epoch use, so far.
    """

    def __init__(self, asked: LogSubject, rounds: list[Composition]) -> None:
        self.asked, self.rounds = asked, rounds
        self.panels: list[int] = []  # of all results
        self.listed: list[set[int]] = []  # features that the tests of an epoch use

    def take_result(self, event: dict[str, Any], arm: int, row: int) -> tuple[int, int]:
        """The round of the result of this row, and how many numbers its panel has; it must have asked for that."""
        features = self.asked.features
        assert features is not None
        number, panel = check_count(event.get("round"), "round", 0), check_count(event.get("panel"), "panel", 0)
        if panel >= features.n_panels:
            raise ValueError(f"a result of panel {panel}, but there are {features.n_panels}")
        if number and event.get("asked") is False:
            raise ValueError(f"a result of round {number} that nobody asked for: its round must be 0")
        if number > len(self.rounds):
            raise ValueError(f"a result of round {number} while the last round is {len(self.rounds)}")
        if number:
            composed = self.rounds[number - 1]
            if composed.to_come.get((arm, panel), 0) == 0:
                raise ValueError(f"round {number} has no ask (left) of panel {panel} of arm {arm}")
            composed.to_come[arm, panel] -= 1
            composed.came.append(row)
        self.panels.append(panel)
        return number, len(features.features_of(panel))

    def freeze(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """The bets of a freeze."""
        bets = self._bets(event.get("features"), "a freeze")
        self.listed.append({bet["feature"] for bet in bets})
        return bets

    def compose(self, event: dict[str, Any], at: int) -> None:
        """A round that is composed after `at` results."""
        number, epoch = check_count(event.get("round"), "round", 1), check_count(event.get("epoch"), "epoch", 0)
        if number != len(self.rounds) + 1:
            raise ValueError(f"round {number} is out of order: {len(self.rounds) + 1} comes next")
        if epoch >= len(self.listed):
            raise ValueError(f"round {number} is for epoch {epoch}, which is not frozen yet")
        features, asks = self.asked.features, event.get("asks")
        assert features is not None
        if not isinstance(asks, list | tuple) or not asks:
            raise ValueError(f"round {number} must say which panel of which arm it asks for, got {short(asks)}")
        composition: dict[tuple[int, int], int] = {}
        for ask in asks:
            if not isinstance(ask, list | tuple) or len(ask) != 3:
                raise ValueError(f"round {number} must list [arm, panel, count], got {short(ask)}")
            arm, panel = check_arm(ask[0], self.asked.n_arms), check_count(ask[1], "panel", 0)
            if panel >= features.n_panels:
                raise ValueError(f"round {number} asks for panel {panel}, but there are {features.n_panels}")
            composition[arm, panel] = composition.get((arm, panel), 0) + check_count(ask[2], "count", 1)
        joins = self._bets(event.get("joins", []), f"round {number}")
        for bet in joins:
            if bet["feature"] in self.listed[epoch]:
                raise ValueError(f"feature {bet['feature']} joins in round {number}, but epoch {epoch} has it already")
            self.listed[epoch].add(bet["feature"])
        bets = self._bets(event.get("bets", []), f"round {number}")
        arms = tuple(sorted({arm for arm, _ in composition}))
        self.rounds.append(Composition(number, epoch, arms, composition, bets, at, joins=joins))

    def _bets(self, given: Any, where: str) -> tuple[dict[str, Any], ...]:
        """Bets on features, each of which is bet on once; their numbers are looked at where they are used."""
        assert self.asked.features is not None
        if not isinstance(given, list | tuple) or not all(isinstance(bet, dict) for bet in given):
            raise ValueError(f"{where} must list bets on features, got {short(given)}")
        numbers = [check_count(bet.get("feature"), f"a feature of {where}", 0) for bet in given]
        wrong = next((number for number in numbers if number >= self.asked.features.dim), None)
        if wrong is not None:
            raise ValueError(f"{where} bets on feature {wrong}, but there are {self.asked.features.dim}")
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"{where} bets on a feature twice: {short(numbers)}")
        return tuple(given)


class Cells:
    """The cells of a log so far, and the rules that the next event of one must keep. INOUT: the list of cells."""

    def __init__(self, asked: LogSubject, cells: list[Composition]) -> None:
        self.asked, self.cells = asked, cells
        self._known_blocks: set[str] = set()  # of which results were told, or a cell composed
        self._generation = 0

    def take_result(self, event: dict[str, Any], arm: int, row: int) -> int:
        """The cell of the result of this row, which must have asked for it; 0 for one that nobody asked for."""
        block = None if event.get("block") is None else _block_of(event)
        if "round" in event:
            raise ValueError(f"a result of round {short(event['round'])}: in blocks results are of cells")
        if event.get("cell") is None:
            if event.get("asked") is not False:
                raise ValueError("a result of no cell: in blocks all that is asked for is of a cell")
            if block is not None:
                self._known_blocks.add(block)
            return 0
        number = check_count(event["cell"], "cell", 1)
        if event.get("asked") is False:
            raise ValueError(f"a result of cell {number} that nobody asked for")
        if number > len(self.cells):
            raise ValueError(f"a result of cell {number}, which is composed later, or never: it must come first")
        cell = self.cells[number - 1]
        if block is not None and block != cell.block:
            raise ValueError(f"a result told for block {block!r}, but cell {number} is of block {cell.block!r}")
        if cell.lapsed:
            raise ValueError(f"a result of cell {number} after it has lapsed")
        if cell.to_come.get(arm, 0) == 0:
            raise ValueError(f"cell {number} has no pull (left) of arm {arm}")
        cell.to_come[arm] -= 1
        cell.came.append(row)
        return number

    def compose(self, event: dict[str, Any], at: int, n_freezes: int) -> None:
        """A cell that is composed after `at` results and so many freezes."""
        number, block = check_count(event.get("cell"), "cell", 1), _block_of(event)
        if number != len(self.cells) + 1:
            raise ValueError(f"cell {number} is out of order: {len(self.cells) + 1} comes next, and none is left out")
        epoch = -1
        if event.get("epoch") is not None:
            epoch = check_count(event["epoch"], "epoch", 0)
        if epoch >= n_freezes:
            raise ValueError(f"cell {number} is for epoch {epoch}, which is not frozen yet")
        pulls = event.get("pulls")
        if not isinstance(pulls, list | tuple) or not pulls:
            raise ValueError(f"cell {number} must list the arms that it asks for, got {short(pulls)}")
        composition: dict[int, int] = {}
        for pull in pulls:
            arm = check_arm(pull, self.asked.n_arms)
            composition[arm] = composition.get(arm, 0) + 1
        if self.asked.blocks == "drawn":
            if block in self._known_blocks:
                raise ValueError(
                    f"cell {number} is of block {block!r}, of which there is a cell or a result already: of a drawn "
                    "block only one cell counts, composed before anything is known of it"
                )
            twice = next((arm for arm, count in composition.items() if count > 1), None)
            if twice is not None:
                raise ValueError(f"cell {number} asks for arm {twice} twice: in a drawn block once is all that counts")
        self._known_blocks.add(block)
        self.cells.append(
            Composition(
                number, epoch, tuple(sorted(composition)), composition, event.get("bet"), at,
                block=block, generation=self._generation,
            )
        )  # fmt: skip

    def lapse(self, event: dict[str, Any]) -> None:
        """The end of a cell of which results are missing."""
        number = check_count(event.get("cell"), "cell", 1)
        if number > len(self.cells):
            raise ValueError(f"cell {number} lapses before it is composed")
        cell = self.cells[number - 1]
        if cell.lapsed or cell.complete:
            raise ValueError(f"cell {number} lapses, but it {'has lapsed before' if cell.lapsed else 'is complete'}")
        missing = event.get("missing")
        if not isinstance(missing, list | tuple):
            raise ValueError(f"the lapse of cell {number} must list the arms that are missing, got {short(missing)}")
        wanted = sorted(arm for arm, count in cell.to_come.items() for _ in range(count))
        if sorted(check_arm(arm, self.asked.n_arms) for arm in missing) != wanted:
            raise ValueError(f"of cell {number} the results of {wanted} are missing, the lapse says {short(missing)}")
        if event.get("strict") is not self.asked.strict:
            raise ValueError(
                f"the lapse of cell {number} must be {'' if self.asked.strict else 'not '}strict, as the certificate "
                f"says of all, got {short(event.get('strict'))}"
            )
        cell.lapsed = True
        if self.asked.strict:
            self._generation += 1
        else:
            cell.to_come.clear()


def _block_of(event: dict[str, Any]) -> str:
    block = event.get("block")
    if not isinstance(block, str) or not block:
        raise ValueError(f"a block must be named by a text, got {short(block)}")
    return block
