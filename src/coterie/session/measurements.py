"""The results of a session as they were told, and the check that every new one passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import (
    LARGEST,
    LARGEST_SPREAD,
    FloatArray,
    IntArray,
    check_far,
    check_real_array,
    check_spread,
    short,
)  # fmt: skip
from coterie.problem.families import Model


class Measurements:
    """All results told, in the order in which they were told: arm, values, and the ticket that each answers.

    Results in units of the noise are as the noise has them (`Model.whiten`): in standard deviations where they are
    stated, otherwise in the user's units. `exact`: they come with what floats do not hold of them (`whiten_fully`).
    """

    def __init__(self, noise: Model, exact: bool) -> None:
        self._noise, self._exact = noise, exact
        self._firsts: dict[int, FloatArray] = {}  # the first result of each arm, in units of the noise
        self.arms: list[int] = []
        self.values: list[FloatArray] = []
        self.tickets: list[int | None] = []
        self._array: FloatArray = np.zeros((0, noise.dim))

    def __len__(self) -> int:
        return len(self.arms)

    def in_noise_units(self, arms: Sequence[int], values: FloatArray) -> FloatArray:
        """New results of these arms, (n, d) or (n, 2·d), in units of the noise; ValueError if one contradicts it."""
        dim = self._noise.dim
        self._check_stated(arms, values)
        white = self.units(values)
        if not self._noise.in_units:
            return white
        if len(arms) == 1 and self._is_near(arms[0], white[0, :dim]):
            return white
        check_far(white[:, :dim], values)
        where = np.asarray(arms, dtype=np.int64)
        told, first = np.unique(where, return_index=True)
        firsts = white[first, :dim]
        for i, arm in enumerate(told.tolist()):
            if arm in self._firsts:
                firsts[i] = self._firsts[arm]
        check_spread(white[:, :dim] - firsts[np.searchsorted(told, where)], values, where)
        return white

    def _is_near(self, arm: int, white: FloatArray) -> bool:
        """Whether a result surely passes both checks, as nearly every one does: to be precise takes far longer."""
        away = white - self._firsts.get(arm, white)
        return bool(np.vdot(white, white) < 0.5 * LARGEST**2 and np.vdot(away, away) < 0.5 * LARGEST_SPREAD**2)

    def _check_stated(self, arms: Sequence[int], values: FloatArray) -> None:
        """That results are such as the noise allows; ValueError names the first that is not, and its item."""
        try:
            self._noise.check(values)
        except ValueError:
            for arm, row in zip(arms, values, strict=True):
                try:
                    self._noise.check(row[None])
                except ValueError as error:
                    raise ValueError(f"{error} for item {int(arm)}") from None
            raise

    def units(self, values: FloatArray) -> FloatArray:
        """Results that passed the check, in units of the noise."""
        return self._noise.whiten_fully(values) if self._exact else self._noise.whiten(values)

    def add(self, arm: int, values: FloatArray, white: FloatArray, ticket: int | None) -> int:
        """Keep a result that passed the check; its place."""
        if arm not in self._firsts:
            self._firsts[arm] = white[: self._noise.dim].copy()
        self.arms.append(arm)
        self.values.append(values)
        self.tickets.append(ticket)
        return len(self.arms) - 1

    def add_all(self, arms: list[int], values: FloatArray, white: FloatArray, tickets: list[int | None]) -> None:
        """Keep many results that passed the check."""
        told, first = np.unique(np.asarray(arms, dtype=np.int64), return_index=True)
        for arm, place in zip(told.tolist(), first.tolist(), strict=True):
            if arm not in self._firsts:
                self._firsts[arm] = white[place, : self._noise.dim].copy()
        self.arms += arms
        self.values += list(values)
        self.tickets += tickets

    def restore(self, arms: IntArray, values: FloatArray, tickets: list[int | None]) -> None:
        """All results, of which every one was checked before."""
        told, first = np.unique(arms, return_index=True)
        white = self._noise.whiten(values[first]) if first.size else values
        self._firsts = {arm: white[i] for i, arm in enumerate(told.tolist())}
        self.arms, self.values, self.tickets = arms.tolist(), list(values), tickets
        self._array = values.reshape(-1, self._noise.dim)

    @property
    def array(self) -> FloatArray:
        """All values (n, d) as they were told; not to be changed. What is new since it was last looked at is added."""
        known = len(self._array)
        if known < len(self.values):
            self._array = np.concatenate([self._array, np.array(self.values[known:], dtype=np.float64)])
        return self._array

    def arms_of(self, rows: IntArray) -> IntArray:
        """The arms of these places."""
        return np.asarray(self.arms, dtype=np.int64)[rows]

    def copies(self) -> list[tuple[int, FloatArray]]:
        """All results as (arm, values), to be changed by whoever likes."""
        return [(arm, values.copy()) for arm, values in zip(self.arms, self.values, strict=True)]


def check_many(count: int, x: Any, ticket: Any, dim: int) -> tuple[FloatArray, list[Any]]:
    """Results of `count` arms, (n, d), and the ticket given for each, if any was."""
    rows = check_real_array(x, "measurements", booleans=True)
    if dim == 1 and rows.ndim == 1:
        rows = rows[:, None]
    if rows.shape != (count, dim):
        raise ValueError(
            f"{count} arms need measurements of shape ({count}, {dim}), got shape {rows.shape}: {short(x)}"
        )
    if ticket is None:
        return rows, [None] * count
    if isinstance(ticket, list | tuple | np.ndarray) and np.size(ticket) == count:
        return rows, list(ticket)
    raise ValueError(f"{count} arms need as many tickets, got {short(ticket)}")
