"""Measure the least certain arm or its rival: a LUCB clusterer.

After LUCBBOC of Chandran, Reddy and Bhashyam, "Online Clustering with Bandit Information" (2025, arXiv 2501.11421),
from its description, not from its listing: a guess of the groups from the running means, lower and upper confidence
bounds for the differences, the next measurement for the difference that is the bottleneck, and a stop when the bounds
prove the guess. K and δ are known, the gap is not.

Departures. Their groups are those of single linkage and may hold arms of different means; here arms of a group are
equal, which gives the shorter proof of `bench.peers.stacks`, and the guess is K-means from several starts. The bounds
are those of pairs. Of the two arms of the bottleneck only one is measured, the less measured one, as UGapE does: a
representative is in many tests, and measuring both each time spends most on it. One in sixteen of the uncertain arms
is served in a step, each with its least certain test; an arm gets one more block of results (one up to 64, then at most
a 32nd of what it has), and if it then has as many as another arm that is served, it goes on with that one. The least
measured arm is measured while it has less than a quarter of the mean: a wrong guess could otherwise put all doubt where
nothing can be learnt.

Proof. A test compares arm and representative with the weighted maximum over block ratios, at level log(H/δ): by the
union bound of `bench.peers.stacks`, with probability at least 1−δ no pair of equal arms is ever proven different, and
then the groups at the end are the true ones, whatever was measured.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.peers.course import Batch, Course, Task
from bench.peers.guess import groups_and_representatives, unmet_tests
from bench.peers.stacks import Stacks, pair_level
from coterie.problem.checks import FloatArray, IntArray

SERVED = 16
"""One in so many of the uncertain arms is served in a step."""


def course(task: Task) -> Course:
    """One result of each arm, then steps: renew the guess when t has grown by 1/32, serve the least certain tests."""
    n_arms, n_clusters = task.n_arms, task.n_clusters
    level = pair_level(n_arms, n_clusters, task.delta)
    every = np.arange(n_arms)
    stacks = Stacks(n_arms, task.dim)
    yield Batch(stacks, [(every, 1)], -np.inf, level, None)
    guess: tuple[IntArray, IntArray] | None = None
    evidence = np.empty((n_arms, n_clusters))
    read_for: IntArray = np.full(n_clusters, -1)  # the representatives that the columns of `evidence` are about
    renew_at = 0
    while True:
        t = stacks.t
        if guess is None or t >= renew_at:
            guess = groups_and_representatives(stacks.means(), stacks.pulls, n_clusters, guess)
            renew_at = t + max(1, t // 32)
        labels, leads = guess
        for k in np.flatnonzero(read_for != leads):
            evidence[:, k] = stacks.evidence(every, np.full(n_arms, leads[k]))
        read_for = leads
        unmet = unmet_tests(evidence >= level, labels)
        if not unmet.any():
            return labels
        chosen = _to_measure(stacks, evidence, unmet, leads)
        heights = stacks.level[chosen]
        ends = heights.copy()
        for height in np.unique(heights):
            ends[ends == height] = height + 1  # one that reaches another's height goes on with it
        wanted = [(chosen[ends == end], int(end)) for end in np.unique(ends)]
        yield Batch(stacks, wanted, float(evidence[unmet].min()), level, labels)
        touched = np.zeros((n_arms, n_clusters), dtype=bool)
        touched[chosen] = True
        touched[:, np.isin(leads, chosen)] = True
        arms, groups = np.nonzero(touched & (evidence < level))
        # Latched: what was proven once stays proven.
        evidence[arms, groups] = np.maximum(evidence[arms, groups], stacks.evidence(arms, leads[groups]))


def _to_measure(stacks: Stacks, evidence: FloatArray, unmet: NDArray[np.bool_], leads: IntArray) -> IntArray:
    weakest = np.where(unmet, evidence, np.inf)
    rival = weakest.argmin(axis=1)
    uncertain = np.flatnonzero(unmet.any(axis=1))
    served = uncertain[np.argsort(weakest[uncertain, rival[uncertain]], kind="stable")]
    served = served[: 1 + served.size // SERVED]
    pulls = stacks.pulls
    against = leads[rival[served]]
    chosen = np.where(pulls[served] < pulls[against], served, against)
    least = int(pulls.argmin())
    if pulls[least] < pulls.mean() / 4.0:
        chosen = np.append(chosen, least)
    return np.unique(chosen)
