// Binary heaps of arms, several in one array.
#pragma once

#include <span>

#include "base/table.hpp"

namespace coterie {

/// Sink the arm at `place` of the heap that fills heap[low], …, heap[high − 1]. `before(a, b)`: a belongs above b, a
/// strict order of all arms; `placed(arm, place)` is told where an arm is now. INOUT: heap.
template <class Before, class Placed>
inline void heap_down(std::span<Index> heap, Index low, Index high, Index place, Before before, Placed placed) {
  const Index arm = heap[place];
  for (;;) {
    Index child = 2 * (place - low) + 1 + low;
    if (child >= high) break;
    if (child + 1 < high && before(heap[child + 1], heap[child])) ++child;
    if (!before(heap[child], arm)) break;
    heap[place] = heap[child];
    placed(heap[place], place);
    place = child;
  }
  heap[place] = arm;
  placed(arm, place);
}

}  // namespace coterie
