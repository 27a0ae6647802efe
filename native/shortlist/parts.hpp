// Parts of one group that are to be told apart, and how their centers lie around a common place.
#pragma once

#include <vector>

#include "base/table.hpp"

namespace coterie::shortlist {

/// log density, up to a constant, of the contrasts of the points `at`, the j-th N(place, I/precision[j]), the place
/// flat. As many points as precisions.
double contrast_log(ConstRow precision, const Numbers& at);

/// log Σ exp(values); −∞ if all of them are.
double log_sum(ConstRow values);

/// The place of the parts is flat; their centers are N(place, τ²·I) for one of the scales τ², all equally likely
/// (docs/CROC.md, section 20).
class Parts {
 public:
  Parts(Index most, Index dim, ConstRow scales);

  void clear() { count_ = 0; }
  /// One more: a group of a partition, with its W and Û.
  void add(Index group, double weight, ConstRow center);

  Index count() const { return count_; }
  Index group(Index j) const { return group_[j]; }
  double weight(Index j) const { return weight_[j]; }
  Index n_scales() const { return static_cast<Index>(scales_.size()); }
  double scale(Index r) const { return scales_[r]; }

  /// (S) for each τ²: the log density of the contrasts of the centers Û, which are N(place, (τ² + 1/W)·I).
  Row scale_logs();
  /// (S) log of how likely each τ² is, by the centers of the parts.
  Row scale_shares();
  /// (K, d) row j: the center of part j from the place, given τ²: drawn to the place as τ² and W say.
  Numbers& centers_given(double scale);

 private:
  Index count_ = 0;
  std::vector<Index> group_;
  std::vector<double> weight_, scales_, logs_, precision_;
  Numbers center_, off_;
};

}  // namespace coterie::shortlist
