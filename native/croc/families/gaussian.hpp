// Gaussian noise whose covariance is unknown and common to all arms (docs/EVIDENCE.md, section 2).
//
// At the freeze each two groups l, k get a direction η = Σ̂⁻¹(Û_l − Û_k)/Δ̂. All results of the epoch's rounds tell how
// large the variance ω along η is: R = Σu², u = η·(x − the center of its group before the round). A test bets t = η·θ
// on its contrasts, G = Σ (2t·(η·C) − t²)/v, and pays for not knowing ω:
// log e = min over y > 0 of κ·log Σ_λ w_λ·(1+λ)^(ν/2)·e^(−λRy) + G·y.
#pragma once

#include "croc/family.hpp"

namespace coterie::croc {

class Gaussian final : public Family {
 public:
  Gaussian(Index n_groups, Index dim, Shape shape);

  double factor(const Contrast& round, Row learned, Row kept) const override;
  double pulls_needed(double level, double square, double pool, Index dim) const override;
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;
  void score(ConstRow position, ConstRow bet, ConstRow shared, Row scores, Row round_scores, Index home) const override;
  void freeze(const Numbers& centers, ConstRow totals, const Numbers& metric, Row shared) const override;
  void gather(ConstRow round_scores, double results, Row shared) const override;
  double quality(const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees, ConstRow shared,
                 Index home, Index k) const override;

 private:
  Index n_groups_, dim_;
  bool scalar_;  // the noise is the same in all directions
};

}  // namespace coterie::croc
