"""A campaign as a picture: where each item is, how sure that is, in which group it is, and what is proven of it.

All of it is of one moment, from the results that count. As with `coterie.campaign.views.partial`, the campaign's lock
is held only while they are taken, and what was computed is kept until another result counts. Beyond `MOST_DOTS` items
the picture has the groups instead: no answer grows with the number of items beyond that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.views.partial import TakenResults, meanings, take_results, with_matrix
from coterie.evidence.item_means import ItemMeans, PrincipalAxes, item_means, principal_axes
from coterie.methods import method_named
from coterie.problem.checks import FloatArray, IntArray
from coterie.session.intervals import Record, intervals_at, is_quick, session_record
from coterie.session.partial import MOST_ITEMS

MOST_DOTS = 2000
"""Up to so many items are in the picture, each by itself; of more, the groups."""

MOST_GROUPS = 200
"""So many groups, the largest ones."""

LISTED_NUMBERS = 8
"""So many numbers of an item are listed; fewer if there are many items."""

_LISTED_IN_ALL = 6000
_DIGITS = 8
_WIDEST = 4.0  # times the picture: a wider interval would push everything else together
_SMALLEST_LOADING, _MOST_LOADINGS = 0.2, 4


@dataclass(frozen=True)
class TakenPicture:
    """What a picture needs of a campaign, taken under its lock."""

    results: TakenResults
    value_names: Sequence[str]
    has_answers: bool
    why_not: str | None
    record: Record | None = None  # what proven intervals rest on; None: there are none


def take_for_picture(seen: CampaignReading) -> TakenPicture:
    """What a picture needs, at this moment."""
    settings = seen.state.settings
    names = settings.value_names or ([f"v{i}" for i in range(settings.dim)] if settings.dim > 1 else ["value"])
    why_not = None
    if not method_named(settings.method).certifies:
        why_not = f"method {settings.method!r} proves nothing about single items"
    elif settings.n_arms > MOST_ITEMS:
        why_not = f"what is proven of each item is shown for up to {MOST_ITEMS} items"
    record = session_record(seen.state.session)
    return TakenPicture(take_results(seen), names, why_not is None, why_not, record)


def picture(taken: TakenPicture, proven: bool = True) -> dict[str, Any]:
    """The picture as plain values: `items` with `mean`, `low`, `high` and place; `axes`; `groups`; the `matrix`.

    Without what is `proven` no pair of items is looked at: that is quick for a thousand items too.
    """
    content = _kept(taken, "picture", lambda: _drawn(taken))
    if not proven or content["cut"] is not None:
        return taken.results.campaign | content
    if not taken.has_answers:
        return taken.results.campaign | content | {"no_matrix": taken.why_not}
    return (
        taken.results.campaign
        | content
        | _kept(taken, "picture, proven", lambda: _answered(content["items"], taken.results))
    )


def _kept(taken: TakenPicture, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was computed before, if nothing has counted since."""
    key, kept = taken.results.key, taken.results.state.computed
    pair = kept.get(name)
    if pair is None or pair[0] != key:
        pair = kept[name] = (key, compute())
    answer: dict[str, Any] = pair[1]
    return answer


def _drawn(taken: TakenPicture) -> dict[str, Any]:
    """All but what is proven."""
    moment = taken.results.moment
    stacks, noise = moment.stacks, moment.settings.noise
    means = item_means(stacks, noise)
    axes = principal_axes(stacks, noise, means) if stacks.dim > 1 else None
    on_axes = means.words
    if stacks.n_arms <= MOST_DOTS and taken.record is not None:
        means = _proven(means, taken.record)
    of_item = _ids_of_items(moment.labels, taken.results.group_ids, stacks.n_arms)
    drawn = stacks.n_arms <= MOST_DOTS
    listed = _listed_numbers(axes, stacks.dim, stacks.n_arms if drawn else MOST_GROUPS)
    return {
        "items": _items(taken, means, axes, listed, stacks.counts) if drawn else [],
        "item_count": stacks.n_arms,
        "measured": int(np.count_nonzero(stacks.counts)),
        "cut": None if drawn else f"{stacks.n_arms} items are too many to draw: the groups are drawn instead.",
        "interval": {"words": means.words, "proven": means.words != on_axes, "axes": on_axes},
        "numbers": [{"index": i, "name": taken.value_names[i]} for i in listed],
        "axes": None if axes is None else _axes(axes, taken.value_names),
        "groups": _groups(of_item, stacks.counts, means, axes, listed),
        "matrix": None,
        "no_matrix": "it was not asked for" if drawn else "there are too many items for one",
    }


def _proven(means: ItemMeans, record: Record) -> ItemMeans:
    """The means with proven intervals; as they are if there are none, or too many to compute now.

    An interval that is open, or far wider than the picture, is not drawn.
    """
    noise = record.settings.noise
    offsets = record.settings.blocks == "offset"
    if record.revised or offsets or not is_quick(noise, record.settings.n_arms * record.settings.dim):
        return means
    intervals = intervals_at(record, "items")
    with np.errstate(invalid="ignore"):
        ends = np.concatenate([means.mean, means.low, means.high])
        room = np.nanmax(ends, axis=0, initial=-np.inf) - np.nanmin(ends, axis=0, initial=np.inf)
        drawn = intervals.high - intervals.low <= _WIDEST * np.where(room > 0.0, room, np.inf)
    drawn &= np.isfinite(intervals.low) & np.isfinite(intervals.high)
    if not drawn.any():  # nothing yet, or results that nobody asked for
        return means
    low, high = (np.where(drawn, end, np.nan) for end in (intervals.low, intervals.high))
    left_out = ""
    if (~drawn & ~np.isnan(means.mean)).any():
        left_out = "; those that are still very wide are not drawn"
    of = "means" if intervals.quantile is None else "medians"
    words = (
        f"proven intervals for the {of} of all items; that any of them is wrong, now or at any other moment, has "
        f"probability at most {intervals.delta:g}{left_out}"
    )
    return replace(means, low=low, high=high, words=words)


def _ids_of_items(labels: IntArray | None, ids: Sequence[int], n_arms: int) -> IntArray:
    """The id of each item's group; 0 where there is none yet, -1 where the item is retired (its label is negative)."""
    if labels is None:
        return np.zeros(n_arms, dtype=np.int64)
    return np.where(labels < 0, -1, np.asarray(ids, dtype=np.int64)[labels])


def _listed_numbers(axes: PrincipalAxes | None, dim: int, drawn: int) -> list[int]:
    """Which numbers of an item are listed: those that weigh most on the axes, in their own order."""
    most = max(1, min(LISTED_NUMBERS, _LISTED_IN_ALL // max(1, drawn)))
    if axes is None or dim <= most:
        return list(range(min(dim, most)))
    weights = (np.abs(axes.loadings) * axes.share[:, None]).max(axis=0)
    return sorted(np.argsort(-weights, kind="stable")[:most].tolist())


def _plain(values: FloatArray) -> list[float | None]:
    """Numbers as JSON has them, short; None for NaN."""
    return [None if value != value else float(f"{value:.{_DIGITS}g}") for value in values.tolist()]


def _items(
    taken: TakenPicture, means: ItemMeans, axes: PrincipalAxes | None, listed: list[int], counts: IntArray
) -> list[dict[str, Any]]:
    labels, ids = taken.results.moment.labels, taken.results.group_ids
    of_item = _ids_of_items(labels, ids, counts.size)
    items = []
    for arm, name in enumerate(taken.results.names):
        measured = bool(counts[arm])
        item: dict[str, Any] = {
            "arm": arm,
            "name": name,
            "group_id": int(of_item[arm]) if of_item[arm] > 0 else None,
            "retired": bool(of_item[arm] < 0),
            "measurements": int(counts[arm]),
            "mean": _plain(means.mean[arm, listed]) if measured else None,
            "low": _plain(means.low[arm, listed]) if measured else None,
            "high": _plain(means.high[arm, listed]) if measured else None,
        }
        if axes is not None:
            item["at"] = _plain(axes.at[arm]) if measured else None
            item["error"] = _plain(axes.error[arm]) if measured else None
        items.append(item | {"settled": None, "possible": None, "evidence": None})
    return items


def _answered(items: list[dict[str, Any]], results: TakenResults) -> dict[str, Any]:
    """The items with what is proven of them, and the matrix without its rows: the items have them in `evidence`."""
    answers, matrix = with_matrix(results)
    told = [
        item | {"settled": proven["settled"], "possible": proven["possible"], "evidence": row}
        for item, proven, row in zip(items, answers["items"], matrix["rows"], strict=True)
    ]
    shown = {
        "columns": matrix["columns"],
        "left_out": matrix["left_out"],
        "means": meanings(results.moment.settings.question),
        "error": answers["error"],
    }
    return {"items": told, "matrix": shown, "no_matrix": None}


def _axes(axes: PrincipalAxes, names: Sequence[str]) -> dict[str, Any]:
    units = "the standard deviation of a single result" if axes.by_noise else "how far the items differ in it"
    heaviest = np.argsort(-np.abs(axes.loadings).max(axis=0), kind="stable")[:LISTED_NUMBERS]
    return {
        "kind": "principal",
        "loadings": [{names[i]: float(f"{row[i]:.4g}") for i in sorted(heaviest.tolist())} for row in axes.loadings],
        "words": [f"axis {place + 1}: {_loading_words(row, names)}" for place, row in enumerate(axes.loadings)],
        "share": _plain(axes.share),
        "units": f"each number less its mean over the items, in units of {units}",
    }


def _loading_words(row: FloatArray, names: Sequence[str]) -> str:
    """0.9 ph + 0.4 turbidity: the largest loadings, with a hint if there are others."""
    order = np.argsort(-np.abs(row), kind="stable").tolist()
    large = [i for i in order if abs(row[i]) >= _SMALLEST_LOADING][:_MOST_LOADINGS] or order[:1]
    parts = []
    for place, i in enumerate(large):
        sign = "\u2212 " if row[i] < 0.0 else "+ " if place else ""
        parts.append(f"{sign}{abs(row[i]):.2g} {names[i]}")
    rest = any(abs(row[i]) >= _SMALLEST_LOADING / 2 for i in order[len(large) : len(large) + 1])
    return " ".join(parts) + (" + …" if rest else "")


def _groups(
    of_item: IntArray, counts: IntArray, means: ItemMeans, axes: PrincipalAxes | None, listed: list[int]
) -> list[dict[str, Any]]:
    """The groups, by id: size, measurements, and the mean and the range of the means of their items."""
    measured = counts > 0
    known, sizes = np.unique(of_item[of_item > 0], return_counts=True)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MOST_GROUPS])
    groups = []
    for id, size in zip(known[largest].tolist(), sizes[largest].tolist(), strict=True):
        members = (of_item == id) & measured
        group: dict[str, Any] = {"id": id, "size": size, "measurements": int(counts[of_item == id].sum())}
        for key, value in (("mean", means.mean[:, listed]), ("at", None if axes is None else axes.at)):
            if value is not None and members.any():
                inside = value[members]
                group[key] = _plain(inside.mean(axis=0))
                group[f"{key}_range"] = [_plain(inside.min(axis=0)), _plain(inside.max(axis=0))]
        groups.append(group)
    return groups
