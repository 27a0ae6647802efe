"""What in a log speaks against a certificate, whether or not its own tests are met.

Two arms are *known to differ* when their pair from the start reaches the level log(H/(αδ)), at the counts of the first
t results or at counts that the certificate states. K + 1 arms that are pairwise known to differ refute K. To find a
largest such set is hard in general; `refuting_arms` looks at

1. the K representatives together with any one arm, and
2. sets that grow from one arm: the next is the arm whose smallest evidence against those chosen is largest. They start
   from the representatives, those with the most results first: at most 8 of them, and as many as 2^21 evidences allow,
   but at least one.

So a log in which nothing is found may still refute K; one in which something is found does.
"""

from __future__ import annotations

import numpy as np

from coterie.certificate.arithmetic.known import Stacks, paired
from coterie.problem.checks import FloatArray, IntArray

_MOST_STARTS, _MOST_EVIDENCES = 8, 2**21


class Differences:
    """Evidence that arms differ: at the counts of all results, or at stated counts where that is larger."""

    def __init__(self, stacks: Stacks, stated: list[tuple[IntArray, IntArray, FloatArray]]) -> None:
        self.stacks = stacks
        # each stated pair from both of its sides, in the order of the first arm
        first = np.concatenate([np.empty(0, dtype=np.int64), *(arm for a, b, _ in stated for arm in (a, b))])
        second = np.concatenate([np.empty(0, dtype=np.int64), *(arm for a, b, _ in stated for arm in (b, a))])
        evidence = np.concatenate([np.empty(0), *(value for _, _, value in stated for _ in range(2))])
        order = np.argsort(first, kind="stable")
        self.stated = first[order], second[order], evidence[order]

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The evidence of pairs of arms at the counts of all results."""
        heights = self.stacks.heights
        return paired(self.stacks, first, second, heights[first], heights[second])

    def against(self, arm: int, others: IntArray) -> FloatArray:
        """The evidence of other arms (ascending) against this one; −inf for itself."""
        evidence = self.between(others, np.full(others.size, arm))
        of_arm = slice(*np.searchsorted(self.stated[0], [arm, arm + 1]))
        stated, its_evidence = self.stated[1][of_arm], self.stated[2][of_arm]
        place = np.searchsorted(others, stated)
        here = np.isin(stated, others)
        np.fmax.at(evidence, place[here], its_evidence[here])
        evidence[others == arm] = -np.inf
        return evidence


def differing_mates(differences: Differences, labels: IntArray, representatives: IntArray, level: float) -> IntArray:
    """(n, 2): arms of one group that are known to differ: with its representative, or stated in the certificate."""
    leads = representatives[labels]
    arms = np.flatnonzero(leads != np.arange(labels.size))
    arms = arms[differences.between(arms, leads[arms]) >= level]
    first, second, evidence = differences.stated
    mates = (labels[first] == labels[second]) & (first != second) & (evidence >= level)
    pairs = np.concatenate([np.stack([arms, leads[arms]], axis=1), np.stack([first[mates], second[mates]], axis=1)])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def pairwise_known(differences: Differences, arms: IntArray, level: float) -> bool:
    """Whether these arms (ascending) are pairwise known to differ."""
    return all(bool((differences.against(arm, arms[arms < arm]) >= level).all()) for arm in arms.tolist())


def refuting_arms(
    differences: Differences, representatives: IntArray, mates: IntArray, level: float
) -> IntArray | None:
    """K + 1 arms that are pairwise known to differ, if the search above finds them.

    `mates`: the pairs of `differing_mates`. An arm in none of them does not differ from all representatives.
    """
    misplaced = np.setdiff1d(mates, representatives)
    if misplaced.size and pairwise_known(differences, np.sort(representatives), level):
        for lead in representatives.tolist():
            misplaced = misplaced[differences.against(lead, misplaced) >= level]
        if misplaced.size:
            return np.sort(np.append(representatives, misplaced[0]))
    arms = differences.stacks.heights.size
    allowed = max(1, min(_MOST_STARTS, _MOST_EVIDENCES // (arms * representatives.size)))
    order = np.argsort(-differences.stacks.heights[representatives], kind="stable")
    for start in representatives[order][:allowed].tolist():
        chosen = _grown(differences, start, representatives.size + 1, level)
        if chosen.size > representatives.size:
            return np.sort(chosen)
    return None


def _grown(differences: Differences, start: int, wanted: int, level: float) -> IntArray:
    """Arms that are pairwise known to differ, at most so many, from this one on."""
    chosen, left = [start], np.arange(differences.stacks.heights.size)
    smallest = np.full(left.size, np.inf)
    while len(chosen) < wanted:
        smallest = np.fmin(smallest, differences.against(chosen[-1], left))
        left, smallest = left[smallest >= level], smallest[smallest >= level]
        if not left.size:
            break
        chosen.append(int(left[np.argmax(smallest)]))
    return np.array(chosen)
