#include "croc/families/handed_in.hpp"

namespace coterie::croc {

namespace {

Traits with_kernels(Traits traits, const Kernels& kernels) {
  traits.has_factor = bool(kernels.factor);
  traits.has_pulls_needed = bool(kernels.pulls_needed);
  traits.has_bet = bool(kernels.bet);
  traits.has_score = bool(kernels.score);
  traits.has_pool = bool(kernels.pool);
  traits.has_freeze = bool(kernels.freeze);
  traits.has_gather = bool(kernels.gather);
  traits.has_quality = bool(kernels.quality);
  return traits;
}

const double* cells(const Numbers& table) { return table.cells().data(); }

}  // namespace

HandedIn::HandedIn(Traits given, Kernels kernels, std::vector<double> parameters)
    : Family(with_kernels(std::move(given), kernels)),
      kernels_(std::move(kernels)),
      parameters_(std::move(parameters)) {}

double HandedIn::factor(const Contrast& round, Row learned, Row kept) const {
  return kernels_.factor(round, learned, kept, parameters_);
}

double HandedIn::pulls_needed(double level, double square, double pool, Index dim) const {
  return kernels_.pulls_needed(parameters_, level, square, pool, dim);
}

void HandedIn::bet(const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, Row bet) const {
  kernels_.bet(centers, totals, metric, learned, parameters_, bet);
}

void HandedIn::score(ConstRow position, ConstRow bet, ConstRow shared, Row scores, Row round_scores, Index home) const {
  kernels_.score(position, bet, shared, parameters_, scores, round_scores, home);
}

void HandedIn::pool(ConstRow scores, Row pooled) const { kernels_.pool(scores, parameters_, pooled); }

void HandedIn::freeze(const Numbers& centers, ConstRow totals, const Numbers& metric, Row shared) const {
  kernels_.freeze(centers, totals, metric, parameters_, shared);
}

void HandedIn::gather(ConstRow round_scores, double results, Row shared) const {
  kernels_.gather(round_scores, results, parameters_, shared);
}

double HandedIn::quality(const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees,
                         ConstRow shared, Index home, Index k) const {
  return kernels_.quality(centers, metric, scatter, degrees, parameters_, shared, home, k);
}

namespace by_address {

decltype(Kernels::factor) kernel(Factor function) {
  return [function](const Contrast& r, Row learned, Row kept, ConstRow parameters) {
    return function(r.contrast.data(), r.guess.data(), r.arm_scores.data(), r.pool_scores.data(), r.bet.data(),
                    r.shared.data(), learned.data(), kept.data(), parameters.data(), Index(r.contrast.size()),
                    r.arm_pulls, r.pool_pulls, r.spread, r.weight, r.level, r.share, r.home, r.other);
  };
}

decltype(Kernels::pulls_needed) kernel(PullsNeeded function) {
  return [function](ConstRow parameters, double level, double square, double pool, Index dim) {
    return function(parameters.data(), level, square, pool, dim);
  };
}

decltype(Kernels::bet) kernel(Bet function) {
  return [function](const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned,
                    ConstRow parameters, Row bet) {
    function(cells(centers), totals.data(), cells(metric), learned.data(), parameters.data(), bet.data(),
             centers.rows(), centers.columns());
  };
}

decltype(Kernels::score) kernel(Score function) {
  return [function](ConstRow position, ConstRow bet, ConstRow shared, ConstRow parameters, Row scores, Row round_scores,
                    Index home) {
    function(position.data(), bet.data(), shared.data(), parameters.data(), scores.data(), round_scores.data(),
             Index(position.size()), home);
  };
}

decltype(Kernels::pool) kernel(Pool function) {
  return [function](ConstRow scores, ConstRow parameters, Row pooled) {
    function(scores.data(), parameters.data(), pooled.data());
  };
}

decltype(Kernels::freeze) kernel(Freeze function) {
  return [function](const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow parameters, Row shared) {
    function(cells(centers), totals.data(), cells(metric), parameters.data(), shared.data(), centers.rows(),
             centers.columns());
  };
}

decltype(Kernels::gather) kernel(Gather function) {
  return [function](ConstRow round_scores, double results, ConstRow parameters, Row shared) {
    function(round_scores.data(), results, parameters.data(), shared.data());
  };
}

decltype(Kernels::quality) kernel(Quality function) {
  return [function](const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees,
                    ConstRow parameters, ConstRow shared, Index home, Index k) {
    return function(cells(centers), cells(metric), cells(scatter), degrees, parameters.data(), shared.data(),
                    centers.rows(), centers.columns(), home, k);
  };
}

}  // namespace by_address

}  // namespace coterie::croc
