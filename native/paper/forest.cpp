#include "paper/forest.hpp"

#include <cmath>

#include "base/geometry.hpp"

namespace coterie::paper {

Forest::Forest(Index n_clusters)
    : rest(n_clusters, 0.0),
      nodes_(n_clusters),
      used_(2 * n_clusters + 2, 0),
      share_(2 * n_clusters + 2, 0.0),
      share_slope_(2 * n_clusters + 2, 0.0) {
  order_.reserve(n_clusters);
  first_.reserve(n_clusters + 1);
}

/// Follow outgoing constraints to a cluster without one, or onto the part's cycle.
Index Forest::root_of(Index k) const {
  for (std::size_t i = 0; i < nodes_.size() && nodes_[k].leaving >= 0; ++i) k = nodes_[k].leaving;
  return k;
}

void Forest::attach(Index k, Index edge) {
  nodes_[k].part = parts_;
  nodes_[k].parent = edge;
  order_.push_back(k);
  if (edge >= 0) used_[edge] = 1;
}

/// Walk the part of `root`. False if it has two cycles.
///
/// Against the arrows first: y_k = (Δ² − y_j)/n_k damps rounding errors, y_j = Δ² − n_k·y_k amplifies them.
bool Forest::grow(Index root, std::span<const Edge> edges) {
  const auto is_ours = [&](Index k) { return nodes_[k].part == parts_; };
  const auto is_free = [&](Index k) { return nodes_[k].part < 0; };
  const Index n_edges = static_cast<Index>(edges.size());
  std::size_t place = order_.size();
  nodes_[parts_].cycle = -1;
  attach(root, -1);
  do {
    for (; place < order_.size(); ++place)
      for (Index e = 0; e < n_edges; ++e)
        if (!used_[e] && edges[e].head == order_[place] && is_free(edges[e].tail)) attach(edges[e].tail, e);
    for (Index e = 0; e < n_edges; ++e)
      if (!used_[e] && is_ours(edges[e].tail) && is_free(edges[e].head)) {
        attach(edges[e].head, e);
        break;
      }
  } while (place < order_.size());
  for (Index e = 0; e < n_edges; ++e)
    if (!used_[e] && is_ours(edges[e].tail)) {
      used_[e] = 1;
      if (nodes_[parts_].cycle >= 0) return false;
      nodes_[parts_].cycle = e;
    }
  return true;
}

bool Forest::shape(std::span<const Edge> edges) {
  for (Node& node : nodes_) node.part = node.leaving = -1;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    used_[e] = 0;
    nodes_[edges[e].tail].leaving = edges[e].head;
  }
  parts_ = 0;
  order_.clear();
  first_.clear();
  for (Index k = 0; k < static_cast<Index>(nodes_.size()); ++k) {
    if (nodes_[k].part >= 0) continue;
    first_.push_back(static_cast<Index>(order_.size()));
    if (!grow(root_of(k), edges)) return false;
    if (static_cast<Index>(order_.size()) == first_.back() + 1) return false;
    ++parts_;
  }
  first_.push_back(static_cast<Index>(order_.size()));
  return true;
}

/// argmin over the root's y of Σ 1/(offset + slope·y), by a bracketed Newton iteration; -1 if there is none.
double Forest::tree_root_value(std::span<const Index> part, double start) const {
  double low = 0.0, high = INFINITE;
  for (Index k : part) {
    const double edge = -nodes_[k].offset / nodes_[k].slope;
    if (nodes_[k].slope > 0.0)
      low = std::max(low, edge);
    else
      high = std::min(high, edge);
  }
  if (!(low < high) || !std::isfinite(high)) return -1.0;
  // Too close to an end, a Newton step is lost in rounding: such a start tells nothing.
  const double edge = 1e-6 * (high - low);
  double value = low + edge < start && start < high - edge ? start : 0.5 * (low + high);
  for (int i = 0; i < 100; ++i) {
    double gradient = 0.0, curvature = 0.0, steepest = 0.0;
    for (Index k : part) {
      const double inverse = 1.0 / (nodes_[k].offset + nodes_[k].slope * value);
      const double ratio = nodes_[k].slope * inverse;
      gradient -= ratio * inverse;
      curvature += 2.0 * ratio * ratio * inverse;
      steepest = std::max(steepest, std::abs(ratio));
    }
    (gradient < 0.0 ? low : high) = value;
    double step = -gradient / curvature;
    if (!(low <= value + step && value + step <= high)) step = 0.5 * (low + high) - value;
    value = value + step;
    // No y changes by more; Newton squares the error: what is left is below 1e-15.
    if (steepest * std::abs(step) <= 1e-8) return value;
  }
  return -1.0;
}

bool Forest::solve(const Clusters& clusters, std::span<const Edge> edges, Row slack) {
  const Numbers& gaps = clusters.gaps;
  for (Index p = 0; p < parts_; ++p) {
    const std::span<const Index> its = part(p);
    const Index root = its.front();
    nodes_[root].offset = 0.0;
    nodes_[root].slope = 1.0;
    for (Index k : its.subspan(1)) {
      const auto [tail, head] = edges[nodes_[k].parent];
      if (tail == k) {  // n_k·y_k + y_j = Δ²
        nodes_[k].offset = (gaps(k, head) - nodes_[head].offset) * clusters.inverse[k];
        nodes_[k].slope = -nodes_[head].slope * clusters.inverse[k];
      } else {  // n_j·y_j + y_k = Δ²
        nodes_[k].offset = gaps(k, tail) - clusters.size(tail) * nodes_[tail].offset;
        nodes_[k].slope = -clusters.size(tail) * nodes_[tail].slope;
      }
    }
    double value;
    if (nodes_[p].cycle >= 0) {
      const auto [i, j] = edges[nodes_[p].cycle];
      const double along = clusters.size(i) * nodes_[i].slope, slope = along + nodes_[j].slope;
      if (std::abs(slope) <= 1e-9 * (std::abs(along) + std::abs(nodes_[j].slope))) return false;
      value = (gaps(i, j) - clusters.size(i) * nodes_[i].offset - nodes_[j].offset) / slope;
    } else {
      value = tree_root_value(its, slack[root]);
    }
    for (Index k : its) {
      slack[k] = nodes_[k].offset + nodes_[k].slope * value;
      if (!(slack[k] > 0.0)) return false;
    }
  }
  for (const auto& [i, j] : edges)  // or the chain amplified rounding errors: leave it to the barrier
    if (std::abs(clusters.size(i) * slack[i] + slack[j] - gaps(i, j)) > 1e-12 * gaps(i, j)) return false;
  return true;
}

void Forest::multipliers(const Clusters& clusters, std::span<const Edge> edges, Row nu) {
  for (Index p = 0; p < parts_; ++p) {
    const std::span<const Index> its = part(p);
    for (Index k : its) nodes_[k].rest_slope = 0.0;
    const Index closing = nodes_[p].cycle;
    if (closing >= 0) {
      nodes_[edges[closing].tail].rest_slope -= clusters.size(edges[closing].tail);
      nodes_[edges[closing].head].rest_slope -= 1.0;
    }
    for (std::size_t place = its.size() - 1; place > 0; --place) {
      const Index k = its[place], e = nodes_[k].parent;
      const bool ours = edges[e].tail == k;
      const Index other = ours ? edges[e].head : edges[e].tail;
      const double own = ours ? clusters.inverse[k] : 1.0, theirs = ours ? 1.0 : clusters.size(other);
      share_[e] = rest[k] * own;
      share_slope_[e] = nodes_[k].rest_slope * own;
      rest[other] -= theirs * share_[e];
      nodes_[other].rest_slope -= theirs * share_slope_[e];
    }
    const Index root = its.front();
    const double around = closing >= 0 ? -rest[root] / nodes_[root].rest_slope : 0.0;
    if (closing >= 0) nu[closing] = around;
    for (Index k : its.subspan(1)) {
      const Index e = nodes_[k].parent;
      nu[e] = share_[e] + share_slope_[e] * around;
    }
  }
}

}  // namespace coterie::paper
