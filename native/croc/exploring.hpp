// The queue outside rounds: where the estimate may be wrong, or the pairs from the start gain most.
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

/// The misgrouping risk at which one may freeze.
double freeze_risk(const State& s);
/// Pull for the pairs from the start: one arm, or with many unmet pairs the best few at once. OUT: the queue. False if
/// the candidates have no unmet pair.
bool pull_greedily(State& s);
/// Pull where the estimate may be wrong. OUT: the queue.
void explore(State& s);
/// The arms that plans of this kind have to look at. OUT: plan.candidates.
void choose_candidates(State& s, Mode mode);
/// Pull the least-pulled arms again if too few results tell how large the noise is. OUT: the queue. False if not.
bool repeat(State& s);

}  // namespace coterie::croc
