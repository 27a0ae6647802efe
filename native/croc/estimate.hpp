// The estimate ĉ that survives high dimension: the best of several starts, each followed by Hartigan's moves.
//
// Starts: the labels so far; Maximin on the means (Alg. 2's start); Maximin on the means' leading principal components,
// which works where 2d exceeds the squared gap and raw Maximin picks outliers; and a Maximin that counts pulls, so that
// a poorly measured arm is no outlier. The largest posterior wins (croc/splitting.hpp), and is improved by regroupings:
// cut one group in two and merge two others. Any estimate would be valid; a bad one only wastes pulls.
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

// croc/starts.cpp
void farthest_first(const Numbers& points, ConstRow weights, Index n_groups, bool by_pulls, Row near,
                    std::span<Index> labels);
void components(const Numbers& points, ConstRow weights, Index rank, Work& work, const Constants& constants);

// croc/moves.cpp: Hartigan's moves, one arm at a time while the weighted cost falls
void shift(Numbers& centers, Row totals, Index k, ConstRow point, double weight);
Index better_group(ConstRow point, double weight, Index home, const Numbers& centers, ConstRow totals, double move_tie);
double hartigan(const Numbers& points, ConstRow weights, std::span<Index> labels, Numbers& centers, Row totals,
                const Constants& constants);

// croc/regrouping.cpp: cut one group in two and merge two others, where the posterior grows
double posterior_of(State& s, std::span<const Index> labels, ConstRow totals, double cost);
void regroup(State& s, double best);

// croc/estimate.cpp
/// work.labels, with its centers, is the best partition so far. OUT: work.winner, won_centers, won_totals.
void keep_as_winner(Work& work);
/// Estimate anew. OUT: s.estimate, work.chosen: arms that changed their group. Returns how many.
Index estimate(State& s);
/// Hartigan's move for the arms with new results. INOUT: s.estimate. OUT: work.chosen. Returns how many moved.
Index move_touched(State& s);

// croc/renewal.cpp: keeping the estimate, the representatives and their pairs up to date (docs/CROC.md, 3 and 7)
/// Results between two looks at everything, O(M·K·d) each.
Index patience(const State& s);
/// Estimate anew if it is due; then the representatives and their pairs.
void renew(State& s);
/// The arm of every group that stands for it in pairs from the start: OUT: estimate.representative. True if one
/// changed.
bool choose_representatives(State& s);
/// The plan has seen all new results.
void forget_touched(State& s);

// croc/misgrouping.cpp
double update_misgrouping_risk(State& s);
double misgrouping_risk(State& s);

}  // namespace coterie::croc
