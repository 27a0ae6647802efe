"""A recorded pool of measurements: how many of them would have been enough, and which groups they show.

The method asks for arms as it would live, and gets each arm's measurements one after the other: shuffled within the arm
by a recorded seed, since a table may be sorted by value, or as recorded (coterie.campaign.order). Arms are numbered by
name, not by where they appear. When an arm runs dry, the rest of the pool is told, in turn over the arms and each arm's
in the same order as before. Nothing is left out because of its value, and nothing that is done depends on values that
come later, so what is proven is proven. If even all of it is not enough, what is certain so far is the answer.

What was not needed for the proof still says whether its assumptions look right: coterie.campaign.fit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.campaign import recorded, tables
from coterie.campaign.errors import BadValue
from coterie.campaign.fit import MISFIT_PROBABILITY, Spread, means_of, misfits, spread_of
from coterie.campaign.order import Order, check_order
from coterie.campaign.remarks import alarm_of, homogeneity_of
from coterie.campaign.settings import CampaignSettings as Settings
from coterie.methods import method_named
from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups
from coterie.session import Session, SessionDone
from coterie.session.replayed import TELL, UNASKED

_LEADING_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")  # of whole numbers in names: S05 and S5, 001 and 1

_FEWER = 3  # if K groups are not proven, so many smaller numbers are tried


@dataclass(frozen=True)
class Pool:
    """Measurements as they were recorded: the names of the arms, the arm and the values of each, and where from."""

    names: list[str]
    arms: IntArray
    rows: FloatArray
    columns: list[str]
    source: str
    item_column: str | None = None
    guessed: bool = False  # the item column has no name that says so
    left_out: tuple[tuple[str, str], ...] = ()  # columns, and why

    @property
    def counts(self) -> IntArray:
        """How many measurements there are of each arm."""
        return np.bincount(self.arms, minlength=len(self.names))

    def stacks(self, order: Order) -> list[IntArray]:
        """The rows of each arm, in the order in which they are used."""
        rows = order.rearranged(self.arms, self.names.__getitem__)
        return np.split(rows[np.argsort(self.arms, kind="stable")], np.cumsum(self.counts)[:-1])

    def spread(self) -> Spread:
        """How repeats of an item vary."""
        return spread_of(self.arms, self.rows, len(self.names))

    def described(self) -> dict[str, Any]:
        """What was read, as plain JSON."""
        counts = self.counts
        spelt = defaultdict(list)
        for name in self.names:
            spelt[_LEADING_ZEROS.sub("", "".join(name.casefold().split()))].append(name)
        return {
            "source": self.source,
            "items": len(self.names),
            "measurements": len(self.rows),
            "fewest": int(counts.min()),
            "most": int(counts.max()),
            "once": [name for name, count in zip(self.names, counts, strict=True) if count == 1],
            "spelt_alike": [names for names in spelt.values() if len(names) > 1],
            "item_column": self.item_column,
            "guessed": self.guessed,
            "values": self.columns,
            "left_out": [{"column": column, "why": why} for column, why in self.left_out],
        }


@dataclass(frozen=True)
class Replayed:
    """A method's run on a pool: its session, and the arm that ran dry, with the count at which it did."""

    session: Session
    dry: int | None
    dry_at: int | None


def replay_pool(
    pool: Any,
    n_clusters: int,
    delta: float = 0.05,
    method: str = "croc",
    threshold: str = "proven",
    noise: Any = None,
    distance_ratio: float | None = None,
    values: Sequence[str] | None = None,
    items: str | None = None,
    seed: int = 0,
    in_order: bool = False,
) -> dict[str, Any]:
    """Run a method on recorded measurements.

    `pool`: a CSV or Parquet file, rows as dictionaries, or {arm: (n, d) array}. A table has a column of items (`arm`,
    `item`, `sample`, `name` or `id`, or what `items` names) and the values: `values`, or v0, v1, …, or all other
    columns of numbers. `noise` as in `Session`: None is a standard deviation of 1.

    Each item's measurements are shuffled first, by `seed` and the item's name, so that their order has nothing to do
    with their values; how many there are must have nothing to do with them either. `in_order=True` keeps the order of
    the table. That assumes that an item's measurements stand in an order that has nothing to do with their values, as
    when it is the order in which they were measured; then their number may depend on values, as in a campaign's export.

    The answer: `done`, `t` (how many were enough; used, if not), `recorded`, `order` (how they were shuffled), `dry`
    (the arm whose measurements ran out first, if one did), `labels` (from 0), `groups` (from 1), for CROC `certificate`
    and `partial`; and how well all that was recorded fits: `noise` (stated, and the spread of repeats), `misfits`
    (items that do not fit the group they were put in: there may be more groups), `fewer` (if K is not proven, a smaller
    number that is). In `noise`, `verdicts` are on the columns and `direction` on all weighted sums of them ("too small"
    voids the proof); `upper` (standard deviations) and `upper_covariance` are large enough in every direction with
    probability 0.99, `upper_independent` if the columns are known to vary independently. None of these: there are too
    few repeats.
    `alarm` and `homogeneity`, as in `Session`, say what speaks against K: items that differ, groups that look mixed.
    """
    content = read_pool(pool, values, items)
    return group_pool(content, n_clusters, delta, method, threshold, noise, distance_ratio, seed, in_order)[0]


def group_pool(
    pool: Pool,
    n_clusters: int,
    delta: float = 0.05,
    method: str = "croc",
    threshold: str = "proven",
    noise: Any = None,
    distance_ratio: float | None = None,
    seed: int = 0,
    in_order: bool = False,
) -> tuple[dict[str, Any], Session]:
    """The answer of `replay_pool`, and the session that it comes from."""
    order = check_order(seed, in_order)
    settings = Settings.of(
        len(pool.names), n_clusters, pool.rows.shape[1], delta=delta, method=method, threshold=threshold, noise=noise,
        names=pool.names, distance_ratio=distance_ratio,
    )  # fmt: skip
    run = _run(pool, settings, order)
    return _answer(pool, settings, order, run), run.session


def _run(pool: Pool, settings: Settings, order: Order) -> Replayed:
    session = settings.session()
    stacks = pool.stacks(order)
    used = [0] * settings.n_arms
    dry: int | None = None
    while not session.done:
        try:
            arm = session.ask()
        except SessionDone:
            break
        if used[arm] == len(stacks[arm]):
            dry = arm
            session.forget(session.pending[-1][0])
            break
        session.tell(arm, pool.rows[stacks[arm][used[arm]]])
        used[arm] += 1
    dry_at = None if dry is None else session.t
    if dry is not None:
        rest = _rest(stacks, used)
        tell, unasked = np.full(rest.size, TELL), np.full(rest.size, UNASKED)
        session.replay(tell, pool.arms[rest], unasked, pool.rows[rest])  # as told one by one, only faster
        _look_again(session)
    return Replayed(session, dry, dry_at)


def _rest(stacks: Sequence[IntArray], used: Sequence[int]) -> IntArray:
    """The rows that were not used, in turn over the arms: by their place in the stack of their arm, then by arm."""
    left = [stack[count:] for stack, count in zip(stacks, used, strict=True)]
    places = np.concatenate([np.arange(count, len(stack)) for stack, count in zip(stacks, used, strict=True)])
    return np.concatenate(left)[np.argsort(places, kind="stable")]


def _look_again(session: Session) -> None:
    """Results that nobody asked for may have been enough, and only the next plan finds out."""
    try:
        session.ask()
    except SessionDone:
        return
    session.forget(session.pending[-1][0])


def _answer(pool: Pool, settings: Settings, order: Order, run: Replayed) -> dict[str, Any]:
    session, dry, names = run.session, run.dry, pool.names
    labels, centers, certifies = session.labels, session.centers, method_named(settings.method).certifies
    noise = Noise.of(settings.noise, settings.dim)
    groups = []
    if labels is not None and centers is not None:
        for label in range(int(labels.max()) + 1):
            arms = np.flatnonzero(labels == label).tolist()
            group = {"group": label + 1, "arms": arms, "names": [names[arm] for arm in arms]}
            groups.append(group | {"center": centers[label].tolist()})
    counts = pool.counts
    found: dict[str, Any] = {
        "done": session.done,
        "t": session.t,
        "recorded": len(pool.rows),
        "n_arms": settings.n_arms,
        "n_clusters": settings.n_clusters,
        "dim": settings.dim,
        "delta": settings.delta,
        "method": settings.method,
        "threshold": settings.threshold,
        "order": order.as_dict(),
        "dry": None if dry is None else {"arm": dry, "name": names[dry], "recorded": int(counts[dry]), "t": run.dry_at},
        "labels": None if labels is None else labels.tolist(),
        "groups": groups,
        "names": list(names),
        "pulls": session.pulls.tolist(),
        "counts": counts.tolist(),
        "means": means_of(pool.arms, pool.rows, settings.n_arms)[0].tolist(),
        "partial": None,
        "alarm": alarm_of(session, names.__getitem__),
        "homogeneity": homogeneity_of(session, range(1, settings.n_clusters + 1)),
        "noise": _noise_beside_spread(noise, pool.spread()),
        "misfits": _misfits(pool, noise, session) if session.done else [],
        "fewer": None if session.done or session.alarm is not None else _fewer(pool, settings, order, noise),
        "certificate": session.certificate if certifies else None,
        "read": pool.described(),
    }
    if not session.done and certifies:
        partial = session.partial()
        found["partial"] = {
            "settled": [names[arm] for arm in partial.settled],
            "undecided": [names[arm] for arm in partial.undecided],
            "representatives": [names[arm] for arm in partial.representatives],
            "differ": [[names[arm], names[lead]] for arm, lead in partial.differ],
        }
    return found


def _noise_beside_spread(noise: Noise, spread: Spread) -> dict[str, Any]:
    deviations, pair = spread.deviations, spread.together()
    return {
        "stated": noise.to_json(),
        "deviations": np.sqrt(np.diag(noise.covariance)).tolist(),
        "spread": None if deviations is None else deviations.tolist(),
        "together": None if pair is None else {"columns": [pair[0], pair[1]], "correlation": pair[2]},
        "upper": spread.upper(),
        "upper_independent": spread.upper_independent(),
        "upper_covariance": spread.upper_covariance(),
        "freedom": spread.freedom,
        "verdicts": spread.against(noise),
        "direction": spread.direction(noise),
    }


def _misfits(pool: Pool, noise: Noise, session: Session) -> list[dict[str, Any]]:
    labels = session.labels
    assert labels is not None
    found = misfits(labels, pool.arms, noise.whiten(pool.rows))
    return [{"arm": arm, "name": pool.names[arm], "group": int(labels[arm]) + 1, "chi2": value} for arm, value in found]


def _fewer(pool: Pool, settings: Settings, order: Order, noise: Noise) -> dict[str, Any] | None:
    """A smaller number of groups for which the same measurements are enough and every item fits, if there is one.

    It is tried downwards until one is proven. A single group proves nothing: there it only says that every item fits.
    """
    for n_clusters in range(settings.n_clusters - 1, max(settings.n_clusters - 1 - _FEWER, 1), -1):
        asked = replace(settings, run=replace(settings.run, question=ExactGroups(n_clusters)))
        session = _run(pool, asked, order).session
        if session.done:
            fits = not _misfits(pool, noise, session)
            return {"n_clusters": n_clusters, "t": session.t} if fits else None
    one = misfits(np.zeros(settings.n_arms, dtype=np.int64), pool.arms, noise.whiten(pool.rows), MISFIT_PROBABILITY)
    return None if one else {"n_clusters": 1, "t": None}


# Reading.


def read_pool(pool: Any, values: Sequence[str] | None = None, items: str | None = None) -> Pool:
    """A pool from a file, rows or arrays; errors name the line and the column."""
    if isinstance(pool, Mapping):
        return _arrays(pool)
    table = recorded.read_table(pool)
    item, guessed = _item_column(table, items)
    column = table.columns[item]
    places = _value_columns(table, item, values)
    if not table.rows:
        raise BadValue(f"{table.name} has no measurements", field="pool")
    rows = np.array(tables.numbers(table, places), dtype=np.float64)
    names, arms = _items(table, item)
    left_out = tuple(
        (one or "(no name)", _why(table, i, values)) for i, one in enumerate(table.columns) if i not in (item, *places)
    )
    return Pool(names, arms, rows, [table.columns[i] for i in places], table.name, column, guessed, left_out)


def _arrays(pool: Mapping[Any, Any]) -> Pool:
    blocks = []
    for arm, content in pool.items():
        block = check_real_array(content, f"the pool of arm {short(arm)}")
        blocks.append(block[:, None] if block.ndim == 1 else block)
    if len({block.shape[1:] for block in blocks}) != 1 or blocks[0].ndim != 2:
        raise BadValue("a pool is a dictionary of (n, d) arrays of one d", field="pool")
    rows = np.concatenate(blocks)
    if not rows.size:
        raise BadValue("the pool has no measurements", field="pool")
    arms = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    return Pool([str(arm) for arm in pool], arms, rows, [f"v{i}" for i in range(rows.shape[1])], "the pool")


def _item_column(table: recorded.Recorded, wanted: str | None) -> tuple[int, bool]:
    """The place of the item column, and whether it was only guessed: as the one column without numbers."""
    if wanted is not None:
        return tables.column_named(table, wanted), False
    known = (*tables.ITEM_NAMES, "id")
    found = tables.item_column(table, known)
    if found is not None:
        return found, False
    texts = [
        i
        for i, column in enumerate(table.columns)
        if column and any(row[i] for row in table.rows) and not tables.has_numbers(table, i)
    ]
    if len(texts) == 1:
        return texts[0], True
    what = (
        f"{table.name} needs a column arm, item, sample, name or id, or say which column names the items: "
        f"--items COLUMN (in Python items=); its columns are {tables.listed(table.columns)}"
    )
    raise BadValue(what, field="arm")


def _value_columns(table: recorded.Recorded, item: int, wanted: Sequence[str] | None) -> list[int]:
    try:
        return tables.value_columns(table, item, None, wanted, numeric=True)
    except BadValue as error:
        if wanted is None and table.rows and len(table.columns) > 1:
            what = f"{table.name} has no column of numbers beside the items; its columns are"
            raise BadValue(f"{what} {tables.listed(table.columns)}", field="values") from None
        raise error


def _why(table: recorded.Recorded, place: int, wanted: Sequence[str] | None) -> str:
    """Why a column is no value."""
    if wanted is not None:
        return "not picked"
    if not table.columns[place]:
        return "no name"
    if table.columns[place].casefold() == "id":
        return "an id"
    return "not v0, v1, …" if tables.has_numbers(table, place) else "no numbers"


def _items(table: recorded.Recorded, item: int) -> tuple[list[str], IntArray]:
    """The names of the arms and the arm of each row.

    Arms are in the order of their names (S2 before S10, numbers by size), not of their appearance: in a table that is
    sorted by value, that would tell which item has the smallest value before any of its values is looked at.
    """
    cells = [row[item] for row in table.rows]
    empty = next((i for i, cell in enumerate(cells) if cell is None or not str(cell).strip()), None)
    if empty is not None:
        raise table.problem(empty, table.columns[item], "it is empty: every measurement needs its item")
    given = [tables.text_of(cell) for cell in cells]
    order = sorted(set(given))
    sizes = {name: tables.whole(name) for name in order}
    if None not in sizes.values():
        order.sort(key=lambda name: sizes[name] or 0)
    else:
        order.sort(key=_by_name)
    index = {name: arm for arm, name in enumerate(order)}
    return order, np.array([index[name] for name in given])


def _by_name(name: str) -> list[tuple[int, int, str]]:
    """A key for sorting: whole numbers in a name count as numbers, and capitals as small letters."""
    parts = re.split(r"([0-9]+)", name.casefold())
    numbers = [part.lstrip("0") for part in parts]  # compared by length first, then digit by digit
    return [(0, len(numbers[i]), numbers[i]) if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part]
