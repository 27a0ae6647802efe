// The fields of a run as Python keeps them: a dict of names to arrays and numbers, for snapshots and for tests.
//
// A struct says what it holds by `template <class Visit> void each_field(Visit&& visit)`, which calls
// `visit("name", field)` for each field. A field is
// - a number, a flag or an enum;
// - Zeros, a Table, a Cube or a std::array of numbers: their sizes are those of the run, and have to be when loaded;
// - a std::vector of numbers, as long as it happens to be;
// - a struct with each_field; names of parts are joined by dots: "guess.labels";
// - a std::vector, Zeros or a Table of records, small structs of numbers: each of their fields becomes an array,
//   "close.arm";
// - a std::vector or std::array of larger structs: "pass.0.labels". A vector that grows is given with an empty element
//   for the load: `visit("pass", passes, Pass(…))`; any other has to have its size already.
// What a struct leaves out is derived: its owner makes it anew after a load, and checks what it was given.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/table.hpp"

namespace coterie::fields {

namespace nb = nanobind;

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

struct NoVisit {
  template <class... Fields>
  void operator()(const char*, Fields&&...) {}
};

template <class T>
concept Whole = requires(T& part) { part.each_field(NoVisit{}); };

/// A small struct of numbers.
template <class T>
concept Record = Whole<T> && std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>;

template <Number T>
struct Kept {
  using type = T;
};
template <>
struct Kept<bool> {
  using type = Flag;
};
template <Number T>
  requires std::is_enum_v<T>
struct Kept<T> {
  using type = std::underlying_type_t<T>;
};
/// How a number is kept in an array: an enum as its number, a bool as a byte.
template <Number T>
using KeptAs = typename Kept<T>::type;

using Shape = std::vector<std::size_t>;

inline std::string numbered(const char* name, std::size_t i) { return std::string(name) + "." + std::to_string(i); }

/// What both directions share: the shapes of fields, and the columns of records. `Way` has number(name, T&),
/// cells(name, T*, shape), count(name, size) and inside(name).
template <class Way>
class Visit {
 public:
  template <Number T>
  void operator()(const char* name, T& number) {
    way().number(name, number);
  }
  template <Number T>
  void operator()(const char* name, Zeros<T>& cells) {
    way().cells(name, cells.data(), Shape{size(cells.size())});
  }
  template <Number T>
  void operator()(const char* name, Table<T>& table) {
    way().cells(name, table.cells().data(), Shape{size(table.rows()), size(table.columns())});
  }
  template <Number T>
  void operator()(const char* name, Cube<T>& cube) {
    way().cells(name, cube.cells().data(), Shape{size(cube.tables()), size(cube.rows()), size(cube.columns())});
  }
  template <Number T, std::size_t N>
  void operator()(const char* name, std::array<T, N>& cells) {
    way().cells(name, cells.data(), Shape{N});
  }
  template <Number T>
  void operator()(const char* name, std::vector<T>& cells) {
    way().vector(name, cells);
  }
  template <Whole T>
  void operator()(const char* name, T& part) {
    part.each_field(way().inside(name));
  }
  template <Whole T, std::size_t N>
  void operator()(const char* name, std::array<T, N>& parts) {
    for (std::size_t i = 0; i < N; ++i) (*this)(numbered(name, i).c_str(), parts[i]);
  }
  template <Record T>
  void operator()(const char* name, std::vector<T>& records) {
    records.resize(way().count(name, records.size()));
    columns(name, std::span<T>(records), Shape{records.size()});
  }
  template <Record T>
  void operator()(const char* name, Zeros<T>& records) {
    columns(name, std::span<T>(records), Shape{size(records.size())});
  }
  template <Record T>
  void operator()(const char* name, Table<T>& records) {
    columns(name, std::span<T>(records.cells()), Shape{size(records.rows()), size(records.columns())});
  }
  template <Whole T>
    requires(!Record<T>)
  void operator()(const char* name, std::vector<T>& parts) {
    if (way().count(name, parts.size()) != parts.size())
      throw nb::value_error(("the field " + std::string(name) + " is of a run of another size").c_str());
    for (std::size_t i = 0; i < parts.size(); ++i) (*this)(numbered(name, i).c_str(), parts[i]);
  }
  template <Whole T>
  void operator()(const char* name, std::vector<T>& parts, const T& empty) {
    const std::size_t found = way().count(name, parts.size());
    if (found != parts.size()) parts.assign(found, empty);
    for (std::size_t i = 0; i < parts.size(); ++i) (*this)(numbered(name, i).c_str(), parts[i]);
  }

 private:
  Way& way() { return static_cast<Way&>(*this); }
  static std::size_t size(Index n) { return static_cast<std::size_t>(n); }

  /// One array for each field of the records, by the field's place in them.
  template <Record T>
  void columns(const char* name, std::span<T> records, const Shape& shape) {
    T sample{};
    Way inside = way().inside(name);
    sample.each_field([&]<class F>(const char* field, F& its) {
      static_assert(Number<F>, "a record has numbers only; give anything larger as a std::array or a grown vector");
      const std::ptrdiff_t place = reinterpret_cast<char*>(&its) - reinterpret_cast<char*>(&sample);
      const auto at = [&](T& record) { return reinterpret_cast<char*>(&record) + place; };
      std::vector<F> column(records.size());
      for (std::size_t i = 0; i < records.size(); ++i) std::memcpy(&column[i], at(records[i]), sizeof(F));
      inside.cells(field, column.data(), shape);
      for (std::size_t i = 0; i < records.size(); ++i) std::memcpy(at(records[i]), &column[i], sizeof(F));
    });
  }
};

/// Writes every field into a dict, copied.
class Save : public Visit<Save> {
 public:
  explicit Save(nb::dict into, std::string prefix = "") : into_(std::move(into)), prefix_(std::move(prefix)) {}

  template <Number T>
  void number(const char* name, T& number) {
    if constexpr (std::is_floating_point_v<T>)
      put(name, nb::float_(static_cast<double>(number)));
    else
      put(name, nb::int_(static_cast<Index>(number)));
  }
  template <Number T>
  void cells(const char* name, T* cells, const Shape& shape) {
    using K = KeptAs<T>;
    static_assert(sizeof(K) == sizeof(T));
    static K none{};
    K* from = cells == nullptr ? &none : reinterpret_cast<K*>(cells);
    put(name, nb::cast(nb::ndarray<nb::numpy, K>(from, shape.size(), shape.data()), nb::rv_policy::copy));
  }
  template <Number T>
  void vector(const char* name, std::vector<T>& its) {
    cells(name, its.data(), Shape{its.size()});
  }
  std::size_t count(const char* name, std::size_t size) {
    put(name, nb::int_(size));
    return size;
  }
  Save inside(const char* name) const { return Save(into_, prefix_ + name + "."); }

 private:
  void put(const char* name, nb::object value) { into_[(prefix_ + name).c_str()] = value; }

  nb::dict into_;
  std::string prefix_;
};

/// Reads every field from a mapping as `Save` made it; ValueError if one is missing, of another type or shape.
class Load : public Visit<Load> {
 public:
  static constexpr std::size_t MOST = 1 << 20;  // elements of a vector of structs

  explicit Load(nb::object from, std::string prefix = "") : from_(std::move(from)), prefix_(std::move(prefix)) {}

  template <Number T>
  void number(const char* name, T& number) {
    nb::object found = get(name);
    if (nb::hasattr(found, "item")) found = found.attr("item")();  // of an array without dimensions
    try {
      if constexpr (std::is_floating_point_v<T>)
        number = static_cast<T>(nb::cast<double>(nb::float_(found)));
      else
        number = static_cast<T>(nb::cast<Index>(nb::int_(found)));
    } catch (...) {
      refuse(name, "is not a number");
    }
  }
  template <Number T>
  void cells(const char* name, T* cells, const Shape& shape) {
    const auto array = found_array<T>(name, shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (array.shape(i) != shape[i]) refuse(name, "is of a run of another size");
    if (array.size() > 0) std::memcpy(static_cast<void*>(cells), array.data(), array.size() * sizeof(T));
  }
  template <Number T>
  void vector(const char* name, std::vector<T>& its) {
    const auto array = found_array<T>(name, 1);
    its.resize(array.size());
    if (array.size() > 0) std::memcpy(static_cast<void*>(its.data()), array.data(), array.size() * sizeof(T));
  }
  std::size_t count(const char* name, std::size_t) {
    Index found = 0;
    number(name, found);
    if (found < 0 || found > static_cast<Index>(MOST)) refuse(name, "is no count");
    return static_cast<std::size_t>(found);
  }
  Load inside(const char* name) const { return Load(from_, prefix_ + name + "."); }

 private:
  nb::object get(const char* name) const {
    try {
      return from_[(prefix_ + name).c_str()];
    } catch (...) {
      refuse(name, "is missing");
    }
  }
  template <Number T>
  nb::ndarray<const KeptAs<T>, nb::c_contig, nb::device::cpu> found_array(const char* name,
                                                                          std::size_t dimensions) const {
    nb::ndarray<const KeptAs<T>, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(get(name), array, false))
      refuse(name, "is not a contiguous array of the type that it was saved as");
    if (array.ndim() != dimensions) refuse(name, "has another number of dimensions");
    return array;
  }
  [[noreturn]] void refuse(const char* name, const char* why) const {
    throw nb::value_error(("the field " + prefix_ + name + " " + why).c_str());
  }

  nb::object from_;
  std::string prefix_;
};

/// How many bytes the fields have.
class Size : public Visit<Size> {
 public:
  explicit Size(std::size_t& total) : total_(total) {}

  template <Number T>
  void number(const char*, T&) {
    total_ += sizeof(T);
  }
  template <Number T>
  void cells(const char*, T*, const Shape& shape) {
    std::size_t count = sizeof(T);
    for (std::size_t each : shape) count *= each;
    total_ += count;
  }
  template <Number T>
  void vector(const char*, std::vector<T>& its) {
    total_ += its.size() * sizeof(T);
  }
  std::size_t count(const char*, std::size_t size) { return size; }
  Size inside(const char*) const { return *this; }

 private:
  std::size_t& total_;
};

/// All fields of a run.
template <Whole T>
nb::dict saved(T& run) {
  nb::dict found;
  run.each_field(Save(found));
  return found;
}

template <Whole T>
std::size_t bytes_of(T& run) {
  std::size_t total = 0;
  run.each_field(Size(total));
  return total;
}

}  // namespace coterie::fields
