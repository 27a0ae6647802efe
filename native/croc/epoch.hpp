// Epochs: a candidate is written down with a level of its own, before the results that will judge it.
//
// An epoch is a number j, the time of the freeze, the level b_j and the candidate: labels, and the number and mean of
// all results of each group (docs/CROC.md, sections 4 and 6). Which tests it has is the affair of croc/claims.
#pragma once

#include "base/table.hpp"
#include "croc/constants.hpp"

namespace coterie::croc {

/// Tests of one kind, one for every row and column: arms against groups, or core arms against core arms.
struct Tests {
  Tests(Index rows, Index columns, Index kept, bool with_bound);

  Table<Flag> met;
  Numbers weight;      // n of the test; 0 says that `kept` is not of this epoch
  Cube<double> kept;   // what the test keeps: S, or what the family of evidence says, then log E
  Table<Index> last;   // the round at which it was met; negative: by a pair from the start, minus a count of that pair
  Table<Index> bound;  // t of the σ₊ by which it was met, if by a pair from the start; empty without a variance bound

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("met", met);
    visit("weight", weight);
    visit("kept", kept);
    visit("last", last);
    visit("bound", bound);
  }
};

struct Epoch {
  Epoch(Index n_arms, Index n_groups, Index dim, Index kept, Index shared, bool with_bound, const Constants& constants);

  Index frozen_at = 0;   // t
  Index number = 0;      // j
  double level = 0.0;    // b_j
  Zeros<Index> labels;   // (M) the candidate
  Zeros<double> totals;  // (K) W
  Numbers centers;       // (K, d) Û, from the origin of the group's first core arm
  Zeros<Index> core;     // (K·core_room) arms, −1 where there is none
  Zeros<Flag> in_core;   // (M)
  Tests against_group;   // (M, K) arm m against all of group k
  // (M, K) … against the core of k. If a pair from the start met both, its counts are in `last`: the arm's in
  // against_core, that of the core's first arm in against_group.
  Tests against_core;
  Tests core_pairs;      // (K·core_room, K·core_room) of two core arms; counts of a pair in last(i, j) and last(j, i)
  Zeros<double> shared;  // of the family of evidence

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("frozen_at", frozen_at);
    visit("number", number);
    visit("level", level);
    visit("labels", labels);
    visit("totals", totals);
    visit("centers", centers);
    visit("core", core);
    visit("in_core", in_core);
    visit("against_group", against_group);
    visit("against_core", against_core);
    visit("core_pairs", core_pairs);
    visit("shared", shared);
  }
};

}  // namespace coterie::croc
