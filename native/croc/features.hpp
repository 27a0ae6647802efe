// Features of a result: what else than its place may differ between groups (docs/EVIDENCE.md, section 3).
//
// With z = (x − o)/s, number by number: seven bounded or slowly growing functions of each number and, of each two, the
// product of their tanh; in many dimensions random waves instead. A feature is told apart by its name in the log, and
// the verifier has the formulas once more (coterie.certificate.arithmetic.features).
#pragma once

#include <string>
#include <vector>

#include "base/table.hpp"

namespace coterie::croc {

class Features {
 public:
  static constexpr Index MOST = 64;  // features of a result
  static constexpr Index OF_A_NUMBER = 7;
  static constexpr Index SEED = 1;    // of the random waves
  static constexpr double FAR = 1e6;  // |z| counts for no more: nothing overflows

  explicit Features(Index dim);

  Index dim() const { return dim_; }
  Index size() const { return size_; }
  bool are_random() const { return waves_.rows() > 0; }
  std::vector<std::string> names() const;
  /// φ of a result at this position; o = middle, s = scale. OUT: out (D).
  void fill(ConstRow position, ConstRow middle, ConstRow scale, Row out) const;

 private:
  Index dim_, size_;
  Numbers waves_;  // (D, d + 1) ω, then τ; empty if the features are not random
};

}  // namespace coterie::croc
