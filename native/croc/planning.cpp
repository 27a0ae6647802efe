#include "croc/planning.hpp"

#include "croc/claims.hpp"
#include "croc/estimate.hpp"
#include "croc/exploring.hpp"
#include "croc/factors.hpp"

namespace coterie::croc {

namespace {

/// Whether the partition has stood for long enough to be frozen.
bool is_steady(const State& s) {
  return double(s.arms.t - s.estimate.changed_at) >= s.constants.steady * double(s.arms.t);
}

/// What the pulls of a round of the marked arms cost: work.mark.
double cost_of_marked(const State& s) {
  double cost = 0.0;
  for (Index m = 0; m < s.n_arms(); ++m) cost += double(s.work.mark[m]) * s.arms.price[m];
  return cost;
}

/// Whether pulls for the pairs from the start promise to cost no more than `rival`. The first forecast limits what such
/// pulls may cost in all: a wrong estimate must not hold the run for ever.
bool pairs_are_cheaper(State& s, double rival) {
  if (s.bound.used) forecast_trust(s, rival);
  const double needed = pulls_for_pairs(s, rival + 1.0, s.arms.price);
  if (!(needed <= rival)) return false;
  if (s.plan.greedy_limit == 0.0) s.plan.greedy_limit = s.constants.greedy_factor * needed + s.constants.greedy_extra;
  return true;
}

/// What to do next; `certified` when nothing is left to do.
Mode decide(State& s) {
  const Constants& constants = s.constants;
  if (pairs_done(s) && certify(s, Proof::by_pairs, -1)) return Mode::certified;
  Index e = find_epoch(s);
  const double risk = misgrouping_risk(s);
  bool steady = is_steady(s);
  if (s.metric.estimated) {
    steady = steady || risk <= constants.sure_risk;
    if (e >= 0 && risk <= freeze_risk(s) && unmet(s, e) > 0 && is_stale(s, e)) e = -1;
  }
  const bool may_be_greedy = !s.pairs.alarm && s.plan.greedy_spent <= s.plan.greedy_limit;
  double rival = INFINITE;  // the cost that the pairs from the start have to beat
  if (e >= 0 && unmet(s, e) == 0) {
    if (certify(s, Proof::by_epoch, e)) return Mode::certified;
    e = -1;  // tests that leave something open prove nothing: another candidate is frozen
  }
  if (e >= 0)
    rival = cost_of_marked(s);
  else if (risk < constants.largest_risk)
    rival = pulls_for_freeze(s, s.arms.price);
  if (may_be_greedy && (e >= 0 || risk < constants.largest_risk) && pairs_are_cheaper(s, rival)) return Mode::pairs;
  if (e < 0 && risk <= freeze_risk(s) && steady)
    e = freeze(s);
  else if (e < 0 || risk >= constants.largest_risk)
    return Mode::explore;
  if (unmet(s, e) == 0) return certify(s, Proof::by_epoch, e) ? Mode::certified : Mode::explore;
  const double floor = constants.least_share_in_rounds * double(s.arms.t) / double(s.n_arms());
  return compose_round(s, e, floor) ? Mode::rounds : Mode::explore;
}

/// Plan as before for the candidates of the last full plan, if it is not long ago. OUT: the queue. False if not.
bool go_on(State& s) {
  const Index since = s.arms.t - s.plan.planned_at, wait = patience(s);
  if (since >= wait) return false;
  if (s.queue.mode == Mode::pairs) return s.plan.greedy_spent <= s.plan.greedy_limit && pull_greedily(s);
  if (s.queue.mode != Mode::explore) return false;
  const double before = s.risk.total, risk = update_misgrouping_risk(s), largest = s.constants.largest_risk;
  const bool may_freeze = risk <= freeze_risk(s) && is_steady(s) && s.constants.freeze_looks * since >= wait;
  if ((risk < largest && largest <= before) || may_freeze) return false;
  explore(s);
  return true;
}

}  // namespace

bool certify(State& s, Proof by, Index e) {
  if (!(by == Proof::by_pairs ? covered_by_pairs(s) : covered_by_epoch(s, e))) return false;
  s.proof = by;
  s.certified_epoch = e;
  return true;
}

void plan(State& s) {
  s.queue.head = 0;
  s.queue.tail = 0;
  s.flight.closed = false;
  if (s.metric.estimated && repeat(s)) {
    s.queue.mode = Mode::explore;
    return;
  }
  renew_bound(s);
  renew(s);
  if (!go_on(s)) {
    s.plan.planned_at = s.arms.t;
    raise_alarm(s);
    const Mode mode = s.queue.mode = decide(s);
    if (mode == Mode::pairs || mode == Mode::explore) choose_candidates(s, mode);
    if (mode == Mode::explore || (mode == Mode::pairs && !pull_greedily(s))) explore(s);
  }
  forget_touched(s);
}

void see_proven(State& s) {
  s.flight.closed = false;
  renew_bound(s);
  renew(s);
  forget_touched(s);
  raise_alarm(s);
  if (pairs_done(s) && certify(s, Proof::by_pairs, -1)) return;
  const Index e = find_epoch(s);
  if (e >= 0 && unmet(s, e) == 0) certify(s, Proof::by_epoch, e);
}

}  // namespace coterie::croc
