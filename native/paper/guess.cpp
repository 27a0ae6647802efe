#include "paper/guess.hpp"

namespace coterie::paper {

namespace {

/// Centers whose squared distance is below this are in one place: the allocation between them would overflow.
constexpr double COINCIDENT = 1e-100;

double real(Index n) { return static_cast<double>(n); }

}  // namespace

Guess::Guess(Index n_arms, Index n_groups, Index dim)
    : labels(n_arms),
      centers(n_groups, dim),
      sizes(n_groups),
      inverse_sizes(n_groups),
      totals(n_groups),
      scatter(n_groups),
      gaps(n_groups, n_groups),
      sums_(n_groups, dim),
      radius_(n_groups),
      moved_(n_groups) {}

void Guess::add(Arms& arms, Index arm, ConstRow x) {
  const Index k = labels[arm], n = arms.pulls[arm];
  const auto [before, after] = take_in(arms.sums[arm], sums_[k], x, {1.0 / real(n), 1.0 / real(n + 1)}, centers[k]);
  arms.pulls[arm] = n + 1;
  totals[k] += 1;
  scatter[k] = std::max(0.0, scatter[k] + (real(n + 1) * after - real(n) * before));
  radius_[k] = std::max(radius_[k], std::sqrt(after));
  moved_[k] = 1;
  log_sum += std::log((4.0 + std::log(real(n) + 1.0)) / (4.0 + std::log(real(n))));
  ++since_measured;
  ++since_summed;
}

/// Put center k at its arms' weighted mean (Alg. 2, line 7). Returns the squared shift.
double Guess::move_center(Index k) { return move_to_mean(centers[k], sums_[k], 1.0 / real(totals[k])); }

/// Row and column k of the gaps. True if another center is in the same place.
bool Guess::measure_gaps(Index k) {
  bool equal = false;
  for (Index j = 0; j < n_groups(); ++j) {
    if (j == k) continue;
    gaps(k, j) = gaps(j, k) = squared_distance(centers[k], centers[j]);
    equal = equal || !(gaps(k, j) > COINCIDENT);
  }
  return equal;
}

void Guess::note_degenerate() {
  degenerate = false;
  for (Index k = 0; k < n_groups(); ++k) {
    if (sizes[k] == 0) degenerate = true;
    for (Index j = 0; j < k; ++j)
      if (!(gaps(k, j) > COINCIDENT)) degenerate = true;
  }
}

void Guess::move_centers() {
  for (Index k = 0; k < n_groups(); ++k) {
    if (!moved_[k]) continue;
    moved_[k] = 0;
    const double shift = move_center(k);
    // About the weighted mean the scatter is smallest: parallel-axis theorem.
    scatter[k] = std::max(0.0, scatter[k] - real(totals[k]) * shift);
    radius_[k] += std::sqrt(shift);
    if (measure_gaps(k) || degenerate) note_degenerate();
  }
}

void Guess::measure_radii(const Arms& arms) {
  since_measured = 0;
  radius_.fill(0.0);
  scatter.fill(0.0);
  for (Index m = 0; m < arms.size(); ++m) {
    const Index k = labels[m];
    const double away = distance_to_mean(arms.sums[m], arms.inverse(m), centers[k]);
    scatter[k] += real(arms.pulls[m]) * away;
    radius_[k] = std::max(radius_[k], away);
  }
  for (double& radius : radius_) radius = std::sqrt(radius);
}

void Guess::sum_up(const Arms& arms) {
  since_summed = 0;
  sizes.fill(0);
  totals.fill(0);
  sums_.fill(0.0);
  log_sum = 0.0;
  for (Index m = 0; m < arms.size(); ++m) {
    const Index k = labels[m];
    ++sizes[k];
    totals[k] += arms.pulls[m];
    log_sum += std::log(4.0 + std::log(real(arms.pulls[m])));
    const Row group_sum = sums_[k];
    const ConstRow sum = arms.sums[m];
    for (std::size_t q = 0; q < sum.size(); ++q) group_sum[q] += sum[q];
  }
  for (Index k = 0; k < n_groups(); ++k) {
    moved_[k] = 0;
    inverse_sizes[k] = 1.0 / real(std::max<Index>(sizes[k], 1));
    if (sizes[k] > 0) move_center(k);
  }
  for (Index k = 0; k < n_groups(); ++k) measure_gaps(k);
  note_degenerate();
  measure_radii(arms);
}

void Guess::adopt(const Pass& pass, const Arms& arms) {
  std::ranges::copy(pass.labels, labels.begin());
  std::ranges::copy(pass.centers.cells(), centers.cells().begin());
  sum_up(arms);
}

bool Guess::is_that_of(const Pass& pass) const {
  std::vector<Index> name(n_groups(), -1);
  std::vector<char> taken(n_groups(), 0);
  for (Index m = 0; m < labels.size(); ++m) {
    Index& its = name[pass.labels[m]];
    if (its < 0) {
      if (taken[labels[m]]) return false;
      its = labels[m];
      taken[its] = 1;
    } else if (its != labels[m]) {
      return false;
    }
  }
  return !degenerate;  // an emptied cluster's center belongs to the guess too: do not carry an old one along
}

bool Guess::is_separated() const {
  double farthest = 0.0, nearest = INFINITE;
  for (Index k = 0; k < n_groups(); ++k) {
    farthest = std::max(farthest, radius_[k]);
    for (double gap : gaps[k].first(k)) nearest = std::min(nearest, gap);
  }
  return 16.0 * farthest * farthest < nearest * SURE;
}

bool Guess::is_sound() const {
  std::vector<Index> counts(n_groups(), 0);
  for (Index k : labels) {
    if (k < 0 || k >= n_groups()) return false;
    ++counts[k];
  }
  return std::ranges::equal(counts, sizes);
}

bool same_groups(std::span<const Index> a, std::span<const Index> b, Index n_groups) {
  std::vector<Index> there(n_groups, -1), back(n_groups, -1);
  for (std::size_t m = 0; m < a.size(); ++m) {
    if (there[a[m]] < 0 && back[b[m]] < 0) {
      there[a[m]] = b[m];
      back[b[m]] = a[m];
    } else if (there[a[m]] != b[m] || back[b[m]] != a[m]) {
      return false;
    }
  }
  return true;
}

}  // namespace coterie::paper
