"""The groups of a run as people see them: numbered by first appearance, with centers in the units of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.methods.contract import MethodRun
from coterie.methods.maximin import likeliest_groups, weighted_centers
from coterie.methods.reports import Evidence
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups
from coterie.problem.sentences import table_html
from coterie.problem.settings import METHOD, Settings
from coterie.session.conversation import Conversation

MOST_ROWS = 50
"""Groups that a notebook shows; of more, the first ones."""

MOST_NUMBERS = 100
"""Numbers of a center that a notebook shows."""

MOST_NAMES = 20
"""Items of a group that a notebook shows."""

MOST_REGROUPED = 3000
"""Items of which all groups are looked at again at a deadline, at most."""


class KeptGroups(NamedTuple):
    """The groups when somebody last looked at them: as the method numbers them, and as they are shown."""

    labels: IntArray
    n_clusters: int | None
    named: IntArray  # labels as they are shown
    order: IntArray  # the method's numbers, in the order in which groups are shown
    centers: FloatArray  # in the method's order and units
    final_run: MethodRun | None  # the run that has found them, if it has


def group_order(labels: IntArray, settings: Settings) -> IntArray:
    """The method's numbers of the groups in the order of their first appearance, emptied ones last."""
    _, firsts = np.unique(labels, return_index=True)
    seen = labels[np.sort(firsts)]
    seen = seen[seen >= 0]  # retired items have no group
    return np.concatenate([seen, np.setdiff1d(np.arange(settings.n_clusters or 0), seen)])


def named_groups(conversation: Conversation) -> KeptGroups | None:
    """The groups, proven or the current guess; None before there is one. What does not change is worked out once."""
    run, k, kept = conversation.run, conversation.settings.n_clusters, conversation.kept_groups
    if kept is not None and kept.final_run is run:
        return kept
    guess = conversation.once("guess at the deadline", _fitted) if _ends_without_proof(conversation) else run.guess
    if guess is None:
        return None
    labels, centers = guess
    final_run = run if run.done else None
    if kept is not None and kept.n_clusters == k and np.array_equal(kept.labels, labels):
        kept = kept._replace(centers=centers.copy(), final_run=final_run)
    else:
        order = group_order(labels, conversation.settings)
        place = np.zeros(int(order.max(initial=0)) + 1, dtype=np.int64)
        place[order] = np.arange(order.size)
        named, present = np.full_like(labels, -1), labels >= 0  # retired items have no group
        named[present] = place[labels[present]]
        named.flags.writeable = False
        kept = KeptGroups(labels.copy(), k, named, order, centers.copy(), final_run)
    conversation.kept_groups = kept
    return kept


def _ends_without_proof(conversation: Conversation) -> bool:
    """Whether CROC's deadline leaves nothing to measure before the groups are found, under a known noise."""
    settings, run = conversation.settings, conversation.run
    able = settings.method == METHOD and isinstance(settings.question, ExactGroups) and settings.blocks is None
    able = able and isinstance(settings.noise, Noise) and settings.n_arms <= MOST_REGROUPED
    return able and conversation.out_of_budget and not run.done and run.confirmed is None


def _fitted(conversation: Conversation) -> tuple[IntArray, FloatArray] | None:
    """The guess that fits all results best, and its centers; the run's own is what it goes on measuring by."""
    from scipy.optimize import linear_sum_assignment  # here: it takes a while to load

    guess, noise, rows = conversation.run.guess, conversation.settings.noise, conversation.counted
    if guess is None or (guess[0] < 0).any() or not isinstance(noise, Noise):
        return guess  # some items are retired
    labels, n_groups = guess[0], len(guess[1])
    arms, values = conversation.log.arms_of(rows), conversation.log.array[rows]
    counts = np.bincount(arms, minlength=labels.size).astype(np.float64)
    if (counts == 0.0).any():
        return guess
    sums = np.zeros((labels.size, values.shape[1]))
    np.add.at(sums, arms, noise.whiten(values - values[0]))
    means = sums / counts[:, None]
    fitted = likeliest_groups(means, counts, labels, n_groups)
    shared = np.zeros((n_groups, n_groups))
    np.add.at(shared, (fitted, labels), 1.0)
    fitted = linear_sum_assignment(shared, maximize=True)[1][fitted]  # the numbers that the run has for them
    centers = weighted_centers(means, counts, fitted, np.zeros_like(guess[1]))
    return fitted, centers + noise.whiten(values[:1])


def labels_of(conversation: Conversation) -> IntArray | None:
    """The groups, numbered by first appearance: proven or the current guess; None before there is one."""
    kept = named_groups(conversation)
    return None if kept is None else kept.named.copy()


def groups_of(conversation: Conversation) -> IntArray | None:
    """As `labels`, not to be changed; the same array as long as the groups are the same."""
    kept = named_groups(conversation)
    return None if kept is None else kept.named


def centers_of(conversation: Conversation) -> FloatArray | None:
    """The groups' centers in the units of the measurements, in the order of `labels`."""
    kept = named_groups(conversation)
    return None if kept is None else _in_units(kept.centers[kept.order], conversation.settings)


def _in_units(centers: FloatArray, settings: Settings) -> FloatArray:
    """Centers in the units of the measurements; with features NaN where a group has no result of one."""
    if settings.features is None:
        return settings.noise.color(centers)
    return centers * settings.noise.deviations if isinstance(settings.noise, Noise) else centers


def references_of(conversation: Conversation) -> tuple[int, ...] | None:
    """For a resolution, the reference item of each group, in the order of `labels`; None for other questions."""
    run, settings = conversation.run, conversation.settings
    if settings.resolution is None or run.references is None or run.guess is None:
        return None
    return tuple(run.references[label] for label in group_order(run.guess[0], settings).tolist())


def borders_of(conversation: Conversation) -> dict[int, list[int]]:
    """For a resolution, the items near a border: the other groups (as in `labels`) that each could belong to."""
    run = conversation.run
    if run.guess is None or not run.borders:
        return {}
    order = group_order(run.guess[0], conversation.settings).tolist()
    return {arm: sorted(order.index(label) for label in labels) for arm, labels in sorted(run.borders.items())}


def evidence_of(conversation: Conversation) -> Evidence:
    """What the stopping rule read at the last measurement."""
    now = conversation.run.evidence()
    kept = None if now.weakest is None else named_groups(conversation)
    if now.weakest is None or kept is None:
        return now
    group = int(np.argmax(kept.order == now.weakest.group))
    return replace(now, weakest=replace(now.weakest, group=group))


def grouped_names(conversation: Conversation) -> list[list[Any]]:
    """The items of each group in the order of `labels`, by name, or by number if they have none."""
    labels, names = groups_of(conversation), conversation.settings.names
    if labels is None:
        return []
    members: list[list[Any]] = [[] for _ in range(int(labels.max()) + 1)]
    for arm, label in enumerate(labels.tolist()):
        if label >= 0:  # retired items have no group
            members[label].append(arm if names is None else names[arm])
    return members


def groups_html(conversation: Conversation) -> str:
    """The groups as a table for notebooks; nothing if there are none yet."""
    labels, centers = groups_of(conversation), centers_of(conversation)
    if labels is None or centers is None:
        return ""
    pulls, members = conversation.run.pulls, grouped_names(conversation)
    rows = [
        (
            k,
            len(members[k]),
            _listed(members[k]),
            ", ".join(f"{x:.4g}" for x in centers[k, ~np.isnan(centers[k])][:MOST_NUMBERS]),
            int(pulls[labels == k].sum()),
        )
        for k in range(min(len(members), MOST_ROWS))
    ]
    more = len(members) - len(rows)
    table = table_html(("group", "items", "", "center", "measurements"), rows)
    return table + (f"<p>and {more} more groups</p>" if more else "")


def _listed(names: Sequence[Any]) -> str:
    text = ", ".join(map(str, names[:MOST_NAMES]))
    return text if len(names) <= MOST_NAMES else f"{text}, … ({len(names) - MOST_NAMES} more)"
