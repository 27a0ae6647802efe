// Frozen candidates and their tests, as Python reads them.
#include <nanobind/nanobind.h>

#include "bindings/croc.hpp"

namespace nb = nanobind;

namespace coterie::croc {

void bind_epochs(nb::module_& module) {
  nb::class_<Tests>(module, "CrocTests", "Tests of one kind: arms against groups, or core arms against core arms.")
      .def_prop_ro("met", shown<Tests>([](Tests& its) -> auto& { return its.met; }), "1 if the test is met.")
      .def_prop_ro("weight", shown<Tests>([](Tests& its) -> auto& { return its.weight; }),
                   "n of the test; 0 says that `kept` is not of this epoch.")
      .def_prop_ro("kept", shown<Tests>([](Tests& its) -> auto& { return its.kept; }),
                   "S, or what the family of evidence keeps, then log E.")
      .def_prop_ro("last", shown<Tests>([](Tests& its) -> auto& { return its.last; }),
                   "The round at which it was met; negative: by a pair from the start, minus a count of that pair.")
      .def_prop_ro("bound", shown<Tests>([](Tests& its) -> auto& { return its.bound; }),
                   "t of the bound on the variance by which a pair met it; empty without one.");
  nb::class_<Epoch>(module, "CrocEpoch", "A frozen candidate: labels, cores and tests, with a level of its own.")
      .def_ro("frozen_at", &Epoch::frozen_at, "t.")
      .def_ro("number", &Epoch::number, "j.")
      .def_ro("level", &Epoch::level, "b_j.")
      .def_prop_ro("labels", shown<Epoch>([](Epoch& its) -> auto& { return its.labels; }), "(M) the candidate.")
      .def_prop_ro("totals", shown<Epoch>([](Epoch& its) -> auto& { return its.totals; }), "(K) W.")
      .def_prop_ro("centers", shown<Epoch>([](Epoch& its) -> auto& { return its.centers; }),
                   "(K, d) Û, from the origin of the group's first core arm.")
      .def_prop_ro("core", shown<Epoch>([](Epoch& its) -> auto& { return its.core; }), "(K·room) arms, -1 for none.")
      .def_prop_ro("in_core", shown<Epoch>([](Epoch& its) -> auto& { return its.in_core; }), "(M)")
      .def_prop_ro("shared", shown<Epoch>([](Epoch& its) -> auto& { return its.shared; }), "Of the family of evidence.")
      .def_prop_ro(
          "against_group", [](Epoch& its) -> Tests& { return its.against_group; }, nb::rv_policy::reference_internal,
          "(M, K) an arm against all of a group.")
      .def_prop_ro(
          "against_core", [](Epoch& its) -> Tests& { return its.against_core; }, nb::rv_policy::reference_internal,
          "(M, K) … against its core.")
      .def_prop_ro(
          "core_pairs", [](Epoch& its) -> Tests& { return its.core_pairs; }, nb::rv_policy::reference_internal,
          "(K·room, K·room) two core arms.");
}

}  // namespace coterie::croc
