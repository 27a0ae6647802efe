// What is known of the arms: their results, added up, and how often each was pulled.
#pragma once

#include "base/table.hpp"

namespace coterie::paper {

/// Arms in the order in which they were first added since the last `clear`.
class ArmSet {
 public:
  explicit ArmSet(Index n_arms) : inside_(n_arms) { arms_.reserve(n_arms); }

  void add(Index arm) {
    if (inside_[arm]) return;
    inside_[arm] = 1;
    arms_.push_back(arm);
  }
  void clear() {
    for (Index arm : arms_) inside_[arm] = 0;
    arms_.clear();
  }
  Index size() const { return static_cast<Index>(arms_.size()); }
  auto begin() const { return arms_.begin(); }
  auto end() const { return arms_.end(); }

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("arms", arms_);
    visit("inside", inside_);
  }
  bool is_sound() const {
    if (size() != std::ranges::count(inside_, Flag{1})) return false;
    return std::ranges::all_of(arms_, [&](Index arm) { return arm >= 0 && arm < inside_.size() && inside_[arm] == 1; });
  }

 private:
  std::vector<Index> arms_;
  Zeros<Flag> inside_;
};

/// Positions are relative to the first result of the run, so that data far from zero lose no digits.
struct Arms {
  Arms(Index n_arms, Index dim) : sums(n_arms, dim), pulls(n_arms), committed(n_arms), touched(n_arms) {}

  Index size() const { return sums.rows(); }
  Index dim() const { return sums.columns(); }
  double inverse(Index arm) const { return 1.0 / static_cast<double>(pulls[arm]); }

  Numbers sums;            // (M, d)
  Zeros<Index> pulls;      // N_m(t)
  Zeros<Index> committed;  // pulls, and those asked for and not yet told
  ArmSet touched;          // measured since the guess was last computed

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("sums", sums);
    visit("pulls", pulls);
    visit("committed", committed);
    visit("touched", touched);
  }
};

}  // namespace coterie::paper
