"""The state of one run of the paper's methods: a struct of arrays that the step functions change in place.

Names and the paper's symbols: `pulls` is N_m(t), `sums`/`pulls` is the empirical means, `labels` and `centers` are the
current guess (c^t, U^t), `totals` is the number of pulls a cluster got, `scatter` adds up to Z1, `shares` is λ*
(one number a cluster, since λ* is constant within a cluster, theorem_opt4). All positions are relative to
`origin`, the first measurement, so that data far from zero lose no digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
SmallInts: TypeAlias = NDArray[np.int32]

# Sampling rules, as `counters[METHOD]` (rules/methods.py has their names).
BOC, LINEAR, UNIFORM, ORACLE = 0, 1, 2, 3

# Entries of a script: a result nobody asked for, one that was asked for, an ask, a pull given up.
UNASKED, ASKED, ASK, FORGET = 0, 1, 2, 3

# What the integers in `counters` count.
T = 0  # measurements so far: t
UNSEEN = 1  # arms never measured
READY = 2  # 1 once there is a guess
STALE = 3  # 1 after a measurement until `settle` has run lines 3 to 9 of Alg. 1
PENDING = 4  # pulls asked for and not yet told
DIRTY = 5  # arms measured since the guess was last computed
CERTIFIED = 6  # 1 while the separation certificate proves the labels
CACHED = 7  # 1 while the cached run of Alg. 2 matches the data
PASSES = 8  # Lloyd passes in the cached run
EDGES = 9  # active constraints of the last allocation
SINCE_MEASURED = 10  # measurements since the radii were last measured exactly
SINCE_SUMMED = 11  # measurements since the running sums were last recomputed
DEGENERATE = 12  # 1 if the guess has an empty cluster or two equal centers
METHOD = 13
FRESH = 14  # every arm before this one has been asked for
FULL_RUNS = 15  # how often Alg. 2 ran from scratch
COLD_SOLVES = 16  # how often the allocation was solved from scratch
REPLAYED_PASSES = 17  # Lloyd passes of a replay that had to look at every arm
PARTS = 18  # parts of the active constraints' graph, 0 if its shape is not known
SINCE_CACHED = 19  # measurements since Alg. 2 ran from scratch: the passes' running sums are as old
N_COUNTERS = 20

# What the numbers in `gauges` are.
LOG_SUM = 0  # sum over arms of log(4 + log N_m)
Z1, Z2, Z = 1, 2, 3
FLOOR = 4  # r²/(2M), linear exploration only
N_GAUGES = 5

MAX_PASSES = 64
"""Lloyd passes that the replay remembers; a longer run of Alg. 2 is repeated from scratch each time."""


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to.

    To numba that is another type. The compiled entries get what they only read (the world of a simulation) in this
    form always, or they would be compiled once for simulations and once more for sessions.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


class State(NamedTuple):
    """Everything one run knows. M arms, K clusters, d dimensions, P remembered passes."""

    counters: Ints
    gauges: Floats
    origin: Floats  # (d)
    # arms
    sums: Floats  # (M, d)
    pulls: Ints  # (M)
    committed: Ints  # (M) pulls, and those asked for and not yet told
    dirty: Ints  # (M) the first counters[DIRTY] are arms measured since the last guess
    is_dirty: Ints  # (M)
    # guess
    labels: Ints  # (M)
    centers: Floats  # (K, d)
    group_sums: Floats  # (K, d)
    sizes: Ints  # (K)
    inverse_sizes: Floats  # (K)
    totals: Ints  # (K)
    scatter: Floats  # (K) sum of N_m ‖mean − center‖² over the cluster
    radius: Floats  # (K) upper bound of ‖mean − center‖ over the cluster
    moved: Ints  # (K) 1 if a measurement fell into the cluster since its center was computed
    gaps: Floats  # (K, K) squared distances between centers
    # arms by pulls, one heap a tracked group
    group: Ints  # (M) the group whose heap holds the arm: its label, or the true one for ORACLE
    heap: Ints  # (M) the groups' heaps, one after the other
    slot: Ints  # (M) where the arm is in `heap`
    first_slot: Ints  # (K+1)
    heap_of: Ints  # (K) which heap holds exactly the arms of this cluster, -1 if none does
    # allocation
    slack: Floats  # (K) y_k = 1/(w_k·v), see `coterie.engine.forest`
    shares: Floats  # (K) λ* of each arm of the group
    edge_from: Ints  # (2K+2) active constraints n_k·y_k + y_j = Δ²_kj: k …
    edge_to: Ints  # … and j
    multiplier: Floats  # (2K+2)
    # cached run of Alg. 2
    starts: Ints  # (K) the arms that Maximin chose
    to_starts: Floats  # (M, K) squared distance to each start
    pass_labels: SmallInts  # (P, M)
    pass_reference: Floats  # (P*K, d) centers when the pass last looked at every arm
    pass_centers: Floats  # (P*K, d) centers now
    pass_sums: Floats  # (P*K, d)
    pass_totals: Floats  # (P, K)
    pass_changes: Ints  # (P) how many labels are not those of the pass before
    pass_margin: Floats  # (P) smallest half-margin, at the reference centers, of the arms that are not listed as close
    pass_listed: Ints  # (P) how many arms are listed
    pass_close: Ints  # (P, 2, L) the listed arms, and their labels at the reference centers
    pass_half: Floats  # (P, L) their half-margins there
    pass_quiet: Floats  # (P) at most the smallest of these; −1 while a listed arm has left its label there
    pass_spent: Ints  # (P) close arms looked at since every arm was
    # work space
    scratch: Floats  # (M)
    to_centers: Floats  # (K)
    names: Ints  # (K)
    taken: Ints  # (K)


def new_state(n_arms: int, n_clusters: int, dim: int, method: int) -> State:
    """A run that has measured nothing yet.

    Memory: about 8·M·(d + K + 9) bytes; the cache of passes adds up to 4·M·P when it is used.
    """
    m, k, d, p = n_arms, n_clusters, dim, MAX_PASSES
    close = 2 * (2 + int(np.sqrt(2 * m)))

    def integers(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    def floats(*shape: int) -> Floats:
        return np.zeros(shape, dtype=np.float64)

    counters = integers(N_COUNTERS)
    counters[UNSEEN] = m
    counters[METHOD] = method
    gauges = floats(N_GAUGES)
    return State(
        counters, gauges, floats(d),
        floats(m, d), integers(m), integers(m), integers(m), integers(m),
        integers(m), floats(k, d), floats(k, d), integers(k), floats(k), integers(k), floats(k), floats(k), integers(k),
        floats(k, k),
        integers(m), integers(m), integers(m), integers(k + 1), integers(k),
        floats(k), floats(k), integers(2 * k + 2), integers(2 * k + 2), floats(2 * k + 2),
        integers(k), np.empty((m, k)), np.empty((p, m), dtype=np.int32), floats(p * k, d), floats(p * k, d),
        floats(p * k, d), floats(p, k), integers(p), floats(p), integers(p), integers(p, 2, close), floats(p, close),
        floats(p), integers(p), floats(m), floats(k), integers(k), integers(k),
    )  # fmt: skip
