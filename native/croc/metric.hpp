// The size of the noise as results show it: where each arm lies, and the units in which distances are measured.
//
// If the noise has no known size, results come in the units of whoever measures. An *innovation* is what a result adds
// to what its arm said before: (x − mean of the n results before)·√(n/(n+1)), which has the covariance of the noise
// whatever the mean is. The scatter of the innovations, over their number, is Σ̂; T with T'·T = Σ̂⁻¹ turns positions
// into units of the noise: the estimate, the misgrouping risk and the forecasts then work as they do for a known noise.
// Σ̂ is shrunk towards its diagonal by as much as its correlations could be chance.
//
// Where outliers are possible, results are *pulled in*: no coordinate counts for more than `pulled_in` standard
// deviations, with a scale from the median of the first innovations, about a median of the arm's first results. All of
// this decides where to measure and what to bet; nothing here enters the proof.
#pragma once

#include "croc/family.hpp"

namespace coterie::croc {

struct State;

struct Metric {
  Metric(Index n_arms, Index dim, const Traits& traits, const Constants& constants);

  bool estimated;  // without it all tables are empty
  Shape shape;
  bool winsorised;         // far results are pulled in
  bool arm_scales;         // the first score of an arm is about the variance of its results
  bool from_zero;          // positions count from zero
  Index degrees = 0;       // results that were not the first of their arm: degrees of freedom
  Index measured_at = 0;   // `degrees` when the metric was last estimated
  double far_share = 0.0;  // of results that were pulled in, or would have been
  Numbers to_units;        // (d, d) T, lower triangular
  Numbers scatter;         // (d, d) sum of products of the innovations, pulled in
  Zeros<double> scale;     // (d) standard deviations at which results are pulled in; infinite: never
  Numbers innovations;     // (innovations, d) the first ones
  Numbers location;        // (M, d) of the arm's results, pulled in; from the common origin
  Cube<double> first;      // (M, first_results, d) the first results of each arm
  Numbers squares;         // (M, 2) sum of squared innovations of the arm, in units, divided by d; their number

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("degrees", degrees);
    visit("measured_at", measured_at);
    visit("far_share", far_share);
    visit("to_units", to_units);
    visit("scatter", scatter);
    visit("scale", scale);
    visit("innovations", innovations);
    visit("location", location);
    visit("first", first);
    visit("squares", squares);
  }
};

/// A result of the arm, from the common origin, whose count includes it. INOUT: location, scatter, means. OUT:
/// work.part, the position that the result counts as for the center of its group, in units of the metric.
void take_position(State& s, Index arm, ConstRow result);
/// T·position. OUT: out.
void to_metric(const Metric& metric, ConstRow position, Row out);
/// T anew from the scatter so far. OUT: the metric, and means and centers in its units.
void estimate_metric(State& s);
/// Estimate the metric anew if its degrees of freedom have grown enough. True if it was.
bool renew_metric(State& s);
/// The variance of an arm's results in units of the metric, for each coordinate, drawn towards 1 by four results.
double arm_variance(const State& s, Index arm);
/// Û and W of these groups, in the units of the results. OUT: work.raw, work.totals.
void raw_centers(State& s, std::span<const Index> labels);

}  // namespace coterie::croc
