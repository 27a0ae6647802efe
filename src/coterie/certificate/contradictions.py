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

from coterie.certificate.recompute import Stacks, paired
from coterie.problem.checks import FloatArray, IntArray

_MOST_STARTS, _MOST_EVIDENCES = 8, 2**21


class Differences:
    """Evidence that arms differ: at the counts of all results, or at stated counts where that is larger."""

    def __init__(self, stacks: Stacks, stated: list[tuple[IntArray, IntArray, FloatArray]]) -> None:
        self.stacks = stacks
        # each stated pair from both of its sides, in the order of the first arm
        first = np.concatenate([np.empty(0, dtype=np.int64), *(arm for a, b, _ in stated for arm in (a, b))])
        second = np.concatenate([np.empty(0, dtype=np.int64), *(arm for a, b, _ in stated for arm in (b, a))])
        found = np.concatenate([np.empty(0), *(value for _, _, value in stated for _ in range(2))])
        order = np.argsort(first, kind="stable")
        self._first, self._second, self._found = first[order], second[order], found[order]

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The evidence of pairs of arms at the counts of all results."""
        heights = self.stacks.heights
        return paired(self.stacks, first, second, heights[first], heights[second])

    def against(self, arm: int) -> FloatArray:
        """The evidence of every arm against this one; −inf for itself."""
        arms = np.arange(self.stacks.heights.size)
        found = self.between(arms, np.full(arms.size, arm))
        low, high = np.searchsorted(self._first, [arm, arm + 1])
        np.fmax.at(found, self._second[low:high], self._found[low:high])
        found[arm] = -np.inf
        return found


def refuting_arms(differences: Differences, representatives: IntArray, level: float) -> list[int] | None:
    """K + 1 arms that are pairwise known to differ, if the search above finds them."""
    arms = differences.stacks.heights.size
    smallest, apart = np.full(arms, np.inf), True
    for place, arm in enumerate(representatives.tolist()):
        found = differences.against(arm)
        apart &= bool((found[np.delete(representatives, place)] >= level).all())
        smallest = np.fmin(smallest, found)
    best = int(np.argmax(smallest))
    if apart and smallest[best] >= level:
        return sorted([*representatives.tolist(), best])
    allowed = max(1, min(_MOST_STARTS, _MOST_EVIDENCES // (arms * representatives.size)))
    order = np.argsort(-differences.stacks.heights[representatives], kind="stable")
    for start in representatives[order][:allowed].tolist():
        chosen, smallest = [start], differences.against(start)
        while len(chosen) <= representatives.size:
            best = int(np.argmax(smallest))
            if not smallest[best] >= level:
                break
            chosen.append(best)
            if len(chosen) <= representatives.size:
                smallest = np.fmin(smallest, differences.against(best))
        else:
            return sorted(chosen)
    return None


def misplaced_arms(differences: Differences, labels: IntArray, representatives: IntArray, level: float) -> IntArray:
    """Arms that are known to differ from the representative of their own group."""
    leads = representatives[labels]
    arms = np.flatnonzero(leads != np.arange(labels.size))
    return arms[differences.between(arms, leads[arms]) >= level]


def pairwise_known(differences: Differences, arms: tuple[int, ...], level: float) -> bool:
    """Whether these arms are pairwise known to differ; none may be named twice."""
    return all((differences.against(arm)[list(arms[:place])] >= level).all() for place, arm in enumerate(arms))
