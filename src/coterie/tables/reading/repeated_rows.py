"""Rows that stand in a table more often than chance explains: copies, which would count one measurement several times.

Equal rows of an item are normal where values are coarse: ratings, counts, rounded readings. Two rules say when they are
too many. Each has a false alarm with probability at most `CHANCE`, if the results of an item are independent.

*Every row is there m times*, or a multiple of m, for some m ≥ 2. This is for results of any kind, however coarse. Given
that D different rows of an item were seen, all of them an even number of times has probability at most 2^(1 − D): with
C_i = cosh(p_i z) − 1 and S_i = sinh(p_i z), the probabilities are coefficients of ΠC_i and of Π(C_i + S_i), and of the
2^(D − 1) products in the latter that have even powers, each is at least ΠC_i, since S_i S_j − C_i C_j has coefficients
p_i^n + p_j^n − (p_i − p_j)^n ≥ 0. The items' probabilities are multiplied. Odd divisors are less likely still (the
tests count it out); for them all, the bound is doubled.

*Many rows are there twice*, in columns whose values have many digits. It is assumed that results are spread smoothly
over the digits: within a fifth of an item's spread, W steps of the last digit, no value has more than 2/W of the
probability. Then the (j + 1)-th of the rows that agree so far equals one before it with probability at most 2j/W,
whatever those are; the number of values that are repeated is at most a sum of such events, and by Hoeffding (Ann. Math.
Stat. 27, 1956) its tail lies below that of a binomial distribution of the same mean. The last digits that people or
instruments prefer (0 and 5, prices of 9.99) are not counted as digits. A value that is repeated in many items, such as
a limit of detection, counts once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, short
from coterie.tables.errors import TableError

if TYPE_CHECKING:
    from coterie.tables.pool import Pool

CHANCE = 0.001
"""The probability of a false alarm, of each of the two rules."""

COPIES = ("drop", "keep")
"""What may be said about rows that are copies of others."""

_FEW_COPIES = 3  # copies that a message lists
_PART = 5.0  # of an item's spread: within it, results are spread smoothly over the digits
_FEWEST_STEPS = 4.0  # of the last digit in such a part, for a column to have many digits
_PREFERRED = 0.01  # the level at which last digits are taken for preferred ones
_DIGITS = 25  # more than a number in a file has


@dataclass(frozen=True)
class Repeats:
    """Copies: the rows that repeat an earlier row of their item, and for each of them that earlier row.

    `times`: how often every row of the table is there at least, if that is the rule that was met; else None.
    """

    rows: tuple[int, ...]
    first: tuple[int, ...]
    times: int | None

    def words(self, of: int, source: str, place: Callable[[int], str]) -> str:
        """The copies among so many rows, with the places of the first of them."""
        count = len(self.rows)
        if self.times is not None:
            counted = f"every row of {source} is there {self.times} times, or a multiple of that"
            counted += f": {count} of {of} rows are copies"
        else:
            counted = f"{count} of {of} rows of {source} repeat another row of their item exactly"
        pairs = list(zip(self.rows, self.first, strict=True))
        shown = [f"{place(row)} is {place(first)}" for row, first in pairs[:_FEW_COPIES]]
        return f"{counted} ({', '.join(shown)}{', …' if len(pairs) > _FEW_COPIES else ''})"


def repeated_rows(arms: IntArray, rows: FloatArray) -> Repeats | None:
    """The copies in a table of these items and values; None if equal rows are no more than chance explains."""
    if len(rows) < 2 or any(_all_differ(column) for column in rows.T):
        return None
    content = np.column_stack([arms.astype(np.float64), rows]) + 0.0  # -0.0 is 0.0
    _, which, counts = np.unique(content, axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    if counts.max() < 2:
        return None
    times = int(np.gcd.reduce(counts))
    if times > 1:
        different = np.bincount(arms[np.unique(which, return_index=True)[1]])
        logarithm = math.log(2.0) * (1.0 - float((different[different > 0] - 1).sum()))
        if logarithm <= math.log(CHANCE):
            return _copies(which, counts // times, times)
    if _many_repeated(arms, rows, which, counts):
        return _copies(which, np.ones_like(counts), None)
    return None


def _all_differ(values: FloatArray) -> bool:
    ordered = np.sort(values)
    return bool((ordered[1:] > ordered[:-1]).all())


def _copies(which: IntArray, kept: IntArray, times: int | None) -> Repeats:
    """The rows after the first `kept` of each kind."""
    seen: dict[int, list[int]] = {}
    rows, first = [], []
    for row, kind in enumerate(which.tolist()):
        places = seen.setdefault(kind, [])
        if len(places) >= kept[kind]:
            rows.append(row)
            first.append(places[0])
        else:
            places.append(row)
    return Repeats(tuple(rows), tuple(first), times)


def _many_repeated(arms: IntArray, rows: FloatArray, which: IntArray, counts: IntArray) -> bool:
    from scipy.stats import binom

    repeated = np.unique(rows[np.isin(which, np.flatnonzero(counts > 1))], axis=0)
    if len(repeated) < 2:
        return False
    steps = [_last_digit(np.unique(column)) for column in rows.T]
    spreads = _spreads(arms, rows)
    chances = np.concatenate([_chances(rows[arms == arm], spreads[arm], steps) for arm in np.unique(arms)])
    if not chances.size:
        return True  # no two rows could have been equal
    mean = float(chances.mean())
    if len(repeated) < chances.sum() + 1.0:
        return False
    return bool(binom.sf(len(repeated) - 1, chances.size, mean) <= CHANCE)


def _chances(values: FloatArray, spread: FloatArray, steps: list[float]) -> FloatArray:
    """For each row of an item that has others near it: the most that the probability can be that it equals one."""
    widths = spread / _PART
    sizes = np.array([width / step if step > 0.0 else 0.0 for width, step in zip(widths, steps, strict=True)])
    fine = sizes >= _FEWEST_STEPS
    near = np.where(fine, np.floor(values / np.where(fine, widths, 1.0)), values)
    near_counts = np.unique(near, axis=0, return_counts=True)[1]
    each = 2.0 / sizes.max() if fine.any() else 1.0
    return np.concatenate([np.minimum(1.0, each * np.arange(1, count)) for count in near_counts])


def _spreads(arms: IntArray, rows: FloatArray) -> FloatArray:
    """How much the different values of each item vary in each column; not more than it is for most items."""
    spreads = np.zeros((int(arms.max()) + 1, rows.shape[1]))
    for arm in np.unique(arms):
        values = rows[arms == arm]
        for column in range(rows.shape[1]):
            low, high = np.quantile(np.unique(values[:, column]), [0.25, 0.75])
            spreads[arm, column] = (high - low) / 1.35
    present = spreads[np.unique(arms)]
    usual: FloatArray = np.minimum(spreads, np.median(present, axis=0))
    return usual


def _last_digit(values: FloatArray) -> float:
    """The size of a step of the last digit of these different numbers that is not a preferred one; infinite if all
    digits are.
    """
    from scipy.stats import chisquare

    exact = [Decimal(repr(value)) for value in values.tolist()]
    places = max(0, max(-int(number.as_tuple().exponent) for number in exact))
    whole = [int(number.scaleb(places)) for number in exact]
    for used in range(_DIGITS):
        digits = np.bincount([abs(number) // 10**used % 10 for number in whole], minlength=10)
        if chisquare(digits).pvalue > _PREFERRED:
            return float(10.0 ** (used - places))
    return math.inf


def without_copies(pool: Pool, copies: str | None) -> Pool:
    """The pool after what was said about copies: without them, or with a remark that they were kept."""
    if copies not in (None, *COPIES):
        raise TableError(f"copies must be drop or keep, got {short(copies)}", field="copies")
    whole = np.flatnonzero(~np.isnan(pool.rows).any(axis=1))  # of rows with holes nothing is said
    repeats = repeated_rows(pool.cells[0][whole], pool.rows[whole])  # in blocks: of one item in one block
    if repeats is not None and len(whole) < len(pool.rows):
        rows, first = (tuple(whole[list(places)].tolist()) for places in (repeats.rows, repeats.first))
        repeats = Repeats(rows, first, repeats.times)
    if repeats is None:
        return pool
    of = len(pool.rows)
    named = repeats.words(of, pool.source, pool.place)
    if copies is None:
        message = (
            f"{named}. Chance alone makes so many equal rows in at most 1 of {1 / CHANCE:,.0f} tables. If somebody "
            "copied them, --copies drop counts each measurement once; if each is a measurement of its own, say "
            '--copies keep (in Python copies="drop" or copies="keep")'
        )
        raise TableError(message, field="copies")
    if copies == "keep":
        remark = f"warning: {named}; they were kept, as you say that each is a measurement of its own."
        return replace(pool, copies=copies, remarks=(*pool.remarks, remark))
    kept = np.ones(of, dtype=bool)
    kept[list(repeats.rows)] = False
    return replace(pool.only(kept), copies=copies, remarks=(*pool.remarks, f"Left out, as copies: {named}."))
