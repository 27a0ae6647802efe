// The least-pulled arm of every group: one binary heap a group, ordered by (committed pulls, index).
//
// Only the group's least-pulled arm can be the next one to track, because λ* is constant within a cluster.
#pragma once

#include "base/table.hpp"

namespace coterie {

class LeastPulled {
 public:
  /// `committed` (M) outlives it: pulls, and those asked for and not yet told.
  LeastPulled(Index n_groups, std::span<const Index> committed);

  /// The group whose heap holds an arm: its label, or the true one for an oracle. Call `build` after a change.
  Zeros<Index> group;  // (M)

  void build();
  void more(Index arm);  // its committed pulls have grown
  void less(Index arm);  // … or shrunk

  Index n_groups() const { return first_slot_.size() - 1; }
  Index size(Index k) const { return first_slot_[k + 1] - first_slot_[k]; }
  bool empty(Index k) const { return size(k) == 0; }
  Index top(Index k) const { return heap_[first_slot_[k]]; }
  /// argmin N_m over all arms, lowest index first (Alg. 1, line 4).
  Index least() const;
  /// Whether what was loaded is a heap of every group.
  bool is_sound() const;

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("group", group);
    visit("heap", heap_);
    visit("slot", slot_);
    visit("first_slot", first_slot_);
  }

 private:
  bool before(Index a, Index b) const;
  void put(Index arm, Index place);
  void sink(Index low, Index high, Index place);
  void raise(Index low, Index place);

  std::span<const Index> committed_;
  Zeros<Index> heap_, slot_;  // (M) the groups' heaps, one after the other; where each arm is
  Zeros<Index> first_slot_;   // (K+1)
  Zeros<Index> next_;         // work space (K)
};

}  // namespace coterie
