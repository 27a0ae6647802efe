// What the bindings of CROC share: a conversation whose arrays are checked once, and guarded access to a run.
#pragma once

#include <nanobind/nanobind.h>

#include "base/in_use.hpp"
#include "bindings/arrays.hpp"
#include "croc/run.hpp"

namespace coterie::croc {

/// Entries with arrays of their own: what was checked stays as it was.
struct Conversation {
  Conversation(Index n_arms, Index dim, nanobind::handle kinds, nanobind::handle arms, nanobind::handle values,
               nanobind::handle rounds, nanobind::handle ask, nanobind::handle asked);
  Conversation(const Conversation&) = delete;

  Index n_arms, dim;
  std::vector<Index> kinds, arms, rounds, ask, asked;
  Array<const double, 2> values;  // (n, 2·d)
  Entries entries;
};

/// A method or property that reads the run; nobody may be at work on it.
template <class Get>
auto read(Get get) {
  return [get](Run& run) {
    const InUse mine(run.used);
    return get(run);
  };
}

/// … and one that shows some of its numbers.
template <class Owner = Run, class Get>
auto shown(Get get) {
  return [get](nanobind::handle_t<Owner> self) { return view(get(nanobind::cast<Owner&>(self)), self); };
}

inline void check_arm(const Run& run, Index arm) {
  if (arm < 0 || arm >= run.state.n_arms())
    throw nanobind::index_error(
        ("there is no arm " + std::to_string(arm) + ", arms are 0 … " + std::to_string(run.state.n_arms() - 1))
            .c_str());
}

/// Whether not every finite number can be a result.
inline bool has_range(const Run& run) {
  const croc::Traits& traits = run.state.traits;
  return traits.trials > 0.0 || traits.scale != croc::Scale::successes;
}

/// d or 2·d numbers that can be a result: finite, counts of no more than the trials, times above zero.
inline void check_result(const Run& run, std::span<const double> value) {
  for (double each : value)
    if (!std::isfinite(each)) throw nanobind::value_error("a result must be finite");
  if (!has_range(run)) return;
  const double trials = run.state.traits.trials;
  const croc::Scale scale = run.state.traits.scale;
  const auto dim = static_cast<std::size_t>(run.state.dim());
  for (std::size_t q = 0; q < dim; ++q) {
    const double count = value[q] + (value.size() > dim ? value[dim + q] : 0.0);
    if (scale == croc::Scale::times && !(count > 0.0))
      throw nanobind::value_error(("a time must be above 0, got " + std::to_string(count)).c_str());
    if (scale == croc::Scale::events && count < 0.0)
      throw nanobind::value_error(("a count must be at least 0, got " + std::to_string(count)).c_str());
    if (scale == croc::Scale::successes && (count < 0.0 || count > trials))
      throw nanobind::value_error(
          ("a count must be from 0 to " + std::to_string(static_cast<Index>(trials)) + ", got " + std::to_string(count))
              .c_str());
  }
}

void bind_conversation(nanobind::module_& module);
void bind_epochs(nanobind::module_& module);
void bind_records(nanobind::class_<Run>& run);
void bind_views(nanobind::class_<Run>& run);
void bind_constants(nanobind::module_& module);
/// The rule's constants, some of them changed: a dict of names, None for none.
Constants constants_from(nanobind::handle changed);

}  // namespace coterie::croc
