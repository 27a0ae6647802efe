"""The evidence of frozen tests where the noise is not known, from the log: one way for every family.

Written a second time, in plain NumPy, so that no mistake is shared with whoever wrote the certificate. Formulas and
proofs: docs/EVIDENCE.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coterie.certificate import exchangeable, factors, shared_covariance
from coterie.certificate.bets import BetRecord, BetRound
from coterie.certificate.log import Frozen
from coterie.certificate.sides import Sides, sides_of
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Statement, Symmetric


def betted(
    record: BetRecord,
    freeze: Frozen,
    rounds: Sequence[BetRound],
    pools: str,
    arms: IntArray,
    others: IntArray,
    last: IntArray,
    half: NDArray[np.bool_],
) -> FloatArray:
    """log e of frozen tests, each after the round `last`: arms against whole groups, against cores, or arms.

    `pools` is "group", "core" or "arm" and says what `others` counts; `rounds` are those that may be used, all of them
    complete; `half` says which tests are at half of the level. An arm must not be tested against its own group.
    """
    stated = record.noise.statement
    if isinstance(stated, Gaussian):
        bet, share = record.freeze_bets[freeze.number], np.where(half, 0.5, 1.0)
        return shared_covariance.evidence(rounds, freeze, bet, stated.shape, pools, arms, others, last, share)
    total = np.zeros(arms.size)
    for one in rounds:
        sides = sides_of(one, freeze, pools, arms, others, np.flatnonzero(last >= one.number))
        if sides.tests.size > 0:
            total[sides.tests] += log_factors(stated, one, sides)
    return total


def log_factors(stated: Statement, one: BetRound, sides: Sides) -> FloatArray:
    """What a round adds to log e of its tests, of a family whose evidence is a product over rounds."""
    if isinstance(stated, Counts):
        return factors.counts(one, sides, stated)
    if isinstance(stated, Bounded):
        return factors.bounded(one, sides, stated)
    if isinstance(stated, AtMost):
        return factors.at_most(one, sides)
    if isinstance(stated, Symmetric):
        return factors.symmetric(one, sides)
    return exchangeable.log_factors(one, sides)
