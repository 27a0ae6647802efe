// Everything one CROC run knows. M arms, K groups, d dimensions, E remembered epochs, P prefixes of each arm.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "croc/arms.hpp"
#include "croc/constants.hpp"
#include "croc/epoch.hpp"
#include "croc/family.hpp"
#include "croc/flight.hpp"
#include "croc/least_pulled.hpp"
#include "croc/metric.hpp"
#include "croc/pairs.hpp"
#include "croc/variance_bound.hpp"

namespace coterie::croc {

inline constexpr Index NEVER = -(Index(1) << 60);

enum class Proof : Index { none, by_pairs, by_epoch };
/// What the queue is for.
enum class Mode : Index { first_pass, pairs, explore, rounds, certified };

/// The groups as they look: ĉ, W, Û (croc/estimate.hpp).
struct Estimate {
  Estimate(Index n_arms, Index n_groups, Index dim);

  Index n_groups() const { return totals.size(); }

  Index at = 0;                                              // t of the last estimate of all arms, 0 before the first
  Index started_at = 0;                                      // t of the last estimate that tried all starts
  Index changed_at = 0;                                      // t at which the partition last changed
  bool left_group = false;                                   // a pulled arm came closer to another center
  Zeros<Index> labels;                                       // (M)
  Zeros<double> totals;                                      // (K)
  Numbers centers;                                           // (K, d)
  Zeros<Index> sizes;                                        // (K) arms of the groups
  Zeros<Index> representative;                               // (K) −1 at first
  std::shared_ptr<const std::vector<double>> log_factorial;  // (M+1) log n!, the same for all runs of a size

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("at", at);
    visit("started_at", started_at);
    visit("changed_at", changed_at);
    visit("left_group", left_group);
    visit("labels", labels);
    visit("totals", totals);
    visit("centers", centers);
    visit("sizes", sizes);
    visit("representative", representative);
  }
};

/// The misgrouping risk P_w and the worst readings (croc/misgrouping.hpp).
struct Risk {
  explicit Risk(Index n_arms) : margin(n_arms), rival(n_arms), arm_risk(n_arms) {}

  double total = 0.0;                           // P_w
  double arms = 0.0;                            // the part of it that is about single arms
  double merge_margin = 0.0;                    // smallest margin of a merge and split over the estimate …
  Index split = 0, merged_a = 0, merged_b = 0;  // … and its groups
  double chance = 0.0;                          // largest chance that two groups are one …
  Index chance_a = 0, chance_b = 0;             // … and which
  Zeros<double> margin;                         // (M) smallest D_mk of the arm
  Zeros<Index> rival;                           // (M) the group k of it
  Zeros<double> arm_risk;                       // (M) Σ_k e^−D_mk

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("total", total);
    visit("arms", arms);
    visit("merge_margin", merge_margin);
    visit("split", split);
    visit("merged_a", merged_a);
    visit("merged_b", merged_b);
    visit("chance", chance);
    visit("chance_a", chance_a);
    visit("chance_b", chance_b);
    visit("margin", margin);
    visit("rival", rival);
    visit("arm_risk", arm_risk);
  }
};

/// Arms to pull next, outside rounds.
struct Queue {
  explicit Queue(Index n_arms) : arms(n_arms), holds(n_arms) {}

  bool empty() const { return head >= tail; }
  void push(Index arm) { arms[tail++] = arm; }
  void push_once(Index arm) {
    if (holds[arm] == 0) {
      holds[arm] = 1;
      push(arm);
    }
  }

  Mode mode = Mode::first_pass;
  Index head = 0, tail = 0;
  Zeros<Index> arms;  // (M)
  Zeros<Flag> holds;  // (M) 1 while a plan has the arm in its queue; 0 outside plans

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("mode", mode);
    visit("head", head);
    visit("tail", tail);
    visit("arms", arms);
    visit("holds", holds);
  }
};

/// What lasts from one plan to the next.
struct Plan {
  explicit Plan(Index n_arms) : candidates(n_arms) {}

  Index planned_at = NEVER;   // t of the last plan that looked at every arm; NEVER if the next one has to
  Index looked_at = 0;        // t of the last look at whether an epoch is stale
  double greedy_limit = 0.0;  // what greedy pulls may cost; 0 before the first forecast
  double greedy_spent = 0.0;  // cost of the greedy pulls so far
  Index n_candidates = 0;     // arms that the plans until the next full one look at …
  Zeros<Index> candidates;    // (M) … and which

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("planned_at", planned_at);
    visit("looked_at", looked_at);
    visit("greedy_limit", greedy_limit);
    visit("greedy_spent", greedy_spent);
    visit("n_candidates", n_candidates);
    visit("candidates", candidates);
  }
};

/// Work space, of which nothing lasts from one plan to the next.
struct Work {
  Work(Index n_arms, Index n_groups, Index dim, const Traits& traits, const Constants& constants);

  Zeros<double> near, weights, gains;                         // (M)
  Zeros<Index> labels, winner, members, chosen, composition;  // (M)
  Zeros<Index> core_entry;                                    // (K·core_room)
  Zeros<Flag> mark, inside;                                   // (M)
  Numbers reduced;                                            // (M, min(K−1, d))
  Zeros<Index> names, farthest, counts;                       // (K)
  Zeros<double> against;   // (2·K) unmet tests against every core, then against every group, by the price of their arms
  Zeros<double> cheapest;  // (K) the least price in every core
  Zeros<double> gain, share, worth;          // (K)
  Zeros<double> pool_pulls;                  // (2·K) of a round, in every core, then in every group
  Zeros<double> totals, won_totals;          // (K)
  Numbers square;                            // (K, K)
  Numbers lead_gain;                         // (K, doublings)
  Numbers centers, won_centers;              // (K, d)
  Numbers pool_means;                        // (2·K, d)
  Numbers away;                              // (8, d) means of arms, from the mean of all
  Numbers pool_scores;                       // (2·K, scores)
  Numbers basis, image;                      // (2·rank + subspace_extra, d)
  Zeros<double> mean, part, rest, contrast;  // (d)
  Zeros<double> guess;                       // (d) θ0 of a test
  Numbers raw;                               // (K, d) centers in the units of the results
  Zeros<double> sorted;                      // (innovations)
  Numbers correlation, inverse;              // (d, d)
};

struct ShapeEstimate;

struct State {
  /// `prices` (M): what a pull of each arm costs, in units of the cheapest; empty: all the same. Memory: 8·M·d·(P + 4)
  /// for the prefixes, and up to 16·E·M·K·d for the tests of the remembered epochs, touched only where a frozen test is
  /// under way. The grid is only touched by arms with more than P results, `offset` only by far ones. `with_pairs`:
  /// false for none from the start.
  State(Index n_arms, Index n_groups, Index dim, double log_inverse_delta, std::shared_ptr<const Family> family,
        ConstRow prices, const Constants& constants, bool with_pairs = true);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Index n_arms() const { return arms.size(); }
  Index n_groups() const { return estimate.n_groups(); }
  Index dim() const { return arms.dim(); }
  /// The slot of the epoch with this number, if it is remembered, else −1.
  Index slot_of(Index number) const {
    const Index e = number % Index(epochs.size());
    return epochs[e].number == number ? e : -1;
  }

  /// Whoever is about to take a step asks for this first.
  void check_whole() const {
    if (broken)
      throw std::runtime_error(
          "this run broke off in the middle of a step, when its family of evidence failed: make a new one");
  }

  const Constants constants;
  const std::shared_ptr<const Family> family;
  const Traits traits;  // of the family; without pairs from the start if the run is to have none
  const double log_inverse_delta;
  const double log_frozen_share;  // log(1 − α − w): of the share of δ for frozen tests

  mutable bool broken =
      false;  // the family of evidence failed in the middle of a step: nothing here is to be relied on
  Proof proof = Proof::none;
  Index certified_epoch = 0;  // slot of the epoch that certified
  Index freezes = 0;          // epochs so far
  Arms arms;
  Estimate estimate;
  Pairs pairs;
  VarianceBound bound;
  Metric metric;
  Risk risk;
  std::vector<Epoch> epochs;  // (E) epoch j in slot j mod E
  Flight flight;
  LeastPulled heaps;
  Queue queue;
  Plan plan;
  Zeros<double> learned;  // of the family of evidence
  Work work;
  std::unique_ptr<ShapeEstimate> shape;  // a second estimate, if the family has one: croc/shape.hpp

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("proof", proof);
    visit("certified_epoch", certified_epoch);
    visit("freezes", freezes);
    visit("arms", arms);
    visit("estimate", estimate);
    visit("pairs", pairs);
    visit("bound", bound);
    visit("metric", metric);
    visit("risk", risk);
    visit("epochs", epochs);
    visit("flight", flight);
    visit("heaps", heaps);
    visit("queue", queue);
    visit("plan", plan);
    visit("learned", learned);
    if (shape) visit("shape", *shape);
  }
};

}  // namespace coterie::croc
