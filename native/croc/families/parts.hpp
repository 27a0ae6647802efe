// Numbers of a family that lie in one array, as bets and shared numbers are recorded: tables, one after the other.
#pragma once

#include "base/table.hpp"

namespace coterie::croc {

/// A table inside an array.
template <class T>
class Part {
 public:
  Part(T* cells, Index rows, Index columns) : cells_(cells), rows_(rows), columns_(columns) {}

  T& operator()(Index i, Index j) const {
    assert(0 <= i && i < rows_ && 0 <= j && j < columns_);
    return cells_[i * columns_ + j];
  }
  std::span<T> operator[](Index i) const {
    assert(0 <= i && i < rows_);
    return {cells_ + i * columns_, static_cast<std::size_t>(columns_)};
  }
  /// Number i of all, row after row.
  T& flat(Index i) const {
    assert(0 <= i && i < rows_ * columns_);
    return cells_[i];
  }

 private:
  T* cells_;
  Index rows_, columns_;
};

/// Hands out an array part by part.
template <class T>
class Parts {
 public:
  explicit Parts(std::span<T> all) : rest_(all) {}

  Part<T> table(Index rows, Index columns) {
    assert(Index(rest_.size()) >= rows * columns);
    T* first = rest_.data();
    rest_ = rest_.subspan(static_cast<std::size_t>(rows * columns));
    return {first, rows, columns};
  }
  T& number() { return table(1, 1)(0, 0); }

 private:
  std::span<T> rest_;
};

/// f: the least factor by which the distance of two centers is shortened for its error.
inline constexpr double LEAST_TRUST = 0.3;
/// Squared distances are at least this.
inline constexpr double LEAST_SQUARE = 1e-18;

/// f = 1 − d·(1/W_k + 1/W_j)/Δ̂², at least LEAST_TRUST: how far the distance of two centers is to be believed.
inline double trust_in_gap(Index dim, double total, double other, double square) {
  const double trust = 1.0 - double(dim) * (1.0 / total + 1.0 / other) / square;
  return std::max(LEAST_TRUST, trust);
}

/// out += T'·T·position, with T lower triangular. Returns ‖T·position‖²/2.
inline double add_in_units(const Numbers& metric, ConstRow position, Row out) {
  double half_square = 0.0;
  for (Index i = 0; i < metric.rows(); ++i) {
    double along = 0.0;  // coordinate i of T·position
    for (Index q = 0; q <= i; ++q) along += metric(i, q) * position[q];
    half_square += 0.5 * along * along;
    for (Index q = 0; q <= i; ++q) out[q] += metric(i, q) * along;
  }
  return half_square;
}

/// ‖T·(one − other)‖² of the differences that `gap` says.
template <class Gap>
double square_in_units(const Numbers& metric, Gap gap) {
  double square = 0.0;
  for (Index i = 0; i < metric.rows(); ++i) {
    double along = 0.0;
    for (Index q = 0; q <= i; ++q) along += metric(i, q) * gap(q);
    square += along * along;
  }
  return square;
}

/// (G_k − G_j)·(Û_k − Û_j), with G = Σ̂⁻¹·Û; at least LEAST_SQUARE.
template <class T>
double square_of_groups(const Part<T>& weighted, const Numbers& centers, Index k, Index j) {
  double square = 0.0;
  for (Index q = 0; q < centers.columns(); ++q)
    square += (weighted(k, q) - weighted(j, q)) * (centers(k, q) - centers(j, q));
  return std::max(square, LEAST_SQUARE);
}

}  // namespace coterie::croc
