"""The state of one CROC run. M arms, K groups, d dimensions, E remembered epochs, P prefixes of each arm.

Names and docs/CROC.md's symbols: `pulls` is N_m, `sums` is the sum of an arm's results, `prefixes` the sums of its
first 1, 2, …, P results in the order in which they were asked for; `labels`, `totals`, `centers` are ĉ, W, Û.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.engine.state import Floats, Ints

Bits = NDArray[np.uint8]

# Integers of the run.
T = 0  # results so far
DONE = 1  # 0, BY_PAIRS or BY_EPOCH
QUEUE_HEAD, QUEUE_TAIL = 2, 3
ROUND_EPOCH = 4  # 1 + slot of the epoch whose round is under way, 0 outside rounds
ROUND = 5  # number of the last round composed, from 1
ROUND_LEFT = 6  # results of the round that are still to come
FREEZES = 7  # epochs so far
ESTIMATED = 8  # t of the last estimate of all arms, 0 before the first
CHANGED = 9  # t at which the partition last changed
LEFT_GROUP = 10  # 1 if a pulled arm came closer to another center
GREEDY = 11  # greedy pulls so far
MODE = 12  # what the queue is for
UNSEEN = 13  # arms never measured
CERTIFIED_EPOCH = 14  # slot of the epoch that certified
ALARM = 15  # 1 + an arm that differs from all representatives: K is too small
PLANNED = 16  # t of the last plan that looked at every arm; NEVER if the next one has to
HEAPED = 17  # 1 if the heaps of least-pulled arms fit labels and committed pulls
CANDIDATES = 18  # arms that the plans until the next full one look at
TOUCHED = 19  # arms with results since the last plan
STARTED = 20  # t of the last estimate that tried all starts
N_INTS = 21

NEVER = -(2**60)

BY_PAIRS, BY_EPOCH = 1, 2
FIRST_PASS, PAIRS, EXPLORE, ROUNDS, CERTIFIED = 0, 1, 2, 3, 4  # MODE

# Numbers of the run.
LOG_INVERSE_DELTA = 0
PAIR_LEVEL = 1  # log(H/(α·δ))
DOUBT = 2  # P_w
GREEDY_LIMIT = 3
MERGE_MARGIN = 4  # smallest margin of a merge and split over the estimate, and below which groups
CHANCE = 5  # largest chance that two groups are one
ARMS_DOUBT = 6  # the part of P_w that is about single arms
N_NUMBERS = 7
# Places behind those numbers.
SPLIT, MERGED_A, MERGED_B, CHANCE_A, CHANCE_B = 0, 1, 2, 3, 4

# The rule's constants.
ALPHA = 0.2  # share of δ for the pairs from the start
FIRST_SHARE = 0.8  # π_0; π_j = 0.8·0.2^j
EPOCHS = 3  # frozen candidates that are remembered
CORE = 3  # arms of a core; a group with at most CORE + 1 arms is its own core
CORE_ROOM = CORE + 1
FREEZE_DOUBT = 0.15  # freeze when P_w is below
STEADY = 0.02  # … and the partition has stood for this share of t
BLOCK_RATIOS = np.array([1, 2, 4, 8])
LOG_RATIO_WEIGHTS = np.log(np.array([0.4, 0.1, 0.1, 0.1]))  # the last three for each of two sides: 0.4 + 6·0.1 = 1
SCALES = 4.0 ** np.arange(3, -8, -1)  # ρ
LOG_SCALE_WEIGHTS = np.log(np.array([0.08, 0.19, 0.25, 0.25, 0.12] + [0.055 * 0.5**i for i in range(6)]))


def share_of_epoch(j: int) -> float:
    """π_j: the part of (1 − α)·δ that epoch j may use; they add up to 1."""
    return FIRST_SHARE * (1.0 - FIRST_SHARE) ** j


class Croc(NamedTuple):
    """Everything one run knows."""

    ints: Ints
    numbers: Floats
    places: Ints
    pulls: Ints  # (M)
    committed: Ints  # (M) pulls, and those asked for
    origin: Floats  # (d) the first result: all positions are relative to it, so that data far from zero lose no digits
    sums: Floats  # (M, d)
    prefixes: Floats  # (M, P+1, d)
    labels: Ints  # (M)
    totals: Floats  # (K)
    centers: Floats  # (K, d)
    representative: Ints  # (K)
    settled: Bits  # (M, K) 1: arm and representative of k are known to differ
    settled_pulls: Ints  # (M, K, 2) counts of arm and representative when that was found
    evidence: Floats  # (M, K) log-evidence from the start of arm against the representative of k, latched
    queue: Ints  # (M + K·⌈½·√M⌉, the largest round) arms to pull next
    near: Floats  # (M) smallest D_mk of the arm
    rival: Ints  # (M) the group k of it
    unsure: Floats  # (M) Σ_k e^−D_mk
    sizes: Ints  # (K) arms of the groups
    means: Floats  # (M, d) of each arm's results
    base: Floats  # (P+1, scales) log p(ρ) − (d/2)·log(1+ρn) of the pairs' mixture
    slope: Floats  # (P+1, scales) ½·ρn/(1+ρn)
    crest: Floats  # (P+1, CREST+1) that mixture at energies 0, CREST_STEP, 2·CREST_STEP, …
    # between two plans
    heap: Ints  # (M) arms by committed pulls, one heap a group, see `coterie.engine.croc.least`
    slot: Ints  # (M) where the arm is in `heap`
    first_slot: Ints  # (K+1)
    candidates: Ints  # (M)
    touched: Ints  # (M)
    is_touched: Bits  # (M)
    queued: Bits  # (M) 1 while a plan has the arm in its queue; 0 outside plans
    # epochs
    frozen_at: Ints  # (E) t
    frozen_number: Ints  # (E) j
    level: Floats  # (E) b_j
    frozen: Ints  # (E, M) candidate
    frozen_totals: Floats  # (E, K) W
    frozen_centers: Floats  # (E, K, d) Û
    core: Ints  # (E, K·CORE_ROOM) arms, -1 where there is none
    in_core: Bits  # (E, M)
    met_group: Bits  # (E, M, K) test of m against all of group k
    met_core: Bits  # (E, M, K) … against the core of k
    met_pair: Bits  # (E, K·CORE_ROOM, K·CORE_ROOM) … of two core arms
    weight_group: Floats  # (E, M, K) n of the test
    weight_core: Floats
    weight_pair: Floats
    sum_group: Floats  # (E, M, K, d) S of the test
    sum_core: Floats
    sum_pair: Floats
    # The round at which the test was met. Negative: by a pair from the start, and then minus the counts of that pair,
    # the arm's in last_core and the core's first arm's in last_group; for core arms (i, j) in [i, j] and [j, i].
    last_group: Ints  # (E, M, K)
    last_core: Ints
    last_pair: Ints
    # the round under way
    round_pulls: Ints  # (M) its composition
    round_sums: Floats  # (M, d)


class Work(NamedTuple):
    """Work space of the planning; nothing in it lasts from one plan to the next."""

    near: Floats  # (M)
    weights: Floats  # (M)
    gains: Floats  # (M)
    labels: Ints  # (M)
    winner: Ints  # (M)
    members: Ints  # (M)
    chosen: Ints  # (M)
    mark: Bits  # (M)
    inside: Bits  # (M)
    reduced: Floats  # (M, min(K−1, d))
    names: Ints  # (K)
    farthest: Ints  # (K)
    against_group: Ints  # (K)
    against_core: Ints  # (K)
    counts: Ints  # (K)
    gain: Floats  # (K)
    share: Floats  # (K)
    worth: Floats  # (K)
    group_pulls: Floats  # (K)
    core_pulls: Floats  # (K)
    totals: Floats  # (K)
    won_totals: Floats  # (K)
    square: Floats  # (K, K)
    lead_gain: Floats  # (K, DOUBLINGS)
    centers: Floats  # (K, d)
    won_centers: Floats  # (K, d)
    group_mean: Floats  # (K, d)
    core_mean: Floats  # (K, d)
    basis: Floats  # (2·rank+2, d)
    image: Floats  # (2·rank+2, d)
    mean: Floats  # (d)
    part: Floats  # (d)
    rest: Floats  # (d)
    contrast: Floats  # (d)
    shape: Floats  # (3)


DOUBLINGS = 6
"""Forecasts look at 1, 2, 4, …, 32 more pulls of a representative."""


def new_work(n_arms: int, n_clusters: int, dim: int) -> Work:
    """Work space for M arms, K groups, d dimensions: about 8·M·(K + 8) bytes."""
    m, k, d = n_arms, n_clusters, dim
    rank = min(k - 1, d)
    wide = min(m, 2 * rank + 2, d)

    def floats(*shape: int) -> Floats:
        return np.zeros(shape)

    def ints(n: int) -> Ints:
        return np.zeros(n, dtype=np.int64)

    return Work(
        floats(m), floats(m), floats(m), ints(m), ints(m), ints(m), ints(m),
        np.zeros(m, dtype=np.uint8), np.zeros(m, dtype=np.uint8), floats(m, rank),
        ints(k), ints(k), ints(k), ints(k), ints(k),
        floats(k), floats(k), floats(k), floats(k), floats(k), floats(k), floats(k), floats(k, k), floats(k, DOUBLINGS),
        floats(k, d), floats(k, d), floats(k, d), floats(k, d), floats(wide, d), floats(wide, d),
        floats(d), floats(d), floats(d), floats(d), floats(3),
    )  # fmt: skip


def prefix_room(n_arms: int, dim: int) -> int:
    """How many prefixes of each arm are kept: 64, fewer where that would take more than ¼ GiB, at least 8."""
    return int(min(64, max(8, 2**25 // (n_arms * dim))))


CREST, CREST_STEP = 128, 2.0


@lru_cache(maxsize=8)
def mixture_tables(room: int, dim: int) -> tuple[Floats, Floats, Floats]:
    """`base`, `slope` and `crest` of the state; the same for all runs, and never written to."""
    scaled = np.arange(room + 1)[:, None] * SCALES
    base, slope = LOG_SCALE_WEIGHTS - 0.5 * dim * np.log1p(scaled), 0.5 * scaled / (1.0 + scaled)
    values = base[:, None] + slope[:, None] * (CREST_STEP * np.arange(CREST + 1))[None, :, None]
    largest = values.max(axis=2)
    return base, slope, largest + np.log(np.exp(values - largest[:, :, None]).sum(axis=2))


def new_croc(n_arms: int, n_clusters: int, dim: int, log_inverse_delta: float) -> Croc:
    """A run that has measured nothing yet.

    Memory: 8·M·d·(P + 2) for the prefixes, and up to 16·E·M·K·d for the tests of the remembered epochs, which is only
    touched where a frozen test is under way.
    """
    m, k, d, e, p = n_arms, n_clusters, dim, EPOCHS, prefix_room(n_arms, dim)
    c = k * CORE_ROOM

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    def bits(*shape: int) -> Bits:
        return np.zeros(shape, dtype=np.uint8)

    equal_pairs = (m - k + 1) * (m - k) / 2  # H, the largest possible number of truly equal pairs
    state = Croc(
        ints(N_INTS), np.zeros(N_NUMBERS), ints(5),
        ints(m), ints(m), np.zeros(d), np.zeros((m, d)), np.zeros((m, p + 1, d)),
        ints(m), np.zeros(k), np.zeros((k, d)), np.full(k, -1), bits(m, k), ints(m, k, 2), np.full((m, k), -np.inf),
        ints(m + k * (math.isqrt(m) // 2 + 1)), np.zeros(m), ints(m), np.zeros(m), ints(k), np.zeros((m, d)),
        *mixture_tables(p, d),
        ints(m), ints(m), ints(k + 1), ints(m), ints(m), bits(m), bits(m),
        ints(e), ints(e), np.zeros(e), ints(e, m), np.zeros((e, k)), np.zeros((e, k, d)), np.full((e, c), -1),
        bits(e, m), bits(e, m, k), bits(e, m, k), bits(e, c, c),
        np.zeros((e, m, k)), np.zeros((e, m, k)), np.zeros((e, c, c)),
        np.zeros((e, m, k, d)), np.zeros((e, m, k, d)), np.zeros((e, c, c, d)),
        ints(e, m, k), ints(e, m, k), ints(e, c, c),
        ints(m), np.zeros((m, d)),
    )  # fmt: skip
    state.ints[UNSEEN] = m
    state.ints[PLANNED] = NEVER
    state.numbers[LOG_INVERSE_DELTA] = log_inverse_delta
    state.numbers[PAIR_LEVEL] = math.log(max(equal_pairs, 1.0)) - math.log(ALPHA) + log_inverse_delta
    return state
