// Calls of Python from the engine: numbers go over as NumPy arrays of their own, so that whoever keeps one keeps a
// copy.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>

#include "base/table.hpp"

namespace coterie {

/// Copies of numbers as NumPy arrays. The interpreter lock must be held.
class NumpyArrays {
 public:
  NumpyArrays() : frombuffer_(nanobind::module_::import_("numpy").attr("frombuffer")) {}

  /// A read-only copy.
  nanobind::object copy(ConstRow numbers) const {
    return frombuffer_(nanobind::bytes(numbers.data(), numbers.size_bytes()));
  }
  nanobind::object copy(const Numbers& table) const {
    return copy(ConstRow(table.cells())).attr("reshape")(table.rows(), table.columns());
  }

  /// A copy whose numbers are taken back.
  class Writable {
   public:
    Writable(const NumpyArrays& arrays, Row numbers)
        : numbers_(numbers), bytes_(numbers.data(), numbers.size_bytes()), array(arrays.frombuffer_(bytes_)) {}
    void take_back() const {
      if (!numbers_.empty()) std::memcpy(numbers_.data(), PyByteArray_AsString(bytes_.ptr()), numbers_.size_bytes());
    }

   private:
    Row numbers_;
    nanobind::bytearray bytes_;

   public:
    const nanobind::object array;
  };
  Writable writable(Row numbers) const { return {*this, numbers}; }

 private:
  nanobind::object frombuffer_;
};

}  // namespace coterie
