// Hartigan's moves: one arm at a time changes its group while the weighted cost falls.
#include "croc/estimate.hpp"

namespace coterie::croc {

/// Add (or, with a negative weight, take) an arm to group k. INOUT: centers, totals.
void shift(Numbers& centers, Row totals, Index k, ConstRow point, double weight) {
  const double before = totals[k], after = before + weight;
  double* center = centers[k].data();
  for (std::size_t q = 0; q < point.size(); ++q) center[q] = (center[q] * before + weight * point[q]) / after;
  totals[k] = after;
}

/// The group where the arm would cost least, −1 if that is where it is.
Index better_group(ConstRow point, double weight, Index home, const Numbers& centers, ConstRow totals,
                   double move_tie) {
  // Its cost at home falls by this much if it leaves, and grows by the other if it joins k.
  double best = squared_distance(point, centers[home]) * totals[home] / (totals[home] - weight);
  Index target = -1;
  for (Index k = 0; k < Index(totals.size()); ++k) {
    if (k == home) continue;
    const double value = squared_distance(point, centers[k]) * totals[k] / (totals[k] + weight);
    if (value < best - move_tie) {
      best = value;
      target = k;
    }
  }
  return target;
}

namespace {

/// OUT: centers and totals of the groups; the center of an empty one is 0.
void find_centers(const Numbers& points, ConstRow weights, std::span<const Index> labels, Numbers& centers,
                  Row totals) {
  centers.fill(0.0);
  std::fill(totals.begin(), totals.end(), 0.0);
  for (Index m = 0; m < Index(labels.size()); ++m) {
    const double weight = weights[m];
    totals[labels[m]] += weight;
    add_multiple(centers[labels[m]], weight, points[m]);
  }
  for (Index k = 0; k < Index(totals.size()); ++k) {
    const double total = totals[k];
    if (total > 0.0)
      for (double& each : centers[k]) each /= total;
  }
}

/// Give every empty group the arm that is costliest where it is.
void fill_empty(const Numbers& points, ConstRow weights, std::span<Index> labels, Numbers& centers, Row totals,
                double one) {
  for (Index k = 0; k < Index(totals.size()); ++k) {
    if (totals[k] > 0.0) continue;
    Index worst = Index(labels.size()) - 1;  // if none costs anything that can be compared
    double cost = -1.0;
    for (Index m = 0; m < Index(labels.size()); ++m) {
      const Index home = labels[m];
      if (!(totals[home] > weights[m] * one)) continue;
      const double gap = squared_distance(points[m], centers[home]);
      const double value = gap * weights[m] * totals[home] / (totals[home] - weights[m]);
      if (value > cost) {
        cost = value;
        worst = m;
      }
    }
    shift(centers, totals, labels[worst], points[worst], -weights[worst]);
    labels[worst] = k;
    totals[k] = weights[worst];
    const ConstRow point = points[worst];
    std::copy(point.begin(), point.end(), centers[k].begin());
  }
}

}  // namespace

/// Move arms one at a time while the weighted cost falls. INOUT: labels. OUT: centers, totals. Returns the cost.
double hartigan(const Numbers& points, ConstRow weights, std::span<Index> labels, Numbers& centers, Row totals,
                const Constants& constants) {
  const Index n = Index(labels.size());
  find_centers(points, weights, labels, centers, totals);
  fill_empty(points, weights, labels, centers, totals, constants.one);
  for (Index pass = 0; pass < constants.passes; ++pass) {
    bool moved = false;
    for (Index m = 0; m < n; ++m) {
      const Index home = labels[m];
      if (totals[home] <= weights[m] * constants.one) continue;
      const Index target = better_group(points[m], weights[m], home, centers, totals, constants.move_tie);
      if (target < 0) continue;
      moved = true;
      shift(centers, totals, home, points[m], -weights[m]);
      shift(centers, totals, target, points[m], weights[m]);
      labels[m] = target;
    }
    if (!moved) break;
  }
  double cost = 0.0;
  for (Index m = 0; m < n; ++m) cost += weights[m] * squared_distance(points[m], centers[labels[m]]);
  return cost;
}

}  // namespace coterie::croc
