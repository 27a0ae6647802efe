// Tables of the pairs' mixture over scales (docs/CROC.md, section 2).
#include <mutex>

#include "croc/pairs.hpp"

namespace coterie::croc {

Mixture::Mixture(Index room, Index dim, const Constants& constants) : dim(dim) {
  if (room == 0) return;
  const Index places = constants.octaves * room / constants.grid_step, rows = room + 1 + places;
  base = Numbers(rows, Constants::SCALES);
  slope = Numbers(rows, Constants::SCALES);
  crest = Numbers(rows, CREST + 1);
  for (Index row = 0; row < rows; ++row) {
    const Index n = row <= room ? row : grid_count(row - room - 1, room, constants.grid_step);
    for (Index i = 0; i < Constants::SCALES; ++i) {
      const double scaled = double(n) * constants.scales[i];
      base(row, i) = constants.log_scale_weights[i] - 0.5 * double(dim) * std::log1p(scaled);
      slope(row, i) = 0.5 * scaled / (1.0 + scaled);
    }
    for (Index j = 0; j <= CREST; ++j) crest(row, j) = value(row, CREST_STEP * double(j));
  }
}

double Mixture::value(Index row, double energy) const {
  const ConstRow bases = base[row], slopes = slope[row];
  double largest = -INFINITE;
  for (Index i = 0; i < Constants::SCALES; ++i) largest = std::max(largest, bases[i] + slopes[i] * energy);
  double total = 0.0;
  for (Index i = 0; i < Constants::SCALES; ++i) {
    const double exponent = bases[i] + slopes[i] * energy - largest;
    if (exponent > -45.0) total += std::exp(exponent);  // what is left out is far below the last bit
  }
  return largest + std::log(total);
}

double Mixture::ceiling(Index row, double energy) const {
  const double at = energy / CREST_STEP;
  if (at < double(CREST)) {
    const Index i = Index(at);
    return crest(row, i) + (at - double(i)) * (crest(row, i + 1) - crest(row, i)) + 1e-9;
  }
  const double d = double(dim);
  if (energy <= d) return 1e-9;
  return 0.5 * (energy - d) - 0.5 * d * std::log(energy / d) + 1e-9;
}

namespace {

struct Made {
  Index room, dim, grid_step, octaves;
  std::array<double, Constants::SCALES> scales, log_scale_weights;

  bool operator==(const Made&) const = default;
};

constexpr std::size_t REMEMBERED = 8;

}  // namespace

std::shared_ptr<const Mixture> Mixture::shared(Index room, Index dim, const Constants& constants) {
  static std::mutex lock;
  static std::vector<std::pair<Made, std::shared_ptr<const Mixture>>> made;  // the newest last
  const Made wanted = {
      room, dim, constants.grid_step, constants.octaves, constants.scales, constants.log_scale_weights};
  const auto found = [&]() -> std::shared_ptr<const Mixture> {
    for (const auto& [key, tables] : made)
      if (key == wanted) return tables;
    return nullptr;
  };
  {
    const std::lock_guard guard(lock);
    if (auto tables = found()) return tables;
  }
  auto tables = std::make_shared<const Mixture>(room, dim, constants);  // without the lock: NumPy may ask for its own
  const std::lock_guard guard(lock);
  if (auto other = found()) return other;
  if (made.size() == REMEMBERED) made.erase(made.begin());
  made.emplace_back(wanted, tables);
  return tables;
}

}  // namespace coterie::croc
