"""Find one arm of each group, then classify the others against them: a two-step clusterer.

After ACB of Thuot, Carpentier, Giraud and Verzelen, "Active clustering with bandit feedback" (2024, arXiv 2406.11485),
from its description, not from its listing: step 1 (sequential representatives identification) draws arms one after the
other and keeps those that differ from all kept so far; step 2 (active distance-based classification) classifies every
other arm against the K found. ACB knows the smallest gap and the smallest group's share; its variant ACB* searches for
both over several scales. Here K and δ are known, and neither of the two.

Departures. Step 1 takes the arms in random order and, for a growing budget B, measures the p-th of them ⌊B/max(p, K)⌋
times, so that few arms with many results and many arms with few get about the same share of it. Budgets that the gap
fixes are replaced by sequential tests with mixtures, in step 2 along the directions between the representatives. An arm
that step 1 has already placed is not measured again.

Proof. δ is split in halves. Step 1 proves pairs different at level log(2H/δ) (`bench.peers.stacks`): with probability
at least 1−δ/2 no equal pair is proven different, and the K found are in K different groups. Step 2 uses only results
that are taken after step 1. Given those of step 1, for arm m and representative k of the same group, the contrasts of
its results with blocks of R results of the representative are independent N(0, v·I), v = 1 + 1/R. For each l ≠ k, the
mixture over a mean difference N(θ, τ²·I), θ the difference of the representatives' means of step 1 and τ² its variance
(`directed_log` of coterie.evidence.pairs), is a martingale of these contrasts, hence so is the average over l: it
reaches 2(M−K)/δ with probability at most δ/(2(M−K)). Each of the M−K arms is in the group of one representative only,
so with probability at least 1−δ no arm is rejected by its own, and an arm rejected by all but one is where it belongs.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from bench.peers.course import Batch, Course, Task
from bench.peers.stacks import KEPT, Stacks, floor_level, pair_level
from coterie.problem.checks import FloatArray, IntArray

Bools = NDArray[np.bool_]


def course(task: Task) -> Course:
    """Both steps."""
    first, second = (Stacks(task.n_arms, task.dim) for _ in range(2))
    found, rejected = yield from _find(first, task)
    if len(found) < task.n_clusters:
        return None
    return (yield from _classify(first, second, np.array(found), rejected, task.delta / 2.0))


def _find(stacks: Stacks, task: Task) -> Generator[Batch, None, tuple[list[int], Bools]]:
    """Step 1: up to K arms proven different from each other, and rejected[m, k]: arm m is not like the k-th."""
    n_arms, n_clusters = task.n_arms, task.n_clusters
    level = pair_level(n_arms, n_clusters, task.delta / 2.0)
    order = task.random_order()
    found = [int(order[0])]
    rejected = np.zeros((n_arms, 1), dtype=bool)
    for budget in KEPT:
        wanted = floor_level(budget // np.maximum(np.arange(1, n_arms + 1), n_clusters))
        grown = order[stacks.level[order] < wanted]
        rungs = [(order[wanted == height], int(height)) for height in np.unique(wanted[wanted > 0])]
        yield Batch(stacks, rungs, 0.0, float(n_arms), None)
        for k, lead in enumerate(found):
            arms = np.flatnonzero(stacks.level > 0) if lead in grown else grown
            rejected[arms, k] |= stacks.evidence(arms, np.full(arms.size, lead)) >= level
        while len(found) < n_clusters and rejected.all(axis=1).any():
            lead = int(order[np.argmax(rejected[order].all(axis=1))])
            arms = np.flatnonzero(stacks.level > 0)
            column = np.zeros(n_arms, dtype=bool)
            column[arms] = stacks.evidence(arms, np.full(arms.size, lead)) >= level
            column[found] = True  # proven when `lead` was compared with them
            found.append(lead)
            rejected = np.column_stack([rejected, column])
        if len(found) == n_clusters:
            break
    return found, rejected


def _classify(first: Stacks, second: Stacks, leads: IntArray, rejected: Bools, delta: float) -> Course:
    """Step 2, INOUT: rejected[m, k], arm m is not in the group of representative k. The groups, if each arm has one."""
    n_arms, n_clusters = rejected.shape
    level = math.log(max(1, n_arms - n_clusters) / delta)
    ratio = block_ratio(n_arms, n_clusters)
    rejected[leads] = ~np.eye(n_clusters, dtype=bool)
    theta = first.means()[leads]
    spread = 1.0 / first.pulls[leads]
    for now in range(1, KEPT.size):
        arms = np.flatnonzero((~rejected).sum(axis=1) > 1)
        labels: IntArray = np.argmin(rejected, axis=1)
        if arms.size == 0:
            return labels
        n = int(KEPT[now - 1])
        asked = np.flatnonzero((~rejected[arms]).any(axis=0))  # the representatives that are still in question
        blocks = int(floor_level(np.array(n * ratio)))
        wanted = [(arms, now), (leads[asked], blocks)]
        yield Batch(second, wanted, float(n_arms - arms.size), float(n_arms), labels)
        for k in asked:
            those = arms[~rejected[arms, k]]
            total = second.sums[those, now] - second.sums[leads[k], blocks] / ratio
            value = directed(
                n, total, 1.0 + 1.0 / ratio, np.delete(theta - theta[k], k, 0), np.delete(spread + spread[k], k)
            )
            rejected[those[value >= level], k] = True
    return None


def block_ratio(n_arms: int, n_clusters: int) -> int:
    """R: 1, 2, 4 or 8, near ½·√(M/K), so that what representatives cost and what they save are in balance."""
    return int(2 ** np.clip(round(math.log2(0.5 * math.sqrt(n_arms / n_clusters))), 0, 3))


def directed(n: int, total: FloatArray, variance: float, thetas: FloatArray, spreads: FloatArray) -> FloatArray:
    """Log of the average over l of the evidence of n contrasts with sums `total` for a difference N(θ_l, τ²_l·I)."""
    weight, scaled = n / variance, total / variance
    growth = 1.0 + weight * spreads
    fit = 2.0 * scaled @ thetas.T + np.outer((scaled * scaled).sum(axis=1), spreads)
    fit -= weight * (thetas * thetas).sum(axis=1)
    terms = fit / (2.0 * growth) - 0.5 * total.shape[1] * np.log(growth)
    largest = terms.max(axis=1)
    return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).mean(axis=1)))
