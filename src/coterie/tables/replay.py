"""Replaying a pool: how many of its measurements would have been enough, and which groups they show.

The method asks for arms as it would live, and gets each arm's measurements one after the other: shuffled within the arm
by a recorded seed, since a table may be sorted by value, or as recorded (coterie.tables.shuffle). Arms are numbered by
name, not by where they appear. When an arm runs dry, the rest of the pool is told, in turn over the arms and each arm's
in the same order as before. Nothing is left out because of its value, and nothing that is done depends on values that
come later, so what is proven is proven. If even all of it is not enough, what is certain so far is the answer.

What was not needed for the proof still says whether its assumptions look right: coterie.tables.assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from coterie.methods import METHODS, method_named, prepared
from coterie.problem.checks import IntArray
from coterie.problem.question import GROUPS, ExactGroups, SingleLinkage
from coterie.problem.settings import DELTA, METHOD, THRESHOLD, Options, SettingError, Settings
from coterie.problem.text import check_text
from coterie.session import Partial, Session, SessionDone
from coterie.session.conversation import TOLD
from coterie.session.partial import MOST_ITEMS
from coterie.session.records import UNASKED
from coterie.session.verdicts_json import alarm_json, homogeneity_json
from coterie.tables.assumptions import Checked, checked_pool, order_json
from coterie.tables.errors import TableError, checked
from coterie.tables.fit import means_of
from coterie.tables.pool import Pool, read_pool
from coterie.tables.shuffle import Order
from coterie.tables.successes import as_counts
from coterie.tables.thin_items import thin_items

_FEWER = 3  # if K groups are not proven, so many smaller numbers are tried


@dataclass(frozen=True)
class Replayed:
    """A method's run on a pool: its session, and the arm whose rows were used up, with the count at which they were.

    `forecast`: what the run was expected to take when every arm had been measured, where the method says so.
    """

    session: Session
    dry: int | None
    dry_at: int | None
    forecast: dict[str, Any] | None = None


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
    """Run a method on recorded measurements.

    `pool`: a CSV, Excel or Parquet file, rows as dictionaries, a pandas DataFrame, or {arm: (n, d) array}. A table has
    a column of items (`arm`, `item`, `sample`, `name` or `id`, or what `items` names) and the values: `values`, or v0,
    v1, …, or all other columns of numbers. `wide=True`: a row is an item and each cell one measurement of it, of one
    number; `wide="columns"`: a column is. Empty cells are then measurements that were not made, for reasons that have
    nothing to do with values. `sheet` picks one of an Excel file. In other tables a row with an empty cell is refused;
    `leave_out_holes=True` leaves such rows out, if that is the reason for them too, and `read["holes"]` names them.
    `copies`: where more rows repeat others exactly than chance explains, "drop" or "keep" must say what they are (see
    `read_pool`). `noise` as in `Session`: None is any noise. `TableError` (a `ValueError`) names what cannot be used.

    Columns such as `clicks` and `impressions` (`coterie.tables.columns.TOTALS`) with a noise of `coterie.Counts` are
    successes of trials: an item's trials, in an order drawn at random, become counts out of one number, exactly as if
    they had been measured so. `Counts(n)` says that number; with `Counts()` it is chosen. `read["cut"]` says what was
    done, and `bursts` there that the rows contradict independent trials.

    Each item's measurements are shuffled first, by a seed from the table's content and by the item's name, so that
    their order has nothing to do with their values; how many there are must have nothing to do with them either.
    `in_order=True` keeps the order of the table. That assumes that an item's measurements stand in an order that has
    nothing to do with their values, as when it is the order in which they were measured; then their number may depend
    on values, as in a campaign's export.

    The answer: `done`, `t` (how many were enough; used, if not), `recorded`, `order` (how they were shuffled), `dry`
    (the arm whose measurements ran out first, if one did), `labels` (from 0), `groups` (from 1), for CROC `certificate`
    and `partial`, and `pairs`: which pairs are proven apart and alike, a compact letter display (items that share a
    letter are not proven different), the groups that each item may still belong to; and how well all that was recorded
    fits: `slips` (rows that do not belong, named in at most 1 % of
    tables with Gaussian noise, and columns with heavy tails), `row_order` (whether the order of the rows goes with the
    values, tested at 1 %), `noise` (stated or assumed, and the spread of repeats), `misfits` (items that do not fit the
    group they were put in: there may be more groups; `fit` says how that was tested), `fewer` (if K is not proven, a
    smaller number that is).

    With `resolution` in place of n_clusters, as in `Session`, K is found: `references` names the reference item of each
    group, `borders` the items near a border with the other groups that they could belong to, and `forecast` says what
    the run was expected to take when every item had been measured, and which resolution the table should allow. For a
    resolution and for `groups="linkage"` items of a group may differ: `misfits`, `fewer` and `homogeneity` are empty.

    In `noise`, `spread` and what follows from it leave out the rows that `slips` names (`without_rows` of them), unless
    the column has heavy tails. For a known noise `verdicts` are on the columns and `direction` on all weighted sums of
    them ("too small" voids the proof), and `rows_contradict` says that only rows that do not belong contradict it (that
    voids the proof too). `upper` (standard deviations) and `upper_covariance` are large enough in every direction with
    probability 0.99, if the noise is Gaussian; `upper_independent` if the columns are known to vary independently. None
    of these: there are too few repeats.
    `alarm` and `homogeneity`, as in `Session`, say what speaks against K: items that differ, groups that look mixed.
    """
    content = read_pool(pool, values, items, wide, leave_out_holes, sheet, copies)
    options: Options = {
        "delta": delta, "method": method, "threshold": threshold, "noise": noise, "distance_ratio": distance_ratio,
        "resolution": resolution, "groups": groups,
    }  # fmt: skip
    return group_pool(content, n_clusters, in_order, **options)[0]


def group_pool(
    pool: Pool, n_clusters: int | None = None, in_order: bool = False, **options: Unpack[Options]
) -> tuple[dict[str, Any], Session]:
    """Run a method on a pool: what `replay_pool` returns, and the session that it comes from."""
    order = pool.order(in_order)
    pool, options["noise"] = as_counts(pool, options.get("noise"), options.get("resolution") is not None, order)
    settings = _checked_settings(pool, n_clusters, options)
    checks = checked_pool(pool, settings.noise)
    run = _run(pool, settings, order)
    return _answer(checks, settings, order, run), run.session


def _checked_settings(pool: Pool, n_clusters: Any, options: Options) -> Settings:
    """The settings of a session on this pool; `TableError` names the one that is wrong."""
    for i, name in enumerate(pool.names):
        checked(f"names[{i}]", check_text, name, f"names[{i}]")
    try:
        given = Settings.of(len(pool.names), n_clusters, pool.dim, **options | {"names": pool.names})
        rule = method_named(given.method)
        if rule.simulates_only:
            others = ", ".join(one.name for one in METHODS.values() if not one.simulates_only)
            what = f"method {rule.name!r} knows the true groups: it is for simulations; choose one of {others}"
            raise TableError(what, field="method")
        return prepared(given)[0]
    except SettingError as error:
        raise TableError(str(error), error.field) from None


def _started(settings: Settings) -> Session:
    try:
        return Session.of(settings)
    except MemoryError:
        shape = f"{settings.n_arms} arms, {settings.question.words} and dimension {settings.dim}"
        raise TableError(f"{shape} do not fit in memory") from None


def _run(pool: Pool, settings: Settings, order: Order) -> Replayed:
    session = _started(settings)
    stacks = pool.stacks(order)
    used = [0] * len(pool.names)
    dry: int | None = None
    forecast: dict[str, Any] | None = None
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
        if forecast is None and session.n_measurements >= session.n_arms:
            forecast = _forecast(session, len(pool.rows))
    dry_at = None if dry is None else session.t
    if dry is not None:
        rest = _rest(stacks, used)
        tell, unasked = np.full(rest.size, TOLD), np.full(rest.size, UNASKED)
        session.replay(tell, pool.arms[rest], unasked, pool.rows[rest])  # as told one by one, only faster
        session.check()  # results that nobody asked for may have been enough
    return Replayed(session, dry, dry_at, forecast)


def _forecast(session: Session, recorded: int) -> dict[str, Any] | None:
    """The measurements that a run is expected to take, and the resolution for which those recorded should do."""
    total = session.forecast
    if total is None:
        return None
    enough = total <= recorded
    coarser = None if enough or session.resolution is None else session.resolution_for(recorded)
    return {"total": total, "enough": enough} | ({} if coarser is None else coarser.to_json())


def _rest(stacks: Sequence[IntArray], used: Sequence[int]) -> IntArray:
    """The rows that were not used, in turn over the arms: by their place in the stack of their arm, then by arm."""
    left = [stack[count:] for stack, count in zip(stacks, used, strict=True)]
    places = np.concatenate([np.arange(count, len(stack)) for stack, count in zip(stacks, used, strict=True)])
    return np.concatenate(left)[np.argsort(places, kind="stable")]


def _answer(checks: Checked, settings: Settings, order: Order, run: Replayed) -> dict[str, Any]:
    """The answer of `replay_pool`, as plain JSON values."""
    pool = checks.pool
    session, dry, names = run.session, run.dry, pool.names
    labels, certifies = session.labels, method_named(settings.method).certifies
    counts, asked = pool.counts, settings.question
    equal = isinstance(asked, ExactGroups)  # else items of a group may differ, and nothing more is tested
    found: dict[str, Any] = {
        "done": session.done,
        "t": session.t,
        "recorded": len(pool.rows),
        "n_arms": session.n_arms,
        "n_clusters": session.n_clusters,
        "question": {"kind": asked.kind, "words": asked.words, "claim": asked.claim},
        "dim": session.dim,
        "delta": session.delta,
        "method": session.method,
        "threshold": session.threshold,
        "order": order.as_dict(),
        "dry": None if dry is None else {"arm": dry, "name": names[dry], "recorded": int(counts[dry]), "t": run.dry_at},
        "labels": None if labels is None else labels.tolist(),
        "groups": _groups(session, names),
        "names": list(names),
        "pulls": session.pulls.tolist(),
        "counts": counts.tolist(),
        "means": means_of(pool.arms, pool.rows, session.n_arms)[0].tolist(),
        "partial": None,
        "pairs": None,
        "alarm": alarm_json(session, names.__getitem__),
        "homogeneity": homogeneity_json(session, range(1, (session.n_clusters or 0) + 1)),
        "noise": checks.noise_json(),
        "slips": checks.slips_json(),
        "row_order": order_json(pool, order.seed is not None),
        "fit": checks.fit_json(),
        "misfits": checks.misfits(labels) if equal and session.done and labels is not None else [],
        "fewer": None if not equal or session.done or session.alarm is not None else _fewer(checks, settings, order),
        "thin": []
        if isinstance(asked, SingleLinkage)
        else thin_items(pool, None if labels is None else labels.tolist(), session.done),
        "references": None if session.references is None else [names[arm] for arm in session.references],
        "borders": {names[arm]: [label + 1 for label in others] for arm, others in session.borders.items()},
        "forecast": run.forecast,
        "certificate": session.certificate if certifies else None,
        "read": pool.described(),
    }
    if certifies and session.n_arms <= MOST_ITEMS:
        known = session.partial()
        found["pairs"] = _pairs(known, names)
        found["partial"] = None if session.done else _partial(known, names)
    return found


def _groups(session: Session, names: Sequence[str]) -> list[dict[str, Any]]:
    """The groups by number, from 1, with their arms and centers; none before every arm was measured."""
    labels, centers = session.labels, session.centers
    if labels is None or centers is None:
        return []
    groups = []
    for label in range(int(labels.max()) + 1):
        arms = np.flatnonzero(labels == label).tolist()
        group = {"group": label + 1, "arms": arms, "names": [names[arm] for arm in arms]}
        groups.append(group | {"center": centers[label].tolist()})
    return groups


def _partial(partial: Partial, names: Sequence[str]) -> dict[str, Any]:
    """What is certain before the end, by the names of the items."""
    return {
        "settled": [names[arm] for arm in partial.settled],
        "undecided": [names[arm] for arm in partial.undecided],
        "representatives": [names[arm] for arm in partial.representatives],
        "differ": [[names[arm], names[lead]] for arm, lead in partial.differ],
    }


def _pairs(partial: Partial, names: Sequence[str]) -> dict[str, Any]:
    """What is proven about pairs, by name, and for each item its letters and the groups (from 1) that it may be in."""
    return {
        "apart": [[names[low], names[high]] for low, high in partial.apart],
        "alike": [[names[low], names[high]] for low, high in partial.alike],
        "of": len(names) * (len(names) - 1) // 2,
        "letters": list(partial.letters),
        "possible": [[group + 1 for group in groups] for groups in partial.possible],
        "error": partial.error,
    }


def _fewer(checks: Checked, settings: Settings, order: Order) -> dict[str, Any] | None:
    """A smaller number of groups for which the same measurements are enough and every item fits, if there is one.

    It is tried downwards until one is proven. A single group proves nothing: there it only says that every item fits.
    Where the fit cannot be tested, nothing is said.
    """
    if checks.fitted_by is None:
        return None
    most = settings.shape[1] - 1
    for n_clusters in range(most, max(most - _FEWER, 1), -1):
        session = _run(checks.pool, replace(settings, question=ExactGroups(n_clusters)), order).session
        if session.done:
            assert session.labels is not None
            return None if checks.misfits(session.labels) else {"n_clusters": n_clusters, "t": session.t}
    one_group = np.zeros(len(checks.pool.names), dtype=np.int64)
    return None if checks.misfits(one_group) else {"n_clusters": 1, "t": None}
