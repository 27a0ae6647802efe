// Equal means only: results within bounds, of a bounded covariance, or symmetric (docs/EVIDENCE.md, sections 4 to 6).
//
// All three bet on the contrast C of a round, whose mean is 0 if the means are equal:
//
// - `Bounded`: e = 1 + λ·C, with λ so small that e stays positive whatever the results are;
// - `AtMost`: e = (1 + x + x²/2)/(1 + w/2), x = θ·C/v, w = ‖θ‖²/v, in units of the covariance stated;
// - `Symmetric`: e = 2/(1 + e^(−2x)), x = θ·Σ̂⁻¹·C divided by the variance of C as the arms showed it before the round,
//   clipped: an outlier must not lose more than a few rounds gain.
#pragma once

#include "croc/family.hpp"

namespace coterie::croc {

/// What the three share.
class EqualMeans : public Family {
 public:
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;

 protected:
  EqualMeans(Traits traits, Index n_groups, Index dim) : Family(std::move(traits)), n_groups_(n_groups), dim_(dim) {}

  Index n_groups_, dim_;
};

class Bounded final : public EqualMeans {
 public:
  /// `widths` (d): hi − lo of every number.
  Bounded(Index n_groups, Index dim, std::vector<double> widths);

  double factor(const Contrast& round, Row learned, Row kept) const override;
  double pulls_needed(double level, double square, double pool, Index dim) const override;
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;

 private:
  std::vector<double> widths_;
};

class AtMost final : public EqualMeans {
 public:
  AtMost(Index n_groups, Index dim);

  double factor(const Contrast& round, Row learned, Row kept) const override;
  double pulls_needed(double level, double square, double pool, Index dim) const override;
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;
};

class Symmetric final : public EqualMeans {
 public:
  Symmetric(Index n_groups, Index dim);

  double factor(const Contrast& round, Row learned, Row kept) const override;
  double pulls_needed(double level, double square, double pool, Index dim) const override;
};

}  // namespace coterie::croc
