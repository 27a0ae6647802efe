"""What is assumed about the noise of recorded measurements, beside what all of them show, as plain JSON values.

A noise that was stated is compared with the spread of repeats, a bound on it with differences of repeats. Rows that do
not belong are named first, and left out of that spread, never of the answer. Where no size was stated, none is checked:
then it is said what is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from coterie.problem.checks import IntArray
from coterie.problem.families import AtMost, Model, Unknown
from coterie.problem.noise import Noise
from coterie.tables.errors import TableError
from coterie.tables.fit import MISFIT_PROBABILITY, NOISE_PROBABILITY, Spread, misfits, spread_of
from coterie.tables.pool import Pool
from coterie.tables.rank_fit import rank_misfits
from coterie.tables.row_order import ORDER_PROBABILITY, order_alarm
from coterie.tables.shuffle import Order
from coterie.tables.slips import SLIP_PROBABILITY, TAIL_PROBABILITY, Slip, Slips, slips_in
from coterie.theory.noise_evidence import evidence_against_bound

_SAME_DISTRIBUTION = ("any", "gaussian", "counts")  # under which equal items have the same distribution


@dataclass(frozen=True)
class Checked:
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
        Under noises that only share their means no test is made.
        """
        if isinstance(self.noise, Noise):
            wide = "too large" in self.verdicts and self.spread.upper_covariance() is not None
            return "spread" if wide else "noise"
        return "ranks" if self.noise.kind in _SAME_DISTRIBUTION else None

    def misfits(self, labels: IntArray) -> list[dict[str, Any]]:
        """Items whose results do not fit the group that they were put in, by all that was recorded."""
        pool, by = self.pool, self.fitted_by
        scores: list[tuple[int, float | None, float | None]] = []
        if by == "ranks":
            scores = [(arm, None, p) for arm, p in rank_misfits(labels, pool.arms, pool.rows)]
        elif by is not None:
            units = self.noise if by == "noise" else Noise.of(self.spread.upper_covariance(), pool.dim)
            scores = [(arm, chi2, None) for arm, chi2 in misfits(labels, pool.arms, units.whiten(pool.rows))]
        return [
            {"arm": arm, "name": pool.names[arm], "group": int(labels[arm]) + 1, "chi2": chi2, "p": p}
            for arm, chi2, p in scores
        ]

    def fit_json(self) -> dict[str, Any]:
        """How the fit was tested, and at what level over all items."""
        by = self.fitted_by
        return {"tested": by is not None, "by": by, "probability": None if by is None else MISFIT_PROBABILITY}

    def noise_json(self) -> dict[str, Any]:
        """The noise as stated beside the spread of repeats, and what would be large enough."""
        noise, spread = self.noise, self.spread
        deviations, pair = spread.deviations, spread.most_correlated()
        sized = isinstance(noise, Noise) or noise.kind == AtMost.kind
        return {
            "stated": noise.to_json(),
            "kind": noise.kind,
            "words": noise.words,
            "assumption": noise.assumption,
            "deviations": np.sqrt(np.diag(noise.covariance)).tolist() if isinstance(noise, Noise) else None,
            "checked": sized and spread.freedom > 0,
            "spread": None if deviations is None else deviations.tolist(),
            "without_rows": int((~self.slips.belonging(len(self.pool.rows))).sum()),
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
        """The rows that do not belong, farthest first, each with a sentence that names it."""
        columns = self.pool.columns
        return {
            "rows": [self._slip_json(one) for one in self.slips.values],
            "heavy_tails": [columns[column] for column in self.slips.heavy],
            "probability": SLIP_PROBABILITY,
            "heavy_tails_probability": TAIL_PROBABILITY,
        }

    def _slip_json(self, one: Slip) -> dict[str, Any]:
        pool = self.pool
        place, item, column = pool.place(one.row), pool.names[pool.arms[one.row]], pool.columns[one.column]
        what = "a slip?"
        others = f"the item's other results ({one.others:.4g})"
        if one.count == 1:
            others, what = f"the item's only other result ({one.others:.4g})", "is one of the two a slip?"
        return {
            "row": one.row,
            "place": place,
            "arm": int(pool.arms[one.row]),
            "name": item,
            "column": column,
            "value": one.value,
            "others": one.others,
            "other_results": one.count,
            "deviations": one.deviations,
            "beyond_noise": one in self.beyond,
            "heavy_tails": one.column in self.slips.heavy,
            "text": f"{place}: item {item}, {column} {one.value:.6g} lies {one.deviations:.3g} standard deviations "
            f"from {others}: {what}",
        }


def checked_pool(pool: Pool, noise: Model) -> Checked:
    """A pool beside what was stated about its noise; `TableError` names the first row that contradicts it outright."""
    _check_rows(pool, noise)
    n_arms = len(pool.names)
    whole = spread_of(pool.arms, pool.rows, n_arms)
    # Of counts the spread follows from the rate, and differs from item to item: there are no slips to be told by it.
    slips = slips_in(pool.arms, pool.rows, n_arms) if noise.kind != "counts" else Slips((), (), (None,) * pool.dim)
    kept = slips.belonging(len(pool.rows))
    spread = whole if kept.all() else spread_of(pool.arms[kept], pool.rows[kept], n_arms)
    if isinstance(noise, Unknown):
        columns, whole_rows = _verdicts_on_bound(pool, noise)
        return Checked(pool, noise, slips, spread, columns, whole_rows, (), False)
    verdicts, direction = spread.column_verdicts(noise), spread.direction_verdict(noise)
    beyond = _beyond(pool, noise, slips)
    by_all = "too small" in (*whole.column_verdicts(noise), whole.direction_verdict(noise))
    contradict = "too small" not in (*verdicts, direction) and (by_all or bool(beyond))
    return Checked(pool, noise, slips, spread, verdicts, direction, beyond, contradict)


def order_json(pool: Pool, shuffled: bool) -> dict[str, Any] | None:
    """What speaks against rows in no particular order within items, with a sentence; None if nothing does."""
    found = order_alarm(pool.arms, pool.rows)
    if found is None:
        return None
    column = pool.columns[found.column]
    larger = "larger" if found.correlation > 0 else "smaller"
    if found.is_sorted:
        seen = f"the rows of an item are sorted by {column}"
    elif found.kind == "trend":
        seen = f"later rows of an item tend to have a {larger} {column} than its earlier ones"
    else:
        seen = f"neighbouring rows of an item are more alike in {column} than any two of its rows"
    cause = "the file was sorted" if found.is_sorted else "the file was sorted, or the instrument or the items drift"
    if not shuffled:
        advice = (
            "The rows were taken as they stand, which assumes that their order has nothing to do with the values, so "
            "nothing is proven. If the file was sorted, say --shuffled (in Python in_order=False)"
        )
    else:
        advice = "A sorted file does no harm, since the rows were shuffled"
    if not found.is_sorted:
        advice += (
            "; if it is a drift, items that were measured at different times are not comparable: calibrate, and "
            "measure the items in turn"
        )
    correlation = f"rank correlation {found.correlation:.2f}"
    return {
        "column": column,
        "kind": "sorted" if found.is_sorted else found.kind,
        "correlation": found.correlation,
        "p": found.p,
        "probability": ORDER_PROBABILITY,
        "text": f"{seen} ({correlation}; by chance in at most {100 * ORDER_PROBABILITY:g} % of tables): {cause}. "
        f"{advice}.",
    }


def _check_rows(pool: Pool, noise: Model) -> None:
    """That every row is possible under what was stated: whole counts, numbers within the bounds."""
    try:
        noise.check(pool.rows)
    except ValueError:
        for row in range(len(pool.rows)):
            try:
                noise.check(pool.rows[row : row + 1])
            except ValueError as error:
                place = pool.place(row)
                what = f"{pool.source}, {place}, item {pool.names[pool.arms[row]]}: {error}"
                raise TableError(what, field=place) from None
        raise


def _verdicts_on_bound(pool: Pool, noise: Unknown) -> tuple[list[str | None], str | None]:
    """Of each column, and of all together: whether repeats vary more than a bound that was stated ("too small").

    Tested at `NOISE_PROBABILITY` in all, for any distribution, by differences of two results of an item each. Which two
    is decided by a shuffle, so that a sorted table does no harm. Every row counts: such noise may have heavy tails.
    """
    found: list[str | None] = [None] * pool.dim
    if not isinstance(noise.statement, AtMost):
        return found, None
    stacks = [stack[: len(stack) // 2 * 2].reshape(-1, 2) for stack in pool.stacks(Order(0))]
    pairs = np.concatenate(stacks)
    apart = (pool.rows[pairs[:, 0]] - pool.rows[pairs[:, 1]]) / np.sqrt(2.0)
    deviations = np.sqrt(np.diag(Noise.of(noise.statement.covariance, pool.dim).covariance))
    threshold = float(np.log((pool.dim + 1) / NOISE_PROBABILITY))
    for column, deviation in enumerate(deviations):
        if evidence_against_bound(apart[:, [column]] / deviation).value >= threshold:
            found[column] = "too small"
    together = pool.dim > 1 and evidence_against_bound(noise.whiten(apart)).value >= threshold
    return found, "too small" if together else None


def _beyond(pool: Pool, noise: Noise, slips: Slips) -> tuple[Slip, ...]:
    """The named values that the noise stated does not explain, at a level of `NOISE_PROBABILITY` over all values."""
    deviations = np.sqrt(np.diag(noise.covariance))
    out = np.zeros(pool.rows.shape, dtype=bool)
    for one in slips.values:
        out[one.row, one.column] = True
    found = []
    for one in slips.values:
        own = (pool.arms == pool.arms[one.row]) & ~out[:, one.column]
        own[one.row] = False
        n = int(own.sum())
        if n == 0:
            continue
        apart = abs(one.value - float(pool.rows[own, one.column].mean())) / deviations[one.column]
        if 2.0 * float(ndtr(-apart / np.sqrt(1.0 + 1.0 / n))) * pool.rows.size <= NOISE_PROBABILITY:
            found.append(one)
    return tuple(found)
