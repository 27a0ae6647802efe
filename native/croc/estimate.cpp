#include "croc/estimate.hpp"

namespace coterie::croc {

namespace {

/// OUT: all of `to`, of the same size.
template <class T>
void copy(const Zeros<T>& from, Zeros<T>& to) {
  assert(from.size() == to.size());
  std::copy(from.begin(), from.end(), to.begin());
}

/// Number the groups so that they overlap most with those before, largest overlap first. INOUT: work.winner, won_*.
void keep_names(std::span<const Index> before, Work& w) {
  const Index n = w.won_centers.rows();
  Numbers& overlap = w.square;
  Zeros<Index>& name = w.names;
  name.fill(-1);
  overlap.fill(0.0);
  for (std::size_t m = 0; m < before.size(); ++m) overlap(w.winner[m], before[m]) += 1.0;
  for (Index round = 0; round < n; ++round) {
    double best = -1.0;
    Index now = 0, old = 0;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        if (name[i] < 0 && overlap(i, j) > best) {
          best = overlap(i, j);
          now = i;
          old = j;
        }
      }
    }
    name[now] = old;
    for (Index i = 0; i < n; ++i) overlap(i, old) = -2.0;
  }
  for (Index i = 0; i < n; ++i) {
    w.totals[name[i]] = w.won_totals[i];
    const ConstRow center = w.won_centers[i];
    std::copy(center.begin(), center.end(), w.centers[name[i]].begin());
  }
  copy(w.totals, w.won_totals);
  copy(w.centers.cells(), w.won_centers.cells());
  for (Index& k : w.winner) k = name[k];
}

/// Try the starts, the labels so far first, then regroupings. OUT: work.winner, won_*. `starts`: 1, or all 4.
void try_starts(State& s, Index starts) {
  Work& w = s.work;
  const Numbers& means = s.arms.means;
  const bool first = s.estimate.at == 0;
  const Index rank = w.reduced.columns();
  const bool is_reduced = rank < s.dim();
  if (starts > 1 && is_reduced) components(means, w.weights, rank, w, s.constants);
  double best = -INFINITE;
  for (Index start = 0; start < starts; ++start) {
    if ((start == 0 && first) || (start == 2 && !is_reduced)) continue;
    if (start == 0) {
      copy(s.estimate.labels, w.labels);
    } else {
      const Numbers& points = start >= 2 && is_reduced ? w.reduced : means;
      farthest_first(points, w.weights, s.n_groups(), start == 3, w.near, w.labels);
    }
    const double cost = hartigan(means, w.weights, w.labels, w.centers, w.totals, s.constants);
    const double value = posterior_of(s, w.labels, w.totals, cost);
    if (value > best + s.constants.posterior_tie) {
      best = value;
      keep_as_winner(w);
    }
  }
  if (starts > 1) regroup(s, best);
}

/// Some arms may have changed their groups. INOUT: the estimate, the heaps.
void note_moves(State& s, Index moved) {
  s.estimate.left_group = false;
  if (moved > 0) {
    s.estimate.changed_at = s.arms.t;
    s.heaps.fits = false;
  }
}

}  // namespace

void keep_as_winner(Work& w) {
  copy(w.labels, w.winner);
  copy(w.totals, w.won_totals);
  copy(w.centers.cells(), w.won_centers.cells());
}

Index estimate(State& s) {
  Estimate& now = s.estimate;
  Work& w = s.work;
  const Index n = s.n_arms();
  for (Index m = 0; m < n; ++m) w.weights[m] = double(s.arms.pulls[m]);
  const bool first = now.at == 0;
  // From the labels so far only, where the other starts were tried a short while ago: they cost most.
  const Index wait = std::min(s.arms.t / s.constants.starts_results, n * n / s.constants.starts_work);
  const bool from_labels = !first && s.arms.t - now.started_at < wait;
  if (!from_labels) now.started_at = s.arms.t;
  try_starts(s, from_labels ? 1 : 4);
  if (!first) keep_names(now.labels, w);
  Index moved = 0;
  for (Index m = 0; m < n; ++m) {
    if (first || now.labels[m] != w.winner[m]) {
      now.labels[m] = w.winner[m];
      w.chosen[moved++] = m;
    }
  }
  copy(w.won_totals, now.totals);
  copy(w.won_centers.cells(), now.centers.cells());
  now.at = s.arms.t;
  note_moves(s, moved);
  return moved;
}

Index move_touched(State& s) {
  Estimate& now = s.estimate;
  Index moved = 0;
  for (Index i = 0; i < s.arms.n_touched; ++i) {
    const Index m = s.arms.touched[i], home = now.labels[m];
    const double weight = double(s.arms.pulls[m]);
    if (now.totals[home] <= weight * s.constants.one || now.sizes[home] == 1) continue;
    const ConstRow point = s.arms.means[m];
    const Index target = better_group(point, weight, home, now.centers, now.totals, s.constants.move_tie);
    if (target < 0) continue;
    shift(now.centers, now.totals, home, point, -weight);
    shift(now.centers, now.totals, target, point, weight);
    now.labels[m] = target;
    --now.sizes[home];
    ++now.sizes[target];
    s.work.chosen[moved++] = m;
  }
  note_moves(s, moved);
  return moved;
}

}  // namespace coterie::croc
