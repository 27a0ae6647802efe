// Where estimates begin: Maximin, and the leading principal components of the means.
#include "croc/estimate.hpp"

namespace coterie::croc {

/// Maximin. OUT: labels. With `by_pulls`, squared distances times N_i·N_j/(N_i+N_j), from the most pulled arm. Work
/// space: near.
void farthest_first(const Numbers& points, ConstRow weights, Index n_groups, bool by_pulls, Row near,
                    std::span<Index> labels) {
  const Index n = Index(labels.size());
  Index start = 0;
  for (Index m = 0; m < n; ++m) {
    near[m] = INFINITE;
    if (by_pulls && weights[m] > weights[start]) start = m;
  }
  for (Index k = 0; k < n_groups; ++k) {
    const ConstRow from = points[start];
    const double its = weights[start];
    for (Index m = 0; m < n; ++m) {
      double value = squared_distance(points[m], from);
      if (by_pulls) value *= weights[m] * its / (weights[m] + its);
      if (value < near[m]) {
        near[m] = value;
        labels[m] = k;
      }
    }
    start = 0;
    for (Index m = 0; m < n; ++m)
      if (near[m] > near[start]) start = m;
  }
}

namespace {

/// Gram–Schmidt, twice for accuracy. INOUT: the rows.
void orthonormalise(Numbers& basis) {
  const Index n = basis.rows();
  for (int pass = 0; pass < 2; ++pass) {
    for (Index i = 0; i < n; ++i) {
      const Row mine = basis[i];
      for (Index j = 0; j < i; ++j) {
        const ConstRow other = basis[j];
        const double along = dot(mine, other);
        add_multiple(mine, -along, other);
      }
      double length = dot(mine, mine);
      if (length > 0.0) {
        length = 1.0 / std::sqrt(length);
        for (double& each : mine) each *= length;
      }
    }
  }
}

/// Eight arms, the first of them `first`, add to the image: a row of the basis and of the image is read once for them.
/// INOUT: image. Work space: away (8, d).
void add_image(const Numbers& points, ConstRow weights, Index first, ConstRow mean, const Numbers& basis, Numbers& away,
               Numbers& image) {
  const Index n = points.rows();
  EightRows rows;
  Eight weight;
  for (Index i = 0; i < 8; ++i) {
    const Row row = away[i];
    rows[i] = row.data();
    weight[i] = weights[std::min(first + i, n - 1)];
    if (first + i < n) {
      difference(row, points[first + i], mean);
    } else {
      std::fill(row.begin(), row.end(), 0.0);
    }
  }
  for (Index i = 0; i < basis.rows(); ++i) {
    Eight along = dots_with_eight(basis[i], rows);
    for (std::size_t j = 0; j < 8; ++j) along[j] *= weight[j];
    add_eight(image[i], rows, along);
  }
}

}  // namespace

/// Coordinates of the points along about their `rank` leading weighted principal components. OUT: work.reduced.
/// Subspace iteration, started at evenly spread arms: it only has to find the directions in which groups lie apart.
void components(const Numbers& points, ConstRow weights, Index rank, Work& work, const Constants& constants) {
  const Index n = points.rows(), d = points.columns();
  Numbers &basis = work.basis, &image = work.image;
  const Index wide = basis.rows();
  const Row mean = work.mean;
  std::fill(mean.begin(), mean.end(), 0.0);
  for (Index m = 0; m < n; ++m) {
    const ConstRow point = points[m];
    for (Index q = 0; q < d; ++q) mean[q] += point[q] / double(n);
  }
  for (Index i = 0; i < wide; ++i) {
    difference(basis[i], points[i * n / wide], mean);
  }
  for (Index pass = 0; pass < constants.subspace_passes; ++pass) {
    orthonormalise(basis);
    image.fill(0.0);
    for (Index first = 0; first < n; first += 8) add_image(points, weights, first, mean, basis, work.away, image);
    std::copy(image.cells().begin(), image.cells().end(), basis.cells().begin());
  }
  orthonormalise(basis);  // the iteration brings the rows into the order of what they carry
  for (Index m = 0; m < n; ++m)
    for (Index i = 0; i < rank; ++i) work.reduced(m, i) = dot(points[m], basis[i]);
}

}  // namespace coterie::croc
