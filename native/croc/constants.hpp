// The numbers of CROC's rule, in one place; a run is handed its own, so that a test can change one.
//
// docs/CROC.md has the rule; tests/oracles/croc/rule.py has the same numbers once more
// (tests/croc/test_croc_constants).
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "base/table.hpp"

namespace coterie::croc {

struct Constants {
  static constexpr Index RATIOS = 4, SCALES = 11;

  // δ and its shares (docs/CROC.md, sections 2 to 6); those for pairs and for a variance bound are the family's
  double first_share = 0.8;    // π_0; π_j = 0.8·0.2^j
  Index epochs = 3;            // E: frozen candidates that are remembered
  Index core = 3;              // arms of a core; a group with at most core + 1 arms is its own core
  double core_price = 2.0;     // times the price of its group's cheapest arm: dearer arms are not in a core
  double pool_price = 1000.0;  // the most that a test counts in the size of its pool

  // the pairs' mixture (section 2)
  std::array<Index, RATIOS> block_ratios = {1, 2, 4, 8};
  std::array<double, RATIOS> log_ratio_weights;  // the last three for each of two sides: 0.4 + 6·0.1 = 1
  std::array<double, SCALES> scales;             // ρ
  std::array<double, SCALES> log_scale_weights;
  Index grid_step = 8;                    // counts beyond P are P·2^j + i·grid_step·2^j: all ratios divide them
  Index octaves = 24;                     // doublings of P that the grid covers
  Index prefix_room = 64;                 // P, the prefixes of an arm that are all kept …
  Index prefix_numbers = Index(1) << 25;  // … halved as long as they are more than so many numbers: ¼ GiB
  double near = 1024.0;  // standard deviations from the first result within which an arm counts from it

  // rounds under way (sections 4 and 8)
  Index flight = 64;           // rounds that may be under way at once
  Index scale_up = 8;          // after so many of them, a round has twice as many pulls of each arm
  Index round_places = 4096;   // arms of rounds under way that there is room for, if rounds of all arms need more
  double least_gap = 0.25;     // the share of a squared gap of centers that counts in any case
  double at_bound = 0.8;       // a round is enlarged if the growth of the tests is at least this share of its bound …
  double enlarge_risk = 0.01;  // … and the misgrouping risk is at most this
  double bound_margin = 1.01;
  Index most_repeats = 16;
  double top_up = 0.5;  // a round pulls a pool about this many times the root of what the tests against it are worth

  // the estimate (section 7)
  Index starts_results = 10, starts_work = 1000;  // other starts wait for t/10 results, at most M²/1000
  Index subspace_passes = 12;
  Index subspace_extra = 2;     // rows of the subspace iteration beyond twice the components that it is to find
  Index passes = 20;            // Hartigan's
  double one = 1.000001;        // a group whose weight is below this many times an arm's is that arm alone
  double move_tie = 1e-12;      // an arm moves only if it then costs less by more than this
  double posterior_tie = 1e-9;  // log posteriors this close tie: the partition that was found first stays
  double size_price = 1.0;      // τ, the power of the share of one partition among all of its sizes
  Index split_passes = 6;
  Index regroupings = 4;  // so many at most for each estimate from scratch
  double tie = 1e-9;      // squared distances of representatives this close, relatively, tie
  Index patience_results = 100, patience_work = 200;  // looks at everything: t/100 results apart, at most M·K·d/200
  Index estimate_arms = 10, estimate_results = 50;    // estimates from scratch: M/10 results apart, or t/50

  // what to pull next (section 7)
  double freeze_risk = 0.15;                     // freeze when P_w is below
  double freeze_risk_unknown = 0.08;             // … with an estimated metric
  double sure_risk = 0.01;                       // … and then at once if P_w is below this
  double steady = 0.02;                          // … and the partition has stood for this share of t
  double largest_risk = 1.0;                     // nothing but exploration makes sense while P_w is at least this
  double margin_cap = 5.0, margin_window = 2.0;  // explored are arms below the cap and within the window of the least
  double drift = 1.0;                            // arms with a margin this much above the cap stay in view
  double merge_cap = 2.0;                        // a merge and split with a smaller margin than this is explored
  double least_share = 0.1;                      // of the mean pulls that every arm should have while exploring …
  double least_share_in_rounds = 0.02;           // … and in rounds
  double root_floor = 0.5;                       // … and of the square root of the mean, while exploring
  Index freeze_looks = 8;                        // between full plans, so many looks at whether to freeze
  Index rival_pulls = 3;  // an uncertain arm's rival group is pulled if it has fewer than this many times its pulls
  Index balance = 2;      // of groups to cut or merge, one is left out if it has this many times the other's pulls
  double chance_share = 0.25;  // groups are explored if their chance to be one is above this share of the freeze risk
  Index pairs_per_pull = 64;   // a greedy plan pulls one arm for so many unmet pairs
  Index repeats = 6;           // results that are not the first of their arm before an estimated metric is used
  double greedy_factor = 2.0, greedy_extra = 20.0;  // limit of greedy pulls: 2 times the first forecast, and 20

  // forecasts (section 7)
  std::vector<Index> steps = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};  // more pulls of an arm
  Index doublings = 6;          // 1, 2, 4, …, 2^(doublings − 1) more pulls of a representative
  Index lead_levels = 8;        // levels 1, 2, 4, … that all representatives are raised to
  double forecast_loss = 1.0;   // mixing over scales loses about this much of the log-evidence
  double freeze_factor = 1.15;  // a freeze needs about this many times the pulls that a gap asks for
  double freeze_least_gap = 0.25;
  double freeze_least_pulls = 1.5, freeze_group_pulls = 0.5;
  double least_deficit = 0.2;    // a pair lacks at least this much
  Index look_ahead = 3;          // up to so many more pulls of an arm: with block ratios, a single one may gain nothing
  double together_share = 0.25;  // what raising two representatives together counts for each of them
  double prior_cost = 0.3;       // log-evidence that a known-covariance test loses to its prior, for each dimension
  double stale_growth = 1.5, stale_loss = 1.15;  // when an epoch may be stale, and by what a new one must need less

  // an estimated metric
  Index first_results = 9;  // results of an arm that are kept, for its median
  Index innovations = 128;  // first innovations that are kept, for the scale at which results are pulled in
  double pulled_in = 3.0;   // standard deviations beyond which a coordinate of a result counts no more
  double median_to_deviation = 1.4826;
  double mostly_ties = 0.4;  // share of equal neighbours from which on a coordinate is not pulled in
  double refresh = 0.1;      // the metric is estimated anew when its degrees of freedom have grown by this share
  double least_shrinkage = 1e-6;
  double arm_prior = 4.0;     // so many results with the pooled variance go into the variance of an arm
  double small_sample = 2.0;  // a variance from ν degrees of freedom is enlarged by this many ν-ths

  // a second estimate, of features (docs/EVIDENCE.md, section 3)
  Index shape_results = 1024, shape_repeats = 8;  // results that are kept to find o and s: so many, or so many an arm …
  Index shape_numbers = Index(1) << 21;           // … but no more than so many numbers
  double shape_most_information = 3.0;            // nats by which a result speaks for or against an estimate
  double shape_forgetting = 3.0;                  // what was predicted at s counts (s/t)^3 at t
  double shape_lead = 4.0, shape_lead_ratio = 2.0;  // it leads if J is above 4 + 2·max(J of the location, 0)
  double shape_least_weight = 0.02;                 // of the scores of either estimate
  double shape_small_share = 0.02;                  // of the weight of the shape: small bets

  // an upper bound on the variance (docs/EVIDENCE.md, section 4)
  Index rates = 13;  // λ = 8, 4, …, 2⁻⁹, each with the weight ½/13, beside λ = 0 with the weight ½
  double largest_rate = 8.0;
  Index root_steps = 200;
  double root_precision = 1e-13;
  double resolution = 1e-9;    // σ₊ is at least this share of the largest distance of a result from the first
  double smallest = 1e-280;    // a variance below this has no inverse that could be worked with
  double most_ahead = 1e6;     // forecasts of σ₊ look no more than so many pulls ahead
  double worth_a_look = 1.02;  // all pairs are evaluated anew when 1/σ₊² has grown by this factor

  Index core_room() const { return core + 1; }

  Constants();
  /// Whether a run can be made with them: sizes are positive and not absurd.
  bool is_sound() const;

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("first_share", first_share);
    visit("epochs", epochs);
    visit("core", core);
    visit("core_price", core_price);
    visit("pool_price", pool_price);
    visit("block_ratios", block_ratios);
    visit("log_ratio_weights", log_ratio_weights);
    visit("scales", scales);
    visit("log_scale_weights", log_scale_weights);
    visit("grid_step", grid_step);
    visit("octaves", octaves);
    visit("prefix_room", prefix_room);
    visit("prefix_numbers", prefix_numbers);
    visit("near", near);
    visit("flight", flight);
    visit("scale_up", scale_up);
    visit("round_places", round_places);
    visit("least_gap", least_gap);
    visit("at_bound", at_bound);
    visit("enlarge_risk", enlarge_risk);
    visit("bound_margin", bound_margin);
    visit("most_repeats", most_repeats);
    visit("top_up", top_up);
    visit("starts_results", starts_results);
    visit("starts_work", starts_work);
    visit("subspace_passes", subspace_passes);
    visit("subspace_extra", subspace_extra);
    visit("passes", passes);
    visit("one", one);
    visit("move_tie", move_tie);
    visit("posterior_tie", posterior_tie);
    visit("size_price", size_price);
    visit("split_passes", split_passes);
    visit("regroupings", regroupings);
    visit("tie", tie);
    visit("patience_results", patience_results);
    visit("patience_work", patience_work);
    visit("estimate_arms", estimate_arms);
    visit("estimate_results", estimate_results);
    visit("freeze_risk", freeze_risk);
    visit("freeze_risk_unknown", freeze_risk_unknown);
    visit("sure_risk", sure_risk);
    visit("steady", steady);
    visit("largest_risk", largest_risk);
    visit("margin_cap", margin_cap);
    visit("margin_window", margin_window);
    visit("drift", drift);
    visit("merge_cap", merge_cap);
    visit("least_share", least_share);
    visit("least_share_in_rounds", least_share_in_rounds);
    visit("root_floor", root_floor);
    visit("freeze_looks", freeze_looks);
    visit("rival_pulls", rival_pulls);
    visit("balance", balance);
    visit("chance_share", chance_share);
    visit("pairs_per_pull", pairs_per_pull);
    visit("repeats", repeats);
    visit("greedy_factor", greedy_factor);
    visit("greedy_extra", greedy_extra);
    visit("steps", steps);
    visit("doublings", doublings);
    visit("lead_levels", lead_levels);
    visit("forecast_loss", forecast_loss);
    visit("freeze_factor", freeze_factor);
    visit("freeze_least_gap", freeze_least_gap);
    visit("freeze_least_pulls", freeze_least_pulls);
    visit("freeze_group_pulls", freeze_group_pulls);
    visit("least_deficit", least_deficit);
    visit("look_ahead", look_ahead);
    visit("together_share", together_share);
    visit("prior_cost", prior_cost);
    visit("stale_growth", stale_growth);
    visit("stale_loss", stale_loss);
    visit("first_results", first_results);
    visit("innovations", innovations);
    visit("pulled_in", pulled_in);
    visit("median_to_deviation", median_to_deviation);
    visit("mostly_ties", mostly_ties);
    visit("refresh", refresh);
    visit("least_shrinkage", least_shrinkage);
    visit("arm_prior", arm_prior);
    visit("small_sample", small_sample);
    visit("shape_results", shape_results);
    visit("shape_repeats", shape_repeats);
    visit("shape_numbers", shape_numbers);
    visit("shape_most_information", shape_most_information);
    visit("shape_forgetting", shape_forgetting);
    visit("shape_lead", shape_lead);
    visit("shape_lead_ratio", shape_lead_ratio);
    visit("shape_least_weight", shape_least_weight);
    visit("shape_small_share", shape_small_share);
    visit("rates", rates);
    visit("largest_rate", largest_rate);
    visit("root_steps", root_steps);
    visit("root_precision", root_precision);
    visit("resolution", resolution);
    visit("smallest", smallest);
    visit("most_ahead", most_ahead);
    visit("worth_a_look", worth_a_look);
  }
};

}  // namespace coterie::croc
