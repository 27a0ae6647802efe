#include "croc/splitting.hpp"

namespace coterie::croc {

double log_ways(const State& s, Index a, Index b) {
  const std::vector<double>& log_factorial = *s.estimate.log_factorial;
  return log_factorial[a + b] - log_factorial[a] - log_factorial[b];
}

double cut_worth(const State& s, double gain, Index a, Index b, double weight) {
  return 0.5 * gain - s.constants.size_price * log_ways(s, a, b) - 0.5 * double(s.dim()) * std::log(weight);
}

double log_posterior(const State& s, double cost, std::span<const Index> sizes, ConstRow totals) {
  const std::vector<double>& log_factorial = *s.estimate.log_factorial;
  const double half = 0.5 * double(s.dim());
  double value = -0.5 * cost;
  for (std::size_t k = 0; k < totals.size(); ++k)
    value += s.constants.size_price * log_factorial[sizes[k]] - half * std::log(totals[k]);
  return value;
}

double cost_alone(ConstRow point, double weight, ConstRow center, double total) {
  return squared_distance(point, center) * weight * total / (total - weight);
}

namespace {

/// A part of a group and the rest of it.
struct Parts {
  ConstRow group;  // center of all
  double total;    // weight of all
  Row sum;         // of the part
  double weight;   // of the part
  Index count;     // arms of the part
  Row mean, rest;  // centers of the part and of the rest

  void find_centers() {
    const double *all = group.data(), *mine = sum.data();
    double *inner = mean.data(), *outer = rest.data();
    for (std::size_t q = 0; q < sum.size(); ++q) {
      inner[q] = mine[q] / weight;
      outer[q] = (all[q] * total - mine[q]) / (total - weight);
    }
  }
  /// An arm joins the part (sign 1) or leaves it (sign −1).
  void move(ConstRow point, double n, Index sign) {
    count += sign;
    weight += double(sign) * n;
    add_multiple(sum, double(sign) * n, point);
    find_centers();
  }
  /// By which sign an arm of n pulls should move, 0 if it should stay.
  Index wish(ConstRow point, double n, bool inside) const {
    const double others = total - weight;
    const double to_part = squared_distance(point, mean), to_rest = squared_distance(point, rest);
    if (inside) return to_rest * others / (others + n) < to_part * weight / (weight - n) ? -1 : 0;
    return to_part * weight / (weight + n) < to_rest * others / (others - n) ? 1 : 0;
  }
};

}  // namespace

Cut two_means(State& s, const Numbers& centers, ConstRow totals, Index k, Index size, Index farthest) {
  const Numbers& points = s.arms.means;
  const Zeros<Index>& pulls = s.arms.pulls;
  const std::span<const Index> members = s.work.members;
  const std::span<Flag> inside = s.work.inside;
  Parts parts{centers[k], totals[k], s.work.part, double(pulls[farthest]), 1, s.work.mean, s.work.rest};
  const ConstRow first = points[farthest];
  for (std::size_t q = 0; q < first.size(); ++q) parts.sum[q] = first[q] * parts.weight;
  for (Index i = 0; i < size; ++i) inside[i] = members[i] == farthest;
  parts.find_centers();
  for (Index pass = 0; pass < s.constants.split_passes; ++pass) {
    bool moved = false;
    for (Index i = 0; i < size; ++i) {
      if (inside[i] == 1 ? parts.count == 1 : parts.count == size - 1) continue;  // neither side may be empty
      const ConstRow point = points[members[i]];
      const double n = double(pulls[members[i]]);
      const Index sign = parts.wish(point, n, inside[i] == 1);
      if (sign == 0) continue;
      moved = true;
      inside[i] = sign == 1;
      parts.move(point, n, sign);
    }
    if (!moved) break;
  }
  const double share = parts.weight * (parts.total - parts.weight) / parts.total;
  double gain = 0.0;
  for (std::size_t q = 0; q < first.size(); ++q) {
    const double gap = parts.mean[q] - parts.rest[q];
    gain += gap * gap;
  }
  return {gain * share, share, parts.count};
}

}  // namespace coterie::croc
