// What a round does to a test: bets, scores and factors, those of a known covariance or of the family of evidence.
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

/// log E of a test, known covariance: S = total, θ0 = guess, τ² = spread, n = weight (docs/CROC.md, section 4).
double directed(ConstRow total, ConstRow guess, double spread, double weight);

/// A test about to get a round's factor; the contrast is in work.contrast, θ0 in work.guess.
struct Judged {
  Row kept;
  ConstRow arm_scores, pool_scores;
  Index round, e;        // the number of the round, the slot of its epoch
  double pulls, pool;    // a, A
  double spread;         // τ²
  double weight_before;  // n before the round
  double level;          // what the test has to reach
  Index home, other;
};
/// A round's factor for one test. INOUT: test.kept. Returns log E.
double use_contrast(State& s, const Judged& test);
/// Pulls of an arm that a test at this level is expected to need, ‖θ‖² = square, against a pool of so many arms.
double pulls_needed(const State& s, double level, double square, double pool);
/// Fix what the tests of a round will be judged by, from all results so far. OUT: its bet.
void fix_bet(State& s, Index number, Index e);
/// Fix what the tests of a new epoch share, if the family has such numbers. OUT: epoch.shared.
void fix_shared(State& s, Index e);
/// Whether what was frozen with epoch e is so poor by now that its candidate had better be frozen again.
bool is_stale(State& s, Index e);
/// A complete round adds to what the tests of its epoch share.
void gather_round(State& s, Index number, Index e);
/// Take the scores of an arm into those of a pool. INOUT: pooled.
void add_scores(const State& s, ConstRow scores, Row pooled);
/// A result of a round, x from the arm's origin, goes to the scores of its entry.
void score_result(State& s, Index number, Index entry, Index arm, ConstRow x);

}  // namespace coterie::croc
