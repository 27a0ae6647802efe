#include "croc/families/rates.hpp"

#include "croc/families/parts.hpp"

namespace coterie::croc {

namespace {

/// Var log x of an exponential time: how much more a result says than the scale of the metric shows.
constexpr double LOG_VARIANCE = 1.6449340668482264;  // π²/6

template <class T>
struct Bet {
  Bet(std::span<T> all, Index n_groups, Index dim)
      : parts(all), logs(parts.table(n_groups, dim)), trust(parts.table(n_groups, n_groups)) {}

  Parts<T> parts;
  Part<T> logs;   // of the rates, L (K, d)
  Part<T> trust;  // f (K, K)
};

/// log(e^x + e^y) of finite numbers.
double log_sum(double x, double y) {
  const double larger = std::max(x, y);
  return larger + std::log1p(std::exp(std::min(x, y) - larger));
}

Traits traits_of(Index n_groups, Index dim, const char* name, Scale scale) {
  Traits traits;
  traits.name = name;
  traits.pair_share = 0.0;
  traits.kept = 1;
  traits.bet_size = n_groups * dim + n_groups * n_groups;
  traits.scores = dim;
  traits.scale = scale;
  traits.estimated = traits.shuffled = traits.from_zero = traits.pools_by_growth = true;
  traits.has_factor = traits.has_bet = traits.has_score = traits.has_pulls_needed = true;
  return traits;
}

}  // namespace

void Rates::bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow, Row bet) const {
  const Bet<double> out(bet, n_groups_, dim_);
  for (Index k = 0; k < n_groups_; ++k) {
    for (Index q = 0; q < dim_; ++q) out.logs(k, q) = std::log(rate(centers(k, q), totals[k]));
    for (Index j = 0; j < n_groups_; ++j) {
      const double square = square_in_units(
          metric, [&](Index q) { return stabilised(centers(k, q), traits) - stabilised(centers(j, q), traits); });
      out.trust(k, j) = trust_in_gap(dim_, totals[k], totals[j], std::max(square, LEAST_SQUARE));
    }
  }
}

void Rates::score(ConstRow position, ConstRow, ConstRow, Row scores, Row, Index) const {
  for (std::size_t q = 0; q < position.size(); ++q) scores[q] += position[q];
}

double Rates::factor(const Contrast& round, Row, Row kept) const {
  const Bet<const double> bets(round.bet, n_groups_, dim_);
  const double trust = bets.trust(round.home, round.other);
  for (Index q = 0; q < dim_; ++q)
    kept[0] += log_factor(round.arm_scores[q], round.pool_scores[q], round.arm_pulls, round.pool_pulls,
                          trust * (bets.logs(round.home, q) - bets.logs(round.other, q)));
  return kept[0];
}

Poisson::Poisson(Index n_groups, Index dim)
    : Rates(traits_of(n_groups, dim, "Poisson counts", Scale::events), n_groups, dim) {}

double Poisson::rate(double mean, double total) const { return (mean * total + 0.5) / total; }

double Poisson::log_factor(double of_arm, double of_pool, double a, double pulls, double log_ratio) const {
  const double mean = log_sum(std::log(a) + log_ratio, std::log(pulls)) - std::log(a + pulls);  // log E ψ of an event
  return of_arm * log_ratio - (of_arm + of_pool) * mean;
}

double Poisson::pulls_needed(double level, double square, double pool, Index) const {
  return 2.0 * level * (1.0 + 1.0 / std::max(pool, 1e-9)) / square;
}

Exponential::Exponential(Index n_groups, Index dim)
    : Rates(traits_of(n_groups, dim, "waiting times", Scale::times), n_groups, dim) {}

double Exponential::rate(double mean, double) const { return 1.0 / mean; }

double Exponential::log_factor(double of_arm, double of_pool, double a, double pulls, double log_ratio) const {
  const double tilted = log_sum(log_ratio + std::log(of_arm), std::log(of_pool)) - std::log(of_arm + of_pool);
  return a * log_ratio - (a + pulls) * tilted;
}

double Exponential::pulls_needed(double level, double square, double pool, Index) const {
  return 2.0 * level * (1.0 + 1.0 / std::max(pool, 1e-9)) / (square * LOG_VARIANCE);
}

}  // namespace coterie::croc
