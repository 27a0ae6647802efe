#include "paper/allocation.hpp"

namespace coterie::paper {

namespace {

/// Relative violation of a constraint that counts as rounding.
constexpr double FEASIBLE = 1e-12;

}  // namespace

Allocation::Allocation(Index n_clusters)
    : shares(n_clusters),
      most_active_(2 * n_clusters + 1),
      slack_(n_clusters),
      weight_(n_clusters),
      forest_(n_clusters),
      barrier_(n_clusters),
      kept_(n_clusters),
      fixed_(n_clusters) {
  active_.reserve(most_active_);
  multiplier_.reserve(most_active_);
  growth_.reserve(most_active_);
}

void Allocation::drop(Index edge) {
  active_[edge] = active_.back();
  multiplier_[edge] = multiplier_.back();
  active_.pop_back();
  multiplier_.pop_back();
}

void Allocation::drop_all() {
  active_.clear();
  multiplier_.clear();
  shaped_ = false;
}

bool Allocation::restored() {
  const auto is_cluster = [&](Index k) { return k >= 0 && k < shares.size(); };
  if (active_.size() > most_active_ || multiplier_.size() != active_.size()) return false;
  for (const auto& [tail, head] : active_)
    if (!is_cluster(tail) || !is_cluster(head) || tail == head) return false;
  shaped_ = shaped_ && forest_.shape(active_);
  return true;
}

/// Which active constraint leaves when another enters a part that is full: the dual ratio test; -1 if none can.
Index Allocation::blocking(const Clusters& clusters, const Edge& entering) {
  std::ranges::fill(forest_.rest, 0.0);
  forest_.rest[entering.tail] += clusters.size(entering.tail);
  forest_.rest[entering.head] += 1.0;
  growth_.assign(active_.size(), 0.0);
  forest_.multipliers(clusters, active_, growth_);
  Index leaving = -1;
  double least = INFINITE;
  for (std::size_t e = 0; e < active_.size(); ++e)
    if (growth_[e] > 1e-10 && multiplier_[e] / growth_[e] < least) {
      least = multiplier_[e] / growth_[e];
      leaving = static_cast<Index>(e);
    }
  return leaving;
}

/// Solve on the remembered active constraints, swapping one at a time. False: give up.
bool Allocation::mend(const Clusters& clusters) {
  const Index n = clusters.count();
  const Numbers& gaps = clusters.gaps;
  for (Index i = 0; i < 4 * n + 8; ++i) {
    shaped_ = shaped_ || forest_.shape(active_);
    if (!shaped_ || !forest_.solve(clusters, active_, slack_)) return false;
    for (Index k = 0; k < n; ++k) {
      weight_[k] = 1.0 / slack_[k];
      forest_.rest[k] = weight_[k] * weight_[k];
    }
    forest_.multipliers(clusters, active_, multiplier_);
    Index lowest = -1;
    double total = 0.0, worst = 0.0;
    for (std::size_t e = 0; e < active_.size(); ++e) {
      const double weight = multiplier_[e] * gaps(active_[e].tail, active_[e].head);
      total += std::abs(weight);
      if (weight < worst) {
        worst = weight;
        lowest = static_cast<Index>(e);
      }
    }
    if (lowest >= 0 && worst < -FEASIBLE * total) {
      drop(lowest);
      shaped_ = false;
      continue;
    }
    Edge entering{-1, -1};
    worst = FEASIBLE;
    for (Index k = 0; k < n; ++k) {
      const double own = clusters.size(k) * slack_[k];
      const ConstRow gap = gaps[k];
      const double* slack = slack_.data();
      for (Index j = 0; j < n; ++j) {
        const double excess = own + slack[j] - gap[j];
        if (excess > worst * gap[j] && j != k && !clusters.is_twin(k, j)) {
          worst = excess / gap[j];
          entering = {k, j};
        }
      }
    }
    if (entering.tail < 0) return true;
    if (forest_.is_full(entering.tail) && forest_.is_full(entering.head)) {
      const Index leaving = blocking(clusters, entering);
      if (leaving < 0) return false;
      drop(leaving);
    } else if (active_.size() >= most_active_) {
      return false;
    }
    active_.push_back(entering);
    multiplier_.push_back(0.0);
    shaped_ = false;
  }
  return false;
}

/// Solve from scratch; what comes out active is left for `mend` to polish.
void Allocation::solve_cold(const Clusters& clusters) {
  const Index n = clusters.count();
  const Numbers &room = barrier_.room, &dual = barrier_.dual, &gaps = clusters.gaps;
  ++cold_solves;
  barrier_.solve(clusters, slack_);
  double value = 0.0;
  for (Index k = 0; k < n; ++k) value += 1.0 / slack_[k];
  active_.clear();
  for (Index k = 0; k < n; ++k)
    for (Index j = 0; j < n; ++j)
      if (dual(k, j) > 0.0 && dual(k, j) * gaps(k, j) / value > room(k, j) / gaps(k, j)) {
        if (active_.size() >= most_active_) {
          active_.clear();
          break;
        }
        active_.push_back({k, j});
      }
  multiplier_.assign(active_.size(), 0.0);
  shaped_ = false;
  std::ranges::copy(slack_, kept_.begin());
}

/// Euclidean projection of λ on {λ ≥ floor, Σλ = 1} (equation_newsamplingrule).
void Allocation::raise_to_floor(const Clusters& clusters) {
  const Index n = clusters.count();
  fixed_.fill(0);
  for (bool settled = false; !settled;) {
    double above = 0.0, low = 0.0, mass = 0.0;
    for (Index k = 0; k < n; ++k) {
      (fixed_[k] ? low : above) += clusters.size(k);
      if (!fixed_[k]) mass += clusters.size(k) * shares[k];
    }
    const double shift = above > 0.0 ? (mass + *floor * low - 1.0) / above : 0.0;
    settled = true;
    for (Index k = 0; k < n; ++k)
      if (!fixed_[k] && shares[k] - shift < *floor) {
        fixed_[k] = 1;
        settled = false;
      }
    if (settled)
      for (Index k = 0; k < n; ++k) shares[k] = fixed_[k] ? *floor : shares[k] - shift;
  }
}

void Allocation::update(const Guess& guess) {
  const Clusters clusters{guess.sizes, guess.inverse_sizes, guess.gaps};
  const Index n = clusters.count();
  if (guess.degenerate) {  // no instance has an empty cluster or equal centers: explore evenly
    shares.fill(1.0 / static_cast<double>(guess.labels.size()));
    drop_all();
    return;
  }
  if (active_.empty() || !mend(clusters)) {
    solve_cold(clusters);
    if (active_.empty() || !mend(clusters)) {  // dependent constraints: the interior-point solution stands
      drop_all();
      for (Index k = 0; k < n; ++k) {
        slack_[k] = kept_[k];
        weight_[k] = 1.0 / kept_[k];
      }
    }
  }
  double total = 0.0;
  for (Index k = 0; k < n; ++k) total += weight_[k];
  total = 1.0 / total;
  for (Index k = 0; k < n; ++k)
    shares[k] = weight_[k] * total * guess.inverse_sizes[k];  // theorem_opt4: λ*_m = w*(c_m)/n(c_m)
  if (floor) raise_to_floor(clusters);
}

}  // namespace coterie::paper
