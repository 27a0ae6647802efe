"""A method that measures every item on every panel in turn, for tests of what is around a method with features.

It stops when every item has `ROUNDS` results of every panel, and groups the items by the mean of all their numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coterie.methods import table
from coterie.methods.contract import MethodRun, PanelPull
from coterie.methods.reports import Evidence
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings

ROUNDS = 2


class InTurnByFeature(MethodRun):
    """Every item on every panel in turn."""

    def __init__(self, settings: Settings) -> None:
        assert settings.features is not None
        self._settings, self._features = settings, settings.features
        self._asked: dict[tuple[int, int], int] = {}
        self.told: list[tuple[int, int, list[float], int, bool]] = []
        self._made: list[dict[str, Any]] = []

    def ask(self) -> PanelPull | None:
        cells = ((item, panel) for panel in range(self._features.n_panels) for item in range(self._settings.n_arms))
        item, panel = min(cells, key=lambda cell: self._asked.get(cell, 0))
        if self.done:
            return None
        self.open_panel(item, panel, 0)
        if self._asked[item, panel] == 2 and not self._made:
            self._made.append({"event": "freeze", "epoch": 0, "labels": [0], "cores": [], "features": []})
            return PanelPull(item, 1, panel)
        return PanelPull(item, 0, panel)

    def open_panel(self, arm: int, panel: int, of_round: int) -> None:
        self._asked[arm, panel] = self._asked.get((arm, panel), 0) + 1

    def give_up_panel(self, arm: int, panel: int, of_round: int) -> None:
        self._asked[arm, panel] -= 1

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        raise AssertionError("features are measured one by one here")

    def count_panel(self, arm: int, panel: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self.told.append((arm, panel, x[: len(self._features.features_of(panel))].tolist(), of_round, asked))

    def new_decisions(self) -> list[dict[str, Any]]:
        made, self._made = self._made, []
        return made

    @property
    def t(self) -> int:
        return len(self.told)

    @property
    def pulls(self) -> IntArray:
        return np.bincount([row[0] for row in self.told], minlength=self._settings.n_arms).astype(np.int64)

    @property
    def done(self) -> bool:
        return len(self.told) >= ROUNDS * self._features.n_panels * self._settings.n_arms

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        if not self.told:
            return None
        sums, counts = (np.zeros((self._settings.n_arms, self._features.dim)) for _ in range(2))
        for item, panel, values, _, _ in self.told:
            for feature, value in zip(self._features.features_of(panel), values, strict=True):
                if value == value:
                    sums[item, feature] += value
                    counts[item, feature] += 1
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        whole = np.nan_to_num(means).mean(axis=1)
        labels = (whole > whole.mean()).astype(np.int64)
        with np.errstate(invalid="ignore"):
            centers = [np.nansum(means[labels == k], axis=0) / np.sum(counts[labels == k] > 0, axis=0) for k in (0, 1)]
        return labels, np.array(centers)

    def evidence(self) -> Evidence:
        return Evidence(float(self.t), float(ROUNDS * self._features.n_panels * self._settings.n_arms), None)

    def cost_left(self) -> float | None:
        return 0.0 if self.done else None

    def certificate(self, decisions: list[dict[str, Any]]) -> dict[str, Any] | None:
        return None


def use_in_turn_by_feature(monkeypatch: Any) -> None:
    """Let sessions with features be run by this method for the time of a test."""
    croc = table.METHODS["croc"]

    def begun(settings: Settings) -> MethodRun:
        return croc.start(settings) if settings.features is None else InTurnByFeature(settings)

    monkeypatch.setitem(table._table, "croc", replace(croc, by_feature=True, start=begun))
