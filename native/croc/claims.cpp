// The claims of a frozen candidate and what they still need (docs/CROC.md, sections 3 and 5).
#include "croc/claims.hpp"

#include "croc/shape.hpp"

namespace coterie::croc {

namespace {

/// The core of group k: its representative, then its clearest arms, none of them dear.
void choose_core(const State& s, Epoch& epoch, Index k) {
  const Constants& c = s.constants;
  const State& estimated = leading(s);
  const std::span<const Index> labels = estimated.estimate.labels;
  const Index room = c.core_room(), lead = estimated.estimate.representative[k];
  Index size = 0;
  double dearest = INFINITE;
  for (Index m = 0; m < s.n_arms(); ++m) {
    if (labels[m] != k) continue;
    ++size;
    dearest = std::min(dearest, c.core_price * s.arms.price[m]);
  }
  epoch.core[k * room] = lead;
  epoch.in_core[lead] = 1;
  const Index wanted = size <= room ? size : c.core;
  for (Index i = 1; i < wanted; ++i) {
    Index best = -1;
    for (Index m = 0; m < s.n_arms(); ++m) {
      if (labels[m] != k || epoch.in_core[m] == 1 || s.arms.price[m] > dearest) continue;
      if (best < 0 || estimated.risk.margin[m] > estimated.risk.margin[best]) best = m;
    }
    if (best < 0) break;
    epoch.core[k * room + i] = best;
    epoch.in_core[best] = 1;
  }
}

/// The group whose representative the first core arm of the epoch's group k is, if arm m is known to differ from it by
/// a pair from the start; else −1.
Index settled_from_start(const State& s, const Epoch& epoch, Index m, Index k) {
  const Index lead = epoch.core[k * s.constants.core_room()], home = s.estimate.labels[lead];
  const bool settled = !s.pairs.alarm && s.estimate.representative[home] == lead && s.pairs.settled(m, home) == 1;
  return settled ? home : -1;
}

/// Both tests of arm m against the epoch's group k are met by its pair with the representative of `home`.
void meet_by_pair(const State& s, Epoch& epoch, Index m, Index k, Index home) {
  const PairCounts counts = s.pairs.counts(m, home);
  Tests &core = epoch.against_core, &group = epoch.against_group;
  core.met(m, k) = group.met(m, k) = 1;
  core.last(m, k) = -counts.arm;
  group.last(m, k) = -counts.lead;
  if (s.bound.used) {
    core.bound(m, k) = s.pairs.bound(m, home);
    core.kept(m, k).back() = s.pairs.evidence(m, home);
  }
}

/// Unmet tests of arms against cores and groups. OUT: work.mark, work.against.
Index unmet_of_arms(State& s, Epoch& epoch) {
  Work& w = s.work;
  Index total = 0;
  for (Index m = 0; m < s.n_arms(); ++m) {
    const bool core = epoch.in_core[m] == 1;
    for (Index k = 0; k < s.n_groups(); ++k) {
      const bool met_core = epoch.against_core.met(m, k) == 1;
      const bool met_group = core || epoch.against_group.met(m, k) == 1;
      if (k == epoch.labels[m] || (met_core && met_group)) continue;
      if (const Index home = settled_from_start(s, epoch, m, k); home >= 0) {
        meet_by_pair(s, epoch, m, k, home);
        continue;
      }
      const double worth = std::min(s.arms.price[m] / w.cheapest[k], s.constants.pool_price);
      if (!met_core) {
        ++total;
        w.against[k] += worth;
      }
      if (!met_group) {
        ++total;
        w.against[s.n_groups() + k] += worth;
      }
      w.mark[m] = 1;
    }
  }
  return total;
}

/// Whether the core arms at places i and j are shown to differ by their pair from the start. INOUT: their test.
bool met_by_pair(const State& s, Epoch& epoch, Index i, Index j) {
  const Index p = epoch.core[i], q = epoch.core[j];
  const Index pulls_p = s.arms.pulls[p], pulls_q = s.arms.pulls[q];
  const double found = pair_evidence_at(s, p, q, pulls_p, pulls_q);
  if (!(found >= s.pairs.level)) return false;
  Tests& tests = epoch.core_pairs;
  tests.met(i, j) = 1;
  tests.last(i, j) = -pulls_p;
  tests.last(j, i) = -pulls_q;
  if (s.bound.used) {
    tests.bound(i, j) = s.bound.at;
    tests.kept(i, j).back() = found;
  }
  return true;
}

/// Unmet tests of core arms with core arms. OUT: work.mark.
Index unmet_of_core_pairs(State& s, Epoch& epoch) {
  const Index room = s.constants.core_room();
  const bool use_pairs = !s.pairs.alarm && s.pairs.used() && pairs_have_units(s);
  // a core of one arm is never split
  const auto could_be_split = [&](Index i) { return epoch.core[i] >= 0 && epoch.core[i / room * room + 1] >= 0; };
  Index total = 0;
  for (Index i = 0; i < epoch.core.size(); ++i) {
    if (!could_be_split(i)) continue;
    for (Index j = 0; j < i / room * room; ++j) {
      if (!could_be_split(j) || epoch.core_pairs.met(i, j) == 1) continue;
      if (use_pairs && met_by_pair(s, epoch, i, j)) continue;
      ++total;
      s.work.mark[epoch.core[i]] = s.work.mark[epoch.core[j]] = 1;
    }
  }
  return total;
}

}  // namespace

void freeze_claims(State& s, Index e) {
  Epoch& epoch = s.epochs[e];
  epoch.in_core.fill(0);
  for (Tests* tests : {&epoch.against_group, &epoch.against_core, &epoch.core_pairs}) {
    tests->met.fill(0);
    tests->weight.fill(0.0);
  }
  epoch.core.fill(-1);
  for (Index k = 0; k < s.n_groups(); ++k) choose_core(s, epoch, k);
}

Index unmet(State& s, Index e) {
  Epoch& epoch = s.epochs[e];
  Work& w = s.work;
  const Index room = s.constants.core_room();
  w.mark.fill(0);
  w.against.fill(0.0);
  w.cheapest.fill(INFINITE);
  for (Index i = 0; i < epoch.core.size(); ++i)
    if (epoch.core[i] >= 0) w.cheapest[i / room] = std::min(w.cheapest[i / room], s.arms.price[epoch.core[i]]);
  const Index of_arms = unmet_of_arms(s, epoch);
  return of_arms + unmet_of_core_pairs(s, epoch);
}

bool pairs_done(const State& s) {
  if (s.pairs.alarm) return false;  // K is wrong, or a pair of equal arms was settled
  for (Index m = 0; m < s.n_arms(); ++m)
    for (Index k = 0; k < s.n_groups(); ++k)
      if (k != s.estimate.labels[m] && s.pairs.settled(m, k) == 0) return false;
  return true;
}

namespace {

/// Whether the arm is settled against the representatives of all groups but this one.
bool settled_elsewhere(const State& s, Index m, Index home) {
  for (Index k = 0; k < s.n_groups(); ++k)
    if (k != home && s.pairs.settled(m, k) == 0) return false;
  return true;
}

}  // namespace

void raise_alarm(State& s) {
  Pairs& pairs = s.pairs;
  const std::span<const Index> leads = s.estimate.representative;
  if (pairs.alarm) return;
  for (Index k = 0; k < s.n_groups(); ++k)
    if (!settled_elsewhere(s, leads[k], k)) return;  // two may share a group: then the arm would only show that
  for (Index m = 0; m < s.n_arms(); ++m) {
    const Index home = s.estimate.labels[m];
    if (leads[home] == m || !settled_elsewhere(s, m, home)) continue;
    test_pair(s, m, home);
    if (pairs.settled(m, home) == 0) continue;
    pairs.alarm = true;
    std::copy(leads.begin(), leads.end(), pairs.alarmed.begin());
    pairs.alarmed[s.n_groups()] = m;
    return;
  }
}

}  // namespace coterie::croc
