// The paper's methods, as Python sees them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "base/in_use.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/fields.hpp"
#include "bindings/generator.hpp"
#include "paper/run.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace coterie {

namespace {

using paper::Entry;
using paper::Levels;
using paper::Rule;
using paper::Run;

/// More numbers than this in one table are a mistake.
constexpr Index MOST_CELLS = Index{1} << 40;

void check_shape(Index n_arms, Index n_groups, Index dim) {
  if (n_groups < 1 || n_arms < n_groups || dim < 1)
    throw nb::value_error("a run needs at least one group, as many arms as groups, and one dimension");
  if (n_arms > MOST_CELLS / (n_groups + dim) || n_groups > MOST_CELLS / (n_groups + dim))
    throw nb::value_error("a run of that many arms, groups and dimensions does not fit into memory");
}

void make(Run* at, Index n_arms, Index n_groups, Index dim, Index rule, nb::handle its_levels,
          std::optional<double> floor, nb::handle labels, nb::handle shares) {
  check_shape(n_arms, n_groups, dim);
  if (rule < 0 || rule > static_cast<Index>(Rule::oracle)) throw nb::value_error("there is no such sampling rule");
  const Rule its_rule{rule};
  const auto levels = array_of<const double, 2>(its_levels, "levels");
  if (levels.shape(0) != Levels::KINDS || levels.shape(1) < 1)
    throw nb::value_error("levels must have two rows, one for each kind of threshold, and at least one column");
  if (floor.has_value() != (its_rule == Rule::linear))
    throw nb::value_error("linear exploration needs a floor of the shares, and no other rule takes one");
  if (floor && !(*floor >= 0.0 && *floor <= 1.0)) throw nb::value_error("the floor of the shares must be in 0 … 1");
  if (labels.is_none() == (its_rule == Rule::oracle) || labels.is_none() != shares.is_none())
    throw nb::value_error(
        "the oracle needs the true labels and the share of an arm of each group, and no other rule does");
  Numbers table(Levels::KINDS, static_cast<Index>(levels.shape(1)));
  std::ranges::copy(span_of(levels), table.cells().begin());
  if (its_rule != Rule::oracle) {
    new (at) Run(n_arms, n_groups, dim, its_rule, std::move(table));
    if (floor) at->set_floor(*floor);
    return;
  }
  const auto truth = array_of<const Index, 1>(labels, "labels");
  const auto its_shares = array_of<const double, 1>(shares, "shares");
  check_length(truth.size(), n_arms, "labels");
  check_indices(span_of(truth), n_groups, "labels");
  check_length(its_shares.size(), n_groups, "shares");
  check_finite(span_of(its_shares), "shares");
  new (at) Run(n_arms, n_groups, dim, its_rule, std::move(table));
  at->set_oracle(span_of(truth), span_of(its_shares));
}

Index play(Run& run, Index steps, nb::handle its_centers, nb::handle its_truth, nb::handle rng, nb::handle its_pulled) {
  const InUse mine(run.used);
  const auto centers = array_of<const double, 2>(its_centers, "centers");
  const auto truth = array_of<const Index, 1>(its_truth, "truth");
  const auto pulled = array_of<Index, 1>(its_pulled, "arms");
  if (steps < 0) throw nb::value_error("there is no negative number of steps");
  check_length(centers.shape(1), run.arms.dim(), "a row of centers");
  check_finite(span_of(centers), "centers");
  check_length(truth.size(), run.arms.size(), "truth");
  check_indices(span_of(truth), std::min<Index>(run.guess.n_groups(), static_cast<Index>(centers.shape(0))), "truth");
  const std::vector<Index> kept(truth.data(), truth.data() + truth.size());  // `arms` may be the same array
  paper::World world{centers.data(), kept, Gaussian(bits_of(rng))};
  const nb::gil_scoped_release others_go_on;  // simulations run side by side in threads
  return run.play(steps, world, span_of(pulled));
}

Index follow(Run& run, nb::handle its_arms, nb::handle its_values, nb::handle its_what) {
  const InUse mine(run.used);
  const auto arms = array_of<Index, 1>(its_arms, "arms");
  const auto values = array_of<const double, 2>(its_values, "values");
  const auto what = array_of<const Index, 1>(its_what, "what");
  const Index n = static_cast<Index>(arms.size());
  check_length(what.size(), n, "what");
  check_length(values.shape(0), n, "values");
  check_length(values.shape(1), run.arms.dim(), "a row of values");
  check_indices(span_of(what), static_cast<Index>(Entry::forget) + 1, "what");
  for (Index i = 0; i < n; ++i) {
    const Entry entry{what(i)};
    if (entry == Entry::ask ? arms(i) < run.arms.size() : arms(i) >= 0 && arms(i) < run.arms.size()) continue;
    throw nb::index_error(("entry " + std::to_string(i) + " is about arm " + std::to_string(arms(i)) +
                           ", arms are 0 … " + std::to_string(run.arms.size() - 1))
                              .c_str());
  }
  for (Index i = 0; i < n; ++i)
    if (Entry{what(i)} == Entry::unasked || Entry{what(i)} == Entry::asked)
      check_finite({values.data() + i * run.arms.dim(), values.shape(1)}, "values");
  const nb::gil_scoped_release others_go_on;
  return run.follow(span_of(arms), span_of(what), values.data());
}

void commit(Run& run, Index arm, Index change) {
  const InUse mine(run.used);
  if (arm < 0 || arm >= run.arms.size()) throw nb::index_error(("there is no arm " + std::to_string(arm)).c_str());
  if (change != 1 && change != -1) throw nb::value_error("a pull is under way (+1) or given up (−1)");
  run.commit(arm, change);
}

void restore(Run& run, nb::object memory) {
  const InUse mine(run.used);
  run.each_field(fields::Load(std::move(memory)));
  if (!run.restored()) throw nb::value_error("this is not the memory of such a run");
}

/// A property that reads the run; nobody may be at work on it.
template <class Get>
auto read(Get get) {
  return [get](Run& run) {
    const InUse mine(run.used);
    return get(run);
  };
}

/// … and one that shows some of its numbers.
template <class Get>
auto shown(Get get) {
  return [get](nb::handle_t<Run> self) {
    Run& run = nb::cast<Run&>(self);
    const InUse mine(run.used);
    return view(get(run), self);
  };
}

}  // namespace

void bind_paper(nb::module_& module) {
  nb::class_<Run> run(module, "PaperRun",
                      "One run of the paper's methods. Results are whitened: unit noise in every direction.");
  run.def("__init__", &make, "n_arms"_a, "n_groups"_a, "dim"_a, "rule"_a, "levels"_a, "floor"_a = nb::none(),
          "labels"_a = nb::none(), "shares"_a = nb::none(),
          nb::sig("def __init__(self, n_arms: int, n_groups: int, dim: int, rule: int, "
                  "levels: NDArray[numpy.float64], floor: float | None = None, "
                  "labels: NDArray[numpy.int64] | None = None, "
                  "shares: NDArray[numpy.float64] | None = None) -> None"),
          "`levels` (2, L): of the proven and the heuristic threshold, in increasing order; NaN for a kind that nobody "
          "asks for. `floor`: of the shares, for linear exploration. `labels` (M), `shares` (K): for the oracle.");
  run.def("play", &play, "steps"_a, "centers"_a, "truth"_a, "rng"_a, "arms"_a,
          nb::sig("def play(self, steps: int, centers: NDArray[numpy.float64], "
                  "truth: NDArray[numpy.int64], rng: numpy.random.Generator, "
                  "arms: NDArray[numpy.int64]) -> int"),
          "Simulate up to so many measurements of a known world, without the interpreter's lock. The first arms are "
          "noted in `arms`, as many as fit. Returns the arm that comes next.");
  run.def(
      "follow", &follow, "arms"_a, "values"_a, "what"_a,
      nb::sig("def follow(self, arms: NDArray[numpy.int64], values: NDArray[numpy.float64], "
              "what: NDArray[numpy.int64]) -> int"),
      "Take in a script of results, asks and given-up asks, each about an arm; an ask for arm -1 is for the one that "
      "the rule says, which is written to `arms`. Returns the next arm, or -1-i if entry i asks for another.");
  run.def("commit", &commit, "arm"_a, "change"_a, "Count a pull of the arm as under way (+1) or as given up (-1).");
  run.def("cancel", &Run::cancel, "From any thread: end what is under way after the present measurement, for good.");
  run.def("memory", read([](Run& its) { return fields::saved(its); }),
          nb::sig("def memory(self) -> dict[str, typing.Any]"), "All fields of the run, as arrays and numbers.");
  run.def("restore", &restore, "memory"_a,
          nb::sig("def restore(self, memory: collections.abc.Mapping[str, typing.Any]) -> None"),
          "What `memory` gave. After an error the run is of no more use.");
  run.def_prop_ro("memory_bytes", read([](Run& its) { return fields::bytes_of(its); }));
  run.def_prop_ro("t", read([](Run& its) { return its.t(); }), "Measurements so far.");
  run.def_prop_ro("pending", read([](Run& its) { return its.pending(); }), "Pulls under way.");
  run.def_prop_ro("ready", read([](Run& its) { return its.ready(); }), "Whether every arm was measured.");
  run.def_prop_ro("done", read([](Run& its) { return its.levels.all_met(); }), "Whether every level is met.");
  run.def_prop_ro("degenerate", read([](Run& its) { return its.guess.degenerate; }),
                  "Whether the guess has an empty cluster or two equal centers.");
  run.def_prop_ro("certified", read([](Run& its) { return its.certified(); }),
                  "Whether the separation certificate proves the labels.");
  run.def_prop_ro("log_sum", read([](Run& its) { return its.guess.log_sum; }),
                  "The part of the proven threshold that grows with the counts: Σ log(4 + log N).");
  run.def_prop_ro("statistic", read([](Run& its) {
                    const paper::Statistic& found = its.statistic();
                    return std::make_tuple(found.z1, found.z2, found.z);
                  }),
                  "Z1(t), Z2(t), Z(t).");
  run.def_prop_ro("pulls", shown([](Run& its) -> auto& { return its.arms.pulls; }), "N_m(t) (M).");
  run.def_prop_ro("sums", shown([](Run& its) -> auto& { return its.arms.sums; }),
                  "Of the results (M, d), from `origin`.");
  run.def_prop_ro("labels", shown([](Run& its) -> auto& { return its.guess.labels; }), "The guess (M).");
  run.def_prop_ro("centers", shown([](Run& its) -> auto& { return its.guess.centers; }),
                  "Its centers (K, d), from `origin`.");
  run.def_prop_ro("shares", shown([](Run& its) -> auto& { return its.allocation.shares; }),
                  "λ* of an arm of each group (K).");
  run.def_prop_ro("origin", shown([](Run& its) -> auto& { return its.origin; }), "The first result (d).");
  run.def_prop_ro("stops", shown([](Run& its) -> auto& { return its.levels.stops; }),
                  "The t at which each level was met (2, L).");
  run.def_prop_ro("correct", shown([](Run& its) -> auto& { return its.levels.correct; }),
                  "Whether the guess was right then (2, L).");
}

}  // namespace coterie
