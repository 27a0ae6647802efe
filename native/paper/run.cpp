#include "paper/run.hpp"

namespace coterie::paper {

namespace {

/// Candidates within this much of the best, relative to t, tie; the lowest index wins.
constexpr double TRACKING_TIE = 1e-9;
/// Running sums are recomputed after max(M, this) measurements, so that rounding cannot drift.
constexpr Index RESUM_EVERY = 4096;

double real(Index n) { return static_cast<double>(n); }

/// Measurements after which radii are measured anew before the certificate is given up: that costs M·d, a whole run of
/// Alg. 2 at least 3·K times as much.
Index measure_after(Index n_arms) { return std::min(n_arms / 4, std::max<Index>(256, n_arms / 32)); }

}  // namespace

Index Run::resum_after() const { return std::max(arms.size(), RESUM_EVERY); }

double Run::exploration_floor(Index t) const {  // Alg. 1, line 3
  return std::max(std::sqrt(real(t)) - 0.5 * real(arms.size()), 0.0);
}

/// min N_m over all arms, told measurements only.
Index Run::fewest_pulls() const {
  return pending_ == 0 ? arms.pulls[least_pulled_.least()] : *std::ranges::min_element(arms.pulls);
}

/// Which heap holds exactly the arms of a cluster. With an oracle heaps are the true groups.
void Run::map_heaps() {
  const Index n = guess.n_groups();
  if (rule != Rule::oracle) {
    for (Index k = 0; k < n; ++k) heap_of_[k] = k;
    return;
  }
  constexpr Index UNKNOWN = -2;
  heap_of_.fill(UNKNOWN);
  for (Index m = 0; m < arms.size(); ++m) {
    Index& heap = heap_of_[guess.labels[m]];
    if (heap == UNKNOWN)
      heap = least_pulled_.group[m];
    else if (heap != least_pulled_.group[m])
      heap = -1;
  }
  for (Index k = 0; k < n; ++k)
    if (heap_of_[k] < 0 || least_pulled_.size(heap_of_[k]) != guess.sizes[k]) heap_of_[k] = -1;
}

/// Alg. 1, line 6: the guess that K-means–Maximin gives for the present means and pulls.
void Run::refresh() {
  using Replay = Maximin::Replay;
  const Index n_arms = arms.size();
  if (ready_) guess.move_centers();  // right if the labels stay as they are; `adopt` starts afresh
  if (certified_) {
    bool separated = guess.is_separated();
    if (!separated && guess.since_measured >= measure_after(n_arms)) {
      guess.measure_radii(arms);
      separated = guess.is_separated();
    }
    if (separated) {
      if (guess.since_summed >= resum_after()) guess.sum_up(arms);
      arms.touched.clear();
      return;
    }
    certified_ = maximin.cached = false;
  }
  Replay outcome = Replay::give_up;
  if (maximin.cached && maximin.since_cached < resum_after() && arms.touched.size() <= 1 + n_arms / 8)
    outcome = maximin.replay(arms);
  if (outcome == Replay::give_up) {
    maximin.run_whole(arms);
    outcome = Replay::changed;
  }
  if (outcome == Replay::changed && !(ready_ && guess.is_that_of(maximin.outcome()))) {
    guess.adopt(maximin.outcome(), arms);
    if (rule != Rule::oracle) std::ranges::copy(guess.labels, least_pulled_.group.begin());
    if (rule != Rule::oracle || !ready_) least_pulled_.build();
    map_heaps();
    ready_ = true;
  } else if (guess.since_summed >= resum_after()) {
    guess.sum_up(arms);
  } else if (guess.since_measured >= n_arms) {
    guess.measure_radii(arms);
  }
  arms.touched.clear();
  if (!guess.degenerate && guess.is_separated()) {
    certified_ = true;
    maximin.cached = false;
  }
}

/// Lines 3 to 8 of Alg. 1 for the measurements so far: the guess and its allocation. Idempotent.
void Run::settle() {
  if (!stale_) return;
  stale_ = false;
  if (unseen_ > 0) return;
  if (ready_ && explores_by_root() && real(fewest_pulls()) <= exploration_floor(t_))
    return;                                                                 // line 4: (c^t, U^t) ← (c^{t−1}, U^{t−1})
  refresh();                                                                // line 6
  if (rule == Rule::boc || rule == Rule::linear) allocation.update(guess);  // line 7
}

/// A_{t+1}, with the pulls under way counted as done. Call `settle` first.
Index Run::next_arm() {
  const Index n_arms = arms.size();
  if (unseen_ > 0) {  // line 1: every arm once, in index order
    while (fresh_ < n_arms && arms.committed[fresh_] > 0) ++fresh_;
    if (fresh_ < n_arms) return fresh_;
    return std::ranges::min_element(arms.committed) - arms.committed.begin();
  }
  const Index least = least_pulled_.least();
  if (rule == Rule::uniform) return least;
  const double t = real(t_ + pending_);
  if (explores_by_root() && real(arms.committed[least]) <= exploration_floor(t_ + pending_))
    return least;  // line 4: forced exploration
  const auto& shares = allocation.shares;
  const auto lag = [&](Index g) { return t * shares[g] - real(arms.committed[least_pulled_.top(g)]); };
  double best = -INFINITE;
  for (Index g = 0; g < least_pulled_.n_groups(); ++g)
    if (!least_pulled_.empty(g)) best = std::max(best, lag(g));
  Index chosen = n_arms;
  for (Index g = 0; g < least_pulled_.n_groups(); ++g)
    if (!least_pulled_.empty(g) && least_pulled_.top(g) < chosen && lag(g) >= best - TRACKING_TIE * t)
      chosen = least_pulled_.top(g);  // line 8: argmax t·λ*_m(t) − N_m(t)
  return chosen < n_arms ? chosen : least;
}

Index Run::fewest_in_cluster(Index k) const {
  Index fewest = std::numeric_limits<Index>::max();
  for (Index m = 0; m < arms.size(); ++m)
    if (guess.labels[m] == k) fewest = std::min(fewest, arms.pulls[m]);
  return fewest;
}

/// Z2(t): the minimum over k ≠ k' of \bar w(k)·w(k')/(\bar w(k) + w(k'))·Δ² (theorem_opt2, corrected).
double Run::closest_alternative() const {
  const Index n = guess.n_groups();
  const double smallest = real(*std::ranges::min_element(guess.totals));
  double best = INFINITE;
  for (Index k = 0; k < n; ++k) {
    // N of the cluster's least-pulled arm: the top of its heap, unless pulls under way upset the order.
    const bool by_heap = pending_ == 0 && heap_of_[k] >= 0;
    const double fewest = real(by_heap ? arms.pulls[least_pulled_.top(heap_of_[k])] : fewest_in_cluster(k));
    // The factor grows with w(k'), so most pairs are ruled out without a division of their own.
    const double least = fewest * smallest / (fewest + smallest) * SURE;
    const ConstRow gaps = guess.gaps[k];
    for (Index j = 0; j < n; ++j) {
      // Every k ≠ k', singletons too: the paper's n(k) > 1 is an error (docs/PAPER.md).
      if (j == k || !(least * gaps[j] < best)) continue;
      const double total = real(guess.totals[j]);
      best = std::min(best, fewest * total / (fewest + total) * gaps[j]);
    }
  }
  return best;
}

/// One measurement, x_ (line 9), and Z(t); call `settle` first. `asked`: it was counted as under way.
void Run::observe(Index arm, bool asked) {
  ++t_;
  stale_ = true;
  if (asked)
    --pending_;
  else
    ++arms.committed[arm];
  if (!ready_) {
    if (arms.pulls[arm] == 0) --unseen_;
    ++arms.pulls[arm];
    const Row sum = arms.sums[arm];
    for (Index q = 0; q < x_.size(); ++q) sum[q] += x_[q];
    return;
  }
  if (!asked) least_pulled_.more(arm);
  guess.add(arms, arm, x_);
  arms.touched.add(arm);
  if (maximin.cached) maximin.add(arm, x_);
  ++maximin.since_cached;
  double z1 = 0.0;
  for (double scatter : guess.scatter) z1 += scatter;
  const double z2 = guess.degenerate ? 0.0 : closest_alternative();  // degenerate: an alternative at no distance
  const double margin = std::max(0.0, std::sqrt(z2) - std::sqrt(z1));
  statistic_ = {z1, z2, 0.5 * margin * margin};  // Alg. 1, line 11
}

/// β or β̃ at the present counts; `level` is M·d·Ψ(log(1/δ)/(M·d)) for β and log(1/δ) for β̃.
double Run::threshold(Index kind, double level) const {
  const double dim = real(arms.dim());
  if (kind == 0) return 2.0 * dim * guess.log_sum + level;  // equation_beta
  return dim * std::log(1.0 + std::log(real(t_))) + level;  // Section 6: log((1 + log t)^d / δ)
}

void Run::note_stops(std::span<const Index> truth) {
  if (statistic_.z <= 0.0) return;
  for (Index kind = 0; kind < Levels::KINDS; ++kind)
    for (Index& at = levels.met[kind]; at < levels.level.columns(); ++at) {
      if (statistic_.z < threshold(kind, levels.level(kind, at))) break;
      levels.stops(kind, at) = t_;
      levels.correct(kind, at) = !truth.empty() && same_groups(guess.labels, truth, guess.n_groups());
    }
}

/// Add a position to x_, relative to the origin, which the first measurement sets.
void Run::place(ConstRow about) {
  for (Index q = 0; q < x_.size(); ++q) {
    if (t_ == 0) origin[q] = x_[q] + about[q];
    x_[q] = t_ == 0 ? 0.0 : x_[q] + (about[q] - origin[q]);
  }
}

Index Run::play(Index steps, World& world, std::span<Index> pulled) {
  const Index dim = x_.size();
  Index arm = 0;
  for (Index i = 0; !ended(); ++i) {
    settle();  // not before the levels are looked at: c^out is the guess of t−1
    arm = next_arm();
    if (i == steps) break;
    if (t_ < std::ssize(pulled)) pulled[t_] = arm;
    world.noise.fill(x_);
    place({world.centers + world.truth[arm] * dim, static_cast<std::size_t>(dim)});
    observe(arm, false);
    note_stops(world.truth);
  }
  return arm;
}

Index Run::follow(std::span<Index> script, std::span<const Index> what, const double* values) {
  const Index dim = x_.size();
  Index arm = 0;
  for (Index i = 0; !ended(); ++i) {
    settle();
    arm = next_arm();
    if (i == std::ssize(script)) break;
    const Entry entry{what[i]};
    if (entry == Entry::ask) {
      const bool other = script[i] >= 0 && script[i] != arm;
      script[i] = arm;
      if (other) return -1 - i;
    }
    if (entry == Entry::ask || entry == Entry::forget) {
      commit(script[i], entry == Entry::ask ? +1 : -1);
      continue;
    }
    arm = script[i];
    x_.fill(0.0);
    place({values + i * dim, static_cast<std::size_t>(dim)});
    observe(arm, entry == Entry::asked);
    note_stops({});
  }
  return arm;
}

void Run::commit(Index arm, Index change) {
  arms.committed[arm] += change;
  pending_ += change;
  if (change < 0) fresh_ = std::min(fresh_, arm);
  if (!ready_) return;
  if (change > 0)
    least_pulled_.more(arm);
  else
    least_pulled_.less(arm);
}

}  // namespace coterie::paper
