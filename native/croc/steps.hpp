// The steps of CROC on its state: take in a result, and plan what to pull next.
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

/// One result, in the arm's ask order; `of_round` is the round it was asked for in, 0 for none. x has 2·d numbers: the
/// result, and what floats do not hold of it. INOUT: x, then its distance from the arm's origin.
void observe(State& s, Index arm, Row x, Index of_round);
/// Plan if every arm was measured, the queue is used up and no round is open. While rounds are open the next is planned
/// when an arm is asked for. But after one has closed, or a result from outside has come, see whether the groups are
/// proven: the results of the others may never come.
void plan_if_due(State& s, bool outside);

}  // namespace coterie::croc
