"""The numbers of the sampling rule, and the groupings that it forecasts: plain, for `plain_sampling`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Vector = Any


class Rule:
    """The numbers of the sampling rule."""

    LEVEL_SHARE = 0.9
    FIRST_SHARE, NEXT_SHARE = 0.8, 0.2
    FIRST_RESULTS = 2
    EXPLORED, MOST_EXPLORED = 0.22, 3.0
    GROWTH = 2.0
    DOUBT, REST = 0.05, 0.5
    UNDER_WAY = 2
    SEARCH_AGAIN = 0.25
    BEGUN = 2
    COMPARED, LATE = 0.25, 1.2
    BETTER, LEAST_AGAIN, COMPARE_AGAIN = 1.1, 0.1, 4
    MISPLACED, CLEARLY_NEAR, CLAIM_WEIGHT, APART = 20.0, 0.7, 0.5, 0.8
    LEAST_LEFT, LEAST_PACE = 0.05, 0.1
    FEW, QUARTER, PASSES = 12, 4, 4
    SURE, CAUTION, SELECTED, CERTAINTY = 1.0, 0.6, 0.8, 1e-3
    HOPELESS, PATIENCE = 1.3, 4
    MOST_RATIO, MOST_FAR_RATIO, LAST_OF_MANY, OFF_CENTRE = 24, 4, 0.25, 1.1


def numbers_of_groups(n_arms: int) -> list[int]:
    found = [k for k in range(1, n_arms + 1) if k <= Rule.FEW]
    while found[-1] < n_arms:
        found.append(min(found[-1] + max(1, found[-1] // Rule.QUARTER), n_arms))
    return found


def net(means: list[Vector], distance: Callable[[Vector], float]) -> tuple[list[int], list[int]]:
    """A greedy maximal set of items more than 1 apart, from the most central one on, and everybody's nearest."""
    arms = range(len(means))
    apart = [[distance(means[a] - means[b]) for b in arms] for a in arms]
    leads = [min(arms, key=lambda arm: (max(apart[arm]), arm))]
    while True:
        arm = max(arms, key=lambda arm: (min(apart[arm][lead] for lead in leads), -arm))
        if min(apart[arm][lead] for lead in leads) <= 1.0:
            return [min(range(len(leads)), key=lambda k: (apart[arm][leads[k]], k)) for arm in arms], leads
        leads.append(arm)


def agglomerated(points: list[Vector], cost: Callable[[list[Vector], list[Vector]], float]) -> dict[int, list[int]]:
    """Labels for every number of groups: the two groups whose union costs least are merged, one after the other."""
    groups, found = [[arm] for arm in range(len(points))], {}
    while True:
        names = [next(g for g, group in enumerate(groups) if arm in group) for arm in range(len(points))]
        found[len(groups)] = by_appearance(names)
        if len(groups) == 1:
            return found
        pairs = [(a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
        a, b = min(pairs, key=lambda pair: cost(*([points[arm] for arm in groups[one]] for one in pair)))
        groups[a] += groups.pop(b)


def ward_cost(one: list[Vector], other: list[Vector]) -> float:
    gap = np.mean(one, axis=0) - np.mean(other, axis=0)
    return len(one) * len(other) / (len(one) + len(other)) * math.fsum(gap**2)


def refined(white: list[Vector], counts: list[int], labels: list[int]) -> list[int]:
    """Some passes of weighted k-means, all arms at once."""
    for _ in range(Rule.PASSES):
        weight, center = {}, {}
        for k in set(labels):
            group = [arm for arm, own in enumerate(labels) if own == k]
            weight[k] = sum(counts[arm] for arm in group)
            center[k] = sum(counts[arm] * white[arm] for arm in group) / weight[k]
        moved = []
        for arm, own in enumerate(labels):
            away = {k: math.fsum((white[arm] - center[k]) ** 2) for k in center}
            if weight[own] > counts[arm]:
                away[own] *= weight[own] / (weight[own] - counts[arm])
            moved.append(min(away, key=lambda k: (away[k], k)))
        if moved == labels:
            break
        labels = moved
    return by_appearance(labels)


def by_appearance(labels: list[int]) -> list[int]:
    names = list(dict.fromkeys(labels))
    return [names.index(label) for label in labels]
