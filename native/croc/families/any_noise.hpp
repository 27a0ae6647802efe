// Any noise: the exchangeable bet (docs/EVIDENCE.md, section 1).
//
// If the arms of a test have the same law, their results in a round are exchangeable: every assignment of the a + A
// results to the two sides is equally likely. So any score that is larger for the results of the arm than for an
// average assignment is evidence, whatever the law is. The score is the elementary symmetric polynomial of order
// min(a, J) of g(x) = e^u, with u the log-likelihood ratio of the two groups as they look before the round: the linear
// one, and a robust one for which a result far from both groups says nothing.
//
// With `shape` there are two scores more, of features of a result: groups may differ in more than their location. The
// evidence is then a mixture of three processes, with weights that are fixed with the freeze.
#pragma once

#include <optional>

#include "croc/family.hpp"
#include "croc/features.hpp"

namespace coterie::croc {

class AnyNoise final : public Family {
 public:
  AnyNoise(Index n_arms, Index n_groups, Index dim, bool shape, const Constants& constants);

  double factor(const Contrast& round, Row learned, Row kept) const override;
  double pulls_needed(double level, double square, double pool, Index dim) const override;
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;
  void bet_on_shape(const ShapedGroups& groups, Row bet) const override;
  void score(ConstRow position, ConstRow bet, ConstRow shared, Row scores, Row round_scores, Index home) const override;
  void pool(ConstRow scores, Row pooled) const override;

 private:
  AnyNoise(Index n_groups, Index dim, bool shape, Index order);

  Index n_features() const { return features_ ? features_->size() : 0; }
  void add_to_polynomials(double ratio, Index which, Index k, Row scores) const;
  void score_shape(ConstRow position, ConstRow bet, Row scores, Index home) const;
  /// log of a score's factor.
  double log_factor(const Contrast& round, Index which) const;
  /// Where the polynomials of order 1, 2, …, J of a kind begin in the scores. Kinds: linear, its inverse, robust, its
  /// inverse, shape, …, small bets, …, each against every group.
  Index polynomials(Index kind, Index k) const { return (kind * n_groups_ + k) * order_; }

  Index n_groups_, dim_;
  Index order_;                       // J
  std::optional<Features> features_;  // of a result, with `shape`
};

}  // namespace coterie::croc
