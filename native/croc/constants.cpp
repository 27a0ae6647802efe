#include "croc/constants.hpp"

namespace coterie::croc {

Constants::Constants() {
  const std::array<double, RATIOS> ratio_weights = {0.4, 0.1, 0.1, 0.1};
  for (Index i = 0; i < RATIOS; ++i) log_ratio_weights[i] = std::log(ratio_weights[i]);
  const std::array<double, 5> first_weights = {0.08, 0.19, 0.25, 0.25, 0.12};
  for (Index i = 0; i < SCALES; ++i) {
    scales[i] = std::ldexp(1.0, static_cast<int>(2 * (3 - i)));  // 4³, 4², …, 4⁻⁷
    const double weight = i < 5 ? first_weights[i] : std::ldexp(0.055, static_cast<int>(5 - i));
    log_scale_weights[i] = std::log(weight);
  }
}

bool Constants::is_sound() const {
  const auto all = [](auto... sizes) { return ((sizes >= 1 && sizes <= (Index(1) << 30)) && ...); };
  bool sound =
      all(epochs, core, grid_step, octaves, prefix_room, prefix_numbers, flight, scale_up, round_places, most_repeats,
          passes, doublings, lead_levels, first_results, innovations, rates, root_steps, pairs_per_pull, starts_results,
          starts_work, patience_results, patience_work, estimate_arms, estimate_results, shape_results, shape_repeats,
          shape_numbers, block_ratios[0], block_ratios[1], block_ratios[2], block_ratios[3]);
  sound = sound && octaves <= 32 && flight >= 2 && doublings <= 32 && lead_levels <= 32 && !steps.empty() &&
          prefix_room % grid_step == 0 && subspace_extra >= -1 && look_ahead >= 0;
  for (Index each : steps) sound = sound && each >= 0;
  return sound;
}

}  // namespace coterie::croc
