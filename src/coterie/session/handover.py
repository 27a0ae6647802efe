"""What a session hands over: what is proven, the guess for the rest, how wrong that may be, and a certificate of it.

The certificate of what is proven, `"by": "partial"`, is for K groups and a known noise, of sessions that were not
revised. It rests on pairs from the start, the strongest first, and on single statements that were frozen for a deadline
(docs/DEADLINE.md); `coterie verify` recomputes it from the log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.certificate.document import Certificate
from coterie.methods.croc.run import ALPHA, PREFIX_ROOM
from coterie.methods.deadline.statements import Statements, memberships
from coterie.methods.reports import Partial
from coterie.methods.shortlist.elimination import KEPT, PairStacks
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups
from coterie.session.atomic import for_session
from coterie.session.conversation import Conversation
from coterie.session.events import beside_certificate, certificate_of, need_certificates
from coterie.session.moment import Moment, conversation_moment
from coterie.session.partial import closed, one_of_each, partial_of
from coterie.session.telling import refuse_by_feature


@dataclass(frozen=True, eq=False)
class Handover:
    """What a session hands over, at its deadline or at any other moment.

    Parameters
    ----------
    t, spent, deadline, left : int and float
        Measurements that counted; what was spent of the deadline, measurements or their costs, the deadline, and what
        is left of it (None without one).
    partial : Partial
        What is proven: pairs of items, letters, places.
    labels : ndarray or None
        The groups: a guess for all items but those of `placed`; None before there is one.
    placed, unproven : tuple of int
        Items whose group is proven, if there are K groups, and the others.
    misplaced_at_least : float or None
        About so many items are expected to be in a wrong group, at least: it sees items between groups, not wrong
        groups.
    confusable : float or None
        About how probable it is that the groups themselves are wrong: two of them are one and a third is two, or two
        are one by chance. It comes on top, and is an estimate, too.
    certificate : Certificate or None
        Of what is proven, for `coterie verify`: for K groups, a known noise, and no revisions; the proof, once done.
    """

    t: int
    spent: float
    deadline: float | None
    left: float | None
    partial: Partial
    labels: IntArray | None
    placed: tuple[int, ...]
    unproven: tuple[int, ...]
    misplaced_at_least: float | None
    confusable: float | None
    certificate: Certificate | None

    @property
    def words(self) -> str:
        """All of it in a line or two."""
        items = len(self.placed) + len(self.unproven)
        used = f"{self.spent:g} measurements" if self.deadline is None else f"{self.spent:g} of {self.deadline:g} used"
        said = f"{used}: {len(self.placed)} of {items} items are proven in their group"
        said += f", {len(self.partial.apart)} pairs are proven apart"
        if self.labels is None:
            return f"{said}; there is no guess of the groups yet"
        if not self.unproven:
            return f"{said}; nothing is left to guess"
        if self.misplaced_at_least is None or self.confusable is None:
            return f"{said}. The group of the other {len(self.unproven)} is a guess"
        guess = f"The group of the other {len(self.unproven)} is a guess"
        wrong = f"at least about {self.misplaced_at_least:.2g} of them are expected to be misplaced"
        return f"{said}. {guess}: {wrong}, and the groups themselves are wrong with probability about {self._chance}"

    @property
    def _chance(self) -> str:
        return f"{self.confusable:.2g}" if self.confusable and self.confusable > 0.001 else "0.001 or less"

    def __str__(self) -> str:
        return self.words

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without the pairs and the certificate."""
        return {
            "t": self.t,
            "spent": self.spent,
            "deadline": self.deadline,
            "left": self.left,
            "labels": None if self.labels is None else self.labels.tolist(),
            "placed": list(self.placed),
            "unproven": list(self.unproven),
            "letters": list(self.partial.letters),
            "apart": len(self.partial.apart),
            "misplaced_at_least": self.misplaced_at_least,
            "confusable": self.confusable,
            "words": self.words,
        }


def handover_of(conversation: Conversation) -> Handover:
    """What is proven by now, the guess for the rest, how many items that may misplace, and a certificate."""
    need_certificates(conversation, "a handover")
    refuse_by_feature(conversation, "handover")
    partial, proven = partial_of(conversation), conversation.proven
    certificate = certificate_of(conversation) if proven else certificate_of_partial(conversation)
    return handover_at(conversation_moment(conversation), partial, conversation.spent, proven, certificate)


def handover_at(
    moment: Moment, partial: Partial, spent: float, proven: bool, certificate: Certificate | None = None
) -> Handover:
    """What is handed over at a moment; `proven`: the groups are."""
    deadline = moment.settings.deadline
    misplaced, confusable = (0.0, 0.0) if proven else _errors(moment, partial) or (None, None)
    left = None if deadline is None else max(deadline - spent, 0.0)
    return Handover(
        moment.t, spent, deadline, left, partial, partial.labels, partial.settled, partial.undecided, misplaced,
        confusable, certificate,
    )  # fmt: skip


# How wrong the guess may be.


def _errors(moment: Moment, partial: Partial) -> tuple[float, float] | None:
    """Items expected in a wrong group, placed ones left out, and how probably the groups are wrong; None: unknown."""
    labels, settings = partial.labels, moment.settings
    if labels is None or not isinstance(settings.question, ExactGroups) or settings.blocks is not None:
        return None  # results of different blocks are not compared
    if moment.n_first is not None and len(moment.present) < settings.n_arms:
        return None  # some are retired
    arms, values = moment.arms, moment.log[moment.rows]
    counts = np.bincount(arms, minlength=settings.n_arms)
    if (counts == 0).any():
        return None
    noise, n_groups = settings.noise, settings.question.n_clusters
    values = noise.whiten(values - values[0]) if isinstance(noise, Noise) else _scaled(values, arms, counts)
    sums = np.zeros((settings.n_arms, settings.dim))
    np.add.at(sums, arms, values)
    likely, centers, weights = memberships(sums, counts, labels, n_groups)
    wrong = 1.0 - likely[np.arange(labels.size), labels]
    wrong[list(partial.settled)] = 0.0
    return float(wrong.sum()), _confusable(sums, counts, labels, centers, weights)


def _scaled(values: FloatArray, arms: IntArray, counts: IntArray) -> FloatArray:
    """Results in units of how much they vary within items; where nothing is repeated, as they are."""
    means = np.zeros((counts.size, values.shape[1]))
    np.add.at(means, arms, values)
    within = ((values - (means / counts[:, None])[arms]) ** 2).sum(axis=0)
    freedom = values.shape[0] - counts.size
    spread = np.sqrt(within / freedom) if freedom > 0 else np.ones(values.shape[1])
    return np.asarray((values - values[0]) / np.where(spread > 0.0, spread, 1.0))


def _confusable(
    sums: FloatArray, counts: IntArray, labels: IntArray, centers: FloatArray, weights: FloatArray
) -> float:
    """Two groups are one and a third is two, or two groups are one by chance: docs/CROC.md, section 7, roughly."""
    from scipy.stats import chi2  # here: it takes a while to load

    n_groups, dim = centers.shape
    joined = weights[:, None] * weights / (weights[:, None] + weights)
    apart = joined * ((centers[:, None] - centers) ** 2).sum(axis=2)
    gains = np.array([_split_gain(sums[labels == group], counts[labels == group]) for group in range(n_groups)])
    sizes = np.bincount(labels, minlength=n_groups)
    total = 0.0
    for first in range(n_groups):
        for second in range(first):
            others = np.delete(gains, [first, second])
            total += float(np.exp(-np.maximum(0.5 * (apart[first, second] - others), 0.0))[others > 0.0].sum())
            items = sizes[first] + sizes[second]
            splits = min((items - 1) * math.log(2.0), dim * math.log(items))
            total += math.exp(min(splits + float(chi2.logsf(apart[first, second], dim)), 0.0))
    return min(1.0, total)


def _split_gain(sums: FloatArray, counts: IntArray) -> float:
    """What the best cut of a group across its longest axis gains; 0 for a single item."""
    if counts.size < 2:
        return 0.0
    off = sums / counts[:, None] - sums.sum(axis=0) / counts.sum()
    axis = np.linalg.svd(np.sqrt(counts)[:, None] * off, full_matrices=False)[2][0]
    order = np.argsort(off @ axis, kind="stable")
    below, inside = np.cumsum(counts[order])[:-1], np.cumsum(counts[order, None] * off[order], axis=0)[:-1]
    return float(((inside**2).sum(axis=1) * (1.0 / below + 1.0 / (counts.sum() - below))).max())


# The certificate.


def certificate_of_partial(conversation: Conversation) -> Certificate | None:
    """What is proven so far, as `coterie verify` re-checks it; None where there is no such certificate."""
    settings = conversation.settings
    certain = isinstance(settings.question, ExactGroups) and isinstance(settings.noise, Noise)
    by_parts = settings.blocks is not None or settings.features is not None
    if not certain or conversation.revisions or conversation.applied.entries or by_parts:
        return None
    moment = conversation_moment(conversation)
    if moment.labels is None or moment.proven or conversation.unmeasured or moment.refuted:
        return None
    k = settings.question.n_clusters or 0
    log_inverse_delta = -math.log(settings.delta)
    equal = (settings.n_arms - k + 1) * (settings.n_arms - k) // 2
    pairs = _pairs(moment.arms, settings.noise.whiten(moment.log[moment.rows] - moment.log[moment.rows[0]]),
                   settings.n_arms, equal, log_inverse_delta - math.log(ALPHA))  # fmt: skip
    unlike = np.zeros((settings.n_arms, settings.n_arms), dtype=bool)
    for first, second, *_ in pairs:
        unlike[first, second] = unlike[second, first] = True
    statements = conversation.run.statements
    if isinstance(statements, Statements):
        unlike |= statements.pairs()
    leads = one_of_each(unlike, moment.labels, k)  # what follows from K, `verify` has from these
    proven = closed(unlike, moment).listed()
    apart = proven.apart if leads else tuple(zip(*np.nonzero(np.triu(unlike, 1)), strict=True))
    document: dict[str, Any] = {
        "format": "coterie-certificate-2", "by": "partial", "n_arms": settings.n_arms, "n_clusters": k,
        "dim": settings.dim, "delta": settings.delta, "log_inverse_delta": log_inverse_delta, "alpha": ALPHA,
        "equal_pairs": equal, "prefix_room": PREFIX_ROOM, "t": moment.t, "labels": moment.labels.tolist(),
        "representatives": leads or list(proven.representatives), "pairs": pairs,
        "statements": None if not isinstance(statements, Statements) else _statements(conversation, statements),
        "apart": [[int(low), int(high)] for low, high in apart], "placed": list(proven.settled) if leads else [],
    }  # fmt: skip
    return Certificate(document | beside_certificate(conversation, document))


session_certificate_of_partial = for_session(certificate_of_partial)


def _pairs(arms: IntArray, white: FloatArray, n_arms: int, equal: int, level: float) -> list[list[Any]]:
    """[item, item, evidence, count, count] of all pairs that differ, the strongest first (step down)."""
    stacks = PairStacks(n_arms, white.shape[1])
    for arm, value in zip(arms.tolist(), white, strict=True):
        stacks.add(arm, value)
    first, second = np.triu_indices(n_arms, 1)
    best = np.full(first.size, -np.inf)
    counts = np.zeros((2, first.size), dtype=np.int64)
    highest = int(stacks.counts.max())
    for most in [*(int(count) for count in KEPT if count < highest), highest]:
        n_first, n_second = (np.minimum(stacks.counts[side], most) for side in (first, second))
        evidence = stacks.evidence(first, second, n_first, n_second)
        better = evidence > best
        best[better], counts[0, better], counts[1, better] = evidence[better], n_first[better], n_second[better]
    order = np.argsort(-best, kind="stable")
    unsettled = np.minimum(equal, first.size - np.arange(first.size))
    reached = best[order] >= level + np.log(np.maximum(unsettled, 1))
    kept = order[: first.size if reached.all() else int(np.argmin(reached))]
    return [
        [int(first[i]), int(second[i]), float(best[i]), int(counts[0, i]), int(counts[1, i])] for i in kept.tolist()
    ]


def _statements(conversation: Conversation, statements: Statements) -> dict[str, Any]:
    """What the frozen list has proven."""
    made = next(made for _, made in conversation.decisions if made["event"] == "statements")
    between, items = statements.rows()
    return {
        "epoch": made["epoch"],
        "level": statements.level,
        "representatives": between,
        "proven": items,
        "open": int(statements.unproven.any(axis=1).sum()),
    }
