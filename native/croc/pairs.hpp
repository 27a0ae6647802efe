// Evidence from the start that two arms differ, in units of the noise: logarithms.
//
// Proofs are in docs/CROC.md, section 2; coterie.evidence.pairs has the formulas without a state. Families of evidence
// without pairs from the start have an infinite level: then no pair is evaluated.
#pragma once

#include <limits>
#include <memory>

#include "croc/arms.hpp"
#include "croc/family.hpp"

namespace coterie::croc {

struct State;

/// Tables of the pairs' mixture over scales ρ, by counts n = 0, 1, …, P, then those of the grid; the same for all runs
/// of a room and dimension.
struct Mixture {
  static constexpr Index CREST = 128;
  static constexpr double CREST_STEP = 2.0;

  Mixture(Index room, Index dim, const Constants& constants);
  /// … as runs share them: made once, by whichever thread comes first.
  static std::shared_ptr<const Mixture> shared(Index room, Index dim, const Constants& constants);

  /// log of the mean over ρ of (1+ρn)^(−d/2)·exp(½·ρn/(1+ρn)·energy), energy = n‖Ȳ‖²/v. `row`: of n in the tables.
  double value(Index row, double energy) const;
  /// What the mixture does not exceed: it is convex in the energy, so a chord; where no chord is, the sup over ρ.
  double ceiling(Index row, double energy) const;

  Index dim;
  Numbers base;   // (P+1+places, scales) log p(ρ) − (d/2)·log(1+ρn)
  Numbers slope;  // (P+1+places, scales) ½·ρn/(1+ρn)
  Numbers crest;  // (P+1+places, CREST+1) the mixture at energies 0, CREST_STEP, 2·CREST_STEP, …
};

struct PairCounts {
  Index arm = 0, lead = 0;

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("arm", arm);
    visit("lead", lead);
  }
};

struct Pairs {
  Pairs(Index n_arms, Index n_groups, Index dim, Index room, double log_inverse_delta, const Traits& traits,
        const Constants& constants);

  bool used() const { return level < std::numeric_limits<double>::infinity(); }

  double level;  // log(H/(α·δ)); infinite if α = 0: no pairs from the start
  std::shared_ptr<const Mixture> mixture;
  Table<Flag> settled;       // (M, K) arm and representative of k are known to differ
  Table<PairCounts> counts;  // (M, K) counts of arm and representative when `evidence` was found
  Numbers evidence;          // (M, K) log-evidence of arm against the representative of k, latched; −∞ at first
  Table<Index> bound;        // (M, K) t of the σ₊ in `evidence`; empty without a variance bound
  bool alarm = false;        // K + 1 arms are known to differ pairwise: K is too small
  Zeros<Index> alarmed;      // (K+1) these arms

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("level", level);
    visit("settled", settled);
    visit("counts", counts);
    visit("evidence", evidence);
    visit("bound", bound);
    visit("alarm", alarm);
    visit("alarmed", alarmed);
  }
};

/// Evidence from the start that arms i and j differ, at these counts: weighted maximum over block ratio and side. Exact
/// if it is above `floor`, which is returned otherwise. Beyond P, the counts are those of the grid.
double pair_evidence_above(const State& s, Index i, Index j, Index pulls_i, Index pulls_j, double floor);
/// … however small it is.
double pair_evidence_at(const State& s, Index i, Index j, Index pulls_i, Index pulls_j);
/// Whether the noise is known, or there is an upper bound on its variance.
bool pairs_have_units(const State& s);
/// Latch arm m against the representative of k if the evidence from the start suffices. INOUT: pairs.
void test_pair(State& s, Index m, Index k);

}  // namespace coterie::croc
