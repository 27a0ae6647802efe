// Partitions on a list (docs/CROC.md, section 20): how likely each is, what a round says against it, what to measure.
#pragma once

#include <atomic>
#include <vector>

#include "base/table.hpp"
#include "shortlist/parts.hpp"

namespace coterie::shortlist {

using Labels = std::span<const Index>;

/// Of each arm: how many results, and their sum; all that have counted so far, or those of one round.
struct Results {
  ConstRow counts;     // (M)
  const double* sums;  // (M, d)
  Index dim;

  ConstRow sum(Index arm) const { return {sums + arm * dim, static_cast<std::size_t>(dim)}; }
};

/// Numbers of two partitions: one that is doubted, and one that may be true in its place.
struct Duel {
  Index null = 0, rival = 0;
};

/// Where growth is forecast: what is too little to count.
struct LeftOut {
  double small;      // products of urgency and chance, of the largest possible one
  double least_log;  // log of the share of a scale
};

/// Partitions of M arms into exactly K groups, as rows of labels 0 … K−1, and the room to judge them in.
class Partitions {
 public:
  Partitions(Table<Index> listed, Index n_groups, Index dim, ConstRow scales);

  Index size() const { return listed_.rows(); }
  Index n_arms() const { return listed_.columns(); }
  Index n_groups() const { return n_groups_; }
  Index dim() const { return dim_; }
  std::atomic<bool>& in_use() { return in_use_; }

  /// log p(c), up to a constant: docs/CROC.md, section 7, but the centers of a block are N(place, τ²·I), τ² uniform.
  /// `blocks`: a number for each arm; arms of different blocks are in different groups of every partition that is asked
  /// about. For others the value means nothing.
  void log_posterior(std::span<const Index> blocks, const Results& so_far, Row found);

  /// log of the factor of E(c0) for each partition that is alive, 0 for the others: the mean of the ratios over the
  /// rivals, by p; 1 without a rival. `chance`: p of the listed partitions, those that count as rivals positive;
  /// `before`: the results of the moment at which the round was composed.
  void round_logs(std::span<const Index> alive, ConstRow chance, const Results& before, const Results& round,
                  Row found);

  /// By how much a pull of each arm is expected to add to the evidence against urgent partitions: the sum over
  /// partitions by `urgency` and, for each, over its rivals by `chance`. Gives the pair of the largest product.
  Duel expected_growth(ConstRow urgency, ConstRow chance, const Results& so_far, LeftOut left_out, Row growth);

 private:
  void take_pieces(Index c, const Results& so_far);
  double block_logs(Index c, Index block);
  void take_parts(Index rival, ConstRow counts);
  double log_ratio(Index null, Index rival, const Results& round);
  void add_growth(Duel duel, const Results& so_far, double factor, double least_log, Row growth);

  Index n_groups_, dim_;
  Table<Index> listed_;   // (L, M)
  Numbers weights_;       // (L, K) W of the groups of each partition
  Cube<double> centers_;  // (L, K, d) Û
  Parts parts_;
  std::vector<double> log_factorial_;              // (M + 1)
  std::vector<double> terms_;                      // (L)
  std::vector<double> counts_, gain_, precision_;  // (K) of the groups of a rival, inside one group of the null
  Numbers results_;                                // (K, d) likewise: of a round
  std::vector<Index> home_, size_;                 // (K) block and arms of each group
  std::atomic<bool> in_use_ = false;
};

}  // namespace coterie::shortlist
