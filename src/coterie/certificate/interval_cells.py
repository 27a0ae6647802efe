"""Intervals of a run in blocks, as a certificate states them: every cell read from the log, every end recomputed.

docs/INTERVALS.md, section 6. Of a cell the results of an arm stand in the order of the log; a group's are those of its
arms, ascending.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.certificate.arithmetic import means
from coterie.certificate.freezes import LogSubject
from coterie.certificate.interval_checking import CheckedEntry
from coterie.certificate.reading import read_events
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.families import Bounded, Counts, Model
from coterie.problem.question import ExactGroups

Cell = tuple[IntArray, FloatArray]
"""Arms and values of what came."""


def cells_of_log(events: Sequence[Any], certificate: dict[str, Any]) -> list[Cell]:
    """The cells that had ended when the t-th result counted, up to the first that had not."""
    shape = certificate["n_arms"], certificate["dim"], certificate["n_clusters"]
    strict = certificate.get("strict_blocks") is True
    asked = LogSubject(ExactGroups.kind, *shape, blocks=certificate["blocks"], strict=strict)
    log = read_events(events, asked, certificate["t"])
    cells: list[Cell] = []
    for cell in log.rounds:
        if not cell.complete or (cell.lapsed and cell.number not in certificate["lapsed"]):
            break
        rows = sorted(cell.came, key=lambda row: (log.arms[row], row))
        cells.append((log.arms[rows], log.values[rows].reshape(len(rows), asked.dim)))
    return cells


class CellsEntry(CheckedEntry):
    """An entry of a run in blocks: from the cells."""

    def __init__(self, certificate: dict[str, Any], noise: Model, cells: list[Cell], entry: dict[str, Any]) -> None:
        self._cells, self._drawn = cells, certificate["blocks"] == "drawn"
        if not self._drawn and entry.get("of") != "differences":
            raise ValueError(f"in blocks with offsets only differences have intervals, got {short(entry.get('of'))}")
        super().__init__(certificate, noise, entry)

    def formula(self) -> str:
        """Under Gaussian noise that of a known one, and counts are sub-Gaussian, but in drawn blocks."""
        if self.noise.kind == "counts":
            return "betting" if self._drawn else "known"
        return "known" if self.noise.kind == "gaussian" else super().formula()

    def stated_units(self) -> FloatArray:
        """(d) the standard deviation of each number, or a bound of it."""
        stated = None if self.noise.kind == "known" else getattr(self.noise, "statement", None)
        if isinstance(stated, Counts):
            return np.full(self.dim, math.sqrt(stated.trials / 4.0))
        return super().stated_units()

    def read(self, groups: tuple[set[int], ...]) -> tuple[Any, list[FloatArray]]:
        """The numbers that cells give, and their weights."""
        lengths, numbers, weights = [0] * len(groups), [], []
        for arms, values in self._cells:
            sides = [[i for i, arm in enumerate(arms.tolist()) if arm in group] for group in groups]
            if not all(sides):
                continue
            lengths = [total + len(side) for total, side in zip(lengths, sides, strict=True)]
            for of_sides in self._parts(sides):
                sums = [np.sum(values[side] - values[sides[-1][0]], axis=0) / len(side) for side in of_sides]
                numbers.append(sums[0] - sums[1] if len(sums) == 2 else sums[0] + values[sides[-1][0]])
                weights.append(1.0 / sum(1.0 / len(side) for side in of_sides) if len(sums) == 2 else 1.0)
        length: Any = lengths if len(groups) == 2 else lengths[0]
        return length, [np.array(numbers).reshape(-1, self.dim), np.array(weights)]

    def _parts(self, sides: list[list[int]]) -> list[list[list[int]]]:
        """The places of a cell's results that make a number each: for one group, or for each of two."""
        single = self.noise.kind == "any"
        if self._drawn or self.formula() in ("known", "catoni"):
            return [[side[:1] for side in sides] if single else sides]
        count = min(len(side) for side in sides)
        parts = []
        for j in range(count):
            part = []
            for side in sides:
                size, longer = (1, 0) if single else divmod(len(side), count)
                begin = j * size + min(j, longer)  # the first parts are longer by one
                part.append(side[begin : begin + size + (j < longer)])
            parts.append(part)
        return parts

    def recomputed(self, read: list[FloatArray], q: int) -> tuple[float, float]:
        """The ends of number q."""
        x, weights, unit = read[0][:, q], read[1], float(self.units[q])
        if self.formula() == "betting":
            stated = getattr(self.noise, "statement", None)
            assert isinstance(stated, Bounded | Counts)
            begin, width = self.range_of(stated, q)
            if self.of == "differences":
                begin, width = -width, 2.0 * width
            inside = np.minimum(1.0, np.maximum(0.0, (x - begin) / width))
            low, high = means.betting(inside, self.level + math.log(2.0))
            return begin + width * low, begin + width * high
        if self.formula() == "catoni":
            low, high = means.of_mean(means.catoni_sides(x / unit, np.sqrt(weights)), self.level)
            return unit * low, unit * high
        if self.quantile is not None:
            return means.quantile(x, self.quantile, self.level)
        n = math.fsum(weights.tolist())
        radius = unit * means.known_radius([n], self.level)
        if not math.isfinite(radius):
            return -math.inf, math.inf
        return self.around(math.fsum((weights * x).tolist()) / n, radius)

    def deviations(self, shape: str, level: float) -> FloatArray:
        """(d) σ₊: residuals from predictions made before the cell, centred in each part that cells have joined."""
        arms = sorted({arm for of_cell, _ in self._cells for arm in of_cell.tolist()})
        part: dict[int, int] = {}
        predicted = {arm: np.zeros(self.dim) for arm in arms}
        times = dict.fromkeys(arms, 0)
        squares, reach, count = np.zeros(self.dim), np.zeros(self.dim), 0
        for number, (of_cell, values) in enumerate(self._cells):
            listed = of_cell.tolist()
            if not listed:
                continue
            x = values - values[0]
            reach = np.maximum(reach, np.abs(x).max(axis=0))
            rest = np.array([value - predicted[arm] for arm, value in zip(listed, x, strict=True)])
            own = np.array([part.get(arm, -1) for arm in listed])
            shifts: dict[int, FloatArray] = {}
            for each in sorted({int(p) for p in own} - {-1}):
                inside = rest[own == each]
                shifts[each] = inside.mean(axis=0)
                squares = squares + np.square(inside - shifts[each]).sum(axis=0)
                count += len(inside) - 1
            sizes = [(int((own == each).sum()), -each) for each in shifts]
            joined = -max(sizes)[1] if sizes else number
            shift = shifts[joined] if sizes else x.mean(axis=0)
            for arm in [arm for arm, each in part.items() if each in shifts]:
                predicted[arm] = predicted[arm] + (shifts[part[arm]] - shift)
                part[arm] = joined
            for arm, value in zip(listed, x, strict=True):
                part[arm] = joined
                total = predicted[arm] * times[arm] + (value - shift)
                times[arm] += 1
                predicted[arm] = total / times[arm]
        return means.deviations_of(squares, reach, count, shape, level)
