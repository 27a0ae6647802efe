"""The intervals that a certificate states: streams rebuilt from the log, every end recomputed (docs/INTERVALS.md).

The field `intervals` is a list; an entry has
    of: "groups", "differences" or "items"; delta: δ_I; count: J; formula: its name; quantile: p, or null for means
    low, high: [[d numbers] for each row], null where there is no finite end; lengths: how many results were read
Rows are items, groups as `labels` numbers them, or their pairs (k, l), k < l, for the mean of k minus that of l; of
pairs a length is [of k, of l].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from coterie.certificate.arithmetic import means
from coterie.certificate.beside import Split
from coterie.certificate.fields import field_of
from coterie.certificate.traces import confirmed_results
from coterie.problem.checks import FloatArray, IntArray, check_arm, check_count, check_delta, check_real_array, short
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Model
from coterie.problem.noise import Noise

CLOSE = 1e-6
"""Stated and recomputed ends may differ by so much of the larger of their size and the interval's width."""

_FORMULAS = {
    "known": "known", "gaussian": "gaussian", "bounded": "betting", "counts": "beta-binomial", "at-most": "catoni",
    "any": "quantile", "symmetric": "quantile", "poisson": "quantile", "exponential": "quantile",
}  # fmt: skip
_VARIANCE_SHARE = 0.1


class _AskLog(NamedTuple):
    """Asks in their order; `row`: the result of each among those that counted, -1 if it was open."""

    arms: list[int]
    rows: list[int]
    values: FloatArray

    def stream(self, items: set[int]) -> tuple[IntArray, IntArray]:
        """Results and their arms, of these items, up to the first open ask."""
        rows, arms = [], []
        for arm, row in zip(self.arms, self.rows, strict=True):
            if arm in items:
                if row < 0:
                    break
                rows.append(row)
                arms.append(arm)
        return np.array(rows, dtype=np.int64), np.array(arms, dtype=np.int64)


def check_intervals(certificate: dict[str, Any], log: Split, noise: Model) -> list[str]:
    """What is wrong with the intervals of a certificate, whose other fields were read before; nothing if none are."""
    if "intervals" not in certificate:
        return []
    stated = certificate["intervals"]
    if not isinstance(stated, list) or not all(isinstance(entry, dict) for entry in stated):
        return [f"intervals must be a list of objects, got {short(stated)}"]
    if certificate.get("revisions"):
        return ["a run that was revised has no intervals: which groups there are was chosen by their results"]
    problems: list[str] = []
    check: Callable[[dict[str, Any]], CheckedEntry]
    if certificate.get("blocks"):
        from coterie.certificate.interval_cells import CellsEntry, cells_of_log  # it builds on this module

        check = partial(CellsEntry, certificate, noise, cells_of_log(log.proof, certificate))
    else:
        check = partial(StreamEntry, certificate, noise, _asks(log, certificate))
    for place, entry in enumerate(stated):
        try:
            problems += [f"intervals {place}: {problem}" for problem in check(entry).problems]
        except (ValueError, TypeError, KeyError) as error:
            problems.append(f"intervals {place}: {error}")
    return problems


def _asks(log: Split, certificate: dict[str, Any]) -> _AskLog:
    """All asks that were answered, or open, when the last result counted; those that are neither were given up.

    That is the t-th result, or the last of those that confirmed the groups.
    """
    n_arms, dim = certificate["n_arms"], certificate["dim"]
    results = [event for event in log.proof if event.get("event") == "result"]
    counting = confirmed_results(results, certificate["t"], n_arms, dim, certificate.get("confirm"))
    t = len(counting)
    at: dict[int, tuple[int, int]] = {}  # ask: arm, row
    last = -1
    for row, event in enumerate(results):
        if event.get("asked") is False:
            continue
        last = check_count(event.get("ask", last + 1), "the number of an ask", 0)
        if last in at:
            raise ValueError(f"two results of the log answer ask {last}")
        at[last] = check_arm(event.get("arm"), n_arms), row if row < t else -1
    for entry in _open(log):
        number, arm = check_count(entry[0], "the number of an open ask", 0), check_arm(entry[1], n_arms)
        if number in at:
            raise ValueError(f"ask {number} is open in the log's first line, and has a result")
        at[number] = arm, -1
    order = sorted(at)
    for arm in range(n_arms):
        rows = [at[number][1] for number in order if at[number][0] == arm]
        counted = [row for row in rows if row >= 0]
        if counted != sorted(counted):
            raise ValueError(f"the results of arm {arm} do not stand in the order in which they were asked for")
    values = check_real_array([event.get("values") for event in counting], "the values of the results")
    return _AskLog([at[number][0] for number in order], [at[number][1] for number in order], values.reshape(-1, dim))


def _open(log: Split) -> list[Any]:
    given = log.heads[0].get("open", []) if log.heads else []
    if not isinstance(given, list) or not all(isinstance(entry, list) and len(entry) == 2 for entry in given):
        raise ValueError(f"open asks must be [ask, arm] pairs, got {short(given)}")
    return given


class CheckedEntry:
    """One entry, recomputed by `columns_of` and `recomputed`."""

    def __init__(self, certificate: dict[str, Any], noise: Model, entry: dict[str, Any]) -> None:
        self.noise, self.dim = noise, int(certificate["dim"])
        self.problems: list[str] = []
        self.of = field_of(entry, "of")
        labels, n_arms = [int(label) for label in certificate["labels"]], int(certificate["n_arms"])
        if self.of == "items":
            rows: list[Any] = [({arm},) for arm in range(n_arms)]
        elif self.of in ("groups", "differences"):
            if "question" in certificate:
                raise ValueError("items of a group need not have one mean here: only items have intervals")
            groups = [{arm for arm in range(n_arms) if labels[arm] == k} for k in range(certificate["n_clusters"])]
            rows = [(group,) for group in groups] if self.of == "groups" else list(combinations(groups, 2))
        else:
            raise ValueError(f"of must be groups, differences or items, got {short(self.of)}")
        self.quantile = self._quantile(entry)
        self.error = check_delta(field_of(entry, "delta"))
        if check_count(field_of(entry, "count"), "count", 1) != len(rows) * self.dim:
            raise ValueError(f"count must be {len(rows) * self.dim}, got {short(entry['count'])}")
        if field_of(entry, "formula") != self.formula():
            raise ValueError(f"formula must be {self.formula()!r}, got {short(entry['formula'])}")
        self.level = math.log(len(rows) * self.dim) - math.log(self.error)
        self.units = self.stated_units()
        self._compare(entry, rows)

    def formula(self) -> str:
        """The name of the formula under this noise."""
        return _FORMULAS[self.noise.kind]

    def deviations(self, shape: str, level: float) -> FloatArray:
        """(d) σ₊ of Gaussian noise."""
        raise NotImplementedError

    def read(self, groups: tuple[set[int], ...]) -> tuple[Any, list[FloatArray]]:
        """The length of a row and what it is computed from, by the items of its one or two groups."""
        raise NotImplementedError

    def recomputed(self, read: list[FloatArray], q: int) -> tuple[float, float]:
        """The ends of number q, from what was read."""
        raise NotImplementedError

    def _quantile(self, entry: dict[str, Any]) -> float | None:
        given, told = entry.get("quantile"), _FORMULAS[self.noise.kind] == "quantile"
        if not told and given is not None:
            raise ValueError(f"under {self.noise.words} intervals are of means, not of quantile {short(given)}")
        if told and (isinstance(given, bool) or not isinstance(given, float) or not 0.0 < given < 1.0):
            raise ValueError(f"quantile must lie in (0, 1), got {short(given)}")
        if self.noise.kind == "symmetric" and self.of != "items" and given != 0.5:
            raise ValueError(f"items of a group share their center only, not quantile {short(given)}")
        return given if told else None

    def stated_units(self) -> FloatArray:
        """(d) the standard deviation of each number, or a bound of it."""
        if isinstance(self.noise, Noise):
            return np.sqrt(np.diag(self.noise.covariance))
        stated = self.noise.statement
        if isinstance(stated, AtMost):
            return np.sqrt(np.diag(Noise.of(stated.covariance, self.dim).covariance))
        if isinstance(stated, Gaussian):
            self.level -= math.log(1.0 - _VARIANCE_SHARE)
            return self.deviations(stated.shape, -math.log(_VARIANCE_SHARE * self.error))
        return np.ones(self.dim)

    def _compare(self, entry: dict[str, Any], rows: Sequence[tuple[set[int], ...]]) -> None:
        low, high, lengths = (field_of(entry, name) for name in ("low", "high", "lengths"))
        for name, given in (("low", low), ("high", high), ("lengths", lengths)):
            if not isinstance(given, list) or len(given) != len(rows):
                raise ValueError(f"{name} must have {len(rows)} entries, got {short(given)}")
        for place, row in enumerate(rows):
            length, read = self.read(row)
            if lengths[place] != length:
                self.problems.append(
                    f"row {place} was made of {short(lengths[place])} results, its stream in the log has {length}: the "
                    "results that were asked for, in that order, up to the first open ask"
                )
                continue
            for name, ends in (("low", low[place]), ("high", high[place])):
                if not isinstance(ends, list) or len(ends) != self.dim:
                    raise ValueError(f"{name} of row {place} must have {self.dim} numbers, got {short(ends)}")
            for q in range(self.dim):
                wanted = self.recomputed(read, q)
                self._same_ends((low[place][q], high[place][q]), wanted, f"row {place}, number {q}")

    def _same_ends(self, stated: tuple[Any, Any], wanted: tuple[float, float], where: str) -> None:
        width = wanted[1] - wanted[0]
        for name, given, end in zip(("low", "high"), stated, wanted, strict=True):
            if given is None and not math.isfinite(end):
                continue
            number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(end)
            size = max(abs(end), width if math.isfinite(width) else 0.0)
            if not number or not abs(given - end) <= CLOSE * size:
                self.problems.append(f"the {name} end of {where} is {end!r} by the log, got {short(given)}")

    @staticmethod
    def around(center: float, radius: float) -> tuple[float, float]:
        """Ends at this distance."""
        return center - radius, center + radius

    @staticmethod
    def range_of(stated: Bounded | Counts, q: int) -> tuple[float, float]:
        """Where results begin, and how far they reach."""
        if isinstance(stated, Counts):
            return 0.0, float(stated.trials)
        lo, hi = (np.broadcast_to(ends, max(len(ends), q + 1))[q] for ends in (stated.lo, stated.hi))
        return float(lo), float(hi - lo)


class StreamEntry(CheckedEntry):
    """An entry of a run without blocks: from streams."""

    def __init__(self, certificate: dict[str, Any], noise: Model, asked: _AskLog, entry: dict[str, Any]) -> None:
        self._asked = asked
        super().__init__(certificate, noise, entry)

    def deviations(self, shape: str, level: float) -> FloatArray:
        """(d) σ₊, from the stream of all items."""
        rows, arms = self._asked.stream(set(self._asked.arms))
        return means.upper_deviations(arms, self._asked.values[rows], shape, level)

    def read(self, groups: tuple[set[int], ...]) -> tuple[Any, list[FloatArray]]:
        """The stream of one group, or those of two up to one moment."""
        if len(groups) == 1:
            stream = self._asked.stream(groups[0])[0]
            return stream.size, [self._asked.values[stream]]
        both, arms = self._asked.stream(groups[0] | groups[1])
        streams = [both[[arm in items for arm in arms.tolist()]] for items in groups]
        return [stream.size for stream in streams], [self._asked.values[stream] for stream in streams]

    def recomputed(self, read: list[FloatArray], q: int) -> tuple[float, float]:
        """The mean of one stream, or the difference of two."""
        columns = [values[:, q] for values in read]
        return self._mean(columns[0], q) if len(columns) == 1 else self._difference(columns[0], columns[1], q)

    def _mean(self, x: FloatArray, q: int) -> tuple[float, float]:
        stated = None if isinstance(self.noise, Noise) else self.noise.statement
        unit = float(self.units[q])
        if stated is None:
            return self.around(float(np.mean(x)) if x.size else 0.0, unit * means.known_radius([x.size], self.level))
        if isinstance(stated, Gaussian):
            return means.gaussian(x, unit, self.level)
        if isinstance(stated, Bounded):
            lo, width = self.range_of(stated, q)
            low, high = means.betting((x - lo) / width, self.level + math.log(2.0))
            return lo + width * low, lo + width * high
        if self.quantile is not None:
            return means.quantile(x, self.quantile, self.level)
        low, high = means.of_mean(self._sides(x, q), self.level)
        scale = float(stated.trials) if isinstance(stated, Counts) else unit
        return scale * low, scale * high

    def _difference(self, x: FloatArray, y: FloatArray, q: int) -> tuple[float, float]:
        stated = None if isinstance(self.noise, Noise) else self.noise.statement
        if stated is None or isinstance(stated, Gaussian):
            radius = float(self.units[q]) * means.known_radius([x.size, y.size], self.level)
            return self.around(float(np.mean(x) - np.mean(y)) if x.size and y.size else 0.0, radius)
        if self.quantile is not None:
            ends = [means.quantile(values, self.quantile, self.level + math.log(2.0)) for values in (x, y)]
            return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
        low, high = means.of_difference(self._sides(x, q), self._sides(y, q), self.level)
        scale = self.range_of(stated, q)[1] if isinstance(stated, Bounded | Counts) else float(self.units[q])
        return scale * low, scale * high

    def _sides(self, x: FloatArray, q: int) -> means.Sides:
        stated = None if isinstance(self.noise, Noise) else self.noise.statement
        if isinstance(stated, Bounded):
            lo, width = self.range_of(stated, q)
            return means.betting_sides((x - lo) / width, self.level + math.log(2.0))
        if isinstance(stated, Counts):
            return means.rate_sides(float(x.sum()), float(x.size * stated.trials))
        return means.catoni_sides(x / self.units[q])
