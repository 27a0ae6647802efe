"""Partial answers of a session that was revised: about the items present, by pairs of those that were there first.

The error of partial answers was shared out among the pairs of the first items, before anything was seen. So evidence is
that of these pairs, whoever was retired since, with all of them in the union; pairs with items that joined later have
none of their own, and are told apart by the proof alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import IntArray
from coterie.problem.revision import among
from coterie.theory.intervals.by_noise import Distances
from coterie.theory.intervals.stacks import Stacks

if TYPE_CHECKING:
    from coterie.session.partial import Moment, Proven


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


def spread_pairs(found: np.ndarray, moment: Moment, otherwise: Any) -> np.ndarray:
    """Pairs (of the first items) as pairs of the items present; `otherwise`: for those that joined."""
    assert moment.n_first is not None
    here = np.array(moment.present, dtype=np.int64)
    first = np.flatnonzero(here < moment.n_first)
    spread = np.full((here.size, here.size, *found.shape[2:]), otherwise, dtype=found.dtype)
    spread[np.ix_(first, first)] = found[np.ix_(here[first], here[first])]
    return spread


def spread_distances(found: Distances, moment: Moment) -> Distances:
    """Bounds of distances, for the items present: none for those that joined."""
    lower, upper = spread_pairs(found.lower, moment, 0.0), spread_pairs(found.upper, moment, np.inf)
    every = np.arange(len(upper))
    upper[every, every] = 0.0
    return Distances(found.norm, lower, upper)


def among_all(proven: Proven, moment: Moment) -> Proven:
    """What is proven about the items present, by the numbers that all items have."""
    here, n_ever = np.array(moment.present, dtype=np.int64), moment.settings.n_arms

    def pairs(matrix: np.ndarray) -> np.ndarray:
        found = np.zeros((n_ever, n_ever), dtype=bool)
        found[np.ix_(here, here)] = matrix
        return found

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
