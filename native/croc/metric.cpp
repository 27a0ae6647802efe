#include "croc/metric.hpp"

#include "croc/pulling_in.hpp"

namespace coterie::croc {

Metric::Metric(Index n_arms, Index dim, const Traits& traits, const Constants& constants)
    : estimated(traits.estimated),
      shape(traits.shape),
      winsorised(traits.winsorised),
      arm_scales(traits.arm_scales),
      from_zero(traits.from_zero) {
  if (!estimated) return;
  to_units = Numbers(dim, dim);
  scatter = Numbers(dim, dim);
  scale = Zeros<double>(dim);
  innovations = Numbers(winsorised ? constants.innovations : 0, dim);
  location = Numbers(n_arms, dim);
  first = Cube<double>(n_arms, winsorised ? constants.first_results : 0, dim);
  squares = Numbers(n_arms, 2);
  scale.fill(INFINITE);
  for (Index q = 0; q < dim; ++q) to_units(q, q) = 1.0;
}

namespace {

/// What result number n ≥ 2 of an arm adds to what was known. INOUT: the scatter and what it is made of. OUT:
/// work.rest.
void take_innovation(State& s, Index arm, ConstRow x, Index n) {
  const Constants& c = s.constants;
  Metric& metric = s.metric;
  const Index d = s.dim();
  const double share = std::sqrt((double(n) - 1.0) / double(n));
  const Index seen = metric.degrees++;
  const Row rest = s.work.rest;
  const ConstRow location = metric.location[arm];
  for (Index q = 0; q < d; ++q) rest[q] = (x[q] - location[q]) * share;
  if (metric.winsorised) {
    if (seen < c.innovations) {
      std::copy(rest.begin(), rest.end(), metric.innovations[seen].begin());
      if (seen == c.innovations - 1) scatter_of_first(s, c.innovations);
      return;
    }
    double far = 0.0;
    for (Index q = 0; q < d; ++q) {
      far += std::abs(rest[q]) > c.pulled_in * metric.scale[q];
      rest[q] = pulled_in(rest[q], metric.scale[q], c);
    }
    metric.far_share += (far / double(d) - metric.far_share) / (double(seen) + 1.0);
  }
  for (Index q = 0; q < d; ++q) {
    const Row row = metric.scatter[q];
    for (Index p = 0; p <= q; ++p) row[p] += rest[q] * rest[p];
  }
}

/// Where the arm lies with result number n. INOUT: metric.location, metric.first.
void locate(State& s, Index arm, ConstRow x, Index n) {
  const Constants& c = s.constants;
  Metric& metric = s.metric;
  const Index d = s.dim();
  const Row location = metric.location[arm];
  if (metric.winsorised && n <= c.first_results) {
    std::copy_n(x.begin(), d, metric.first(arm, n - 1).begin());
    if (n >= 3 && n % 2 == 1) {
      for (Index q = 0; q < d; ++q) {
        for (Index i = 0; i < n; ++i) s.work.sorted[i] = metric.first(arm, i, q);
        const double middle = median(s.work.sorted, n);
        double total = 0.0;
        for (Index i = 0; i < n; ++i) total += pulled_in(metric.first(arm, i, q) - middle, metric.scale[q], c);
        location[q] = middle + total / double(n);
      }
      return;
    }
  }
  for (Index q = 0; q < d; ++q) {
    double step = x[q] - location[q];
    if (metric.winsorised && n > 3) step = pulled_in(step, metric.scale[q], c);
    location[q] += step / double(n);
  }
}

/// T from the correlations in work.correlation and inverse standard deviations. OUT: metric.to_units. False: not
/// positive definite.
bool invert(State& s, ConstRow deviation) {
  const Index d = s.dim();
  Numbers& low = s.work.inverse;
  Numbers& t = s.metric.to_units;
  for (Index q = 0; q < d; ++q) {
    for (Index p = 0; p <= q; ++p) {
      double total = s.work.correlation(q, p);
      for (Index i = 0; i < p; ++i) total -= low(q, i) * low(p, i);
      if (q > p) {
        low(q, p) = total / low(p, p);
      } else if (total <= 0.0) {
        return false;
      } else {
        low(q, q) = std::sqrt(total);
      }
    }
  }
  for (Index p = 0; p < d; ++p) {  // columns of the inverse of the lower triangle, scaled
    for (Index q = p; q < d; ++q) {
      double total = q == p ? 1.0 : 0.0;
      for (Index i = p; i < q; ++i) total -= low(q, i) * t(i, p);
      t(q, p) = total / low(q, q);
    }
  }
  for (Index p = 0; p < d; ++p) {
    for (Index q = 0; q < p; ++q) t(q, p) = 0.0;
    for (Index q = p; q < d; ++q) t(q, p) *= deviation[p];  // 0 where nothing varies
  }
  return true;
}

/// How far the arms lie apart in a coordinate: what is known of its scale while repeats show no noise in it.
double range(const State& s, Index q) {
  double low = INFINITE, high = -INFINITE;
  for (Index m = 0; m < s.n_arms(); ++m) {
    if (s.arms.pulls[m] > 0) {
      low = std::min(low, s.metric.location(m, q));
      high = std::max(high, s.metric.location(m, q));
    }
  }
  return std::max(high - low, 0.0);
}

/// Means and centers in the units of the metric. OUT: arms.means, estimate.centers.
void convert(State& s) {
  Estimate& now = s.estimate;
  for (Index m = 0; m < s.n_arms(); ++m) to_metric(s.metric, s.metric.location[m], s.arms.means[m]);
  now.centers.fill(0.0);
  for (Index m = 0; m < s.n_arms(); ++m) {
    const Row center = now.centers[now.labels[m]];
    const ConstRow mean = s.arms.means[m];
    const double pulls = double(s.arms.pulls[m]);
    for (std::size_t q = 0; q < center.size(); ++q) center[q] += pulls * mean[q];
  }
  for (Index k = 0; k < s.n_groups(); ++k) {
    const double total = now.totals[k];
    if (total > 0.0)
      for (double& each : now.centers[k]) each /= total;
  }
}

}  // namespace

void to_metric(const Metric& metric, ConstRow position, Row out) {
  const Index d = Index(position.size());
  for (Index q = 0; q < d; ++q) {
    const ConstRow row = metric.to_units[q];
    double total = 0.0;
    for (Index p = 0; p <= q; ++p) total += row[p] * position[p];
    out[q] = total;
  }
}

void take_position(State& s, Index arm, ConstRow result) {
  Metric& metric = s.metric;
  const Index d = s.dim(), n = s.arms.pulls[arm];
  const Row x = s.work.contrast, part = s.work.part, mean = s.arms.means[arm];
  for (Index q = 0; q < d; ++q) x[q] = metric.from_zero ? stabilised(result[q], s.traits) : result[q];
  if (n > 1) {
    take_innovation(s, arm, x, n);
    if (metric.arm_scales && metric.measured_at > 0) {
      for (Index q = 0; q < d; ++q) {
        double along = 0.0;
        for (Index p = 0; p <= q; ++p) along += metric.to_units(q, p) * s.work.rest[p];
        metric.squares(arm, 0) += along * along / double(d);
      }
      metric.squares(arm, 1) += 1.0;
    }
  }
  if (s.traits.exact_moves) to_metric(metric, metric.location[arm], mean);  // else it is in the units of the results
  locate(s, arm, x, n);
  for (Index q = 0; q < d; ++q) part[q] = -(double(n) - 1.0) * mean[q];
  to_metric(metric, metric.location[arm], mean);
  for (Index q = 0; q < d; ++q) part[q] += double(n) * mean[q];
}

void estimate_metric(State& s) {
  const Constants& c = s.constants;
  Metric& metric = s.metric;
  Numbers& correlation = s.work.correlation;
  const Numbers& scatter = metric.scatter;
  const Index d = s.dim(), degrees = metric.degrees;
  if (metric.winsorised && degrees < c.innovations) scatter_of_first(s, degrees);
  metric.measured_at = degrees;
  const double number = double(degrees), enlarged = (1.0 + c.small_sample / number) / number;
  const Row deviation = s.work.mean;
  double pooled = 0.0, squares = 0.0;
  for (Index q = 0; q < d; ++q) pooled += scatter(q, q);
  for (Index q = 0; q < d; ++q) {
    double variance = (metric.shape != Shape::scalar ? scatter(q, q) : pooled / double(d)) * enlarged;
    if (variance <= 0.0) {
      const double apart = range(s, q);
      variance = apart * apart / (1.0 + number);
    }
    deviation[q] = variance > 0.0 ? 1.0 / std::sqrt(variance) : 0.0;
    correlation(q, q) = 1.0;
    for (Index p = 0; p < q; ++p) {
      const double product = scatter(q, q) * scatter(p, p);
      correlation(q, p) = product > 0.0 ? scatter(q, p) / std::sqrt(product) : 0.0;
      squares += 2.0 * (correlation(q, p) * correlation(q, p));
    }
  }
  double keep = 0.0;  // of the correlations: what is more than chance, 1/ν for each square
  if (metric.shape == Shape::full && squares > 0.0)
    keep = std::min(1.0 - double(d) * (double(d) - 1.0) / (number * squares), 1.0 - c.least_shrinkage);
  for (Index q = 0; q < d; ++q)
    for (Index p = 0; p < q; ++p) correlation(q, p) *= std::max(keep, 0.0);
  if (!invert(s, deviation)) {
    for (Index q = 0; q < d; ++q)
      for (Index p = 0; p < q; ++p) correlation(q, p) = 0.0;
    invert(s, deviation);
  }
  convert(s);
  s.plan.planned_at = NEVER;
}

bool renew_metric(State& s) {
  if (double(s.metric.degrees) > double(s.metric.measured_at) * (1.0 + s.constants.refresh)) {
    estimate_metric(s);
    s.estimate.left_group = true;
    return true;
  }
  return false;
}

double arm_variance(const State& s, Index arm) {
  const double prior = s.constants.arm_prior;
  return (s.metric.squares(arm, 0) + prior) / (s.metric.squares(arm, 1) + prior);
}

void raw_centers(State& s, std::span<const Index> labels) {
  Numbers& raw = s.work.raw;
  const Row totals = s.work.totals;
  const Index d = s.dim();
  std::fill(totals.begin(), totals.end(), 0.0);
  raw.fill(0.0);
  for (Index m = 0; m < s.n_arms(); ++m) {
    const Index k = labels[m];
    const double pulls = double(s.arms.pulls[m]);
    const Row its = raw[k];
    totals[k] += pulls;
    for (Index q = 0; q < d; ++q) its[q] += s.metric.from_zero ? s.arms.sums(m, q) : pulls * s.metric.location(m, q);
  }
  for (Index k = 0; k < s.n_groups(); ++k)
    for (double& each : raw[k]) each /= totals[k];
}

}  // namespace coterie::croc
