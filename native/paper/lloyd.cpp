#include "paper/lloyd.hpp"

namespace coterie::paper {

namespace {

/// Distances this close, relatively, are one to a margin: more than the ties of `nearest_two` and rounding together.
constexpr double BLUR = 2e-12;

/// How far the centers may go before another one can be as near, or tie.
double half_margin(const Nearest& found) { return 0.5 * (found.second - found.best) - BLUR * found.second; }

void add_to(Row total, ConstRow x) {
  for (std::size_t q = 0; q < total.size(); ++q) total[q] += x[q];
}

void take_from(Row total, ConstRow x) {
  for (std::size_t q = 0; q < total.size(); ++q) total[q] -= x[q];
}

}  // namespace

Pass::Pass(Index n_arms, Index n_groups, Index dim)
    : labels(n_arms), centers(n_groups, dim), reference(n_groups, dim), sums(n_groups, dim), totals(n_groups) {}

double Pass::drift() const {
  double farthest = 0.0;
  for (Index k = 0; k < centers.rows(); ++k) farthest = std::max(farthest, squared_distance(centers[k], reference[k]));
  return std::sqrt(farthest);
}

Passes::Passes(Index n_arms, Index n_groups, Index dim)
    : n_arms_(n_arms),
      n_groups_(n_groups),
      dim_(dim),
      most_listed_(2 * (2 + static_cast<Index>(std::sqrt(2.0 * static_cast<double>(n_arms))))),
      distances_(n_groups) {
  passes_.reserve(MAX_PASSES);  // references to passes stay good
}

Nearest Passes::nearest(const Arms& arms, Index arm, const Numbers& centers) {
  return nearest_two(arms.sums[arm], arms.inverse(arm), centers, distances_);
}

void Passes::begin(Index p, const Arms& arms) {
  if (p == static_cast<Index>(passes_.size())) {
    passes_.emplace_back(n_arms_, n_groups_, dim_);
    passes_.back().close.reserve(most_listed_);
  }
  used_ = p + 1;
  Pass& pass = passes_[p];
  pass.changes = 0;
  pass.margin = -1.0;
  if (p == 0) {
    pass.labels.fill(0);
    return;
  }
  std::ranges::copy(passes_[p - 1].labels, pass.labels.begin());
  pass.totals.fill(0.0);
  pass.sums.fill(0.0);
  for (Index m = 0; m < n_arms_; ++m) {
    const Index k = pass.labels[m];
    pass.totals[k] += static_cast<double>(arms.pulls[m]);
    add_to(pass.sums[k], arms.sums[m]);
  }
}

bool Passes::set_centers(Index p) {
  if (p == 0) return false;
  Pass& pass = passes_[p];
  bool empty = false;
  for (Index k = 0; k < n_groups_; ++k) {
    const Row center = pass.centers[k];
    if (pass.totals[k] > 0.0) {
      const double inverse = 1.0 / pass.totals[k];
      const ConstRow sum = pass.sums[k];
      for (std::size_t q = 0; q < center.size(); ++q) center[q] = sum[q] * inverse;
    } else {
      empty = true;
      std::ranges::copy(passes_[p - 1].centers[k], center.begin());
    }
  }
  return empty;
}

void Passes::relabel(Index p, const Arms& arms, Index arm, Index label) {
  Pass& pass = passes_[p];
  const Index old = pass.labels[arm];
  pass.labels[arm] = static_cast<std::int32_t>(label);
  if (p > 0) {
    const Index before = passes_[p - 1].labels[arm];
    pass.changes += (label != before) - (old != before);
  }
  if (p + 1 < used_) {
    Pass& next = passes_[p + 1];
    const Index after = next.labels[arm];
    next.changes += (after != label) - (after != old);
    next.totals[old] -= static_cast<double>(arms.pulls[arm]);
    next.totals[label] += static_cast<double>(arms.pulls[arm]);
    take_from(next.sums[old], arms.sums[arm]);
    add_to(next.sums[label], arms.sums[arm]);
  }
}

bool Passes::assign(Index p, const Arms& arms) {
  Pass& pass = passes_[p];
  const std::size_t most = most_listed_ / 2;
  std::ranges::copy(pass.centers.cells(), pass.reference.cells().begin());
  pass.close.clear();
  bool changed = false;
  double rest = INFINITE;
  for (Index m = 0; m < n_arms_; ++m) {
    const Nearest found = nearest(arms, m, pass.reference);
    const double half = half_margin(found);
    if (pass.close.size() < most || half < pass.close.back().half_margin) {
      if (pass.close.size() == most) {
        rest = std::min(rest, pass.close.back().half_margin);
        pass.close.pop_back();
      }
      auto place = pass.close.end();
      while (place != pass.close.begin() && (place - 1)->half_margin > half) --place;
      pass.close.insert(place, {m, found.label, half});
    } else {
      rest = std::min(rest, half);
    }
    if (pass.labels[m] != found.label) {
      relabel(p, arms, m, found.label);
      changed = true;
    }
  }
  pass.margin = rest;
  pass.quiet = pass.close.front().half_margin;
  pass.spent = 0;
  return changed;
}

/// List an arm as close, or take it off the list if it is not. False if the list is full.
bool Passes::list(Pass& pass, const CloseArm& its) {
  const auto at = std::ranges::find(pass.close, its.arm, &CloseArm::arm);
  if (its.half_margin >= pass.margin) {
    if (at != pass.close.end()) {
      *at = pass.close.back();
      pass.close.pop_back();
    }
    return true;
  }
  if (at != pass.close.end()) {
    *at = its;
  } else {
    if (static_cast<Index>(pass.close.size()) == most_listed_) return false;
    pass.close.push_back(its);
  }
  pass.quiet = std::min(pass.quiet, its.half_margin);
  return true;
}

/// Whether the labels stand for the present centers and the touched arms.
Passes::Verdict Passes::judge(Pass& pass, const Arms& arms) {
  const double drift = pass.drift();
  if (!(drift < pass.margin * SURE)) return Verdict::look_at_all;
  bool stands = drift < pass.quiet * SURE;
  for (Index arm : arms.touched) {
    const Nearest found = nearest(arms, arm, pass.reference);
    const double half = half_margin(found);
    if (!list(pass, {arm, found.label, half})) return Verdict::look_at_all;
    stands = stands && drift < half * SURE && pass.labels[arm] == found.label;
  }
  return stands ? Verdict::stands : Verdict::look_at_close;
}

bool Passes::bring_up_to_date(Index p, const Arms& arms) {
  Pass& pass = passes_[p];
  const Verdict verdict = judge(pass, arms);
  if (verdict == Verdict::stands) return false;
  // Looking at close arms again and again must not cost more than a new reference would.
  if (verdict == Verdict::look_at_close && pass.spent < n_arms_) return look_at_close(p, arms);
  ++whole_looks;
  return assign(p, arms);
}

bool Passes::look_at_close(Index p, const Arms& arms) {
  Pass& pass = passes_[p];
  const double drift = pass.drift();
  bool changed = false;
  for (Index arm : arms.touched) {  // those that are not close
    const Nearest found = nearest(arms, arm, pass.reference);
    if (drift < half_margin(found) * SURE && pass.labels[arm] != found.label) {
      relabel(p, arms, arm, found.label);
      changed = true;
    }
  }
  double least = INFINITE;
  pass.spent += 1 + static_cast<Index>(pass.close.size()) / 4;
  for (const CloseArm& its : pass.close) {
    Index label = its.label;
    least = std::min(least, its.half_margin);
    if (!(drift < its.half_margin * SURE)) {
      label = nearest(arms, its.arm, pass.centers).label;
      ++pass.spent;
      if (label != its.label) least = -1.0;
    }
    if (pass.labels[its.arm] != label) {
      relabel(p, arms, its.arm, label);
      changed = true;
    }
  }
  pass.quiet = least;
  return changed;
}

void Passes::shift_last() {
  const Pass& last = passes_[MAX_PASSES - 1];
  std::ranges::copy(last.labels, passes_[MAX_PASSES - 2].labels.begin());
  std::ranges::copy(last.centers.cells(), passes_[MAX_PASSES - 2].centers.cells().begin());
}

bool Passes::is_sound() const {
  const auto is_label = [&](Index k) { return k >= 0 && k < n_groups_; };
  const auto is_close = [&](const CloseArm& its) { return its.arm >= 0 && its.arm < n_arms_ && is_label(its.label); };
  if (std::ssize(passes_) > MAX_PASSES || used_ < 0 || used_ > std::ssize(passes_)) return false;
  const auto are_finite = [](const Numbers& table) {
    return std::ranges::all_of(table.cells(), [](double x) { return std::isfinite(x); });
  };
  return std::ranges::all_of(passes_, [&](const Pass& pass) {
    return std::ssize(pass.close) <= most_listed_ && std::ranges::all_of(pass.labels, is_label) &&
           std::ranges::all_of(pass.close, is_close) && are_finite(pass.centers) && are_finite(pass.reference) &&
           are_finite(pass.sums);
  });
}

void Passes::add(Index arm, ConstRow x) {
  for (Index p = 1; p < used_; ++p) {
    const Index k = passes_[p - 1].labels[arm];
    passes_[p].totals[k] += 1.0;
    add_to(passes_[p].sums[k], x);
  }
}

}  // namespace coterie::paper
