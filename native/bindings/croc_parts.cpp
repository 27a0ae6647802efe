// Inner parts of CROC, for tests that compare them with plain oracles: the module coterie._native.parts.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/croc.hpp"
#include "croc/claims.hpp"
#include "croc/estimate.hpp"
#include "croc/planning.hpp"
#include "croc/splitting.hpp"
#include "croc/steps.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace coterie {

namespace {

using namespace croc;

void check_slot(const Run& run, Index e) {
  if (e < 0 || e >= static_cast<Index>(run.state.epochs.size())) throw nb::index_error("there is no such epoch");
}

bool is_covered(Run& run, Index e) {
  check_slot(run, e);
  return covered_by_epoch(run.state, e);
}

/// With an epoch, by that; without, by pairs.
bool is_certified(Run& run, Index e) {
  if (e >= 0) check_slot(run, e);
  return certify(run.state, e < 0 ? Proof::by_pairs : Proof::by_epoch, e);
}

std::pair<Index, std::vector<Index>> unmet_tests(Run& run, Index e) {
  check_slot(run, e);
  const Index count = unmet(run.state, e);
  std::vector<Index> arms;
  for (Index m = 0; m < run.state.n_arms(); ++m)
    if (run.state.work.mark[m] == 1) arms.push_back(m);
  return {count, arms};
}

/// All that each kind of LongRows makes of ten rows, one list for each: tests compare these.
std::vector<std::vector<double>> long_row_results(nb::handle given) {
  const auto rows = array_of<const double, 2>(given, "rows");
  check_length(rows.shape(0), 10, "rows");
  const std::size_t n = rows.shape(1);
  const auto row = [&](std::size_t i) { return rows.data() + i * n; };
  EightRows others;
  for (std::size_t j = 0; j < 8; ++j) others[j] = row(j + 2);
  std::vector<std::vector<double>> results;
  for (const LongRows& functions : usable_long_rows()) {
    std::vector<double> all = {functions.squared_distance(row(0), row(1), n), functions.dot(row(0), row(1), n),
                               functions.distance_to_mean(row(0), 0.3, row(1), n),
                               functions.distance_of_means({row(0), 0.3}, {row(1), 0.4}, n),
                               functions.product_of_gaps(row(0), row(1), row(2), n)};
    const Eight dots = functions.dots_with_eight(row(0), others, n);
    all.insert(all.end(), dots.begin(), dots.end());
    std::vector<double> sum(row(0), row(0) + n), group_sum(row(1), row(1) + n), changed(row(2), row(2) + n);
    const auto [before, after] = functions.take_in(sum.data(), group_sum.data(), row(3), {0.5, 0.25}, row(4), n);
    all.insert(all.end(), {before, after, functions.move_to_mean(changed.data(), row(5), 0.2, n)});
    functions.add_multiple(changed.data(), -0.7, row(6), n);
    functions.add_eight(changed.data(), others, dots, n);
    functions.difference(group_sum.data(), row(8), group_sum.data(), n);
    for (const std::vector<double>& written : {sum, group_sum, changed})
      all.insert(all.end(), written.begin(), written.end());
    results.push_back(std::move(all));
  }
  return results;
}

Index estimate_anew(Run& run) {
  if (run.state.arms.unseen > 0) throw nb::value_error("an estimate needs a result of every arm");
  run.state.estimate.at = 0;
  return estimate(run.state);
}

double risk_of(Run& run) {
  if (!run.ready()) throw nb::value_error("a risk needs an estimate");
  return misgrouping_risk(run.state);
}

double worth_of_cut(Run& run, double gain, Index a, Index b, double weight) {
  if (a < 1 || b < 1 || a + b > run.state.n_arms()) throw nb::value_error("the run has no such group");
  return cut_worth(run.state, gain, a, b, weight);
}

double posterior(Run& run, double cost, std::vector<Index> sizes, std::vector<double> totals) {
  check_length(sizes.size(), run.state.n_groups(), "sizes");
  check_length(totals.size(), run.state.n_groups(), "totals");
  check_indices(sizes, run.state.n_arms() + 1, "sizes");
  return log_posterior(run.state, cost, sizes, totals);
}

/// A result of an arm, in a round or in none, whatever was asked for; nothing is planned.
void take_result(Run& run, Index arm, nb::handle its_value, Index of_round) {
  check_arm(run, arm);
  const auto value = array_of<const double, 1>(its_value, "value");
  std::vector<double> x(static_cast<std::size_t>(2 * run.state.dim()), 0.0);
  if (value.size() != x.size()) check_length(value.size(), run.state.dim(), "value");
  check_result(run, span_of(value));
  std::ranges::copy(span_of(value), x.begin());
  ++run.state.arms.committed[arm];
  observe(run.state, arm, x, of_round);
}

/// An epoch for these labels, as if they had been estimated just now.
Index freeze_labels(Run& run, std::vector<Index> labels) {
  State& s = run.state;
  check_length(labels.size(), s.n_arms(), "labels");
  check_indices(labels, s.n_groups(), "labels");
  std::ranges::copy(labels, s.estimate.labels.begin());
  s.estimate.totals.fill(0.0);
  s.estimate.centers.fill(0.0);
  for (Index m = 0; m < s.n_arms(); ++m) {
    const double pulls = static_cast<double>(s.arms.pulls[m]);
    s.estimate.totals[labels[m]] += pulls;
    for (Index q = 0; q < s.dim(); ++q) s.estimate.centers(labels[m], q) += pulls * s.arms.means(m, q);
  }
  for (Index k = 0; k < s.n_groups(); ++k)
    for (double& each : s.estimate.centers[k]) each /= s.estimate.totals[k];
  if (s.metric.estimated) estimate_metric(s);
  s.estimate.at = s.arms.t;
  choose_representatives(s);
  misgrouping_risk(s);
  return freeze(s);
}

/// A round for what is unmet of an epoch: its pulls, and none if there is no room.
std::vector<Index> next_round(Run& run, Index e) {
  check_slot(run, e);
  if (unmet(run.state, e) == 0 || !compose_round(run.state, e, 0.0)) return {};
  const auto& pulls = run.state.work.composition;
  return {pulls.begin(), pulls.end()};
}

void check_room(Index room) {
  if (room < 1) throw nb::value_error("there is no such room");
}

}  // namespace

void bind_croc_parts(nb::module_& module) {
  nb::module_ parts = module.def_submodule("parts", "Inner parts of CROC's engine, for tests.");
  parts.def(
      "is_covered_by_pairs", [](Run& run) { return covered_by_pairs(run.state); }, "run"_a,
      "Whether the pairs that are settled say all that is claimed.");
  parts.def("is_covered_by_epoch", &is_covered, "run"_a, "slot"_a, "… the tests of an epoch that are met.");
  parts.def("certify", &is_certified, "run"_a, "slot"_a = -1,
            "Stop if the groups are proven, by the epoch in a slot, or by pairs.");
  parts.def("unmet", &unmet_tests, "run"_a, "slot"_a, "How many tests of an epoch are unmet, and the arms in one.");
  parts.def("long_row_results", &long_row_results, "rows"_a,
            nb::sig("def long_row_results(rows: NDArray[numpy.float64]) -> list[list[float]]"),
            "What each kind of sums over long rows that this processor can run makes of ten rows.");
  parts.def("estimate_anew", &estimate_anew, "run"_a, "Estimate the groups from scratch.");
  parts.def("misgrouping_risk", &risk_of, "run"_a, "P_w.");
  parts.def("cut_worth", &worth_of_cut, "run"_a, "gain"_a, "a"_a, "b"_a, "weight"_a,
            "By how much log posterior grows if a group is cut into a and b arms.");
  parts.def("log_posterior", &posterior, "run"_a, "cost"_a, "sizes"_a, "totals"_a, "Of a partition.");
  parts.def("take_result", &take_result, "run"_a, "arm"_a, "value"_a, "of_round"_a,
            nb::sig("def take_result(run: CrocRun, arm: int, value: NDArray[numpy.float64], of_round: int) -> None"),
            "A result of an arm, in a round or in none, whatever was asked for; nothing is planned.");
  parts.def("freeze", &freeze_labels, "run"_a, "labels"_a,
            "An epoch for these labels, as if they had been estimated just now. Returns its slot.");
  parts.def("next_round", &next_round, "run"_a, "slot"_a,
            "A round for what is unmet of an epoch: its pulls of every arm; nothing if all is met.");
  parts.def(
      "bound_root",
      [](double degrees, double level, double start) { return bound_root(degrees, level, start, Constants()); },
      "degrees"_a, "level"_a, "start"_a, "R/(2σ₊²) where log V is the level.");
  parts.def(
      "grid_place",
      [](Index n, Index room) {
        check_room(room);
        return grid_place(n, room, Constants().grid_step);
      },
      "n"_a, "room"_a, "The place of the largest count up to n on the grid of counts from P = `room` on.");
  parts.def(
      "grid_count",
      [](Index place, Index room) {
        check_room(room);
        return grid_count(place, room, Constants().grid_step);
      },
      "place"_a, "room"_a, "The count at a place of the grid.");
}

}  // namespace coterie
