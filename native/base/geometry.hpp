// Sums over the dimension, and distances between means and centers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/long_rows.hpp"
#include "base/table.hpp"

namespace coterie {

inline constexpr double INFINITE = std::numeric_limits<double>::infinity();

/// Squared distances this close to the best one, relatively, tie with it; the lowest index wins.
inline constexpr double TIE = 1e-12;
/// A bound decides only if it does so with this much to spare, so that rounding cannot.
inline constexpr double SURE = 1.0 - 1e-9;

/// Numbers side by side: as many as the processor that is compiled for takes at once, in GCC's and Clang's vectors.
#ifdef __AVX__
inline constexpr std::size_t WIDE = 4;
#else
inline constexpr std::size_t WIDE = 2;
#endif
#if defined(__GNUC__) || defined(__clang__)
using Wide [[gnu::vector_size(WIDE * sizeof(double))]] = double;
#else
/// The same without them, number by number.
struct Wide {
  double lane[WIDE] = {};

  Wide() = default;
  Wide(double same) { std::fill_n(lane, WIDE, same); }

  template <class With>
  friend Wide each(Wide one, const Wide& other, With with) {
    for (std::size_t i = 0; i < WIDE; ++i) one.lane[i] = with(one.lane[i], other.lane[i]);
    return one;
  }
  friend Wide operator+(const Wide& one, const Wide& other) {
    return each(one, other, [](double a, double b) { return a + b; });
  }
  friend Wide operator-(const Wide& one, const Wide& other) {
    return each(one, other, [](double a, double b) { return a - b; });
  }
  friend Wide operator*(const Wide& one, const Wide& other) {
    return each(one, other, [](double a, double b) { return a * b; });
  }
  friend Wide operator/(const Wide& one, const Wide& other) {
    return each(one, other, [](double a, double b) { return a / b; });
  }
  Wide& operator+=(const Wide& other) { return *this = *this + other; }
};
#endif

inline Wide wide_at(const double* from) {
  Wide found;
  std::memcpy(&found, from, sizeof found);
  return found;
}

/// Four sums side by side.
struct Lanes {
  Wide part[4 / WIDE] = {};

  template <class Term>
  void add(const double* x, const double* y, Term term) {
    for (std::size_t i = 0; i < 4 / WIDE; ++i) part[i] += term(wide_at(x + i * WIDE), wide_at(y + i * WIDE));
  }
  template <class Term>
  void add(const double* x, const double* y, const double* z, Term term) {
    for (std::size_t i = 0; i < 4 / WIDE; ++i)
      part[i] += term(wide_at(x + i * WIDE), wide_at(y + i * WIDE), wide_at(z + i * WIDE));
  }
  void add(const Lanes& other) {
    for (std::size_t i = 0; i < 4 / WIDE; ++i) part[i] += other.part[i];
  }
  double total() const {
    double lane[4];
    std::memcpy(lane, part, sizeof lane);
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
  }
};

/// Σ term(a[q], b[q]): blocks of sixteen, then of four, side by side, then what is left one after the other. The order
/// is written down here and nowhere left to the compiler: the same sum on every processor. `term` takes Wides, too.
template <class Term>
inline double sum_of(ConstRow a, ConstRow b, Term term) {
  const std::size_t n = a.size();
  assert(b.size() == n);
  const double *x = a.data(), *y = b.data();
  std::size_t q = 0;
  double total = 0.0;
  if (n >= 4) {
    Lanes lanes;
    if (n >= 16) {
      Lanes one, two, three;
      for (; q + 16 <= n; q += 16) {
        lanes.add(x + q, y + q, term);
        one.add(x + q + 4, y + q + 4, term);
        two.add(x + q + 8, y + q + 8, term);
        three.add(x + q + 12, y + q + 12, term);
      }
      lanes.add(one);
      two.add(three);
      lanes.add(two);
    }
    for (; q + 4 <= n; q += 4) lanes.add(x + q, y + q, term);
    total = lanes.total();
  }
  for (; q < n; ++q) total += term(x[q], y[q]);
  return total;
}

/// Σ term(a[q], b[q], c[q]): in the same order, but for blocks of sixteen.
template <class Term>
inline double sum_of(ConstRow a, ConstRow b, ConstRow c, Term term) {
  const std::size_t n = a.size();
  assert(b.size() == n && c.size() == n);
  const double *x = a.data(), *y = b.data(), *z = c.data();
  std::size_t q = 0;
  double total = 0.0;
  if (n >= 4) {
    Lanes lanes;
    for (; q + 4 <= n; q += 4) lanes.add(x + q, y + q, z + q, term);
    total = lanes.total();
  }
  for (; q < n; ++q) total += term(x[q], y[q], z[q]);
  return total;
}

inline double squared_distance(ConstRow a, ConstRow b) {
  if (a.size() >= LONG_ROW) return long_rows.squared_distance(a.data(), b.data(), a.size());
  return sum_of(a, b, [](auto one, auto other) {
    const auto gap = one - other;
    return gap * gap;
  });
}

inline double dot(ConstRow a, ConstRow b) {
  if (a.size() >= LONG_ROW) return long_rows.dot(a.data(), b.data(), a.size());
  return sum_of(a, b, [](auto one, auto other) { return one * other; });
}

/// The scalar products of a row and four others, each added up as by `sum_of`, but for blocks of sixteen.
inline std::array<double, 4> dots_with_four(ConstRow row, const double* const* others) {
  const std::size_t n = row.size();
  const double *x = row.data(), *a = others[0], *b = others[1], *c = others[2], *d = others[3];
  const auto product = [](Wide one, Wide other) { return one * other; };
  std::array<double, 4> total = {};
  std::size_t q = 0;
  if (n >= 4) {
    Lanes with_a, with_b, with_c, with_d;
    for (; q + 4 <= n; q += 4) {
      with_a.add(x + q, a + q, product);
      with_b.add(x + q, b + q, product);
      with_c.add(x + q, c + q, product);
      with_d.add(x + q, d + q, product);
    }
    total = {with_a.total(), with_b.total(), with_c.total(), with_d.total()};
  }
  for (; q < n; ++q) {
    total[0] += x[q] * a[q];
    total[1] += x[q] * b[q];
    total[2] += x[q] * c[q];
    total[3] += x[q] * d[q];
  }
  return total;
}

using EightRows = LongRows::EightRows;  // each as long as the row beside them
using Eight = LongRows::Eight;

/// The scalar products of a row and eight others: a long row is read once for them.
inline Eight dots_with_eight(ConstRow row, const EightRows& others) {
  if (row.size() >= LONG_ROW) return long_rows.dots_with_eight(row.data(), others, row.size());
  const std::array<double, 4> first = dots_with_four(row, others.data()), last = dots_with_four(row, &others[4]);
  return {first[0], first[1], first[2], first[3], last[0], last[1], last[2], last[3]};
}

/// Add so many times eight rows to a row, one after the other.
inline void add_eight(Row to, const EightRows& rows, const Eight& times) {
  if (to.size() >= LONG_ROW) return long_rows.add_eight(to.data(), rows, times, to.size());
  double* __restrict into = to.data();
  for (std::size_t j = 0; j < 8; j += 4) {
    const double *a = rows[j], *b = rows[j + 1], *c = rows[j + 2], *d = rows[j + 3];
    for (std::size_t q = 0; q < to.size(); ++q)
      into[q] = into[q] + times[j] * a[q] + times[j + 1] * b[q] + times[j + 2] * c[q] + times[j + 3] * d[q];
  }
}

/// (a − from)·(b − from).
inline double product_of_gaps(ConstRow a, ConstRow b, ConstRow from) {
  if (a.size() >= LONG_ROW) return long_rows.product_of_gaps(a.data(), b.data(), from.data(), a.size());
  return sum_of(a, b, from, [](auto one, auto other, auto at) { return (one - at) * (other - at); });
}

/// Between the mean of an arm, its sum times 1/pulls, and a point.
inline double distance_to_mean(ConstRow sum, double inverse, ConstRow point) {
  if (sum.size() >= LONG_ROW) return long_rows.distance_to_mean(sum.data(), inverse, point.data(), sum.size());
  return sum_of(sum, point, [inverse](auto its, auto at) {
    const auto gap = its * inverse - at;
    return gap * gap;
  });
}

/// Between two means, sums times 1/pulls.
inline double distance_of_means(ConstRow a, double of_a, ConstRow b, double of_b) {
  if (a.size() >= LONG_ROW) return long_rows.distance_of_means({a.data(), of_a}, {b.data(), of_b}, a.size());
  return sum_of(a, b, [of_a, of_b](auto one, auto other) {
    const auto gap = one * of_a - other * of_b;
    return gap * gap;
  });
}

/// to = a − b.
inline void difference(Row to, ConstRow a, ConstRow b) {
  if (to.size() >= LONG_ROW) return long_rows.difference(to.data(), a.data(), b.data(), to.size());
  for (std::size_t q = 0; q < to.size(); ++q) to[q] = a[q] - b[q];
}

/// to += times·row.
inline void add_multiple(Row to, double times, ConstRow row) {
  if (to.size() >= LONG_ROW) return long_rows.add_multiple(to.data(), times, row.data(), to.size());
  for (std::size_t q = 0; q < to.size(); ++q) to[q] += times * row[q];
}

/// A result x is added to the sums of its arm and of its group; returns how far the arm's mean was from the center, and
/// how far it is now. `of_pulls`: 1/pulls, before and now.
inline LongRows::Distances take_in(Row sum, Row group_sum, ConstRow x, LongRows::Inverses of_pulls, ConstRow center) {
  if (x.size() >= LONG_ROW)
    return long_rows.take_in(sum.data(), group_sum.data(), x.data(), of_pulls, center.data(), x.size());
  const double before = distance_to_mean(sum, of_pulls.before, center);
  for (std::size_t q = 0; q < x.size(); ++q) {
    sum[q] += x[q];
    group_sum[q] += x[q];
  }
  return {before, distance_to_mean(sum, of_pulls.after, center)};
}

/// Put a center at a sum times `inverse`; returns the squared shift.
inline double move_to_mean(Row center, ConstRow sum, double inverse) {
  if (sum.size() >= LONG_ROW) return long_rows.move_to_mean(center.data(), sum.data(), inverse, sum.size());
  const double shift = distance_to_mean(sum, inverse, center);
  for (std::size_t q = 0; q < sum.size(); ++q) center[q] = sum[q] * inverse;
  return shift;
}

struct Nearest {
  Index label;
  double best, second;  // distances to the nearest center, and to the best other one
};

/// The center nearest to an arm's mean. Ties within TIE go to the lowest number (Section 3's convention for argmin).
/// A tie shows as a margin of (almost) zero. Work space: distances (K).
inline Nearest nearest_two(ConstRow sum, double inverse, const Numbers& centers, Row distances) {
  const Index n = centers.rows();
  double best = INFINITE;
  for (Index k = 0; k < n; ++k) {
    distances[k] = distance_to_mean(sum, inverse, centers[k]);
    best = std::min(best, distances[k]);
  }
  Index label = -1;
  double chosen = best, second = INFINITE;
  for (Index k = 0; k < n; ++k) {
    if (label < 0 && distances[k] <= best * (1.0 + TIE)) {
      label = k;
      chosen = distances[k];
    } else {
      second = std::min(second, distances[k]);
    }
  }
  return {label, std::sqrt(chosen), std::sqrt(second)};
}

}  // namespace coterie
