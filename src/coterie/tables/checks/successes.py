"""Successes out of totals that differ from row to row, such as clicks and impressions, as counts out of one total.

If all trials of an item succeed independently at one rate, then, given how many there are and how many succeeded, every
order of them is equally likely. So the trials of an item, put in an order drawn at random and cut into batches of one
size, are counts as if they had been made in such batches: exactly, and independent of how they were spread over rows.
The order is drawn by the recorded seed. What the last batch lacks is left out; it is a random remainder.

Cutting hides whether trials really were independent, so that is tested before, on the rows as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Counts, Unknown, family_of, noise_of
from coterie.tables.checks.row_order import Order
from coterie.tables.errors import TableError
from coterie.tables.pool import BY_ITEM, Cut, Pool, item_places
from coterie.tables.reading.columns import TOTALS, listed

BURST_LEVEL = 0.01
"""Probability with which rows of independent trials are taken for dependent ones."""

_MOST_BATCHES = 20_000  # a batch size that makes more is not chosen by itself
_FEWEST_BATCHES = 8  # of an item, if a batch size is chosen by itself
_MOST_TRIALS = 20_000_000  # in all: an order of more takes too long
_MOST_ROWS = 1_000_000


def totals_column(pool: Pool) -> tuple[int, int] | None:
    """The places of the successes and of the trials among the columns of a pool, if their names say so."""
    names = [column.strip().casefold() for column in pool.columns]
    places = [
        (names.index(successes), names.index(total))
        for successes, totals in TOTALS.items()
        for total in totals
        if successes in names and total in names
    ]
    if len(places) > 1:
        pairs = " or ".join(f"{pool.columns[i]},{pool.columns[j]}" for i, j in places)
        message = f"{pool.source} has several columns of successes and trials: pick two, --values {pairs}"
        raise TableError(f"{message} (in Python values=)", field="values")
    return places[0] if places else None


def as_counts(pool: Pool, noise: Any, resolved: bool, order: Order) -> tuple[Pool, Any]:
    """The pool and the noise that stand for successes and trials; both as they are if there are no such columns.

    `resolved`: the question has differences in the units of the results, so the batch size is not chosen here.
    """
    if pool.blocks is not None:  # trials are cut within blocks
        counted, noise = as_counts(pool.by_cell, noise, resolved, order)
        _, arms, blocks = pool.cells
        of_rows = replace(pool.blocks, of_rows=blocks[counted.arms])
        return replace(counted, names=pool.names, arms=arms[counted.arms], blocks=of_rows), noise
    counts = _counts(noise)
    if pool.by_item or (pool.picked and (counts is None or pool.dim != 2)):
        return pool, noise
    places = totals_column(pool)
    if places is None and counts is not None and counts.trials == 1:
        places = _by_their_values(pool)
    if places is None:
        return pool, noise
    first, second = (pool.columns[i] for i in places)
    totals = pool.rows[:, places[1]]
    if pool.has_holes:
        message = f"{first} and {second} are one result, successes and trials, which has both or is none"
        raise TableError(f"{message}: leave rows without one of them out, --leave-out-holes, not holes", field="holes")
    if counts is None:
        if (totals != totals[0]).any():
            raise TableError(_undecided(pool, first, second), field="noise")
        return pool, noise
    successes = _checked(pool, *places)
    p = independence(pool.arms, successes, totals.astype(np.int64), len(pool.names))
    bursts = p is not None and p < BURST_LEVEL
    others = tuple((column, f"beside {first} of {second}") for i, column in enumerate(pool.columns) if i not in places)
    kept = replace(pool, columns=[first], left_out=pool.left_out + others, picked=True)
    common = int(totals[0])
    as_they_are = counts.trials == common or (counts.trials == 1 and not resolved)
    if as_they_are and common > 0 and (totals == common).all():
        cut = Cut(first, second, common, len(totals), 0, p, bursts)
        return replace(kept, rows=successes[:, None].astype(np.float64), cut=cut), Counts(common)
    if order.seed is None:
        message = f"{second} differ from row to row, so single {second} are put in an order drawn at random: say"
        raise TableError(f"{message} --shuffled (in Python in_order=False)", field="in_order")
    of_items = np.bincount(pool.arms, totals, minlength=len(pool.names)).astype(np.int64)
    batch = _batch(pool, second, of_items, counts.trials, resolved)
    arms, rows = _batches(pool, successes, totals.astype(np.int64), batch, order)
    cut = Cut(first, second, batch, len(totals), int((of_items % batch).sum()), p, bursts)
    return replace(kept, arms=arms, rows=rows, places=item_places(arms), place_word=BY_ITEM, cut=cut), Counts(batch)


def _by_their_values(pool: Pool) -> tuple[int, int] | None:
    """The two columns that were picked, if the first can only be successes of the second: results of 0 or 1 they are
    not. `TableError` says how to pick them if two of several columns look so.
    """
    if (pool.rows % 1.0 != 0.0).any() or (pool.rows < 0.0).any() or pool.rows.max() <= 1.0:
        return None
    pairs = [
        (i, j)
        for i in range(pool.dim)
        for j in range(pool.dim)
        if i != j and pool.rows[:, j].max() > 1.0 and (pool.rows[:, i] <= pool.rows[:, j]).all()
    ]
    if not pairs or (pool.picked and (0, 1) not in pairs):
        return None
    if pool.picked:
        return 0, 1
    i, j = max(pairs, key=lambda pair: _correlation(pool, pair))
    first, second = pool.columns[i], pool.columns[j]
    message = f"{pool.source}: counts is for results of 0 or 1. If {first} are successes out of {second}, pick the two"
    raise TableError(f"{message}: --values {first},{second} (in Python values=)", field="values")


def _correlation(pool: Pool, pair: tuple[int, int]) -> float:
    first, second = (pool.rows[:, i] - pool.rows[:, i].mean() for i in pair)
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size > 0.0 else -1.0


def _counts(noise: Any) -> Counts | None:
    """The statement that results are counts, if that is what was stated."""
    if noise == Counts.kind:
        return Counts()
    if isinstance(noise, Mapping) and family_of(noise) == Counts.kind:
        noise = noise_of(dict(noise), 1)
    statement = noise.statement if isinstance(noise, Unknown) else noise
    return statement if isinstance(statement, Counts) else None


def _undecided(pool: Pool, first: str, second: str) -> str:
    return (
        f"{pool.source} has {first} of {second}, and {second} differ from row to row: a few of many do not vary as a "
        f"few of few. If all {second} of an item are independent, state --noise counts (in Python "
        "noise=coterie.Counts()); else make rows of equally many; if both numbers are to be compared as they are, pick "
        f"them: --values {listed(pool.columns, ',')} (in Python values=)"
    )


def _checked(pool: Pool, first: int, second: int) -> IntArray:
    """The successes of each row as whole numbers, none above its trials; `TableError` names the first row at fault."""
    successes, totals = pool.rows[:, first], pool.rows[:, second]
    for place, values in ((first, successes), (second, totals)):
        wrong = (values != np.floor(values)) | (values < 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise _problem(pool, row, place, f"a count must be a whole number from 0 on, got {values[row]:g}")
    if (successes > totals).any():
        row = int(np.argmax(successes > totals))
        message = f"there are {successes[row]:g} {pool.columns[first]} of only {totals[row]:g} {pool.columns[second]}"
        raise _problem(pool, row, first, message)
    if totals.sum() > _MOST_TRIALS:
        message = (
            f"{pool.source} has {totals.sum():.0f} {pool.columns[second]}, at most {_MOST_TRIALS} are put in order"
        )
        raise TableError(f"{message}: use the first rows only, chosen without looking at the values", field="values")
    return successes.astype(np.int64)


def _problem(pool: Pool, row: int, place: int, message: str) -> TableError:
    where, column = pool.place(row), pool.columns[place]
    return TableError(f"{pool.source}, {where}, column {column!r}: {message}", field=f"{where}, {column}")


def _batch(pool: Pool, trials: str, of_items: IntArray, stated: int, resolved: bool) -> int:
    """The trials of a batch: as stated, or a power of ten that depends on the totals only, never on the successes."""
    fewest = int(of_items.min())
    if stated > 1 or resolved:
        batch = stated
    else:
        batch = 1
        while int((of_items // batch).sum()) > _MOST_BATCHES and batch * 10 * _FEWEST_BATCHES <= fewest:
            batch *= 10
    if fewest < batch:
        name = pool.names[int(np.argmin(of_items))]
        message = f"{name} has only {fewest} {trials} in all, fewer than a batch of {batch}"
        raise TableError(f"{message}: state smaller batches, --noise counts:{max(fewest, 1)}, or leave it out", "noise")
    count = int((of_items // batch).sum())
    if count > _MOST_ROWS:
        larger = 10 ** int(np.ceil(np.log10(of_items.sum() / _MOST_BATCHES)))
        units = ", with --alike and --apart in successes of a batch" if resolved else ""
        message = f"{pool.source} would make {count} batches of {batch}, at most {_MOST_ROWS} are used"
        raise TableError(f"{message}: state larger ones, such as --noise counts:{larger}{units}", field="noise")
    return batch


def _batches(
    pool: Pool, successes: IntArray, totals: IntArray, batch: int, order: Order
) -> tuple[IntArray, FloatArray]:
    """The arm and the successes of every batch, items one after the other."""
    arms, rows = [], []
    for arm, name in enumerate(pool.names):
        own = pool.arms == arm
        count, hits = int(totals[own].sum()), int(successes[own].sum())
        # Not the keys by which the batches are shuffled later: the square of a random order is not a random order.
        drawn = order.places(f"trials of {name}", count) < hits
        whole = count // batch
        rows.append(drawn[: whole * batch].reshape(whole, batch).sum(axis=1))
        arms.append(np.full(whole, arm))
    return np.concatenate(arms), np.concatenate(rows).astype(np.float64)[:, None]


def independence(arms: IntArray, successes: IntArray, totals: IntArray, n_arms: int) -> float | None:
    """Probability that rows of independent trials differ as much as these do within items; None if none can differ.

    Pearson's statistic about each item's own rate, compared with a gamma distribution of its mean and (where successes
    are few, larger than that of chi-square) variance.
    """
    from scipy.stats import gamma

    used = totals > 0
    arms, hits, sizes = arms[used], successes[used].astype(np.float64), totals[used].astype(np.float64)
    all_hits, all_sizes = np.bincount(arms, hits, n_arms), np.bincount(arms, sizes, n_arms)
    rates = np.divide(all_hits, all_sizes, out=np.zeros(n_arms), where=all_sizes > 0)
    spread = (rates * (1.0 - rates))[arms]
    varies = spread > 0
    arms, hits, sizes, spread = arms[varies], hits[varies], sizes[varies], spread[varies]
    freedom = arms.size - np.unique(arms).size
    if freedom < 1:
        return None
    statistic = float(((hits - sizes * rates[arms]) ** 2 / (sizes * spread)).sum())
    variance = 2.0 * freedom + float(np.maximum((1.0 - 6.0 * spread) / (sizes * spread), 0.0).sum())
    scale = variance / freedom
    return float(gamma.sf(statistic, freedom / scale, scale=scale))
