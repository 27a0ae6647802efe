// A round's composition is fixed before any of its results is seen, and contrasts are formed only within a round: that
// is what makes every frozen test a martingale.
#include <algorithm>

#include "croc/claims.hpp"
#include "croc/factors.hpp"
#include "croc/planning.hpp"
#include "croc/shape.hpp"

namespace coterie::croc {

namespace {

/// ‖Û_j − Û_k‖² of the estimate, added up in order.
double squared_gap(const Numbers& centers, Index j, Index k) {
  double gap = 0.0;
  for (Index q = 0; q < centers.columns(); ++q) {
    const double away = centers(j, q) - centers(k, q);
    gap += away * away;
  }
  return gap;
}

struct PoolsWanted {
  Index core, group;
};

/// Pulls of the core and of the group k that bring its unmet tests furthest for the pulls that they cost. A test grows
/// faster with a larger pool, and some families hardly at all with a small one. `pulled`: pulls of the group that the
/// round has anyway. Tests against the core need half the level, so half the growth is enough for them.
PoolsWanted pools_wanted(const State& s, Index e, Index k, Index pulled) {
  const Estimate& now = leading(s).estimate;
  const Index n_groups = s.n_groups(), dim = leading(s).dim();
  const double in_cores = s.work.against[k], in_groups = s.work.against[n_groups + k];
  if (in_cores + in_groups == 0.0) return {0, 0};
  const Index here = now.labels[s.epochs[e].core[k * s.constants.core_room()]];
  double square = INFINITE;
  for (Index j = 0; j < n_groups; ++j) {
    if (j == here) continue;
    const double gap = squared_gap(now.centers, here, j);
    const double sure = gap - double(dim) * (1.0 / now.totals[here] + 1.0 / now.totals[j]);
    square = std::min(square, std::max({sure, s.constants.least_gap * gap, 1e-300}));
  }
  const auto needed = [&](Index pool) { return pulls_needed(s, 1.0, square, double(pool)); };
  const double tests = std::max(in_groups, in_cores);
  double best = INFINITE;
  Index wanted = 1;
  for (Index size = 1; double(size) <= std::max(tests, 1.0); size += std::max(Index(1), size / 4)) {
    const double cost = (tests + double(std::max(size - pulled, Index(0)))) * needed(std::max(size, pulled));
    if (cost < best * (1.0 - 1e-9)) {
      best = cost;
      wanted = size;
    }
  }
  const double slowest = 2.0 * needed(std::max(wanted, pulled));
  Index core = 1;
  while (core < std::max(wanted, pulled) && needed(core) > slowest) ++core;
  if (in_groups == 0.0) core = std::max(wanted, Index(1));  // only core arms are left: these need the whole level
  return {core, in_groups > 0.0 ? wanted : 0};
}

/// log binom(a+A, a): what the evidence of a round cannot exceed, if it rests on how results are assigned.
double log_ways(double chosen, double others) {
  return std::lgamma(chosen + others + 1.0) - std::lgamma(chosen + 1.0) - std::lgamma(others + 1.0);
}

struct Lack {
  double evidence = INFINITE;  // the least that an unmet test lacks
  double pool = INFINITE;      // the smallest pool that one is against
};

/// Of the unmet tests of arms outside the cores. `in_round` (K): pulls of the groups.
Lack least_lack(const State& s, Index e, std::span<const Index> pulls, std::span<const Index> in_round) {
  const Epoch& epoch = s.epochs[e];
  const Tests& tests = epoch.against_group;
  const Index last = tests.kept.columns() - 1;
  Lack least;
  for (Index m = 0; m < s.n_arms(); ++m) {
    if (epoch.in_core[m] == 1 || pulls[m] == 0) continue;
    for (Index k = 0; k < s.n_groups(); ++k) {
      if (k == epoch.labels[m] || tests.met(m, k) == 1) continue;
      const double found = tests.weight(m, k) > 0.0 ? tests.kept(m, k, last) : 0.0;
      least.evidence = std::min(least.evidence, epoch.level - std::max(found, 0.0));
      least.pool = std::min(least.pool, double(in_round[k]));
    }
  }
  return least;
}

/// Larger rounds where the evidence of a small one is at its bound, and several would be needed anyway. With a pulls of
/// an arm against A of a pool that bound is log binom(a+A, a), more than a times that of one pull. So: as many pulls as
/// no unmet test can do without. INOUT: work.composition. Work space: work.counts.
void enlarge(State& s, Index e) {
  const Constants& constants = s.constants;
  const Epoch& epoch = s.epochs[e];
  const Index n_groups = s.n_groups(), room = constants.core_room();
  auto &pulls = s.work.composition, &in_round = s.work.counts;
  Index arms = 0;
  in_round.fill(0);
  for (Index m = 0; m < s.n_arms(); ++m) {
    if (pulls[m] > 0) {
      ++arms;
      in_round[epoch.labels[m]] += pulls[m];
    }
  }
  const Lack lack = least_lack(s, e, pulls, in_round);
  double square = INFINITE;
  for (Index k = 0; k < n_groups; ++k)
    for (Index j = 0; j < k; ++j) square = std::min(square, squared_gap(leading(s).estimate.centers, k, j));
  if (!std::isfinite(lack.evidence)) return;
  const double bound = std::log(1.0 + lack.pool);
  if (lack.evidence <= bound || 1.0 / pulls_needed(s, 1.0, square, lack.pool) < constants.at_bound * bound) return;
  double best = INFINITE;
  Index repeats = 1, more = 0;
  for (Index a = 1; a <= constants.most_repeats; ++a) {
    Index extra = 0;
    while (log_ways(double(a), double(a) * lack.pool + double(extra)) < lack.evidence * constants.bound_margin &&
           extra < arms)
      ++extra;
    const double cost = double(a * arms + n_groups * extra);
    if (extra < arms && cost < best) {
      best = cost;
      repeats = a;
      more = extra;
    }
  }
  if (!std::isfinite(best)) return;
  for (Index& count : pulls) count *= repeats;
  for (Index k = 0; k < n_groups; ++k) {
    Index size = 0;
    while (size < room && epoch.core[k * room + size] >= 0) ++size;
    for (Index i = 0; i < size; ++i) {
      Index& count = pulls[epoch.core[k * room + i]];
      if (count == 0) continue;
      count += (more + size - 1 - i) / size;
      while (size > 1 && log_ways(double(count), double(count)) < 0.5 * lack.evidence * constants.bound_margin) ++count;
    }
  }
}

/// Where every arm is of a core and gaps are wide: all arms that a round asks for are tested and pools of others at
/// once, so they are pulled alike, as often as brings the test that lacks most to its level if it wins at most a little
/// less than its bound. False if that is not so. INOUT: work.composition. Work space: work.counts.
bool pull_alike(State& s, Index e) {
  const Constants& constants = s.constants;
  const Epoch& epoch = s.epochs[e];
  const Tests& tests = epoch.against_core;
  const Index n_groups = s.n_groups(), last = tests.kept.columns() - 1;
  auto &pulls = s.work.composition, &in_round = s.work.counts;
  if (std::ranges::any_of(epoch.in_core, [](Flag in) { return in == 0; })) return false;
  in_round.fill(0);
  for (Index m = 0; m < s.n_arms(); ++m) in_round[epoch.labels[m]] += pulls[m];
  double lack = 0.0, pool = INFINITE;
  for (Index k = 0; k < n_groups; ++k) {
    double most = 0.0;
    for (Index m = 0; m < s.n_arms(); ++m) {
      if (k == epoch.labels[m] || tests.met(m, k) == 1) continue;
      const double found = tests.weight(m, k) > 0.0 ? tests.kept(m, k, last) : 0.0;
      most = std::max(most, epoch.level - std::max(found, 0.0));
    }
    if (most == 0.0) continue;
    lack = std::max(lack, most);
    pool = std::min(pool, std::max(1.0, double(in_round[k])));
    if (in_round[k] == 0) pulls[epoch.core[k * constants.core_room()]] = 1;
  }
  const double bound = std::log(1.0 + pool);
  if (lack <= bound) return false;
  double square = INFINITE;
  for (Index k = 0; k < n_groups; ++k)
    for (Index j = 0; j < k; ++j) square = std::min(square, squared_gap(leading(s).estimate.centers, k, j));
  if (1.0 / pulls_needed(s, 1.0, square, pool) < constants.at_bound * bound) return false;
  const auto promised = [&](double a) {  // by a pulls of each arm
    return std::min(log_ways(a, a * pool), a / pulls_needed(s, 1.0, square, a * pool));
  };
  Index repeats = 1;
  while (repeats < constants.most_repeats && promised(double(repeats)) < lack * constants.bound_margin + std::log(2.0))
    ++repeats;
  for (Index& count : pulls) count *= repeats;
  return true;
}

/// Pull group k more often until its pools are as large as the tests against them deserve, by the core arm whose pulls
/// cost least. INOUT: work.composition.
void top_up(State& s, Index e, Index k) {
  const Epoch& epoch = s.epochs[e];
  const Index room = s.constants.core_room();
  auto& pulls = s.work.composition;
  Index in_group = 0, in_core = 0;
  for (Index m = 0; m < s.n_arms(); ++m) {
    if (epoch.labels[m] == k && pulls[m] == 1) {
      ++in_group;
      in_core += epoch.in_core[m];
    }
  }
  const auto root = [&](double worth) { return Index(std::ceil(s.constants.top_up * std::sqrt(worth))); };
  PoolsWanted wanted{root(s.work.against[k]), root(s.work.against[s.n_groups() + k])};
  if (s.traits.pools_by_growth) wanted = pools_wanted(s, e, k, in_group);
  while (in_core < wanted.core || in_group < wanted.group) {
    Index least = -1;
    double fewest = 0.0;
    for (Index i = 0; i < room; ++i) {
      const Index arm = epoch.core[k * room + i];
      if (arm < 0) continue;
      const double its = double(s.arms.committed[arm] + pulls[arm]) * s.arms.price[arm];
      if (least < 0 || its < fewest) {
        least = arm;
        fewest = its;
      }
    }
    ++pulls[least];
    ++in_group;
    ++in_core;
  }
}

}  // namespace

Index freeze(State& s) {
  const Index e = open_epoch(s);
  freeze_claims(s, e);
  fix_shared(s, e);
  return e;
}

/// What the unmet tests need is in work.mark and work.against. With many rounds under way, several times that: there
/// are many workers. Pulls under way count as made.
bool compose_round(State& s, Index e, double floor) {
  auto& pulls = s.work.composition;
  for (Index m = 0; m < s.n_arms(); ++m) pulls[m] = s.work.mark[m] == 1 || double(s.arms.committed[m]) < floor ? 1 : 0;
  if (!(s.traits.has_shape && pull_alike(s, e))) {
    for (Index k = 0; k < s.n_groups(); ++k) top_up(s, e, k);
    if (s.traits.has_pool && leading(s).risk.total <= s.constants.enlarge_risk) enlarge(s, e);
  }
  const Index times = Index(1) << (s.flight.open / s.constants.scale_up);
  for (Index& count : pulls) count *= times;
  if (!s.flight.start(pulls, s.epochs[e].number)) return false;
  if (s.traits.has_bet) fix_bet(s, s.flight.last, e);
  return true;
}

}  // namespace coterie::croc
