// What a complete round does to the claims of its epoch (docs/CROC.md, sections 4 and 5).
#include "croc/claims.hpp"
#include "croc/factors.hpp"

namespace coterie::croc {

namespace {

/// Pulls, means and scores of a round in every core and every group, means from the origin of the core's first arm.
/// OUT: work.pool_pulls, work.pool_means, work.pool_scores.
void fill_pools(State& s, const Epoch& epoch, const Round& round) {
  Work& w = s.work;
  const Index n_groups = s.n_groups(), dim = s.dim(), room = s.constants.core_room();
  const bool scored = w.pool_scores.columns() > 0;
  w.pool_pulls.fill(0.0);
  w.pool_means.fill(0.0);
  w.pool_scores.fill(0.0);
  for (Index i = round.first; i < round.first + round.size; ++i) {
    const Entry& entry = s.flight.entries[i];
    const Index m = entry.arm, k = epoch.labels[m], lead = epoch.core[k * room];
    const double n = double(entry.pulls);
    const bool core = epoch.in_core[m] == 1;
    const Index group = n_groups + k;
    w.pool_pulls[group] += n;
    if (core) w.pool_pulls[k] += n;
    for (Index q = 0; q < dim; ++q) {
      const double sum = s.flight.entry_sums(i, q) + n * s.arms.apart(m, lead, q);
      w.pool_means(group, q) += sum;
      if (core) w.pool_means(k, q) += sum;
    }
    if (!scored) continue;
    add_scores(s, s.flight.entry_scores[i], w.pool_scores[group]);
    if (core) add_scores(s, s.flight.entry_scores[i], w.pool_scores[k]);
  }
  for (Index k = 0; k < 2 * n_groups; ++k)
    for (double& coordinate : w.pool_means[k]) coordinate /= std::max(w.pool_pulls[k], 1.0);
}

/// The tests of one kind for arms of the round: against cores, or against groups.
struct Side {
  Tests& tests;
  Index pool;    // its row in work.pool_*
  double level;  // what the test has to reach
};

/// One test of the arm of an entry against a pool of group k gets its factor. INOUT: the test.
void use_in_test(State& s, const Side& side, Index number, Index e, Index i, Index k, Index lead, double spread) {
  Work& w = s.work;
  const Entry& entry = s.flight.entries[i];
  const Index m = entry.arm;
  const double pulls = double(entry.pulls), pool = w.pool_pulls[side.pool];
  for (Index q = 0; q < s.dim(); ++q)  // C_r, from the origins of the arm and of the core's first arm
    w.contrast[q] = s.arms.apart(m, lead, q) + (s.flight.entry_sums(i, q) / pulls - w.pool_means(side.pool, q));
  double& weight = side.tests.weight(m, k);
  const double value = use_contrast(s, {side.tests.kept(m, k), s.flight.entry_scores[i], w.pool_scores[side.pool],
                                        number, e, pulls, pool, spread, weight, side.level, s.epochs[e].labels[m], k});
  weight += 1.0 / (1.0 / pulls + 1.0 / pool);
  if (value >= side.level) {
    side.tests.met(m, k) = 1;
    side.tests.last(m, k) = number;
  }
}

/// Every unmet test of two core arms that are both in the round gets its factor; its level is b/2. INOUT: tests.
void use_in_core_pairs(State& s, Index number, Index e) {
  Epoch& epoch = s.epochs[e];
  Work& w = s.work;
  Tests& tests = epoch.core_pairs;
  const Index room = s.constants.core_room();
  const double level = 0.5 * epoch.level;
  for (Index i = 0; i < epoch.core.size(); ++i)
    w.core_entry[i] = epoch.core[i] < 0 ? -1 : s.flight.entry_of(number, epoch.core[i]);
  for (Index i = 0; i < epoch.core.size(); ++i) {
    const Index mine = w.core_entry[i], home = i / room;
    if (mine < 0) continue;
    const double pulls = double(s.flight.entries[mine].pulls);
    for (Index j = 0; j < home * room; ++j) {
      const Index its = w.core_entry[j], k = j / room;
      if (its < 0 || tests.met(i, j) == 1) continue;
      const double pool = double(s.flight.entries[its].pulls);
      for (Index q = 0; q < s.dim(); ++q) {
        const double here = s.flight.entry_sums(mine, q) / pulls, there = s.flight.entry_sums(its, q) / pool;
        w.contrast[q] = s.arms.apart(epoch.core[i], epoch.core[j], q) + (here - there);
      }
      const double spread = frozen_difference(s, e, home, k, epoch.core[home * room], epoch.core[k * room]);
      const double value = use_contrast(s, {tests.kept(i, j), s.flight.entry_scores[mine], s.flight.entry_scores[its],
                                            number, e, pulls, pool, spread, tests.weight(i, j), level, home, k});
      tests.weight(i, j) += 1.0 / (1.0 / pulls + 1.0 / pool);
      if (value >= level) {
        tests.met(i, j) = 1;
        tests.last(i, j) = number;
      }
    }
  }
}

}  // namespace

void use_round(State& s, Index number, Index e) {
  Epoch& epoch = s.epochs[e];
  const Round& round = s.flight.round(number);
  const Index n_groups = s.n_groups(), room = s.constants.core_room();
  const double b = epoch.level;
  fill_pools(s, epoch, round);
  gather_round(s, number, e);
  for (Index i = round.first; i < round.first + round.size; ++i) {
    const Index m = s.flight.entries[i].arm, home = epoch.labels[m];
    const bool core = epoch.in_core[m] == 1;
    for (Index k = 0; k < n_groups; ++k) {
      const bool use_core = epoch.against_core.met(m, k) == 0;
      const bool use_group = !core && epoch.against_group.met(m, k) == 0;
      if (k == home || !(use_core || use_group)) continue;
      const Index lead = epoch.core[k * room];
      const double spread = frozen_difference(s, e, home, k, epoch.core[home * room], lead);
      if (use_core && s.work.pool_pulls[k] != 0.0)
        use_in_test(s, {epoch.against_core, k, core ? b : 0.5 * b}, number, e, i, k, lead, spread);
      if (use_group && s.work.pool_pulls[n_groups + k] != 0.0)
        use_in_test(s, {epoch.against_group, n_groups + k, b}, number, e, i, k, lead, spread);
    }
  }
  use_in_core_pairs(s, number, e);
}

void close_ready(State& s) {
  std::uint64_t held = 0;  // bits: slots of epochs
  for (Index number = s.flight.oldest; number <= s.flight.last; ++number) {
    Round& round = s.flight.round(number);
    const Index e = s.slot_of(round.epoch);
    const bool holds_up = e >= 0 && ((held >> e) & 1) != 0;
    if (round.left == 0 && !holds_up) {
      if (e >= 0) use_round(s, number, e);
      round.left = -1;
      --s.flight.open;
      s.flight.closed = true;
    } else if (round.left >= 0 && e >= 0) {
      held |= std::uint64_t(1) << e;
    }
  }
  s.flight.forget_closed();
}

}  // namespace coterie::croc
