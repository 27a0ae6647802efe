// The misgrouping risk P_w: a rough probability that the estimate ĉ is wrong, only for deciding when to freeze.
//
// Three ways to be wrong: an arm belongs to another group (D_mk small); two groups are one and a third is two (the cost
// of merging k and l, C, is hardly above the gain of splitting h, G); two groups are one by chance. The *margin* of an
// arm is its smallest D_mk: how much better it fits its group than the next best one. Nothing here enters the proof.
#include "croc/estimate.hpp"
#include "croc/splitting.hpp"

namespace coterie::croc {

namespace {

/// About the probability of a reading that fits worse than the estimate by this log-likelihood.
double unlikely(double margin) {
  if (margin > 45.0) return 0.0;  // what is left out would not be seen in the sum
  return margin > 0.0 ? std::exp(-margin) : 1.0;
}

/// D_mk of one arm. OUT: risk.margin, risk.rival, risk.arm_risk. Returns twice what the arm costs where it is.
double margin_of_arm(State& s, Index m) {
  const Estimate& now = s.estimate;
  const Index home = now.labels[m];
  const double n = double(s.arms.pulls[m]);
  double least = INFINITE, risk = 0.0, own = 0.0;
  Index rival = home;
  if (now.sizes[home] != 1) {
    const ConstRow point = s.arms.means[m];
    const double* totals = now.totals.data();
    own = squared_distance(point, now.centers[home]) * n * totals[home] / (totals[home] - n);
    for (Index k = 0; k < s.n_groups(); ++k) {
      if (k == home) continue;
      const double away = squared_distance(point, now.centers[k]) * n * totals[k] / (n + totals[k]);
      const double margin = 0.5 * (away - own);
      if (margin < least) {
        least = margin;
        rival = k;
      }
      risk += unlikely(margin);
    }
  }
  s.risk.margin[m] = least;
  s.risk.rival[m] = rival;
  s.risk.arm_risk[m] = risk;
  return own;
}

/// The margins of all arms, and the costliest arm of each group. OUT: estimate.sizes, the risk of arms; work.gain,
/// share, farthest.
void look_at_arms(State& s) {
  Work& w = s.work;
  Estimate& now = s.estimate;
  now.sizes.fill(0);
  w.gain.fill(0.0);
  w.share.fill(1.0);
  w.farthest.fill(-1);
  for (const Index k : now.labels) ++now.sizes[k];
  double total = 0.0;
  for (Index m = 0; m < s.n_arms(); ++m) {
    const double own = margin_of_arm(s, m);
    const Index home = now.labels[m];
    total += s.risk.arm_risk[m];
    if (own > w.gain[home]) {
      const double n = double(s.arms.pulls[m]);
      w.gain[home] = own;
      w.farthest[home] = m;
      w.share[home] = n * (now.totals[home] - n) / now.totals[home];
    }
  }
  s.risk.arms = total;
}

/// What the best cut of group k gains: its costliest arm alone, or 2-means. INOUT: work.gain, share. OUT: work.worth.
void look_at_cut(State& s, Index k) {
  Work& w = s.work;
  const Estimate& now = s.estimate;
  const Index size = now.sizes[k];
  w.worth[k] = -INFINITE;
  if (size < 2) {
    w.gain[k] = -INFINITE;
    return;
  }
  if (w.farthest[k] < 0) return;
  w.worth[k] = cut_worth(s, w.gain[k], 1, size - 1, w.share[k]);
  if (size == 2) return;
  Index found = 0;
  for (Index m = 0; m < s.n_arms(); ++m)
    if (now.labels[m] == k) w.members[found++] = m;
  const Cut cut = two_means(s, now.centers, now.totals, k, size, w.farthest[k]);
  w.worth[k] = std::max(w.worth[k], cut_worth(s, cut.gain, cut.size, size - cut.size, cut.weight));
  if (cut.gain > w.gain[k]) {
    w.gain[k] = cut.gain;
    w.share[k] = cut.weight;
  }
}

/// Could the split of groups k and j be chance? The number of splits times the tail of a chi-square with d degrees.
double chance_of_split(const State& s, Index k, Index j, double cost, double log_gamma) {
  const Index a = s.estimate.sizes[k], b = s.estimate.sizes[j];
  const double d = double(s.dim()), n = double(a + b);
  const double ways = s.constants.size_price * log_ways(s, a, b);
  const double splits = std::max(std::min((n - 1.0) * std::log(2.0), d * std::log(n)), ways);
  const double tail = std::max(0.0, (0.5 * d - 1.0) * std::log(std::max(0.5 * cost, 1e-9))) - log_gamma;
  return std::exp(std::min(splits - 0.5 * cost + tail, 0.0));
}

/// Readings in which groups k and j are one. INOUT: the worst readings. Returns `total` and their probability.
double look_at_merge(State& s, Index k, Index j, double log_gamma, double total) {
  const Work& w = s.work;
  const Estimate& now = s.estimate;
  const double d = double(s.dim());
  const double together = now.totals[k] * now.totals[j] / (now.totals[k] + now.totals[j]);
  const double cost = squared_distance(now.centers[k], now.centers[j]) * together;
  const double chance = chance_of_split(s, k, j, cost, log_gamma);
  total += chance;
  if (chance > s.risk.chance) {
    s.risk.chance = chance;
    s.risk.chance_a = k;
    s.risk.chance_b = j;
  }
  const double apart = cut_worth(s, cost, now.sizes[k], now.sizes[j], together);
  for (Index h = 0; h < s.n_groups(); ++h) {
    if (h == k || h == j || w.gain[h] < 0.0) continue;
    // Both readings fit d free numbers: without (d/2)·log n for each, a spurious split of a well-measured group hides a
    // true one of a poorly measured group for ever. And a split by chance is the best of many: the posterior counts
    // them.
    double margin = 0.5 * (cost - w.gain[h]) - 0.5 * d * std::max(0.0, std::log(together / w.share[h]));
    margin = std::max(margin, apart - w.worth[h]);
    total += unlikely(margin);
    if (margin < s.risk.merge_margin) {
      s.risk.merge_margin = margin;
      s.risk.split = h;
      s.risk.merged_a = k;
      s.risk.merged_b = j;
    }
  }
  return total;
}

}  // namespace

/// P_w, with the margins of the arms that have new results; all other parts of it stay as they were.
double update_misgrouping_risk(State& s) {
  Risk& risk = s.risk;
  const double before = risk.arms;
  for (Index i = 0; i < s.arms.n_touched; ++i) {
    const Index m = s.arms.touched[i];
    risk.arms -= risk.arm_risk[m];
    margin_of_arm(s, m);
    risk.arms += risk.arm_risk[m];
  }
  risk.total += risk.arms - before;
  return risk.total;
}

/// P_w. OUT: s.risk, estimate.sizes.
double misgrouping_risk(State& s) {
  look_at_arms(s);
  for (Index k = 0; k < s.n_groups(); ++k) look_at_cut(s, k);
  s.risk.merge_margin = INFINITE;
  s.risk.chance = 0.0;
  const double log_gamma = std::lgamma(0.5 * double(s.dim()));
  double total = s.risk.arms;
  for (Index k = 0; k < s.n_groups(); ++k)
    for (Index j = 0; j < k; ++j) total = look_at_merge(s, k, j, log_gamma, total);
  s.risk.total = total;
  return total;
}

}  // namespace coterie::croc
