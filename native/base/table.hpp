// Tables of numbers: one block of memory that the system hands over as zeros, row after row; a row is a span.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace coterie {

using Index = std::int64_t;  // of arms, groups, results; -1 where there is none
using Row = std::span<double>;
using ConstRow = std::span<const double>;

/// So many numbers, zero at first. Unlike std::vector it touches no page of memory before it is used: a run of a
/// million arms has tables that it may never need.
template <class T>
class Zeros {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Zeros() = default;
  explicit Zeros(Index size) : size_(size) {
    if (size == 0) return;
    cells_ = static_cast<T*>(std::calloc(static_cast<std::size_t>(size), sizeof(T)));
    if (cells_ == nullptr) throw std::bad_alloc();
  }
  Zeros(Zeros&& other) noexcept : cells_(std::exchange(other.cells_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Zeros& operator=(Zeros&& other) noexcept {
    std::swap(cells_, other.cells_);
    std::swap(size_, other.size_);
    return *this;
  }
  Zeros(const Zeros& other) : Zeros(other.size_) { std::copy_n(other.cells_, size_, cells_); }
  Zeros& operator=(const Zeros& other) {
    if (this != &other) *this = Zeros(other);
    return *this;
  }
  ~Zeros() { std::free(cells_); }

  Index size() const { return size_; }
  T* data() { return cells_; }
  const T* data() const { return cells_; }
  T* begin() { return cells_; }
  T* end() { return cells_ + size_; }
  const T* begin() const { return cells_; }
  const T* end() const { return cells_ + size_; }

  T& operator[](Index i) {
    assert(0 <= i && i < size_);
    return cells_[i];
  }
  const T& operator[](Index i) const {
    assert(0 <= i && i < size_);
    return cells_[i];
  }
  operator std::span<T>() { return {cells_, static_cast<std::size_t>(size_)}; }
  operator std::span<const T>() const { return {cells_, static_cast<std::size_t>(size_)}; }

  void fill(T value) { std::fill_n(cells_, size_, value); }

 private:
  T* cells_ = nullptr;
  Index size_ = 0;
};

/// Rows of equal length, zeros at first. `table[i]` is row i, `table(i, j)` a number.
template <class T>
class Table {
 public:
  Table() = default;
  Table(Index rows, Index columns) : rows_(rows), columns_(columns), cells_(rows * columns) {}

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }

  std::span<T> operator[](Index i) {
    assert(0 <= i && i < rows_);
    return {cells_.data() + i * columns_, static_cast<std::size_t>(columns_)};
  }
  std::span<const T> operator[](Index i) const {
    assert(0 <= i && i < rows_);
    return {cells_.data() + i * columns_, static_cast<std::size_t>(columns_)};
  }
  T& operator()(Index i, Index j) {
    assert(0 <= i && i < rows_ && 0 <= j && j < columns_);
    return cells_.data()[i * columns_ + j];
  }
  const T& operator()(Index i, Index j) const {
    assert(0 <= i && i < rows_ && 0 <= j && j < columns_);
    return cells_.data()[i * columns_ + j];
  }

  void fill(T value) { cells_.fill(value); }
  Zeros<T>& cells() { return cells_; }
  const Zeros<T>& cells() const { return cells_; }

 private:
  Index rows_ = 0, columns_ = 0;
  Zeros<T> cells_;
};

/// Tables of equal shape, one after the other: `cube(i, j)` is a row, `cube(i, j, q)` a number.
template <class T>
class Cube {
 public:
  Cube() = default;
  Cube(Index tables, Index rows, Index columns)
      : tables_(tables), rows_(rows), columns_(columns), cells_(tables * rows * columns) {}

  Index tables() const { return tables_; }
  Index rows() const { return rows_; }
  Index columns() const { return columns_; }

  std::span<T> operator()(Index i, Index j) {
    assert(0 <= i && i < tables_ && 0 <= j && j < rows_);
    return {cells_.data() + (i * rows_ + j) * columns_, static_cast<std::size_t>(columns_)};
  }
  std::span<const T> operator()(Index i, Index j) const {
    assert(0 <= i && i < tables_ && 0 <= j && j < rows_);
    return {cells_.data() + (i * rows_ + j) * columns_, static_cast<std::size_t>(columns_)};
  }
  T& operator()(Index i, Index j, Index q) {
    assert(0 <= i && i < tables_ && 0 <= j && j < rows_ && 0 <= q && q < columns_);
    return cells_.data()[(i * rows_ + j) * columns_ + q];
  }
  const T& operator()(Index i, Index j, Index q) const {
    assert(0 <= i && i < tables_ && 0 <= j && j < rows_ && 0 <= q && q < columns_);
    return cells_.data()[(i * rows_ + j) * columns_ + q];
  }

  void fill(T value) { cells_.fill(value); }
  Zeros<T>& cells() { return cells_; }
  const Zeros<T>& cells() const { return cells_; }

 private:
  Index tables_ = 0, rows_ = 0, columns_ = 0;
  Zeros<T> cells_;
};

using Numbers = Table<double>;
using Flag = std::uint8_t;  // 0 or 1

}  // namespace coterie
