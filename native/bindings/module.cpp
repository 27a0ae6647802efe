// All that Python sees of the engine: the module coterie._native.
#include "bindings/bindings.hpp"

extern const char* const coterie_sources;  // which sources this is from: packaging/sources.py

NB_MODULE(_native, module) {
  module.doc() = "The state of a run and its steps: the paper's methods, CROC, shortlists.";
  module.attr("_sources") = coterie_sources;
  // A script's functions hold the script's variables, and a handed-in family holds functions: at the end of a process
  // they may be left over, which is no affair of whoever ran it.
  nanobind::set_leak_warnings(false);
  coterie::bind_families(module);
  coterie::bind_croc(module);
  coterie::bind_croc_parts(module);
  coterie::bind_paper(module);
  coterie::bind_shortlist(module);
}
