#include "croc/family.hpp"

#include <stdexcept>

namespace coterie::croc {

namespace {

/// The traits of a family say which kernels it has; no other is called.
[[noreturn]] void missing(const std::string& family, const char* kernel) {
  throw std::logic_error("the family '" + family + "' has no kernel '" + kernel + "'");
}

}  // namespace

double Family::factor(const Contrast&, Row, Row) const { missing(traits.name, "factor"); }

double Family::pulls_needed(double, double, double, Index) const { missing(traits.name, "pulls_needed"); }

void Family::bet(const Numbers&, ConstRow, const Numbers&, ConstRow, Row) const { missing(traits.name, "bet"); }

void Family::bet_on_shape(const ShapedGroups&, Row) const { missing(traits.name, "bet_on_shape"); }

void Family::score(ConstRow, ConstRow, ConstRow, Row, Row, Index) const { missing(traits.name, "score"); }

void Family::pool(ConstRow, Row) const { missing(traits.name, "pool"); }

void Family::freeze(const Numbers&, ConstRow, const Numbers&, Row) const { missing(traits.name, "freeze"); }

void Family::gather(ConstRow, double, Row) const { missing(traits.name, "gather"); }

double Family::quality(const Numbers&, const Numbers&, const Numbers&, double, ConstRow, Index, Index) const {
  missing(traits.name, "quality");
}

}  // namespace coterie::croc
