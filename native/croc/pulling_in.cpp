#include "croc/pulling_in.hpp"

namespace coterie::croc {

double median(Row values, Index n) {
  assert(n > 0);
  for (Index i = 1; i < n; ++i) {
    const double value = values[i];
    Index place = i;
    while (place > 0 && values[place - 1] > value) {
      values[place] = values[place - 1];
      --place;
    }
    values[place] = value;
  }
  return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

namespace {

/// Whether a coordinate takes few values: neighbours among arms' first results, without their last, are equal.
bool has_ties(const State& s, Index q) {
  const Constants& c = s.constants;
  Index pairs = 0, equal = 0;
  for (Index m = 0; m < s.n_arms(); ++m) {
    const Index end = std::min(s.arms.pulls[m] - 1, c.first_results);
    for (Index i = 1; i < end; ++i) {
      ++pairs;
      equal += s.metric.first(m, i, q) == s.metric.first(m, i - 1, q);
    }
  }
  return pairs > 0 && double(equal) >= c.mostly_ties * double(pairs);
}

}  // namespace

void scatter_of_first(State& s, Index n) {
  const Constants& c = s.constants;
  Metric& metric = s.metric;
  const Index d = s.dim();
  double far = 0.0;
  for (Index q = 0; q < d; ++q) {
    for (Index i = 0; i < n; ++i) s.work.sorted[i] = std::abs(metric.innovations(i, q));
    const double middle = c.median_to_deviation * median(s.work.sorted, n);
    metric.scale[q] = middle > 0.0 && !has_ties(s, q) ? middle : INFINITE;  // else its tails are not known
    for (Index i = 0; i < n; ++i) far += std::abs(metric.innovations(i, q)) > c.pulled_in * metric.scale[q];
  }
  metric.far_share = far / double(std::max(n * d, Index(1)));
  metric.scatter.fill(0.0);
  for (Index i = 0; i < n; ++i) {
    const ConstRow innovation = metric.innovations[i];
    for (Index q = 0; q < d; ++q) {
      const double mine = pulled_in(innovation[q], metric.scale[q], c);
      for (Index p = 0; p <= q; ++p) metric.scatter(q, p) += mine * pulled_in(innovation[p], metric.scale[p], c);
    }
  }
}

}  // namespace coterie::croc
