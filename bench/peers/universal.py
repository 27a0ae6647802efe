"""Universal inference for partitions: every partition but one is refuted by a likelihood ratio with predictions on top.

After Wasserman, Ramdas and Balakrishnan, "Universal inference" (PNAS 117, 2020), its sequential form with a running
(predictable) estimate, applied to "which partition is the true one?". Ours: what is predicted, and that all partitions
into exactly K groups are listed, so that M is small (`most` partitions).

**The statistic.** Before result s, of arm m_s, is known, a density q_s is chosen that depends on earlier results only.
For a partition c let L_t(c) be the largest likelihood of the results up to t over all centers of the K groups of c, and

    E_t(c) = Π_{s ≤ t} q_s(X_s) / L_t(c).

**Proof.** Let c be true, with true means μ. Given everything before result s, arm m_s is fixed and X_s has the density
f(· − μ_{m_s}), so q_s(X_s)/f(X_s − μ_{m_s}) has conditional mean 1: the product P_t of these is a martingale that
starts at 1, however arms are chosen. L_t(c) is a maximum over centers, those of μ among them, so E_t(c) ≤ P_t for
all t. By Ville's inequality E_t(c) ever reaches 1/δ with probability at most δ. A partition with E_t ≥ 1/δ at any time
is refuted for good; with probability at least 1−δ the true one never is. So when one partition is left, it is the true
one, but for probability δ. Nothing is paid for the number of partitions: only the true one must survive. ∎

Results of the first pass over the arms serve predictions only: their own predictions would be worth nothing, and the
proof starts after any number of results.

**What it pays.** The maximum in L_t(c) gains about d/2 for every center, K of them, that a fixed parameter would not
have; the predictions lose about (d/2)·log t for every center that they have to learn. A pair test, or an arm
against a pool, pays for d coordinates once; this pays for K·d of them twice.

**What is predicted.** A mixture of N(Û_k, (1 + 1/W_k)·I) over the partitions with the largest likelihoods, weighted by
exp(−½·cost), k being the group of the arm in each, Û_k and W_k mean and number of its results before s. Partitions and
weights are renewed with the costs of all partitions, centers with every result.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

MOST = 200_000
"""Partitions that are listed."""

PREDICTING = 32
"""Partitions in the mixture that predicts."""

LOOK = 50
"""All partitions are looked at when t has grown by 1/50, at least by one result."""


def partitions(n_arms: int, n_groups: int, most: int = MOST) -> IntArray:
    """(P, K): all partitions of the arms into exactly K groups; a group is the sum of 2^m over its arms."""
    count = stirling(n_arms, n_groups)
    if count > most:
        raise ValueError(
            f"there are {count:,} partitions of {n_arms} arms into {n_groups} groups: at most {most:,} are listed"
        )
    codes, used = np.zeros((1, n_groups), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for arm in range(n_arms):
        grown, groups = [], []
        for k in range(n_groups):
            may = np.flatnonzero(used >= k)  # groups are opened in order
            into = codes[may].copy()
            into[:, k] |= 1 << arm
            grown.append(into)
            groups.append(np.maximum(used[may], k + 1))
        codes, used = np.concatenate(grown), np.concatenate(groups)
        enough = used + (n_arms - 1 - arm) >= n_groups
        codes, used = codes[enough], used[enough]
    return np.asarray(codes)


def stirling(n: int, k: int) -> int:
    """How many partitions of n into exactly k groups there are."""
    total = sum((1 if i % 2 == 0 else -1) * math.comb(k, i) * int(k - i) ** n for i in range(k + 1))
    return int(total // math.factorial(k))


class UniversalStop:
    """Told results one by one; `done` when one partition is left, which is `labels`."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, log_inverse_delta: float) -> None:
        self._level, self._dim, self._k = log_inverse_delta, dim, n_clusters
        self._all = partitions(n_arms, n_clusters)
        self._left = np.arange(len(self._all))
        self._members = (np.arange(1 << n_arms)[:, None] >> np.arange(n_arms)) & 1  # (2^M, M)
        self._first = np.zeros(n_arms, dtype=bool)  # arms whose first result is in
        self._pulls, self._sums = np.zeros(n_arms), np.zeros((n_arms, dim))  # all results: for predictions
        self._counted, self._totals = np.zeros(n_arms), np.zeros((n_arms, dim))  # those after the first pass
        self._squares = self._predicted = 0.0
        self._origin: FloatArray | None = None
        self._t, self._look_at = 0, 0
        self._mixture: tuple[IntArray, FloatArray] | None = None
        self.best: IntArray = np.zeros(n_clusters, dtype=np.int64)  # codes of the likeliest partition
        self.rival: IntArray = self.best  # and of the likeliest other one that is not refuted

    @property
    def done(self) -> bool:
        return self._left.size <= 1

    @property
    def labels(self) -> IntArray:
        """Of what is left, or, if everything is refuted, of the likeliest."""
        codes = self._all[self._left[0]] if self._left.size == 1 else self.best
        return np.asarray(self._members[codes].argmax(axis=0))

    def tell(self, arm: int, x: FloatArray) -> None:
        """A result."""
        if self._origin is None:
            self._origin = np.array(x, dtype=float)
        value = np.asarray(x, dtype=float) - self._origin
        if self._first.all():
            self._predicted += self._log_prediction(arm, value)
            self._counted[arm] += 1
            self._totals[arm] += value
            self._squares += float(value @ value)
        self._first[arm] = True
        self._pulls[arm] += 1
        self._sums[arm] += value
        self._t += 1
        if self._first.all() and self._t >= self._look_at:
            self._look()

    def _log_prediction(self, arm: int, value: FloatArray) -> float:
        assert self._mixture is not None
        groups, log_weights = self._mixture  # the group of every arm's code in each partition of the mixture
        members = self._members[groups[:, arm]]
        totals = members @ self._pulls
        gaps = value - (members @ self._sums) / totals[:, None]
        spread = 1.0 + 1.0 / totals
        logs = log_weights - 0.5 * self._dim * np.log(2.0 * np.pi * spread) - 0.5 * (gaps * gaps).sum(axis=1) / spread
        return float(np.logaddexp.reduce(logs))

    def _costs(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """−Σ_k ‖S_k‖²/W_k for all partitions that are left: their cost but for a constant."""
        totals = self._members @ pulls
        energy = ((self._members @ sums) ** 2).sum(axis=1) / np.maximum(totals, 1.0)
        return np.asarray(-energy[self._all[self._left]].sum(axis=1))

    def _look(self) -> None:
        """Renew the mixture; refute what can be refuted."""
        costs = self._costs(self._pulls, self._sums)
        top = np.argsort(costs, kind="stable")[:PREDICTING]
        codes = self._all[self._left[top]]
        self.best, self.rival = codes[0], codes[min(1, len(codes) - 1)]
        weights = -0.5 * (costs[top] - costs[top[0]])
        place = self._members[codes].argmax(axis=1)  # (n, M): the group of each arm
        self._mixture = np.take_along_axis(codes, place, axis=1), weights - float(np.logaddexp.reduce(weights))
        counted = float(self._counted.sum())
        if counted:
            constant = -0.5 * counted * self._dim * math.log(2.0 * np.pi)
            largest = constant - 0.5 * (self._squares + self._costs(self._counted, self._totals))  # log L_t(c)
            self._left = self._left[self._predicted - largest < self._level]
        self._look_at = self._t + max(1, self._t // LOOK)
