// Levels and candidates of epochs (docs/CROC.md, sections 4 and 6).
#include "croc/claims.hpp"
#include "croc/shape.hpp"

namespace coterie::croc {

double next_level(const State& s) {
  const double first = s.constants.first_share;
  const double log_share = std::log(first) + double(s.freezes) * std::log(1.0 - first);  // π_j = 0.8·0.2^j
  return s.log_inverse_delta - s.log_frozen_share - log_share;
}

Index open_epoch(State& s) {
  const Index e = s.freezes % Index(s.epochs.size()), dim = s.dim();
  const Estimate& now = leading(s).estimate;
  Epoch& epoch = s.epochs[e];
  epoch.frozen_at = s.arms.t;
  epoch.number = s.freezes;
  epoch.level = next_level(s);
  ++s.freezes;
  epoch.totals.fill(0.0);
  epoch.centers.fill(0.0);
  for (Index m = 0; m < s.n_arms(); ++m) {  // Û anew, from the origin of the group's representative
    const Index k = now.labels[m], lead = now.representative[k];
    const double pulls = double(s.arms.pulls[m]);
    epoch.labels[m] = k;
    epoch.totals[k] += pulls;
    for (Index q = 0; q < dim; ++q) epoch.centers(k, q) += s.arms.sums(m, q) + pulls * s.arms.apart(m, lead, q);
  }
  for (Index k = 0; k < s.n_groups(); ++k)
    for (double& coordinate : epoch.centers[k]) coordinate /= epoch.totals[k];
  return e;
}

namespace {

/// Whether the present labels are those of the candidate, by other names. Work space: names (K).
bool same_partition(std::span<const Index> labels, std::span<const Index> frozen, std::span<Index> names) {
  std::fill(names.begin(), names.end(), Index(-1));
  for (std::size_t m = 0; m < labels.size(); ++m) {
    Index& name = names[labels[m]];
    if (name < 0)
      name = frozen[m];
    else if (name != frozen[m])
      return false;
  }
  for (std::size_t k = 0; k < names.size(); ++k)
    for (std::size_t j = 0; j < k; ++j)
      if (names[k] == names[j]) return false;
  return true;
}

}  // namespace

Index find_epoch(State& s) {
  const Index slots = Index(s.epochs.size());
  for (Index back = 0; back < std::min(slots, s.freezes); ++back) {
    const Index e = (s.freezes - 1 - back) % slots;
    if (same_partition(leading(s).estimate.labels, s.epochs[e].labels, s.work.names)) return e;
  }
  return -1;
}

double frozen_difference(State& s, Index e, Index home, Index k, Index here, Index there) {
  const Epoch& epoch = s.epochs[e];
  for (Index q = 0; q < s.dim(); ++q)
    s.work.guess[q] = s.arms.apart(here, there, q) + (epoch.centers(home, q) - epoch.centers(k, q));
  return 1.0 / epoch.totals[k] + 1.0 / epoch.totals[home];
}

}  // namespace coterie::croc
