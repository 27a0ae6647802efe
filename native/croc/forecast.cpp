// Forecasts use the evidence's own counts, n = min(N_i, ⌊N_j/R⌋), from the arm's mean and the groups' centers. They
// decide where to pull; nothing here enters the proof.
#include "base/heap.hpp"
#include "croc/claims.hpp"
#include "croc/factors.hpp"
#include "croc/planning.hpp"

namespace coterie::croc {

namespace {

/// How an arm lies to group k, whose representative it is to be told from; l is the arm's own group.
struct Outlook {
  double away;   // ‖x̄_m − Û_k‖²
  double along;  // (x̄_m − Û_k)·(Û_l − Û_k)
  double apart;  // ‖Û_l − Û_k‖²
  Index now;     // pulls of the arm that its mean is from
};

Outlook outlook(const State& s, Index m, Index k) {
  const ConstRow point = s.arms.means[m], home = s.estimate.centers[s.estimate.labels[m]];
  const ConstRow center = s.estimate.centers[k];
  return {squared_distance(point, center), product_of_gaps(point, home, center), squared_distance(home, center),
          s.arms.pulls[m]};
}

/// The outlooks of all arms, each found when it is first asked for: several levels of the representatives look at the
/// same ones, and in many dimensions they are most of the work.
class Outlooks {
 public:
  static constexpr Index MANY = 16;  // dimensions from which on they are kept

  explicit Outlooks(const State& s) : s_(s) {
    if (s.dim() >= MANY) found_ = Table<Outlook>(s.n_arms(), s.n_groups());
  }
  Outlook operator()(Index m, Index k) {
    if (found_.rows() == 0) return outlook(s_, m, k);
    Outlook& its = found_(m, k);
    if (its.now == 0) its = outlook(s_, m, k);
    return its;
  }

 private:
  const State& s_;
  Table<Outlook> found_;
};

/// ⌊n/ratio⌋ of counts, which mostly need no division of 64 bits.
inline Index whole_part(Index n, Index ratio) {
  if (((n | ratio) >> 32) == 0) return Index(std::uint32_t(n) / std::uint32_t(ratio));
  return n / ratio;
}

/// Forecasts of the evidence of pairs.
class Forecast {
 public:
  explicit Forecast(const State& s)
      : constants_(s.constants), dim_(s.dim()), trust_(s.bound.trust), d_(double(dim_)), half_(0.5 * d_) {}

  /// With `arm` pulls of the arm, at least those its mean is from, and `other` of the representative.
  double evidence(const Outlook& at, Index arm, Index other) const {
    double best = -INFINITE;
    each_block(at, arm, other, [&](double energy, double log_weight) {
      if (most(energy, log_weight) > best) best = std::max(best, value(energy, log_weight));
      return false;
    });
    return best;
  }
  /// Whether that is at least `level`.
  bool reaches(const Outlook& at, Index arm, Index other, double level) const {
    return each_block(at, arm, other, [&](double energy, double log_weight) {
      return most(energy, log_weight) >= level && value(energy, log_weight) >= level;
    });
  }

 private:
  /// Use the energy and log weight of every block ratio and side that says anything, until one is enough. Whether it
  /// is.
  template <class Use>
  bool each_block(const Outlook& at, Index arm, Index other, Use use) const {
    const Index more = arm - at.now;
    const double apart = (double(at.now * at.now) * at.away + 2.0 * double(at.now) * double(more) * at.along +
                          double(more * more) * at.apart + double(dim_ * more)) /
                         double(arm * arm);
    const double gap = apart - d_ / double(arm);
    for (int side = 0; side < 2; ++side) {
      const Index few = side == 0 ? arm : other, many = side == 0 ? other : arm;
      for (Index r = side; r < Constants::RATIOS; ++r) {  // the first ratio, 1, is the same on both sides
        const Index ratio = constants_.block_ratios[r];
        const Index n = std::min(few, whole_part(many, ratio));
        if (n == 0) break;
        double energy = gap + d_ / double(n) + d_ / double(n * ratio);
        energy *= double(n * ratio) / (double(ratio) + 1.0) * trust_;
        if (energy > d_ && use(energy, constants_.log_ratio_weights[r])) return true;
      }
    }
    return false;
  }
  /// The sup of the evidence over scales, less what mixing over them loses.
  double value(double energy, double log_weight) const {
    return 0.5 * (energy - d_) - half_ * std::log(energy / d_) - constants_.forecast_loss + log_weight;
  }
  /// What it does not exceed, rounded or not, without a logarithm: log x ≥ 2(x − 1)/(x + 1) for x = energy/d ≥ 1.
  double most(double energy, double log_weight) const {
    const double gap = energy - d_;
    return 0.5 * gap * gap / (energy + d_) + 1e-12 * energy - constants_.forecast_loss + log_weight;
  }

  const Constants& constants_;
  const Index dim_;
  const double trust_;  // the share of the energy that counts
  const double d_, half_;
};

/// What it costs to raise the representatives that are needed to so many pulls.
double cost_of_leads(const State& s, Index level, ConstRow price) {
  double cost = 0.0;
  for (Index k = 0; k < s.n_groups(); ++k) {
    const Index lead = s.estimate.representative[k];
    for (Index m = 0; m < s.n_arms(); ++m) {
      if (s.estimate.labels[m] != k && s.pairs.settled(m, k) == 0) {
        cost += double(std::max(Index(0), level - s.arms.pulls[lead])) * price[lead];
        break;
      }
    }
  }
  return cost;
}

/// What the pairs still cost if representatives have `level` pulls: `best` or more if it is not less than that.
double cost_at_level(const State& s, const Forecast& forecast, Outlooks& outlooks, Index level, double best,
                     ConstRow price) {
  const std::vector<Index>& steps = s.constants.steps;
  const std::size_t last = steps.size();
  const double wanted = s.pairs.level;
  double cost = cost_of_leads(s, level, price);
  for (Index m = 0; m < s.n_arms() && !(cost >= best); ++m) {
    const Index home = s.estimate.labels[m], pulls = s.arms.pulls[m];
    const bool leads = s.estimate.representative[home] == m;
    std::size_t step = 0;
    for (Index k = 0; k < s.n_groups(); ++k) {
      if (k == home || s.pairs.settled(m, k) == 1) continue;
      const Outlook at = outlooks(m, k);
      const Index other = std::max(level, s.arms.pulls[s.estimate.representative[k]]);
      if (leads) {
        if (!forecast.reaches(at, std::max(level, pulls), other, wanted)) cost = INFINITE;
      } else {
        while (step < last && !forecast.reaches(at, pulls + steps[step], other, wanted)) ++step;
      }
      if (step == last) cost = INFINITE;
      if (cost >= best) break;
    }
    if (step < last) cost += double(steps[step]) * price[m];
  }
  return cost;
}

}  // namespace

double pulls_for_pairs(const State& s, double limit, ConstRow price) {
  if (!std::isfinite(s.pairs.level)) return INFINITE;
  const Forecast forecast(s);
  Outlooks outlooks(s);
  double best = limit;
  Index level = 1;
  for (Index i = 0; i < s.constants.lead_levels; ++i, level *= 2)
    best = std::min(best, cost_at_level(s, forecast, outlooks, level, best, price));
  return best < limit ? best : INFINITE;
}

double pulls_for_freeze(State& s, ConstRow price) {
  const Constants& c = s.constants;
  const Estimate& now = s.estimate;
  const Index n_groups = s.n_groups();
  const double level = next_level(s), d = double(s.dim());
  Numbers& reach = s.work.square;
  Zeros<Index>& touched = s.work.names;
  for (Index k = 0; k < n_groups; ++k) {
    for (Index j = 0; j < n_groups; ++j) {
      if (j == k) continue;
      const double gap = squared_distance(now.centers[k], now.centers[j]);
      const double sure = gap - d * (1.0 / now.totals[k] + 1.0 / now.totals[j]);
      reach(k, j) = pulls_needed(s, level, std::max({sure, c.freeze_least_gap * gap, 1e-300}), double(now.sizes[k]));
    }
  }
  double total = 0.0;
  touched.fill(0);
  for (Index m = 0; m < s.n_arms(); ++m) {
    const Index home = now.labels[m];
    double worst = 0.0;
    for (Index k = 0; k < n_groups; ++k)
      if (k != home && s.pairs.settled(m, k) == 0) worst = std::max(worst, reach(k, home));
    if (worst > 0.0) {
      total += std::max(c.freeze_least_pulls, worst * c.freeze_factor) * price[m];
      touched[home] = 1;
    }
  }
  for (Index k = 0; k < n_groups; ++k)
    total += c.freeze_group_pulls * double(touched[k]) * price[now.representative[k]];
  return total;
}

namespace {

/// What pulls gain for one unmet pair, of arm m and the representative of k. INOUT: work.gains(m), work.lead_gain.
void add_gains(State& s, const Forecast& forecast, Index m, Index k) {
  const Constants& c = s.constants;
  const Index home = s.estimate.labels[m], lead = s.estimate.representative[k];
  const Index n_now = s.arms.pulls[m], n_arm = s.arms.committed[m], n_lead = s.arms.committed[lead];
  const Outlook at = outlook(s, m, k);
  double deficit = s.pairs.level - s.pairs.evidence(m, k);
  const double now = forecast.evidence(at, n_arm, n_lead);
  if (n_arm > n_now || n_lead > s.arms.pulls[lead])  // what is under way
    deficit -= std::max(now - forecast.evidence(at, n_now, s.arms.pulls[lead]), 0.0);
  deficit = std::max(deficit, c.least_deficit);
  const auto gain_of = [&](Index arm, Index other) {
    return std::min(forecast.evidence(at, arm, other) - now, deficit) / deficit;
  };
  const bool leads = s.estimate.representative[home] == m;
  if (!leads) {
    for (Index more = 1; more <= c.look_ahead; ++more) {
      const double gain = gain_of(n_arm + more, n_lead) / double(more);
      if (gain > 0.0) {
        s.work.gains[m] += gain;
        break;
      }
    }
  }
  Index more = 1;
  for (Index i = 0; i < c.doublings; ++i, more *= 2) {
    const double gain = gain_of(n_arm, n_lead + more);
    if (gain > 0.0) s.work.lead_gain(k, i) += gain / double(more);
    if (!leads) continue;
    const double both = gain_of(n_arm + more, n_lead + more);  // both are representatives: raise them together
    if (both > 0.0) {
      s.work.lead_gain(k, i) += c.together_share * both / double(more);
      s.work.lead_gain(home, i) += c.together_share * both / double(more);
    }
  }
}

/// Gains of candidates and representatives for what a pull costs. INOUT: work.gains.
void divide_by_price(State& s) {
  const Estimate& now = s.estimate;
  for (Index c = 0; c < s.plan.n_candidates; ++c) {
    const Index m = s.plan.candidates[c];
    if (now.representative[now.labels[m]] != m) s.work.gains[m] /= s.arms.price[m];
  }
  for (const Index lead : now.representative) s.work.gains[lead] /= s.arms.price[lead];
}

}  // namespace

Index greedy_gains(State& s) {
  const Forecast forecast(s);
  const Estimate& now = s.estimate;
  Zeros<double>& gains = s.work.gains;
  s.work.lead_gain.fill(0.0);
  Index unmet = 0;
  for (Index c = 0; c < s.plan.n_candidates; ++c) {
    const Index m = s.plan.candidates[c], home = now.labels[m];
    gains[m] = 0.0;
    for (Index k = 0; k < s.n_groups(); ++k) {
      if (k == home || s.pairs.settled(m, k) == 1) continue;
      ++unmet;
      add_gains(s, forecast, m, k);
    }
  }
  for (Index k = 0; k < s.n_groups(); ++k) {
    double best = 0.0;
    for (const double each : s.work.lead_gain[k]) best = std::max(best, each);
    gains[now.representative[k]] = best;
  }
  if (s.arms.priced) divide_by_price(s);
  return unmet;
}

Index best_gains(State& s, Index wanted) {
  const Estimate& now = s.estimate;
  const double* gains = s.work.gains.data();
  const std::span<Index> heap = s.work.members;  // the largest gain, then the lowest index, on top
  Index size = 0;
  for (Index c = 0; c < s.plan.n_candidates; ++c)
    if (const Index m = s.plan.candidates[c]; gains[m] > 0.0 && now.representative[now.labels[m]] != m)
      heap[size++] = m;
  for (const Index lead : now.representative)
    if (gains[lead] > 0.0) heap[size++] = lead;
  const auto before = [gains](Index a, Index b) { return gains[a] > gains[b] || (gains[a] == gains[b] && a < b); };
  const auto sink = [&](Index place) { heap_down(heap, 0, size, place, before, [](Index, Index) {}); };
  for (Index place = size / 2 - 1; place >= 0; --place) sink(place);
  const Index count = std::min(wanted, size);
  for (Index i = 0; i < count; ++i) {
    s.work.chosen[i] = heap[0];
    heap[0] = heap[--size];
    if (size > 0) sink(0);
  }
  return count;
}

}  // namespace coterie::croc
