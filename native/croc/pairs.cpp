// Evidence from the start that two arms differ (docs/CROC.md, section 2).
#include "croc/pairs.hpp"

#include "croc/state.hpp"

namespace coterie::croc {

Pairs::Pairs(Index n_arms, Index n_groups, Index dim, Index room, double log_inverse_delta, const Traits& traits,
             const Constants& constants)
    : level(INFINITE),
      mixture(Mixture::shared(room, dim, constants)),
      settled(n_arms, n_groups),
      counts(n_arms, n_groups),
      evidence(n_arms, n_groups),
      alarmed(n_groups + 1) {
  if (traits.pair_share > 0.0) {
    const Index others = n_arms - n_groups;
    const double equal_pairs = double((others + 1) * others) / 2.0;  // H, the largest number of truly equal pairs
    level = std::log(std::max(equal_pairs, 1.0)) - std::log(traits.pair_share) + log_inverse_delta;
  }
  if (traits.variance_share > 0.0) bound = Table<Index>(n_arms, n_groups);
  evidence.fill(-INFINITE);
}

namespace {

/// The means of blocks of two arms: n pulls of the one, n·ratio of the other, by their sums.
struct Blocks {
  ConstRow mine, its;
  double one, other;  // inverse counts
  Index n;
  Index row;  // of n in the mixture's tables
};

/// Blocks with this ratio, of at most n pulls of arm a; beyond P, at counts of the grid.
Blocks blocks_of(const Arms& arms, Index a, Index b, Index n, Index ratio, Index grid_step) {
  const Index room = arms.room();
  Blocks found;
  found.row = n;
  if (n * ratio <= room) {
    found.mine = arms.prefixes(n, a);
    found.its = arms.prefixes(n * ratio, b);
  } else {
    const Index place = std::min(grid_place(n * ratio, room, grid_step), arms.grid.tables() - 1);
    n = grid_count(place, room, grid_step) / ratio;  // whole, and on the grid itself if it is above P
    found.its = arms.grid(place, b);
    if (n > room) {
      const Index of_mine = grid_place(n, room, grid_step);
      found.mine = arms.grid(of_mine, a);
      found.row = room + 1 + of_mine;
    } else {
      found.mine = arms.prefixes(n, a);
      found.row = n;
    }
  }
  found.n = n;
  found.one = 1.0 / double(n);
  found.other = 1.0 / double(n * ratio);
  return found;
}

/// ‖Ȳ‖², the squared distance of the means of two blocks, in units of the noise or of σ₊.
double gap_of_means(const State& s, Index a, Index b, const Blocks& blocks) {
  const ConstRow mine = blocks.mine, its = blocks.its;
  const double one = blocks.one, other = blocks.other;
  const auto gap_at = [&](std::size_t q) { return mine[q] * one - its[q] * other; };
  double energy = 0.0;
  if (s.arms.far) {
    for (std::size_t q = 0; q < mine.size(); ++q) {
      const double gap = s.arms.apart(a, b, Index(q)) + gap_at(q);
      energy += gap * gap;
    }
    return energy;
  }
  if (s.bound.used) {
    for (std::size_t q = 0; q < mine.size(); ++q) {
      const double gap = gap_at(q);
      energy += gap * gap * s.bound.precision[Index(q)];
    }
    return energy;
  }
  return distance_of_means(mine, one, its, other);
}

}  // namespace

double pair_evidence_above(const State& s, Index i, Index j, Index pulls_i, Index pulls_j, double floor) {
  const Constants& c = s.constants;
  const Mixture& mixture = *s.pairs.mixture;
  double best = floor;
  for (const bool swapped : {false, true}) {
    const Index a = swapped ? j : i, b = swapped ? i : j;
    const Index pulls_a = swapped ? pulls_j : pulls_i, pulls_b = swapped ? pulls_i : pulls_j;
    for (Index r = swapped ? 1 : 0; r < Constants::RATIOS; ++r) {
      const Index ratio = c.block_ratios[r], n = std::min(pulls_a, pulls_b / ratio);
      if (n == 0) break;
      const Blocks blocks = blocks_of(s.arms, a, b, n, ratio, c.grid_step);
      // n‖Ȳ‖²/v with v = 1 + 1/R
      const double energy = gap_of_means(s, a, b, blocks) * (double(blocks.n * ratio) / (double(ratio) + 1.0));
      const double lacking = best - c.log_ratio_weights[r];
      if (0.5 * energy > lacking && mixture.ceiling(blocks.row, energy) > lacking)
        best = std::max(best, mixture.value(blocks.row, energy) + c.log_ratio_weights[r]);
    }
  }
  return best;
}

double pair_evidence_at(const State& s, Index i, Index j, Index pulls_i, Index pulls_j) {
  return pair_evidence_above(s, i, j, pulls_i, pulls_j, -INFINITE);
}

bool pairs_have_units(const State& s) { return !s.bound.used || s.bound.at > 0; }

void test_pair(State& s, Index m, Index k) {
  Pairs& pairs = s.pairs;
  if (pairs.settled(m, k) == 1 || !pairs.used() || !pairs_have_units(s)) return;
  const Index lead = s.estimate.representative[k];
  const PairCounts counts = {s.arms.pulls[m], s.arms.pulls[lead]};
  const double value = pair_evidence_above(s, m, lead, counts.arm, counts.lead, pairs.evidence(m, k));
  if (!(value > pairs.evidence(m, k))) return;
  pairs.evidence(m, k) = value;
  pairs.counts(m, k) = counts;
  if (s.bound.used) pairs.bound(m, k) = s.bound.at;
  if (value >= pairs.level) pairs.settled(m, k) = 1;
}

}  // namespace coterie::croc
