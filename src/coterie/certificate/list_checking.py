"""Does the log strike off all partitions of a list but the claimed one? The argument is in docs/CROC.md, section 20.

The list is made anew from the pairs that the log names for it, those of them that are settled; the bets of a round from
the results that the log has before it. Nothing else is taken from the certificate but what it claims.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coterie.certificate.claim import Claim
from coterie.certificate.fields import TOLERANCE
from coterie.certificate.list_claim import MOST_PARTITIONS, ListClaim
from coterie.certificate.list_evidence import chances, fitting, round_factors
from coterie.certificate.log import Record
from coterie.certificate.recompute import Stacks, paired
from coterie.problem.checks import FloatArray, IntArray, short

SLACK = 1e-9
"""Rounding that is forgiven where evidence must reach the level, relative to it: δ grows by as much, no more."""


class ListChecking:
    """The checks of one claim by a list."""

    def __init__(self, claim: Claim, stated: ListClaim, record: Record, stacks: Stacks) -> None:
        self.claim, self.stated, self.record, self.stacks = claim, stated, record, stacks
        # Places from the first result, in units of the noise: only differences matter.
        origin = record.results.rows(np.zeros(record.arms.size, dtype=np.int64))
        self._values: FloatArray = record.units.gap(record.results, origin)

    def problems(self, settled: IntArray) -> Iterator[str]:
        """What is wrong; nothing if all is right. `settled`: (n, 2) the pairs of the claim that reach their level."""
        listing, partitions = self.record.listing, self.stated.partitions
        if listing is None:
            yield "the certificate rests on a list of partitions, and the log has none"
            return
        if not np.bincount(self.record.arms[: listing.at], minlength=self.claim.n_arms).all():
            yield "the list of partitions was made before every arm had a result"
            return
        yield from self._incomplete()
        first = self._settled_by(listing.pairs, listing.at)
        wanted = fitting(first, self.claim.n_arms, self.claim.n_clusters, MOST_PARTITIONS)
        if wanted is None or not np.array_equal(wanted, partitions):
            many = f"more than {MOST_PARTITIONS}" if wanted is None else str(len(wanted))
            yield f"the list must have the {many} partitions that fit its settled pairs, it has {len(partitions)}"
            return
        mine = np.flatnonzero((partitions == _by_appearance(self.claim.labels)).all(axis=1))
        if not mine.size:
            yield "the claimed groups are not on the list"
            return
        by_pairs = _has_together(partitions, settled)
        if by_pairs[mine[0]]:
            yield "a settled pair strikes off the claimed groups themselves"
        yield from self._struck_by_rounds(first)
        open_ones = (self.stated.struck_by == 0) & ~by_pairs
        open_ones[mine[0]] = False
        for i in np.flatnonzero(open_ones)[:3].tolist():
            yield f"partition {i} of the list, {short(partitions[i].tolist())}, is not struck off"

    def _incomplete(self) -> Iterator[str]:
        """Rounds that are not in the log, or not all of their results."""
        rounds = self.record.rounds
        if len(self.stated.rounds) > len(rounds):
            yield f"the certificate uses {len(self.stated.rounds)} rounds, the log has {len(rounds)}"
        for one in rounds[: len(self.stated.rounds)]:
            if not one.complete:
                yield f"round {one.number} is used, but not all of its results are in the log"

    def _settled_by(self, pairs: IntArray, at: int) -> IntArray:
        """(n, 2): those of these pairs that reach the level, with results that the log has among its first `at`.

        Others are left out: the value of a result may have been corrected since. Then the list is the longer for it.
        """
        heights = np.bincount(self.record.arms[:at], minlength=self.claim.n_arms)
        a, b, n_a, n_b = pairs.T
        there = np.flatnonzero((n_a <= heights[a]) & (n_b <= heights[b]))
        a, b, n_a, n_b = (column[there] for column in (a, b, n_a, n_b))
        level = self.claim.pair_level
        return pairs[there[paired(self.stacks, a, b, n_a, n_b) >= level - SLACK * level], :2]

    def _struck_by_rounds(self, first: IntArray) -> Iterator[str]:
        """The evidence of every partition that rounds are said to have struck off, up to the round that did."""
        partitions, until = self.stated.partitions, self.stated.struck_by
        possible = ~_has_together(partitions, first)
        evidence = np.zeros(len(partitions))
        for one in self.record.rounds[: int(until.max(initial=0))]:
            if not one.complete:
                return  # that was said
            for pair in self._settled_by(one.settled, one.at):
                less = possible & ~_has_together(partitions, pair[None])
                possible = less if less.any() else possible
            before = self._tally(np.arange(one.at))
            chance = chances(partitions, possible, *before)
            asked = np.flatnonzero(until >= one.number)
            rows = np.flatnonzero(self.record.round_of == one.number)
            evidence[asked] += round_factors(
                asked, partitions, chance, before, self._tally(rows), self.claim.n_clusters
            )
            for i in np.flatnonzero(until == one.number).tolist():
                level, stated = self.stated.level, float(self.stated.evidence[i])
                if not abs(stated - evidence[i]) <= TOLERANCE * max(1.0, abs(evidence[i])):
                    yield (
                        f"evidence against partition {i} of the list at round {one.number}: the certificate says "
                        f"{stated:.9g}, the log gives {evidence[i]:.9g}"
                    )
                elif not evidence[i] >= level - SLACK * level:
                    yield (
                        f"partition {i} of the list is not struck off at round {one.number}: its evidence is "
                        f"{evidence[i]:.6g} and must reach {level:.6g}"
                    )

    def _tally(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Counts and sums of the arms over these results."""
        arms = self.record.arms[rows]
        sums = np.zeros((self.claim.n_arms, self._values.shape[1]))
        np.add.at(sums, arms, self._values[rows])
        return np.bincount(arms, minlength=self.claim.n_arms).astype(np.float64), sums


def _has_together(partitions: IntArray, pairs: IntArray) -> np.ndarray:
    """(n): which partitions have a pair in one group."""
    return np.asarray((partitions[:, pairs[:, 0]] == partitions[:, pairs[:, 1]]).any(axis=1))


def _by_appearance(labels: IntArray) -> IntArray:
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels.tolist()])
