// NumPy's generators: whose numbers a simulation draws.
#pragma once

#include <nanobind/nanobind.h>
#include <numpy/random/bitgen.h>

namespace coterie {

/// What PyCapsule has of a NumPy generator; the generator has to outlive it.
inline bitgen_t* bits_of(nanobind::handle generator) {
  const nanobind::object capsule =
      nanobind::getattr(nanobind::getattr(generator, "bit_generator", nanobind::none()), "capsule", nanobind::none());
  void* found =
      PyCapsule_IsValid(capsule.ptr(), "BitGenerator") ? PyCapsule_GetPointer(capsule.ptr(), "BitGenerator") : nullptr;
  if (found == nullptr) throw nanobind::type_error("rng must be a numpy.random.Generator");
  return static_cast<bitgen_t*>(found);
}

}  // namespace coterie
