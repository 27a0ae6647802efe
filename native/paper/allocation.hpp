// λ*(t), the allocation that Alg. 1 tracks (equation_lambda_star_t), warm from one pull to the next.
//
// The active constraints rarely change between two pulls, so the last ones are tried first (forest.hpp) and mended one
// constraint at a time; what that does not settle is solved from scratch (barrier.hpp). Either way the result meets the
// optimality conditions of the corrected theorem_opt3 to about 1e-12.
#pragma once

#include <optional>

#include "paper/barrier.hpp"
#include "paper/forest.hpp"
#include "paper/guess.hpp"

namespace coterie::paper {

class Allocation {
 public:
  explicit Allocation(Index n_clusters);

  /// λ* of the current guess.
  void update(const Guess& guess);

  Zeros<double> shares;         // (K) λ* of an arm of the cluster: constant within it, theorem_opt4
  std::optional<double> floor;  // r²/(2M): no arm gets less, for linear exploration
  Index cold_solves = 0;        // how often it was solved from scratch

  Index n_active() const { return static_cast<Index>(active_.size()); }

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("shares", shares);
    visit("cold_solves", cold_solves);
    visit("slack", slack_);
    visit("active", active_);
    visit("multiplier", multiplier_);
    visit("shaped", shaped_);
  }
  /// After a load: the forest is not kept, it is shaped anew from the active constraints. False if they are none.
  bool restored();

 private:
  bool mend(const Clusters& clusters);
  void solve_cold(const Clusters& clusters);
  void drop(Index edge);
  void drop_all();
  Index blocking(const Clusters& clusters, const Edge& entering);
  void raise_to_floor(const Clusters& clusters);

  std::size_t most_active_;
  Zeros<double> slack_;             // (K) y_k = 1/(w_k·v)
  Zeros<double> weight_;            // (K) 1/y, proportional to w*(k)
  std::vector<Edge> active_;        // constraints
  std::vector<double> multiplier_;  // … and theirs
  bool shaped_ = false;             // whether the forest's shape is that of the active constraints
  Forest forest_;
  Barrier barrier_;
  Zeros<double> kept_;          // work space
  Zeros<Flag> fixed_;           // … (K)
  std::vector<double> growth_;  // … of each active constraint
};

}  // namespace coterie::paper
