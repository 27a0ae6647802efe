"""The state of one CROC run. M arms, K groups, d dimensions, E remembered epochs, P prefixes of each arm.

Names and docs/CROC.md's symbols: `pulls` is N_m, `sums` is the sum of an arm's results, `prefixes` the sums of its
first 1, 2, …, P results in the order in which they were asked for, and on a grid of larger counts; `labels`,
`totals`, `centers` are ĉ, W, Û. An *entry* is an arm of a round under way.

Positions are relative to `origin`, the first result. An arm whose first result is far from it counts from an origin of
its own, `offset` away: sums of its results then lose no digits, and contrasts of near arms are differences of near
numbers (docs/CROC.md, section 13).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.engine.croc.family import SCALAR, Family
from coterie.engine.state import Floats, Ints

Bits = NDArray[np.uint8]

# Integers of the run.
T = 0  # results so far
DONE = 1  # 0, BY_PAIRS or BY_EPOCH
QUEUE_HEAD, QUEUE_TAIL = 2, 3
OPEN_ROUNDS = 4  # rounds composed and not closed
ROUND = 5  # number of the last round composed, from 1
TO_ASK = 6  # pulls of rounds that are still to be asked for
FREEZES = 7  # epochs so far
ESTIMATED = 8  # t of the last estimate of all arms, 0 before the first
CHANGED = 9  # t at which the partition last changed
LEFT_GROUP = 10  # 1 if a pulled arm came closer to another center
PRICED = 11  # 1 if arms differ in what a pull costs
MODE = 12  # what the queue is for
UNSEEN = 13  # arms never measured
CERTIFIED_EPOCH = 14  # slot of the epoch that certified
ALARM = 15  # 1 once K + 1 arms were known to differ pairwise: K is too small
PLANNED = 16  # t of the last plan that looked at every arm; NEVER if the next one has to
HEAPED = 17  # 1 if the heaps of least-pulled arms fit labels and committed pulls
CANDIDATES = 18  # arms that the plans until the next full one look at
TOUCHED = 19  # arms with results since the last plan
STARTED = 20  # t of the last estimate that tried all starts
OLDEST = 21  # number of the oldest round whose entries are kept
ENTRY_TAIL = 22  # behind the last entry of the last round
ASKED_IN = 23  # the round for which the last arm was handed out, 0 for none
CLOSED = 24  # 1 if a round was closed since the last plan
FAR = 25  # 1 if an arm counts from an origin of its own
SPLIT, MERGED_A, MERGED_B = 26, 27, 28  # groups of the merge and split with the smallest margin
CHANCE_A, CHANCE_B = 29, 30  # groups with the largest chance to be one
METRIC = 31  # 1 if the metric is estimated
METRIC_SHAPE = 32  # FULL, DIAGONAL or SCALAR
WINSORISED = 33  # 1 if far results are pulled in
SHUFFLED = 34  # 1 if the asks of a round come in a random order
ARM_SCALES = 35  # 1 if the first score of an arm is about the variance of its results
DEGREES = 36  # results that were not the first of their arm: degrees of freedom of the metric
MEASURED_AT = 37  # DEGREES when the metric was last estimated
FROM_ZERO = 38  # 1 if positions count from zero
LOOKED = 39  # t of the last look at whether an epoch is stale
POOLS_BY_GROWTH = 40  # 1 if the pools of a round are as large as they pay
VARIANCE_BOUND = 41  # 1 if the pairs from the start are in units of an upper bound on the variance
OPEN_PULLS = 42  # pulls under way
ALONE = 43  # 1 + the arm of a pull that was asked for while no other was under way, and is still to come; 0: none
RESIDUALS = 44  # results that the bound is from
BOUND_RESIDUALS = 45  # RESIDUALS when the bound was last computed
BOUNDED_AT = 46  # t at that time, 0 while there is no bound
N_INTS = 47

NEVER = -(2**60)

BY_PAIRS, BY_EPOCH = 1, 2
FIRST_PASS, PAIRS, EXPLORE, ROUNDS, CERTIFIED = 0, 1, 2, 3, 4  # MODE

# Numbers of the run.
LOG_INVERSE_DELTA = 0
PAIR_LEVEL = 1  # log(H/(α·δ)); infinite if α = 0: no pairs from the start
MISGROUPING_RISK = 2  # P_w
GREEDY_LIMIT = 3
MERGE_MARGIN = 4  # smallest margin of a merge and split over the estimate
CHANCE = 5  # largest chance that two groups are one
ARMS_RISK = 6  # the part of P_w that is about single arms
LOG_FROZEN_SHARE = 7  # log(1 − α − w): of the share of δ for frozen tests
FAR_SHARE = 8  # share of results that were pulled in, or would have been
BOUND_LEVEL = 9  # log(1/(w·δ)), or log(d/(w·δ)) if each coordinate has a bound of its own
BOUND_TRUST = 10  # about the share of a pair's energy that is left in units of the bound; 1 if the noise is known
GREEDY_SPENT = 11  # cost of the greedy pulls so far
N_NUMBERS = 12

# The rule's constants.
ALPHA = 0.2  # share of δ for the pairs from the start
VARIANCE_SHARE = 0.1  # w: … and for an upper bound on the variance, where pairs need one
FIRST_SHARE = 0.8  # π_0; π_j = 0.8·0.2^j
EPOCHS = 3  # frozen candidates that are remembered
CORE = 3  # arms of a core; a group with at most CORE + 1 arms is its own core
CORE_ROOM = CORE + 1
CORE_PRICE = 2.0  # times the price of its group's cheapest arm: dearer arms are not in a core
FREEZE_RISK = 0.15  # freeze when P_w is below
STEADY = 0.02  # … and the partition has stood for this share of t
FLIGHT = 64  # rounds that may be under way at once
SCALE_UP = 8  # after so many of them, a round has twice as many pulls of each arm
ROUND_PLACES = 4096  # arms of rounds under way that there is room for, if FLIGHT rounds of all arms need more
NEAR = 1024.0  # standard deviations from the first result within which an arm counts from it
BLOCK_RATIOS = np.array([1, 2, 4, 8])
GRID_STEP = int(np.lcm.reduce(BLOCK_RATIOS))  # counts beyond P are P·2^j + i·GRID_STEP·2^j: all ratios divide them
OCTAVES = 24  # doublings of P that the grid covers
PREFIX_ROOM = 64  # P, the prefixes of an arm that are all kept …
PREFIX_NUMBERS = 2**25  # … halved as long as they are more than so many numbers: ¼ GiB
SUBSPACE_EXTRA = 2  # rows of the subspace iteration beyond twice the components that it is to find
LOG_RATIO_WEIGHTS = np.log(np.array([0.4, 0.1, 0.1, 0.1]))  # the last three for each of two sides: 0.4 + 6·0.1 = 1
SCALES = 4.0 ** np.arange(3, -8, -1)  # ρ
LOG_SCALE_WEIGHTS = np.log(np.array([0.08, 0.19, 0.25, 0.25, 0.12] + [0.055 * 0.5**i for i in range(6)]))

# An estimated metric, `coterie.engine.croc.metric`.
FIRST_RESULTS = 9  # results of an arm that are kept, for its median
INNOVATIONS = 128  # first innovations that are kept, for the scale at which results are pulled in

KNOWN_COVARIANCE = Family("known covariance", pair_share=ALPHA)
"""Results are whitened before they come in; the kernels are compiled into the planner."""


def share_of_epoch(j: int) -> float:
    """π_j: the part of (1 − α)·δ that epoch j may use; they add up to 1."""
    return FIRST_SHARE * (1.0 - FIRST_SHARE) ** j


class Croc(NamedTuple):
    """Everything one run knows."""

    ints: Ints
    numbers: Floats
    pulls: Ints  # (M)
    committed: Ints  # (M) pulls, and those asked for
    origin: Floats  # (d) the first result
    origin_rest: Floats  # (d) what a float does not hold of it
    offset: Floats  # (M, d) of the arm's own origin; 0 for most
    offset_rest: Floats  # (M, d)
    sums: Floats  # (M, d) from the arm's origin
    prefixes: Floats  # (P+1, M, d) sums of the first n results, from the arm's origin
    grid: Floats  # (GRID, M, d) … at counts n from P on: `coterie.engine.croc.evidence.grid_place`
    labels: Ints  # (M)
    totals: Floats  # (K)
    centers: Floats  # (K, d)
    representative: Ints  # (K)
    log_factorial: Floats  # (M+1)
    alarmed: Ints  # (K+1) the arms of the alarm
    settled: Bits  # (M, K) 1: arm and representative of k are known to differ
    settled_pulls: Ints  # (M, K, 2) counts of arm and representative when that was found
    evidence: Floats  # (M, K) log-evidence from the start of arm against the representative of k, latched
    queue: Ints  # (M) arms to pull next, outside rounds
    margin: Floats  # (M) smallest D_mk of the arm
    rival: Ints  # (M) the group k of it
    arm_risk: Floats  # (M) Σ_k e^−D_mk
    sizes: Ints  # (K) arms of the groups
    means: Floats  # (M, d) of each arm's results, from the common origin
    base: Floats  # (P+1+GRID, scales) log p(ρ) − (d/2)·log(1+ρn) of the pairs' mixture; n = 0, 1, …, P, then the grid
    slope: Floats  # (P+1+GRID, scales) ½·ρn/(1+ρn)
    crest: Floats  # (P+1+GRID, CREST+1) that mixture at energies 0, CREST_STEP, 2·CREST_STEP, …
    # between two plans
    heap: Ints  # (M) arms by committed pulls, one heap a group, see `coterie.engine.croc.least_pulled`
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
    frozen_centers: Floats  # (E, K, d) Û, from the origin of the group's first core arm
    core: Ints  # (E, K·CORE_ROOM) arms, -1 where there is none
    in_core: Bits  # (E, M)
    met_group: Bits  # (E, M, K) test of m against all of group k
    met_core: Bits  # (E, M, K) … against the core of k
    met_pair: Bits  # (E, K·CORE_ROOM, K·CORE_ROOM) … of two core arms
    weight_group: Floats  # (E, M, K) n of the test
    weight_core: Floats
    weight_pair: Floats
    sum_group: Floats  # (E, M, K, kept) what the test keeps: S, or what the family of evidence says, then log E
    sum_core: Floats
    sum_pair: Floats
    # The round at which the test was met. Negative: by a pair from the start, and then minus the counts of that pair,
    # the arm's in last_core and the core's first arm's in last_group; for core arms (i, j) in [i, j] and [j, i].
    last_group: Ints  # (E, M, K)
    last_core: Ints
    last_pair: Ints
    # the rounds under way, round r in place r mod FLIGHT (`coterie.engine.croc.flight`)
    round_epoch: Ints  # (FLIGHT) number of the epoch
    round_first: Ints  # (FLIGHT) its first entry
    round_size: Ints  # (FLIGHT) its entries
    round_left: Ints  # (FLIGHT) results that are still to come; -1: closed
    round_unasked: Ints  # (FLIGHT) pulls that are still to be asked for
    round_cursor: Ints  # (FLIGHT) entries before this one are asked for
    entry_arm: Ints  # (entries) ascending within a round
    entry_pulls: Ints  # (entries) the round's pulls of the arm
    entry_asked: Ints  # (entries) of these, asked for
    entry_sums: Floats  # (entries, d) of the results so far, from the arm's origin
    entry_scores: Floats  # (entries, scores) of the results so far, by the family of evidence
    round_bet: Floats  # (FLIGHT, bet) of the family of evidence, fixed when the round was composed
    round_scores: Floats  # (FLIGHT, round scores) of all results so far, by the family of evidence
    round_pulls: Ints  # (FLIGHT) pulls of the round
    round_drawn: Ints  # (FLIGHT) pulls that were drawn, if the asks are shuffled
    entry_before: Ints  # (entries) pulls of the round's entries before this one
    shared: Floats  # (E, shared) of the family of evidence, by epoch
    learned: Floats  # (learned) of the family of evidence
    # an estimated metric; empty if the noise is known
    metric: Floats  # (d, d) T, lower triangular: T'·T = Σ̂⁻¹
    scatter: Floats  # (d, d) sum of products of the innovations, pulled in
    scale: Floats  # (d) standard deviations at which results are pulled in; infinite: never
    innovations: Floats  # (INNOVATIONS, d) the first ones
    location: Floats  # (M, d) of the arm's results, pulled in; from the common origin
    first: Floats  # (M, FIRST_RESULTS, d) the first results of each arm
    squares: Floats  # (M, 2) sum of squared innovations of the arm, in units of the metric, divided by d; their number
    # an upper bound on the variance, for the pairs from the start (`coterie.engine.croc.variance_bound`); else empty
    residual_squares: Floats  # (d) sum of squared residuals
    reach: Floats  # (d) largest distance of a result from the origin
    root: Floats  # (1) R/(2σ₊²), the same for every coordinate
    precision: Floats  # (d) 1/σ₊², by which the energy of pairs is multiplied; 0 while σ₊ is infinite
    precision_seen: Floats  # (d) … when all pairs were last evaluated with it
    settled_bound: Ints  # (M, K) t of the σ₊ in `evidence` and `settled`
    last_bound: Ints  # (E, M, K) t of the σ₊ by which a test was met, if it was by a pair from the start
    last_bound_pair: Ints  # (E, K·CORE_ROOM, K·CORE_ROOM)
    # what a pull costs; nothing else of the run depends on it
    price: Floats  # (M) in units of the cheapest arm
    reserve: Floats  # (M) log price, by which the margin of an arm counts as larger


class Work(NamedTuple):
    """The kernels of the family of evidence, and work space, of which nothing lasts from one plan to the next.

    Addresses are true in this process only: `Work` must never be saved or sent; it is made anew.
    """

    kernels: Ints  # addresses, see `coterie.engine.croc.family`
    parameters: Floats  # of the family
    near: Floats  # (M)
    weights: Floats  # (M)
    gains: Floats  # (M)
    labels: Ints  # (M)
    winner: Ints  # (M)
    members: Ints  # (M)
    chosen: Ints  # (M)
    composition: Ints  # (M)
    core_entry: Ints  # (K·CORE_ROOM)
    mark: Bits  # (M)
    inside: Bits  # (M)
    reduced: Floats  # (M, min(K−1, d))
    names: Ints  # (K)
    farthest: Ints  # (K)
    against: Floats  # (2·K) unmet tests against every core, then against every group, by the price of their arms
    cheapest: Floats  # (K) the least price in every core
    counts: Ints  # (K)
    gain: Floats  # (K)
    share: Floats  # (K)
    worth: Floats  # (K)
    pool_pulls: Floats  # (2·K) of a round, in every core, then in every group
    totals: Floats  # (K)
    won_totals: Floats  # (K)
    square: Floats  # (K, K)
    lead_gain: Floats  # (K, DOUBLINGS)
    centers: Floats  # (K, d)
    won_centers: Floats  # (K, d)
    pool_means: Floats  # (2·K, d)
    pool_scores: Floats  # (2·K, scores)
    basis: Floats  # (2·rank + SUBSPACE_EXTRA, d)
    image: Floats  # (2·rank + SUBSPACE_EXTRA, d)
    mean: Floats  # (d)
    part: Floats  # (d)
    rest: Floats  # (d)
    contrast: Floats  # (d)
    guess: Floats  # (d) θ0 of a test
    raw: Floats  # (K, d) centers in the units of the results
    sorted: Floats  # (INNOVATIONS)
    correlation: Floats  # (d, d)
    inverse: Floats  # (d, d)


DOUBLINGS = 6
"""Forecasts look at 1, 2, 4, …, 2^(DOUBLINGS − 1) more pulls of a representative."""


def new_work(n_arms: int, n_clusters: int, dim: int, family: Family, kernels: Ints) -> Work:
    """The family's kernels, and work space for M arms, K groups, d dimensions: about 8·M·(K + 8) bytes."""
    m, k, d = n_arms, n_clusters, dim
    rank = min(k - 1, d)
    wide = min(m, 2 * rank + SUBSPACE_EXTRA, d)
    measured = d if family.estimated else 0

    def floats(*shape: int) -> Floats:
        return np.zeros(shape)

    def ints(n: int) -> Ints:
        return np.zeros(n, dtype=np.int64)

    return Work(
        kernels, family.parameter_array(),
        floats(m), floats(m), floats(m), ints(m), ints(m), ints(m), ints(m), ints(m), ints(k * CORE_ROOM),
        np.zeros(m, dtype=np.uint8), np.zeros(m, dtype=np.uint8), floats(m, rank),
        ints(k), ints(k), floats(2 * k), floats(k), ints(k),
        floats(k), floats(k), floats(k), floats(2 * k), floats(k), floats(k), floats(k, k), floats(k, DOUBLINGS),
        floats(k, d), floats(k, d), floats(2 * k, d), floats(2 * k, family.scores), floats(wide, d), floats(wide, d),
        floats(d), floats(d), floats(d), floats(d), floats(d),
        floats(k, d), floats(INNOVATIONS), floats(measured, measured), floats(measured, measured),
    )  # fmt: skip


def prefix_room(n_arms: int, dim: int) -> int:
    """P, up to which all prefixes of an arm are kept: 64, 32, 16 or 8, the largest that takes at most ¼ GiB."""
    room = PREFIX_ROOM
    while room > GRID_STEP and room * n_arms * dim > PREFIX_NUMBERS:
        room //= 2
    return room


def grid_counts(room: int) -> Ints:
    """The counts from P on at which prefixes are kept: P·2^j + i·8·2^j, P/8 of them in each octave."""
    steps = np.arange(room // GRID_STEP)
    return np.concatenate([(room + GRID_STEP * steps) * 2**j for j in range(OCTAVES)])


def entry_room(n_arms: int) -> int:
    """Entries of rounds under way that there is room for; a round has at most M."""
    return max(2 * n_arms, min(FLIGHT * n_arms, ROUND_PLACES))


CREST, CREST_STEP = 128, 2.0


@lru_cache(maxsize=8)
def log_factorials(n_arms: int) -> Floats:
    """log n! for n = 0, 1, …, M; the same for all runs, and never written to."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, n_arms + 1.0)))])


@lru_cache(maxsize=8)
def mixture_tables(room: int, dim: int) -> tuple[Floats, Floats, Floats]:
    """`base`, `slope` and `crest` of the state; the same for all runs, and never written to."""
    if room == 0:
        return np.zeros((0, SCALES.size)), np.zeros((0, SCALES.size)), np.zeros((0, CREST + 1))
    scaled = np.concatenate([np.arange(room + 1), grid_counts(room)])[:, None] * SCALES
    base, slope = LOG_SCALE_WEIGHTS - 0.5 * dim * np.log1p(scaled), 0.5 * scaled / (1.0 + scaled)
    values = base[:, None] + slope[:, None] * (CREST_STEP * np.arange(CREST + 1))[None, :, None]
    largest = values.max(axis=2)
    return base, slope, largest + np.log(np.exp(values - largest[:, :, None]).sum(axis=2))


def new_croc(
    n_arms: int,
    n_clusters: int,
    dim: int,
    log_inverse_delta: float,
    family: Family = KNOWN_COVARIANCE,
    price: Floats | None = None,
) -> Croc:
    """A run that has measured nothing yet.

    Memory: 8·M·d·(P + 4) for the prefixes, and up to 16·E·M·K·d for the tests of the remembered epochs, which is only
    touched where a frozen test is under way. The grid is only touched by arms with more than P results, `offset` only
    by far ones. `price` (M): what a pull of each arm costs, in units of the cheapest; ones if left out.
    """
    m, k, d, e = n_arms, n_clusters, dim, EPOCHS
    p = prefix_room(n_arms, dim) if family.pair_share > 0.0 else 0  # without pairs, no prefixes
    c = k * CORE_ROOM
    measured, located = (d, m) if family.estimated else (0, 0)
    kept_first = FIRST_RESULTS if family.winsorised else 0
    bounded, bounded_arms, bounded_epochs = (d, m, e) if family.variance_share > 0.0 else (0, 0, 0)
    kept = d if family.factor is None else (d if family.kept is None else family.kept) + 1  # and the last log E
    entries = entry_room(m)
    price = np.ones(m) if price is None else price

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    def bits(*shape: int) -> Bits:
        return np.zeros(shape, dtype=np.uint8)

    equal_pairs = (m - k + 1) * (m - k) / 2  # H, the largest possible number of truly equal pairs
    state = Croc(
        ints(N_INTS), np.zeros(N_NUMBERS),
        ints(m), ints(m), np.zeros(d), np.zeros(d), np.zeros((m, d)), np.zeros((m, d)), np.zeros((m, d)),
        np.zeros((p + 1, m, d)), np.zeros((OCTAVES * p // GRID_STEP, m, d)),
        ints(m), np.zeros(k), np.zeros((k, d)), np.full(k, -1), log_factorials(m), ints(k + 1), bits(m, k),
        ints(m, k, 2), np.full((m, k), -np.inf), ints(m), np.zeros(m), ints(m), np.zeros(m), ints(k), np.zeros((m, d)),
        *mixture_tables(p, d),
        ints(m), ints(m), ints(k + 1), ints(m), ints(m), bits(m), bits(m),
        ints(e), ints(e), np.zeros(e), ints(e, m), np.zeros((e, k)), np.zeros((e, k, d)), np.full((e, c), -1),
        bits(e, m), bits(e, m, k), bits(e, m, k), bits(e, c, c),
        np.zeros((e, m, k)), np.zeros((e, m, k)), np.zeros((e, c, c)),
        np.zeros((e, m, k, kept)), np.zeros((e, m, k, kept)), np.zeros((e, c, c, kept)),
        ints(e, m, k), ints(e, m, k), ints(e, c, c),
        ints(FLIGHT), ints(FLIGHT), ints(FLIGHT), ints(FLIGHT), ints(FLIGHT), ints(FLIGHT),
        ints(entries), ints(entries), ints(entries), np.zeros((entries, d)), np.zeros((entries, family.scores)),
        np.zeros((FLIGHT, family.bet_size)),
        np.zeros((FLIGHT, family.round_scores)), ints(FLIGHT), ints(FLIGHT), ints(entries),
        np.zeros((e, family.shared)), np.zeros(family.learned),
        np.eye(measured), np.zeros((measured, measured)), np.full(measured, np.inf),
        np.zeros((INNOVATIONS if family.winsorised else 0, d)), np.zeros((located, d)),
        np.zeros((located, kept_first, d)), np.zeros((located, 2)),
        np.zeros(bounded), np.zeros(bounded), np.zeros(min(bounded, 1)), np.zeros(bounded), np.zeros(bounded),
        ints(bounded_arms, k), ints(bounded_epochs, m, k), ints(bounded_epochs, c, c),
        price.copy(), np.log(price),
    )  # fmt: skip
    for place, flag in (
        (METRIC, family.estimated), (METRIC_SHAPE, family.metric_shape), (WINSORISED, family.winsorised),
        (SHUFFLED, family.shuffled), (ARM_SCALES, family.arm_scales),
        (FROM_ZERO, family.from_zero), (POOLS_BY_GROWTH, family.pools_by_growth),
        (VARIANCE_BOUND, family.variance_share > 0.0), (PRICED, bool((price != 1.0).any())),
    ):  # fmt: skip
        state.ints[place] = flag
    state.ints[UNSEEN] = m
    state.ints[OLDEST] = 1
    state.ints[PLANNED] = NEVER
    state.numbers[LOG_INVERSE_DELTA] = log_inverse_delta
    state.numbers[PAIR_LEVEL] = math.inf
    if family.pair_share > 0.0:
        state.numbers[PAIR_LEVEL] = math.log(max(equal_pairs, 1.0)) - math.log(family.pair_share) + log_inverse_delta
    state.numbers[LOG_FROZEN_SHARE] = math.log(1.0 - family.pair_share - family.variance_share)
    state.numbers[BOUND_TRUST] = 1.0
    if family.variance_share > 0.0:
        bounds = 1 if family.metric_shape == SCALAR else d
        state.numbers[BOUND_LEVEL] = log_inverse_delta - math.log(family.variance_share) + math.log(bounds)
    return state
