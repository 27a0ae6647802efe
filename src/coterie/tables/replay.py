"""Replaying a pool: how many of its measurements would have been enough, and which groups they show.

The method asks for arms as it would live, and gets each arm's measurements one after the other: shuffled within the arm
by a recorded seed, since a table may be sorted by value, or as recorded (coterie.tables.shuffle). Arms are numbered by
name, not by where they appear. When an arm runs dry, the rest of the pool is told, in turn over the arms and each arm's
in the same order as before. Nothing is left out because of its value, and nothing that is done depends on values that
come later, so what is proven is proven. If even all of it is not enough, what is certain so far is the answer.

What was not needed for the proof still says whether its assumptions look right: coterie.tables.fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from coterie.methods import METHODS, method_named, prepared
from coterie.problem.checks import IntArray
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups
from coterie.problem.settings import DELTA, METHOD, THRESHOLD, Options, SettingError, Settings
from coterie.problem.text import check_text
from coterie.session import Session, SessionDone
from coterie.session.conversation import TOLD
from coterie.session.records import UNASKED
from coterie.session.verdicts_json import alarm_json, homogeneity_json
from coterie.tables.errors import TableError, checked
from coterie.tables.fit import Spread, means_of, misfits
from coterie.tables.pool import Pool, read_pool
from coterie.tables.shuffle import Order, check_order

_FEWER = 3  # if K groups are not proven, so many smaller numbers are tried


@dataclass(frozen=True)
class Replayed:
    """A method's run on a pool: its session, and the arm that ran dry, with the count at which it did."""

    session: Session
    dry: int | None
    dry_at: int | None


def replay_pool(
    pool: Any,
    n_clusters: int,
    delta: float = DELTA,
    method: str = METHOD,
    threshold: str = THRESHOLD,
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
    columns of numbers. `noise` as in `Session`: None is a standard deviation of 1. `TableError` (a `ValueError`) names
    what cannot be used.

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
    options: Options = {
        "delta": delta, "method": method, "threshold": threshold, "noise": noise, "distance_ratio": distance_ratio,
    }  # fmt: skip
    return group_pool(content, n_clusters, seed, in_order, **options)[0]


def group_pool(
    pool: Pool, n_clusters: int, seed: int = 0, in_order: bool = False, **options: Unpack[Options]
) -> tuple[dict[str, Any], Session]:
    """Run a method on a pool: what `replay_pool` returns, and the session that it comes from."""
    order = check_order(seed, in_order)
    settings = _checked_settings(pool, n_clusters, options)
    run = _run(pool, settings, order)
    return _answer(pool, settings, order, run), run.session


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
        n_arms, n_clusters, dim = settings.shape
        raise TableError(f"{n_arms} arms, {n_clusters} groups and dimension {dim} do not fit in memory") from None


def _run(pool: Pool, settings: Settings, order: Order) -> Replayed:
    session = _started(settings)
    stacks = pool.stacks(order)
    used = [0] * len(pool.names)
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
        tell, unasked = np.full(rest.size, TOLD), np.full(rest.size, UNASKED)
        session.replay(tell, pool.arms[rest], unasked, pool.rows[rest])  # as told one by one, only faster
        session.check()  # results that nobody asked for may have been enough
    return Replayed(session, dry, dry_at)


def _rest(stacks: Sequence[IntArray], used: Sequence[int]) -> IntArray:
    """The rows that were not used, in turn over the arms: by their place in the stack of their arm, then by arm."""
    left = [stack[count:] for stack, count in zip(stacks, used, strict=True)]
    places = np.concatenate([np.arange(count, len(stack)) for stack, count in zip(stacks, used, strict=True)])
    return np.concatenate(left)[np.argsort(places, kind="stable")]


def _answer(pool: Pool, settings: Settings, order: Order, run: Replayed) -> dict[str, Any]:
    """The answer of `replay_pool`, as plain JSON values."""
    session, dry, names, noise = run.session, run.dry, pool.names, settings.noise
    labels, certifies = session.labels, method_named(settings.method).certifies
    counts = pool.counts
    found: dict[str, Any] = {
        "done": session.done,
        "t": session.t,
        "recorded": len(pool.rows),
        "n_arms": session.n_arms,
        "n_clusters": session.n_clusters,
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
        "alarm": alarm_json(session, names.__getitem__),
        "homogeneity": homogeneity_json(session, range(1, session.n_clusters + 1)),
        "noise": _noise_beside_spread(noise, pool.spread()),
        "misfits": _misfits(pool, noise, session) if session.done else [],
        "fewer": None if session.done or session.alarm is not None else _fewer(pool, settings, order),
        "certificate": session.certificate if certifies else None,
        "read": pool.described(),
    }
    if not session.done and certifies:
        found["partial"] = _partial(session, names)
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


def _partial(session: Session, names: Sequence[str]) -> dict[str, Any]:
    """What is certain before the end, by the names of the items."""
    partial = session.partial()
    return {
        "settled": [names[arm] for arm in partial.settled],
        "undecided": [names[arm] for arm in partial.undecided],
        "representatives": [names[arm] for arm in partial.representatives],
        "differ": [[names[arm], names[lead]] for arm, lead in partial.differ],
    }


def _noise_beside_spread(noise: Noise, spread: Spread) -> dict[str, Any]:
    deviations, pair = spread.deviations, spread.most_correlated()
    return {
        "stated": noise.to_json(),
        "deviations": np.sqrt(np.diag(noise.covariance)).tolist(),
        "spread": None if deviations is None else deviations.tolist(),
        "together": None if pair is None else {"columns": [pair[0], pair[1]], "correlation": pair[2]},
        "upper": spread.upper(),
        "upper_independent": spread.upper_independent(),
        "upper_covariance": spread.upper_covariance(),
        "freedom": spread.freedom,
        "verdicts": spread.column_verdicts(noise),
        "direction": spread.direction_verdict(noise),
    }


def _misfits(pool: Pool, noise: Noise, session: Session) -> list[dict[str, Any]]:
    labels = session.labels
    assert labels is not None
    found = misfits(labels, pool.arms, noise.whiten(pool.rows))
    return [{"arm": arm, "name": pool.names[arm], "group": int(labels[arm]) + 1, "chi2": value} for arm, value in found]


def _fewer(pool: Pool, settings: Settings, order: Order) -> dict[str, Any] | None:
    """A smaller number of groups for which the same measurements are enough and every item fits, if there is one.

    It is tried downwards until one is proven. A single group proves nothing: there it only says that every item fits.
    """
    for n_clusters in range(settings.n_clusters - 1, max(settings.n_clusters - 1 - _FEWER, 1), -1):
        session = _run(pool, replace(settings, question=ExactGroups(n_clusters)), order).session
        if session.done:
            fits = not _misfits(pool, settings.noise, session)
            return {"n_clusters": n_clusters, "t": session.t} if fits else None
    one_group = np.zeros(len(pool.names), dtype=np.int64)
    return None if misfits(one_group, pool.arms, settings.noise.whiten(pool.rows)) else {"n_clusters": 1, "t": None}
