"""What is assumed about the noise of recorded measurements, beside what all of them show.

A noise that was stated is compared with the spread of repeats, a bound on it with differences of repeats. Rows that do
not belong are named first, and left out of that spread, never of the answer. Where no size was stated, none is checked:
then it is said what is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from coterie.evidence.exact.pair_tests import sorted_stacks
from coterie.evidence.faults import evidence_against_bound
from coterie.problem.checks import IntArray
from coterie.problem.families import AnyNoise, AtMost, Model, Unknown, noise_of, stated_deviations
from coterie.problem.noise import Noise
from coterie.tables.checks.misfits import MISFIT_PROBABILITY, misfits, rank_misfits
from coterie.tables.checks.row_order import Order
from coterie.tables.checks.slips import SLIP_PROBABILITY, TAIL_PROBABILITY, Slip, Slips, slips_in
from coterie.tables.checks.spread import NOISE_PROBABILITY, Spread
from coterie.tables.errors import TableError, checked
from coterie.tables.pool import Pool

_RATED = ("counts", "poisson", "exponential")  # whose spread follows from the rate of the item
_SAME_DISTRIBUTION = ("any", "gaussian", *_RATED)  # under which equal items have the same distribution
_MOST_THIN = 12  # items of a group that are named
_MOST_SLIPS = 12  # values of a table in blocks that are named


# The fields of `Misfit` and `ThinItem` are keys in the JSON of an answer, in their order.


@dataclass(frozen=True)
class Misfit:
    """An item that does not fit the group, from 1, that it was put in; by χ², or by p of a test by ranks."""

    arm: int
    name: str
    group: int
    chi2: float | None
    p: float | None


@dataclass(frozen=True)
class ThinItem:
    """An item that lies far from the rest of its group, from 1: how many rows it has, its mean, and theirs."""

    arm: int
    name: str
    group: int
    rows: int
    mean: list[float]
    of_the_others: list[float]


@dataclass(frozen=True)
class CheckedPool:
    """A pool beside what was stated about its noise: the rows that do not belong, and the spread without them."""

    pool: Pool
    noise: Model
    slips: Slips
    spread: Spread
    verdicts: list[str | None]
    direction: str | None
    beyond: tuple[Slip, ...]  # values that cannot come from the noise stated
    rows_contradict: bool  # only rows that do not belong contradict the noise stated

    @property
    def fitted_by(self) -> str | None:
        """By what items are compared with their groups: the noise stated, the spread of repeats, ranks, or nothing.

        A noise that was stated too large would hide items that do not fit: there the spread, with its margin, is taken.
        Under noises that only share their means no test is made, and none in blocks.
        """
        if self.pool.blocks is not None or self.pool.has_holes:
            return None
        if isinstance(self.noise, Noise):
            wide = "too large" in self.verdicts and self.spread.upper_covariance() is not None
            return "spread" if wide else "noise"
        return "ranks" if self.noise.kind in _SAME_DISTRIBUTION else None

    @property
    def noise_too_small(self) -> bool:
        """Whether the measurements contradict the noise stated: they vary more, or some of them do not belong."""
        return "too small" in (*self.verdicts, self.direction) or self.rows_contradict

    def misfits(self, labels: IntArray) -> list[Misfit]:
        """Items whose results do not fit the group that they were put in, by all that was recorded."""
        pool, by = self.pool, self.fitted_by
        scores: list[tuple[int, float | None, float | None]] = []
        if by == "ranks":
            scores = [(arm, None, p) for arm, p in rank_misfits(labels, pool.arms, pool.rows)]
        elif by is not None:
            units = self.noise if by == "noise" else Noise.of(self.spread.upper_covariance(), pool.dim)
            scores = [(arm, chi2, None) for arm, chi2 in misfits(labels, pool.arms, units.whiten(pool.rows))]
        return [Misfit(arm, pool.names[arm], int(labels[arm]) + 1, chi2, p) for arm, chi2, p in scores]

    @property
    def deviations(self) -> list[float] | None:
        """The standard deviations of a known noise."""
        return stated_deviations(self.noise).tolist() if isinstance(self.noise, Noise) else None

    @property
    def without_rows(self) -> int:
        """How many rows that do not belong the spread leaves out."""
        return int((~self.slips.belonging(len(self.pool.rows))).sum())

    def sentence(self, slip: Slip) -> str:
        """A value that does not belong, for people."""
        pool = self.pool
        if pool.blocks is not None:
            value, column = pool.rows[slip.row, slip.column], pool.blocks.column
            return (
                f"{pool.place(slip.row)}: item {pool.item_of(slip.row)}, {pool.columns[slip.column]} {value:.6g} lies "
                f"{slip.deviations:.3g} standard deviations from what its item and its {column} lead to expect: a slip?"
            )
        others, question = f"the item's other results ({slip.others:.4g})", "a slip?"
        if slip.count == 1:
            others, question = f"the item's only other result ({slip.others:.4g})", "is one of the two a slip?"
        return (
            f"{pool.place(slip.row)}: item {pool.item_of(slip.row)}, {pool.columns[slip.column]} {slip.value:.6g} lies "
            f"{slip.deviations:.3g} standard deviations from {others}: {question}"
        )

    # As plain JSON values.

    def fit_json(self) -> dict[str, Any]:
        """How the fit was tested, and at what level over all items."""
        by = self.fitted_by
        return {"tested": by is not None, "by": by, "probability": None if by is None else MISFIT_PROBABILITY}

    def noise_json(self) -> dict[str, Any]:
        """The noise as stated beside the spread of repeats, and what would be large enough."""
        noise, spread, pair = self.noise, self.spread, self.spread.most_correlated()
        sized = isinstance(noise, Noise) or noise.kind == AtMost.kind
        return {
            "stated": noise.to_json(),
            "kind": noise.kind,
            "words": noise.words,
            "assumption": noise.assumption,
            "deviations": self.deviations,
            "checked": sized and spread.freedom > 0,
            "spread": None if spread.deviations is None else spread.deviations.tolist(),
            "without_rows": self.without_rows,
            "together": None if pair is None else {"columns": [pair[0], pair[1]], "correlation": pair[2]},
            "upper": spread.upper(),
            "upper_independent": spread.upper_independent(),
            "upper_covariance": spread.upper_covariance(),
            "enough": spread.freedom >= spread.enough,
            "freedom": spread.freedom,
            "verdicts": self.verdicts,
            "direction": self.direction,
            "rows_contradict": self.rows_contradict,
        }

    def slips_json(self) -> dict[str, Any]:
        """The values that do not belong, farthest first, the columns with heavy tails, and the levels of both tests."""
        pool, heavy = self.pool, self.slips.heavy
        rows = [
            {
                "row": slip.row,
                "place": pool.place(slip.row),
                "arm": int(pool.arms[slip.row]),
                "name": pool.item_of(slip.row),
                "column": pool.columns[slip.column],
                "value": slip.value,
                "others": slip.others,
                "other_results": slip.count,
                "deviations": slip.deviations,
                "beyond_noise": slip in self.beyond,
                "heavy_tails": slip.column in heavy,
                "text": self.sentence(slip),
            }
            for slip in self.slips.values
        ]
        levels = {"probability": SLIP_PROBABILITY, "heavy_tails_probability": TAIL_PROBABILITY}
        return {"rows": rows, "heavy_tails": [pool.columns[column] for column in heavy], **levels}


def stated_model(noise: Any, dim: int) -> Model:
    """What was stated about the noise of measurements of `dim` numbers; `TableError` says what is wrong with it."""
    model: Model = checked("noise", noise_of, noise, dim)
    if isinstance(model, Unknown) and model.statement == AnyNoise(shape=True):
        raise TableError("shape=True is for measuring: a finished table is tested for location; leave the noise out")
    return model


def checked_pool(pool: Pool, noise: Model) -> CheckedPool:
    """A pool beside what was stated about its noise; `TableError` names the first row that contradicts it outright."""
    _check_rows(pool, noise)
    if pool.has_holes:
        return _checked_with_holes(pool, noise)
    whole, freed = pool.spread(), pool.freed
    # Of counts and times the spread follows from the rate, and differs from item to item: no slips are told by it.
    slips = _slips(pool) if noise.kind not in _RATED else Slips((), (), (None,) * pool.dim)
    kept = slips.belonging(len(pool.rows))
    spread = whole if kept.all() else pool.only(kept).spread()
    if isinstance(noise, Unknown):
        columns, whole_rows = _verdicts_on_bound(pool.by_cell, noise)
        return CheckedPool(pool, noise, slips, spread, columns, whole_rows, (), False)
    verdicts, direction = spread.column_verdicts(noise), spread.direction_verdict(noise)
    beyond = _beyond(freed, noise, slips)
    by_all = "too small" in (*whole.column_verdicts(noise), whole.direction_verdict(noise))
    contradict = "too small" not in (*verdicts, direction) and (by_all or bool(beyond))
    return CheckedPool(pool, noise, slips, spread, verdicts, direction, beyond, contradict)


def _checked_with_holes(pool: Pool, noise: Model) -> CheckedPool:
    """The same of rows with holes: each number is compared with the noise by itself, and no row is named."""
    nothing, spread = Slips((), (), (None,) * pool.dim), pool.spread()
    verdicts: list[str | None] = [None] * pool.dim
    if isinstance(noise, Noise):
        for number in range(pool.dim):
            there = ~np.isnan(pool.rows[:, number])
            own = replace(pool.only(there), rows=pool.rows[there, number : number + 1]).spread()
            deviation = float(np.sqrt(noise.covariance[number, number]))
            verdicts[number] = own.column_verdicts(Noise.of(deviation, 1))[0]
    return CheckedPool(pool, noise, nothing, spread, verdicts, None, (), False)


def _slips(pool: Pool) -> Slips:
    """The values that do not belong. A slip moves the mean of its block, so that in blocks the farthest value is named
    first, and the others are then looked at without it.
    """
    n_arms = len(pool.names)
    at_once = slips = slips_in(pool.arms, pool.freed.rows, n_arms)
    if pool.blocks is None:
        return at_once
    named: list[Slip] = []
    kept = np.ones(len(pool.rows), dtype=bool)
    while slips.values and len(named) < _MOST_SLIPS:
        row = int(np.flatnonzero(kept)[slips.values[0].row])
        named.append(replace(slips.values[0], row=row))
        kept[row] = False
        rest = pool.only(kept)
        if rest.counts.min() == 0:
            break
        slips = slips_in(rest.arms, rest.freed.rows, n_arms)
    return at_once if slips.values else Slips(tuple(named), slips.heavy, slips.limits)


def _check_rows(pool: Pool, noise: Model) -> None:
    """That every row is possible under what was stated: whole counts, numbers within the bounds."""
    rows = pool.rows
    if pool.has_holes:  # a hole is as possible as some number of its column
        rows = np.where(np.isnan(rows), np.array([column[~np.isnan(column)][0] for column in rows.T]), rows)
    try:
        noise.check(rows)
    except ValueError:
        for row in range(len(rows)):
            try:
                noise.check(rows[row : row + 1])
            except ValueError as error:
                place = pool.place(row)
                message = f"{pool.source}, {place}, item {pool.names[pool.arms[row]]}: {error}"
                raise TableError(message, field=place) from None
        raise


def _verdicts_on_bound(pool: Pool, noise: Unknown) -> tuple[list[str | None], str | None]:
    """Of each column, and of all together: whether repeats vary more than a bound that was stated ("too small").

    Tested at `NOISE_PROBABILITY` in all, for any distribution, by differences of two results of an item each. Which two
    is decided by a shuffle, so that a sorted table does no harm. Every row counts: such noise may have heavy tails.
    """
    verdicts: list[str | None] = [None] * pool.dim
    if not isinstance(noise.statement, AtMost):
        return verdicts, None
    stacks = [stack[: len(stack) // 2 * 2].reshape(-1, 2) for stack in pool.stacks(Order(0))]
    pairs = np.concatenate(stacks)
    apart = (pool.rows[pairs[:, 0]] - pool.rows[pairs[:, 1]]) / np.sqrt(2.0)
    deviations = stated_deviations(noise)
    threshold = float(np.log((pool.dim + 1) / NOISE_PROBABILITY))
    for column, deviation in enumerate(deviations):
        if evidence_against_bound(apart[:, [column]] / deviation).value >= threshold:
            verdicts[column] = "too small"
    together = pool.dim > 1 and evidence_against_bound(noise.whiten(apart)).value >= threshold
    return verdicts, "too small" if together else None


def _beyond(pool: Pool, noise: Noise, slips: Slips) -> tuple[Slip, ...]:
    """The named values that the noise stated does not explain, at a level of `NOISE_PROBABILITY` over all values."""
    deviations = stated_deviations(noise)
    out = np.zeros(pool.rows.shape, dtype=bool)
    for slip in slips.values:
        out[slip.row, slip.column] = True
    beyond = []
    for slip in slips.values:
        own = (pool.arms == pool.arms[slip.row]) & ~out[:, slip.column]
        own[slip.row] = False
        n = int(own.sum())
        if n == 0:
            continue
        apart = abs(slip.value - float(pool.rows[own, slip.column].mean())) / deviations[slip.column]
        if 2.0 * float(ndtr(-apart / np.sqrt(1.0 + 1.0 / n))) * pool.rows.size <= NOISE_PROBABILITY:
            beyond.append(slip)
    return tuple(beyond)


def thin_items(pool: Pool, labels: list[int] | None, done: bool) -> list[ThinItem]:
    """Items whose own mean lies far from the rest of their group: by more than four standard errors, or, of groups that
    are proven, more than half as far as from another group. Of a group, the one farthest off is named first, and the
    others are then looked at without it.
    """
    if labels is None or max(labels) == 0:
        return []
    deviations = pool.spread().deviations
    spread = np.full(pool.dim, np.inf) if deviations is None else np.array(deviations)
    scale = pool.rows.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    stacks = sorted_stacks(pool.arms, pool.rows, len(pool.names))
    sums, counts = np.stack([stack.sum(axis=0) for stack in stacks]), pool.counts.astype(float)[:, None]
    means, own = sums / counts, np.array(labels)
    groups = [np.flatnonzero(own == k) for k in range(max(labels) + 1)]
    centers = np.array([sums[group].sum(axis=0) / counts[group].sum() for group in groups])
    apart = np.linalg.norm((means[:, None] - centers) / scale, axis=-1)
    apart[np.arange(own.size), own] = np.inf
    thin = []
    for k, left in enumerate(groups):
        for _ in range(min(_MOST_THIN, left.size - 1)):
            number = counts[left].sum() - counts[left]
            rest = (sums[left].sum(axis=0) - sums[left]) / number
            beyond = np.abs(means[left] - rest) > 4.0 * spread * np.sqrt(1.0 / counts[left] + 1.0 / number)
            lengths = np.linalg.norm((means[left] - rest) / scale, axis=-1)
            far = beyond.any(axis=1) | (done & (lengths > 0.5 * apart[left].min(axis=1)))
            if not far.any():
                break
            first = int(np.lexsort((counts[left][:, 0], -np.where(far, np.round(lengths, 9), -1.0)))[0])
            arm = int(left[first])
            mean, others = means[arm].tolist(), rest[first].tolist()
            thin.append(ThinItem(arm, pool.names[arm], k + 1, int(counts[arm, 0]), mean, others))
            left = np.delete(left, first)
    return sorted(thin, key=lambda item: item.arm)
