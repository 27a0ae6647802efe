// One run of the paper's methods: the steps of Alg. 1 (algo1). Sessions and simulations take the same.
//
// Time indices as in the paper: `observe` forms Z(t) from the counts and means of t and the guess of t−1; `settle` then
// computes the guess of t, unless line 3 forces exploration, which leaves the guess as it was.
#pragma once

#include <array>
#include <atomic>

#include "base/gaussian.hpp"
#include "base/least_pulled.hpp"
#include "paper/allocation.hpp"
#include "paper/arms.hpp"
#include "paper/guess.hpp"
#include "paper/maximin.hpp"

namespace coterie::paper {

/// Sampling rules; Python has the numbers in coterie.methods.paper.
enum class Rule : Index { boc, linear, uniform, oracle };

/// Entries of a script: a result nobody asked for, one that was asked for, an ask, a pull given up.
enum class Entry : Index { unasked, asked, ask, forget };

struct Statistic {
  double z1 = 0.0, z2 = 0.0, z = 0.0;  // Z1(t), Z2(t), Z(t)

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("z1", z1);
    visit("z2", z2);
    visit("z", z);
  }
};

/// Levels of both thresholds, and when each was met; see `Run::threshold`.
struct Levels {
  static constexpr Index KINDS = 2;  // proven, heuristic
  explicit Levels(Numbers level);

  Index size() const { return level.columns(); }
  bool all_met() const { return met[0] == level.columns() && met[1] == level.columns(); }

  Numbers level;                 // (2, L) in increasing order
  std::array<Index, KINDS> met;  // how many of each kind
  Table<Index> stops;            // (2, L) the t at which
  Table<Index> correct;          // (2, L) whether the guess was the truth then

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("met", met);
    visit("stops", stops);
    visit("correct", correct);
  }
};

/// A known instance, whose results are standard Gaussian about the centers.
struct World {
  const double* centers;  // (K, d)
  std::span<const Index> truth;
  Gaussian noise;
};

class Run {
 public:
  Run(Index n_arms, Index n_groups, Index dim, Rule rule, Numbers levels);
  Run(const Run&) = delete;  // parts refer to each other
  Run& operator=(const Run&) = delete;

  /// Linear exploration: no arm gets less than this share (proposition_distance).
  void set_floor(double floor) { allocation.floor = floor; }
  /// The true labels, and λ* of an arm of each group.
  void set_oracle(std::span<const Index> labels, ConstRow shares);

  /// Simulate up to so many measurements, stopping early once all levels are met or `cancel` was called from another
  /// thread. The first arms are noted in `pulled`, as many as fit. Returns the arm that comes next.
  Index play(Index steps, World& world, std::span<Index> pulled);
  /// Follow a script of entries (`what`), each about an arm; an ask for arm -1 is for the one that the rule says.
  /// INOUT: arms. Returns the next arm, or −1−i if entry i asks for another arm than the rule does.
  Index follow(std::span<Index> arms, std::span<const Index> what, const double* values);
  /// Count a pull of the arm as under way (+1) or as given up (−1).
  void commit(Index arm, Index change);
  /// From any thread: end what is under way after the present measurement, for good.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  /// After the fields were loaded: make anew what is derived. False if they are not those of such a run.
  bool restored();

  Index t() const { return t_; }
  Index pending() const { return pending_; }
  bool ready() const { return ready_ && unseen_ == 0; }
  bool certified() const { return certified_; }
  const Statistic& statistic() const { return statistic_; }

  const Rule rule;
  Arms arms;
  Guess guess;
  Maximin maximin;
  Allocation allocation;
  Levels levels;
  Zeros<double> origin;           // (d) the first measurement
  std::atomic<bool> used{false};  // by a thread, now (base/in_use.hpp)

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("t", t_);
    visit("unseen", unseen_);
    visit("pending", pending_);
    visit("fresh", fresh_);
    visit("ready", ready_);
    visit("stale", stale_);
    visit("certified", certified_);
    visit("statistic", statistic_);
    visit("origin", origin);
    visit("arms", arms);
    visit("least_pulled", least_pulled_);
    visit("guess", guess);
    visit("maximin", maximin);
    visit("allocation", allocation);
    visit("levels", levels);
  }

 private:
  void settle();
  Index next_arm();
  void observe(Index arm, bool asked);
  void note_stops(std::span<const Index> truth);

  void refresh();
  void map_heaps();
  void place(ConstRow about);
  double closest_alternative() const;
  double exploration_floor(Index t) const;
  Index fewest_pulls() const;
  Index fewest_in_cluster(Index k) const;
  double threshold(Index kind, double level) const;
  bool explores_by_root() const { return rule == Rule::boc || rule == Rule::oracle; }
  Index resum_after() const;
  bool ended() const { return levels.all_met() || cancelled_.load(std::memory_order_relaxed); }

  Index t_ = 0;             // measurements so far
  Index unseen_;            // arms never measured
  Index pending_ = 0;       // pulls asked for and not yet told
  Index fresh_ = 0;         // every arm before this one has been asked for
  bool ready_ = false;      // there is a guess
  bool stale_ = false;      // lines 3 to 9 of Alg. 1 are due
  bool certified_ = false;  // the separation certificate proves the labels
  Statistic statistic_;
  LeastPulled least_pulled_;
  Zeros<Index> heap_of_;  // (K) which heap holds exactly the arms of this cluster, -1 if none does
  Zeros<double> x_;       // (d) the measurement, relative to the origin
  std::atomic<bool> cancelled_{false};
};

}  // namespace coterie::paper
