"""The reader of measurement logs, one for every question: results, and what was frozen and composed between them.

Which events a log may have depends on the question (`EVENTS`); `coterie.certificate.log` lists them. A result of a
round must be one that the round asked for. For nearness there are no rounds with events of their own: number j + 1 of a
result says that it was asked for after freeze j, and results of an arm stand in the order in which they were asked for.
In a run in blocks (docs/BLOCKS.md) cells take the place of rounds: every result that was asked for is of a cell that
was composed before, in one block, and a cell that stays unfinished ends by a lapse (`coterie.certificate.composed`).
A new kind of event is a method here and a word in `EVENTS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.composed import Cells, Composition, PanelRounds
from coterie.certificate.freezes import (
    NEARNESS,
    Freeze,
    FrozenGroups,
    LogSubject,
    bounds_of,
    frozen_groups_of,
    frozen_of,
)
from coterie.problem.checks import FloatArray, IntArray, check_arm, check_count, check_real_array, short
from coterie.problem.families import Unknown

EVENTS = {
    "groups": ("result", "freeze", "list", "statements", "round"),
    "resolution": ("result", "freeze", "resolution"),
    "linkage": ("result", "freeze"),
    "table": ("result",),
}
"""What a proof of each question uses of a log."""
IN_BLOCKS = ("result", "freeze", "cell", "lapse")
"""The same for K groups in blocks."""


@dataclass(frozen=True)
class Listing:
    """A list of partitions: the results before it was made, and the settled pairs (arm, arm, count, count) behind it.

    A pair is settled by so many of the first results of its two arms.
    """

    at: int
    pairs: IntArray


@dataclass(frozen=True)
class FrozenStatements:
    """Statements "item m is not equal to the representative of group l" that were frozen for a deadline.

    `number`: of the epoch whose share of δ they have; `listed`: (M, K) which they are.
    """

    number: int
    at: int
    representatives: tuple[int, ...]
    listed: NDArray[np.bool_]


@dataclass(frozen=True)
class ChosenResolution:
    """A resolution that was chosen on the way, when `at` results had counted, for epoch `epoch` and later ones."""

    epoch: int
    at: int
    epsilon: FloatArray
    eta: FloatArray


@dataclass(frozen=True)
class Log:
    """The first t results of a log, in its order, and what was decided on the way.

    `candidates` are freezes with tests of nearness, `freezes` those of K groups.
    """

    arms: IntArray  # (t)
    panels: IntArray  # (t) where features are measured apart, else empty
    values: FloatArray  # (t, d), in the user's units, NaN for holes; of panels as many as the largest has
    round_of: IntArray  # (t); 0: none
    alone: NDArray[np.bool_]  # (t) asked for while nothing else was
    asked: NDArray[np.bool_]  # (t) asked for at all
    freezes: tuple[Freeze, ...]
    candidates: tuple[FrozenGroups, ...]
    rounds: tuple[Composition, ...]
    listing: Listing | None
    statements: FrozenStatements | None
    choices: tuple[ChosenResolution, ...]

    def stacks(self, which: NDArray[np.bool_], n_arms: int) -> list[FloatArray]:
        """Of each arm, (n, d): those of these results that are its own, in their order."""
        rows = np.flatnonzero(which)
        rows = rows[np.argsort(self.arms[rows], kind="stable")]
        ends = np.cumsum(np.bincount(self.arms[rows], minlength=n_arms))
        return np.split(self.values[rows], ends[:-1])

    def contradiction(self, noise: Unknown) -> tuple[int, str] | None:
        """The first result that contradicts what was stated about the noise, and why; None if none does."""
        values = self.values
        if np.isnan(values).any():  # a hole is as possible as any number of its column
            values = np.where(np.isnan(values), np.nan_to_num(np.nanmax(values, axis=0)), values)
        if _refusal(noise, values) is None:
            return None
        reasons = ((row, _refusal(noise, value[None])) for row, value in enumerate(values))
        return next((row, reason) for row, reason in reasons if reason is not None)


def _refusal(noise: Unknown, values: FloatArray) -> str | None:
    try:
        noise.check(values)
        return None
    except ValueError as error:
        return str(error)


def read_events(events: Sequence[Any], asked: LogSubject, t: int) -> Log:
    """The first t results of a log and what was decided before; the rest is left aside. ValueError: what is wrong."""
    kinds = IN_BLOCKS if asked.blocks else EVENTS[asked.kind]
    if asked.kind in NEARNESS:
        _check_dimension(events, asked.dim)
    reader = _Reader(asked)
    for place, event in enumerate(events):
        kind = event.get("event") if isinstance(event, dict) else None
        if not isinstance(kind, str) or kind not in kinds:
            if kind in ("cell", "lapse"):
                raise ValueError(f"event {place} of the log is a {kind}, but the certificate says nothing of blocks")
            listed = [f"a {name}" for name in kinds]
            words = " or ".join([", ".join(listed[:-1]), *listed[-1:]]) if len(listed) > 1 else listed[0]
            words += " (the certificate is of a run in blocks)" if asked.blocks else ""
            raise ValueError(f"event {place} of the log must be {words}, got {short(event)}")
        if kind == "result" and len(reader.arms) == t:
            break
        try:
            getattr(reader, f"read_{kind}")(event)
        except (ValueError, TypeError) as error:
            raise ValueError(f"event {place} of the log: {error}") from None
    if len(reader.arms) < t:
        raise ValueError(f"the log holds {len(reader.arms)} results, the certificate counts {t}: it is not complete")
    return reader.log()


def _check_dimension(events: Sequence[Any], dim: int) -> None:
    """That the first result has so many values, before anything of that size is made."""
    results = (event for event in events if isinstance(event, dict) and event.get("event") == "result")
    values = next(results, {}).get("values")
    if not isinstance(values, list | tuple | np.ndarray) or len(values) != dim:
        raise ValueError(f"the certificate is about results of {dim} numbers, the first of the log is {short(values)}")


class _Reader:
    """What has been read of a log so far, and the rules that the next event must keep."""

    def __init__(self, asked: LogSubject) -> None:
        self.asked = asked
        self.arms: list[int] = []
        self.numbers: list[int] = []  # the rounds of results
        self.values: list[Any] = []
        self.missing: list[tuple[int, int]] = []  # row and number of holes
        self.alone: list[bool] = []
        self.asked_for: list[bool] = []
        self.freezes: list[Freeze] = []
        self.candidates: list[FrozenGroups] = []
        self.rounds: list[Composition] = []
        self.listing: Listing | None = None
        self.statements: FrozenStatements | None = None
        self.choices: list[ChosenResolution] = []
        self._bounds: tuple[FloatArray, FloatArray] | None = None  # ε and η of the last freeze, or chosen since
        self._last_round: dict[int, int] = {}  # of each arm, where nearness is asked about
        self._cells = Cells(asked, self.rounds)
        self._panels = None if asked.features is None else PanelRounds(asked, self.rounds)

    def log(self) -> Log:
        """All of it."""
        values = check_real_array(self.values, "the values of the results")
        if self.missing:
            values[tuple(np.array(self.missing).T)] = np.nan
        if values.shape != (len(self.arms), self._width):
            raise ValueError(f"every result must have {self._width} values, they have shape {values.shape}")
        panels = np.array([] if self._panels is None else self._panels.panels, dtype=np.int64)
        arms, numbers = (np.array(column, dtype=np.int64) for column in (self.arms, self.numbers))
        alone, asked_for = (np.array(column, dtype=bool) for column in (self.alone, self.asked_for))
        freezes, candidates = tuple(self.freezes), tuple(self.candidates)
        rounds, choices = tuple(self.rounds), tuple(self.choices)
        single = self.listing, self.statements
        return Log(arms, panels, values, numbers, alone, asked_for, freezes, candidates, rounds, *single, choices)

    @property
    def _width(self) -> int:
        features = self.asked.features
        return self.asked.dim if features is None else features.width

    def read_result(self, event: dict[str, Any]) -> None:
        arm = check_arm(event.get("arm"), self.asked.n_arms)
        number, wanted = self._place_of(event, arm)
        values, alone, asked_for = event.get("values"), event.get("alone", False), event.get("asked", True)
        if not isinstance(values, list | tuple | np.ndarray) or len(values) != wanted:
            raise ValueError(f"a result must have {wanted} values, got {short(values)}")
        if self.asked.holes:
            values = self._without_holes(values)
        if self.asked.kind in NEARNESS:
            self._keep_order(arm, number, asked_for)
        elif self.asked.kind == "groups":
            if not isinstance(alone, bool):
                raise ValueError(f"alone must be true or false, got {short(alone)}")
            if not self.asked.blocks and self._panels is None:
                self._put_in_round(arm, number)
        self.arms.append(arm)
        self.numbers.append(number)
        self.values.append([*values, *[0.0] * (self._width - wanted)] if wanted < self._width else values)
        self.alone.append(alone is True)
        self.asked_for.append(asked_for is not False)

    def _place_of(self, event: dict[str, Any], arm: int) -> tuple[int, int]:
        """The round or cell of a result, 0 for none, and how many values it must have."""
        if self._panels is not None:
            return self._panels.take_result(event, arm, len(self.arms))
        if "panel" in event:
            raise ValueError("a result of a panel, but the certificate says nothing of features")
        number: Any = event.get("round")
        if self.asked.blocks:
            number = self._cells.take_result(event, arm, len(self.arms))
        elif "cell" in event:
            raise ValueError("a result of a cell, but the certificate says nothing of blocks")
        elif self.asked.kind != "table":
            number = check_count(number, "round", 0)
        elif number != 0:
            raise ValueError(f"a row of a table is of no round, got {short(number)}")
        return int(number), self.asked.dim

    def _without_holes(self, values: Any) -> list[Any]:
        """The values with 0 for holes, whose places are kept."""
        places = [place for place, value in enumerate(values) if value is None]
        if len(places) == len(values):
            raise ValueError("a result must have a number, all of this one's are missing")
        self.missing += [(len(self.arms), place) for place in places]
        return [0.0 if value is None else value for value in values]

    def _put_in_round(self, arm: int, number: int) -> None:
        if not number:
            return
        if number > len(self.rounds):
            raise ValueError(f"a result of round {number} while the last round is {len(self.rounds)}")
        composed = self.rounds[number - 1]
        if composed.to_come.get(arm, 0) == 0:
            raise ValueError(f"round {number} has no pull (left) of arm {arm}")
        composed.to_come[arm] -= 1
        composed.came.append(len(self.arms))

    def _keep_order(self, arm: int, number: int, asked_for: Any) -> None:
        if not isinstance(asked_for, bool):
            raise ValueError(f"asked must be true or false, got {short(asked_for)}")
        frozen, last = len(self.candidates), self._last_round.get(arm, 0)
        if number > frozen:
            raise ValueError(f"a result of round {number} after {frozen} freezes: it was asked for later")
        if number > 0 and not asked_for:
            raise ValueError(f"a result of round {number} that nobody asked for: its round must be 0")
        if asked_for and number < last:
            raise ValueError(
                f"a result of arm {arm} of round {number} after one of round {last}: results of an "
                "arm must stand in the order in which they were asked for"
            )
        if asked_for:
            self._last_round[arm] = number

    def read_cell(self, event: dict[str, Any]) -> None:
        self._cells.compose(event, len(self.arms), len(self.freezes))

    def read_lapse(self, event: dict[str, Any]) -> None:
        self._cells.lapse(event)

    def read_freeze(self, event: dict[str, Any]) -> None:
        if self.asked.kind in NEARNESS:
            self._read_candidate(event)
            return
        assert self.asked.n_clusters is not None
        frozen = frozen_of(event, event.get("epoch"), len(self.arms), self.asked.n_arms, self.asked.n_clusters)
        if self.listing is not None:
            raise ValueError("a freeze after a list of partitions, which has the whole share of both")
        if self.statements is not None:
            raise ValueError("a freeze after single statements were frozen, which are the last epoch")
        if frozen.number != len(self.freezes):
            raise ValueError(f"freeze {frozen.number} is out of order: {len(self.freezes)} comes next")
        self.freezes.append(frozen if self._panels is None else replace(frozen, bet=self._panels.freeze(event)))

    def _read_candidate(self, event: dict[str, Any]) -> None:
        number = check_count(event.get("epoch"), "epoch", 0)
        if number != len(self.candidates):
            raise ValueError(f"freeze {number} is out of order: {len(self.candidates)} comes next")
        try:
            candidate = frozen_groups_of(event, number, len(self.arms), self.asked)
            self._keep_bounds(candidate)
        except (ValueError, TypeError) as error:
            raise ValueError(f"freeze {number}: {error}") from None
        self.candidates.append(candidate)

    def _keep_bounds(self, candidate: FrozenGroups) -> None:
        """That a freeze has the resolution that was asked for when it was made."""
        if candidate.epsilon is None or candidate.eta is None:
            return
        bounds = candidate.epsilon, candidate.eta
        for name, stated, wanted in zip(("epsilon", "eta"), bounds, self._bounds or bounds, strict=True):
            if not np.array_equal(stated, wanted):
                raise ValueError(
                    f"{name} must be {wanted.tolist()}, as chosen last, got {stated.tolist()}: nobody has chosen that"
                )
        self._bounds = bounds

    def read_resolution(self, event: dict[str, Any]) -> None:
        epoch = check_count(event.get("epoch"), "epoch", 0)
        if epoch != len(self.candidates):
            raise ValueError(f"a resolution is chosen for epoch {epoch}, but {len(self.candidates)} comes next")
        self._bounds = bounds_of(event, self.asked.dim, self.asked.norm)
        self.choices.append(ChosenResolution(epoch, len(self.arms), *self._bounds))

    def read_round(self, event: dict[str, Any]) -> None:
        if self._panels is not None:
            self._panels.compose(event, len(self.arms))
            return
        number = check_count(event.get("round"), "round", 1)
        if number != len(self.rounds) + 1:
            raise ValueError(f"round {number} is out of order: {len(self.rounds) + 1} comes next")
        epoch = check_count(event.get("epoch"), "epoch", 0)
        of_statements = self.statements is not None and epoch == self.statements.number
        if not of_statements and epoch >= (len(self.freezes) if self.listing is None else 1):
            raise ValueError(f"round {number} is for epoch {epoch}, which is not frozen yet")
        pulls = event.get("pulls")
        if not isinstance(pulls, list | tuple) or not pulls:
            raise ValueError(f"round {number} must say how often it pulls which arm, got {short(pulls)}")
        composition: dict[int, int] = {}
        for pair in pulls:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"round {number} must list [arm, count] pairs, got {short(pair)}")
            arm = check_arm(pair[0], self.asked.n_arms)
            if arm in composition:
                raise ValueError(f"round {number} lists arm {arm} twice")
            composition[arm] = check_count(pair[1], "count", 1)
        settled = self._settled_pairs(event.get("settled", []))
        if settled.size and self.listing is None:
            raise ValueError(f"round {number} names settled pairs, but is of no list")
        arms = tuple(composition)
        self.rounds.append(Composition(number, epoch, arms, composition, event.get("bet"), len(self.arms), settled))

    def read_list(self, event: dict[str, Any]) -> None:
        if self.freezes or self.rounds or self.listing is not None:
            raise ValueError("a list of partitions comes before all freezes and rounds, and once")
        if check_count(event.get("epoch"), "epoch", 0) != 0:
            raise ValueError(f"a list of partitions is epoch 0, got {short(event.get('epoch'))}")
        self.listing = Listing(len(self.arms), self._settled_pairs(event.get("pairs")))

    def read_statements(self, event: dict[str, Any]) -> None:
        if self.statements is not None or self.listing is not None:
            raise ValueError("single statements are frozen once, and not where there is a list of partitions")
        if check_count(event.get("epoch"), "epoch", 0) != len(self.freezes):
            raise ValueError(f"statements are of epoch {len(self.freezes)}, which is next, got {short(event['epoch'])}")
        leads, rows = event.get("representatives"), event.get("listed")
        n_arms, n_groups = self.asked.n_arms, self.asked.n_clusters or 0
        if not isinstance(leads, list | tuple) or len(leads) != n_groups:
            raise ValueError(f"statements need a representative of each of the {n_groups} groups, got {short(leads)}")
        items = tuple(check_arm(lead, n_arms) for lead in leads)
        if len(set(items)) < n_groups:
            raise ValueError(f"representatives must be different items, got {short(leads)}")
        if not isinstance(rows, list | tuple) or len(rows) != n_arms:
            raise ValueError(f"statements must be listed for each of the {n_arms} items, got {short(rows)}")
        listed = np.zeros((n_arms, n_groups), dtype=bool)
        for item, groups in enumerate(rows):
            if not isinstance(groups, list | tuple) or (groups and item in items):
                raise ValueError(
                    f"statements of item {item} must be groups, none for a representative: {short(groups)}"
                )
            listed[item, [check_arm(group, n_groups) for group in groups]] = True
        self.statements = FrozenStatements(len(self.freezes), len(self.arms), items, listed)

    def _settled_pairs(self, given: Any) -> IntArray:
        """(n, 4): two arms, and how many of the first results of each."""
        if not isinstance(given, list | tuple):
            raise ValueError(f"settled pairs must be a list, got {short(given)}")
        rows = []
        for entry in given:
            if not isinstance(entry, list | tuple) or len(entry) != 4:
                raise ValueError(f"a settled pair must be [arm, arm, count, count], got {short(entry)}")
            arm, other = (check_arm(each, self.asked.n_arms) for each in entry[:2])
            if arm == other:
                raise ValueError(f"a settled pair must be of two arms, got {short(entry)}")
            rows.append([arm, other, *(check_count(each, "count", 1) for each in entry[2:])])
        return np.array(rows, dtype=np.int64).reshape(-1, 4)
