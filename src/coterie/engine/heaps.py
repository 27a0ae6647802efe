"""The least-pulled arm of every group: one binary heap a group, ordered by (pulls, index).

Only the group's least-pulled arm can be the next one to track, because λ* is constant within
a cluster. Keys are `committed` pulls, so that a batch of asks counts what is still under way.
"""

from __future__ import annotations

from coterie.engine.compiled import INT, compiled
from coterie.engine.state import Ints, State


@compiled
def _before(committed: Ints, a: int, b: int) -> bool:
    return committed[a] < committed[b] or (committed[a] == committed[b] and a < b)


@compiled
def heap_down(heap: Ints, slot: Ints, committed: Ints, low: int, high: int, place: int) -> None:
    """Sink the arm at `place` of the heap that fills heap[low:high]. INOUT: heap, slot."""
    arm = heap[place]
    while True:
        child = 2 * (place - low) + 1 + low
        if child >= high:
            break
        if child + 1 < high and _before(committed, heap[child + 1], heap[child]):
            child += 1
        if not _before(committed, heap[child], arm):
            break
        heap[place] = heap[child]
        slot[heap[place]] = place
        place = child
    heap[place] = arm
    slot[arm] = place


@compiled
def heap_up(heap: Ints, slot: Ints, committed: Ints, low: int, place: int) -> None:
    """Raise the arm at `place` of the heap that begins at heap[low]. INOUT: heap, slot."""
    arm = heap[place]
    while place > low:
        parent = (place - low - 1) // 2 + low
        if not _before(committed, arm, heap[parent]):
            break
        heap[place] = heap[parent]
        slot[heap[place]] = place
        place = parent
    heap[place] = arm
    slot[arm] = place


@compiled
def heaps_build(s: State) -> None:
    """Fill the heaps anew from s.group. INOUT: s.heap, s.slot, s.first_slot."""
    n_groups = s.first_slot.shape[0] - 1
    s.first_slot[:] = 0
    for m in range(s.group.shape[0]):
        s.first_slot[s.group[m] + 1] += 1
    for k in range(n_groups):
        s.first_slot[k + 1] += s.first_slot[k]
    fill = s.names
    for k in range(n_groups):
        fill[k] = s.first_slot[k]
    for m in range(s.group.shape[0]):
        k = s.group[m]
        s.heap[fill[k]] = m
        s.slot[m] = fill[k]
        fill[k] += 1
    for k in range(n_groups):
        low = s.first_slot[k]
        high = s.first_slot[k + 1]
        for place in range((low + high) // 2, low - 1, -1):
            if place < high:
                heap_down(s.heap, s.slot, s.committed, low, high, place)


@compiled
def least_committed(heap: Ints, first_slot: Ints, committed: Ints) -> int:
    """The arm with the fewest committed pulls, lowest index first: argmin N_m (Alg. 1, line 4)."""
    best: int = INT(-1)
    for k in range(first_slot.shape[0] - 1):
        if first_slot[k] < first_slot[k + 1]:
            arm = heap[first_slot[k]]
            if best < 0 or _before(committed, arm, best):
                best = arm
    return best
