// Room for what is known of each arm, and the counts at which the sums of its first results are kept.
#include "croc/arms.hpp"

namespace coterie::croc {

Arms::Arms(Index n_arms, Index dim, Index room, ConstRow prices, const Constants& constants)
    : unseen(n_arms),
      pulls(n_arms),
      committed(n_arms),
      origin(dim),
      origin_rest(dim),
      offset(n_arms, dim),
      offset_rest(n_arms, dim),
      sums(n_arms, dim),
      means(n_arms, dim),
      prefixes(room + 1, n_arms, dim),
      grid(constants.octaves * room / constants.grid_step, n_arms, dim),
      touched(n_arms),
      is_touched(n_arms),
      price(n_arms),
      reserve(n_arms) {
  assert(prices.empty() || Index(prices.size()) == n_arms);
  for (Index m = 0; m < n_arms; ++m) {
    price[m] = prices.empty() ? 1.0 : prices[m];
    reserve[m] = std::log(price[m]);
    if (price[m] != 1.0) priced = true;
  }
}

Index prefix_room(Index n_arms, Index dim, const Constants& constants) {
  Index room = constants.prefix_room;
  while (room > constants.grid_step && room * n_arms * dim > constants.prefix_numbers) room /= 2;
  return room;
}

Index grid_place(Index n, Index room, Index grid_step) {
  Index octave = 0, low = room;
  while (2 * low <= n) {
    low *= 2;
    ++octave;
  }
  return octave * (room / grid_step) + (n - low) / (grid_step << octave);
}

Index grid_count(Index place, Index room, Index grid_step) {
  const Index steps = room / grid_step;
  return (room + grid_step * (place % steps)) << (place / steps);
}

}  // namespace coterie::croc
