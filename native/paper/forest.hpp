// The optimal allocation on a guessed set of active constraints, in O(K) a Newton step.
//
// With y_k = 1/(w_k·v), v the value of the minimax, theorem_opt3 becomes separable:
//
//     min Σ_k 1/y_k   subject to   n_k·y_k + y_j ≤ Δ²_kj  for all k ≠ j.
//
// Each constraint joins two clusters, so a set of active ones is a graph on the K clusters. At a nondegenerate optimum
// every connected part of it is a tree (one degree of freedom: all y are affine in the root's, and a scalar Newton
// iteration finds it) or has exactly one cycle (y is determined). Multipliers follow leaf by leaf. No linear algebra is
// needed; a part with two cycles is refused, and the caller falls back to barrier.hpp.
#pragma once

#include "base/table.hpp"

namespace coterie::paper {

/// What the allocation depends on.
struct Clusters {
  std::span<const Index> sizes;     // n_k
  std::span<const double> inverse;  // 1/n_k
  const Numbers& gaps;              // Δ²

  Index count() const { return static_cast<Index>(sizes.size()); }
  double size(Index k) const { return static_cast<double>(sizes[k]); }
  /// Whether constraint (k, j) only repeats (j, k): two single arms.
  bool is_twin(Index k, Index j) const { return k > j && sizes[k] == 1 && sizes[j] == 1; }
};

/// An active constraint n_k·y_k + y_j = Δ²_kj: k is its tail, j its head.
struct Edge {
  Index tail, head;

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("tail", tail);
    visit("head", head);
  }
};

class Forest {
 public:
  explicit Forest(Index n_clusters);

  /// How the constraints hang together. False if y is not determined: two cycles, or a cluster that nothing bounds.
  bool shape(std::span<const Edge> edges);
  /// y with these constraints active, on the last shape. INOUT: slack (start and solution). False on failure.
  bool solve(const Clusters& clusters, std::span<const Edge> edges, Row slack);
  /// Solve Aᵀν = rest on the solved forest, leaf by leaf. IN: `rest`, the right side (overwritten). OUT: nu.
  void multipliers(const Clusters& clusters, std::span<const Edge> edges, Row nu);
  /// Whether the part of a cluster has its one cycle.
  bool is_full(Index k) const { return nodes_[nodes_[k].part].cycle >= 0; }

  std::vector<double> rest;  // (K)

 private:
  struct Node {           // of a cluster …
    Index parent = -1;    // the constraint that leads to its parent, -1 at a root
    Index part = -1;      // the part that it belongs to
    Index leaving = -1;   // where an outgoing constraint leads, -1 if there is none
    double offset = 0.0;  // y = offset + slope·(its root's y)
    double slope = 0.0;
    double rest_slope = 0.0;
    Index cycle = -1;  // … of a part: the constraint that closes its cycle, -1 for a tree
  };

  std::span<const Index> part(Index p) const { return {order_.data() + first_[p], order_.data() + first_[p + 1]}; }
  Index root_of(Index k) const;
  bool grow(Index root, std::span<const Edge> edges);
  void attach(Index k, Index edge);
  double tree_root_value(std::span<const Index> part, double start) const;

  std::vector<Node> nodes_;
  std::vector<Index> order_;  // clusters, part by part, parents before children
  std::vector<Index> first_;  // where each part begins in `order_`, and the end
  Index parts_ = 0;
  std::vector<Flag> used_;                   // (E) 1 once a constraint has been walked
  std::vector<double> share_, share_slope_;  // (E)
};

}  // namespace coterie::paper
