// Rates: numbers of events, and times until one (docs/EVIDENCE.md, section 13).
//
// - `Poisson`: given how many events both sides have in all, equal rates make those of the arm's results binomial, with
//   the chance a/(a+A) each. So ψ^s divided by its binomial mean has mean 1.
// - `Exponential`: if the rates are equal, the arm's share of the sum of all times is Beta(a, A), whatever the rate is.
//   The density of the share if the arm's rate is ρ times the pool's, over that, has mean 1.
//
// ψ and ρ are the ratio of the rates of the two groups before the round. Numbers of one result are independent: their
// factors are multiplied. Scores: sums of the results, d numbers.
#pragma once

#include "croc/family.hpp"

namespace coterie::croc {

/// What the two share. Bets: log rates L (K, d) and f (K, K).
class Rates : public Family {
 public:
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;
  void score(ConstRow position, ConstRow bet, ConstRow shared, Row scores, Row round_scores, Index home) const override;
  double factor(const Contrast& round, Row learned, Row kept) const override;

 protected:
  Rates(Traits traits, Index n_groups, Index dim) : Family(std::move(traits)), n_groups_(n_groups), dim_(dim) {}

  /// The rate of a group from the mean of its results, and their number.
  virtual double rate(double mean, double total) const = 0;
  /// log e of one number: sums of the arm's a results and of the pool's A, and log of the ratio of rates.
  virtual double log_factor(double of_arm, double of_pool, double a, double pulls, double log_ratio) const = 0;

 private:
  Index n_groups_, dim_;
};

class Poisson final : public Rates {
 public:
  Poisson(Index n_groups, Index dim);

  double pulls_needed(double level, double square, double pool, Index dim) const override;

 protected:
  double rate(double mean, double total) const override;
  double log_factor(double of_arm, double of_pool, double a, double pulls, double log_ratio) const override;
};

class Exponential final : public Rates {
 public:
  Exponential(Index n_groups, Index dim);

  double pulls_needed(double level, double square, double pool, Index dim) const override;

 protected:
  double rate(double mean, double total) const override;
  double log_factor(double of_arm, double of_pool, double a, double pulls, double log_ratio) const override;
};

}  // namespace coterie::croc
