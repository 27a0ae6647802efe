"""What is proven at any moment of a session, from its log: which items are apart, which alike, and what follows.

All pairs are looked at when somebody asks; no method is consulted. Every result that counts is used, in the order in
which it counts, asked for or not. That is valid as CROC's pairs from the start are (docs/CROC.md, section 2): what is
read is an event of the stacks of two items, over all counts. Results that somebody told without being asked, and
rows of a table, must only not have been picked by their values.

**The error probability.** Everything that partial answers ever say is wrong with probability at most a budget:

- K groups of equal items, known noise: 0.2·δ, the share that CROC's certificate gives to pairs (level log(H/(0.2·δ)), H
  the most pairs that can be equal if there are K groups or more). Partial answers and the proof are *together* wrong
  with probability at most δ.
- K groups of equal items, another noise: δ. The certificate has spent a δ of its own: partial answers are wrong with
  probability at most δ, and so is the proof.
- A resolution, or single linkage: 0.1·δ (0.09·δ for Gaussian noise of unknown size), which the certificate has left for
  it: together δ.

`coterie.theory.intervals.by_noise` has the evidence for each noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.reports import Partial
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical
from coterie.problem.question import ExactGroups, Resolution, SingleLinkage
from coterie.problem.settings import Settings
from coterie.session.partial_revised import among_all, among_present, first_stacks, spread_distances, spread_pairs
from coterie.theory.intervals.by_noise import Distances, distances, unequal
from coterie.theory.intervals.stacks import Stacks
from coterie.theory.letters import letters
from coterie.theory.packing import far_items, linkage_pairs

if TYPE_CHECKING:
    from coterie.session.session import Session

MOST_ITEMS = 3000
"""Partial answers look at all pairs: of so many items at most."""

EQUAL_SHARE = 0.2
"""Of δ, for pairs of K groups under a known noise: `coterie.engine.croc.state.ALPHA`."""

FROZEN_SHARE = 0.1
"""Of δ, for pairs of a resolution and of single linkage: what the levels of frozen tests leave."""


@dataclass
class _Pairs:
    """Matrices (M, M): which pairs are proven apart, and alike; `beyond`: too far apart to be in one group."""

    apart: np.ndarray
    alike: np.ndarray
    beyond: np.ndarray
    representatives: tuple[int, ...] | None = None
    settles: bool = True  # whether items can be known to belong with their representative
    own: np.ndarray | None = None  # which pairs are apart by evidence of their own, if that is not all


def log_inverse_budget(settings: Settings) -> float:
    """log(1/error) of all that partial answers ever say about pairs."""
    share = FROZEN_SHARE
    if isinstance(settings.question, ExactGroups):
        share = EQUAL_SHARE if settings.noise.kind == "known" else 1.0
    elif settings.noise.kind == "gaussian":
        share = 0.9 * FROZEN_SHARE
    return -math.log(settings.delta) - math.log(share)


@dataclass(frozen=True, eq=False)
class Moment:
    """What partial answers rest on, of a session at one moment.

    Taking it is quick. What is computed from it looks at the session no more: a session that is guarded by a lock can
    go on meanwhile. `proven`: the groups are; `refuted`: K is; `freeze`: the last one, if its groups are `labels`;
    `arms` and `rows`: of the results that count, in the order in which they do, with their places in `log`.
    """

    settings: Settings
    labels: IntArray | None
    proven: bool
    refuted: bool
    freeze: dict[str, Any] | None
    arms: IntArray
    rows: IntArray
    log: FloatArray  # all results (n, d)
    n_first: int | None = None  # of a session that was revised: how many items were there first
    present: tuple[int, ...] = ()  # … and which are there now

    @property
    def t(self) -> int:
        """How many results count."""
        return int(self.rows.size)

    @cached_property
    def stacks(self) -> Stacks:
        """The results that count, item by item."""
        return Stacks.of(self.arms, self.log[self.rows], self.settings.n_arms)


def moment_of(session: Session) -> Moment:
    """What partial answers rest on, now."""
    rows, log, refuted = session.counted, session.log_arrays, session.alarm is not None
    proven = session.done and session.proves and not refuted
    moment = Moment(
        session.settings, session.labels, proven, refuted, _last_freeze(session), log.arms_of(rows), rows, log.array
    )
    if not session.revisions:
        return moment
    return replace(moment, n_first=session.first_settings.n_arms, present=tuple(session.items.present))


def check_size(n_arms: int, asker: str) -> None:
    """That there are not too many items to look at all pairs."""
    if n_arms > MOST_ITEMS:
        raise ValueError(
            f"{asker} looks at all pairs of items, and {n_arms} items have too many: it takes up to "
            f"{MOST_ITEMS}; for more, read labels and certificate"
        )


@dataclass(frozen=True, eq=False)
class Proven:
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


def partial_of(session: Session) -> Partial:
    """What is proven at this moment."""
    check_size(session.n_arms, "partial()")
    return proven_at(moment_of(session)).listed()


def proven_at(moment: Moment) -> Proven:
    """What is proven at a moment, of at most `MOST_ITEMS` items."""
    if moment.n_first is not None:
        return among_all(_proven(among_present(moment)), moment)
    return _proven(moment)


def _proven(moment: Moment) -> Proven:
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
    error = settings.delta if proven else math.exp(-log_inverse_budget(settings))
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
    if moment.n_first is None:
        found = unequal(moment.stacks, settings.noise, equal, log_inverse_budget(settings))
    else:
        every = moment.n_first * (moment.n_first - 1) // 2
        of_first = unequal(first_stacks(moment), settings.noise, every, log_inverse_budget(settings))
        found = spread_pairs(of_first, moment, False)
    itself = np.eye(n_arms, dtype=bool)
    leads = [] if moment.refuted else _one_of_each(found, moment.labels, n_clusters) or far_items(found, n_clusters)
    places = None if len(leads) < n_clusters else _possible_places(found, leads)
    if places is None:
        return _Pairs(found, itself, found, settles=False, own=found)
    known = places.sum(axis=1) == 1
    together = places.astype(np.float32) @ places.T.astype(np.float32) > 0.0
    apart = found | ~together
    return _Pairs(apart, itself | (together & known[:, None] & known), apart, own=found)


def _one_of_each(apart: np.ndarray, labels: IntArray | None, n_clusters: int) -> list[int]:
    """An item of each group, pairwise apart, in the order of the labels; none if the greedy choice finds none."""
    if labels is None:
        return []
    found = np.zeros(n_clusters, dtype=np.int64)
    allowed, degrees = np.ones(labels.size, dtype=bool), apart.sum(axis=1)
    for group in np.argsort(np.bincount(labels, minlength=n_clusters), kind="stable").tolist():
        its = allowed & (labels == group)
        if not its.any():
            return []
        found[group] = int(np.argmax(np.where(its, degrees, -1)))
        allowed &= apart[found[group]]
    return found.tolist()


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


def distances_at(moment: Moment, norm: str, unit: FloatArray) -> Distances:
    """Bounds of all distances, under a noise that has them."""
    stacks = moment.stacks if moment.n_first is None else first_stacks(moment)
    found = distances(stacks, moment.settings.noise, norm, unit, log_inverse_budget(moment.settings))
    assert found is not None  # other noises are refused for these questions
    return found if moment.n_first is None else spread_distances(found, moment)


def _linkage_pairs(moment: Moment, n_clusters: int) -> _Pairs:
    unit = np.ones(moment.settings.dim)
    found = distances_at(moment, "distance", unit)
    apart, alike = linkage_pairs(found.at_least, found.at_most, n_clusters)
    return _Pairs(apart, alike, apart)


def _resolution_pairs(moment: Moment, question: Resolution) -> _Pairs:
    dim = moment.settings.dim
    epsilon, eta = question.epsilon(dim), question.eta(dim)
    found = distances_at(moment, question.norm, eta)
    one = np.ones(dim)
    pairs = _Pairs(found.beyond(epsilon / eta), found.within(one), found.beyond(one))
    frozen = moment.freeze
    if frozen is None:
        pairs.representatives = _central(found.at_most, moment.labels)
        return pairs
    references = [int(arm) for arm in frozen["references"]]
    first = [int(np.argmax(np.asarray(frozen["labels"]) == k)) for k in range(len(references))]
    order = np.argsort(first)  # labels are numbered by first appearance
    pairs.representatives = tuple(references[k] for k in order)
    if moment.proven:
        _add_proof(pairs, frozen, question, dim)
    return pairs


def _last_freeze(session: Session) -> dict[str, Any] | None:
    """The last freeze, if its groups are those of the session."""
    freezes = [one for one in session.decisions if one["event"] == "freeze" and "references" in one]
    if not freezes or session.labels is None:
        return None
    last, labels = freezes[-1], session.labels
    its = np.asarray(last["labels"])
    if its.size != labels.size or not np.array_equal(its < 0, labels < 0):
        return None
    return last if np.array_equal(canonical(its[its >= 0]), labels[labels >= 0]) else None


def _add_proof(pairs: _Pairs, frozen: dict[str, Any], question: Resolution, dim: int) -> None:
    """What the certificate claims: its near and far tests, if they were for bounds at least as sharp as asked for."""
    epsilon, eta = (np.broadcast_to(np.asarray(frozen[key], dtype=np.float64), dim) for key in ("epsilon", "eta"))
    for key, found, sharp in (
        ("near", pairs.alike, bool((eta <= question.eta(dim)).all())),
        ("far", pairs.apart, bool((epsilon >= question.epsilon(dim)).all())),
    ):
        for item, reference, *_ in frozen[key] if sharp else []:
            found[item, reference] = found[reference, item] = True
    pairs.beyond &= ~pairs.alike


def _central(at_most: np.ndarray, labels: IntArray | None) -> tuple[int, ...] | None:
    """Of each group the item from which the others are least far at most."""
    if labels is None:
        return None
    found = []
    for group in range(int(labels.max()) + 1):
        its = np.flatnonzero(labels == group)
        found.append(int(its[np.argmin(at_most[np.ix_(its, its)].max(axis=1))]))
    return tuple(found)


# What is said of it.


def _told(pairs: _Pairs, labels: IntArray | None, proven: bool, error: float) -> Proven:
    apart, alike = pairs.apart, pairs.alike
    n_arms = len(apart)
    own_pairs = apart if pairs.own is None else apart & pairs.own
    shown = letters(apart)
    if labels is None:
        nothing = np.zeros((n_arms, 0), dtype=bool)
        return Proven(apart, alike, own_pairs, None, (), np.zeros(n_arms, dtype=bool), nothing, shown, error)
    leads = pairs.representatives or _leads(apart, labels)
    own = np.array([leads[group] for group in labels.tolist()])
    between = apart[np.ix_(leads, leads)] | np.eye(len(leads), dtype=bool)
    sure = np.full(n_arms, proven) | (alike[np.arange(n_arms), own] & (pairs.settles and bool(between.all())))
    possible = ~pairs.beyond[:, leads]
    return Proven(apart, alike, own_pairs, labels, tuple(leads), sure, possible, shown, error)


def _listed(pairs: np.ndarray) -> tuple[tuple[int, int], ...]:
    """The pairs (low, high) of a symmetric matrix."""
    low, high = np.nonzero(np.triu(pairs, 1))
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _leads(apart: np.ndarray, labels: IntArray) -> tuple[int, ...]:
    """An item of each group: pairwise apart if there are such, else those that are apart from most others."""
    n_groups = int(labels.max()) + 1
    chosen = _one_of_each(apart, labels, n_groups)
    if not chosen:
        degrees = (apart & (labels[:, None] != labels)).sum(axis=1)
        chosen = [int(np.argmax(np.where(labels == group, degrees, -1))) for group in range(n_groups)]
    return tuple(chosen)


def _with_leads(apart: np.ndarray, leads: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Pairs (item, representative) that are apart, each once."""
    found = []
    for place, lead in enumerate(leads):
        for item in np.flatnonzero(apart[:, lead]).tolist():
            if item not in leads[:place]:
                found.append((item, lead))
    return tuple(sorted(found))
