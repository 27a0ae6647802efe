// Evidence from outside: a family whose kernels are handed in, as functions or by the addresses of C functions.
//
// docs/howto/researchers.md shows a family of one's own; docs/CROC.md, section 15, says what its kernels must hold.
#pragma once

#include <cstdint>
#include <functional>

#include "croc/family.hpp"

namespace coterie::croc {

/// Kernels, as `Family` has them; those that are not handed in are empty.
struct Kernels {
  std::function<double(const Contrast& round, Row learned, Row kept, ConstRow parameters)> factor;
  std::function<double(ConstRow parameters, double level, double square, double pool, Index dim)> pulls_needed;
  std::function<void(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned,
                     ConstRow parameters, Row bet)>
      bet;
  std::function<void(ConstRow position, ConstRow bet, ConstRow shared, ConstRow parameters, Row scores,
                     Row round_scores, Index home)>
      score;
  std::function<void(ConstRow scores, ConstRow parameters, Row pooled)> pool;
  std::function<void(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow parameters, Row shared)>
      freeze;
  std::function<void(ConstRow round_scores, double results, ConstRow parameters, Row shared)> gather;
  std::function<double(const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees,
                       ConstRow parameters, ConstRow shared, Index home, Index k)>
      quality;
};

/// C functions for the kernels. Tables are (n_groups, dim), metric and scatter (dim, dim), row after row; an array
/// without numbers may be a null pointer. Other sizes are the family's own, `parameters` what it was made with. They
/// are called without the interpreter lock, by several threads at once if several runs share the family.
namespace by_address {

extern "C" {
using Factor = double (*)(const double* contrast, const double* guess, const double* arm_scores,
                          const double* pool_scores, const double* bet, const double* shared, double* learned,
                          double* kept, const double* parameters, std::int64_t dim, double arm_pulls, double pool_pulls,
                          double spread, double weight, double level, double share, std::int64_t home, std::int64_t k);
using PullsNeeded = double (*)(const double* parameters, double level, double square, double pool, std::int64_t dim);
using Bet = void (*)(const double* centers, const double* totals, const double* metric, const double* learned,
                     const double* parameters, double* bet, std::int64_t n_groups, std::int64_t dim);
using Score = void (*)(const double* position, const double* bet, const double* shared, const double* parameters,
                       double* scores, double* round_scores, std::int64_t dim, std::int64_t home);
using Pool = void (*)(const double* scores, const double* parameters, double* pooled);
using Freeze = void (*)(const double* centers, const double* totals, const double* metric, const double* parameters,
                        double* shared, std::int64_t n_groups, std::int64_t dim);
using Gather = void (*)(const double* round_scores, double results, const double* parameters, double* shared);
using Quality = double (*)(const double* centers, const double* metric, const double* scatter, double degrees,
                           const double* parameters, const double* shared, std::int64_t n_groups, std::int64_t dim,
                           std::int64_t home, std::int64_t k);
}

decltype(Kernels::factor) kernel(Factor function);
decltype(Kernels::pulls_needed) kernel(PullsNeeded function);
decltype(Kernels::bet) kernel(Bet function);
decltype(Kernels::score) kernel(Score function);
decltype(Kernels::pool) kernel(Pool function);
decltype(Kernels::freeze) kernel(Freeze function);
decltype(Kernels::gather) kernel(Gather function);
decltype(Kernels::quality) kernel(Quality function);

}  // namespace by_address

class HandedIn final : public Family {
 public:
  /// `traits` need not say which kernels there are.
  HandedIn(Traits traits, Kernels kernels, std::vector<double> parameters);

  double factor(const Contrast& round, Row learned, Row kept) const override;
  double pulls_needed(double level, double square, double pool, Index dim) const override;
  void bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const override;
  void score(ConstRow position, ConstRow bet, ConstRow shared, Row scores, Row round_scores, Index home) const override;
  void pool(ConstRow scores, Row pooled) const override;
  void freeze(const Numbers& centers, ConstRow totals, const Numbers& metric, Row shared) const override;
  void gather(ConstRow round_scores, double results, Row shared) const override;
  double quality(const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees, ConstRow shared,
                 Index home, Index k) const override;

 private:
  Kernels kernels_;
  std::vector<double> parameters_;
};

}  // namespace coterie::croc
