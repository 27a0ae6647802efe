// Whether what is met says all that is claimed: read off the candidate anew, before a run is called proven.
//
// docs/CROC.md, sections 2 and 5, have the rule: every arm differs from every other group. croc/claims keeps count of
// what is unmet; here nothing is counted along the way, and the verifier has the rule once more
// (coterie.certificate.checking). It takes one look at every arm and group, when a run is about to stop.
#include "croc/claims.hpp"

namespace coterie::croc {

bool covered_by_pairs(const State& s) {
  const Estimate& now = s.estimate;
  if (s.pairs.alarm) return false;
  for (Index k = 0; k < s.n_groups(); ++k)
    if (now.labels[now.representative[k]] != k) return false;
  for (Index m = 0; m < s.n_arms(); ++m)
    for (Index k = 0; k < s.n_groups(); ++k) {
      if (k == now.labels[m]) continue;
      if (s.pairs.settled(m, k) == 0 || !(s.pairs.evidence(m, k) >= s.pairs.level)) return false;
      const PairCounts counts = s.pairs.counts(m, k);
      if (counts.arm > s.arms.pulls[m] || counts.lead > s.arms.pulls[now.representative[k]]) return false;
    }
  return true;
}

bool covered_by_epoch(const State& s, Index e) {
  const Epoch& epoch = s.epochs[e];
  const Index room = s.constants.core_room(), places = epoch.core.size();
  for (Index k = 0; k < s.n_groups(); ++k)
    if (epoch.core[k * room] < 0) return false;
  for (Index i = 0; i < places; ++i) {
    const Index p = epoch.core[i];
    if (p >= 0 && (epoch.labels[p] != i / room || epoch.in_core[p] == 0)) return false;
  }
  for (Index m = 0; m < s.n_arms(); ++m)
    for (Index k = 0; k < s.n_groups(); ++k) {
      if (k == epoch.labels[m]) continue;
      if (epoch.against_core.met(m, k) == 0) return false;
      if (epoch.in_core[m] == 0 && epoch.against_group.met(m, k) == 0) return false;
    }
  const auto could_be_split = [&](Index i) { return epoch.core[i] >= 0 && epoch.core[i / room * room + 1] >= 0; };
  for (Index i = 0; i < places; ++i) {
    if (!could_be_split(i)) continue;
    for (Index j = 0; j < i / room * room; ++j)
      if (could_be_split(j) && epoch.core_pairs.met(i, j) == 0) return false;
  }
  return true;
}

}  // namespace coterie::croc
