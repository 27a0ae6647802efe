#include "croc/variance_bound.hpp"

#include "croc/state.hpp"

namespace coterie::croc {

VarianceBound::VarianceBound(Index dim, const Traits& traits, double log_inverse_delta)
    : used(traits.variance_share > 0.0) {
  if (!used) return;
  const double bounds = traits.shape == Shape::scalar ? 1.0 : double(dim);
  level = log_inverse_delta - std::log(traits.variance_share) + std::log(bounds);
  squares = Zeros<double>(dim);
  reach = Zeros<double>(dim);
  precision = Zeros<double>(dim);
  precision_seen = Zeros<double>(dim);
}

void take_residual(State& s, Index arm, ConstRow x) {
  VarianceBound& bound = s.bound;
  const Index n = s.arms.pulls[arm], d = bound.reach.size();
  for (Index q = 0; q < d; ++q) bound.reach[q] = std::max(bound.reach[q], std::abs(x[q]));
  if (s.arms.alone != arm || n == 0) return;
  ++bound.residuals;
  const ConstRow sum = s.arms.sums[arm];
  for (Index q = 0; q < d; ++q) {
    const double residual = x[q] - sum[q] / double(n);
    bound.squares[q] += residual * residual;
  }
}

/// The z = R/(2σ²) where log V is the level, to the last digits and not above it; 0 if V is smaller everywhere.
/// log V falls in z and is convex: Newton's steps from the left, where it is above the level, stay there. `start`: a z
/// on the left of it, such as the root for fewer degrees; 0 will do.
double bound_root(double degrees, double level, double start, const Constants& constants) {
  const double log_rates = std::log(double(constants.rates));
  double z = start;
  for (Index step_number = 0; step_number < constants.root_steps; ++step_number) {
    double largest = 0.0, rate = constants.largest_rate;
    for (Index i = 0; i < constants.rates; ++i, rate /= 2.0)
      largest = std::max(largest, 0.5 * degrees * std::log1p(rate) - rate * z - log_rates);
    double total = std::exp(-largest), slope = 0.0;
    rate = constants.largest_rate;
    for (Index i = 0; i < constants.rates; ++i, rate /= 2.0) {
      const double term = std::exp(0.5 * degrees * std::log1p(rate) - rate * z - log_rates - largest);
      total += term;
      slope += rate * term;
    }
    const double above = std::log(0.5 * total) + largest - level;
    if (above <= 0.0) return z;
    const double step = above * total / slope;
    z += step;
    if (step <= constants.root_precision * z) return z;
  }
  return z;
}

namespace {

/// 1/σ₊²; 0 where there is no bound.
double precision_of(double squares, double root, double reach, const Constants& constants) {
  if (squares <= 0.0 || root <= 0.0) return 0.0;
  const double least = constants.resolution * reach;
  const double variance = std::max(0.5 * squares / root, least * least);
  return variance > constants.smallest ? 1.0 / variance : 0.0;
}

/// σ₊ from the residuals so far. OUT: bound.root, bound.precision. False if it is infinite in every coordinate.
bool bound_anew(State& s) {
  VarianceBound& bound = s.bound;
  const double residuals = double(bound.residuals);
  const Index d = bound.reach.size();
  if (s.metric.shape == Shape::scalar) {
    double squares = 0.0, reach = 0.0;
    for (Index q = 0; q < d; ++q) {
      squares += bound.squares[q];
      reach = std::max(reach, bound.reach[q]);
    }
    bound.root = bound_root(double(d) * residuals, bound.level, bound.root, s.constants);
    bound.precision.fill(precision_of(squares, bound.root, reach, s.constants));
    return bound.precision[0] > 0.0;
  }
  bool found = false;
  bound.root = bound_root(residuals, bound.level, bound.root, s.constants);
  for (Index q = 0; q < d; ++q) {
    bound.precision[q] = precision_of(bound.squares[q], bound.root, bound.reach[q], s.constants);
    found = found || bound.precision[q] > 0.0;
  }
  return found;
}

}  // namespace

void renew_bound(State& s) {
  VarianceBound& bound = s.bound;
  if (!bound.used || bound.residuals == bound.residuals_seen) return;
  bound.residuals_seen = bound.residuals;
  if (!bound_anew(s)) return;
  bound.at = s.arms.t;
  bool grown = false;
  for (Index q = 0; q < bound.precision.size(); ++q)
    grown = grown || bound.precision[q] > s.constants.worth_a_look * bound.precision_seen[q];
  if (!grown || s.estimate.at == 0) return;
  std::copy(bound.precision.begin(), bound.precision.end(), bound.precision_seen.begin());
  for (Index m = 0; m < s.n_arms(); ++m)
    for (Index k = 0; k < s.n_groups(); ++k)
      if (k != s.estimate.labels[m] && s.estimate.representative[k] >= 0) test_pair(s, m, k);
}

void forecast_trust(State& s, double pulls) {
  VarianceBound& bound = s.bound;
  double degrees = double(bound.residuals) + std::min(pulls, s.constants.most_ahead);
  if (s.metric.shape == Shape::scalar) degrees *= double(bound.reach.size());
  bound.trust = 2.0 * bound_root(degrees, bound.level, bound.root, s.constants) / std::max(degrees, 1.0);
}

}  // namespace coterie::croc
