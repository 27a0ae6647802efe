// How a run begins: out of nothing, or from the fields of one that was saved.
#include <utility>

#include "paper/run.hpp"

namespace coterie::paper {

Levels::Levels(Numbers given)
    : level(std::move(given)), met{0, 0}, stops(KINDS, level.columns()), correct(KINDS, level.columns()) {
  for (Index kind = 0; kind < KINDS; ++kind)
    if (std::isnan(level(kind, 0))) met[kind] = level.columns();  // nobody asks for this kind
}

Run::Run(Index n_arms, Index n_groups, Index dim, Rule its_rule, Numbers its_levels)
    : rule(its_rule),
      arms(n_arms, dim),
      guess(n_arms, n_groups, dim),
      maximin(n_arms, n_groups, dim),
      allocation(n_groups),
      levels(std::move(its_levels)),
      origin(dim),
      unseen_(n_arms),
      least_pulled_(n_groups, arms.committed),
      heap_of_(n_groups),
      x_(dim) {}

void Run::set_oracle(std::span<const Index> labels, ConstRow shares) {
  std::ranges::copy(labels, least_pulled_.group.begin());
  std::ranges::copy(shares, allocation.shares.begin());
}

bool Run::restored() {
  const Index n_arms = arms.size(), n_groups = guess.n_groups();
  const auto is_finite = [](double x) { return std::isfinite(x); };
  const auto is_count = [](Index n) { return n >= 0; };
  if (t_ < 0 || fresh_ < 0 || fresh_ > n_arms || unseen_ != std::ranges::count(arms.pulls, 0)) return false;
  if (!std::ranges::all_of(arms.pulls, is_count) || !arms.touched.is_sound()) return false;
  if (!std::ranges::all_of(arms.sums.cells(), is_finite) || !std::ranges::all_of(origin, is_finite)) return false;
  for (Index met : levels.met)
    if (met < 0 || met > levels.size()) return false;
  for (Index k : least_pulled_.group)
    if (k < 0 || k >= n_groups) return false;
  if (!maximin.is_sound() || !allocation.restored()) return false;
  if (!ready_) return true;
  if (unseen_ > 0 || !least_pulled_.is_sound() || !guess.is_sound()) return false;
  map_heaps();
  return true;
}

}  // namespace coterie::paper
