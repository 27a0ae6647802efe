"""Freeze, then certify: a new epoch with its claims, and the composition of rounds (docs/CROC.md, sections 4 to 6).

A round's composition is fixed before any of its results is seen, and contrasts are formed only within a round: that is
what makes every frozen test a martingale.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled, inlined
from coterie.engine.croc.claims import freeze_claims
from coterie.engine.croc.epochs import open_epoch
from coterie.engine.croc.factors import fix_bet
from coterie.engine.croc.family import BET
from coterie.engine.croc.flight import start_round
from coterie.engine.croc.state import CORE_ROOM, OPEN_ROUNDS, ROUND, SCALE_UP, Croc, Work

TOP_UP = 0.5
"""A round pulls a pool about this many times the square root of the tests against it."""


@compiled
def freeze(s: Croc) -> int:
    """A new epoch for the present labels, with its claims. OUT: one slot of the epochs. Returns it."""
    e = open_epoch(s)
    freeze_claims(s, e)
    return e


@inlined
def compose_round(s: Croc, e: int, w: Work, floor: float) -> bool:
    """Every arm of an unmet test once, and those with fewer than `floor` pulls; pools topped up by their core.

    What the unmet tests need is in w.mark and w.against. With many rounds under way, several times that: there are many
    workers. Pulls under way count as made. OUT: the round, fixed from then on, and the family's bet. False if too many
    rounds are under way.
    """
    pulls = w.composition
    for m in range(s.labels.size):
        pulls[m] = 1 if w.mark[m] == 1 or s.committed[m] < floor else 0
    for k in range(s.totals.size):
        in_group, in_core = 0, 0
        for m in range(s.labels.size):
            if s.frozen[e, m] == k and pulls[m] == 1:
                in_group += 1
                in_core += s.in_core[e, m]
        want_core = math.ceil(TOP_UP * math.sqrt(w.against[k]))
        want_group = math.ceil(TOP_UP * math.sqrt(w.against[s.totals.size + k]))
        while in_core < want_core or in_group < want_group:
            least = -1
            for i in range(CORE_ROOM):
                q = s.core[e, k * CORE_ROOM + i]
                if q >= 0 and (least < 0 or s.committed[q] + pulls[q] < s.committed[least] + pulls[least]):
                    least = q
            pulls[least] += 1
            in_group += 1
            in_core += 1
    for m in range(s.labels.size):
        pulls[m] *= 2 ** (s.ints[OPEN_ROUNDS] // SCALE_UP)
    if not start_round(s, pulls, s.frozen_number[e]):
        return False
    if w.kernels[BET] != 0:
        fix_bet(s, w, s.ints[ROUND], e)
    return True
