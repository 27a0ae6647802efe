#include "paper/maximin.hpp"

namespace coterie::paper {

namespace {

/// Alg. 2, line 1 leaves the first center open; the paper's printed numbers are those of arm 0.
constexpr Index FIRST_ARM = 0;
constexpr Index MOST_PASSES = 10'000;

}  // namespace

Maximin::Maximin(Index n_arms, Index n_groups, Index dim)
    : starts_(n_groups), to_starts_(n_arms, n_groups), passes_(n_arms, n_groups, dim), near_(n_arms) {}

bool Maximin::is_sound() const {
  const auto is_arm = [&](Index arm) { return arm >= 0 && arm < near_.size(); };
  return passes_.is_sound() && (!cached || (passes_.size() > 0 && std::ranges::all_of(starts_, is_arm)));
}

/// Center k of pass 0 is the mean of start k; every arm's distance to it.
void Maximin::measure_start(Index k, const Arms& arms) {
  const Row center = passes_[0].centers[k];
  const ConstRow sum = arms.sums[starts_[k]];
  const double inverse = arms.inverse(starts_[k]);
  for (std::size_t q = 0; q < center.size(); ++q) center[q] = sum[q] * inverse;
  for (Index m = 0; m < arms.size(); ++m) to_starts_(m, k) = distance_to_mean(arms.sums[m], arms.inverse(m), center);
}

/// The squared distance of an arm to the nearest of the first k starts.
double Maximin::near(Index arm, Index k) const {
  double nearest = INFINITE;
  for (Index j = 0; j < k; ++j) nearest = std::min(nearest, to_starts_(arm, j));
  return nearest;
}

/// Alg. 2, lines 2–4 from start number `stage` on.
void Maximin::choose_starts(Index stage, const Arms& arms) {
  const Index n_arms = arms.size(), n_groups = to_starts_.columns();
  for (Index m = 0; m < n_arms; ++m) near_[m] = near(m, stage);
  for (Index k = stage; k < n_groups; ++k) {
    const double farthest = std::max(0.0, *std::ranges::max_element(near_));
    Index arm = 0;
    while (arm + 1 < n_arms && near_[arm] < farthest * (1.0 - TIE)) ++arm;
    if (starts_[k] != arm) {
      starts_[k] = arm;
      measure_start(k, arms);
    }
    for (Index m = 0; m < n_arms; ++m) near_[m] = std::min(near_[m], to_starts_(m, k));
  }
}

void Maximin::run_whole(const Arms& arms) {
  ++full_runs;
  since_cached = 0;
  starts_.fill(-1);
  starts_[0] = FIRST_ARM;
  passes_.begin(0, arms);
  measure_start(0, arms);
  choose_starts(1, arms);
  passes_.assign(0, arms);
  cached = true;
  Index p = 0;
  for (Index total = 1; total < MOST_PASSES; ++total) {
    if (total >= MAX_PASSES) {  // a run that outgrows the cache goes on in its last two places
      cached = false;
      passes_.shift_last();
      p = MAX_PASSES - 2;
    }
    passes_.begin(++p, arms);
    if (passes_.set_centers(p)) cached = false;
    passes_.assign(p, arms);
    if (passes_[p].changes == 0) break;
  }
}

/// Bring the farthest-first order up to date with the arms that moved.
void Maximin::replay_starts(const Arms& arms) {
  const Index n_groups = to_starts_.columns();
  Index stage = n_groups;
  for (Index arm : arms.touched)
    for (Index k = 0; k < n_groups; ++k)
      if (starts_[k] == arm) {
        measure_start(k, arms);
        stage = std::min(stage, std::max<Index>(k, 1));
      }
  for (Index arm : arms.touched)
    for (Index k = 0; k < n_groups; ++k)
      to_starts_(arm, k) = distance_to_mean(arms.sums[arm], arms.inverse(arm), passes_[0].centers[k]);
  for (Index k = 1; k < stage; ++k) {
    const double chosen = near(starts_[k], k);
    const auto reaches = [&](Index arm) { return near(arm, k) >= chosen * (1.0 - 4.0 * TIE); };
    if (std::ranges::any_of(arms.touched, reaches)) stage = k;
  }
  if (stage < n_groups) choose_starts(stage, arms);
}

Maximin::Replay Maximin::replay(const Arms& arms) {
  replay_starts(arms);
  const Index before = passes_.size();
  for (Index p = 0; p < MAX_PASSES; ++p) {
    if (p == passes_.size()) passes_.begin(p, arms);  // one pass more than before
    if (passes_.set_centers(p)) return Replay::give_up;
    const bool changed = passes_.bring_up_to_date(p, arms);
    if (p > 0 && passes_[p].changes == 0) {
      passes_.keep_first(p + 1);
      return changed || before != p + 1 ? Replay::changed : Replay::unchanged;
    }
  }
  return Replay::give_up;
}

}  // namespace coterie::paper
