// The optimal allocation from scratch: a primal-dual interior-point method on the separable form of theorem_opt3.
//
// Robust where forest.hpp is fast: it needs no guess of the active constraints and does not mind dependent ones (equal
// groups at equal distances). Its matrices are K×K, whatever the number of constraints.
#pragma once

#include "paper/forest.hpp"

namespace coterie::paper {

class Barrier {
 public:
  explicit Barrier(Index n_clusters);

  /// OUT: slack (y), room and dual.
  void solve(const Clusters& clusters, Row slack);

  Numbers room;  // (K, K) Δ²_kj − n_k·y_k − y_j
  Numbers dual;  // (K, K) ν, 0 on the diagonal and for twins

 private:
  Index begin(const Clusters& clusters, double scale, Row slack);
  void take_step(const Clusters& clusters, double target, Row slack);

  Numbers matrix_;
  std::vector<double> step_;
};

}  // namespace coterie::paper
