"""Does the log strike off all partitions of a list but the claimed one? The argument is in docs/CROC.md, section 20.

The list is made anew from the pairs that the log names for it, those of them that are settled; the bets of a round from
the results that the log has before it. Nothing else is taken from the certificate but what it claims.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coterie.certificate.arithmetic.known import Record, Stacks, paired
from coterie.certificate.arithmetic.partitions import chances, fitting, round_factors
from coterie.certificate.fields import TOLERANCE
from coterie.certificate.group_claim import MOST_PARTITIONS, GroupClaim, ListClaim
from coterie.certificate.problems import SLACK, Bools, against
from coterie.certificate.reading import Log
from coterie.problem.checks import FloatArray, IntArray, short


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
    claimed = np.flatnonzero((partitions == _by_appearance(claim.labels)).all(axis=1))
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


def _by_appearance(labels: IntArray) -> IntArray:
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels.tolist()])
