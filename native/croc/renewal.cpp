// Keeping the estimate, the representatives and their pairs up to date (docs/CROC.md, sections 3 and 7).
#include "croc/estimate.hpp"
#include "croc/shape.hpp"

namespace coterie::croc {

namespace {

/// M·K·d over what pays for a look at everything.
Index work_of_look(const State& s) { return s.n_arms() * s.dim() * s.n_groups() / s.constants.patience_work; }

/// The arm of group k that was pulled most for its price, ties nearest the mean. Two arms with equal counts are equally
/// far from their center: the first one wins, and not what rounding left.
Index new_representative(const State& s, Index k) {
  Index best = -1;
  double away = 0.0, most = 0.0;
  const ConstRow center = s.estimate.centers[k];
  for (Index m = 0; m < s.n_arms(); ++m) {
    if (s.estimate.labels[m] != k) continue;
    const double gap = squared_distance(s.arms.means[m], center);
    const double worth = double(s.arms.pulls[m]) / s.arms.price[m];
    if (worth > most || (worth == most && gap < away * (1.0 - s.constants.tie))) {
      best = m;
      away = gap;
      most = worth;
    }
  }
  return best;
}

}  // namespace

/// Keep a representative while it stays in its group, else choose a new one and begin its pairs anew. True if one
/// changed. INOUT: estimate.representative, the pairs.
bool choose_representatives(State& s) {
  Estimate& now = s.estimate;
  bool changed = false;
  for (Index k = 0; k < s.n_groups(); ++k) {
    const Index lead = now.representative[k];
    if (lead >= 0 && now.labels[lead] == k) continue;
    now.representative[k] = new_representative(s, k);
    changed = true;
    for (Index m = 0; m < s.n_arms(); ++m) {
      s.pairs.settled(m, k) = 0;
      s.pairs.evidence(m, k) = -INFINITE;
      if (now.labels[m] != k) test_pair(s, m, k);
    }
  }
  return changed;
}

/// 1 % of all, at most so many as pay for the look.
Index patience(const State& s) { return std::min(s.arms.t / s.constants.patience_results, work_of_look(s)); }

/// Between two estimates from scratch, an arm that has come closer to another center may change its group alone.
void renew(State& s) {
  const Constants& c = s.constants;
  Estimate& now = s.estimate;
  const Index since = s.arms.t - now.at;
  const bool first = now.at == 0;
  const Index apart = std::min(s.arms.t / c.estimate_results, work_of_look(s));
  const bool due = since >= std::max({Index(1), s.n_arms() / c.estimate_arms, apart});
  const bool measured = s.metric.estimated && renew_metric(s);
  Index moved = 0;
  if (first || due || measured || (now.left_group && since >= patience(s))) {
    moved = estimate(s);
    if (moved > 0) s.plan.planned_at = NEVER;
  } else if (now.left_group) {
    moved = move_touched(s);
    if (moved > 0 && s.queue.mode == Mode::pairs) s.plan.planned_at = NEVER;
  }
  if (choose_representatives(s)) s.plan.planned_at = NEVER;
  if (first) return;
  for (Index i = 0; i < moved; ++i) {  // other pairs have been evaluated when one of the two had a result
    const Index m = s.work.chosen[i];
    for (Index k = 0; k < s.n_groups(); ++k)
      if (k != now.labels[m]) test_pair(s, m, k);
  }
}

void forget_touched(State& s) {
  for (Index i = 0; i < s.arms.n_touched; ++i) s.arms.is_touched[s.arms.touched[i]] = 0;
  s.arms.n_touched = 0;
  if (s.shape) forget_touched(s.shape->space);
}

}  // namespace coterie::croc
