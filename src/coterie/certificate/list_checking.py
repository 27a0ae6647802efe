"""Does the log strike off all partitions of a list but the claimed one? The argument is in docs/CROC.md, section 20.

The list is made anew from the pairs that the log names for it, those of them that are settled; the bets of a round from
the results that the log has before it. Nothing else is taken from the certificate but what it claims.

What a round says about partitions is written a second time here, in plain NumPy. The engine goes from group to group
with sums that it carries along. Here the chance of a partition is a density of the means of arms, by matrices, and the
factors of a round are formed for all partitions, groups and rivals side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.arithmetic.known import Record, Stacks, paired
from coterie.certificate.fields import SLACK, TOLERANCE, Bools, against
from coterie.certificate.group_claim import MOST_PARTITIONS, GroupClaim, ListClaim
from coterie.certificate.reading import Log
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.partition import canonical

_SCALES = 4.0 ** np.arange(4, -6, -1)  # τ²
_LOWERED = 1e-4  # of the largest chance: by so much every chance is lowered for a bet
_AT_ONCE = 2**21  # numbers that are worked on at once


def fitting(pairs: IntArray, n_arms: int, n_clusters: int, most: int) -> IntArray | None:
    """(n, M): all partitions into exactly K groups in which no pair is together, in ascending order of their labels.

    Groups are numbered by first appearance. None if there are more than `most`, or too many on the way to them.
    """
    apart: list[list[int]] = [[] for _ in range(n_arms)]
    for low, high in np.sort(pairs, axis=1).tolist():
        apart[high].append(low)
    rows: list[tuple[int, ...]] = [()]
    for arm in range(n_arms):
        grown = []
        for row in rows:
            groups = max(row, default=-1) + 1
            taken = {row[high] for high in apart[arm]}
            for label in range(min(groups + 1, n_clusters)):
                now = max(groups, label + 1)
                if label not in taken and now + n_arms - arm - 1 >= n_clusters:  # enough arms are left for K groups
                    grown.append((*row, label))
        rows = grown
        if len(rows) > 200 * most:
            return None
    return np.array(rows, dtype=np.int64).reshape(-1, n_arms) if len(rows) <= most else None


def blocks_of(partitions: IntArray) -> list[IntArray]:
    """Sets of arms that no partition joins: the connected parts of "some partition has both in one group"."""
    joined = (partitions[:, :, None] == partitions[:, None, :]).any(axis=0)
    reach = joined
    while True:
        wider = (reach.astype(np.int64) @ joined.astype(np.int64)) > 0
        if (wider == reach).all():
            break
        reach = wider
    return [np.flatnonzero(row) for row in np.unique(reach, axis=0)]


def chances(partitions: IntArray, possible: NDArray[np.bool_], pulls: FloatArray, sums: FloatArray) -> FloatArray:
    """p of each partition by results with these sums; 0 for those that are not possible."""
    some = partitions[possible]
    means = sums / pulls[:, None]
    sizes = [np.bincount(row) for row in some]
    logs = np.array([sum(lgamma(size + 1.0) for size in each) for each in sizes])
    for arms in blocks_of(some):
        if arms.size > 1:
            logs += _block_logs(some[:, arms], 1.0 / pulls[arms], means[arms])
    chance = np.zeros(len(partitions))
    chance[possible] = np.exp(logs - logs.max())
    return np.asarray(chance / chance.sum())


def _block_logs(labels: IntArray, variance: FloatArray, means: FloatArray) -> FloatArray:
    """log of the mean over τ² of the density of the means up to a common shift: N(0, diag(variance) + τ²·together)."""
    together = (labels[:, :, None] == labels[:, None, :]).astype(np.float64)
    covariance = np.diag(variance) + _SCALES[:, None, None, None] * together  # (scales, n, arms, arms)
    inverse = np.linalg.inv(covariance)
    _, log_det = np.linalg.slogdet(covariance)
    row = inverse.sum(axis=2)
    total = row.sum(axis=2)
    quadratic = np.einsum("aq,snab,bq->sn", means, inverse, means)
    quadratic -= (np.einsum("sna,aq->snq", row, means) ** 2).sum(axis=2) / total
    logs = -0.5 * (means.shape[1] * (log_det + np.log(total)) + quadratic)
    return np.asarray(np.logaddexp.reduce(logs, axis=0))


def round_factors(
    nulls: IntArray,
    partitions: IntArray,
    chance: FloatArray,
    before: tuple[FloatArray, FloatArray],
    of_round: tuple[FloatArray, FloatArray],
    n_clusters: int,
) -> FloatArray:
    """log of the factor that a round gives to each of the partitions `nulls` (rows of `partitions`).

    `chance`: p at the time at which the round was composed; `before` and `of_round`: counts and sums of the arms then,
    and of the round.
    """
    bets = np.maximum(chance - _LOWERED * chance.max(), 0.0)
    rivals = np.flatnonzero(bets > 0.0)
    member = partitions[:, None, :] == np.arange(n_clusters)[None, :, None]  # (n, K, M)
    weight = member[rivals] @ before[0]
    center = (member[rivals] @ before[1]) / weight[:, :, None]
    step = max(1, _AT_ONCE // (rivals.size * n_clusters * n_clusters * _SCALES.size * before[1].shape[1]))
    logs_of_factors = np.zeros(nulls.size)
    for low in range(0, nulls.size, step):
        some = nulls[low : low + step]
        ratio = _log_ratios(member[some], member[rivals], weight, center, *of_round)  # (some, rivals)
        share = np.where(some[:, None] == rivals[None], 0.0, bets[rivals][None])
        there = share.sum(axis=1) > 0.0
        with np.errstate(divide="ignore"):
            logs = np.logaddexp.reduce(np.log(share) + ratio, axis=1)
            logs_of_factors[low : low + step] = np.where(there, logs - np.log(share.sum(axis=1)), 0.0)
    return logs_of_factors


def _log_ratios(
    null: NDArray[np.bool_],
    rival: NDArray[np.bool_],
    weight: FloatArray,
    center: FloatArray,
    taken: FloatArray,
    total: FloatArray,
) -> FloatArray:
    """(n, rivals): log Π over groups of the null of the density of the round's contrasts, rival's over null's."""
    n, k, n_arms = null.shape
    rows, columns = null.reshape(n * k, n_arms) * taken, rival.reshape(-1, n_arms).T
    shape = (n, k, len(rival), k)
    count = (rows @ columns).reshape(shape)  # results of the round that a group of the null and one of the rival share
    there = count > 0.0
    cut = np.argwhere(there.sum(axis=3) > 1)  # (null, its group, rival): the rival cuts the group in parts
    ratios = np.zeros((n, len(rival)))
    if not cut.size:
        return ratios
    place = tuple(cut.T)
    count, there = count[place], there[place]
    sums = np.stack(
        [((null.reshape(n * k, n_arms) * total[:, q]) @ columns).reshape(shape)[place] for q in range(total.shape[1])],
        axis=2,
    )
    mean = np.where(there[:, :, None], sums / np.where(there, count, 1.0)[:, :, None], 0.0)
    its_weight, its_center = weight[cut[:, 2]], center[cut[:, 2]]
    under_null = _contrast(np.where(there, count, 0.0), mean, there)
    scale = _SCALES[:, None, None]
    apart = np.where(there, 1.0 / (scale + 1.0 / its_weight), 0.0)  # precision of a center around the place
    shares = _contrast(apart, np.broadcast_to(its_center, (_SCALES.size, *its_center.shape)), there)
    shares -= np.logaddexp.reduce(shares, axis=0)
    at = (apart[..., None] * its_center).sum(axis=2) / apart.sum(axis=2)[..., None]
    drawn = (its_center - at[:, :, None]) * (its_weight / (its_weight + 1.0 / scale))[..., None]
    spread = 1.0 / (its_weight + 1.0 / scale)
    precision = np.where(there, 1.0 / (spread + 1.0 / np.where(there, count, 1.0)), 0.0)
    under_rival = np.logaddexp.reduce(shares + _contrast(precision, mean - drawn, there), axis=0)
    np.add.at(ratios, (cut[:, 0], cut[:, 2]), under_rival - under_null)
    return ratios


def _contrast(precision: FloatArray, at: FloatArray, there: NDArray[np.bool_]) -> FloatArray:
    """log density, up to a constant, of points N(shift, 1/precision) up to their shift; along the last but one axis.

    Σ_j q_j‖x_j − x̄‖² is Σ_{i<j} q_i·q_j‖x_i − x_j‖²/Σq: no mean is formed.
    """
    total = precision.sum(axis=-1)
    logs = np.where(there, np.log(np.where(there, precision, 1.0)), 0.0).sum(axis=-1) - np.log(total)
    energy = np.zeros(total.shape)
    for i in range(precision.shape[-1]):
        for j in range(i):
            gap = ((at[..., i, :] - at[..., j, :]) ** 2).sum(axis=-1)
            energy += precision[..., i] * precision[..., j] * gap
    return np.asarray(0.5 * at.shape[-1] * logs - 0.5 * energy / total)


def list_problems(
    claim: GroupClaim, stated: ListClaim, log: Log, record: Record, stacks: Stacks, settled: IntArray
) -> Iterator[str]:
    """What is wrong; nothing if all is right. `settled`: (n, 2) the pairs of the claim that reach their level."""
    listing, partitions = log.listing, stated.partitions
    if listing is None:
        yield "the certificate rests on a list of partitions, and the log has none"
        return
    if not np.bincount(log.arms[: listing.at], minlength=claim.n_arms).all():
        yield "the list of partitions was made before every arm had a result"
        return
    if len(stated.rounds) > len(log.rounds):
        yield f"the certificate uses {len(stated.rounds)} rounds, the log has {len(log.rounds)}"
    for composed in log.rounds[: len(stated.rounds)]:
        if not composed.complete:
            yield f"round {composed.number} is used, but not all of its results are in the log"
    rounds = _Rounds(claim, stated, log, record, stacks)
    first = rounds.settled_by(listing.pairs, listing.at)
    wanted = fitting(first, claim.n_arms, claim.n_groups, MOST_PARTITIONS)
    if wanted is None or not np.array_equal(wanted, partitions):
        many = f"more than {MOST_PARTITIONS}" if wanted is None else str(len(wanted))
        yield f"the list must have the {many} partitions that fit its settled pairs, it has {len(partitions)}"
        return
    claimed = np.flatnonzero((partitions == canonical(claim.labels)).all(axis=1))
    if not claimed.size:
        yield "the claimed groups are not on the list"
        return
    by_pairs = _has_together(partitions, settled)
    if by_pairs[claimed[0]]:
        yield "a settled pair strikes off the claimed groups themselves"
    yield from rounds.problems(first)
    left = (stated.struck_by == 0) & ~by_pairs
    left[claimed[0]] = False
    for i in np.flatnonzero(left)[:3].tolist():
        yield f"partition {i} of the list, {short(partitions[i].tolist())}, is not struck off"


class _Rounds:
    """What rounds say about the partitions of a list."""

    def __init__(self, claim: GroupClaim, stated: ListClaim, log: Log, record: Record, stacks: Stacks) -> None:
        self.claim, self.stated, self.log, self.stacks = claim, stated, log, stacks
        # Places from the first result, in units of the noise: only differences matter.
        origin = record.results.rows(np.zeros(log.arms.size, dtype=np.int64))
        self._values: FloatArray = record.units.gap(record.results, origin)

    def settled_by(self, pairs: IntArray, at: int) -> IntArray:
        """(n, 2): those of these pairs that reach the level, with results that the log has among its first `at`.

        Others are left out: the value of a result may have been corrected since. Then the list is the longer for it.
        """
        heights = np.bincount(self.log.arms[:at], minlength=self.claim.n_arms)
        a, b, n_a, n_b = pairs.T
        there = np.flatnonzero((n_a <= heights[a]) & (n_b <= heights[b]))
        evidence = paired(self.stacks, *(column[there] for column in (a, b, n_a, n_b)))
        level = self.claim.pair_level
        return pairs[there[evidence >= level - SLACK * level], :2]

    def problems(self, first: IntArray) -> Iterator[str]:
        """The evidence of every partition that rounds are said to have struck off, up to the round that did."""
        partitions, until = self.stated.partitions, self.stated.struck_by
        possible = ~_has_together(partitions, first)
        evidence = np.zeros(len(partitions))
        for composed in self.log.rounds[: int(until.max(initial=0))]:
            if not composed.complete:
                return  # that was said
            for pair in self.settled_by(composed.settled, composed.at):
                less = possible & ~_has_together(partitions, pair[None])
                possible = less if less.any() else possible
            before = self._tally(np.arange(composed.at))
            chance = chances(partitions, possible, *before)
            asked = np.flatnonzero(until >= composed.number)
            of_round = self._tally(np.flatnonzero(self.log.round_of == composed.number))
            evidence[asked] += round_factors(asked, partitions, chance, before, of_round, self.claim.n_groups)
            for i in np.flatnonzero(until == composed.number).tolist():
                level, stated = self.stated.level, float(self.stated.evidence[i])
                if not abs(stated - evidence[i]) <= TOLERANCE * max(1.0, abs(evidence[i])):
                    yield (
                        f"evidence against partition {i} of the list at round {composed.number}: "
                        f"{against(stated, evidence[i])}"
                    )
                elif not evidence[i] >= level - SLACK * level:
                    yield (
                        f"partition {i} of the list is not struck off at round {composed.number}: its evidence is "
                        f"{evidence[i]:.6g} and must reach {level:.6g}"
                    )

    def _tally(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Counts and sums of the arms over these results."""
        arms = self.log.arms[rows]
        sums = np.zeros((self.claim.n_arms, self._values.shape[1]))
        np.add.at(sums, arms, self._values[rows])
        return np.bincount(arms, minlength=self.claim.n_arms).astype(np.float64), sums


def _has_together(partitions: IntArray, pairs: IntArray) -> Bools:
    """(n): which partitions have a pair in one group."""
    return np.asarray((partitions[:, pairs[:, 0]] == partitions[:, pairs[:, 1]]).any(axis=1))
