// A family of evidence: what knows the noise (docs/CROC.md, section 15).
//
// - `factor`: what a complete round does to one test. It adds to the numbers that the test keeps and returns the test's
//   log-evidence. This alone enters the proof.
// - `pulls_needed`: how many pulls of an arm a test is expected to need, for the sampler.
// - `bet` and `score`, if contrasts of means are not enough: numbers that are fixed when a round is composed, and what
//   each result of the round then adds to the scores of its arm, and of the round.
// - `pool`: how the scores of an arm go into those of a pool, if they are not simply added up.
// - `freeze` and `gather`: numbers that all tests of an epoch share, at the freeze, and after each complete round; and
//   `quality`: what they are still worth, so that the candidate is frozen again if they were poor.
//
// Families are immutable: runs in several threads may share one.
#pragma once

#include <cmath>
#include <string>

#include "base/table.hpp"
#include "croc/constants.hpp"

namespace coterie::croc {

enum class Shape { full, diagonal, scalar };    // what an estimated metric may be
enum class Scale { successes, events, times };  // what results that count from zero are, if the metric is estimated

/// What a run has to know of its family: room for its numbers, and how results are taken.
struct Traits {
  std::string name = "known covariance";
  double pair_share = 0.2;      // α: the share of δ for pairs from the start, as if the covariance were known; 0: none
  double variance_share = 0.0;  // w: the share of δ for an upper bound on the variance, in units of which pairs are
  Index kept = -1;              // numbers that a test keeps; −1: d
  Index bet_size = 0;
  Index scores = 0;  // scores of an arm in a round
  Index round_scores = 0;
  Index shared = 0;        // numbers that the tests of an epoch share
  Index learned = 0;       // numbers that the family learns over all rounds
  bool estimated = false;  // results come without a known size of the noise: the metric is estimated
  Shape shape = Shape::full;
  bool winsorised = false;       // far results are pulled in for the estimate and the bets; never in the evidence
  bool shuffled = false;         // the asks of a round come in a random order: a drift within it does no harm
  bool from_zero = false;        // positions count from zero, not from the first result
  bool pools_by_growth = false;  // the pools of a round are as large as `pulls_needed` says that they pay
  bool exact_moves = false;  // between two estimates, a center moves by the result; else about towards its arm's mean
  bool arm_scales = false;   // the first score of an arm is its pulls times the variance of its results, fixed with it
  double trials = 0.0;       // of a count of successes; 0 if results are no such counts
  Scale scale = Scale::successes;
  // which of the optional kernels there are
  bool has_factor = false;  // without it: the known covariance, which is part of croc/factors
  bool has_bet = false, has_score = false, has_pool = false, has_freeze = false, has_gather = false;
  bool has_quality = false;
  bool has_pulls_needed = false;
  bool has_shape = false;  // a second estimate, of features, beside that of the location (croc/shape.hpp)
};

/// A result from zero on a scale on which its variance does not depend on the rate: about 1 for counts (Anscombe), for
/// times that of the logarithm of an exponential one.
inline double stabilised(double value, const Traits& traits) {
  switch (traits.scale) {
    case Scale::events:
      return 2.0 * std::sqrt(value + 0.375);
    case Scale::times:
      return std::log(value);
    case Scale::successes:
      break;
  }
  return 2.0 * std::sqrt(traits.trials + 0.5) * std::asin(std::sqrt((value + 0.375) / (traits.trials + 0.75)));
}

/// The groups in the space of features, for a bet.
struct ShapedGroups {
  const Numbers& centers;  // (K, D) from `origin`
  ConstRow totals;         // (K)
  const Numbers& metric;   // (D, D)
  ConstRow origin;         // (D)
  ConstRow middle, scale;  // (d) o, from the common origin, and s
};

/// A round's results as one test sees them.
struct Contrast {
  ConstRow contrast;                 // C_r: the mean of the round's results of the arm minus that of the pool
  ConstRow guess;                    // θ0 of the freeze
  ConstRow arm_scores, pool_scores;  // over the results of each side
  ConstRow bet;                      // of the round
  ConstRow shared;                   // of the epoch
  double arm_pulls, pool_pulls;      // a and A, so that v = 1/a + 1/A
  double spread;                     // τ² of the freeze
  double weight;                     // n = Σ 1/v, with this round
  double level;                      // what the test has to reach
  double share;                      // 1 if that is b, ½ if it is b/2
  Index home, other;                 // the group of the arm, and that of the pool
};

class Family {
 public:
  explicit Family(Traits traits) : traits(std::move(traits)) {}
  virtual ~Family() = default;

  /// Returns log E, or, below the level, any upper bound on it that is below too. INOUT: learned, kept.
  virtual double factor(const Contrast& round, Row learned, Row kept) const;
  /// Pulls of an arm that a test at this level is expected to need. `square`: the squared distance of the two means;
  /// `pool`: pulls of the pool for each pull of the arm.
  virtual double pulls_needed(double level, double square, double pool, Index dim) const;
  /// What the round's tests will be judged by. `centers` (K, d), `totals`: Û and W of the candidate's groups; `metric`:
  /// T with T'·T = Σ̂⁻¹, empty if the metric is not estimated. OUT: bet.
  virtual void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const;
  /// The rest of the bet, if there is a second estimate. OUT: bet, behind what the other one has filled.
  virtual void bet_on_shape(const ShapedGroups& groups, Row bet) const;
  /// Add a result of the round to the scores, in the coordinates of the centers that `bet` was given. INOUT: scores, of
  /// its arm; round_scores.
  virtual void score(ConstRow position, ConstRow bet, ConstRow shared, Row scores, Row round_scores, Index home) const;
  /// Take the scores of an arm into those of a pool, zeros at first. INOUT: pooled.
  virtual void pool(ConstRow scores, Row pooled) const;
  /// What the tests of a new epoch share. OUT: shared.
  virtual void freeze(const Numbers& centers, ConstRow totals, const Numbers& metric, Row shared) const;
  /// A complete round, of so many results. INOUT: shared.
  virtual void gather(ConstRow round_scores, double results, Row shared) const;
  /// How good what was frozen still is, as a share of the growth of the tests between two groups if frozen now.
  virtual double quality(const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees,
                         ConstRow shared, Index home, Index k) const;

  const Traits traits;
};

}  // namespace coterie::croc
