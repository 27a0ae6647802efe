// K-means–Maximin (Alg. 2, algo2) as a cached run that is replayed when few arms have moved.
//
// The farthest-first order stands unless a start moved or a moved arm now reaches a stage's maximum; the Lloyd passes
// are brought up to date one after the other (lloyd.hpp). What no bound decides is computed again, so the outcome is
// always that of a run from scratch. Ties (within 1e-12 of the squared distance) go to the lowest index. Departure: a
// cluster that loses all its arms keeps its center; such a run is not cached.
#pragma once

#include "paper/lloyd.hpp"

namespace coterie::paper {

class Maximin {
 public:
  Maximin(Index n_arms, Index n_groups, Index dim);

  enum class Replay { unchanged, changed, give_up };

  /// Alg. 2 from scratch; `outcome` then has the final labels and centers.
  void run_whole(const Arms& arms);
  /// Bring the cached run up to date with the touched arms; give_up: Alg. 2 has to run as a whole.
  Replay replay(const Arms& arms);
  const Pass& outcome() const { return passes_.last(); }
  /// Carry one measurement into the cached run.
  void add(Index arm, ConstRow x) { passes_.add(arm, x); }

  /// Whether what was loaded is about these arms and groups.
  bool is_sound() const;

  bool cached = false;     // whether the run matches the data
  Index since_cached = 0;  // measurements since Alg. 2 ran from scratch: the passes' running sums are as old
  Index full_runs = 0;

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("cached", cached);
    visit("since_cached", since_cached);
    visit("full_runs", full_runs);
    visit("starts", starts_);
    visit("to_starts", to_starts_);
    visit("passes", passes_);
  }

 private:
  void measure_start(Index k, const Arms& arms);
  void choose_starts(Index stage, const Arms& arms);
  void replay_starts(const Arms& arms);
  double near(Index arm, Index k) const;

  Zeros<Index> starts_;  // (K) the arms that Maximin chose
  Numbers to_starts_;    // (M, K) squared distance to each start
  Passes passes_;
  Zeros<double> near_;  // work space (M)
};

}  // namespace coterie::paper
