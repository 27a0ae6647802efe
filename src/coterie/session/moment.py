"""What partial answers rest on, of a session at one moment: the results that count, the groups, the last freeze.

**Sessions that were revised.** The error of partial answers was shared out among the pairs of the first items, before
anything was seen. So evidence is that of these pairs, whoever was retired since, with all of them in the union; pairs
with items that joined later have none of their own, and are told apart by the proof alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from coterie.evidence.intervals.by_noise import Distances, distances
from coterie.evidence.intervals.stacks import Stacks
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical
from coterie.problem.question import ExactGroups
from coterie.problem.revision import among
from coterie.problem.settings import Settings
from coterie.session.atomic import for_session
from coterie.session.conversation import Conversation
from coterie.session.groups import labels_of
from coterie.session.in_blocks import apart_in_cells
from coterie.session.verdicts import alarm_of

MOST_ITEMS = 3000
"""Partial answers look at all pairs: of so many items at most."""

EQUAL_SHARE = 0.2
"""Of δ, for pairs of K groups under a known noise: `coterie.methods.croc.run.ALPHA`."""

FROZEN_SHARE = 0.1
"""Of δ, for pairs of a resolution and of single linkage: what the levels of frozen tests leave."""


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
    in_cells: Any = None  # (M, M) in blocks: pairs known to differ
    stated: Any = None  # (M, M) pairs that frozen statements have proven to differ

    @property
    def t(self) -> int:
        """How many results count."""
        return int(self.rows.size)

    @cached_property
    def stacks(self) -> Stacks:
        """The results that count, item by item."""
        return Stacks.of(self.arms, self.log[self.rows], self.settings.n_arms)


def conversation_moment(conversation: Conversation) -> Moment:
    """What partial answers rest on, now."""
    rows, log, labels = conversation.counted, conversation.log, labels_of(conversation)
    refuted = alarm_of(conversation) is not None
    proven = conversation.run.done and conversation.proves and not refuted
    freeze = _last_freeze(conversation, labels)
    moment = Moment(conversation.settings, labels, proven, refuted, freeze, log.arms_of(rows), rows, log.array)
    if conversation.settings.blocks is not None:
        return replace(moment, in_cells=apart_in_cells(conversation))
    if conversation.run.statements is not None:
        return replace(moment, stated=conversation.run.statements.pairs())
    if not conversation.revisions:
        return moment
    return replace(moment, n_first=conversation.first_settings.n_arms, present=tuple(conversation.items.present))


moment_of = for_session(conversation_moment)


def check_size(n_arms: int, asker: str) -> None:
    """That there are not too many items to look at all pairs."""
    if n_arms > MOST_ITEMS:
        raise ValueError(
            f"{asker} looks at all pairs of items, and {n_arms} items have too many: it takes up to "
            f"{MOST_ITEMS}; for more, read labels and certificate"
        )


def _last_freeze(conversation: Conversation, labels: IntArray | None) -> dict[str, Any] | None:
    """The last freeze, if its groups are those of now."""
    freezes = [made for _, made in conversation.decisions if made["event"] == "freeze" and "references" in made]
    if not freezes or labels is None:
        return None
    frozen = np.asarray(freezes[-1]["labels"])
    if frozen.size != labels.size or not np.array_equal(frozen < 0, labels < 0):
        return None
    return freezes[-1] if np.array_equal(canonical(frozen[frozen >= 0]), labels[labels >= 0]) else None


def distances_at(moment: Moment, norm: str, unit: FloatArray) -> Distances:
    """Bounds of all distances, under a noise that has them."""
    stacks = moment.stacks if moment.n_first is None else first_stacks(moment)
    bounds = distances(stacks, moment.settings.noise, norm, unit, log_inverse_budget(moment.settings))
    assert bounds is not None  # other noises are refused for these questions
    return bounds if moment.n_first is None else spread_distances(bounds, moment)


# Of a session that was revised.


def first_stacks(moment: Moment) -> Stacks:
    """The results of the items that were there first."""
    assert moment.n_first is not None
    here = moment.arms < moment.n_first
    values = moment.log[moment.rows[here]]
    return Stacks.of(moment.arms[here], values, moment.n_first)


def among_present(moment: Moment) -> Moment:
    """The same moment with the items present, numbered among themselves."""
    labels, freeze = moment.labels, moment.freeze
    here = np.array(moment.present, dtype=np.int64)
    place = {arm: i for i, arm in enumerate(moment.present)}
    if freeze is not None:
        freeze = freeze | {
            "labels": np.asarray(freeze["labels"])[here].tolist(),
            "references": [place[arm] for arm in freeze["references"]],
            **{
                key: [[*(place[arm] for arm in test[:2]), *test[2:]] for test in freeze[key]] for key in ("near", "far")
            },
        }
    return replace(
        moment,
        settings=among(moment.settings, moment.present),
        labels=None if labels is None else labels[here],
        freeze=freeze,
    )


def spread_pairs(pairs: np.ndarray, moment: Moment, otherwise: Any) -> np.ndarray:
    """Pairs (of the first items) as pairs of the items present; `otherwise`: for those that joined."""
    assert moment.n_first is not None
    here = np.array(moment.present, dtype=np.int64)
    first = np.flatnonzero(here < moment.n_first)
    spread = np.full((here.size, here.size, *pairs.shape[2:]), otherwise, dtype=pairs.dtype)
    spread[np.ix_(first, first)] = pairs[np.ix_(here[first], here[first])]
    return spread


def spread_distances(bounds: Distances, moment: Moment) -> Distances:
    """Bounds of distances, for the items present: none for those that joined."""
    lower, upper = spread_pairs(bounds.lower, moment, 0.0), spread_pairs(bounds.upper, moment, np.inf)
    every = np.arange(len(upper))
    upper[every, every] = 0.0
    return Distances(bounds.norm, lower, upper)
