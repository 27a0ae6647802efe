#include "croc/features.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace coterie::croc {

namespace {

/// Numbers that look random, the same on every machine: splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// In (0, 1).
  double uniform() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    mixed ^= mixed >> 31;
    return (static_cast<double>(mixed >> 11) + 0.5) * 0x1p-53;
  }
  /// Box and Muller, the first of two.
  double normal() {
    const double length = std::sqrt(-2.0 * std::log(uniform()));
    return length * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace

Features::Features(Index dim) : dim_(dim), size_(OF_A_NUMBER * dim + dim * (dim - 1) / 2) {
  if (size_ <= MOST) return;
  size_ = MOST;
  waves_ = Numbers(MOST, dim + 1);
  Random random(SEED);
  for (Index i = 0; i < MOST; ++i) {
    for (Index q = 0; q < dim; ++q) waves_(i, q) = random.normal() / std::sqrt(static_cast<double>(dim));
    waves_(i, dim) = 2.0 * std::numbers::pi * random.uniform();
  }
}

std::vector<std::string> Features::names() const {
  std::vector<std::string> all;
  if (are_random()) {
    for (Index i = 0; i < size_; ++i) all.push_back("wave " + std::to_string(i));
    return all;
  }
  for (Index q = 0; q < dim_; ++q)
    for (const char* name : {"clip", "abs", "log", "tanh", "tanh2", "cos", "sin"})
      all.push_back(std::string(name) + " " + std::to_string(q));
  for (Index a = 0; a < dim_; ++a)
    for (Index b = a + 1; b < dim_; ++b) all.push_back("product " + std::to_string(a) + " " + std::to_string(b));
  return all;
}

void Features::fill(ConstRow position, ConstRow middle, ConstRow scale, Row out) const {
  const auto z = [&](Index q) { return std::clamp((position[q] - middle[q]) / scale[q], -FAR, FAR); };
  if (are_random()) {
    for (Index i = 0; i < size_; ++i) out[i] = waves_(i, dim_);
    for (Index q = 0; q < dim_; ++q) {
      const double its = z(q);
      for (Index i = 0; i < size_; ++i) out[i] += waves_(i, q) * its;
    }
    for (Index i = 0; i < size_; ++i) out[i] = std::cos(out[i]);
    return;
  }
  std::array<double, MOST> along;  // tanh z of each number
  double* next = out.data();
  for (Index q = 0; q < dim_; ++q) {
    const double its = z(q), steep = std::tanh(2.0 * its);
    along[static_cast<std::size_t>(q)] = std::tanh(its);
    *next++ = std::clamp(its, -6.0, 6.0);
    *next++ = std::min(std::abs(its), 6.0);
    *next++ = std::log1p(its * its);
    *next++ = along[static_cast<std::size_t>(q)];
    *next++ = steep * steep;
    *next++ = std::cos(2.0 * its);
    *next++ = std::sin(2.0 * its);
  }
  for (Index a = 0; a < dim_; ++a)
    for (Index b = a + 1; b < dim_; ++b)
      *next++ = along[static_cast<std::size_t>(a)] * along[static_cast<std::size_t>(b)];
}

}  // namespace coterie::croc
