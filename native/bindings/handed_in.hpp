// Kernels that Python hands in: functions, or addresses of C functions.
#pragma once

#include <nanobind/nanobind.h>

#include "croc/families/handed_in.hpp"

namespace coterie::croc {

/// The kernels among these keyword arguments. `family`: its name, for messages.
Kernels kernels_from(const nanobind::kwargs& given, const std::string& family);

}  // namespace coterie::croc
