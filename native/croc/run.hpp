// One CROC run: a conversation of asks and results, live, recorded or simulated.
//
// Results come in the ask order of each arm, as 2·d numbers: whitened, and what floats do not hold of that.
#pragma once

#include <atomic>
#include <optional>

#include "base/gaussian.hpp"
#include "croc/state.hpp"

namespace coterie::croc {

/// Kinds of entries of a conversation; Python has the numbers in coterie.methods.records.
enum class Kind : Index {
  ask,
  result,
  give_up,
  look  // see whether the results so far prove the groups
};

/// Why `follow` came back: at the end of the entries, after a freeze or a new round, because the groups are proven
/// (when a result came, or when an arm was asked for), or at an ask for another arm.
enum class Stop : Index { ended, decided, proven, proven_asking, other_arm };

/// Part of a conversation, in the order in which its entries count, and where a run is in it.
struct Entries {
  Kind kind(Index i) const { return Kind{kinds[i]}; }
  /// The round of the ask that entry i is about, 0 for none.
  Index round_of(Index i) const { return std::max(rounds[ask[i] >= 0 ? ask[i] : i], Index(0)); }

  Index at = 0;                    // entries before this one are done
  bool applying = false;           // a record is brought back: the rule is not consulted
  std::span<const Index> kinds;    // (n)
  std::span<Index> arms;           // (n) of an ask: −1 if it is not known; OUT: the arm asked for
  std::span<Index> rounds;         // (n) of an ask: OUT, or, applying, the recorded round; else without `ask`: its
  std::span<const Index> ask;      // (n) the entry of the ask that this one is about, −1 if it is not in here
  std::span<const Index> asked;    // (n) 1 if a result answers an ask
  const double* values = nullptr;  // (n, 2·d)
};

/// A known instance, whose results are standard Gaussian about the centers.
struct World {
  const double* centers;  // (K, d)
  std::span<const Index> truth;
  Gaussian noise;
};

struct RecordedFreeze {
  std::span<const Index> labels;          // (M) of the candidate
  std::vector<std::vector<Index>> cores;  // (K) arms
  double level;
  ConstRow shared;  // what the family had fixed with it
};

class Run {
 public:
  /// See `State`.
  Run(Index n_arms, Index n_groups, Index dim, double log_inverse_delta, std::shared_ptr<const Family> family,
      ConstRow prices, const Constants& constants, bool with_pairs = true);

  /// The next arm and its round (0: none), which count as under way; none if all is proven.
  std::optional<Asked> pop();
  /// Whether that arm is planned already: no plan is made for it.
  bool is_planned() const;
  /// Take in a result, of d or 2·d numbers, then plan if it is due.
  void absorb(Index arm, ConstRow value, Index of_round, bool asked);
  /// A pull under way will not come: a round asks for it again.
  void give_up(Index arm, Index of_round);
  /// See whether the results so far prove the groups; plan if nothing is planned.
  void look();
  /// Go on with these entries until something is decided.
  Stop follow(Entries& entries);
  /// Simulate up to so many results.
  void play(Index steps, World& world);

  // What was recorded, brought back without consulting the rule.
  void apply_first(Entries& entries, ConstRow origin);
  void apply_freeze(const RecordedFreeze& recorded);
  /// False if too many rounds are open. `bet`: what the family had fixed with it, and then the arms' scales.
  bool apply_round(Index epoch, std::span<const Index> composition, ConstRow bet);
  void apply_alarm(std::span<const Index> arms);
  /// A guess of the groups from what was applied, if every arm was measured.
  void estimate();
  /// This arm represents its group from now on; nothing is known of its pairs.
  void represent(Index group, Index arm);
  /// The evidence of an arm against the representative of a group, found at these counts.
  void settle(Index arm, Index group, double evidence, PairCounts counts);
  /// A pair from the start, at these counts, meets the test of two core arms.
  void meet_core_pair(Index e, Index i, Index j, PairCounts counts);

  /// A forecast of the pulls still needed; NaN if unknown.
  double pulls_left();
  /// A forecast of what is still to be spent, in units of the cheapest arm; NaN if unknown.
  double cost_left();
  /// The arms that will be asked for before the next plan, at most so many, with one worker. Nothing is asked for.
  std::vector<Index> planned(Index most);
  /// Whether there is an estimate.
  bool ready() const { return state.estimate.at > 0 && state.arms.unseen == 0; }
  /// Whether a round is complete and has been used.
  bool is_closed(Index number) const;
  /// The slot of the epoch whose candidate is the present estimate, −1 if there is none.
  Index matching_epoch();
  /// After the fields were loaded: whether they are those of such a run, as far as indices go.
  bool is_sound() const;

  State state;
  std::atomic<bool> used{false};  // by a thread, now (base/in_use.hpp)

  template <class Visit>
  void each_field(Visit&& visit) {
    state.each_field(visit);
  }

 private:
  /// Every step asks this first: none goes on after one that broke off.
  bool is_done() const {
    state.check_whole();
    return state.proof != Proof::none;
  }
  std::optional<Asked> next();
  std::optional<Asked> ask();
  bool count(const Entries& entries, Index i);
  bool take(Index arm, ConstRow value, Index of_round, bool asked);
  void apply(const Entries& entries, Index i);
  void open_recorded(Index arm, Index of_round);
  void plan_if_none();
  double left_at(ConstRow price);

  Zeros<double> x_;  // (2·d) a result
};

}  // namespace coterie::croc
