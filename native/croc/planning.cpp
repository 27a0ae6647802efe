#include "croc/planning.hpp"

#include "croc/claims.hpp"
#include "croc/estimate.hpp"
#include "croc/exploring.hpp"
#include "croc/factors.hpp"
#include "croc/shape.hpp"

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

/// What to do next; `certified` when nothing is left to do. `estimated`: the state whose estimate leads.
Mode decide(State& s, State& estimated) {
  const Constants& constants = s.constants;
  if (pairs_done(s) && certify(s, Proof::by_pairs, -1)) return Mode::certified;
  Index e = find_epoch(s);
  const double risk = misgrouping_risk(estimated);
  bool steady = is_steady(estimated);
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
    rival = pulls_for_freeze(estimated, s.arms.price);
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
bool go_on(State& s, State& estimated) {
  const Index since = s.arms.t - estimated.plan.planned_at, wait = patience(estimated);
  if (since >= wait) return false;
  if (s.queue.mode == Mode::pairs) return s.plan.greedy_spent <= s.plan.greedy_limit && pull_greedily(s);
  if (s.queue.mode != Mode::explore) return false;
  const double before = estimated.risk.total, risk = update_misgrouping_risk(estimated),
               largest = s.constants.largest_risk;
  const bool may_freeze = risk <= freeze_risk(s) && is_steady(estimated) && s.constants.freeze_looks * since >= wait;
  if ((risk < largest && largest <= before) || may_freeze) return false;
  explore(estimated);
  return true;
}

/// What is to be pulled, planned by the other estimate. OUT: the queue.
void take_queue(const Queue& from, Queue& to) {
  std::copy_n(from.arms.begin(), from.tail, to.arms.begin());
  to.head = 0;
  to.tail = from.tail;
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
  renew_shape(s);
  State& estimated = leading(s);
  estimated.queue.head = estimated.queue.tail = 0;
  if (!go_on(s, estimated)) {
    estimated.plan.planned_at = s.arms.t;
    raise_alarm(s);
    const Mode mode = s.queue.mode = decide(s, estimated);
    if (mode == Mode::pairs || mode == Mode::explore) choose_candidates(estimated, mode);
    if (mode == Mode::explore || (mode == Mode::pairs && !pull_greedily(s))) explore(estimated);
  }
  if (&estimated != &s) take_queue(estimated.queue, s.queue);
  forget_touched(s);
}

void see_proven(State& s) {
  s.flight.closed = false;
  renew_bound(s);
  renew(s);
  renew_shape(s);
  forget_touched(s);
  raise_alarm(s);
  if (pairs_done(s) && certify(s, Proof::by_pairs, -1)) return;
  const Index e = find_epoch(s);
  if (e >= 0 && unmet(s, e) == 0) certify(s, Proof::by_epoch, e);
}

}  // namespace coterie::croc
