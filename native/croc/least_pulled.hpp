// The least-pulled arm of every group of the estimate: one binary heap a group, by (committed pulls, index).
//
// A heap fits as long as labels stay and committed pulls only grow by `commit`; whoever does otherwise sets `fits` to
// false, and the next question builds it anew. Where arms differ in cost, the arms are looked through.
#pragma once

#include "base/table.hpp"

namespace coterie::croc {

struct State;

struct LeastPulled {
  LeastPulled(Index n_arms, Index n_groups) : heap(n_arms), slot(n_arms), first_slot(n_groups + 1) {}

  bool fits = false;        // the heaps fit labels and committed pulls
  Zeros<Index> heap;        // (M) arms, one heap a group
  Zeros<Index> slot;        // (M) where the arm is in `heap`
  Zeros<Index> first_slot;  // (K+1)

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("fits", fits);
    visit("heap", heap);
    visit("slot", slot);
    visit("first_slot", first_slot);
  }
};

/// A pull of the arm is under way; perhaps it is the only one. INOUT: arms, heaps.
void commit(State& s, Index arm);
/// A pull under way will not come. INOUT: arms, heaps.
void uncommit(State& s, Index arm);
/// What the committed pulls of an arm cost.
double spent(const State& s, Index arm);
/// The arm of group k with the fewest committed pulls, the lowest index first; if costs differ, by these.
Index least_pulled(State& s, Index k);
/// The arm with the fewest committed pulls of all, the lowest index first.
Index least_committed(State& s);

}  // namespace coterie::croc
