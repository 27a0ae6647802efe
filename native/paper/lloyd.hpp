// The Lloyd passes of K-means–Maximin (Alg. 2, lines 5–8), remembered and brought up to date arm by arm.
//
// A pass remembers where its centers were when it last looked at every arm (its reference), and the half-margins there:
// an arm's is half of how much farther the second nearest center is than the nearest. While no center has gone that far
// from its reference, the arm's label stands. Most arms are far from a boundary: a pass lists the few that are close,
// and one number, the smallest half-margin of all others, vouches for the rest. So a measurement costs O(K·d) a pass
// for the centers, and again for each listed arm whose half-margin is used up; every arm is looked at when a center has
// gone farther than that one number. What a changed label does to the next pass is carried over as a difference.
#pragma once

#include "base/geometry.hpp"
#include "paper/arms.hpp"

namespace coterie::paper {

/// Passes that are remembered; a longer run of Alg. 2 is repeated from scratch each time.
inline constexpr Index MAX_PASSES = 64;

struct CloseArm {
  Index arm, label;    // … at the reference centers
  double half_margin;  // there

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("arm", arm);
    visit("label", label);
    visit("half_margin", half_margin);
  }
};

struct Pass {
  Pass(Index n_arms, Index n_groups, Index dim);

  Zeros<std::int32_t> labels;   // (M)
  Numbers centers;              // (K, d) now
  Numbers reference;            // (K, d) when the pass last looked at every arm
  Numbers sums;                 // (K, d) of the arms by the labels of the pass before
  Zeros<double> totals;         // (K) their pulls
  Index changes = 0;            // how many labels are not those of the pass before
  double margin = -1.0;         // smallest half-margin of the arms that are not listed; -1: look at every arm
  std::vector<CloseArm> close;  // the listed ones
  double quiet = 0.0;           // at most the smallest of theirs; -1 while a listed arm has left its label there
  Index spent = 0;              // close arms looked at since every arm was

  /// How far the center that moved most is from its reference.
  double drift() const;

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("labels", labels);
    visit("centers", centers);
    visit("reference", reference);
    visit("sums", sums);
    visit("totals", totals);
    visit("changes", changes);
    visit("margin", margin);
    visit("close", close);
    visit("quiet", quiet);
    visit("spent", spent);
  }
};

class Passes {
 public:
  Passes(Index n_arms, Index n_groups, Index dim);

  Index size() const { return used_; }
  Pass& operator[](Index p) { return passes_[p]; }
  const Pass& last() const { return passes_[used_ - 1]; }

  /// Add pass p, the last: the labels of the pass before, and the weighted sums that they give.
  void begin(Index p, const Arms& arms);
  /// The centers of a pass p > 0 from its sums; those of pass 0 are in place. True if a cluster is empty.
  bool set_centers(Index p);
  /// Alg. 2, line 6 for every arm at pass p's centers: labels, reference, close arms. True if a label changed.
  bool assign(Index p, const Arms& arms);
  /// The same labels, after few arms were touched: most often all stand. True if a label changed.
  bool bring_up_to_date(Index p, const Arms& arms);
  /// Carry one measurement into the sums of every pass.
  void add(Index arm, ConstRow x);
  /// Make room for one more pass: the last possible one takes the place before it.
  void shift_last();
  void keep_first(Index count) { used_ = count; }

  /// Whether what was loaded is about these arms and groups.
  bool is_sound() const;

  Index whole_looks = 0;  // passes of a replay that had to look at every arm

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("used", used_);
    visit("whole_looks", whole_looks);
    visit("pass", passes_, Pass(n_arms_, n_groups_, dim_));
    passes_.reserve(MAX_PASSES);
  }

 private:
  enum class Verdict { stands, look_at_close, look_at_all };

  Verdict judge(Pass& pass, const Arms& arms);
  bool look_at_close(Index p, const Arms& arms);
  bool list(Pass& pass, const CloseArm& its);
  void relabel(Index p, const Arms& arms, Index arm, Index label);
  Nearest nearest(const Arms& arms, Index arm, const Numbers& centers);

  Index n_arms_, n_groups_, dim_;
  Index most_listed_;  // half of it for arms that come close later
  Index used_ = 0;
  std::vector<Pass> passes_;
  Zeros<double> distances_;  // work space (K)
};

}  // namespace coterie::paper
