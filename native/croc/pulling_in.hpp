// Far results count no more than near ones where outliers are possible: part of croc/metric.
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

/// A deviation, at most `pulled_in` times the scale.
inline double pulled_in(double value, double scale, const Constants& constants) {
  const double limit = constants.pulled_in * scale;
  return std::min(std::max(value, -limit), limit);
}

/// The median of the first n > 0 values, which are sorted by this. INOUT: values.
double median(Row values, Index n);
/// Scale and scatter anew from the first n > 0 innovations. OUT: metric.scale, metric.scatter, metric.far_share.
void scatter_of_first(State& s, Index n);

}  // namespace coterie::croc
