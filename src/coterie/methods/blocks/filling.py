"""Which arms the next cell has: for the tests that are not met, or to find out where arms belong. No proof needs it."""

from __future__ import annotations

import math

import numpy as np

from coterie.methods.blocks.epoch import PAIR, Epoch
from coterie.methods.blocks.estimate import Estimate
from coterie.problem.checks import FloatArray, IntArray

LINKS = 6
"""In first cells that cannot hold all arms, one place in so many is for arms that were measured before."""
SURE = 5.0
"""A margin from which on an arm needs no exploring."""
WINDOW = 2.0
"""Beside the least sure arm, arms whose margin is so much larger at most are explored."""
RIVAL = 3
"""The group that an explored arm may belong to has so many times the asks of the arm."""
LEAST_CELL = 6
"""Where the noise is not known, a cell for tests has at least so many results if the room allows it."""

LEAST_LACK, MOST_LACK = 0.05, 3.0
"""A test is taken to lack no fewer nats, and no more times its level."""
CHANCE = 0.1
"""Arms that are worth nearly the same are chosen by chance: a fixed order starves pairs that never meet."""
LEAST_SHAPE_CELL = 48
"""A cell for tests of spread and shape has more than half as many, if the room allows it: results are seen from the
mean of their cell, and that of a small cell hides their shape."""


def first_cell(asked: IntArray, room: int, rng: np.random.Generator) -> IntArray:
    """(M) every arm once; if they do not fit, some, with arms of before that link the blocks."""
    cell = np.zeros(asked.size, dtype=np.int64)
    new, old = np.flatnonzero(asked == 0), np.flatnonzero(asked > 0)
    links = min(old.size, max(1, room // LINKS), room - 1) if old.size else 0
    cell[new[: room - links]] = 1
    if links:
        order = np.lexsort((rng.random(old.size), asked[old]))
        cell[old[order[:links]]] = 1
    return cell


def for_tests(epoch: Epoch, unmet: IntArray, asked: IntArray, least: int) -> IntArray:
    """(M) every arm of an unmet test once, and of the cores as many as their tests are worth."""
    tests, n_groups = epoch.tests, len(epoch.cores)
    cell = np.zeros(asked.size, dtype=np.int64)
    cell[tests.arm[unmet]] = 1
    pairs = unmet[tests.kind[unmet] == PAIR]
    cell[tests.other[pairs]] = 1
    against = np.bincount(tests.against[unmet], minlength=n_groups)
    for k in np.flatnonzero(against).tolist():
        core = np.array(epoch.cores[k])
        wanted = min(math.ceil(0.5 * math.sqrt(against[k])), 2 * core.size)
        while cell[core].sum() < wanted:
            cell[core[np.argmin(asked[core] + 1000 * cell[core])]] += 1
    while 0 < cell.sum() < least:
        cell *= 2
    return cell


def to_explore(estimate: Estimate, asked: IntArray, anchored: bool) -> IntArray:
    """(M) arms whose place is doubtful, arms of groups that are in question, or arms of parts to join.

    Each comes with arms of its own and of the rival group, unless the block is `anchored`: it has results already.
    """
    cell = np.zeros(asked.size, dtype=np.int64)
    if estimate.parts is not None:
        for part in np.unique(estimate.parts).tolist():
            members = np.flatnonzero(estimate.parts == part)
            cell[members[np.argsort(asked[members], kind="stable")[:2]]] = 1
        return cell
    labels, margins = estimate.labels, estimate.margins
    least = margins.min(axis=1)
    ahead = np.where(least > 0.0, least * asked / np.maximum(estimate.counts, 1), least)  # with what is under way
    of_group = np.bincount(labels, asked)
    doubtful = np.flatnonzero(ahead <= min(SURE, float(ahead.min()) + WINDOW))
    for m in doubtful.tolist():
        cell[m] = 1
        rival = int(np.argmin(margins[m]))
        for k in (rival, int(labels[m])):
            mates = np.flatnonzero(labels == k)
            mates = mates[mates != m]
            needed = not cell[mates].any() if not anchored else k == rival and of_group[k] < RIVAL * asked[m]
            if mates.size and needed:
                cell[mates[np.argmin(asked[mates])]] = 1
    floor = max(0.5 * math.sqrt(asked.sum() / asked.size), asked.sum() / (10.0 * asked.size))
    cell[(asked < floor) & (cell == 0)] = 1
    for k in estimate.doubted:
        members = np.flatnonzero(labels == k)
        cell[members[np.argmin(asked[members])]] = 1
    if not cell.any():
        cell[np.argmin(asked)] = 1
    if cell.sum() < 2 and not anchored:
        cell[np.argsort(asked, kind="stable")[:2]] = 1
    return cell


def fitted(wanted: IntArray, room: int, labels: IntArray, urgency: FloatArray, rng: np.random.Generator) -> IntArray:
    """What of a cell that explores goes into the room, which is too small: groups in turn, urgent arms first.

    `urgency` (M) is only a tendency: a fixed order starves pairs that never meet.
    """
    cell, rest = np.zeros_like(wanted), wanted.copy()
    n_groups = int(labels.max()) + 1
    turn = urgency * (0.5 + rng.random(urgency.size))
    in_group = np.zeros(n_groups)
    while cell.sum() < room and rest.sum() > 0:
        left = np.bincount(labels, rest, n_groups)
        k = int(np.argmin(np.where(left > 0, in_group + 0.5 * rng.random(n_groups), np.inf)))
        members = np.flatnonzero((labels == k) & (rest > 0))
        m = int(members[np.argmax(turn[members])])
        cell[m] += 1
        rest[m] -= 1
        turn[m] -= 10.0
        in_group[k] += 1
    return cell


def worthiest(
    wanted: IntArray, room: int, epoch: Epoch, unmet: IntArray, rates: FloatArray, rng: np.random.Generator
) -> IntArray:
    """What of a cell for tests goes into the room, which is too small: each time the arm that adds most to its worth.

    To a test it is worth the share 1 − exp(−w·rate/lack) of the results that are still needed, lack/rate, where
    w = aA/(a + A). `rates` (K, K): nats of evidence that two groups give for w = 1.
    """
    tests = epoch.tests
    arm, pool = tests.arm[unmet], tests.pool[unmet]
    rate = rates[tests.group[unmet], tests.against[unmet]]
    lack = np.clip((epoch.levels - epoch.evidence)[unmet], LEAST_LACK, MOST_LACK * epoch.levels[unmet])

    def worth(a: FloatArray, others: FloatArray) -> FloatArray:
        return np.asarray(-lack / rate * np.expm1(-rate * a * others / (np.maximum(a + others, 1.0) * lack)))

    cell, a, others = np.zeros_like(wanted), np.zeros(unmet.size), np.zeros(unmet.size)
    chance = 1.0 + CHANCE * rng.random(wanted.size)
    sides = np.bincount(arm, minlength=wanted.size) + pool.sum(axis=0)
    first = int(np.argmax(np.where(wanted > 0, sides * chance, -1.0)))  # alone it is worth nothing
    while cell.sum() < room:
        now = worth(a, others)
        more = np.bincount(arm, worth(a + 1.0, others) - now, wanted.size) + (worth(a, others + 1.0) - now) @ pool
        m = int(np.argmax(np.where(wanted > cell, more * chance, -1.0))) if cell.any() else first
        cell[m] += 1
        a += arm == m
        others += pool[:, m]
    return cell


def in_order(cell: IntArray, rng: np.random.Generator, first: bool) -> list[int]:
    """The asks of a cell in a shuffled order: what drifts within a block meets no arm first every time.

    The first cell of a run begins with arm 0, if it has it: `cluster` measures it to see how many numbers a result has.
    """
    arms = [int(arm) for arm in rng.permutation(np.repeat(np.arange(cell.size), cell))]
    if first and 0 in arms:
        arms.remove(0)
        arms.insert(0, 0)
    return arms


def urgency_of(estimate: Estimate) -> FloatArray:
    """(M) how much an arm lacks of its margin."""
    least = np.where(np.isfinite(estimate.margins), estimate.margins, SURE).min(axis=1)
    return np.asarray(np.clip(1.0 - least / (2.0 * SURE), 0.05, 1.0))
