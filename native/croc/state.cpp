#include "croc/state.hpp"

#include <map>
#include <mutex>

#include "croc/shape.hpp"

namespace coterie::croc {

namespace {

/// log n! for n = 0, 1, …, M, added up one after the other; runs of one size share the table as long as one is there.
std::shared_ptr<const std::vector<double>> log_factorials(Index n_arms) {
  static std::mutex lock;
  static std::map<Index, std::weak_ptr<const std::vector<double>>> known;
  const std::lock_guard<std::mutex> guard(lock);
  if (auto found = known[n_arms].lock()) return found;
  auto table = std::make_shared<std::vector<double>>(n_arms + 1);
  double total = 0.0;
  for (Index n = 1; n <= n_arms; ++n) (*table)[n] = total += std::log(static_cast<double>(n));
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  known[n_arms] = table;
  return table;
}

/// Numbers that a test keeps: S, or those of the family of evidence and then the last log E.
Index numbers_kept(const Traits& traits, Index dim) {
  if (!traits.has_factor) return dim;
  return (traits.kept < 0 ? dim : traits.kept) + 1;
}

Traits without_pairs(Traits traits) {
  traits.pair_share = traits.variance_share = 0.0;
  return traits;
}

std::vector<Epoch> new_epochs(Index n_arms, Index n_groups, Index dim, const Traits& traits,
                              const Constants& constants) {
  std::vector<Epoch> epochs;
  epochs.reserve(constants.epochs);
  for (Index e = 0; e < constants.epochs; ++e)
    epochs.emplace_back(n_arms, n_groups, dim, numbers_kept(traits, dim), traits.shared, traits.variance_share > 0.0,
                        constants);
  return epochs;
}

}  // namespace

Estimate::Estimate(Index n_arms, Index n_groups, Index dim)
    : labels(n_arms),
      totals(n_groups),
      centers(n_groups, dim),
      sizes(n_groups),
      representative(n_groups),
      log_factorial(log_factorials(n_arms)) {
  representative.fill(-1);
}

Work::Work(Index m, Index k, Index d, const Traits& traits, const Constants& constants)
    : near(m),
      weights(m),
      gains(m),
      labels(m),
      winner(m),
      members(m),
      chosen(m),
      composition(m),
      core_entry(k * constants.core_room()),
      mark(m),
      inside(m),
      reduced(m, std::min(k - 1, d)),
      names(k),
      farthest(k),
      counts(k),
      against(2 * k),
      cheapest(k),
      gain(k),
      share(k),
      worth(k),
      pool_pulls(2 * k),
      totals(k),
      won_totals(k),
      square(k, k),
      lead_gain(k, constants.doublings),
      centers(k, d),
      won_centers(k, d),
      pool_means(2 * k, d),
      away(8, d),
      pool_scores(2 * k, traits.scores),
      mean(d),
      part(d),
      rest(d),
      contrast(d),
      guess(d),
      raw(k, d),
      sorted(constants.innovations),
      correlation(traits.estimated ? d : 0, traits.estimated ? d : 0),
      inverse(traits.estimated ? d : 0, traits.estimated ? d : 0) {
  const Index wide = std::max(Index(0), std::min({m, 2 * std::min(k - 1, d) + constants.subspace_extra, d}));
  basis = Numbers(wide, d);
  image = Numbers(wide, d);
}

State::State(Index n_arms, Index n_groups, Index dim, double log_inverse_delta, std::shared_ptr<const Family> its,
             ConstRow prices, const Constants& its_constants, bool with_pairs)
    : constants(its_constants),
      family(std::move(its)),
      traits(with_pairs ? family->traits : without_pairs(family->traits)),
      log_inverse_delta(log_inverse_delta),
      log_frozen_share(std::log(1.0 - traits.pair_share - traits.variance_share)),
      arms(n_arms, dim, traits.pair_share > 0.0 ? prefix_room(n_arms, dim, constants) : 0, prices, constants),
      estimate(n_arms, n_groups, dim),
      pairs(n_arms, n_groups, dim, arms.room(), log_inverse_delta, traits, constants),
      bound(dim, traits, log_inverse_delta),
      metric(n_arms, dim, traits, constants),
      risk(n_arms),
      epochs(new_epochs(n_arms, n_groups, dim, traits, constants)),
      flight(n_arms, dim, traits.bet_size, traits.scores, traits.round_scores, traits.shuffled, constants),
      heaps(n_arms, n_groups),
      queue(n_arms),
      plan(n_arms),
      learned(traits.learned),
      work(n_arms, n_groups, dim, traits, constants) {
  if (traits.has_shape)
    shape = std::make_unique<ShapeEstimate>(n_arms, n_groups, dim, log_inverse_delta, family, prices, constants);
}

State::~State() = default;

}  // namespace coterie::croc
