"""Bounds of the differences of all pairs of items of a finished table, recomputed from its rows, and what they
prove."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from coterie.certificate.table_closure import RangeLaw
from coterie.certificate.table_tests import BETS, INTERVALS, bet_sums
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model
from coterie.problem.noise import Noise
from coterie.problem.question import Resolution

WIDER = 1e-7
"""Rounding that is forgiven where a bound must lie on the right side, relative to it."""


def difference_bounds(stacks: list[FloatArray], noise: Model, delta: float) -> tuple[FloatArray, FloatArray]:
    """(M, M, d) lower and upper bounds of |μ_i − μ_j|; ValueError if the noise allows none."""
    if isinstance(noise, Noise):
        return _gaussian(stacks, np.sqrt(np.diag(noise.covariance)), math.inf, delta)
    stated, dim = noise.statement, stacks[0].shape[1]
    if isinstance(stated, Gaussian):
        scatter = sum(((one - one.mean(axis=0)) ** 2).sum(axis=0) for one in stacks)
        freedom = sum(map(len, stacks)) - len(stacks)
        variances = np.asarray(scatter, dtype=np.float64) / max(1, freedom)
        if stated.shape == "scalar":
            variances, freedom = np.full(dim, variances.mean()), freedom * dim
        if freedom < 1 or not (variances > 0.0).all():
            raise ValueError("the rows do not vary within items: they bound no difference")
        return _gaussian(stacks, np.sqrt(variances), float(freedom), delta)
    error = delta / (len(stacks) * dim)
    if isinstance(stated, Counts):
        box = np.array([[_rate(one[:, k], stated.trials, error) for k in range(dim)] for one in stacks])
    elif isinstance(stated, Bounded):
        lo, hi = (np.broadcast_to(end, dim) for end in (stated.lo, stated.hi))
        box = np.array([[_mean(one[:, k], lo[k], hi[k], -math.log(error)) for k in range(dim)] for one in stacks])
    else:
        raise ValueError(f"under {noise.words} no difference is bounded")
    low, high = box[:, :, 0], box[:, :, 1]
    lower = np.maximum(0.0, np.maximum(low[:, None] - high, low - high[:, None]))
    return lower, np.maximum(high[:, None] - low, high - low[:, None])


def _gaussian(
    stacks: list[FloatArray], deviations: FloatArray, freedom: float, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Tukey's and Kramer's, with δ/d for each number."""
    n_arms, dim = len(stacks), deviations.size
    means = np.stack([one.mean(axis=0) for one in stacks])
    share = np.array([1.0 / len(one) for one in stacks])
    reach = RangeLaw(freedom).critical([n_arms], delta / dim) * np.sqrt(share[:, None] + share)[:, :, None] * deviations
    apart = np.abs(means[:, None] - means)
    return np.maximum(0.0, apart - reach), apart + reach


def _rate(counts: FloatArray, trials: int, error: float) -> tuple[float, float]:
    hits, total = float(counts.sum()), float(counts.size * trials)
    low = 0.0 if hits == 0.0 else float(stats.beta.ppf(error / 2.0, hits, total - hits + 1.0))
    high = 1.0 if hits == total else float(stats.beta.isf(error / 2.0, hits + 1.0, total - hits))
    return low * trials, high * trials


def _mean(values: FloatArray, lo: float, hi: float, level: float) -> tuple[float, float]:
    sums = bet_sums((values - lo) / (hi - lo))
    kept = []
    for interval in range(INTERVALS):
        logs = [min(sums[sign][interval][end][bet] for end in (0, 1)) for sign in (0, 1) for bet in range(len(BETS))]
        top = max(logs)
        if top + math.log(sum(math.exp(one - top) for one in logs) / len(logs)) < level:
            kept.append(interval)
    if not kept:
        return float(lo), float(hi)
    return float(lo + (hi - lo) * kept[0] / INTERVALS), float(lo + (hi - lo) * (kept[-1] + 1) / INTERVALS)


class Nearness:
    """Which pairs are proven near (within η) and far (beyond ε) for a resolution."""

    def __init__(self, bounds: tuple[FloatArray, FloatArray], asked: Resolution) -> None:
        dim = bounds[0].shape[2]
        eta = asked.eta(dim)
        lower, upper = (one / eta for one in bounds)
        epsilon = asked.epsilon(dim) / eta
        if asked.norm == "distance":
            lower, upper = (np.sqrt((one**2).sum(axis=2)) for one in (lower, upper))
            self.near, self.far = upper < 1.0 + WIDER, lower > epsilon[0] - WIDER
        else:
            self.near, self.far = (upper < 1.0 + WIDER).all(axis=2), (lower > epsilon - WIDER).any(axis=2)

    def gaps(self, labels: Sequence[int], references: Sequence[int] | None) -> list[str]:
        """What is missing for the claim."""
        groups = [[i for i, label in enumerate(labels) if label == k] for k in range(max(labels) + 1)]
        found = []
        if references is None:
            for group in groups:
                found += [
                    f"items {j} and {i} of one group are not shown to be near"
                    for a, i in enumerate(group) for j in group[:a] if not self.near[i, j]
                ]  # fmt: skip
            for k, group in enumerate(groups):
                for other in range(k):
                    if not self.far[np.ix_(group, groups[other])].any():
                        found.append(f"no items of the groups {other} and {k} are shown to be far apart")
            return found
        for k, group in enumerate(groups):
            chief = references[k]
            if labels[chief] != k:
                found.append(f"item {chief} is the reference of group {k}, but is not in it")
            found += [
                f"item {i} is not shown to be near its reference {chief}"
                for i in group if i != chief and not self.near[i, chief]
            ]  # fmt: skip
            found += [
                f"the references {other} and {chief} are not shown to be far apart"
                for other in references[:k] if not self.far[chief, other]
            ]  # fmt: skip
        return found


def linkage_gap(bounds: tuple[FloatArray, FloatArray], labels: Sequence[int]) -> str | None:
    """What is missing for the groups of single linkage."""
    lower, upper = (np.sqrt((one**2).sum(axis=2)) for one in bounds)
    its = np.array(labels)
    across = lower[its[:, None] != its].min()
    joined = [{i} for i in range(len(labels))]
    for k in range(max(labels) + 1):
        group = np.flatnonzero(its == k).tolist()
        sets = [{item} for item in group]
        for i in group:
            for j in group:
                if i < j and upper[i, j] < across * (1.0 + WIDER):
                    one, other = (next(some for some in sets if item in some) for item in (i, j))
                    if one is not other:
                        sets.remove(other)
                        one |= other
        joined = sets
        if len(joined) > 1:
            return f"the items of group {k} are not joined by steps below {across:.6g}, the least between groups"
    return None
