#include "croc/families/any_noise.hpp"

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

double clipped(double x, double least, double most) { return std::min(std::max(x, least), most); }

template <class T>
struct Bet {
  Bet(std::span<T> all, Index n_groups, Index dim)
      : parts(all),
        robust(parts.number()),
        order(parts.number()),
        weighted(parts.table(n_groups, dim)),
        half_square(parts.table(1, n_groups)[0]),
        trust(parts.table(n_groups, n_groups)),
        gap(parts.table(n_groups, n_groups)) {}

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
};

/// What is learned over all rounds.
template <class T>
struct Learned {
  explicit Learned(std::span<T> all) : parts(all), far_share(parts.number()), growth(parts.table(1, 2)[0]) {}

  Parts<T> parts;
  T& far_share;
  std::span<T> growth;  // of the linear and of the robust score
};

Index order_for(Index n_arms, Index n_groups, const Constants& constants) {
  Index order = ORDER;
  while (order > 1 && 4 * n_groups * order * entry_room(n_arms, constants) > ORDER_NUMBERS) order /= 2;
  return order;
}

Traits traits_of(Index n_groups, Index dim, Index order) {
  Traits traits;
  traits.name = "any noise";
  traits.pair_share = 0.0;
  traits.kept = 1;
  traits.bet_size = 2 + n_groups * (dim + 1) + 2 * n_groups * n_groups;
  traits.scores = 4 * n_groups * order;
  traits.learned = 3;
  traits.estimated = traits.winsorised = traits.shuffled = traits.pools_by_growth = true;
  traits.has_factor = traits.has_bet = traits.has_score = traits.has_pool = traits.has_pulls_needed = true;
  return traits;
}

}  // namespace

AnyNoise::AnyNoise(Index n_groups, Index dim, Index order)
    : Family(traits_of(n_groups, dim, order)), n_groups_(n_groups), dim_(dim), order_(order) {}

AnyNoise::AnyNoise(Index n_arms, Index n_groups, Index dim, const Constants& constants)
    : AnyNoise(n_groups, dim, order_for(n_arms, n_groups, constants)) {}

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
    const double ratios[] = {linear, -linear, robust, -robust};
    for (Index kind = 0; kind < 4; ++kind) {
      const double value = std::exp(ratios[kind]);
      double* polynomial = &scores[polynomials(kind, k)];
      for (Index j = order_ - 1; j > 0; --j)
        if (polynomial[j - 1] > 0.0) polynomial[j] += value * polynomial[j - 1];
      polynomial[0] += value;
    }
  }
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

double AnyNoise::factor(const Contrast& round, Row learned, Row kept) const {
  const Bet<const double> bets(round.bet, n_groups_, dim_);
  const Learned<double> so_far(learned);
  const Index used = Index(std::min(round.arm_pulls, double(order_)));  // j
  double growth = 0.0;
  for (Index which = 0; which < 2; ++which) {  // linear, robust
    const double* mine = &round.arm_scores[polynomials(2 * which, round.other)];
    const double* its = &round.pool_scores[polynomials(2 * which + 1, round.home)];
    double everything = mine[used - 1] + its[used - 1];
    for (Index i = 0; i < used - 1; ++i) everything += mine[i] * its[used - 2 - i];
    double value = std::log(mine[used - 1] / everything);
    for (Index i = 0; i < used; ++i)  // binom(a+A, j)/binom(a, j)
      value += std::log((round.arm_pulls + round.pool_pulls - double(i)) / (round.arm_pulls - double(i)));
    so_far.growth[which] += value;
    growth += (which == 1 ? bets.robust : 1.0 - bets.robust) * std::exp(value);
  }
  return kept[0] += std::log(growth);
}

double AnyNoise::pulls_needed(double level, double square, double pool, Index) const {
  // the growth by a pull is about −log(q + (1−q)·e^(−Δ²/2)), with q = 1/(1+A)
  const double q = 1.0 / (1.0 + std::max(pool, 1e-9));
  const double growth = -std::log(q + (1.0 - q) * std::exp(-0.5 * std::min(square, 4.0 * CLIP)));
  return level / std::max(growth, 1e-300);
}

}  // namespace coterie::croc
