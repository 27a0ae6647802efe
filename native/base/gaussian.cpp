#include "base/gaussian.hpp"

namespace coterie {

double Gaussian::tail(std::uint64_t whole) {
  for (;;) {
    const double x = -ziggurat::INVERSE_RIGHT * std::log1p(-uniform());
    const double y = -std::log1p(-uniform());
    if (y + y > x * x) return (whole >> 8) & 1 ? -(ziggurat::RIGHT + x) : ziggurat::RIGHT + x;
  }
}

bool Gaussian::is_below(std::size_t step, double x) {
  using ziggurat::HEIGHT;
  return (HEIGHT[step - 1] - HEIGHT[step]) * uniform() + HEIGHT[step] < std::exp(-0.5 * x * x);
}

}  // namespace coterie
