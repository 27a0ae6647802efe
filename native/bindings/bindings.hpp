// The parts of the module coterie._native.
#pragma once

#include <nanobind/nanobind.h>

namespace coterie {

void bind_croc(nanobind::module_& module);
void bind_croc_parts(nanobind::module_& module);
void bind_families(nanobind::module_& module);
void bind_paper(nanobind::module_& module);
void bind_shortlist(nanobind::module_& module);

}  // namespace coterie
