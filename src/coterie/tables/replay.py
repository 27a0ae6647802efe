"""Replaying a pool: how many of its measurements would have been enough, and which groups they show.

The method asks for arms as it would live, and gets each arm's measurements one after the other: shuffled within the arm
by a recorded seed, since a table may be sorted by value, or as recorded (`coterie.tables.checks.row_order`). Arms are
numbered by name, not by where they appear. When an arm runs dry, the rest of the pool is told, in turn over the arms
and each arm's in the same order as before. Nothing is left out because of its value, and nothing that is done depends
on values that come later, so what is proven is proven. If even all of it is not enough, what is certain so far is the
answer.

What was not needed for the proof still says whether its assumptions look right: coterie.tables.checks.assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from coterie.methods import METHODS, method_named, prepared
from coterie.problem.checks import IntArray, check_text
from coterie.problem.question import GROUPS, ExactGroups, SingleLinkage
from coterie.problem.settings import DELTA, METHOD, THRESHOLD, Options, SettingError, Settings
from coterie.session import Session, SessionDone
from coterie.session.conversation import TOLD
from coterie.session.facts import UNASKED
from coterie.session.partial import MOST_ITEMS
from coterie.tables.checks.assumptions import CheckedPool, checked_pool, thin_items
from coterie.tables.checks.row_order import Order
from coterie.tables.checks.successes import as_counts
from coterie.tables.errors import TableError, checked
from coterie.tables.growing import DryItem, FewerGroups, ReplayAnalysis, TableForecast
from coterie.tables.pool import Pool
from coterie.tables.reading.pools import read_pool

_FEWER = 3  # if K groups are not proven, so many smaller numbers are tried


def replay_pool(
    pool: Any,
    n_clusters: int | None = None,
    delta: float = DELTA,
    method: str = METHOD,
    threshold: str = THRESHOLD,
    noise: Any = None,
    distance_ratio: float | None = None,
    values: Sequence[str] | None = None,
    items: str | None = None,
    in_order: bool = False,
    resolution: Any = None,
    groups: str = GROUPS[0],
    wide: bool | str = False,
    leave_out_holes: bool = False,
    sheet: str | None = None,
    copies: str | None = None,
) -> dict[str, Any]:
    """Run a method on recorded measurements, and say how many of them would have been enough.

    Each item's measurements are shuffled first, by a seed from the table's content and by the item's name, so that
    their order has nothing to do with their values; how many there are must have nothing to do with them either.

    Parameters
    ----------
    pool : path, DataFrame, list of dict, or dict
        A CSV, Excel or Parquet file, a frame, or rows as dictionaries: a column of items and columns of values; or
        {item: (n, d) array}.
    n_clusters : int, optional
        How many groups there are; either this or `resolution` is given.
    delta, method, threshold, noise, distance_ratio, resolution, groups
        As for `Session`. With a noise of `coterie.Counts`, columns such as `clicks` and `impressions`
        (`coterie.tables.reading.columns.TOTALS`) are successes of trials: an item's trials, in an order drawn at
        random, become counts out of one number, exactly as if they had been measured so. `Counts(n)` says that number;
        with `Counts()` it is chosen.
    values, items : list of str, str, optional
        The columns of the values, and the one that names the items: else v0, v1, … or all columns of numbers that may
        be measurements, and `arm`, `item`, `sample`, `name` or `id`, or the only column without numbers.
    in_order : bool
        Keep the order of the table. That assumes that an item's measurements stand in an order that has nothing to do
        with their values, as when it is the order in which they were measured; then their number may depend on values,
        as in a campaign's export.
    wide : bool or {"rows", "columns"}
        True: a row is an item and each cell one measurement of it, of one number; "columns": a column is. Empty cells
        are then measurements that were not made, for reasons that have nothing to do with values.
    leave_out_holes : bool
        Leave out rows with an empty cell, if the values are not the reason for it; else they are refused.
    sheet : str, optional
        Which sheet of an Excel file; the first if left out.
    copies : {"drop", "keep"}, optional
        What rows are that repeat others exactly, where there are more of them than chance explains.

    Returns
    -------
    dict
        Plain JSON values. The answer: `done`, `t` (how many were enough; used, if not), `recorded`, `order` (how they
        were shuffled), `dry` (the item whose measurements ran out first, if one did), `labels` (from 0), `groups` (from
        1), for CROC `certificate`, `partial` and `pairs`: which pairs are proven apart and alike, a compact letter
        display (items that share a letter are not proven different), the groups that each item may still belong to.

        For a resolution: `references`, the reference item of each group; `borders`, the items near a border with the
        other groups that they could belong to; `forecast`, what the run was expected to take when every item had been
        measured, and which resolution the table should allow.

        What all that was recorded says: `read`, what was read and left out; `slips`, rows that do not belong (named in
        at most 1 % of tables with Gaussian noise) and columns with heavy tails; `row_order`, whether the order of the
        rows goes with the values (tested at 1 %); `noise`, as stated or assumed, beside the spread of repeats without
        the rows of `slips` ("too small" in `verdicts` or `direction` voids the proof, and so does `rows_contradict`);
        `misfits`, items that do not fit their group, and `fit`, how that was tested; `fewer`, a smaller number of
        groups that is proven if K is not; `alarm` and `homogeneity`, what speaks against K. The last four are empty
        where items of a group may differ: for a resolution, and for `groups="linkage"`.

    Raises
    ------
    TableError
        A `ValueError` that names the table, column, cell or setting that cannot be used.

    Examples
    --------
    >>> from coterie.tables import replay_pool
    >>> table = {"A": [4.9, 5.1, 5.0], "B": [5.0, 4.8, 5.3], "C": [7.9, 8.1, 8.0]}
    >>> answer = replay_pool(table, n_clusters=2, noise=0.2)
    >>> answer["done"], answer["t"], [group["names"] for group in answer["groups"]]
    (True, 3, [['A', 'B'], ['C']])
    """
    content = read_pool(pool, values, items, wide, leave_out_holes, sheet, copies)
    options: Options = {
        "delta": delta, "method": method, "threshold": threshold, "noise": noise, "distance_ratio": distance_ratio,
        "resolution": resolution, "groups": groups,
    }  # fmt: skip
    return group_pool(content, n_clusters, in_order, **options).to_json()


def group_pool(
    pool: Pool, n_clusters: int | None = None, in_order: bool = False, **options: Unpack[Options]
) -> ReplayAnalysis:
    """Run a method on a pool: the answer, with the session that it comes from."""
    order = pool.order(in_order)
    pool, options["noise"] = as_counts(pool, options.get("noise"), options.get("resolution") is not None, order)
    settings = _checked_settings(pool, n_clusters, options)
    checks = checked_pool(pool, settings.noise)
    session, dry, forecast = _run(pool, settings, order)
    asked, done = settings.question, session.done
    labels = None if session.labels is None else session.labels.tolist()
    equal = isinstance(asked, ExactGroups)  # else items of a group may differ, and nothing more is tested
    certifies = method_named(settings.method).certifies
    partial = session.partial() if certifies and session.n_arms <= MOST_ITEMS else None
    apart = np.zeros((session.n_arms, session.n_arms), dtype=bool)
    for low, high in () if partial is None else partial.apart:
        apart[low, high] = apart[high, low] = True
    certificate = session.certificate if certifies else None
    return ReplayAnalysis(
        checks=checks,
        question=asked,
        delta=session.delta,
        order=order,
        apart=apart,
        labels=labels,
        done=done,
        references=None if session.references is None else list(session.references),
        borders={arm: list(others) for arm, others in session.borders.items()},
        thin=[] if isinstance(asked, SingleLinkage) else thin_items(pool, labels, done),
        misfits=checks.misfits(np.array(labels)) if equal and done and labels is not None else [],
        certificate=certificate,
        events=[] if certificate is None else session.events,
        session=session,
        dry=dry,
        forecast=forecast,
        fewer=None if not equal or done or session.alarm is not None else _fewer(checks, settings, order),
        partial=partial,
    )


def _checked_settings(pool: Pool, n_clusters: Any, options: Options) -> Settings:
    """The settings of a session on this pool; `TableError` names the one that is wrong."""
    for i, name in enumerate(pool.names):
        checked(f"names[{i}]", check_text, name, f"names[{i}]")
    try:
        given = Settings.of(len(pool.names), n_clusters, pool.dim, **options | {"names": pool.names})
        rule = method_named(given.method)
        if rule.simulates_only:
            others = ", ".join(method.name for method in METHODS.values() if not method.simulates_only)
            message = f"method {rule.name!r} knows the true groups: it is for simulations; choose one of {others}"
            raise TableError(message, field="method")
        return prepared(given)[0]
    except SettingError as error:
        raise TableError(str(error), error.field) from None


def _started(settings: Settings) -> Session:
    try:
        return Session.of(settings)
    except MemoryError:
        shape = f"{settings.n_arms} arms, {settings.question.words} and dimension {settings.dim}"
        raise TableError(f"{shape} do not fit in memory") from None


def _run(pool: Pool, settings: Settings, order: Order) -> tuple[Session, DryItem | None, TableForecast | None]:
    """The session of a method's run on a pool, the item whose rows were used up, and the forecast that was made when
    every item had been measured.
    """
    session = _started(settings)
    stacks = pool.stacks(order)
    used = [0] * len(pool.names)
    dry: DryItem | None = None
    forecast: TableForecast | None = None
    while not session.done:
        try:
            arm = session.ask()
        except SessionDone:
            break
        if used[arm] == len(stacks[arm]):
            dry = DryItem(arm, pool.names[arm], len(stacks[arm]), session.t)
            session.forget(session.pending[-1][0])
            break
        session.tell(arm, pool.rows[stacks[arm][used[arm]]])
        used[arm] += 1
        if forecast is None and session.n_measurements >= session.n_arms:
            forecast = _forecast(session, len(pool.rows))
    if dry is not None:
        rest = _rest(stacks, used)
        tell, unasked = np.full(rest.size, TOLD), np.full(rest.size, UNASKED)
        session.replay(tell, pool.arms[rest], unasked, pool.rows[rest])  # as told one by one, only faster
        session.check()  # results that nobody asked for may have been enough
    return session, dry, forecast


def _forecast(session: Session, recorded: int) -> TableForecast | None:
    """The measurements that a run is expected to take, and the resolution for which those recorded should do."""
    total = session.forecast
    if total is None:
        return None
    enough = total <= recorded
    coarser = None if enough or session.resolution is None else session.resolution_for(recorded)
    return TableForecast(total, enough, coarser)


def _rest(stacks: Sequence[IntArray], used: Sequence[int]) -> IntArray:
    """The rows that were not used, in turn over the arms: by their place in the stack of their arm, then by arm."""
    left = [stack[count:] for stack, count in zip(stacks, used, strict=True)]
    places = np.concatenate([np.arange(count, len(stack)) for stack, count in zip(stacks, used, strict=True)])
    return np.concatenate(left)[np.argsort(places, kind="stable")]


def _fewer(checks: CheckedPool, settings: Settings, order: Order) -> FewerGroups | None:
    """A smaller number of groups for which the same measurements are enough and every item fits, if there is one.

    It is tried downwards until one is proven. A single group proves nothing: there it only says that every item fits.
    Where the fit cannot be tested, nothing is said.
    """
    if checks.fitted_by is None:
        return None
    most = settings.shape[1] - 1
    for n_clusters in range(most, max(most - _FEWER, 1), -1):
        session = _run(checks.pool, replace(settings, question=ExactGroups(n_clusters)), order)[0]
        if session.done:
            assert session.labels is not None
            return None if checks.misfits(session.labels) else FewerGroups(n_clusters, session.t)
    one_group = np.zeros(len(checks.pool.names), dtype=np.int64)
    return None if checks.misfits(one_group) else FewerGroups(1, None)
