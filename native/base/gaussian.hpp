// Standard Gaussian numbers from one of NumPy's bit generators: the very numbers of Generator.standard_normal.
#pragma once

#include <numpy/random/bitgen.h>

#include <bit>
#include <cmath>

#include "base/table.hpp"
#include "base/ziggurat_tables.hpp"

namespace coterie {

/// 99 of 100 draws are one look-up; the rest, the tail and the edges of the steps, is in gaussian.cpp.
class Gaussian {
 public:
  explicit Gaussian(bitgen_t* bits) : bits_(bits) {}

  double operator()() {
    for (;;) {
      const std::uint64_t drawn = bits_->next_uint64(bits_->state);
      const std::size_t step = drawn & 0xff;
      const std::uint64_t whole = (drawn >> 9) & 0x000fffffffffffff;
      const double size = static_cast<double>(whole) * ziggurat::WIDTH[step];
      const std::uint64_t sign = (drawn >> 8) << 63;  // put in place, not chosen: nobody can foresee that branch
      const double x = std::bit_cast<double>(std::bit_cast<std::uint64_t>(size) ^ sign);
      if (whole < ziggurat::LIMIT[step]) [[likely]]
        return x;
      if (step == 0) return tail(whole);
      if (is_below(step, x)) return x;
    }
  }

  void fill(Row x) {
    for (double& each : x) each = (*this)();
  }

 private:
  double uniform() { return bits_->next_double(bits_->state); }
  double tail(std::uint64_t whole);
  bool is_below(std::size_t step, double x);

  bitgen_t* bits_;
};

}  // namespace coterie
