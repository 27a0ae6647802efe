"""What is proven at any moment of a session, from its log: which items are apart, which alike, and what follows.

All pairs are looked at when somebody asks; no method is consulted. Every result that counts is used, in the order in
which it counts, asked for or not. That is valid as CROC's pairs from the start are (docs/CROC.md, section 2): what is
read is an event of the stacks of two items, over all counts. Results that somebody told without being asked, and
rows of a table, must only not have been picked by their values.

**The error probability.** Everything that partial answers ever say is wrong with probability at most a budget:

- K groups of equal items, known noise: 0.2·δ, the share that CROC's certificate gives to pairs (level log(H/(0.2·δ)), H
  the most pairs that can be equal if there are K groups or more, and none of the settled ones is). Partial answers and
  the proof are *together* wrong with probability at most δ, statements frozen for a deadline included.
- K groups of equal items, another noise: δ. The certificate has spent a δ of its own: partial answers are wrong with
  probability at most δ, and so is the proof.
- A resolution, or single linkage: 0.1·δ (0.09·δ for Gaussian noise of unknown size), which the certificate has left for
  it: together δ.

`coterie.evidence.intervals.by_noise` has the evidence for each noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.evidence.intervals.by_noise import unequal
from coterie.evidence.intervals.stacks import Stacks
from coterie.evidence.pair_graphs import far_items, letters, linkage_pairs
from coterie.methods.reports import Partial
from coterie.problem.checks import IntArray
from coterie.problem.families import Model
from coterie.problem.question import ExactGroups, Resolution, SingleLinkage
from coterie.session.conversation import Conversation
from coterie.session.moment import MOST_ITEMS as MOST_ITEMS
from coterie.session.moment import Moment as Moment
from coterie.session.moment import (
    among_present,
    check_size,
    conversation_moment,
    distances_at,
    first_stacks,
    log_inverse_budget,
    spread_pairs,
)
from coterie.session.moment import moment_of as moment_of


@dataclass
class _Pairs:
    """Matrices (M, M): which pairs are proven apart, and alike; `beyond`: too far apart to be in one group."""

    apart: np.ndarray
    alike: np.ndarray
    beyond: np.ndarray
    representatives: tuple[int, ...] | None = None
    settles: bool = True  # whether items can be known to belong with their representative
    own: np.ndarray | None = None  # which pairs are apart by evidence of their own, if that is not all


@dataclass(frozen=True, eq=False)
class ProvenPairs:
    """What is proven at a moment, as matrices: `Partial` has it in lists.

    `apart`, `alike`: (M, M). `own`: the pairs of `apart` that have evidence of their own. `settled`: (M) which items
    are known to belong with the representative of their group. `possible`: (M, groups) which groups each may belong
    to. Without a guess there are no `labels`, no `representatives`, and nothing is settled or possible.
    """

    apart: np.ndarray
    alike: np.ndarray
    own: np.ndarray
    labels: IntArray | None
    representatives: tuple[int, ...]
    settled: np.ndarray
    possible: np.ndarray
    letters: tuple[str, ...]
    error: float
    retired: tuple[int, ...] = ()

    def listed(self) -> Partial:
        """In lists."""
        return Partial(
            self.representatives,
            _with_leads(self.own, self.representatives),
            self.labels,
            tuple(np.flatnonzero(self.settled).tolist()),
            tuple(arm for arm in np.flatnonzero(~self.settled).tolist() if arm not in self.retired),
            apart=_listed(self.apart),
            alike=_listed(self.alike),
            possible=() if self.labels is None else tuple(tuple(np.flatnonzero(row).tolist()) for row in self.possible),
            letters=self.letters,
            error=self.error,
        )


def partial_of(conversation: Conversation) -> Partial:
    """What is proven at this moment."""
    check_size(conversation.settings.n_arms, "partial()")
    return proven_at(conversation_moment(conversation)).listed()


def proven_at(moment: Moment) -> ProvenPairs:
    """What is proven at a moment, of at most `MOST_ITEMS` items."""
    if moment.n_first is not None:
        return _among_all(_proven(among_present(moment)), moment)
    return _proven(moment)


def _proven(moment: Moment) -> ProvenPairs:
    settings, labels, proven = moment.settings, moment.labels, moment.proven
    question = settings.question
    if isinstance(question, ExactGroups):
        pairs = _equal_pairs(moment, question.n_clusters)
        if proven and labels is not None:
            own = pairs.own
            pairs = _by_labels(labels)
            pairs.own = own
    elif isinstance(question, SingleLinkage):
        pairs = _by_labels(labels) if proven and labels is not None else _linkage_pairs(moment, question.n_clusters)
    else:
        pairs = _resolution_pairs(moment, question)
    told = proven or (moment.stated is not None and bool(moment.stated.any()))
    error = settings.delta if told else math.exp(-log_inverse_budget(settings))
    return _told(pairs, labels, proven, error)


# K groups of equal items.


def _by_labels(labels: IntArray) -> _Pairs:
    same = labels[:, None] == labels
    return _Pairs(~same, same, ~same)


def _equal_pairs(moment: Moment, n_clusters: int) -> _Pairs:
    """Pairs by their evidence, and what follows if there are K groups; after an alarm nothing does."""
    settings = moment.settings
    n_arms = settings.n_arms
    equal = (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2
    if moment.in_cells is not None:
        unlike = moment.in_cells
    elif moment.n_first is None:
        unlike = step_down(moment.stacks, settings.noise, equal, log_inverse_budget(settings))
        unlike = unlike if moment.stated is None else unlike | moment.stated
    else:
        every = moment.n_first * (moment.n_first - 1) // 2
        of_first = step_down(first_stacks(moment), settings.noise, every, log_inverse_budget(settings))
        unlike = spread_pairs(of_first, moment, False)
    return _what_follows(unlike, moment, n_clusters)


def step_down(stacks: Stacks, noise: Model, most_equal: int, log_inverse_error: float) -> np.ndarray:
    """(M, M) the pairs proven to differ: as soon as some are, fewer can be equal, and the level for the others falls.

    Before the first false one all equal pairs are unsettled: the level was for as many, at least (docs/DEADLINE.md).
    """
    equal = most_equal
    while True:
        unlike = unequal(stacks, noise, equal, log_inverse_error)
        unsettled = (unlike.size - len(unlike) - int(unlike.sum())) // 2
        if not 0 < unsettled < equal:
            return unlike
        equal = unsettled


def closed(unlike: np.ndarray, moment: Moment) -> ProvenPairs:
    """What follows from pairs that differ, if there are K groups."""
    settings = moment.settings
    assert settings.n_clusters is not None
    return _told(_what_follows(unlike, moment, settings.n_clusters), moment.labels, False, settings.delta)


def _what_follows(unlike: np.ndarray, moment: Moment, n_clusters: int) -> _Pairs:
    itself = np.eye(len(unlike), dtype=bool)
    leads = [] if moment.refuted else one_of_each(unlike, moment.labels, n_clusters) or far_items(unlike, n_clusters)
    places = None if len(leads) < n_clusters else _possible_places(unlike, leads)
    if places is None:
        return _Pairs(unlike, itself, unlike, settles=False, own=unlike)
    known = places.sum(axis=1) == 1
    together = places.astype(np.float32) @ places.T.astype(np.float32) > 0.0
    apart = unlike | ~together
    return _Pairs(apart, itself | (together & known[:, None] & known), apart, own=unlike)


def one_of_each(apart: np.ndarray, labels: IntArray | None, n_clusters: int) -> list[int]:
    """An item of each group, pairwise apart, in the order of the labels; none if the greedy choice finds none."""
    if labels is None:
        return []
    chosen = np.zeros(n_clusters, dtype=np.int64)
    allowed, degrees = np.ones(labels.size, dtype=bool), apart.sum(axis=1)
    for group in np.argsort(np.bincount(labels, minlength=n_clusters), kind="stable").tolist():
        members = allowed & (labels == group)
        if not members.any():
            return []
        chosen[group] = int(np.argmax(np.where(members, degrees, -1)))
        allowed &= apart[chosen[group]]
    return chosen.tolist()


def _possible_places(apart: np.ndarray, leads: list[int]) -> np.ndarray | None:
    """(M, K) with which of K items that are pairwise apart each item may belong; None if that contradicts K groups.

    An item belongs with one of them, and not with one that it, or whoever belongs with it, is apart from.
    """
    places = ~apart[:, leads]
    while True:
        known = places.sum(axis=1) == 1
        members = places & known[:, None]
        after = places & ~(apart.astype(np.float32) @ members.astype(np.float32) > 0.0)
        if not after.any(axis=1).all():
            return None
        if (after == places).all():
            return np.asarray(places)
        places = after


# The other questions.


def _linkage_pairs(moment: Moment, n_clusters: int) -> _Pairs:
    unit = np.ones(moment.settings.dim)
    bounds = distances_at(moment, "distance", unit)
    apart, alike = linkage_pairs(bounds.at_least, bounds.at_most, n_clusters)
    return _Pairs(apart, alike, apart)


def _resolution_pairs(moment: Moment, question: Resolution) -> _Pairs:
    dim = moment.settings.dim
    epsilon, eta = question.epsilon(dim), question.eta(dim)
    bounds = distances_at(moment, question.norm, eta)
    ones = np.ones(dim)
    pairs = _Pairs(bounds.beyond(epsilon / eta), bounds.within(ones), bounds.beyond(ones))
    frozen = moment.freeze
    if frozen is None:
        pairs.representatives = _central(bounds.at_most, moment.labels)
        return pairs
    references = [int(arm) for arm in frozen["references"]]
    first = [int(np.argmax(np.asarray(frozen["labels"]) == k)) for k in range(len(references))]
    order = np.argsort(first)  # labels are numbered by first appearance
    pairs.representatives = tuple(references[k] for k in order)
    if moment.proven:
        _add_proof(pairs, frozen, question, dim)
    return pairs


def _add_proof(pairs: _Pairs, frozen: dict[str, Any], question: Resolution, dim: int) -> None:
    """What the certificate claims: its near and far tests, if they were for bounds at least as sharp as asked for."""
    epsilon, eta = (np.broadcast_to(np.asarray(frozen[key], dtype=np.float64), dim) for key in ("epsilon", "eta"))
    for key, claimed, sharp in (
        ("near", pairs.alike, bool((eta <= question.eta(dim)).all())),
        ("far", pairs.apart, bool((epsilon >= question.epsilon(dim)).all())),
    ):
        for item, reference, *_ in frozen[key] if sharp else []:
            claimed[item, reference] = claimed[reference, item] = True
    pairs.beyond &= ~pairs.alike


def _central(at_most: np.ndarray, labels: IntArray | None) -> tuple[int, ...] | None:
    """Of each group the item from which the others are least far at most."""
    if labels is None:
        return None
    central = []
    for group in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == group)
        central.append(int(members[np.argmin(at_most[np.ix_(members, members)].max(axis=1))]))
    return tuple(central)


# What is said of it.


def _told(pairs: _Pairs, labels: IntArray | None, proven: bool, error: float) -> ProvenPairs:
    apart, alike = pairs.apart, pairs.alike
    n_arms = len(apart)
    own_pairs = apart if pairs.own is None else apart & pairs.own
    shown = letters(apart)
    if labels is None:
        nothing = np.zeros((n_arms, 0), dtype=bool)
        return ProvenPairs(apart, alike, own_pairs, None, (), np.zeros(n_arms, dtype=bool), nothing, shown, error)
    leads = pairs.representatives or _leads(apart, labels)
    own = np.array([leads[group] for group in labels.tolist()])
    between = apart[np.ix_(leads, leads)] | np.eye(len(leads), dtype=bool)
    sure = np.full(n_arms, proven) | (alike[np.arange(n_arms), own] & (pairs.settles and bool(between.all())))
    possible = ~pairs.beyond[:, leads]
    return ProvenPairs(apart, alike, own_pairs, labels, tuple(leads), sure, possible, shown, error)


def _listed(pairs: np.ndarray) -> tuple[tuple[int, int], ...]:
    """The pairs (low, high) of a symmetric matrix."""
    low, high = np.nonzero(np.triu(pairs, 1))
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _leads(apart: np.ndarray, labels: IntArray) -> tuple[int, ...]:
    """An item of each group: pairwise apart if there are such, else those that are apart from most others."""
    n_groups = int(labels.max()) + 1
    chosen = one_of_each(apart, labels, n_groups)
    if not chosen:
        degrees = (apart & (labels[:, None] != labels)).sum(axis=1)
        chosen = [int(np.argmax(np.where(labels == group, degrees, -1))) for group in range(n_groups)]
    return tuple(chosen)


def _with_leads(apart: np.ndarray, leads: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Pairs (item, representative) that are apart, each once."""
    pairs = []
    for place, lead in enumerate(leads):
        for item in np.flatnonzero(apart[:, lead]).tolist():
            if item not in leads[:place]:
                pairs.append((item, lead))
    return tuple(sorted(pairs))


def _among_all(proven: ProvenPairs, moment: Moment) -> ProvenPairs:
    """What is proven about the items present, by the numbers that all items have."""
    here, n_ever = np.array(moment.present, dtype=np.int64), moment.settings.n_arms

    def pairs(matrix: np.ndarray) -> np.ndarray:
        spread = np.zeros((n_ever, n_ever), dtype=bool)
        spread[np.ix_(here, here)] = matrix
        return spread

    settled, possible = np.zeros(n_ever, dtype=bool), np.zeros((n_ever, proven.possible.shape[1]), dtype=bool)
    settled[here], possible[here] = proven.settled, proven.possible
    labels: IntArray | None = None
    if proven.labels is not None:
        labels = np.full(n_ever, -1, dtype=np.int64)
        labels[here] = proven.labels
    letters = dict(zip(moment.present, proven.letters, strict=True))
    return replace(
        proven, apart=pairs(proven.apart), alike=pairs(proven.alike), own=pairs(proven.own), labels=labels,
        representatives=tuple(moment.present[lead] for lead in proven.representatives), settled=settled,
        possible=possible, letters=tuple(letters.get(arm, "") for arm in range(n_ever)),
        retired=tuple(arm for arm in range(n_ever) if arm not in letters),
    )  # fmt: skip
