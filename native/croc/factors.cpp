// What a round does to a test (docs/CROC.md, sections 4 and 15).
#include "croc/factors.hpp"

#include "croc/shape.hpp"

namespace coterie::croc {

double directed(ConstRow total, ConstRow guess, double spread, double weight) {
  double square = 0.0, along = 0.0, length = 0.0;
  for (std::size_t q = 0; q < total.size(); ++q) {
    const double theta = guess[q];
    square += theta * theta;
    along += theta * total[q];
    length += total[q] * total[q];
  }
  const double growth = 1.0 + weight * spread;
  // [‖θ0+τ²S‖²/(1+nτ²) − ‖θ0‖²]/(2τ²), multiplied out: no digits are lost when τ² is small or θ0 large.
  return (2.0 * along + spread * length - weight * square) / (2.0 * growth) -
         0.5 * double(total.size()) * std::log(growth);
}

namespace {

/// What the family says. If it fails, the run is left in the middle of a step, and is of no more use.
template <class Kernel>
auto ask_family(const State& s, Kernel kernel) {
  try {
    return kernel(*s.family);
  } catch (...) {
    s.broken = true;
    throw;
  }
}

}  // namespace

double use_contrast(State& s, const Judged& test) {
  const Row kept = test.kept;
  const double v = 1.0 / test.pulls + 1.0 / test.pool, weight = test.weight_before + 1.0 / v;
  if (test.weight_before == 0.0)  // what an earlier epoch left in this slot does not count
    std::fill(kept.begin(), kept.end(), 0.0);
  if (!s.traits.has_factor) {
    for (std::size_t q = 0; q < kept.size(); ++q) kept[q] += s.work.contrast[Index(q)] / v;  // S = Σ C_r/v_r
    return directed(kept, s.work.guess, test.spread, weight);
  }
  const Epoch& epoch = s.epochs[test.e];
  const Contrast round = {
      .contrast = s.work.contrast,
      .guess = s.work.guess,
      .arm_scores = test.arm_scores,
      .pool_scores = test.pool_scores,
      .bet = s.flight.bets[s.flight.place(test.round)],
      .shared = epoch.shared,
      .arm_pulls = test.pulls,
      .pool_pulls = test.pool,
      .spread = test.spread,
      .weight = weight,
      .level = test.level,
      .share = test.level / epoch.level,
      .home = test.home,
      .other = test.other,
  };
  return kept.back() = ask_family(s, [&](const Family& its) { return its.factor(round, s.learned, kept); });
}

double pulls_needed(const State& s, double level, double square, double pool) {
  if (s.traits.has_pulls_needed)
    return ask_family(s, [&](const Family& its) { return its.pulls_needed(level, square, pool, s.dim()); });
  return 2.0 * (level + s.constants.prior_cost * double(s.dim())) / square;
}

namespace {

/// Û and W of the groups of epoch e's candidate, which the estimate is, from all results so far, in the units in which
/// results come. OUT: work.raw, work.totals.
void candidate_centers(State& s, Index e) {
  if (s.metric.estimated) return raw_centers(s, s.epochs[e].labels);
  const Estimate& now = s.estimate;
  for (Index k = 0; k < s.n_groups(); ++k) {
    const Index name = s.epochs[e].labels[now.representative[k]];  // the group's number in the candidate
    s.work.totals[name] = now.totals[k];
    std::copy_n(now.centers[k].begin(), s.dim(), s.work.raw[name].begin());
  }
}

}  // namespace

void fix_bet(State& s, Index number, Index e) {
  const Round& round = s.flight.round(number);
  candidate_centers(s, e);
  if (s.metric.winsorised && s.learned.size() > 0) s.learned[0] = s.metric.far_share;
  const Row bet = s.flight.bets[s.flight.place(number)];
  ask_family(s, [&](const Family& its) { its.bet(s.work.raw, s.work.totals, s.metric.to_units, s.learned, bet); });
  if (s.shape) fix_shape_bet(s, s.epochs[e].labels, bet);
  if (!s.metric.arm_scales) return;
  for (Index i = round.first; i < round.first + round.size; ++i) {
    const Entry& entry = s.flight.entries[i];
    s.flight.entry_scores(i, 0) = double(entry.pulls) * arm_variance(s, entry.arm);
  }
}

void fix_shared(State& s, Index e) {
  if (s.shape) fix_weights(s, s.epochs[e].shared);
  if (!s.traits.has_freeze) return;
  candidate_centers(s, e);
  const Row shared = s.epochs[e].shared;
  ask_family(s, [&](const Family& its) { its.freeze(s.work.raw, s.work.totals, s.metric.to_units, shared); });
}

bool is_stale(State& s, Index e) {
  // A new epoch begins at nothing, and its level is higher; so the unmet tests of the old one must need more than that.
  const Epoch& epoch = s.epochs[e];
  const Constants& c = s.constants;
  const Index seen = std::max(epoch.frozen_at, s.plan.looked_at);
  if (!s.traits.has_quality || double(s.arms.t) < c.stale_growth * double(seen)) return false;
  s.plan.looked_at = s.arms.t;
  candidate_centers(s, e);
  Numbers& quality = s.work.square;  // (K, K) of what was frozen; 0: not yet known
  quality.fill(0.0);
  double needed = 0.0;
  for (Index m = 0; m < s.n_arms(); ++m) {
    const Index home = epoch.labels[m];
    for (Index k = 0; k < s.n_groups(); ++k) {
      if (k == home || epoch.against_core.met(m, k) == 1) continue;
      double& worth = quality(home, k);
      if (worth == 0.0)
        worth = std::max(ask_family(s,
                                    [&](const Family& its) {
                                      return its.quality(s.work.raw, s.metric.to_units, s.metric.scatter,
                                                         double(s.metric.degrees), epoch.shared, home, k);
                                    }),
                         1e-6);
      const double found = epoch.against_core.weight(m, k) > 0.0 ? epoch.against_core.kept(m, k).back() : 0.0;
      const double level = epoch.in_core[m] == 1 ? epoch.level : 0.5 * epoch.level;
      needed = std::max(needed, (1.0 - std::max(found, 0.0) / level) / worth);
    }
  }
  const double fresh = std::log(1.0 / (1.0 - c.first_share));  // by which each later level is higher
  const double level = epoch.level + double(s.freezes - epoch.number) * fresh;
  return needed * epoch.level > c.stale_loss * level;
}

void gather_round(State& s, Index number, Index e) {
  if (!s.traits.has_gather) return;
  const Index place = s.flight.place(number);
  const double results = double(s.flight.rounds[place].pulls);
  ask_family(s, [&](const Family& its) { its.gather(s.flight.scores[place], results, s.epochs[e].shared); });
}

void add_scores(const State& s, ConstRow scores, Row pooled) {
  if (s.traits.has_pool) return ask_family(s, [&](const Family& its) { its.pool(scores, pooled); });
  for (std::size_t q = 0; q < pooled.size(); ++q) pooled[q] += scores[q];
}

void score_result(State& s, Index number, Index entry, Index arm, ConstRow x) {
  if (!s.traits.has_score) return;
  const Index e = s.slot_of(s.flight.round(number).epoch);
  if (e < 0) return;  // the epoch is forgotten: nobody will use the round
  for (Index q = 0; q < s.dim(); ++q) s.work.contrast[q] = s.arms.offset(arm, q) + x[q];  // as the centers are
  const Index place = s.flight.place(number);
  ask_family(s, [&](const Family& its) {
    its.score(s.work.contrast, s.flight.bets[place], s.epochs[e].shared, s.flight.entry_scores[entry],
              s.flight.scores[place], s.epochs[e].labels[arm]);
  });
}

}  // namespace coterie::croc
