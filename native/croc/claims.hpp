// The question of K groups: the claims of a frozen candidate, what they still need, and when it is proven.
//
// Only this knows which tests there are, against which pools and at which levels (docs/CROC.md, sections 3 and 5).
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

// croc/epochs.cpp
/// b_j of the epoch that would be frozen next.
double next_level(const State& s);
/// A new epoch for the present labels, without its claims. Returns its slot.
Index open_epoch(State& s);
/// The newest remembered epoch whose candidate is the present partition, −1 if there is none. Work space: work.names.
Index find_epoch(State& s);
/// θ0 = Û_home − Û_k of an epoch, from the origins of the arms `here` and `there`. OUT: work.guess. Returns τ².
double frozen_difference(State& s, Index e, Index home, Index k, Index here, Index there);

// croc/claims.cpp
/// Choose the cores of a new epoch; none of its tests is met. OUT: the tests and cores of slot e.
void freeze_claims(State& s, Index e);
/// How many tests of epoch e are unmet. OUT: work.mark, arms in one; work.against, what those against each pool are
/// worth: the price of their arm in units of the cheapest core arm that they are against, at most pool_price.
Index unmet(State& s, Index e);
/// Whether every arm is settled against the representatives of all other groups. After an alarm pairs prove nothing.
bool pairs_done(const State& s);
/// An arm and K representatives, all known to differ, refute K. OUT: pairs.alarm, never taken back.
void raise_alarm(State& s);

// croc/use_round.cpp
/// All results of the round are in: every unmet test with pulls on both sides gets its factor.
void use_round(State& s, Index number, Index e);
/// Close every complete round that no earlier incomplete one of its epoch holds up (docs/CROC.md, section 4).
void close_ready(State& s);

// croc/cover.cpp: whether what is met says all that is claimed, read off the candidate anew (docs/CROC.md, 2 and 5)
bool covered_by_pairs(const State& s);
bool covered_by_epoch(const State& s, Index e);

}  // namespace coterie::croc
