#include "croc/families/equal_means.hpp"

#include "croc/families/parts.hpp"

namespace coterie::croc {

namespace {

constexpr double LARGEST_SIGN = 1.5;  // bets on a contrast's sign count for no more: they win at most log 2 in any case
constexpr double LARGEST_LOSS = 0.95;  // the largest share that a bet on bounded results may lose in a round

template <class T>
struct Bet {
  Bet(std::span<T> all, Index n_groups, Index dim)
      : parts(all), centers(parts.table(n_groups, dim)), trust(parts.table(n_groups, n_groups)) {}

  double stake(Index home, Index k, Index q) const { return centers(home, q) - centers(k, q); }

  Parts<T> parts;
  Part<T> centers;  // G = Σ̂⁻¹·Û, or U = Û in units of the covariance stated (K, d)
  Part<T> trust;    // f (K, K)
};

/// … and what `Bounded` has besides.
template <class T>
struct BoundedBet : Bet<T> {
  BoundedBet(std::span<T> all, Index n_groups, Index dim)
      : Bet<T>(all, n_groups, dim), square(this->parts.table(n_groups, n_groups)) {}

  Part<T> square;  // Δ² (K, K)
};

Traits traits_of(const char* name, Index bet_size) {
  Traits traits;
  traits.name = name;
  traits.pair_share = 0.0;
  traits.kept = 1;
  traits.bet_size = bet_size;
  traits.shuffled = traits.pools_by_growth = true;
  traits.has_factor = traits.has_bet = traits.has_pulls_needed = true;
  return traits;
}

Traits traits_of_bounded(Index n_groups, Index dim) {
  Traits traits = traits_of("bounded", n_groups * dim + 2 * n_groups * n_groups);
  traits.estimated = true;
  return traits;
}

Traits traits_of_symmetric(Index n_groups, Index dim) {
  Traits traits = traits_of("symmetric", n_groups * dim + n_groups * n_groups);
  traits.scores = 1;
  traits.estimated = traits.winsorised = traits.arm_scales = true;
  return traits;
}

/// v of a pull, with so many pulls of the pool for it.
double variance_of_pull(double pool) { return 1.0 + 1.0 / std::max(pool, 1e-9); }

}  // namespace

void EqualMeans::bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow, Row bet) const {
  const Bet<double> out(bet, n_groups_, dim_);
  for (Index k = 0; k < n_groups_; ++k) {
    const Row weighted = out.centers[k];
    std::fill(weighted.begin(), weighted.end(), 0.0);
    add_in_units(metric, centers[k], weighted);
  }
  for (Index k = 0; k < n_groups_; ++k)
    for (Index j = 0; j < n_groups_; ++j)
      out.trust(k, j) = trust_in_gap(dim_, totals[k], totals[j], square_of_groups(out.centers, centers, k, j));
}

Bounded::Bounded(Index n_groups, Index dim, std::vector<double> widths)
    : EqualMeans(traits_of_bounded(n_groups, dim), n_groups, dim), widths_(std::move(widths)) {}

void Bounded::bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const {
  EqualMeans::bet(centers, totals, metric, learned, bet);
  const BoundedBet<double> out(bet, n_groups_, dim_);
  for (Index k = 0; k < n_groups_; ++k)
    for (Index j = 0; j < n_groups_; ++j) out.square(k, j) = square_of_groups(out.centers, centers, k, j);
}

double Bounded::factor(const Contrast& round, Row, Row kept) const {
  const BoundedBet<const double> bets(round.bet, n_groups_, dim_);
  const Index home = round.home, k = round.other;
  const double trust = bets.trust(home, k), square = bets.square(home, k);
  const double size = trust / (1.0 / round.arm_pulls + 1.0 / round.pool_pulls + trust * trust * square);
  double gain = 0.0, worst = 0.0;
  for (Index q = 0; q < dim_; ++q) {
    const double stake = size * bets.stake(home, k, q);  // λ
    gain += stake * round.contrast[q];
    worst += std::abs(stake) * widths_[q];
  }
  return kept[0] += std::log1p(gain * std::min(1.0, LARGEST_LOSS / std::max(worst, 1e-300)));
}

double Bounded::pulls_needed(double level, double square, double pool, Index) const {
  return level / std::max(0.5 * square / (variance_of_pull(pool) + square), 1e-300);
}

AtMost::AtMost(Index n_groups, Index dim)
    : EqualMeans(traits_of("covariance at most", n_groups * dim + n_groups * n_groups), n_groups, dim) {}

void AtMost::bet(const Numbers& centers, ConstRow totals, const Numbers&, ConstRow, Row bet) const {
  const Bet<double> out(bet, n_groups_, dim_);
  for (Index k = 0; k < n_groups_; ++k) {
    for (Index j = 0; j < n_groups_; ++j) {
      double square = 0.0;
      for (Index q = 0; q < dim_; ++q) {
        const double gap = centers(k, q) - centers(j, q);
        square += gap * gap;
      }
      out.trust(k, j) = trust_in_gap(dim_, totals[k], totals[j], std::max(square, LEAST_SQUARE));
    }
    std::copy_n(centers[k].begin(), dim_, out.centers[k].begin());
  }
}

double AtMost::factor(const Contrast& round, Row, Row kept) const {
  const Bet<const double> bets(round.bet, n_groups_, dim_);
  const double trust = bets.trust(round.home, round.other), v = 1.0 / round.arm_pulls + 1.0 / round.pool_pulls;
  double x = 0.0, w = 0.0;
  for (Index q = 0; q < dim_; ++q) {
    const double theta = trust * bets.stake(round.home, round.other, q);
    x += theta * round.contrast[q] / v;
    w += theta * theta / v;
  }
  return kept[0] += std::log((1.0 + x + 0.5 * x * x) / (1.0 + 0.5 * w));
}

double AtMost::pulls_needed(double level, double square, double pool, Index) const {
  const double scaled = square / variance_of_pull(pool);
  const double growth = std::log((1.0 + scaled + 0.5 * scaled * (1.0 + scaled)) / (1.0 + 0.5 * scaled));
  return level / std::max(growth, 1e-300);
}

Symmetric::Symmetric(Index n_groups, Index dim) : EqualMeans(traits_of_symmetric(n_groups, dim), n_groups, dim) {}

double Symmetric::factor(const Contrast& round, Row, Row kept) const {
  const Bet<const double> bets(round.bet, n_groups_, dim_);
  const double trust = bets.trust(round.home, round.other);
  const double variance = round.arm_scores[0] / (round.arm_pulls * round.arm_pulls) +
                          round.pool_scores[0] / (round.pool_pulls * round.pool_pulls);  // of C
  double x = 0.0;
  for (Index q = 0; q < dim_; ++q) x += trust * bets.stake(round.home, round.other, q) * round.contrast[q] / variance;
  x = std::min(std::max(x, -LARGEST_SIGN), LARGEST_SIGN);
  return kept[0] += std::log(2.0) - std::log1p(std::exp(-2.0 * x));
}

double Symmetric::pulls_needed(double level, double square, double pool, Index) const {
  const double growth = -std::log(0.5 + 0.5 * std::exp(-std::min(square / variance_of_pull(pool), 700.0)));
  return level / std::max(growth, 1e-300);
}

}  // namespace coterie::croc
