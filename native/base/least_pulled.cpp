#include "base/least_pulled.hpp"

namespace coterie {

LeastPulled::LeastPulled(Index n_groups, std::span<const Index> committed)
    : group(std::ssize(committed)),
      committed_(committed),
      heap_(std::ssize(committed)),
      slot_(std::ssize(committed)),
      first_slot_(n_groups + 1),
      next_(n_groups) {}

bool LeastPulled::before(Index a, Index b) const {
  return committed_[a] < committed_[b] || (committed_[a] == committed_[b] && a < b);
}

void LeastPulled::put(Index arm, Index place) {
  heap_[place] = arm;
  slot_[arm] = place;
}

void LeastPulled::sink(Index low, Index high, Index place) {
  const Index arm = heap_[place];
  for (;;) {
    Index child = 2 * (place - low) + 1 + low;
    if (child >= high) break;
    if (child + 1 < high && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], arm)) break;
    put(heap_[child], place);
    place = child;
  }
  put(arm, place);
}

void LeastPulled::raise(Index low, Index place) {
  const Index arm = heap_[place];
  while (place > low) {
    const Index parent = (place - low - 1) / 2 + low;
    if (!before(arm, heap_[parent])) break;
    put(heap_[parent], place);
    place = parent;
  }
  put(arm, place);
}

void LeastPulled::build() {
  const Index n = n_groups();
  first_slot_.fill(0);
  for (Index k : group) ++first_slot_[k + 1];
  for (Index k = 0; k < n; ++k) first_slot_[k + 1] += first_slot_[k];
  std::copy_n(first_slot_.begin(), n, next_.begin());
  for (Index m = 0; m < group.size(); ++m) put(m, next_[group[m]]++);
  for (Index k = 0; k < n; ++k) {
    const Index low = first_slot_[k], high = first_slot_[k + 1];
    for (Index place = (low + high) / 2; place >= low; --place)
      if (place < high) sink(low, high, place);
  }
}

void LeastPulled::more(Index arm) { sink(first_slot_[group[arm]], first_slot_[group[arm] + 1], slot_[arm]); }

void LeastPulled::less(Index arm) { raise(first_slot_[group[arm]], slot_[arm]); }

bool LeastPulled::is_sound() const {
  const Index n_arms = group.size();
  Index from = 0;
  for (Index k = 0; k < n_groups(); ++k) {
    if (first_slot_[k] != from || first_slot_[k + 1] < from || first_slot_[k + 1] > n_arms) return false;
    for (; from < first_slot_[k + 1]; ++from) {
      const Index arm = heap_[from];
      if (arm < 0 || arm >= n_arms || slot_[arm] != from || group[arm] != k) return false;
    }
  }
  return from == n_arms;
}

Index LeastPulled::least() const {
  Index best = -1;
  for (Index k = 0; k < n_groups(); ++k)
    if (!empty(k) && (best < 0 || before(top(k), best))) best = top(k);
  return best;
}

}  // namespace coterie
