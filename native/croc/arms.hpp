// What is known of each arm: its pulls and the sums of its results.
//
// Positions are relative to `origin`, the first result. An arm whose first result is far from it counts from an origin
// of its own, `offset` away: sums of its results then lose no digits, and contrasts of near arms are differences of
// near numbers (docs/CROC.md, section 13).
#pragma once

#include "base/geometry.hpp"
#include "base/table.hpp"
#include "croc/constants.hpp"

namespace coterie::croc {

struct Arms {
  Arms(Index n_arms, Index dim, Index room, ConstRow prices, const Constants& constants);

  Index size() const { return pulls.size(); }
  Index dim() const { return sums.columns(); }
  /// P, up to which all prefixes of an arm are kept; 0 without pairs from the start.
  Index room() const { return prefixes.tables() - 1; }
  /// Coordinate q of how far the origin of arm a is from that of arm b.
  double apart(Index a, Index b, Index q) const {
    return offset(a, q) - offset(b, q) + (offset_rest(a, q) - offset_rest(b, q));
  }

  Index t = 0;                // results so far
  Index unseen;               // arms never measured
  Index open_pulls = 0;       // pulls under way
  Index alone = -1;           // the arm of a pull that was asked for while no other was under way, and is still to come
  bool far = false;           // an arm counts from an origin of its own
  bool priced = false;        // arms differ in what a pull costs
  Zeros<Index> pulls;         // (M) N_m
  Zeros<Index> committed;     // (M) pulls, and those asked for
  Zeros<double> origin;       // (d) the first result
  Zeros<double> origin_rest;  // (d) what a float does not hold of it
  Numbers offset;             // (M, d) of the arm's own origin; 0 for most
  Numbers offset_rest;        // (M, d)
  Numbers sums;               // (M, d) from the arm's origin
  Numbers means;              // (M, d) of each arm's results, from the common origin, in units of the metric
  Cube<double> prefixes;      // (P+1, M, d) sums of the first n results, in the order in which they were asked for
  Cube<double> grid;          // (places, M, d) … at counts n from P on: `grid_place`
  Index n_touched = 0;        // arms with results since the last plan …
  Zeros<Index> touched;       // (M) … and which
  Zeros<Flag> is_touched;     // (M)
  Zeros<double> price;        // (M) what a pull costs, in units of the cheapest arm
  Zeros<double> reserve;      // (M) log price, by which the margin of an arm counts as larger

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("t", t);
    visit("unseen", unseen);
    visit("open_pulls", open_pulls);
    visit("alone", alone);
    visit("far", far);
    visit("pulls", pulls);
    visit("committed", committed);
    visit("origin", origin);
    visit("origin_rest", origin_rest);
    visit("offset", offset);
    visit("offset_rest", offset_rest);
    visit("sums", sums);
    visit("means", means);
    visit("prefixes", prefixes);
    visit("grid", grid);
    visit("n_touched", n_touched);
    visit("touched", touched);
    visit("is_touched", is_touched);
  }
};

/// P for a run of this size: 64, 32, 16 or 8, the largest that takes at most ¼ GiB.
Index prefix_room(Index n_arms, Index dim, const Constants& constants);
/// The place of the largest count up to n on the grid of counts from P = `room` on; n must be at least P.
Index grid_place(Index n, Index room, Index grid_step);
/// The count at a place of the grid.
Index grid_count(Index place, Index room, Index grid_step);

}  // namespace coterie::croc
