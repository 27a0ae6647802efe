#include "paper/barrier.hpp"

#include <cmath>

#include "base/geometry.hpp"

namespace coterie::paper {

namespace {

/// Cholesky in place, then two triangular solves. INOUT: matrix, right. False if not positive definite.
bool solve_positive(Numbers& matrix, Row right) {
  const Index n = matrix.rows();
  for (Index j = 0; j < n; ++j) {
    for (Index k = 0; k < j; ++k)
      for (Index i = j; i < n; ++i) matrix(i, j) -= matrix(i, k) * matrix(j, k);
    if (!(matrix(j, j) > 0.0)) return false;
    const double pivot = std::sqrt(matrix(j, j));
    for (Index i = j; i < n; ++i) matrix(i, j) /= pivot;
  }
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0; k < i; ++k) right[i] -= matrix(i, k) * right[k];
    right[i] /= matrix(i, i);
  }
  for (Index i = n - 1; i >= 0; --i) {
    for (Index k = i + 1; k < n; ++k) right[i] -= matrix(k, i) * right[k];
    right[i] /= matrix(i, i);
  }
  return true;
}

}  // namespace

Barrier::Barrier(Index n_clusters)
    : room(n_clusters, n_clusters), dual(n_clusters, n_clusters), matrix_(n_clusters, n_clusters), step_(n_clusters) {}

/// A point inside, and how many constraints there are.
Index Barrier::begin(const Clusters& clusters, double scale, Row slack) {
  const Index n = clusters.count();
  double value = 0.0;
  Index count = 0;
  for (Index k = 0; k < n; ++k) {
    double nearest = INFINITE;
    for (Index j = 0; j < n; ++j)
      if (j != k) nearest = std::min(nearest, clusters.gaps(k, j));
    slack[k] = 0.45 * nearest / scale / clusters.size(k);
    value += 1.0 / slack[k];
    for (Index j = 0; j < n; ++j) count += j != k && !clusters.is_twin(k, j);
  }
  room.fill(1.0);
  dual.fill(0.0);
  for (Index k = 0; k < n; ++k)
    for (Index j = 0; j < n; ++j)
      if (j != k && !clusters.is_twin(k, j)) {
        room(k, j) = clusters.gaps(k, j) / scale - clusters.size(k) * slack[k] - slack[j];
        dual(k, j) = value / static_cast<double>(count) / room(k, j);
      }
  return count;
}

/// Along `step_`, as far as everything stays positive.
void Barrier::take_step(const Clusters& clusters, double target, Row slack) {
  const Index n = clusters.count();
  const auto change = [&](Index k, Index j) { return clusters.size(k) * step_[k] + step_[j]; };
  const auto move = [&](Index k, Index j) {
    return target / room(k, j) - dual(k, j) + dual(k, j) / room(k, j) * change(k, j);
  };
  double primal = 1.0, dual_step = 1.0;
  for (Index k = 0; k < n; ++k)
    if (step_[k] < 0.0) primal = std::min(primal, -0.9 * slack[k] / step_[k]);
  for (Index k = 0; k < n; ++k)
    for (Index j = 0; j < n; ++j) {
      if (!(dual(k, j) > 0.0)) continue;
      if (change(k, j) > 0.0) primal = std::min(primal, 0.99 * room(k, j) / change(k, j));
      if (move(k, j) < 0.0) dual_step = std::min(dual_step, -0.99 * dual(k, j) / move(k, j));
    }
  for (Index k = 0; k < n; ++k)
    for (Index j = 0; j < n; ++j) {
      if (!(dual(k, j) > 0.0)) continue;
      dual(k, j) += dual_step * move(k, j);
      room(k, j) -= primal * change(k, j);
    }
  for (Index k = 0; k < n; ++k) slack[k] += primal * step_[k];
}

void Barrier::solve(const Clusters& clusters, Row slack) {
  const Index n = clusters.count();
  double scale = INFINITE;
  for (Index k = 0; k < n; ++k)
    for (Index j = 0; j < n; ++j)
      if (j != k) scale = std::min(scale, clusters.gaps(k, j));
  const double count = static_cast<double>(begin(clusters, scale, slack));
  for (int i = 0; i < 100; ++i) {
    double complementarity = 0.0, misfit = 0.0, value = 0.0;
    for (Index k = 0; k < n; ++k)
      for (Index j = 0; j < n; ++j) complementarity += room(k, j) * dual(k, j);
    const double target = 0.1 * complementarity / count;
    matrix_.fill(0.0);
    for (Index k = 0; k < n; ++k) {
      const double inverse = 1.0 / slack[k];
      value += inverse;
      matrix_(k, k) = 2.0 * inverse * inverse * inverse;
      step_[k] = inverse * inverse;
    }
    for (Index k = 0; k < n; ++k)
      for (Index j = 0; j < n; ++j) {
        if (!(dual(k, j) > 0.0)) continue;
        const double ratio = dual(k, j) / room(k, j), size = clusters.size(k);
        matrix_(k, k) += ratio * size * size;
        matrix_(j, j) += ratio;
        matrix_(std::max(k, j), std::min(k, j)) += ratio * size;
        step_[k] -= size * dual(k, j);
        step_[j] -= dual(k, j);
      }
    for (Index k = 0; k < n; ++k) misfit = std::max(misfit, std::abs(step_[k]) * slack[k] * slack[k]);
    if (complementarity <= 1e-15 * value && misfit <= 1e-11) break;
    for (Index k = 0; k < n; ++k)
      for (Index j = 0; j < n; ++j) {
        if (!(dual(k, j) > 0.0)) continue;
        const double pull = target / room(k, j) - dual(k, j);
        step_[k] -= clusters.size(k) * pull;
        step_[j] -= pull;
      }
    if (!solve_positive(matrix_, step_)) break;
    take_step(clusters, target, slack);
  }
  for (Index k = 0; k < n; ++k) {
    slack[k] *= scale;
    for (Index j = 0; j < n; ++j) {
      room(k, j) *= scale;
      dual(k, j) /= scale * scale;
    }
  }
}

}  // namespace coterie::paper
