// Arrays that Python hands in, checked: whatever is wrong with one is said in a sentence, never converted in silence.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <span>
#include <string>

#include "base/table.hpp"

namespace coterie {

/// No number handed in is larger than this: sums of them stay finite, so that no distance is NaN.
inline constexpr double LARGEST = 1e290;

template <class T, std::size_t Dimensions>
using Array = nanobind::ndarray<T, nanobind::ndim<Dimensions>, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
constexpr const char* type_name() {
  using Cell = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Cell, double>)
    return "float64";
  else if constexpr (std::is_same_v<Cell, Index>)
    return "int64";
  else
    return std::is_same_v<Cell, std::int32_t> ? "int32" : "uint8";
}

/// The array behind an argument; TypeError unless it is contiguous and of this type and number of dimensions. One of
/// a type that is not const is written to.
template <class T, std::size_t Dimensions>
Array<T, Dimensions> array_of(nanobind::handle given, const char* name) {
  Array<T, Dimensions> found;
  if (!nanobind::try_cast(given, found, false))
    throw nanobind::type_error((std::string(name) + " must be a contiguous " + (std::is_const_v<T> ? "" : "writable ") +
                                "NumPy array of " + type_name<T>() + " with " + std::to_string(Dimensions) +
                                (Dimensions == 1 ? " dimension" : " dimensions"))
                                   .c_str());
  return found;
}

template <class T, class... Rest>
std::span<T> span_of(const nanobind::ndarray<T, Rest...>& array) {
  return {array.data(), array.size()};
}

inline void check_length(std::size_t found, Index wanted, const char* name) {
  if (static_cast<Index>(found) != wanted)
    throw nanobind::value_error(
        (std::string(name) + " must be of length " + std::to_string(wanted) + ", got " + std::to_string(found))
            .c_str());
}

/// All of them from 0 to below `end`.
inline void check_indices(std::span<const Index> indices, Index end, const char* name) {
  for (Index each : indices)
    if (each < 0 || each >= end)
      throw nanobind::value_error(
          (std::string(name) + " must be from 0 to " + std::to_string(end - 1) + ", got " + std::to_string(each))
              .c_str());
}

inline void check_finite(std::span<const double> numbers, const char* name) {
  for (double each : numbers)
    if (!(std::abs(each) <= LARGEST))
      throw nanobind::value_error(
          (std::string(name) + " must be finite numbers of at most 1e290, got " + std::to_string(each)).c_str());
}

/// Where numbers are, somewhere valid if there are none.
template <class T>
const T* start_of(const Zeros<T>& cells) {
  static const T none{};
  return cells.data() == nullptr ? &none : cells.data();
}

/// A read-only view of numbers that `owner` keeps in place.
template <class T>
auto view(const Zeros<T>& cells, nanobind::handle owner) {
  return nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<1>>(
      start_of(cells), {static_cast<std::size_t>(cells.size())}, owner);
}
template <class T>
auto view(const Table<T>& table, nanobind::handle owner) {
  return nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<2>>(
      start_of(table.cells()), {static_cast<std::size_t>(table.rows()), static_cast<std::size_t>(table.columns())},
      owner);
}
template <class T>
auto view(const Cube<T>& cube, nanobind::handle owner) {
  return nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<3>>(
      start_of(cube.cells()),
      {static_cast<std::size_t>(cube.tables()), static_cast<std::size_t>(cube.rows()),
       static_cast<std::size_t>(cube.columns())},
      owner);
}

}  // namespace coterie
