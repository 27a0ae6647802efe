"""The least-pulled arm of every group of the estimate: one binary heap a group, by (committed pulls, index).

A heap fits as long as labels stay and committed pulls only grow by `commit_arm`; whoever does otherwise sets
s.ints[HEAPED] to 0, and the next question builds it anew. Where arms differ in cost, the arms are looked through.
"""

from __future__ import annotations

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import ALONE, ESTIMATED, HEAPED, OPEN_PULLS, PRICED, Croc
from coterie.engine.heaps import heap_down
from coterie.engine.state import Ints


@compiled
def _build(labels: Ints, committed: Ints, heap: Ints, slot: Ints, first_slot: Ints) -> None:
    """Build the heaps of all groups anew. OUT: heap, slot, first_slot."""
    n_groups = first_slot.size - 1
    for k in range(n_groups + 1):
        first_slot[k] = 0
    for m in range(labels.size):
        first_slot[labels[m]] += 1
    for k in range(n_groups):
        first_slot[k + 1] += first_slot[k]
    for m in range(labels.size - 1, -1, -1):  # from the end of each group's part: afterwards first_slot is its start
        first_slot[labels[m]] -= 1
        heap[first_slot[labels[m]]] = m
        slot[m] = first_slot[labels[m]]
    first_slot[n_groups] = labels.size
    for k in range(n_groups):
        low, high = first_slot[k], first_slot[k + 1]
        for place in range((low + high) // 2, low - 1, -1):
            if place < high:
                heap_down(heap, slot, committed, low, high, place)


@compiled
def commit_arm(ints: Ints, labels: Ints, committed: Ints, heap: Ints, slot: Ints, first_slot: Ints, arm: int) -> None:
    """A pull of the arm is under way; perhaps it is the only one. INOUT: ints, committed, heap, slot."""
    if ints[OPEN_PULLS] == 0:
        ints[ALONE] = arm + 1
    ints[OPEN_PULLS] += 1
    committed[arm] += 1
    if ints[HEAPED] == 1:
        k = labels[arm]
        heap_down(heap, slot, committed, first_slot[k], first_slot[k + 1], slot[arm])


@compiled
def commit(s: Croc, arm: int) -> None:
    """A pull of the arm is under way: `commit_arm` with the arrays of the state. INOUT: s."""
    commit_arm(s.ints, s.labels, s.committed, s.heap, s.slot, s.first_slot, arm)


@compiled
def spent(s: Croc, arm: int) -> float:
    """What the committed pulls of an arm cost."""
    return float(s.committed[arm] * s.price[arm])


@compiled
def _least_spent(s: Croc, k: int) -> int:
    """The arm of group k whose committed pulls cost least, the lowest index first."""
    best = -1
    for m in range(s.labels.size):
        if s.labels[m] == k and (best < 0 or spent(s, m) < spent(s, best)):
            best = m
    return best


@compiled
def least_pulled(s: Croc, k: int) -> int:
    """The arm of group k with the fewest committed pulls, the lowest index first; if costs differ, by these."""
    if s.ints[PRICED] == 1:
        return _least_spent(s, k)
    if s.ints[HEAPED] == 0:
        _build(s.labels, s.committed, s.heap, s.slot, s.first_slot)
        s.ints[HEAPED] = 1
    return int(s.heap[s.first_slot[k]])


@compiled
def least_committed(s: Croc) -> int:
    """The arm with the fewest committed pulls of all, the lowest index first."""
    best = 0
    if s.ints[ESTIMATED] == 0 or s.ints[PRICED] == 1:
        for m in range(s.labels.size):
            if s.committed[m] < s.committed[best]:
                best = m
        return best
    for k in range(s.totals.size):
        arm = least_pulled(s, k)
        fewer = s.committed[arm] < s.committed[best]
        if k == 0 or fewer or (s.committed[arm] == s.committed[best] and arm < best):
            best = arm
    return best
