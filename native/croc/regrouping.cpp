// Regroupings: cut one group in two and merge two others, where the posterior grows. No single move does that.
#include "croc/estimate.hpp"
#include "croc/splitting.hpp"

namespace coterie::croc {

/// log posterior of a partition with this cost, up to a constant. OUT: work.counts, the sizes of its groups.
double posterior_of(State& s, std::span<const Index> labels, ConstRow totals, double cost) {
  s.work.counts.fill(0);
  for (const Index k : labels) ++s.work.counts[k];
  return log_posterior(s, cost, s.work.counts, totals);
}

namespace {

/// OUT: work.gain, the cost of every group of work.winner.
void find_costs(State& s) {
  Work& w = s.work;
  w.gain.fill(0.0);
  for (Index m = 0; m < s.n_arms(); ++m) {
    const Index k = w.winner[m];
    w.gain[k] += w.weights[m] * squared_distance(s.arms.means[m], w.won_centers[k]);
  }
}

struct BestCut {
  double worth;
  Index size;  // of the group
};

/// The best cut of group k of work.winner: its costliest arm alone, or 2-means. Sizes are in work.counts. OUT:
/// work.members, work.inside.
BestCut best_cut(State& s, Index k) {
  Work& w = s.work;
  const double total = w.won_totals[k];
  Index size = 0;
  for (Index m = 0; m < s.n_arms(); ++m)
    if (w.winner[m] == k) w.members[size++] = m;
  if (size < 2) return {-INFINITE, size};
  Index farthest = s.n_arms() - 1;  // if none costs anything that can be compared
  double most = -1.0;
  for (Index i = 0; i < size; ++i) {
    const Index m = w.members[i];
    const double alone = cost_alone(s.arms.means[m], w.weights[m], w.won_centers[k], total);
    if (alone > most) {
      farthest = m;
      most = alone;
    }
  }
  const double n = w.weights[farthest];
  const double single = cut_worth(s, most, 1, size - 1, n * (total - n) / total);
  if (size > 2) {
    const Cut cut = two_means(s, w.won_centers, w.won_totals, k, size, farthest);
    const double worth = cut_worth(s, cut.gain, cut.size, size - cut.size, cut.weight);
    if (!(single > worth)) return {worth, size};
  }
  for (Index i = 0; i < size; ++i) w.inside[i] = w.members[i] == farthest;
  return {single, size};
}

/// By how much log posterior grows if two groups of work.winner are merged.
double merge_worth(const State& s, Index k, Index j) {
  const Work& w = s.work;
  const double together = w.won_totals[k] * w.won_totals[j] / (w.won_totals[k] + w.won_totals[j]);
  const double gap = squared_distance(w.won_centers[k], w.won_centers[j]);
  return -cut_worth(s, gap * together, w.counts[k], w.counts[j], together);
}

struct Merge {
  double worth = -INFINITE;
  Index one = -1, other = -1;
};

/// The best merge of two groups, neither of them `without`.
Merge best_merge(const State& s, Index without) {
  Merge best;
  for (Index k = 0; k < s.n_groups(); ++k) {
    for (Index j = 0; j < k; ++j) {
      if (k == without || j == without) continue;
      const double worth = merge_worth(s, k, j);
      if (worth > best.worth) best = {worth, k, j};
    }
  }
  return best;
}

struct Regrouping {
  double worth = 0.0;
  Index cut = -1;  // the group to cut, −1: nothing gains
  Merge merge;
};

/// The regrouping of work.winner that gains most.
Regrouping best_regrouping(State& s) {
  Work& w = s.work;
  const double half = 0.5 * double(s.dim());
  posterior_of(s, w.winner, w.won_totals, 0.0);  // sizes
  const Merge any_merge = best_merge(s, -1);
  find_costs(s);
  Regrouping best;
  for (Index h = 0; h < s.n_groups(); ++h) {
    // No cut gains more than the whole cost, costs fewer ways than an arm alone, or weighs less than ½.
    const double ways = s.constants.size_price * std::log(double(w.counts[h]));
    if (0.5 * w.gain[h] - ways + half * std::log(2.0) + any_merge.worth <= best.worth) continue;
    const double worth = best_cut(s, h).worth;
    Merge merge = any_merge;
    if (h == any_merge.one || h == any_merge.other) {
      if (worth + any_merge.worth <= best.worth) continue;
      merge = best_merge(s, h);
    }
    if (worth + merge.worth > best.worth) best = {worth + merge.worth, h, merge};
  }
  return best;
}

}  // namespace

/// Improve work.winner, whose log posterior is `best`. INOUT: work.winner, work.won_centers, work.won_totals.
void regroup(State& s, double best) {
  Work& w = s.work;
  if (s.n_groups() < 3) return;
  for (Index i = 0; i < s.constants.regroupings; ++i) {
    const Regrouping found = best_regrouping(s);
    if (found.cut < 0) return;
    const Index k = found.merge.one, j = found.merge.other;
    const Index size = best_cut(s, found.cut).size;
    for (Index m = 0; m < s.n_arms(); ++m) w.labels[m] = w.winner[m] == j ? k : w.winner[m];
    for (Index at = 0; at < size; ++at)
      if (w.inside[at] == 1) w.labels[w.members[at]] = j;
    const double cost = hartigan(s.arms.means, w.weights, w.labels, w.centers, w.totals, s.constants);
    const double value = posterior_of(s, w.labels, w.totals, cost);
    if (value <= best + s.constants.posterior_tie) return;
    best = value;
    keep_as_winner(w);
  }
}

}  // namespace coterie::croc
