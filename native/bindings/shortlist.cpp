// coterie._native.Partitions: a list of partitions, as Python sees it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/in_use.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "shortlist/partitions.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace coterie {
namespace {

using shortlist::Partitions;
using shortlist::Results;
using Found = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

/// A vector of this length.
template <class T>
Array<const T, 1> vector_of(nb::handle given, const char* name, Index length) {
  auto array = array_of<const T, 1>(given, name);
  check_length(array.shape(0), length, name);
  return array;
}

/// How many results each arm has, and their sums, as long as they are needed.
class GivenResults {
 public:
  GivenResults(const Partitions& list, nb::handle counts, const char* of_counts, nb::handle sums, const char* of_sums)
      : counts_(vector_of<double>(counts, of_counts, list.n_arms())), sums_(array_of<const double, 2>(sums, of_sums)) {
    check_length(sums_.shape(0), list.n_arms(), of_sums);
    check_length(sums_.shape(1), list.dim(), (std::string("a row of ") + of_sums).c_str());
  }
  operator Results() const { return {span_of(counts_), sums_.data(), static_cast<Index>(sums_.shape(1))}; }

 private:
  Array<const double, 1> counts_;
  Array<const double, 2> sums_;
};

std::unique_ptr<Partitions> new_partitions(nb::handle listed, Index dim, nb::handle scales) {
  const auto given = array_of<const Index, 2>(listed, "listed");
  const auto every_scale = array_of<const double, 1>(scales, "scales");
  if (given.size() == 0 || every_scale.size() == 0 || dim < 1)
    throw nb::value_error("a list of partitions needs partitions, arms, scales and at least one dimension");
  for (const double each : span_of(every_scale))
    if (!(each > 0.0 && std::isfinite(each))) throw nb::value_error("every scale must be positive and finite");
  Table<Index> rows(static_cast<Index>(given.shape(0)), static_cast<Index>(given.shape(1)));
  check_indices(span_of(given), rows.columns(), "labels");
  std::ranges::copy(span_of(given), rows.cells().begin());
  const Index n_groups = std::ranges::max(span_of(given)) + 1;
  for (Index c = 0; c < rows.rows(); ++c) {
    std::vector<bool> seen(static_cast<std::size_t>(n_groups));
    for (const Index label : rows[c]) seen[static_cast<std::size_t>(label)] = true;
    if (std::ranges::find(seen, false) != seen.end())
      throw nb::value_error(("partition " + std::to_string(c) + " leaves a group of the list empty").c_str());
  }
  return std::make_unique<Partitions>(std::move(rows), n_groups, dim, span_of(every_scale));
}

/// What `fill` makes of so many numbers, without the interpreter's lock.
template <class Fill>
Found filled(Partitions& list, Index size, Fill fill) {
  const InUse mine(list.in_use());
  auto cells = std::make_unique<double[]>(static_cast<std::size_t>(size));
  const Row found(cells.get(), static_cast<std::size_t>(size));
  {
    const nb::gil_scoped_release no_lock;
    fill(found);
  }
  const nb::capsule owner(cells.get(), [](void* at) noexcept { delete[] static_cast<double*>(at); });
  return Found(cells.release(), {static_cast<std::size_t>(size)}, owner);
}

Found log_posterior(Partitions& list, nb::handle blocks, nb::handle pulls, nb::handle sums) {
  const auto of_arms = vector_of<Index>(blocks, "blocks", list.n_arms());
  const GivenResults so_far(list, pulls, "pulls", sums, "sums");
  check_indices(span_of(of_arms), list.n_arms(), "blocks");
  return filled(list, list.size(), [&](Row found) { list.log_posterior(span_of(of_arms), so_far, found); });
}

Found round_logs(Partitions& list, nb::handle alive, nb::handle chance, nb::handle pulls, nb::handle sums,
                 nb::handle taken, nb::handle total) {
  const auto are_alive = vector_of<Index>(alive, "alive", list.size());
  const auto chances = vector_of<double>(chance, "chance", list.size());
  const GivenResults before(list, pulls, "pulls", sums, "sums"), round(list, taken, "taken", total, "total");
  return filled(list, list.size(),
                [&](Row found) { list.round_logs(span_of(are_alive), span_of(chances), before, round, found); });
}

std::tuple<Found, Index, Index> expected_growth(Partitions& list, nb::handle urgency, nb::handle chance,
                                                nb::handle pulls, nb::handle sums, double small, double least_log) {
  const auto urgencies = vector_of<double>(urgency, "urgency", list.size());
  const auto chances = vector_of<double>(chance, "chance", list.size());
  const GivenResults so_far(list, pulls, "pulls", sums, "sums");
  shortlist::Duel top;
  Found growth = filled(list, list.n_arms(), [&](Row found) {
    top = list.expected_growth(span_of(urgencies), span_of(chances), so_far, {small, least_log}, found);
  });
  return {std::move(growth), top.null, top.rival};
}

}  // namespace

void bind_shortlist(nb::module_& module) {
  nb::class_<Partitions>(module, "Partitions", "Partitions of arms into K groups, none empty: rows of labels 0 … K−1.")
      .def(nb::new_(&new_partitions), "listed"_a, "dim"_a, "scales"_a, "`scales`: τ² that centers of parts may have.")
      .def("log_posterior", &log_posterior, "blocks"_a, "pulls"_a, "sums"_a,
           "log p of each, up to a constant, if arms of different blocks are in different groups.")
      .def("round_logs", &round_logs, "alive"_a, "chance"_a, "pulls"_a, "sums"_a, "taken"_a, "total"_a,
           "log of the factor of the evidence against each that is alive, by the results of a round; 0 for the others.")
      .def("expected_growth", &expected_growth, "urgency"_a, "chance"_a, "pulls"_a, "sums"_a, "small"_a, "least_log"_a,
           "What a pull of each arm adds to the evidence against urgent partitions; null and rival that weigh most.");
}

}  // namespace coterie
