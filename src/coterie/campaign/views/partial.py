"""What is proven of a campaign at any moment, and how many groups there are at every resolution.

All pairs of items are looked at, which can take seconds: the campaign's lock is held only while the results are taken,
and nobody else waits. What was computed is kept with the state until another result counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.campaign.errors import Conflict
from coterie.campaign.settings import checked_field
from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.state.state import State
from coterie.campaign.views import status as status_views
from coterie.evidence.intervals.by_noise import has_distances
from coterie.methods import method_named
from coterie.methods.table import certifying_methods
from coterie.problem.checks import IntArray, check_count
from coterie.problem.question import Question, Resolution
from coterie.session.partial import MOST_ITEMS, Moment, ProvenPairs, moment_of, proven_at
from coterie.session.resolution_curve import curve_at, no_distances

if TYPE_CHECKING:
    from coterie.session.handover import Handover

LISTED_PAIRS = 1000
"""So many pairs of each kind are listed, unless more are asked for."""

MOST_PAIRS = 10_000
"""So many can be asked for."""

CURVE_POINTS = 200

_MATRIX, _HANDOVER = "matrix", "handover"
_SMALL = 300
_large = threading.Lock()
"""Campaigns of more items than `_SMALL`, one at a time: matrices of all pairs are large, and take seconds."""


@dataclass(frozen=True)
class TakenResults:
    """What partial answers need of a campaign, taken under its lock. `group_ids`: by the numbers of `labels`."""

    state: State  # for what is kept with it, nothing else
    key: tuple[Any, ...]  # of what was computed: the same as long as nothing else counts
    moment: Moment
    campaign: dict[str, Any]
    names: Sequence[str]
    group_ids: Sequence[int]
    spent: float = 0.0  # of the deadline, if there is one
    proven: bool = False  # the groups, all of them


def take_results(seen: CampaignReading) -> TakenResults:
    """What partial answers need, at this moment."""
    state, session = seen.state, seen.state.session
    if session.features is not None:
        raise Conflict(
            f"campaign {seen.row['name']!r} measures features one by one, and this looks at whole items: see its cells",
            code="by_feature",
        )
    key = (session.t, session.done, state.decisions, session.settings.question)
    return TakenResults(
        state,
        key,
        moment_of(session),
        {
            "id": seen.row["id"],
            "name": seen.row["name"],
            "t": session.t,
            "measurements": state.n_results,
            "done": session.done,
            "resolution": None if session.resolution is None else session.resolution.to_json()["resolution"],
            "question": status_views.question(state),
        },
        [state.settings.name_of(arm) for arm in range(state.settings.n_arms)],
        _ids_by_label(session.labels, state.groups),
        session.spent,
        session.proven,
    )


def _ids_by_label(labels: IntArray | None, groups: IntArray | None) -> list[int]:
    """The stable ids of the groups, by their numbers in `labels`; 0 where there is none."""
    if labels is None or groups is None:
        return [] if labels is None else [0] * (int(labels.max()) + 1)
    ids = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    inside = labels >= 0
    ids[labels[inside]] = groups[inside]
    return ids.tolist()


# What is proven.


def take_for_partial(seen: CampaignReading) -> TakenResults:
    """The same for `partial`; Conflict if this campaign has no partial answers."""
    settings, name = seen.state.settings, seen.row["name"]
    if not method_named(settings.method).certifies:
        raise Conflict(
            f"only method {certifying_methods()} has partial answers, campaign {name!r} uses {settings.method!r}",
            code="no_certificate",
        )
    _check_size(settings.n_arms, name)
    return take_results(seen)


def partial(taken: TakenResults, pairs: int = LISTED_PAIRS) -> dict[str, Any]:
    """What is proven: pairs apart and alike, and of each item its letters and the groups that it may belong to."""
    answers = _kept(taken, "partial", lambda: _all_answers(taken))
    cut = {key: value for key, value in answers.items() if key not in (_MATRIX, _HANDOVER)}
    for kind in ("apart", "alike"):
        cut[kind] = answers[kind] | {"listed": answers[kind]["listed"][:pairs]}
    return taken.campaign | cut | {"cut": _cut_sentence(cut)} | _handed_over(taken, answers[_HANDOVER])


def _handed_over(taken: TakenResults, handed: Handover | None) -> dict[str, Any]:
    """With a deadline: what of it is used, how many items are placed, and how wrong the guess for the others may be."""
    deadline = taken.moment.settings.deadline
    if handed is None or deadline is None:
        return {}
    now = replace(handed, spent=taken.spent, deadline=deadline, left=max(deadline - taken.spent, 0.0)).to_json()
    kept = ("spent", "deadline", "left", "misplaced_at_least", "confusable", "words")
    return {"handover": {key: now[key] for key in kept}}


def with_matrix(taken: TakenResults) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same without pairs, and the evidence as a matrix of items and groups (`coterie.campaign.views.partial`)."""
    answers = partial(taken, 0)
    return answers, _kept(taken, "partial", lambda: _all_answers(taken))[_MATRIX]


def letters(taken: TakenResults) -> Sequence[str]:
    """The letters of each item."""
    return [item["letters"] for item in partial(taken, 0)["items"]]


def _all_answers(taken: TakenResults) -> dict[str, Any]:
    proven = proven_at(taken.moment)
    labels, ids = proven.labels, taken.group_ids
    used = np.bincount(taken.moment.arms, minlength=len(taken.names))
    items = [
        {
            "arm": arm,
            "name": name,
            "group_id": None if labels is None or labels[arm] < 0 else ids[labels[arm]],
            "letters": proven.letters[arm],
            "possible": sorted(ids[label] for label in np.flatnonzero(proven.possible[arm]).tolist()),
            "settled": bool(proven.settled[arm]),
            "used": int(used[arm]),
        }
        for arm, name in enumerate(taken.names)
    ]
    apart, alike = _meaning(taken)
    return {
        "error": proven.error,
        "pairs": (len(items) - len(proven.retired)) * (len(items) - len(proven.retired) - 1) // 2,
        "apart": {"means": apart} | _first_pairs(proven.apart),
        "alike": {"means": alike} | _first_pairs(proven.alike),
        "settled": int(proven.settled.sum()),
        "items": items,
        _MATRIX: evidence_matrix(proven, ids, taken.names),
        _HANDOVER: None if taken.moment.settings.deadline is None else _handover(taken, proven),
    }


def _handover(taken: TakenResults, proven: ProvenPairs) -> Handover:
    from coterie.session.handover import handover_at  # here: SciPy takes a while to load

    return handover_at(taken.moment, proven.listed(), taken.spent, taken.proven)


def _first_pairs(matrix: np.ndarray) -> dict[str, Any]:
    """How many pairs (low, high) there are, and the first of them."""
    upper = np.triu(matrix, 1)
    pairs: list[list[int]] = []
    for low in np.flatnonzero(upper.any(axis=1)).tolist():
        pairs += [[low, high] for high in np.flatnonzero(upper[low]).tolist()]
        if len(pairs) >= MOST_PAIRS:
            break
    return {"count": int(upper.sum()), "listed": pairs[:MOST_PAIRS]}


def _cut_sentence(answers: dict[str, Any]) -> str | None:
    parts = [
        f"{len(part['listed'])} of the {part['count']} pairs proven {kind}"
        for kind in ("apart", "alike")
        if len((part := answers[kind])["listed"]) < part["count"]
    ]
    if not parts:
        return None
    return (
        f"Listed are the first {' and '.join(parts)}; up to {MOST_PAIRS} of each can be asked for. All pairs apart "
        "follow from the letters: two items are proven apart if they share none."
    )


def _meaning(taken: TakenResults) -> tuple[str, str]:
    """What apart and alike mean."""
    question = taken.moment.settings.question
    if isinstance(question, Resolution):
        epsilon, eta = question.bounds_in_words
        return f"more than {epsilon} apart", f"within {eta} of each other"
    return "in different groups", "in one group"


# Numbers of groups.


def take_for_curve(seen: CampaignReading) -> TakenResults:
    """What `curve` needs; Conflict if this campaign has none."""
    settings, name = seen.state.settings, seen.row["name"]
    _check_size(settings.n_arms, name)
    if not has_distances(settings.run.noise):
        raise Conflict(f"campaign {name!r}: {no_distances(settings.run.noise)}", code="no_distances")
    if seen.state.session.t == 0:
        raise Conflict(f"campaign {name!r} has no results that count yet: a curve needs some", code="too_few_results")
    return take_results(seen)


def curve(taken: TakenResults, points: int = CURVE_POINTS) -> dict[str, Any]:
    """For each radius, how many groups there are at least, and how many are enough, both proven."""
    curve_json = _kept(taken, "curve", lambda: curve_at(taken.moment, points=points).to_json(), points)
    return taken.campaign | curve_json


def checked_counts(pairs: Any = LISTED_PAIRS, points: Any = CURVE_POINTS) -> tuple[int, int]:
    """How many pairs are listed, and how many radii a curve has at most."""
    listed = min(checked_field("pairs", check_count, pairs, "pairs", 0), MOST_PAIRS)
    return listed, checked_field("points", check_count, points, "points", 2)


def _check_size(n_arms: int, name: str) -> None:
    if n_arms > MOST_ITEMS:
        raise Conflict(
            f"partial answers look at all pairs of items: they are limited to {MOST_ITEMS} items, campaign {name!r} "
            f"has {n_arms}. Its groups and its certificate have no such limit",
            code="too_many_items",
        )


def _kept(taken: TakenResults, name: str, compute: Callable[[], dict[str, Any]], size: int = 0) -> dict[str, Any]:
    """What was computed before, of this size, if nothing has counted since."""
    key, kept = (*taken.key, size), taken.state.computed
    with _large if len(taken.names) > _SMALL else nullcontext():
        known = kept.get(name)
        if known is None or known[0] != key:
            known = kept[name] = (key, compute())
    answer: dict[str, Any] = known[1]
    return answer


MOST_COLUMNS = 100
"""Of more groups, the largest have a column."""

REPRESENTATIVE, NEAR, FAR, BOTH, OPEN = "r", "+", "-", "b", "?"


def evidence_matrix(proven: ProvenPairs, group_ids: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """`columns`: the groups by their ids, each with the item that stands for it; `rows`: a character a column.

    An item is compared with the representative of each group (of a resolution: its reference). "r": it is that one;
    "+" proven alike; "-" proven apart; "b" both, which a resolution allows between its bounds; "?" neither.
    """
    leads = proven.representatives
    if proven.labels is None or not leads:
        return {"columns": [], "left_out": 0, "rows": [""] * len(names)}
    sizes = np.bincount(proven.labels[proven.labels >= 0], minlength=len(leads))
    largest = np.argsort(-sizes, kind="stable")[:MOST_COLUMNS]
    shown = sorted(largest.tolist(), key=lambda label: group_ids[label])
    items = [leads[label] for label in shown]
    alike, apart = proven.alike[:, items], proven.apart[:, items]
    kinds = np.select([alike & apart, alike, apart], [BOTH, NEAR, FAR], OPEN)
    kinds[items, np.arange(len(items))] = REPRESENTATIVE
    columns = [{"group_id": group_ids[label], "arm": leads[label], "name": names[leads[label]]} for label in shown]
    return {"columns": columns, "left_out": len(leads) - len(shown), "rows": ["".join(row) for row in kinds.tolist()]}


def meanings(question: Question) -> dict[str, str]:
    """What each character of a row says about an item and a group, in a few words."""
    if isinstance(question, Resolution):
        epsilon, eta = question.bounds_in_words
        return {
            REPRESENTATIVE: "it is the group's reference",
            NEAR: f"proven within {eta} of the reference",
            FAR: f"proven more than {epsilon} from the reference",
            BOTH: f"proven more than {epsilon} and within {eta}: either group is right",
            OPEN: "not proven yet",
        }
    return {
        REPRESENTATIVE: "it stands for the group",
        NEAR: "proven to be in the group",
        FAR: "proven not to be in the group",
        BOTH: "contradictory",
        OPEN: "not proven yet",
    }
