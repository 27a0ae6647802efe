// Counts of successes: conditional odds (docs/EVIDENCE.md, section 3).
//
// Given how many of the trials of both sides succeed, equal rates make the arm's successes s hypergeometric, whatever
// the rate is. So ψ^s divided by its hypergeometric mean has mean 1; ψ is the ratio of the odds of the two groups
// before the round. Numbers of one result are independent: their factors are multiplied. Scores: successes, d numbers.
#pragma once

#include "croc/family.hpp"

namespace coterie::croc {

class Counts final : public Family {
 public:
  Counts(Index n_groups, Index dim, Index trials);

  double factor(const Contrast& round, Row learned, Row kept) const override;
  double pulls_needed(double level, double square, double pool, Index dim) const override;
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;
  void score(ConstRow position, ConstRow bet, ConstRow shared, Row scores, Row round_scores, Index home) const override;

 private:
  Index n_groups_, dim_;
  double trials_;  // of a result
};

}  // namespace coterie::croc
