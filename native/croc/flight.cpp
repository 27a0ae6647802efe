#include "croc/flight.hpp"

namespace coterie::croc {

Flight::Flight(Index n_arms, Index dim, Index bet_size, Index scores_of_arm, Index scores_of_round, bool shuffled,
               const Constants& constants)
    : shuffled(shuffled),
      rounds(constants.flight),
      entries(entry_room(n_arms, constants)),
      entry_sums(entries.size(), dim),
      entry_scores(entries.size(), scores_of_arm),
      bets(constants.flight, bet_size),
      scores(constants.flight, scores_of_round) {}

/// Where `size` entries in a row are free, −1 if nowhere.
Index Flight::room_for(Index size) const {
  if (oldest > last) return size <= entries.size() ? 0 : -1;  // none are kept
  const Index head = round(oldest).first;
  if (tail > head) {
    if (tail + size <= entries.size()) return tail;
    return size < head ? 0 : -1;
  }
  return tail + size < head ? tail : -1;
}

bool Flight::start(std::span<const Index> composition, Index epoch) {
  Index size = 0, pulls = 0;
  for (Index count : composition) {
    if (count > 0) {
      ++size;
      pulls += count;
    }
  }
  const Index first = room_for(size);
  if (first < 0 || last - oldest + 1 >= Index(rounds.size())) return false;
  ++last;
  std::ranges::fill(scores[place(last)], 0.0);
  Index at = first, before = 0;
  for (Index m = 0; m < Index(composition.size()); ++m) {
    if (composition[m] <= 0) continue;
    entries[at] = {.arm = m, .pulls = composition[m], .asked = 0, .before = before};
    before += composition[m];
    std::ranges::fill(entry_sums[at], 0.0);
    std::ranges::fill(entry_scores[at], 0.0);
    ++at;
  }
  round(last) = {.epoch = epoch,
                 .first = first,
                 .size = size,
                 .left = pulls,
                 .unasked = pulls,
                 .cursor = first,
                 .pulls = pulls,
                 .drawn = 0};
  tail = at;
  ++open;
  to_ask += pulls;
  return true;
}

Index Flight::entry_of(Index number, Index arm) const {
  if (number < oldest || number > last || round(number).left < 0) return -1;
  const Round& its = round(number);
  const auto from = entries.begin() + its.first, to = from + its.size;
  const auto found = std::lower_bound(from, to, arm, [](const Entry& entry, Index a) { return entry.arm < a; });
  return found != to && found->arm == arm ? found - entries.begin() : -1;
}

Index seed_of_round(Index number) { return (number * 40503 + 12345) % 65536; }

Index shuffled_place(Index i, Index n, Index seed) {
  Index bits = 1;
  while ((Index(1) << (2 * bits)) < n) ++bits;
  const Index mask = (Index(1) << bits) - 1;
  Index value = i;
  do {
    Index left = value >> bits, right = value & mask;
    for (Index turn = 0; turn < 4; ++turn) {
      Index mixed = (right * 40503 + seed * 2719 + turn * 24677 + 7919) & 0xFFFFFF;
      mixed = ((mixed ^ (mixed >> 7)) * 9973) & 0xFFFFFF;
      left = std::exchange(right, left ^ ((mixed ^ (mixed >> 11)) & mask));
    }
    value = (left << bits) | right;
  } while (value >= n);
  return value;
}

/// The entry of the next pull in the shuffled order of a round.
Index Flight::drawn_entry(Index number) const {
  const Round& its = round(number);
  const Index wanted = shuffled_place(its.drawn, its.pulls, seed_of_round(number));
  Index low = its.first, high = its.first + its.size;
  while (high - low > 1) {
    const Index middle = (low + high) / 2;
    (entries[middle].before <= wanted ? low : high) = middle;
  }
  return low;
}

Asked Flight::ask() {
  Index number = oldest;
  while (round(number).unasked == 0) ++number;
  Round& its = round(number);
  Index at = -1;
  while (shuffled && at < 0 && its.drawn < its.pulls) {
    at = drawn_entry(number);
    ++its.drawn;
    if (entries[at].asked == entries[at].pulls) at = -1;  // a record has asked for it already
  }
  if (at < 0) {  // in order; if shuffled, what was given up
    while (entries[its.cursor].asked == entries[its.cursor].pulls) ++its.cursor;
    at = its.cursor;
  }
  ++entries[at].asked;
  --its.unasked;
  --to_ask;
  return {entries[at].arm, number};
}

void Flight::ask_again(Index number, Index arm) {
  const Index at = entry_of(number, arm);
  if (at < 0) return;
  Round& its = round(number);
  --entries[at].asked;
  ++its.unasked;
  its.cursor = std::min(its.cursor, at);
  ++to_ask;
}

std::vector<Index> Flight::ahead(Index most) {
  const std::vector<Round> before = rounds;
  const Index all = to_ask;
  std::vector<Asked> asks;
  for (Index i = 0; i < std::min(most, all); ++i) asks.push_back(ask());
  std::vector<Index> arms;
  for (const Asked& one : asks) {
    --entries[entry_of(one.round, one.arm)].asked;
    arms.push_back(one.arm);
  }
  rounds = before;
  to_ask = all;
  return arms;
}

void Flight::forget_closed() {
  while (oldest <= last && round(oldest).left < 0) ++oldest;
}

Index entry_room(Index n_arms, const Constants& constants) {
  return std::max(2 * n_arms, std::min(constants.flight * n_arms, constants.round_places));
}

}  // namespace coterie::croc
