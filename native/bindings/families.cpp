// Families of evidence as Python sees them: coterie._native.CrocFamily.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/handed_in.hpp"
#include "croc/families/any_noise.hpp"
#include "croc/families/counts.hpp"
#include "croc/families/equal_means.hpp"
#include "croc/families/gaussian.hpp"
#include "croc/families/rates.hpp"
#include "croc/pairs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace coterie {

namespace {

using namespace croc;
using Made = std::shared_ptr<const Family>;

void check_shape(Index n_groups, Index dim) {
  if (n_groups < 1 || dim < 1)
    throw nb::value_error(("a family needs at least one group and one dimension, got " + std::to_string(n_groups) +
                           " and " + std::to_string(dim))
                              .c_str());
}

Shape shape_named(const std::string& name, const std::string& argument) {
  if (name == "full") return Shape::full;
  if (name == "diagonal") return Shape::diagonal;
  if (name == "scalar") return Shape::scalar;
  throw nb::value_error((argument + " must be 'full', 'diagonal' or 'scalar', got '" + name + "'").c_str());
}

Made known(double pair_share) {
  Traits traits;
  traits.pair_share = pair_share;
  return std::make_shared<const Family>(std::move(traits));
}

Made gaussian(Index n_groups, Index dim, const std::string& shape) {
  check_shape(n_groups, dim);
  return std::make_shared<const Gaussian>(n_groups, dim, shape_named(shape, "shape"));
}

Made any_noise(Index n_arms, Index n_groups, Index dim, bool shape) {
  check_shape(n_groups, dim);
  return std::make_shared<const AnyNoise>(n_arms, n_groups, dim, shape, Constants());
}

Made counts(Index n_groups, Index dim, Index trials) {
  check_shape(n_groups, dim);
  if (trials < 1) throw nb::value_error(("trials must be at least 1, got " + std::to_string(trials)).c_str());
  return std::make_shared<const Counts>(n_groups, dim, trials);
}

template <class Rate>
Made rates(Index n_groups, Index dim) {
  check_shape(n_groups, dim);
  return std::make_shared<const Rate>(n_groups, dim);
}

Made bounded(Index n_groups, Index dim, std::vector<double> widths) {
  check_shape(n_groups, dim);
  if (Index(widths.size()) != dim)
    throw nb::value_error(
        ("widths must be of length " + std::to_string(dim) + ", got " + std::to_string(widths.size())).c_str());
  return std::make_shared<const Bounded>(n_groups, dim, std::move(widths));
}

Made at_most(Index n_groups, Index dim) {
  check_shape(n_groups, dim);
  return std::make_shared<const AtMost>(n_groups, dim);
}

Made symmetric(Index n_groups, Index dim) {
  check_shape(n_groups, dim);
  return std::make_shared<const Symmetric>(n_groups, dim);
}

template <class T>
void take(T& field, const nb::kwargs& given, const char* name) {
  if (given.contains(name)) field = nb::cast<T>(nb::object(given[name]));
}

void make_handed_in(HandedIn* at, const std::string& name, const nb::kwargs& given) {
  Traits traits;
  traits.name = name;
  take(traits.pair_share, given, "pair_share");
  take(traits.variance_share, given, "variance_share");
  take(traits.kept, given, "kept");
  take(traits.bet_size, given, "bet_size");
  take(traits.scores, given, "scores");
  take(traits.round_scores, given, "round_scores");
  take(traits.shared, given, "shared");
  take(traits.learned, given, "learned");
  take(traits.estimated, given, "estimated");
  take(traits.winsorised, given, "winsorised");
  take(traits.shuffled, given, "shuffled");
  take(traits.from_zero, given, "from_zero");
  take(traits.pools_by_growth, given, "pools_by_growth");
  take(traits.arm_scales, given, "arm_scales");
  take(traits.trials, given, "trials");
  std::string shape = "full";
  take(shape, given, "metric_shape");
  traits.shape = shape_named(shape, "metric_shape");
  for (const Index size : {traits.bet_size, traits.scores, traits.round_scores, traits.shared, traits.learned})
    if (size < 0) throw nb::value_error(("a size of the family '" + name + "' is negative").c_str());
  std::vector<double> parameters;
  take(parameters, given, "parameters");
  new (at) HandedIn(std::move(traits), kernels_from(given, name), std::move(parameters));
}

}  // namespace

void bind_families(nb::module_& module) {
  nb::class_<Family>(module, "CrocFamily", "A family of evidence: what knows the noise of a CROC run.")
      .def_prop_ro("name", [](const Family& its) { return its.traits.name; })
      .def_prop_ro(
          "pair_share", [](const Family& its) { return its.traits.pair_share; },
          "α: the share of δ for pairs from the start; 0: no such pairs.")
      .def_prop_ro(
          "variance_share", [](const Family& its) { return its.traits.variance_share; },
          "w: the share of δ for an upper bound on the variance; 0: none.")
      .def_prop_ro(
          "has_factor", [](const Family& its) { return its.traits.has_factor; },
          "Whether it has a factor of its own: tests then keep the last log E behind what they keep.")
      .def_prop_ro(
          "estimated", [](const Family& its) { return its.traits.estimated; },
          "Whether the size of the noise is unknown: the metric is then estimated.")
      .def_prop_ro(
          "arm_scales", [](const Family& its) { return its.traits.arm_scales; },
          "Whether the first score of an arm is about the variance of its results.")
      .def_static("known", &known, "pair_share"_a = Traits().pair_share, "A known covariance.")
      .def_static("gaussian", &gaussian, "n_groups"_a, "dim"_a, "shape"_a,
                  "Gaussian noise whose covariance is unknown; 'full', 'diagonal' or 'scalar'.")
      .def_static("any_noise", &any_noise, "n_arms"_a, "n_groups"_a, "dim"_a, "shape"_a = false,
                  "Any noise; with `shape`, groups may differ in more than their location.")
      .def_static("counts", &counts, "n_groups"_a, "dim"_a, "trials"_a, "Counts of successes out of so many trials.")
      .def_static("poisson", &rates<Poisson>, "n_groups"_a, "dim"_a, "Counts of events without a number of trials.")
      .def_static("exponential", &rates<Exponential>, "n_groups"_a, "dim"_a, "Times, exponential ones.")
      .def_static("bounded", &bounded, "n_groups"_a, "dim"_a, "widths"_a,
                  "Results within bounds, hi − lo for each number.")
      .def_static("at_most", &at_most, "n_groups"_a, "dim"_a,
                  "Results, in units of the covariance stated, that vary by no more than that.")
      .def_static("symmetric", &symmetric, "n_groups"_a, "dim"_a,
                  "Noise that is symmetric and may differ from arm to arm.");
  nb::class_<HandedIn, Family>(module, "HandedInFamily", "Evidence from outside: coterie.methods.family.Family.")
      .def("__init__", &make_handed_in, "name"_a, "kwargs"_a,
           nb::sig("def __init__(self, name: str, **kwargs: Any) -> None"));
}

}  // namespace coterie
