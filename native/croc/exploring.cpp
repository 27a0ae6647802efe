#include "croc/exploring.hpp"

#include "croc/planning.hpp"

namespace coterie::croc {

namespace {

/// Forced exploration: no arm should have fewer pulls than this.
double least_pulls(const State& s) {
  const double each = double(s.arms.t) / double(s.n_arms());
  return std::max(s.constants.root_floor * std::sqrt(each), s.constants.least_share * each);
}

/// The margin of an arm when what is under way is in: it is taken to grow with the arm's pulls. Dear arms have more.
double margin_ahead(const State& s, Index m) {
  const double margin = s.risk.margin[m];
  const Index committed = s.arms.committed[m], pulls = s.arms.pulls[m];
  if (margin <= 0.0 || committed == pulls) return margin + s.arms.reserve[m];
  return margin * double(committed) / double(pulls) + s.arms.reserve[m];
}

std::span<const Index> candidates(const State& s) {
  return {s.plan.candidates.data(), static_cast<std::size_t>(s.plan.n_candidates)};
}

/// The groups of the likeliest wrong readings: one is cut and two are merged, or two are one. OUT: the queue.
void explore_groups(State& s) {
  const Constants& constants = s.constants;
  const double balance = double(constants.balance);
  if (s.risk.merge_margin < constants.merge_cap) {
    const Index split = least_pulled(s, s.risk.split);
    s.queue.push_once(split);
    for (Index merged : {s.risk.merged_a, s.risk.merged_b}) {
      const Index arm = least_pulled(s, merged);
      if (spent(s, arm) <= balance * spent(s, split)) s.queue.push_once(arm);
    }
  }
  if (s.risk.chance > constants.chance_share * freeze_risk(s)) {
    const Index first = least_pulled(s, s.risk.chance_a);
    s.queue.push_once(first);
    s.queue.push_once(least_pulled(s, s.risk.chance_b));
    if (std::isfinite(s.risk.merge_margin)) {
      const Index arm = least_pulled(s, s.risk.split);
      if (balance * spent(s, arm) <= spent(s, first)) s.queue.push_once(arm);
    }
  }
}

/// Put the queue in index order, by insertion, as only the last few are out of place; nothing is then marked as in it.
void sort_queue(Queue& queue) {
  for (Index i = 0; i < queue.tail; ++i) {
    const Index arm = queue.arms[i];
    Index place = i;
    queue.holds[arm] = 0;
    for (; place > 0 && queue.arms[place - 1] > arm; --place) queue.arms[place] = queue.arms[place - 1];
    queue.arms[place] = arm;
  }
}

}  // namespace

double freeze_risk(const State& s) {
  return s.metric.estimated ? s.constants.freeze_risk_unknown : s.constants.freeze_risk;
}

bool pull_greedily(State& s) {
  const Index arm = least_committed(s);
  if (double(s.arms.committed[arm]) < least_pulls(s)) {
    s.queue.push(arm);
    return true;
  }
  const Index pairs = greedy_gains(s);
  if (pairs == 0) return false;
  const Index wanted = std::min(std::max(Index(1), pairs / s.constants.pairs_per_pull), s.n_arms());
  const Index count = best_gains(s, wanted);
  for (Index i = 0; i < count; ++i) s.queue.push(s.work.chosen[i]);
  if (count == 0) s.queue.push(arm);
  double cost = 0.0;
  for (Index i = 0; i < s.queue.tail; ++i) cost += s.arms.price[s.queue.arms[i]];
  s.plan.greedy_spent += cost;
  return true;
}

void explore(State& s) {
  const Constants& constants = s.constants;
  double smallest = INFINITE;
  Index least_sure = -1;
  for (Index m : candidates(s)) {
    const double margin = margin_ahead(s, m);
    if (margin < smallest) {
      smallest = margin;
      least_sure = m;
    }
  }
  const double limit = std::min(constants.margin_cap, smallest + constants.margin_window);
  const double floor = least_pulls(s);
  for (Index m : candidates(s)) {
    if (margin_ahead(s, m) < limit) {
      s.queue.push_once(m);
      const Index rival = s.risk.rival[m], other = least_pulled(s, rival);
      const double few = double(constants.rival_pulls * s.arms.pulls[m]);
      if (s.estimate.totals[rival] < few * std::sqrt(s.arms.price[m] / s.arms.price[other])) s.queue.push_once(other);
    } else if (double(s.arms.committed[m]) < floor) {
      s.queue.push_once(m);
    }
  }
  explore_groups(s);
  sort_queue(s.queue);
  if (s.queue.tail == 0) s.queue.push(least_sure >= 0 ? least_sure : least_committed(s));
}

void choose_candidates(State& s, Mode mode) {
  const double floor = least_pulls(s);
  const double in_view = s.constants.margin_cap + s.constants.drift;
  const auto lacks_a_pair = [&](Index m) {
    for (Index k = 0; k < s.n_groups(); ++k)
      if (k != s.estimate.labels[m] && s.pairs.settled(m, k) == 0) return true;
    return false;
  };
  Index count = 0;
  for (Index m = 0; m < s.n_arms(); ++m) {
    const bool take =
        mode == Mode::explore ? s.risk.margin[m] < in_view || double(s.arms.pulls[m]) < floor : lacks_a_pair(m);
    if (take) s.plan.candidates[count++] = m;
  }
  s.plan.n_candidates = count;
}

bool repeat(State& s) {
  const Index wanted = std::min(s.n_arms(), std::max(s.constants.repeats, s.dim() + 2));
  if (s.metric.degrees >= wanted) return false;
  Index under_way = 0;
  for (Index m = 0; m < s.n_arms(); ++m) under_way += s.arms.committed[m] - s.arms.pulls[m];
  const Index missing = wanted - s.metric.degrees - under_way;
  for (Index m = 0; m < s.n_arms(); ++m)
    if (s.queue.tail < missing && s.arms.committed[m] == 1) s.queue.push(m);
  if (s.queue.tail == 0) s.queue.push(least_committed(s));
  return true;
}

}  // namespace coterie::croc
