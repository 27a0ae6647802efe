// What was recorded, brought back at its place among the results.
#include "croc/run.hpp"

namespace coterie::croc {

/// Entries up to the first result, with positions that count from this origin.
void Run::apply_first(Entries& entries, ConstRow origin) {
  if (!state.metric.from_zero) {
    std::ranges::copy(origin, state.arms.origin.begin());
    state.arms.origin_rest.fill(0.0);
    state.arms.t = 1;  // so that the first result is not taken for the origin
  }
  entries.applying = true;
  follow(entries);
  state.arms.t = 1;
}

void Run::apply_freeze(const RecordedFreeze& recorded) {
  const Index room = state.constants.core_room(), dim = state.dim(), n_groups = state.n_groups();
  Epoch& epoch = state.epochs[state.freezes % static_cast<Index>(state.epochs.size())];
  epoch.frozen_at = state.arms.t;
  epoch.number = state.freezes++;
  epoch.level = recorded.level;
  std::ranges::copy(recorded.labels, epoch.labels.begin());
  for (Tests* tests : {&epoch.against_group, &epoch.against_core, &epoch.core_pairs}) {
    tests->met.fill(0);
    tests->weight.fill(0.0);
  }
  epoch.in_core.fill(0);
  epoch.core.fill(-1);
  epoch.totals.fill(0.0);
  epoch.centers.fill(0.0);
  for (Index k = 0; k < n_groups; ++k) {
    std::ranges::copy(recorded.cores[k], epoch.core.begin() + k * room);
    for (Index arm : recorded.cores[k]) epoch.in_core[arm] = 1;
  }
  for (Index m = 0; m < state.n_arms(); ++m) {  // Û from the origin of the group's first core arm, arm by arm
    const Index k = epoch.labels[m], lead = recorded.cores[k][0];
    const double pulls = static_cast<double>(state.arms.pulls[m]);
    epoch.totals[k] += pulls;
    for (Index q = 0; q < dim; ++q) epoch.centers(k, q) += state.arms.sums(m, q) + pulls * state.arms.apart(m, lead, q);
  }
  for (Index k = 0; k < n_groups; ++k)
    for (Index q = 0; q < dim; ++q) epoch.centers(k, q) /= epoch.totals[k];
  if (!recorded.shared.empty()) {
    epoch.shared.fill(0.0);
    std::ranges::copy(recorded.shared, epoch.shared.begin());
  }
}

bool Run::apply_round(Index epoch, std::span<const Index> composition, ConstRow bet) {
  Flight& flight = state.flight;
  if (state.proof == Proof::none && !flight.start(composition, epoch)) return false;
  if (bet.empty()) return true;
  const Row its = flight.bets[flight.place(flight.last)];
  std::ranges::copy(bet.first(its.size()), its.begin());
  if (!state.metric.arm_scales) return true;
  const Round& round = flight.round(flight.last);
  for (Index i = 0; i < round.size; ++i)
    flight.entry_scores(round.first + i, 0) =
        static_cast<double>(flight.entries[round.first + i].pulls) * bet[its.size() + static_cast<std::size_t>(i)];
  return true;
}

void Run::apply_alarm(std::span<const Index> arms) {
  state.pairs.alarm = true;
  std::ranges::copy(arms, state.pairs.alarmed.begin());
}

void Run::represent(Index group, Index arm) {
  state.estimate.representative[group] = arm;
  for (Index m = 0; m < state.n_arms(); ++m) {
    state.pairs.settled(m, group) = 0;
    state.pairs.evidence(m, group) = -INFINITE;
  }
}

void Run::settle(Index arm, Index group, double evidence, PairCounts counts) {
  state.pairs.evidence(arm, group) = evidence;
  state.pairs.counts(arm, group) = counts;
  state.pairs.settled(arm, group) = evidence >= state.pairs.level ? 1 : 0;
  if (state.bound.used) state.pairs.bound(arm, group) = state.bound.at;
}

void Run::meet_core_pair(Index e, Index i, Index j, PairCounts counts) {
  Tests& tests = state.epochs[e].core_pairs;
  tests.met(i, j) = 1;
  tests.last(i, j) = -counts.arm;
  tests.last(j, i) = -counts.lead;
}

}  // namespace coterie::croc
