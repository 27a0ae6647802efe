#include "croc/least_pulled.hpp"

#include "base/heap.hpp"
#include "croc/shape.hpp"

namespace coterie::croc {

namespace {

/// Sink the arm at `place` of the heap of group k. INOUT: heaps.
void sink(State& s, Index k, Index place) {
  LeastPulled& heaps = s.heaps;
  const Index* committed = s.arms.committed.data();
  Index* slot = heaps.slot.data();
  const auto before = [committed](Index a, Index b) {
    return committed[a] < committed[b] || (committed[a] == committed[b] && a < b);
  };
  heap_down(heaps.heap, heaps.first_slot[k], heaps.first_slot[k + 1], place, before,
            [slot](Index arm, Index at) { slot[arm] = at; });
}

/// Build the heaps of all groups anew. OUT: heaps.
void build(State& s) {
  LeastPulled& heaps = s.heaps;
  const Zeros<Index>& labels = s.estimate.labels;
  const Index n_groups = s.n_groups();
  heaps.first_slot.fill(0);
  for (const Index k : labels) ++heaps.first_slot[k];
  for (Index k = 0; k < n_groups; ++k) heaps.first_slot[k + 1] += heaps.first_slot[k];
  for (Index m = labels.size() - 1; m >= 0; --m) {  // from the end of each group's part: then first_slot is its start
    const Index place = --heaps.first_slot[labels[m]];
    heaps.heap[place] = m;
    heaps.slot[m] = place;
  }
  heaps.first_slot[n_groups] = labels.size();
  for (Index k = 0; k < n_groups; ++k) {
    const Index low = heaps.first_slot[k], high = heaps.first_slot[k + 1];
    for (Index place = (low + high) / 2; place >= low; --place)
      if (place < high) sink(s, k, place);
  }
  heaps.fits = true;
}

/// The arm of group k whose committed pulls cost least, the lowest index first.
Index least_spent(const State& s, Index k) {
  Index best = -1;
  for (Index m = 0; m < s.n_arms(); ++m)
    if (s.estimate.labels[m] == k && (best < 0 || spent(s, m) < spent(s, best))) best = m;
  return best;
}

}  // namespace

void commit(State& s, Index arm) {
  if (s.arms.open_pulls == 0) s.arms.alone = arm;
  ++s.arms.open_pulls;
  ++s.arms.committed[arm];
  if (s.heaps.fits) sink(s, s.estimate.labels[arm], s.heaps.slot[arm]);
  if (s.shape) commit(s.shape->space, arm);
}

void uncommit(State& s, Index arm) {
  --s.arms.committed[arm];
  --s.arms.open_pulls;
  if (s.arms.alone == arm) s.arms.alone = -1;  // perhaps: then the arm's next result is of another ask
  s.heaps.fits = false;
  if (s.shape) uncommit(s.shape->space, arm);
}

double spent(const State& s, Index arm) { return double(s.arms.committed[arm]) * s.arms.price[arm]; }

Index least_pulled(State& s, Index k) {
  if (s.arms.priced) return least_spent(s, k);
  if (!s.heaps.fits) build(s);
  return s.heaps.heap[s.heaps.first_slot[k]];
}

Index least_committed(State& s) {
  const Zeros<Index>& committed = s.arms.committed;
  Index best = 0;
  if (s.estimate.at == 0 || s.arms.priced) {
    for (Index m = 0; m < s.n_arms(); ++m)
      if (committed[m] < committed[best]) best = m;
    return best;
  }
  for (Index k = 0; k < s.n_groups(); ++k) {
    const Index arm = least_pulled(s, k);
    const bool tied = committed[arm] == committed[best] && arm < best;
    if (k == 0 || committed[arm] < committed[best] || tied) best = arm;
  }
  return best;
}

}  // namespace coterie::croc
