#include "croc/families/gaussian.hpp"

#include "base/geometry.hpp"
#include "croc/families/parts.hpp"

namespace coterie::croc {

namespace {

constexpr double ALPHA = 0.2, VARIANCE_SHARE = 0.1;  // shares of δ for pairs from the start, and for their σ₊
constexpr Index HALVINGS = 13;                       // λ = 8, 4, …, 2⁻⁹, each with the weight ½/13, beside λ = 0 with ½
constexpr double LARGEST = 8.0;
constexpr Index NEWTON_STEPS = 60;
constexpr double PRECISION = 1e-11;
constexpr double NO_EVIDENCE = -1e9;
constexpr double NEGLIGIBLE = -45.0;   // exponents below this are far below the last bit
constexpr double VARIANCE_COST = 0.7;  // log-evidence that a test is expected to pay for not knowing ω

template <class T>
struct Bet {
  Bet(std::span<T> all, Index n_groups, Index dim)
      : parts(all), centers(parts.table(n_groups, dim)), trust(parts.table(n_groups, n_groups)) {}

  Parts<T> parts;
  Part<T> centers;  // U (K, d)
  Part<T> trust;    // f (K, K)
};

/// What the tests of an epoch share. R is in rows k > j.
template <class T>
struct Shared {
  Shared(std::span<T> all, Index n_groups, Index dim)
      : parts(all),
        weighted(parts.table(n_groups, dim)),
        gap(parts.table(n_groups, n_groups)),
        squares(parts.table(n_groups, n_groups)),
        degrees(parts.number()) {}

  /// Coordinate q of η of two groups.
  double direction(Index home, Index k, Index q) const { return (weighted(home, q) - weighted(k, q)) / gap(home, k); }

  Parts<T> parts;
  Part<T> weighted;  // G = Σ̂⁻¹·Û (K, d)
  Part<T> gap;       // Δ̂ (K, K)
  Part<T> squares;   // R (K, K)
  T& degrees;        // ν
};

struct RoundScores {
  RoundScores(Row all, Index n_groups)
      : parts(all), squares(parts.table(n_groups, n_groups)), work(parts.table(1, n_groups)[0]) {}

  Parts<double> parts;
  Part<double> squares;  // Σu² (K, K), in rows k > j
  Row work;              // (K)
};

/// λ and log(1+λ).
struct Rates {
  Rates() {
    const volatile double largest = LARGEST;  // not log1p of a constant, which a compiler rounds in its own way
    for (Index i = 0; i < HALVINGS; ++i) {
      rate[i] = largest / double(Index(1) << i);
      log1p[i] = std::log1p(rate[i]);
    }
  }
  double rate[HALVINGS], log1p[HALVINGS];
};

/// κ·log Σ_λ w_λ·(1+λ)^(ν/2)·e^(−λRy) + G·y at y, with its slope and curvature.
struct Price {
  double value, slope, curve;
};

Price price_at(double y, double gain, double squares, double degrees, double share) {
  static const Rates rates;
  static const double log_halvings = std::log(double(HALVINGS));
  double exponent[HALVINGS], largest = -INFINITE;
  for (Index i = 0; i < HALVINGS; ++i) {
    exponent[i] = 0.5 * degrees * rates.log1p[i] - rates.rate[i] * squares * y - log_halvings;
    largest = std::max(largest, exponent[i]);
  }
  largest = std::max(largest, 0.0);
  double total = std::exp(-largest), first = 0.0, second = 0.0;
  for (Index i = 0; i < HALVINGS; ++i) {
    const double below = exponent[i] - largest, rate = rates.rate[i];
    if (!(below > NEGLIGIBLE)) continue;
    const double term = std::exp(below);
    total += term;
    first += rate * term;
    second += rate * rate * term;
  }
  const double mean = first / total;
  return {share * (std::log(0.5 * total) + largest) + gain * y, gain - share * squares * mean,
          share * squares * squares * (second / total - mean * mean)};
}

/// min over y > 0 of that price, or one of its values below the level: it is convex, so Newton, kept within a bracket.
double least_price(double gain, double squares, double degrees, double share, double level) {
  double y = 0.5 * degrees / squares, below = 0.0, above = INFINITE, value = 0.0;
  for (Index attempt = 0; attempt < NEWTON_STEPS; ++attempt) {
    const Price price = price_at(y, gain, squares, degrees, share);
    value = price.value;
    if (attempt == 0 && value < level) return value;  // the minimum is not above it
    (price.slope > 0.0 ? above : below) = y;
    double moved = price.curve > 0.0 ? y - price.slope / price.curve : 2.0 * y;
    if (!(moved > below && moved < above)) moved = above == INFINITE ? 2.0 * y : 0.5 * (below + above);
    if (std::abs(moved - y) <= PRECISION * y) return value;
    y = moved;
  }
  return value;
}

Traits traits_of(Index n_groups, Index dim, Shape shape) {
  Traits traits;
  const char* names[] = {"full", "diagonal", "scalar"};
  traits.name = "Gaussian noise, covariance unknown (" + std::string(names[static_cast<int>(shape)]) + ")";
  traits.pair_share = shape == Shape::full ? 0.0 : ALPHA;
  traits.variance_share = shape == Shape::full ? 0.0 : VARIANCE_SHARE;
  traits.kept = 1;
  traits.bet_size = n_groups * dim + n_groups * n_groups;
  traits.round_scores = n_groups * n_groups + n_groups;
  traits.shared = n_groups * dim + 2 * n_groups * n_groups + 1;
  traits.estimated = traits.shuffled = traits.pools_by_growth = true;
  traits.shape = shape;
  traits.has_factor = traits.has_bet = traits.has_score = traits.has_freeze = traits.has_gather = true;
  traits.has_quality = traits.has_pulls_needed = true;
  return traits;
}

}  // namespace

Gaussian::Gaussian(Index n_groups, Index dim, Shape shape)
    : Family(traits_of(n_groups, dim, shape)), n_groups_(n_groups), dim_(dim), scalar_(shape == Shape::scalar) {}

void Gaussian::freeze(const Numbers& centers, ConstRow, const Numbers& metric, Row shared) const {
  std::fill(shared.begin(), shared.end(), 0.0);
  const Shared<double> out(shared, n_groups_, dim_);
  for (Index k = 0; k < n_groups_; ++k) add_in_units(metric, centers[k], out.weighted[k]);
  for (Index k = 0; k < n_groups_; ++k)
    for (Index j = 0; j < n_groups_; ++j) out.gap(k, j) = std::sqrt(square_of_groups(out.weighted, centers, k, j));
}

void Gaussian::bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow, Row bet) const {
  const Bet<double> out(bet, n_groups_, dim_);
  for (Index k = 0; k < n_groups_; ++k) {
    std::copy_n(centers[k].begin(), dim_, out.centers[k].begin());
    for (Index j = 0; j < n_groups_; ++j) {
      const double square = square_in_units(metric, [&](Index q) { return centers(k, q) - centers(j, q); });
      out.trust(k, j) = trust_in_gap(dim_, totals[k], totals[j], std::max(square, LEAST_SQUARE));
    }
  }
}

void Gaussian::score(ConstRow position, ConstRow bet, ConstRow shared, Row, Row round_scores, Index home) const {
  const Bet<const double> bets(bet, n_groups_, dim_);
  const Shared<const double> frozen(shared, n_groups_, dim_);
  const RoundScores out(round_scores, n_groups_);
  if (scalar_) {
    double square = 0.0;
    for (Index q = 0; q < dim_; ++q) {
      const double away = position[q] - bets.centers(home, q);
      square += away * away;
    }
    for (Index k = 0; k < n_groups_; ++k)
      for (Index j = 0; j < k; ++j) {
        double length = 0.0;
        for (Index q = 0; q < dim_; ++q) {
          const double step = frozen.weighted(k, q) - frozen.weighted(j, q);
          length += step * step;
        }
        out.squares(k, j) += square * length / (frozen.gap(k, j) * frozen.gap(k, j));
      }
    return;
  }
  for (Index k = 0; k < n_groups_; ++k) {
    double along = 0.0;
    for (Index q = 0; q < dim_; ++q) along += frozen.weighted(k, q) * (position[q] - bets.centers(home, q));
    out.work[k] = along;
  }
  for (Index k = 0; k < n_groups_; ++k)
    for (Index j = 0; j < k; ++j) {
      const double u = (out.work[k] - out.work[j]) / frozen.gap(k, j);
      out.squares(k, j) += u * u;
    }
}

void Gaussian::gather(ConstRow round_scores, double results, Row shared) const {
  const Shared<double> out(shared, n_groups_, dim_);
  for (Index i = 0; i < n_groups_ * n_groups_; ++i) out.squares.flat(i) += round_scores[i];
  out.degrees += results * (scalar_ ? double(dim_) : 1.0);
}

double Gaussian::factor(const Contrast& round, Row, Row kept) const {
  const Bet<const double> bets(round.bet, n_groups_, dim_);
  const Shared<const double> frozen(round.shared, n_groups_, dim_);
  const Index home = round.home, k = round.other;
  double along = 0.0, step = 0.0;  // η·C and t
  for (Index q = 0; q < dim_; ++q) {
    const double direction = frozen.direction(home, k, q);
    along += direction * round.contrast[q];
    step += direction * (bets.centers(home, q) - bets.centers(k, q));
  }
  step *= bets.trust(home, k);
  kept[0] += (2.0 * step * along - step * step) / (1.0 / round.arm_pulls + 1.0 / round.pool_pulls);
  const double gain = kept[0], squares = frozen.squares(std::max(home, k), std::min(home, k));
  if (gain <= 0.0 || squares <= 0.0) return NO_EVIDENCE;
  return least_price(gain, squares, frozen.degrees, round.share, round.level);
}

double Gaussian::quality(const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees,
                         ConstRow shared, Index home, Index k) const {
  // the squared correlation of the frozen direction with the one that the results so far point to
  const Shared<const double> frozen(shared, n_groups_, dim_);
  double along = 0.0, spread = 0.0, square = 0.0;
  for (Index i = 0; i < dim_; ++i) {
    const double direction = frozen.direction(home, k, i);
    along += direction * (centers(home, i) - centers(k, i));
    double step = 0.0;
    for (Index q = 0; q <= i; ++q) {
      spread += direction * frozen.direction(home, k, q) * scatter(i, q) * (q == i ? 1.0 : 2.0) / degrees;
      step += metric(i, q) * (centers(home, q) - centers(k, q));
    }
    square += step * step;
  }
  return along > 0.0 ? along * along / std::max(spread * square, 1e-300) : 0.0;
}

double Gaussian::pulls_needed(double level, double square, double pool, Index) const {
  // the growth by a pull is about ½·Δ²/v
  return 2.0 * (level + VARIANCE_COST) * (1.0 + 1.0 / std::max(pool, 1e-9)) / square;
}

}  // namespace coterie::croc
