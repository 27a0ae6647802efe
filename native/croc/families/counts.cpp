#include "croc/families/counts.hpp"

#include "croc/families/parts.hpp"

namespace coterie::croc {

namespace {

constexpr double NEGLIGIBLE = 1e-18;  // terms below this share of their sum end it

template <class T>
struct Bet {
  Bet(std::span<T> all, Index n_groups, Index dim)
      : parts(all), logits(parts.table(n_groups, dim)), trust(parts.table(n_groups, n_groups)) {}

  Parts<T> parts;
  Part<T> logits;  // of the rates, L (K, d)
  Part<T> trust;   // f (K, K)
};

/// s successes among `mine` of the mine + its trials, of which `successes` succeed: p(s) is hypergeometric.
struct Hypergeometric {
  double mine, its, successes;

  double least() const { return std::max(0.0, successes - its); }
  double most() const { return std::min(mine, successes); }
  double mode() const {
    const double at = std::floor((successes + 1.0) * (mine + 1.0) / (mine + its + 2.0));
    return std::min(std::max(at, least()), most());
  }
  /// odds·p(s+1)/p(s)
  double up(double s, double odds) const {
    return odds * (mine - s) * (successes - s) / ((s + 1.0) * (its - successes + s + 1.0));
  }
  /// p(s−1)/p(s)
  double down(double s) const { return s * (its - successes + s) / ((mine - s + 1.0) * (successes - s + 1.0)); }
  /// Σ odds^s·p(s), in units of its term at `from`.
  double sum_from(double from, double odds) const {
    double total = 1.0, term = 1.0;
    for (double s = from; s < most(); s += 1.0) {
      term *= up(s, odds);
      total += term;
      if (term < NEGLIGIBLE * total) break;
    }
    term = 1.0;
    for (double s = from; s > least(); s -= 1.0) {
      term *= down(s) / odds;
      total += term;
      if (term < NEGLIGIBLE * total) break;
    }
    return total;
  }
};

/// log E ψ^s, ψ = e^log_odds.
double log_mean(const Hypergeometric& law, double log_odds) {
  const double least = law.least(), most = law.most();
  if (least == most) return least * log_odds;
  const double mode = law.mode();
  double top = mode, log_term = 0.0;  // of ψ^s·p(s), relative to p(mode): climb to its largest term
  while (true) {
    if (top < most) {
      const double up = std::log(law.up(top, 1.0));
      if (up + log_odds > 0.0) {
        log_term += up;
        top += 1.0;
        continue;
      }
    }
    if (top > least) {
      const double down = std::log(law.down(top));
      if (down - log_odds > 0.0) {
        log_term += down;
        top -= 1.0;
        continue;
      }
    }
    break;
  }
  const double plain_total = law.sum_from(mode, 1.0), tilted_total = law.sum_from(top, std::exp(log_odds));
  return log_term + top * log_odds + std::log(tilted_total) - std::log(plain_total);
}

Traits traits_of(Index n_groups, Index dim, Index trials) {
  Traits traits;
  traits.name = "counts out of " + std::to_string(trials);
  traits.pair_share = 0.0;
  traits.kept = 1;
  traits.bet_size = n_groups * dim + n_groups * n_groups;
  traits.scores = dim;
  traits.trials = double(trials);
  traits.estimated = traits.shuffled = traits.from_zero = traits.pools_by_growth = true;
  traits.has_factor = traits.has_bet = traits.has_score = traits.has_pulls_needed = true;
  return traits;
}

}  // namespace

Counts::Counts(Index n_groups, Index dim, Index trials)
    : Family(traits_of(n_groups, dim, trials)), n_groups_(n_groups), dim_(dim), trials_(double(trials)) {}

void Counts::bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow, Row bet) const {
  const Bet<double> out(bet, n_groups_, dim_);
  for (Index k = 0; k < n_groups_; ++k) {
    for (Index q = 0; q < dim_; ++q) {
      const double rate = (centers(k, q) * totals[k] + 0.5) / (trials_ * totals[k] + 1.0);
      out.logits(k, q) = std::log(rate / (1.0 - rate));
    }
    for (Index j = 0; j < n_groups_; ++j) {
      const double square = square_in_units(
          metric, [&](Index q) { return stabilised(centers(k, q), traits) - stabilised(centers(j, q), traits); });
      out.trust(k, j) = trust_in_gap(dim_, totals[k], totals[j], std::max(square, LEAST_SQUARE));
    }
  }
}

void Counts::score(ConstRow position, ConstRow, ConstRow, Row scores, Row, Index) const {
  for (std::size_t q = 0; q < position.size(); ++q) scores[q] += position[q];
}

double Counts::factor(const Contrast& round, Row, Row kept) const {
  const Bet<const double> bets(round.bet, n_groups_, dim_);
  const double trust = bets.trust(round.home, round.other);
  for (Index q = 0; q < dim_; ++q) {
    const double log_odds = trust * (bets.logits(round.home, q) - bets.logits(round.other, q));
    const double successes = round.arm_scores[q] + round.pool_scores[q];
    kept[0] += round.arm_scores[q] * log_odds;
    kept[0] -= log_mean({round.arm_pulls * trials_, round.pool_pulls * trials_, successes}, log_odds);
  }
  return kept[0];
}

double Counts::pulls_needed(double level, double square, double pool, Index) const {
  // the growth by a pull is about ½·Δ²/v
  return 2.0 * level * (1.0 + 1.0 / std::max(pool, 1e-9)) / square;
}

}  // namespace coterie::croc
