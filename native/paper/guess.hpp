// The guess (c^t, U^t): its clusters' sums, centers, scatter and distances, kept up in O(K·d) a measurement.
#pragma once

#include "paper/arms.hpp"
#include "paper/lloyd.hpp"

namespace coterie::paper {

class Guess {
 public:
  Guess(Index n_arms, Index n_groups, Index dim);

  Index n_groups() const { return centers.rows(); }

  Zeros<Index> labels;          // (M) c^t
  Numbers centers;              // (K, d) U^t
  Zeros<Index> sizes;           // (K) arms of the cluster
  Zeros<double> inverse_sizes;  // (K)
  Zeros<Index> totals;          // (K) pulls that the cluster got
  Zeros<double> scatter;        // (K) sum of N_m ‖mean − center‖² over the cluster; they add up to Z1
  Numbers gaps;                 // (K, K) squared distances between centers
  double log_sum = 0.0;         // Σ_m log(4 + log N_m), the part of β that grows with the counts
  bool degenerate = false;      // an empty cluster, or two equal centers
  Index since_measured = 0;     // measurements since the radii were last measured exactly
  Index since_summed = 0;       // … since the running sums were last recomputed

  /// A result of an arm that has some already. INOUT: arms.sums, arms.pulls.
  void add(Arms& arms, Index arm, ConstRow x);
  /// Same labels, new measurements: move the centers of the clusters that got some.
  void move_centers();
  /// Exact radii and scatters about the present centers.
  void measure_radii(const Arms& arms);
  /// Sizes, totals, sums, centers, distances from the labels and the arms' sums.
  void sum_up(const Arms& arms);
  /// Take the labels of a pass; an emptied cluster keeps its center.
  void adopt(const Pass& pass, const Arms& arms);
  /// Whether a pass's labels are those of the guess up to relabelling.
  bool is_that_of(const Pass& pass) const;
  /// All arms within ρ of their center and all centers more than 4ρ apart: Alg. 2 then gives just these labels.
  ///
  /// The proof of theorem_maximum with the present centers in place of the true ones: a start's own group is within 2ρ
  /// of it and every other farther than 2ρ, so that Maximin takes one start in each group and no later pass changes a
  /// label.
  bool is_separated() const;
  /// Whether what was loaded are labels, and the sizes of their clusters.
  bool is_sound() const;

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("labels", labels);
    visit("centers", centers);
    visit("sums", sums_);
    visit("sizes", sizes);
    visit("inverse_sizes", inverse_sizes);
    visit("totals", totals);
    visit("scatter", scatter);
    visit("radius", radius_);
    visit("moved", moved_);
    visit("gaps", gaps);
    visit("log_sum", log_sum);
    visit("degenerate", degenerate);
    visit("since_measured", since_measured);
    visit("since_summed", since_summed);
  }

 private:
  double move_center(Index k);
  bool measure_gaps(Index k);
  void note_degenerate();

  Numbers sums_;          // (K, d)
  Zeros<double> radius_;  // (K) upper bound of ‖mean − center‖ over the cluster
  Zeros<Flag> moved_;     // (K) 1 if a measurement fell into the cluster since its center was computed
};

/// Whether two labellings with numbers in 0 … K−1 are equal up to relabelling.
bool same_groups(std::span<const Index> a, std::span<const Index> b, Index n_groups);

}  // namespace coterie::paper
