#include "croc/shape.hpp"

#include "croc/estimate.hpp"
#include "croc/metric.hpp"
#include "croc/pulling_in.hpp"
#include "croc/steps.hpp"

namespace coterie::croc {

namespace {

/// The space of features has no evidence of its own, only forecasts.
class FeatureSpace final : public Family {
 public:
  explicit FeatureSpace(std::shared_ptr<const Family> whole) : Family(its_traits()), whole_(std::move(whole)) {}

  double pulls_needed(double level, double square, double pool, Index dim) const override {
    return whole_->pulls_needed(level, square, pool, dim);
  }

 private:
  static Traits its_traits() {
    Traits traits;
    traits.name = "features";
    traits.pair_share = 0.0;
    traits.kept = 0;
    traits.estimated = traits.exact_moves = traits.has_factor = traits.has_pulls_needed = true;
    return traits;
  }

  std::shared_ptr<const Family> whole_;
};

/// It freezes nothing and has no rounds.
Constants without_rounds(Constants constants) {
  constants.epochs = 1;
  constants.flight = 2;
  constants.round_places = 1;
  return constants;
}

Index kept_room(Index n_arms, Index dim, const Constants& constants) {
  const Index wanted = std::max(constants.shape_results, constants.shape_repeats * n_arms);
  return std::min(wanted, std::max(2 * n_arms, constants.shape_numbers / dim));
}

/// How much better the arm's group fits a result than a group drawn by weight: log of the ratio of densities.
double label_information(State& v, Index arm, ConstRow position, double most) {
  const Estimate& now = v.estimate;
  if (now.at == 0) return 0.0;
  const Row place = v.work.rest;
  to_metric(v.metric, position, place);
  const auto height = [&](Index k) {
    const ConstRow center = now.centers[k];
    double sum = 0.0;
    for (std::size_t q = 0; q < center.size(); ++q) sum += center[q] * (place[q] - 0.5 * center[q]);
    return sum;
  };
  const double mine = height(now.labels[arm]);
  double total = 0.0, mean = 0.0;
  for (Index k = 0; k < v.n_groups(); ++k) {
    total += now.totals[k];
    mean += now.totals[k] * std::exp(std::min(height(k) - mine, 40.0));
  }
  return std::clamp(-std::log(mean / total), -most, most);
}

/// Features of a result from the first one's, with what floats do not hold of them: nothing. OUT: shape.of_result.
void add_features(ShapeEstimate& shape, Index arm, ConstRow position) {
  const Index size = shape.features.size();
  shape.of_result.fill(0.0);
  const Row all = shape.of_result;
  shape.features.fill(position, shape.middle, shape.scale, all.first(static_cast<std::size_t>(size)));
  observe(shape.space, arm, all, 0);
}

/// The median of the absolute numbers in work, or of the numbers themselves. INOUT: numbers.
double middle_of(std::vector<double>& numbers) {
  const auto half = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), half, numbers.end());
  return *half;
}

/// o and s of one number of the results that are kept: median and, in standard deviations, median distance from it.
void find_units(ShapeEstimate& shape, Index q, const Constants& constants) {
  shape.middle[q] = 0.0;
  shape.scale[q] = 1.0;
  if (shape.n_kept == 0) return;
  std::vector<double> numbers(static_cast<std::size_t>(shape.n_kept));
  for (Index i = 0; i < shape.n_kept; ++i) numbers[i] = shape.kept(i, q);
  const double middle = middle_of(numbers);
  for (double& each : numbers) each = std::abs(each - middle);
  double scale = constants.median_to_deviation * middle_of(numbers);
  if (!(scale > 0.0)) {
    double squares = 0.0;
    for (const double each : numbers) squares += each * each;
    scale = std::sqrt(squares / static_cast<double>(numbers.size()));
  }
  shape.middle[q] = middle;
  shape.scale[q] = scale > 0.0 && std::isfinite(scale) ? scale : 1.0;
}

/// o and s from all results, and the features of all of them anew. INOUT: the space.
void measure_anew(State& s) {
  ShapeEstimate& shape = *s.shape;
  State& space = shape.space;
  for (Index q = 0; q < s.dim(); ++q) find_units(shape, q, s.constants);
  shape.measured_at = std::max(s.arms.t, Index(1));
  const Index at = std::exchange(space.estimate.at, 0);  // centers are found at the end
  forget_touched(space);
  space.arms.t = 0;
  space.arms.unseen = space.n_arms();
  space.arms.pulls.fill(0);
  space.arms.sums.fill(0.0);
  space.arms.means.fill(0.0);
  space.metric.degrees = space.metric.measured_at = 0;
  space.metric.scatter.fill(0.0);
  space.metric.location.fill(0.0);
  const Index open = space.arms.open_pulls;
  for (Index i = 0; i < shape.n_kept; ++i) add_features(shape, shape.kept_arms[i], shape.kept[i]);
  space.arms.open_pulls = open;
  if (at == 0) return;
  space.estimate.totals.fill(0.0);
  for (Index m = 0; m < space.n_arms(); ++m)
    space.estimate.totals[space.estimate.labels[m]] += double(space.arms.pulls[m]);
  estimate_metric(space);
  space.estimate.at = at;
  space.estimate.left_group = true;
}

}  // namespace

ShapeEstimate::ShapeEstimate(Index n_arms, Index n_groups, Index dim, double log_inverse_delta,
                             const std::shared_ptr<const Family>& family, ConstRow prices, const Constants& constants)
    : features(dim),
      middle(dim),
      scale(dim),
      kept_arms(kept_room(n_arms, dim, constants)),
      kept(kept_arms.size(), dim),
      space(n_arms, n_groups, features.size(), log_inverse_delta, std::make_shared<const FeatureSpace>(family), prices,
            without_rounds(constants)),
      of_result(2 * features.size()) {}

State& leading(State& s) { return s.shape && s.shape->leads ? s.shape->space : s; }
const State& leading(const State& s) {
  return s.shape && s.shape->leads ? s.shape->space : s;  // NOLINT(bugprone-return-const-ref-from-parameter): of a run
}

void take_features(State& s, Index arm, ConstRow position) {
  ShapeEstimate& shape = *s.shape;
  const bool is_full = shape.n_kept == shape.kept_arms.size();
  if (shape.measured_at == 0 && is_full) measure_anew(s);  // many results came before the first plan
  const bool measured = shape.measured_at > 0;
  if (measured) {
    const double most = s.constants.shape_most_information;
    const double kept = std::max(1.0 - s.constants.shape_forgetting / double(s.arms.t), 0.0);
    for (double& each : shape.predicted) each *= kept;
    shape.predicted[0] += label_information(s, arm, position, most);
    const Row features = Row(shape.of_result).first(static_cast<std::size_t>(shape.features.size()));
    shape.features.fill(position, shape.middle, shape.scale, features);
    for (Index q = 0; q < shape.features.size(); ++q) features[q] -= shape.space.arms.origin[q];
    shape.predicted[1] += label_information(shape.space, arm, features, most);
  }
  shape.kept_all = shape.kept_all && !is_full;
  if (shape.kept_all) {
    shape.kept_arms[shape.n_kept] = arm;
    std::ranges::copy(position, shape.kept[shape.n_kept].begin());
    ++shape.n_kept;
  }
  if (measured) add_features(shape, arm, position);
}

void renew_shape(State& s) {
  if (!s.shape || s.arms.unseen > 0) return;
  ShapeEstimate& shape = *s.shape;
  if (shape.measured_at == 0 || (s.arms.t >= 2 * shape.measured_at && shape.kept_all)) measure_anew(s);
  shape.space.freezes = s.freezes;
  renew(shape.space);
  const double other = std::max(shape.predicted[0], 0.0);
  const bool leads = shape.leads ? shape.predicted[1] > other
                                 : shape.predicted[1] > s.constants.shape_lead + s.constants.shape_lead_ratio * other;
  if (leads == shape.leads) return;
  shape.leads = leads;
  s.plan.planned_at = shape.space.plan.planned_at = NEVER;
}

void fix_weights(const State& s, Row shared) {
  const Constants& c = s.constants;
  const double location = 1.0 / (1.0 + std::exp(std::clamp(s.shape->lead(), -40.0, 40.0)));
  shared[0] = std::clamp(location, c.shape_least_weight, 1.0 - c.shape_least_weight);
  shared[2] = c.shape_small_share * (1.0 - shared[0]);
  shared[1] = 1.0 - shared[0] - shared[2];
}

void fix_shape_bet(State& s, std::span<const Index> labels, Row bet) {
  ShapeEstimate& shape = *s.shape;
  State& space = shape.space;
  if (shape.measured_at == 0) measure_anew(s);
  if (space.metric.measured_at == 0 && space.metric.degrees > 0) estimate_metric(space);
  raw_centers(space, labels);
  s.family->bet_on_shape(
      {space.work.raw, space.work.totals, space.metric.to_units, space.arms.origin, shape.middle, shape.scale}, bet);
}

}  // namespace coterie::croc
