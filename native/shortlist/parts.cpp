#include "shortlist/parts.hpp"

#include <algorithm>
#include <cmath>

#include "base/geometry.hpp"

namespace coterie::shortlist {

double contrast_log(ConstRow precision, const Numbers& at) {
  const Index count = static_cast<Index>(precision.size()), dim = at.columns();
  double total = 0.0, logs = 0.0, energy = 0.0;
  for (const double each : precision) {
    total += each;
    logs += std::log(each);
  }
  for (Index q = 0; q < dim; ++q) {
    double middle = 0.0;
    for (Index j = 0; j < count; ++j) middle += precision[j] * at(j, q);
    middle /= total;
    for (Index j = 0; j < count; ++j) {
      const double gap = at(j, q) - middle;
      energy += precision[j] * (gap * gap);
    }
  }
  return 0.5 * static_cast<double>(dim) * (logs - std::log(total)) - 0.5 * energy;
}

double log_sum(ConstRow values) {
  double top = -INFINITE;
  for (const double value : values) top = std::max(top, value);
  if (top == -INFINITE) return top;
  double total = 0.0;
  for (const double value : values) total += std::exp(value - top);
  return top + std::log(total);
}

Parts::Parts(Index most, Index dim, ConstRow scales)
    : group_(most),
      weight_(most),
      scales_(scales.begin(), scales.end()),
      logs_(scales.size()),
      precision_(most),
      center_(most, dim),
      off_(most, dim) {}

void Parts::add(Index group, double weight, ConstRow center) {
  group_[count_] = group;
  weight_[count_] = weight;
  std::ranges::copy(center, center_[count_].begin());
  ++count_;
}

Row Parts::scale_logs() {
  const Row precision = Row(precision_).first(count_);
  for (std::size_t r = 0; r < scales_.size(); ++r) {
    for (Index j = 0; j < count_; ++j) precision[j] = 1.0 / (scales_[r] + 1.0 / weight_[j]);
    logs_[r] = contrast_log(precision, center_);
  }
  return logs_;
}

Row Parts::scale_shares() {
  const Row logs = scale_logs();
  const double total = log_sum(logs);
  for (double& each : logs) each -= total;
  return logs;
}

Numbers& Parts::centers_given(double scale) {
  for (Index q = 0; q < center_.columns(); ++q) {
    double total = 0.0, place = 0.0;
    for (Index j = 0; j < count_; ++j) {
      const double precision = 1.0 / (scale + 1.0 / weight_[j]);
      total += precision;
      place += precision * center_(j, q);
    }
    place /= total;
    for (Index j = 0; j < count_; ++j) off_(j, q) = (center_(j, q) - place) * weight_[j] / (weight_[j] + 1.0 / scale);
  }
  return off_;
}

}  // namespace coterie::shortlist
