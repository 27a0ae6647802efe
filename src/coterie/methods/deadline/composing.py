"""What a round of a frozen list measures: doubtful items for the guess, then the statements that are cheapest to prove.

Nothing here enters a proof (docs/DEADLINE.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coterie.methods.deadline.statements import Statements
from coterie.problem.checks import FloatArray

RESULTS_AN_ITEM = 6.0
"""A list is for items whose place so many results prove, or fewer: elsewhere representatives take too much of the
rounds, and CROC proves more (`coterie bench deadline`)."""

DOUBTFUL = 0.001
"""An item that is in another group with so much probability is measured in every round, for the guess."""

FILLED, FOR_DOUBTS = 0.85, 0.8
"""Of what is left, for the statements that are taken up, and at most for doubtful items."""


def costs_of(statements: Statements, likely: FloatArray, centers: FloatArray, weights: FloatArray) -> FloatArray:
    """(M, K) about how many results of an item prove each open statement; infinite for the others.

    `likely`: (M, K) how likely each item is in the group of each representative; of these groups the centers and how
    many results each rests on.
    """
    dim = centers.shape[1]
    variances = 1.0 / weights[:, None] + 1.0 / weights
    gaps = ((centers[:, None] - centers) ** 2).sum(axis=2)
    gaps = np.maximum(gaps - dim * variances, 0.25 * gaps)
    best = likely.argmax(axis=1)
    lack = statements.level_now - statements.evidence + 0.06 * dim
    with np.errstate(divide="ignore"):
        costs = np.maximum(2.4 * lack / gaps[best], 0.7)
    costs[~statements.unproven] = np.inf
    costs[np.arange(best.size), best] = np.inf
    return np.asarray(costs)


def share_in_reach(statements: Statements, costs: FloatArray, prices: FloatArray, left: float) -> float:
    """Of the items, the share whose place what is left is expected to prove; 0 if a list is not worth it."""
    whole = np.where(np.isfinite(costs), costs, 0.0).max(axis=1)
    rounds, users = float(np.ceil(np.median(whole))), len(costs) / statements.representatives.size
    if rounds > RESULTS_AN_ITEM:
        return 0.0
    overhead = rounds * prices[statements.representatives].sum() * pulls_of_representative(users)
    spent = np.cumsum(np.sort(whole * prices)) + overhead
    return float((spent <= FILLED * left).mean())


def composition(
    statements: Statements, doubts: FloatArray, costs: FloatArray, prices: FloatArray, left: float
) -> dict[int, int]:
    """How often each item is measured in the next round; nothing if no round fits into what is left."""
    n_groups = statements.representatives.size
    ranked, many = np.sort(costs, axis=1), np.arange(1, n_groups + 1)
    values = np.where(np.isfinite(ranked), many / np.where(np.isfinite(ranked), ranked, 1.0), 0.0)
    best = values.argmax(axis=1)
    values, price = values.max(axis=1) / prices, ranked[np.arange(best.size), best] * prices
    chosen: list[int] = []
    used = 0.0
    for item in np.argsort(-doubts, kind="stable").tolist():
        if doubts[item] <= DOUBTFUL or used + prices[item] > FOR_DOUBTS * left:
            break
        chosen.append(item)
        used += prices[item]
    taken = set(chosen)
    for item in np.argsort(-values, kind="stable").tolist():
        if values[item] <= 0.0 or used + price[item] > FILLED * left:
            break
        if item not in taken:
            chosen.append(item)
            used += price[item]
    pulls = dict.fromkeys(chosen, 1) | _of_representatives(statements, chosen)
    spent = sum(prices[item] * count for item, count in pulls.items())
    for item in chosen[::-1]:  # the last round has to fit
        if spent <= left:
            break
        del pulls[item]
        spent -= prices[item]
    of_use = bool(set(pulls) - set(statements.group_of)) or not statements.all_apart
    return pulls if of_use and spent <= left else {}


def _of_representatives(statements: Statements, chosen: Sequence[int]) -> dict[int, int]:
    n_groups = statements.representatives.size
    users = statements.unproven[list(chosen)].sum(axis=0) if chosen else np.zeros(n_groups)
    met = statements.apart_in + statements.apart_in.T + np.eye(n_groups, dtype=np.int64) > 0
    return {
        int(lead): pulls_of_representative(float(users[group]))
        for group, lead in enumerate(statements.representatives)
        if users[group] or not met[group].all()
    }


def pulls_of_representative(users: float) -> int:
    """How often a representative is measured in a round in which so many items are compared with it."""
    return max(1, math.ceil(0.7 * math.sqrt(users)))
