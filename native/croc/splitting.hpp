// What a partition is worth, and the best way to cut a group in two: the posterior behind the estimate and its risk.
//
// Let the sizes of the groups be uniformly distributed, then the partition among those of its sizes, and the centers
// flat. The posterior of a partition is then, up to a constant, Π n_k!·W_k^(−d/2)·exp(−½·cost): the likelihood of the
// best centers, times what a center costs that is fitted to W_k results, times the share of one partition among all of
// its sizes (docs/CROC.md, section 7). Without the last factor a group of n arms gains about 0.32·n by being cut in two
// by chance (d = 1), and nothing pays for the choice among 2^(n−1) cuts. Nothing here enters the proof.
#pragma once

#include "croc/state.hpp"

namespace coterie::croc {

/// log((a+b)!/(a!·b!)): in how many ways a group of a + b arms is cut into a and b.
double log_ways(const State& s, Index a, Index b);
/// By how much log posterior grows if a group is cut into a and b arms. `gain`: by how much the cost falls; `weight`:
/// W_a·W_b/(W_a+W_b) of the parts.
double cut_worth(const State& s, double gain, Index a, Index b, double weight);
/// Of a partition, up to a constant: −½·cost + Σ log n_k! − (d/2)·Σ log W_k.
double log_posterior(const State& s, double cost, std::span<const Index> sizes, ConstRow totals);
/// By how much the cost falls if an arm leaves its group for one of its own.
double cost_alone(ConstRow point, double weight, ConstRow center, double total);

struct Cut {
  double gain;    // in cost
  double weight;  // W_a·W_b/(W_a+W_b)
  Index size;     // arms of the part
};
/// Cut group k, the first `size` of work.members, in two, beginning with its costliest arm alone. OUT: work.inside.
Cut two_means(State& s, const Numbers& centers, ConstRow totals, Index k, Index size, Index farthest);

}  // namespace coterie::croc
