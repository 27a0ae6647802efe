// CROC's runs, as Python sees them.
#include "bindings/croc.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/fields.hpp"
#include "bindings/generator.hpp"
#include "croc/shape.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace coterie::croc {

namespace {

/// More numbers than this in one table are a mistake.
constexpr Index MOST_CELLS = Index{1} << 40;

void make(Run* at, Index n_arms, Index n_groups, Index dim, double log_inverse_delta,
          std::shared_ptr<const Family> family, nb::handle its_prices, nb::handle changed, bool with_pairs) {
  if (n_groups < 1 || n_groups > n_arms || dim < 1) throw nb::value_error("a run needs 1 ≤ groups ≤ arms, and d ≥ 1");
  if (n_arms > MOST_CELLS / n_groups / dim) throw nb::value_error("a run of this size fits no memory");
  if (!std::isfinite(log_inverse_delta)) throw nb::value_error("log(1/δ) must be finite");
  if (!family) family = std::make_shared<const Family>(Traits{});
  std::vector<double> prices;
  if (!its_prices.is_none()) {
    const auto given = array_of<const double, 1>(its_prices, "prices");
    check_length(given.size(), n_arms, "prices");
    prices.assign(given.data(), given.data() + given.size());
    for (double each : prices)
      if (!(each > 0.0 && std::isfinite(each))) throw nb::value_error("prices must be positive and finite");
  }
  new (at)
      Run(n_arms, n_groups, dim, log_inverse_delta, std::move(family), prices, constants_from(changed), with_pairs);
}

std::optional<std::pair<Index, Index>> pop(Run& run) {
  const InUse mine(run.used);
  std::optional<Asked> found;
  if (run.is_planned()) {
    found = run.pop();
  } else {
    const nb::gil_scoped_release others_go_on;
    found = run.pop();
  }
  if (!found) return std::nullopt;
  return std::pair(found->arm, found->round);
}

void absorb(Run& run, Index arm, nb::handle its_value, Index of_round, bool asked) {
  const InUse mine(run.used);
  check_arm(run, arm);
  const auto value = array_of<const double, 1>(its_value, "value");
  if (static_cast<Index>(value.size()) != 2 * run.state.dim()) check_length(value.size(), run.state.dim(), "value");
  check_result(run, span_of(value));
  const nb::gil_scoped_release others_go_on;
  run.absorb(arm, span_of(value), of_round, asked);
}

void give_up(Run& run, Index arm, Index of_round) {
  const InUse mine(run.used);
  check_arm(run, arm);
  run.give_up(arm, of_round);
}

void check_size(const Run& run, const Conversation& of) {
  if (of.n_arms != run.state.n_arms() || of.dim != run.state.dim())
    throw nb::value_error("these entries are about arms and dimensions of another number than the run's");
  if (!has_range(run)) return;  // that they are finite was seen when they were made
  const auto width = static_cast<std::size_t>(2 * of.dim);
  for (std::size_t i = 0; i < of.kinds.size(); ++i)
    if (Kind{of.kinds[i]} == Kind::result) check_result(run, {of.values.data() + i * width, width});
}

Index follow(Run& run, Conversation& conversation) {
  const InUse mine(run.used);
  check_size(run, conversation);
  conversation.entries.applying = false;
  const nb::gil_scoped_release others_go_on;
  return static_cast<Index>(run.follow(conversation.entries));
}

/// Recorded entries are about known arms.
void apply(Run& run, Conversation& conversation, nb::handle its_origin) {
  const InUse mine(run.used);
  check_size(run, conversation);
  for (std::size_t i = 0; i < conversation.kinds.size(); ++i)
    if (Kind{conversation.kinds[i]} != Kind::look) check_arm(run, conversation.arms[i]);
  conversation.entries.applying = true;
  std::vector<double> origin;
  if (!its_origin.is_none()) {
    const auto given = array_of<const double, 1>(its_origin, "origin");
    check_length(given.size(), run.state.dim(), "origin");
    check_finite(span_of(given), "origin");
    origin.assign(given.data(), given.data() + given.size());
  }
  const nb::gil_scoped_release others_go_on;
  if (origin.empty())
    run.follow(conversation.entries);
  else
    run.apply_first(conversation.entries, origin);
}

void play(Run& run, Index steps, nb::handle its_centers, nb::handle its_truth, nb::handle rng) {
  const InUse mine(run.used);
  const auto centers = array_of<const double, 2>(its_centers, "centers");
  const auto truth = array_of<const Index, 1>(its_truth, "truth");
  if (steps < 0) throw nb::value_error("there is no negative number of steps");
  if (has_range(run)) throw nb::value_error("this draws Gaussian results, and the run takes counts or times");
  check_length(centers.shape(1), run.state.dim(), "a row of centers");
  check_finite(span_of(centers), "centers");
  check_length(truth.size(), run.state.n_arms(), "truth");
  check_indices(span_of(truth), static_cast<Index>(centers.shape(0)), "truth");
  World world{centers.data(), span_of(truth), Gaussian(bits_of(rng))};
  const nb::gil_scoped_release others_go_on;  // simulations run side by side in threads
  run.play(steps, world);
}

template <class T>
nb::object array_from(std::vector<T> numbers) {
  auto kept = std::make_unique<std::vector<T>>(std::move(numbers));
  T* data = kept->data();
  const std::size_t n = kept->size();
  static T none{};
  const nb::capsule owner(kept.release(), [](void* its) noexcept { delete static_cast<std::vector<T>*>(its); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(n == 0 ? &none : data, {n}, owner));
}

nb::object pair_evidences(Run& run, nb::handle its_pairs) {
  const InUse mine(run.used);
  const auto pairs = array_of<const Index, 2>(its_pairs, "pairs");
  check_length(pairs.shape(1), 4, "a row of pairs");
  const std::size_t n = pairs.shape(0);
  for (std::size_t i = 0; i < n; ++i) {
    check_arm(run, pairs(i, 0));
    check_arm(run, pairs(i, 1));
    if (pairs(i, 2) < 0 || pairs(i, 3) < 0 || pairs(i, 2) > run.state.arms.pulls[pairs(i, 0)] ||
        pairs(i, 3) > run.state.arms.pulls[pairs(i, 1)])
      throw nb::value_error("an arm has no such number of pulls");
  }
  std::vector<double> found(n, 0.0);
  {
    const nb::gil_scoped_release others_go_on;
    if (run.state.arms.room() > 0)
      for (std::size_t i = 0; i < n; ++i)
        found[i] = pair_evidence_at(run.state, pairs(i, 0), pairs(i, 1), pairs(i, 2), pairs(i, 3));
  }
  return array_from(std::move(found));
}

nb::object planned(Run& run, std::optional<Index> most) {
  const InUse mine(run.used);
  return array_from(run.planned(std::max(most.value_or(std::numeric_limits<Index>::max()), Index(0))));
}

void restore(Run& run, nb::object memory) {
  const InUse mine(run.used);
  run.each_field(fields::Load(std::move(memory)));
  if (!run.is_sound()) throw nb::value_error("this is not the memory of such a run");
}

}  // namespace

}  // namespace coterie::croc

namespace coterie {

void bind_croc(nb::module_& module) {
  using namespace croc;
  bind_constants(module);
  bind_conversation(module);
  bind_epochs(module);
  nb::class_<Run> run(module, "CrocRun", "One CROC run. Results are whitened: unit noise in every direction.");
  run.def(
      "__init__", &make, "n_arms"_a, "n_groups"_a, "dim"_a, "log_inverse_delta"_a, "family"_a = nb::none(),
      "prices"_a = nb::none(), "constants"_a = nb::none(), "with_pairs"_a = true,
      nb::sig("def __init__(self, n_arms: int, n_groups: int, dim: int, log_inverse_delta: float, "
              "family: CrocFamily | None = None, prices: NDArray[numpy.float64] | None = None, "
              "constants: Mapping[str, Any] | None = None, with_pairs: bool = True) -> None"),
      "`family`: of evidence, None for a known covariance. `prices` (M): what a pull of each arm costs, in units of "
      "the cheapest. `constants`: those of the rule that are to be others than `croc_constants` says, for tests. "
      "`with_pairs`: False for none from the start, whatever the family has.");
  run.def("pop", &pop,
          "The next arm and the round that it is pulled for (0: none), which count as under way. None if "
          "all is proven.");
  run.def("absorb", &absorb, "arm"_a, "value"_a, "of_round"_a, "asked"_a,
          nb::sig("def absorb(self, arm: int, value: NDArray[numpy.float64], of_round: int, asked: bool) -> None"),
          "Take in a result, of d or 2·d numbers, then plan if it is due.");
  run.def("give_up", &give_up, "arm"_a, "of_round"_a, "A pull under way will not come: a round asks for it again.");
  run.def("look", read([](Run& its) { its.look(); }),
          "See whether the results so far prove the groups; plan if nothing is planned.");
  run.def("follow", &follow, "entries"_a, "Go on with these entries; says why it came back.");
  run.def("apply", &croc::apply, "entries"_a, "origin"_a = nb::none(),
          nb::sig("def apply(self, entries: CrocEntries, origin: NDArray[numpy.float64] | None = None) -> None"),
          "Take in recorded entries without consulting the rule. With an `origin`: those up to the first result, whose "
          "positions count from it.");
  run.def("play", &play, "steps"_a, "centers"_a, "truth"_a, "rng"_a,
          nb::sig("def play(self, steps: int, centers: NDArray[numpy.float64], truth: NDArray[numpy.int64], "
                  "rng: numpy.random.Generator) -> None"),
          "Simulate up to so many results of a world whose groups and centers are known, without the interpreter's "
          "lock.");
  run.def("pair_evidences", &pair_evidences, "pairs"_a,
          nb::sig("def pair_evidences(self, pairs: NDArray[numpy.int64]) -> NDArray[numpy.float64]"),
          "Evidence from the start that two arms differ, for rows (i, j, pulls of i, pulls of j).");
  run.def("planned", &planned, "most"_a = nb::none(),
          nb::sig("def planned(self, most: int | None = None) -> NDArray[numpy.int64]"),
          "The arms that will be asked for before the next plan, in that order, with one worker; at most so many. "
          "Nothing is asked for.");
  run.def("pulls_left", read([](Run& its) { return its.pulls_left(); }),
          "A forecast of the pulls still needed; NaN if unknown.");
  run.def("cost_left", read([](Run& its) { return its.cost_left(); }),
          "A forecast of what is still to be spent, in units of the cheapest arm; NaN if unknown.");
  run.def("memory", read([](Run& its) { return fields::saved(its); }), nb::sig("def memory(self) -> dict[str, Any]"),
          "Everything the run knows; tables that follow from its size and the prices are left out.");
  run.def("restore", &restore, "memory"_a, nb::sig("def restore(self, memory: Mapping[str, Any]) -> None"),
          "What `memory` gave. After an error the run is of no more use.");
  run.def_prop_ro("memory_bytes", read([](Run& its) { return fields::bytes_of(its); }), "Bytes of `memory`.");
  bind_records(run);
  bind_views(run);
}

}  // namespace coterie
