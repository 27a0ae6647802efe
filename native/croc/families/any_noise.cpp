#include "croc/families/any_noise.hpp"

#include <array>
#include <limits>

#include "croc/families/parts.hpp"
#include "croc/flight.hpp"

namespace coterie::croc {

namespace {

constexpr double CLIP = 6.0;                     // log-likelihood ratios count for no more than this
const double FAR = std::exp(-6.125);             // density, relative to a center, of results of no group: that of 3.5 σ
constexpr Index ORDER = 16;                      // J, the largest order of the polynomials …
constexpr Index ORDER_NUMBERS = Index(1) << 22;  // … halved as long as they would be more than so many numbers
constexpr double LEAST_WEIGHT = 0.02;            // of either score
constexpr double FAR_EXPECTED = 0.012, FAR_STEP = 0.008;  // the robust score is trusted more if more results are far …
constexpr double FAR_TRUST = 4.0;                         // … by up to this in its logit
constexpr double GROWTH_SHARE = 0.25;  // of the growth of the robust score over the linear one, in that logit
constexpr double SMALL_BET = 0.1;      // f of the small bets on the shape
constexpr double CHANCE = 1.0;         // variances that a coordinate of a center loses to chance
constexpr Index PROCESSES = 3;         // with `shape`: location, shape, small bets

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

double clipped(double x, double least, double most) { return std::min(std::max(x, least), most); }

template <class T>
struct Bet {
  Bet(std::span<T> all, Index n_groups, Index dim, Index n_features = 0)
      : parts(all),
        robust(parts.number()),
        order(parts.number()),
        weighted(parts.table(n_groups, dim)),
        half_square(parts.table(1, n_groups)[0]),
        trust(parts.table(n_groups, n_groups)),
        gap(parts.table(n_groups, n_groups)),
        units(parts.table(2, n_features > 0 ? dim : 0)),
        shaped(parts.table(n_groups, n_features)),
        shape_height(parts.table(n_features > 0 ? 1 : 0, n_groups)),
        shape_trust(parts.table(n_features > 0 ? n_groups : 0, n_groups)) {}

  /// G_k·x − h_k: the log-density of group k at x, up to what all groups share.
  double log_density(Index k, ConstRow x) const {
    double sum = -half_square[k];
    for (std::size_t q = 0; q < x.size(); ++q) sum += weighted(k, Index(q)) * x[q];
    return sum;
  }

  Parts<T> parts;
  T& robust;                 // w, the weight of the robust score
  T& order;                  // J
  Part<T> weighted;          // G = Σ̂⁻¹·Û (K, d)
  std::span<T> half_square;  // h = ½·Û·G (K)
  Part<T> trust;             // f (K, K)
  Part<T> gap;               // Δ (K, K)
  Part<T> units;             // o and s (2, d), with `shape`
  Part<T> shaped;            // P = Ĉ⁻¹·m (K, D)
  Part<T> shape_height;      // p (1, K)
  Part<T> shape_trust;       // f of the shape (K, K)
};

/// What is learned over all rounds.
template <class T>
struct Learned {
  explicit Learned(std::span<T> all) : parts(all), far_share(parts.number()), growth(parts.table(1, 2)[0]) {}

  Parts<T> parts;
  T& far_share;
  std::span<T> growth;  // of the linear and of the robust score
};

Index order_for(Index n_arms, Index n_groups, bool shape, const Constants& constants) {
  Index order = ORDER;
  while (order > 1 && (shape ? 8 : 4) * n_groups * order * entry_room(n_arms, constants) > ORDER_NUMBERS) order /= 2;
  return order;
}

Traits traits_of(Index n_groups, Index dim, Index n_features, Index order) {
  Traits traits;
  traits.name = "any noise";
  traits.pair_share = 0.0;
  traits.kept = 1;
  traits.bet_size = 2 + n_groups * (dim + 1) + 2 * n_groups * n_groups;
  traits.scores = 4 * n_groups * order;
  if (n_features > 0) {
    traits.has_shape = traits.exact_moves = true;
    traits.kept = traits.shared = PROCESSES;
    traits.bet_size += 2 * dim + n_groups * (n_features + 1) + n_groups * n_groups;
    traits.scores *= 2;
  }
  traits.learned = 3;
  traits.estimated = traits.winsorised = traits.shuffled = traits.pools_by_growth = true;
  traits.has_factor = traits.has_bet = traits.has_score = traits.has_pool = traits.has_pulls_needed = true;
  return traits;
}

}  // namespace

AnyNoise::AnyNoise(Index n_groups, Index dim, bool shape, Index order)
    : Family(traits_of(n_groups, dim, shape ? Features(dim).size() : 0, order)),
      n_groups_(n_groups),
      dim_(dim),
      order_(order) {
  if (shape) features_.emplace(dim);
}

AnyNoise::AnyNoise(Index n_arms, Index n_groups, Index dim, bool shape, const Constants& constants)
    : AnyNoise(n_groups, dim, shape, order_for(n_arms, n_groups, shape, constants)) {}

void AnyNoise::bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const {
  const Bet<double> out(bet, n_groups_, dim_);
  const Learned<const double> so_far(learned);
  double logit = FAR_TRUST * clipped((so_far.far_share - FAR_EXPECTED) / FAR_STEP, -1.0, 1.0);
  logit += GROWTH_SHARE * (so_far.growth[1] - so_far.growth[0]);
  const double weight = 1.0 / (1.0 + std::exp(-clipped(logit, -40.0, 40.0)));
  out.robust = clipped(weight, LEAST_WEIGHT, 1.0 - LEAST_WEIGHT);
  out.order = double(order_);
  for (Index k = 0; k < n_groups_; ++k) {
    const Row weighted = out.weighted[k];
    std::fill(weighted.begin(), weighted.end(), 0.0);
    out.half_square[k] = add_in_units(metric, centers[k], weighted);
  }
  for (Index k = 0; k < n_groups_; ++k)
    for (Index j = 0; j < n_groups_; ++j) {
      const double square = square_of_groups(out.weighted, centers, k, j);
      out.trust(k, j) = trust_in_gap(dim_, totals[k], totals[j], square);
      out.gap(k, j) = std::sqrt(square);
    }
}

/// In units of the metric every coordinate of a center, counted from the mean of all, has the variance 1/W: what is no
/// larger than chance is left out, and the rest is shortened. With many features most say nothing about two groups.
void AnyNoise::bet_on_shape(const ShapedGroups& groups, Row bet) const {
  const Bet<double> out(bet, n_groups_, dim_, n_features());
  std::ranges::copy(groups.middle, out.units[0].begin());
  std::ranges::copy(groups.scale, out.units[1].begin());
  const Index size = n_features();
  std::array<double, Features::MOST> mean{}, away;
  double results = 0.0;
  for (Index k = 0; k < n_groups_; ++k) results += groups.totals[k];
  for (Index k = 0; k < n_groups_; ++k)
    for (Index q = 0; q < size; ++q) mean[at(q)] += groups.totals[k] / results * groups.centers(k, q);
  Numbers shortened(n_groups_, size), kept(n_groups_, 1);
  for (Index k = 0; k < n_groups_; ++k) {
    const Row weighted = out.shaped[k];
    std::ranges::fill(weighted, 0.0);
    for (Index q = 0; q < size; ++q) away[at(q)] = groups.centers(k, q) - mean[at(q)];
    const double variance = CHANCE * (1.0 / groups.totals[k] - 1.0 / results);
    double height = 0.0;
    for (Index i = 0; i < size; ++i) {
      double along = 0.0;  // coordinate i of T·(m − mean)
      for (Index q = 0; q <= i; ++q) along += groups.metric(i, q) * away[at(q)];
      const double share = along == 0.0 ? 0.0 : std::max(0.0, 1.0 - variance / (along * along));
      along *= share;
      shortened(k, i) = along;
      kept(k, 0) += share;
      height += 0.5 * along * along;
      for (Index q = 0; q <= i; ++q) weighted[at(q)] += groups.metric(i, q) * along;
    }
    for (Index q = 0; q < size; ++q) height += weighted[at(q)] * (groups.origin[at(q)] + mean[at(q)]);
    out.shape_height(0, k) = height;
  }
  for (Index k = 0; k < n_groups_; ++k)
    for (Index j = 0; j < n_groups_; ++j) {
      double square = LEAST_SQUARE;
      for (Index i = 0; i < size; ++i) square += std::pow(shortened(k, i) - shortened(j, i), 2);
      const double chance = kept(k, 0) / groups.totals[k] + kept(j, 0) / groups.totals[j];
      out.shape_trust(k, j) = std::max(LEAST_TRUST, 1.0 - chance / square);
    }
}

/// A result joins the polynomials of a score and of its inverse. INOUT: scores.
void AnyNoise::add_to_polynomials(double ratio, Index which, Index k, Row scores) const {
  for (const Index inverse : {0, 1}) {
    const double value = std::exp(inverse == 1 ? -ratio : ratio);
    double* polynomial = &scores[polynomials(2 * which + inverse, k)];
    for (Index j = order_ - 1; j > 0; --j)
      if (polynomial[j - 1] > 0.0) polynomial[j] += value * polynomial[j - 1];
    polynomial[0] += value;
  }
}

void AnyNoise::score_shape(ConstRow position, ConstRow bet, Row scores, Index home) const {
  if (!features_) return;
  const Bet<const double> bets(bet, n_groups_, dim_, n_features());
  std::array<double, Features::MOST> features;
  features_->fill(position, bets.units[0], bets.units[1], {features.data(), static_cast<std::size_t>(n_features())});
  const auto height = [&](Index k) {
    double sum = -bets.shape_height(0, k);
    for (Index q = 0; q < n_features(); ++q) sum += bets.shaped(k, q) * features[static_cast<std::size_t>(q)];
    return sum;
  };
  const double mine = height(home);
  for (Index k = 0; k < n_groups_; ++k) {
    if (k == home) continue;
    const double gap = mine - height(k);
    add_to_polynomials(clipped(bets.shape_trust(home, k) * gap, -CLIP, CLIP), 2, k, scores);
    add_to_polynomials(clipped(SMALL_BET * gap, -CLIP, CLIP), 3, k, scores);
  }
}

void AnyNoise::score(ConstRow position, ConstRow bet, ConstRow, Row scores, Row, Index home) const {
  const Bet<const double> bets(bet, n_groups_, dim_);
  const double mine = bets.log_density(home, position);
  for (Index k = 0; k < n_groups_; ++k) {
    if (k == home) continue;
    const double its = bets.log_density(k, position), trust = bets.trust(home, k), gap = bets.gap(home, k);
    const double along = (mine - its) / gap;
    const double to_home = along - 0.5 * gap, to_other = along + 0.5 * gap;
    const double near = std::exp(-0.5 * (to_home * to_home)), other = std::exp(-0.5 * (to_other * to_other));
    const double linear = clipped(trust * gap * along, -CLIP, CLIP);
    const double robust = clipped(trust * std::log((near + FAR) / (other + FAR)), -CLIP, CLIP);
    add_to_polynomials(linear, 0, k, scores);
    add_to_polynomials(robust, 1, k, scores);
  }
  score_shape(position, bet, scores, home);
}

void AnyNoise::pool(ConstRow scores, Row pooled) const {
  for (Index first = 0; first < Index(scores.size()); first += order_) {
    const double* arm = &scores[first];
    double* all = &pooled[first];
    Index degree = 0;  // of the arm: its results in the round, at most J
    while (degree < order_ && arm[degree] > 0.0) ++degree;
    for (Index j = order_ - 1; j >= 0; --j) {
      double total = all[j] + arm[j];
      for (Index i = std::max(j - degree, Index(0)); i < j; ++i) total += all[i] * arm[j - 1 - i];
      all[j] = total;
    }
  }
}

double AnyNoise::log_factor(const Contrast& round, Index which) const {
  const Index used = Index(std::min(round.arm_pulls, double(order_)));  // j
  const double* mine = &round.arm_scores[polynomials(2 * which, round.other)];
  const double* its = &round.pool_scores[polynomials(2 * which + 1, round.home)];
  double everything = mine[used - 1] + its[used - 1];
  for (Index i = 0; i < used - 1; ++i) everything += mine[i] * its[used - 2 - i];
  double value = std::log(mine[used - 1] / everything);
  for (Index i = 0; i < used; ++i)  // binom(a+A, j)/binom(a, j)
    value += std::log((round.arm_pulls + round.pool_pulls - double(i)) / (round.arm_pulls - double(i)));
  return value;
}

double AnyNoise::factor(const Contrast& round, Row learned, Row kept) const {
  const Bet<const double> bets(round.bet, n_groups_, dim_);
  const Learned<double> so_far(learned);
  double growth = 0.0;
  for (Index which = 0; which < 2; ++which) {  // linear, robust
    const double value = log_factor(round, which);
    so_far.growth[which] += value;
    growth += (which == 1 ? bets.robust : 1.0 - bets.robust) * std::exp(value);
  }
  kept[0] += std::log(growth);
  if (!features_) return kept[0];
  for (Index process = 1; process < PROCESSES; ++process) kept[process] += log_factor(round, process + 1);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (Index process = 0; process < PROCESSES; ++process) largest = std::max(largest, kept[process]);
  for (Index process = 0; process < PROCESSES; ++process)
    sum += round.shared[process] * std::exp(kept[process] - largest);
  return largest + std::log(sum);
}

double AnyNoise::pulls_needed(double level, double square, double pool, Index) const {
  // the growth by a pull is about −log(q + (1−q)·e^(−Δ²/2)), with q = 1/(1+A)
  const double q = 1.0 / (1.0 + std::max(pool, 1e-9));
  const double growth = -std::log(q + (1.0 - q) * std::exp(-0.5 * std::min(square, 4.0 * CLIP)));
  return level / std::max(growth, 1e-300);
}

}  // namespace coterie::croc
