// What was recorded, brought back into a CROC run, and its decisions as Python writes them down.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/croc.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace coterie::croc {

namespace {

void apply_freeze(Run& run, nb::handle its_labels, std::vector<std::vector<Index>> cores, double level,
                  std::vector<double> shared) {
  const InUse mine(run.used);
  const State& s = run.state;
  const auto labels = array_of<const Index, 1>(its_labels, "labels");
  check_length(labels.size(), s.n_arms(), "labels");
  check_indices(span_of(labels), s.n_groups(), "labels");
  check_length(cores.size(), s.n_groups(), "cores");
  for (const auto& core : cores) {
    if (core.empty() || static_cast<Index>(core.size()) > s.constants.core_room())
      throw nb::value_error("every core has an arm, and at most as many as there is room for");
    check_indices(core, s.n_arms(), "the arms of a core");
  }
  if (static_cast<Index>(shared.size()) > s.epochs[0].shared.size())
    throw nb::value_error("more numbers than the tests of an epoch share");
  run.apply_freeze({.labels = span_of(labels), .cores = std::move(cores), .level = level, .shared = shared});
}

bool apply_round(Run& run, Index epoch, std::vector<std::pair<Index, Index>> pulls, std::vector<double> bet) {
  const InUse mine(run.used);
  std::vector<Index> composition(static_cast<std::size_t>(run.state.n_arms()), 0);
  for (const auto& [arm, count] : pulls) {
    check_arm(run, arm);
    if (count < 0 || count > (Index{1} << 40)) throw nb::value_error("a round has no such number of pulls of an arm");
    composition[arm] = count;
  }
  if (epoch < 0) throw nb::value_error("epochs are 0, 1, …");
  if (!bet.empty()) {
    const auto entries = std::ranges::count_if(composition, [](Index count) { return count > 0; });
    const Index wanted = run.state.flight.bets.columns() + (run.state.metric.arm_scales ? entries : 0);
    if (static_cast<Index>(bet.size()) < wanted) check_length(bet.size(), wanted, "bet");
  }
  return run.apply_round(epoch, composition, bet);
}

void apply_alarm(Run& run, std::vector<Index> arms) {
  const InUse mine(run.used);
  check_length(arms.size(), run.state.n_groups() + 1, "arms");
  check_indices(arms, run.state.n_arms(), "arms");
  run.apply_alarm(arms);
}

void check_group(const Run& run, Index group) {
  if (group < 0 || group >= run.state.n_groups()) throw nb::index_error("there is no such group");
}

void represent(Run& run, Index group, Index arm) {
  const InUse mine(run.used);
  check_group(run, group);
  check_arm(run, arm);
  run.represent(group, arm);
}

void settle(Run& run, Index arm, Index group, double evidence, std::pair<Index, Index> counts) {
  const InUse mine(run.used);
  check_group(run, group);
  check_arm(run, arm);
  run.settle(arm, group, evidence, {counts.first, counts.second});
}

Epoch& frozen(Run& run, Index slot) {
  if (slot < 0 || slot >= static_cast<Index>(run.state.epochs.size())) throw nb::index_error("there is no such epoch");
  return run.state.epochs[slot];
}

void meet_core_pair(Run& run, Index slot, Index i, Index j, std::pair<Index, Index> counts) {
  const InUse mine(run.used);
  const Index places = frozen(run, slot).core.size();
  if (std::min(i, j) < 0 || std::max(i, j) >= places) throw nb::index_error("there is no such place in the cores");
  run.meet_core_pair(slot, i, j, {counts.first, counts.second});
}

/// The number of a round whose entries are still there.
const Round& round_of(const Run& run, Index number) {
  const Flight& flight = run.state.flight;
  if (number > flight.last || number < 1 || number <= flight.last - static_cast<Index>(flight.rounds.size()))
    throw nb::index_error("this round is not under way");
  return flight.round(number);
}

/// Of a round under way: the number of its epoch, and its pulls as [arm, count].
std::pair<Index, std::vector<std::vector<Index>>> composition(Run& run, Index number) {
  const Round& round = round_of(run, number);
  std::vector<std::vector<Index>> pulls;
  for (Index i = round.first; i < round.first + round.size; ++i)
    pulls.push_back({run.state.flight.entries[i].arm, run.state.flight.entries[i].pulls});
  return {round.epoch, std::move(pulls)};
}

/// What the family of evidence fixed with a round under way, and then the variance of each of its arms.
std::vector<double> round_bet(Run& run, Index number) {
  const Round& round = round_of(run, number);
  const Flight& flight = run.state.flight;
  const ConstRow bet = flight.bets[flight.place(number)];
  std::vector<double> numbers(bet.begin(), bet.end());
  if (run.state.metric.arm_scales)
    for (Index i = round.first; i < round.first + round.size; ++i)
      numbers.push_back(flight.entry_scores(i, 0) / static_cast<double>(flight.entries[i].pulls));
  return numbers;
}

/// Rounds composed and not closed: number, epoch, pulls, results that are still to come.
std::vector<std::tuple<Index, Index, Index, Index>> open_rounds(Run& run) {
  std::vector<std::tuple<Index, Index, Index, Index>> found;
  for (Index number = run.state.flight.oldest; number <= run.state.flight.last; ++number) {
    const Round& round = run.state.flight.round(number);
    if (round.left >= 0) found.emplace_back(number, round.epoch, round.pulls, round.left);
  }
  return found;
}

std::optional<nb::tuple> alarm(Run& run) {
  if (!run.state.pairs.alarm) return std::nullopt;
  nb::list arms;
  for (Index arm : run.state.pairs.alarmed) arms.append(arm);
  return nb::tuple(arms);
}

}  // namespace

void bind_records(nb::class_<Run>& run) {
  run.def("apply_freeze", &apply_freeze, "labels"_a, "cores"_a, "level"_a, "shared"_a = std::vector<double>(),
          nb::sig("def apply_freeze(self, labels: NDArray[numpy.int64], cores: Sequence[Sequence[int]], level: float, "
                  "shared: Sequence[float] = ...) -> None"),
          "A recorded freeze: the candidate with its cores is an epoch, at its place among the results. `shared`: what "
          "the family had fixed with it.");
  run.def("apply_round", &apply_round, "epoch"_a, "pulls"_a, "bet"_a = std::vector<double>(),
          nb::sig("def apply_round(self, epoch: int, pulls: Sequence[Sequence[int]], bet: Sequence[float] = ...) "
                  "-> bool"),
          "A recorded round: its composition as [arm, count], and the family's bet on it. False if too many are open.");
  run.def("apply_alarm", &apply_alarm, "arms"_a, "A recorded alarm.");
  run.def("estimate", read([](Run& its) { its.estimate(); }),
          "A guess of the groups from what was applied, if every arm was measured.");
  run.def("represent", &represent, "group"_a, "arm"_a,
          "This arm represents its group from now on; nothing is known of its pairs.");
  run.def("settle", &settle, "arm"_a, "group"_a, "evidence"_a, "counts"_a,
          "The evidence of an arm against the representative of a group, found at these counts.");
  run.def("meet_core_pair", &meet_core_pair, "slot"_a, "i"_a, "j"_a, "counts"_a,
          "A pair from the start, at these counts, meets the test of two core arms.");
  run.def("frozen", &frozen, "slot"_a, nb::rv_policy::reference_internal, "The epoch in a slot.");
  run.def("composition", &composition, "number"_a,
          "Of a round under way: the number of its epoch, and its pulls as [arm, count].");
  run.def("round_bet", &round_bet, "number"_a,
          "What the family of evidence fixed with a round under way, and then the variance of each of its arms.");
  run.def("open_rounds", &open_rounds,
          "Rounds composed and not closed: (number, epoch, pulls, results that are still to come).");
  run.def(
      "is_closed", [](Run& its, Index number) { return its.is_closed(number); }, "number"_a,
      "Whether a round is complete and has been used.");
  run.def_prop_ro("alarm", &alarm, "K + 1 arms that are known to differ pairwise, if there are such: K is too small.");
}

}  // namespace coterie::croc
