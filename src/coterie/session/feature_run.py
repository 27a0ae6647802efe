"""Streams: an item with a panel of features, under one number, so that asks, lines and records know it as any arm.

The run of the method measures panels (`coterie.methods.capabilities.MeasuresPanels`); here it is seen by streams. The
log keeps of each result its stream and the numbers of its panel: what was never measured takes no room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.methods.contract import Departure, Followed, HeldUp, MethodRun, PanelPull, Pull, Record
from coterie.methods.reports import Evidence
from coterie.problem.checks import FloatArray, IntArray, check_far, check_real_array, check_spread, has_hole, short
from coterie.problem.families import Bounded, Unknown
from coterie.problem.features import ABOUT_HOLES, HOLES, Features
from coterie.problem.noise import Noise
from coterie.problem.settings import Settings
from coterie.session.lines import Measurements


class FeatureRun(MethodRun):
    """A run that measures panels, seen by streams."""

    inner: MethodRun

    def __init__(self, inner: MethodRun, features: Features) -> None:
        self.inner, self._features = inner, features

    def ask(self) -> Pull | None:
        pull = self.inner.ask()
        if pull is None:
            return None
        assert isinstance(pull, PanelPull)
        return Pull(self._features.stream(pull.arm, pull.panel), pull.round)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        item, panel = self._features.split(arm)
        self.inner.count_panel(item, panel, x[: len(self._features.features_of(panel))], of_round, asked)

    def give_up(self, arm: int, of_round: int) -> None:
        self.inner.give_up_panel(*self._features.split(arm), of_round)

    def open_recorded(self, arm: int, of_round: int) -> None:
        self.inner.open_panel(*self._features.split(arm), of_round)

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        return self.inner.held_up([Pull(self._features.split(ask.arm)[0], ask.round) for ask in asks])

    @property
    def done(self) -> bool:
        return self.inner.done

    @property
    def proven(self) -> bool:
        return self.inner.proven

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return self.inner.guess

    def evidence(self) -> Evidence:
        return self.inner.evidence()

    def follow(self, record: Record) -> Followed:
        by_panel = self._by_panel(record)
        try:
            followed = self.inner.follow(by_panel)
        except Departure as error:
            raise Departure(error.entry, self._features.stream(error.arm, error.panel or 0)) from None
        assert by_panel.panels is not None
        known = by_panel.arms >= 0
        record.arms[known] = by_panel.arms[known] * self._features.n_panels + by_panel.panels[known]
        return followed

    def apply(self, record: Record) -> None:
        self.inner.apply(self._by_panel(record))

    def _by_panel(self, record: Record) -> Record:
        items, panels = np.divmod(record.arms, self._features.n_panels)
        unknown = record.arms < 0
        items[unknown] = panels[unknown] = -1
        return record._replace(arms=items, panels=panels)


class PanelMeasurements(Measurements):
    """All results told by streams. A row has the width of the largest panel, with NaN for holes and behind the panel;
    in the log each result has the numbers of its panel. Methods get results as they were told.
    """

    by_panel = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.noise, exact=False)
        assert settings.features is not None
        self.features = settings.features
        self.width = settings.features.width
        self._array = np.zeros((0, self.width))
        self._units = settings.noise.deviations if isinstance(settings.noise, Noise) else None

    def checked(self, arm: int, given: Any) -> FloatArray:
        """(width) the result of a panel: a number, numbers in its order, or a dictionary by feature.

        None, NaN or a missing key is a hole. ValueError says what is wrong.
        """
        features, panel = self.features, self.features.split(arm)[1]
        members, name = features.features_of(panel), features.panel_name(panel)
        if isinstance(given, Mapping):
            given = _in_order(features, panel, given)
        cells = list(given) if isinstance(given, list | tuple | np.ndarray) and np.ndim(given) else [given]
        if len(cells) != len(members):
            wanted = short([features.names[j] for j in members]) if len(members) > 1 else "1 number"
            raise ValueError(f"a result of {name!r} must have {wanted}, got {short(given)}")
        gone = [i for i, cell in enumerate(cells) if has_hole(cell)]
        if gone and not features.holes:
            lacking = ", ".join(repr(features.names[members[i]]) for i in gone[:5])
            raise ValueError(
                f"a result of {name!r} lacks {lacking}: start with holes={HOLES!r} if {ABOUT_HOLES}; it then counts "
                "where it can. Otherwise measure it again, or give the ask up (Session.forget)"
            )
        if len(gone) == len(cells):
            raise ValueError(f"a result of {name!r} has no number at all: give the ask up (Session.forget)")
        row = np.full(self.width, np.nan)
        there = [i for i in range(len(cells)) if i not in set(gone)]
        row[there] = check_real_array([cells[i] for i in there], f"a result of {name!r}", booleans=True)
        return row

    def in_noise_units(self, arms: Sequence[int], values: FloatArray) -> FloatArray:
        """The same results (n, width), if the noise allows all of them; ValueError if one contradicts it."""
        firsts: dict[int, FloatArray] = {}
        for arm, row in zip(arms, values, strict=True):
            self._check(int(arm), row, firsts)
        return values

    def _check(self, arm: int, row: FloatArray, firsts: dict[int, FloatArray]) -> None:
        members = np.array(self.features.features_of(self.features.split(arm)[1]))
        there = np.flatnonzero(~np.isnan(row[: members.size]))
        which, numbers = members[there], row[there][None]
        stated = self._noise.statement if isinstance(self._noise, Unknown) else None
        if isinstance(stated, Bounded) and len(stated.lo) > 1:
            Bounded(np.array(stated.lo)[which], np.array(stated.hi)[which]).check(numbers)
        else:
            self._noise.check(numbers)
        if self._units is None:
            return
        white = numbers / self._units[which]
        check_far(white, numbers)
        first = self._firsts.get(arm)
        first = firsts.setdefault(arm, row) if first is None else first
        away = white - first[there] / self._units[which]
        item = self.features.split(arm)[0]
        check_spread(np.nan_to_num(away, nan=0.0), numbers, np.array([item]))  # a hole in the first says nothing

    def units(self, values: FloatArray) -> FloatArray:
        return values

    def add(self, arm: int, values: FloatArray, white: FloatArray, ticket: int | None) -> int:
        self.add_all([arm], values[None], white[None], [ticket])
        return len(self.arms) - 1

    def add_all(self, arms: list[int], values: FloatArray, white: FloatArray, tickets: list[int | None]) -> None:
        self.restore_more(arms, values)
        self.tickets += tickets

    def restore(self, arms: IntArray, values: FloatArray, tickets: list[int | None]) -> None:
        self._firsts, self.arms, self.values, self.tickets = {}, [], [], tickets
        self._array = np.zeros((0, self.width))
        self.restore_more(arms.tolist(), values)

    def restore_more(self, arms: Sequence[int], values: FloatArray) -> None:
        """Keep results that passed the check, each with as many numbers as its panel has."""
        for arm, row in zip(arms, values, strict=True):
            kept = row[: len(self.features.features_of(self.features.split(arm)[1]))].copy()
            self._firsts.setdefault(arm, kept)
            self.arms.append(arm)
            self.values.append(kept)

    @property
    def array(self) -> FloatArray:
        """All values (n, width) as they were told, NaN where there are none; not to be changed."""
        known = len(self._array)
        if known < len(self.values):
            more = np.full((len(self.values) - known, self.width), np.nan)
            for row, values in zip(more, self.values[known:], strict=True):
                row[: values.size] = values
            self._array = np.concatenate([self._array, more])
        return self._array

    def by_name(self, row: int) -> dict[str, float]:
        """The numbers of a result, by feature; without holes."""
        members = self.features.features_of(self.features.split(self.arms[row])[1])
        pairs = zip(members, self.values[row].tolist(), strict=True)
        return {self.features.names[j]: value for j, value in pairs if value == value}


def _in_order(features: Features, panel: int, given: Mapping[Any, Any]) -> list[Any]:
    """Numbers by feature in the order of the panel; None for those that are not there."""
    members = features.features_of(panel)
    numbers: dict[int, Any] = {}
    for key, value in given.items():
        feature = feature_number(features, key)
        if feature in numbers:
            raise ValueError(f"feature {features.names[feature]!r} is told twice: {short(dict(given))}")
        if feature not in members:
            raise ValueError(
                f"feature {features.names[feature]!r} is not in {features.panel_name(panel)!r}, which has "
                f"{short([features.names[j] for j in members])}"
            )
        numbers[feature] = value
    return [numbers.get(j) for j in members]


def feature_number(features: Features, key: Any) -> int:
    """The number of a feature that is called by its name, or by its number where features have none."""
    return features.feature_of(key if isinstance(key, str) else str(key))
