// An upper bound σ₊ on the standard deviation of Gaussian noise, in units of which the pairs from the start are.
//
// The noise is the same in all directions, and there is one bound, or coordinates are independent and each has its own
// (docs/EVIDENCE.md, section 4). A *residual* is what a result differs by from the mean of its arm's results before it.
// It counts if the result was asked for while no other pull was under way: then that mean is fixed when it is asked
// for, and the result independent of all that was known. With R the sum of their squares and ν their number,
//
//     V(σ²) = Σ_λ w_λ·(1+λ)^(ν/2)·e^(−λR/(2σ²)),     λ = 0 (weight ½), 8, 4, …, 2⁻⁹ (weights ½/13),
//
// is a supermartingale at the true σ, whatever the arms' means are. σ₊² is where V reaches 1/(w·δ), so that σ₊ < σ ever
// has probability at most w·δ.
#pragma once

#include "croc/family.hpp"

namespace coterie::croc {

struct State;

struct VarianceBound {
  VarianceBound(Index dim, const Traits& traits, double log_inverse_delta);

  bool used;           // the pairs from the start are in units of the bound; else all tables are empty
  double level = 0.0;  // log(1/(w·δ)), or log(d/(w·δ)) if each coordinate has a bound of its own
  double trust = 1.0;  // about the share of a pair's energy that is left in units of the bound; 1 if the noise is known
  Index residuals = 0;           // results that the bound is from
  Index residuals_seen = 0;      // `residuals` when the bound was last computed
  Index at = 0;                  // t at that time, 0 while there is no bound
  double root = 0.0;             // R/(2σ₊²), the same for every coordinate
  Zeros<double> squares;         // (d) sum of squared residuals
  Zeros<double> reach;           // (d) largest distance of a result from the origin
  Zeros<double> precision;       // (d) 1/σ₊², by which the energy of pairs is multiplied; 0 while σ₊ is infinite
  Zeros<double> precision_seen;  // (d) … when all pairs were last evaluated with it

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("trust", trust);
    visit("residuals", residuals);
    visit("residuals_seen", residuals_seen);
    visit("at", at);
    visit("root", root);
    visit("squares", squares);
    visit("reach", reach);
    visit("precision", precision);
    visit("precision_seen", precision_seen);
  }
};

/// A result of the arm, from its origin, before it is added to the arm's. INOUT: the bound.
void take_residual(State& s, Index arm, ConstRow x);
/// σ₊ anew if there are new residuals; then, if it is smaller, all pairs. INOUT: the bound, the pairs.
void renew_bound(State& s);
/// The share of a pair's energy that is left in units of σ₊ after so many more pulls. OUT: bound.trust.
void forecast_trust(State& s, double pulls);
/// Where log V(z) falls to the level, from `start` on.
double bound_root(double degrees, double level, double start, const Constants& constants);

}  // namespace coterie::croc
