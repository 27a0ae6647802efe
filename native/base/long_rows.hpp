// Sums over rows of many numbers, with the widest vectors that the processor at hand has. The order of each sum is
// written down and does not depend on their width: the same numbers to the last bit on every processor.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace coterie {

/// Numbers from which on a row is long: a call that cannot be inlined is nothing beside its sum.
inline constexpr std::size_t LONG_ROW = 64;

/// Pointers to rows of n numbers each; what each does is said in geometry.hpp.
struct LongRows {
  using Eight = std::array<double, 8>;
  using EightRows = std::array<const double*, 8>;
  struct Distances {
    double before, after;
  };
  struct Inverses {
    double before, after;
  };
  /// A row of sums, and 1 over how many results are in it.
  struct Sum {
    const double* sum;
    double inverse;
  };

  double (*squared_distance)(const double* a, const double* b, std::size_t n);
  double (*dot)(const double* a, const double* b, std::size_t n);
  double (*distance_to_mean)(const double* sum, double inverse, const double* point, std::size_t n);
  double (*distance_of_means)(Sum a, Sum b, std::size_t n);
  double (*product_of_gaps)(const double* a, const double* b, const double* from, std::size_t n);
  Eight (*dots_with_eight)(const double* row, const EightRows& others, std::size_t n);
  void (*difference)(double* to, const double* a, const double* b, std::size_t n);
  void (*add_multiple)(double* to, double times, const double* row, std::size_t n);
  Distances (*take_in)(double* sum, double* group_sum, const double* x, Inverses of_pulls, const double* center,
                       std::size_t n);
  double (*move_to_mean)(double* center, const double* sum, double inverse, std::size_t n);
  void (*add_eight)(double* to, const EightRows& rows, const Eight& times, std::size_t n);
};

/// All that the processor at hand can run, the widest last.
std::vector<LongRows> usable_long_rows();

/// The widest of them.
extern const LongRows long_rows;

}  // namespace coterie
