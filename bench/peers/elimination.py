"""Rounds over the arms whose place is not certain: an elimination clusterer.

After BOC-Elim of Chandran, Reddy and Bhashyam, "Online Clustering of Data Sequences with Bandit Information" (2025,
arXiv 2501.11421), from its description, not from its listing: confidence bounds for the differences, rounds over the
active arms, and an arm whose place is certain leaves. K and δ are known, the gap is not.

Departures. Their rule is for one dimension and for groups whose arms may have different means, told apart by single
linkage; here d is any, and arms of a group are equal, which gives the shorter proof of `bench.peers.stacks`. The guess
of the groups is K-means from several starts. The radius is the pair's. An arm that left comes back if a change of the
guess makes its place uncertain. Until all representatives are proven different, those that left are kept at a quarter
of the round's count: a wrong guess could otherwise put all doubt where nothing can be learnt.

Proof. A test compares arm and representative over equally many results with R = 1, at level log(H/δ): by the union
bound of `bench.peers.stacks`, with probability at least 1−δ no pair of equal arms is ever proven different, and then
the groups at the end are the true ones. It ends with probability 1: arms in unmet tests are measured without end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.peers.course import Batch, Course, Task
from bench.peers.guess import groups_and_representatives, unmet_tests
from bench.peers.stacks import KEPT, Stacks, floor_level, pair_level
from coterie.problem.checks import IntArray


def course(task: Task) -> Course:
    """Round l brings every active arm to KEPT[l−1] results; then the guess is renewed and its tests are read."""
    level = pair_level(task.n_arms, task.n_clusters, task.delta)
    stacks = Stacks(task.n_arms, task.dim)
    proven: dict[int, NDArray[np.bool_]] = {}  # for an arm that was a representative: who is proven different from it
    guess: tuple[IntArray, IntArray] | None = None
    active: IntArray = np.arange(task.n_arms)
    asleep: IntArray = np.arange(0)
    weakest = -np.inf
    for now in range(1, KEPT.size):
        low = int(floor_level(np.maximum(KEPT[now - 1] // 4, 1)))
        labels_before = None if guess is None else guess[0]
        yield Batch(stacks, [(active, now), (asleep, low)], weakest, level, labels_before)
        guess = groups_and_representatives(stacks.means(), stacks.pulls, task.n_clusters, guess)
        labels, leads = guess
        values = np.full((task.n_arms, task.n_clusters), np.inf)
        for k, lead in enumerate(leads.tolist()):
            known = proven.setdefault(lead, np.zeros(task.n_arms, dtype=bool))
            open_arms = np.flatnonzero(~known)
            values[open_arms, k] = stacks.equal_evidence(open_arms, lead)
            known[open_arms] = values[open_arms, k] >= level
        unmet = unmet_tests(np.stack([proven[lead] for lead in leads.tolist()], axis=1), labels)
        if not unmet.any():
            return labels
        weakest = float(values[unmet].min())
        busy: NDArray[np.bool_] = np.asarray(unmet.any(axis=1))
        busy[leads[unmet.any(axis=0)]] = True
        active = np.flatnonzero(busy)
        asleep = np.flatnonzero(~busy) if unmet[leads].any() else np.arange(0)
    return None
