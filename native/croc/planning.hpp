// What to pull next: `plan` runs when nothing is left to be asked for (docs/CROC.md, section 7).
//
// Pulls under way count as made: with one worker there are none when a plan is made. A full plan looks at every arm,
// O(M·K·d). Until the next one is due, plans of the same kind look at its candidates only, with the margins and gains
// of arms with new results brought up to date: O(K·d) for each of these.
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

// croc/forecast.cpp: what the pairs from the start would still cost, or a fresh freeze; and the greedy pull for pairs.
// Costs are in units of the cheapest arm: pulls, if all arms cost the same. Nothing here enters the proof.
/// What the pairs from the start still cost, over levels of the representatives; ∞ if over `limit`. `price` (M).
double pulls_for_pairs(const State& s, double limit, ConstRow price);
/// What a freeze of the present labels would cost. `price` (M).
double pulls_for_freeze(State& s, ConstRow price);
/// Forecast gain of a pull, Σ min(deficit, gain)/deficit over unmet pairs of the candidates. OUT: work.gains of the
/// candidates and the representatives, for what a pull of them costs. Returns the unmet pairs.
Index greedy_gains(State& s);
/// Of candidates and representatives, those with the largest gains, at most `wanted`. OUT: the front of work.chosen,
/// best first. Returns how many.
Index best_gains(State& s, Index wanted);

// croc/rounds.cpp: freeze, then certify (docs/CROC.md, sections 4 to 6)
/// A new epoch for the present labels, with its claims. Returns its slot.
Index freeze(State& s);
/// Every arm of an unmet test once, and those with fewer than `floor` pulls; pools topped up by their core, cheaply.
/// False if too many rounds are under way.
bool compose_round(State& s, Index e, double floor);

// croc/planning.cpp
/// Decide what to pull next, or that the groups are proven. OUT: the queue or a round, or s.proof.
void plan(State& s);
/// Stop if the groups are proven, by pairs or by the epoch in slot e: if its tests cover them. OUT: s.proof.
bool certify(State& s, Proof by, Index e);
/// Whether the results so far prove the groups, while rounds are open. OUT: s.proof.
void see_proven(State& s);

}  // namespace coterie::croc
