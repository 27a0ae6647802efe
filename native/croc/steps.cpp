#include "croc/steps.hpp"

#include "croc/claims.hpp"
#include "croc/factors.hpp"
#include "croc/planning.hpp"
#include "croc/shape.hpp"

namespace coterie::croc {

namespace {

/// Turn a result into its distance from the arm's origin. Differences of near numbers are exact, and so is what
/// rounding leaves of the others: nothing is lost but what one float does not hold of the distance itself
/// (docs/CROC.md, section 13). INOUT: x.
void place(State& s, Index arm, Row x) {
  const Index dim = s.dim();
  Arms& arms = s.arms;
  if (arms.t == 0 && !s.metric.from_zero) {
    for (Index q = 0; q < dim; ++q) {
      arms.origin[q] = x[q];
      arms.origin_rest[q] = x[dim + q];
    }
  }
  double most = 0.0;
  for (Index q = 0; q < dim; ++q) {
    const double away = x[q] - arms.origin[q];
    const double back = x[q] - away;
    double rest = (x[q] - (away + back)) + (back - arms.origin[q]);
    rest += x[dim + q] - arms.origin_rest[q];
    x[q] = away;
    x[dim + q] = rest;
    most = std::max(most, std::abs(away));
  }
  if (arms.pulls[arm] == 0 && most > s.constants.near && !s.metric.estimated) {
    arms.far = true;
    for (Index q = 0; q < dim; ++q) {
      arms.offset(arm, q) = x[q];
      arms.offset_rest(arm, q) = x[dim + q];
    }
  }
  for (Index q = 0; q < dim; ++q) x[q] = (x[q] - arms.offset(arm, q)) + (x[dim + q] - arms.offset_rest(arm, q));
}

/// The result goes to the sums of its arm, whose count includes it. Returns whether the pairs from the start read this
/// count: all up to P, then those of the grid.
bool add_up(Arms& arms, Index arm, ConstRow x, Index grid_step) {
  const Index n = arms.pulls[arm], room = arms.room(), dim = arms.dim();
  const double inverse = 1.0 / double(n);
  const Row sum = arms.sums[arm];
  for (Index q = 0; q < dim; ++q) {
    sum[q] += x[q];
    arms.means(arm, q) = arms.offset(arm, q) + sum[q] * inverse;
  }
  bool read = n <= room;
  if (read) std::ranges::copy(sum, arms.prefixes(n, arm).begin());
  if (n >= room && room > 0) {
    const Index at = grid_place(n, room, grid_step);
    if (grid_count(at, room, grid_step) == n && at < arms.grid.tables()) {
      read = true;
      std::ranges::copy(sum, arms.grid(at, arm).begin());
    }
  }
  return read;
}

/// The center of the arm's group takes in the result. Has the arm come closer to another? INOUT: the estimate.
void move_center(State& s, Index arm, ConstRow x) {
  Estimate& estimate = s.estimate;
  const Index home = estimate.labels[arm];
  estimate.totals[home] += 1.0;
  for (Index q = 0; q < s.dim(); ++q) {
    const double position = s.metric.estimated ? s.work.part[q] : s.arms.offset(arm, q) + x[q];
    double& center = estimate.centers(home, q);
    center += (position - center) / estimate.totals[home];
  }
  Index nearest = home;
  double best = INFINITE;
  for (Index k = 0; k < s.n_groups(); ++k) {
    const double gap = squared_distance(s.arms.means[arm], estimate.centers[k]);
    if (gap < best) {
      nearest = k;
      best = gap;
    }
  }
  if (nearest != home) estimate.left_group = true;
}

/// All pairs from the start that the arm is in: against the representatives, or as one.
void test_pairs(State& s, Index arm) {
  const auto& labels = s.estimate.labels;
  const Index home = labels[arm];
  for (Index k = 0; k < s.n_groups(); ++k)
    if (k != home) test_pair(s, arm, k);
  if (s.estimate.representative[home] != arm) return;
  for (Index m = 0; m < s.n_arms(); ++m)
    if (labels[m] != home) test_pair(s, m, home);
}

}  // namespace

void observe(State& s, Index arm, Row with_rest, Index of_round) {
  Arms& arms = s.arms;
  place(s, arm, with_rest);
  const Row x = with_rest.first(static_cast<std::size_t>(s.dim()));
  if (s.shape) take_features(s, arm, x);
  --arms.open_pulls;
  if (s.bound.used) take_residual(s, arm, x);
  if (arms.alone == arm) arms.alone = -1;
  if (arms.pulls[arm] == 0) --arms.unseen;
  ++arms.pulls[arm];
  if (arms.is_touched[arm] == 0) {
    arms.is_touched[arm] = 1;
    arms.touched[arms.n_touched++] = arm;
  }
  ++arms.t;
  const bool read = add_up(arms, arm, x, s.constants.grid_step);
  if (s.metric.estimated) take_position(s, arm, x);
  const Index entry = of_round > 0 ? s.flight.entry_of(of_round, arm) : -1;
  if (entry >= 0) {
    for (Index q = 0; q < s.dim(); ++q) s.flight.entry_sums(entry, q) += x[q];
    score_result(s, of_round, entry, arm, x);
    --s.flight.round(of_round).left;
  }
  if (s.estimate.at > 0) {
    move_center(s, arm, x);
    if (read) test_pairs(s, arm);
  }
  if (entry >= 0 && s.flight.round(of_round).left == 0) close_ready(s);
}

void plan_if_due(State& s, bool outside) {
  if (s.proof != Proof::none || s.arms.unseen > 0) return;
  if (s.flight.open == 0) {
    if (s.queue.mode == Mode::first_pass || s.queue.empty()) plan(s);
  } else if (outside || s.flight.closed) {
    see_proven(s);
  }
}

}  // namespace coterie::croc
