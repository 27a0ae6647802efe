// Conversations with a CROC run as Python hands them in, and the rule's constants as a dict.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/croc.hpp"
#include "bindings/fields.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace coterie::croc {

namespace {

std::vector<Index> column(nb::handle given, const char* name, std::size_t n, Index otherwise) {
  if (given.is_none()) return std::vector<Index>(n, otherwise);
  const auto array = array_of<const Index, 1>(given, name);
  check_length(array.size(), static_cast<Index>(n), name);
  return {array.data(), array.data() + array.size()};
}

[[noreturn]] void refuse(Index i, const std::string& why) {
  throw nb::value_error(("entry " + std::to_string(i) + " " + why).c_str());
}

}  // namespace

Conversation::Conversation(Index n_arms, Index dim, nb::handle its_kinds, nb::handle its_arms, nb::handle its_values,
                           nb::handle its_rounds, nb::handle its_ask, nb::handle its_asked)
    : n_arms(n_arms), dim(dim), values(array_of<const double, 2>(its_values, "values")) {
  const auto given = array_of<const Index, 1>(its_kinds, "kinds");
  const std::size_t size = given.size();
  const Index n = static_cast<Index>(size);
  if (n_arms < 1 || dim < 1) throw nb::value_error("entries are about at least one arm and dimension");
  kinds.assign(given.data(), given.data() + size);
  arms = column(its_arms, "arms", size, -1);
  rounds = column(its_rounds, "rounds", size, 0);
  ask = column(its_ask, "ask", size, -1);
  asked = column(its_asked, "asked", size, 0);
  check_length(values.shape(0), n, "values");
  if (dim > static_cast<Index>(values.shape(1))) throw nb::value_error("a row of values must be of length 2·d");
  check_length(values.shape(1), 2 * dim, "a row of values");
  check_indices(kinds, static_cast<Index>(Kind::look) + 1, "kinds");
  for (Index i = 0; i < n; ++i) {
    const Kind kind{kinds[i]};
    const bool may_be_none = kind == Kind::ask || kind == Kind::look;
    if (arms[i] >= n_arms || (arms[i] < 0 && !may_be_none))
      refuse(i, "is about arm " + std::to_string(arms[i]) + ", arms are 0 … " + std::to_string(n_arms - 1));
    if (ask[i] >= n) refuse(i, "answers entry " + std::to_string(ask[i]) + ", which is not there");
    if (kind != Kind::result) continue;
    for (Index q = 0; q < 2 * dim; ++q)
      if (!std::isfinite(values.data()[i * 2 * dim + q])) refuse(i, "has a result that is not finite");
  }
  entries = {.kinds = kinds, .arms = arms, .rounds = rounds, .ask = ask, .asked = asked, .values = values.data()};
}

void bind_conversation(nb::module_& module) {
  nb::class_<Conversation>(module, "CrocEntries",
                           "Part of a conversation with a CROC run, and where the run is in it: asks, results and "
                           "given-up asks, in the order in which they count.")
      .def(nb::init<Index, Index, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(), "n_arms"_a,
           "dim"_a, "kinds"_a, "arms"_a, "values"_a, "rounds"_a = nb::none(), "ask"_a = nb::none(),
           "asked"_a = nb::none(),
           nb::sig("def __init__(self, n_arms: int, dim: int, kinds: NDArray[numpy.int64], "
                   "arms: NDArray[numpy.int64] | None, values: NDArray[numpy.float64], "
                   "rounds: NDArray[numpy.int64] | None = None, ask: NDArray[numpy.int64] | None = None, "
                   "asked: NDArray[numpy.int64] | None = None) -> None"),
           "`arms`: of an ask, -1 if it is not known. `rounds`: of an ask that is applied, the recorded one; of others "
           "without `ask`, that of their ask. `ask`: the entry of the ask that a result or a given-up ask is about, -1 "
           "if it is not in here. `asked`: 1 if a result answers an ask. `values` (n, 2·d): results and what floats do "
           "not hold of them.")
      .def_prop_ro(
          "at", [](Conversation& its) { return its.entries.at; }, "Entries before this one are done.")
      .def_prop_ro("size", [](Conversation& its) { return its.kinds.size(); })
      .def_prop_ro(
          "arms",
          [](nb::handle_t<Conversation> self) {
            auto& its = nb::cast<Conversation&>(self).arms;
            return nb::ndarray<nb::numpy, const Index, nb::ndim<1>>(its.data(), {its.size()}, self);
          },
          "The arms, also those that were asked for.")
      .def_prop_ro(
          "rounds",
          [](nb::handle_t<Conversation> self) {
            auto& its = nb::cast<Conversation&>(self).rounds;
            return nb::ndarray<nb::numpy, const Index, nb::ndim<1>>(its.data(), {its.size()}, self);
          },
          "The rounds, also those of what was asked for.");
}

Constants constants_from(nb::handle changed) {
  Constants constants;
  if (changed.is_none()) return constants;
  nb::dict all = fields::saved(constants);
  for (auto [name, value] : nb::cast<nb::dict>(changed)) {
    if (!all.contains(name))
      throw nb::value_error(("CROC's rule has no constant " + std::string(nb::str(name).c_str())).c_str());
    all[name] = value;
  }
  constants.each_field(fields::Load(all));
  if (!constants.is_sound()) throw nb::value_error("constants that no run can have: sizes must be positive");
  return constants;
}

void bind_constants(nb::module_& module) {
  module.def(
      "croc_constants",
      [] {
        Constants constants;
        return fields::saved(constants);
      },
      nb::sig("def croc_constants() -> dict[str, Any]"), "The numbers of CROC's rule (docs/CROC.md) by name.");
  module.def(
      "shuffled_place",
      [](Index i, Index n, Index seed) {
        if (i < 0 || i >= n || seed < 0 || n > (Index{1} << 40))
          throw nb::value_error("a place must be from 0 to n - 1, and the seed not negative");
        return shuffled_place(i, n, seed);
      },
      "i"_a, "n"_a, "seed"_a, "Where a pull goes in the shuffled order of a round of n.");
  module.def("seed_of_round", &seed_of_round, "number"_a, "By what the asks of a round are shuffled.");
  module.def(
      "prefix_room", [](Index n_arms, Index dim) { return prefix_room(n_arms, dim, Constants()); }, "n_arms"_a, "dim"_a,
      "P, up to which all prefixes of an arm are kept.");
}

}  // namespace coterie::croc
