// A second estimate of the groups, beside that by location: in the space of features (docs/EVIDENCE.md, section 3).
//
// The features of every result are results of a run of their own, which freezes and asks for nothing: it has the
// metric, the estimate and the misgrouping risk of its space. The two estimates are judged by what they have
// *predicted*: how much better the group that they gave an arm fits its next result than a group drawn by weight. The
// one that has predicted more leads: what to pull next and when to freeze is read off it, and the weights of the scores
// follow from it at the freeze. Nothing here enters the proof.
#pragma once

#include <array>

#include "croc/features.hpp"
#include "croc/state.hpp"

namespace coterie::croc {

struct ShapeEstimate {
  ShapeEstimate(Index n_arms, Index n_groups, Index dim, double log_inverse_delta,
                const std::shared_ptr<const Family>& family, ConstRow prices, const Constants& constants);

  /// J of the shape minus J of the location.
  double lead() const { return predicted[1] - predicted[0]; }

  const Features features;
  bool leads = false;
  Index measured_at = 0;              // t when o and s were last found, 0 before
  std::array<double, 2> predicted{};  // J: the label information of the location and of the shape
  Zeros<double> middle, scale;        // (d) o, from the common origin, and s
  Index n_kept = 0;                   // results that are kept, so that o and s can be found anew …
  bool kept_all = true;               // … and whether these are all
  Zeros<Index> kept_arms;             // (room)
  Numbers kept;                       // (room, d) positions
  State space;                        // of the features
  Zeros<double> of_result;            // (2·D) work space

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("leads", leads);
    visit("measured_at", measured_at);
    visit("predicted", predicted);
    visit("middle", middle);
    visit("scale", scale);
    visit("n_kept", n_kept);
    visit("kept_all", kept_all);
    visit("kept_arms", kept_arms);
    visit("kept", kept);
    visit("space", space);
  }
};

/// The state whose estimate leads: s itself, or the space of features.
State& leading(State& s);
const State& leading(const State& s);
/// A result, at this position, before anything else takes it in. INOUT: the space of features, J.
void take_features(State& s, Index arm, ConstRow position);
/// The estimate of the shape, brought up to date; which one leads.
void renew_shape(State& s);
/// The weights of the scores of a new epoch: location, shape, small bets. OUT: shared.
void fix_weights(const State& s, Row shared);
/// The part of a round's bet that is about features. OUT: bet.
void fix_shape_bet(State& s, std::span<const Index> labels, Row bet);

}  // namespace coterie::croc
