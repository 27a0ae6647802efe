#include "shortlist/partitions.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/geometry.hpp"

namespace coterie::shortlist {

Partitions::Partitions(Table<Index> listed, Index n_groups, Index dim, ConstRow scales)
    : n_groups_(n_groups),
      dim_(dim),
      listed_(std::move(listed)),
      weights_(size(), n_groups),
      centers_(size(), n_groups, dim),
      parts_(n_groups, dim, scales),
      log_factorial_(n_arms() + 1),
      terms_(size()),
      counts_(n_groups),
      gain_(n_groups),
      precision_(n_groups),
      results_(n_groups, dim),
      home_(n_groups),
      size_(n_groups) {
  for (Index n = 0; n <= n_arms(); ++n) log_factorial_[n] = std::lgamma(static_cast<double>(n) + 1.0);
}

/// W and Û of the groups of a partition.
void Partitions::take_pieces(Index c, const Results& so_far) {
  const Labels labels = std::as_const(listed_)[c];
  std::ranges::fill(weights_[c], 0.0);
  for (Index k = 0; k < n_groups_; ++k) std::ranges::fill(centers_(c, k), 0.0);
  for (Index m = 0; m < n_arms(); ++m) {
    const Row center = centers_(c, labels[m]);
    const ConstRow sum = so_far.sum(m);
    weights_(c, labels[m]) += so_far.counts[m];
    for (Index q = 0; q < dim_; ++q) center[q] += sum[q];
  }
  for (Index k = 0; k < n_groups_; ++k)
    for (double& each : centers_(c, k)) each /= weights_(c, k);
}

void Partitions::log_posterior(std::span<const Index> blocks, const Results& so_far, Row found) {
  const Index last = std::ranges::max(blocks);
  for (Index c = 0; c < size(); ++c) {
    take_pieces(c, so_far);
    std::ranges::fill(size_, 0);
    for (Index m = 0; m < n_arms(); ++m) {
      home_[listed_(c, m)] = blocks[m];
      ++size_[listed_(c, m)];
    }
    double value = 0.0;
    for (Index k = 0; k < n_groups_; ++k) {
      const double weight = weights_(c, k);
      for (const double each : centers_(c, k)) value += 0.5 * weight * (each * each);
      value += log_factorial_[size_[k]] - 0.5 * static_cast<double>(dim_) * std::log(weight);
    }
    for (Index block = 0; block <= last; ++block) value += block_logs(c, block);
    found[c] = value;
  }
}

/// log of the mean, over the scales, of the density of the contrasts of the centers of a block; 0 if it is one group.
double Partitions::block_logs(Index c, Index block) {
  parts_.clear();
  for (Index k = 0; k < n_groups_; ++k)
    if (home_[k] == block) parts_.add(k, weights_(c, k), centers_(c, k));
  return parts_.count() > 1 ? log_sum(parts_.scale_logs()) - std::log(static_cast<double>(parts_.n_scales())) : 0.0;
}

/// The groups of a rival with a positive count are the parts.
void Partitions::take_parts(Index rival, ConstRow counts) {
  parts_.clear();
  for (Index k = 0; k < n_groups_; ++k)
    if (counts[k] > 0.0) parts_.add(k, weights_(rival, k), centers_(rival, k));
}

/// log of Π over groups of the null: density of the round's contrasts under the rival over that under the null.
double Partitions::log_ratio(Index null, Index rival, const Results& round) {
  const Labels own = std::as_const(listed_)[null], other = std::as_const(listed_)[rival];
  double found = 0.0;
  for (Index g = 0; g < n_groups_; ++g) {
    std::ranges::fill(counts_, 0.0);
    results_.fill(0.0);
    for (Index m = 0; m < n_arms(); ++m) {
      if (own[m] != g || !(round.counts[m] > 0.0)) continue;
      const Row result = results_[other[m]];
      const ConstRow sum = round.sum(m);
      counts_[other[m]] += round.counts[m];
      for (Index q = 0; q < dim_; ++q) result[q] += sum[q];
    }
    take_parts(rival, counts_);
    const Index parts = parts_.count();
    if (parts < 2) continue;
    const Row precision = Row(precision_).first(parts);
    for (Index j = 0; j < parts; ++j) {  // a part's group is at least j: rows move up
      precision[j] = counts_[parts_.group(j)];
      for (Index q = 0; q < dim_; ++q) results_(j, q) = results_(parts_.group(j), q) / precision[j];
    }
    const double under_null = contrast_log(precision, results_);
    const Row logs = parts_.scale_shares();
    for (Index r = 0; r < parts_.n_scales(); ++r) {
      const double scale = parts_.scale(r);
      for (Index j = 0; j < parts; ++j) {
        const double spread = 1.0 / (parts_.weight(j) + 1.0 / scale);  // of the center of the part, given its place
        precision[j] = 1.0 / (spread + 1.0 / counts_[parts_.group(j)]);
      }
      Numbers& off = parts_.centers_given(scale);
      for (Index j = 0; j < parts; ++j)
        for (Index q = 0; q < dim_; ++q) off(j, q) = results_(j, q) - off(j, q);
      logs[r] += contrast_log(precision, off);
    }
    found += log_sum(logs) - under_null;
  }
  return found;
}

void Partitions::round_logs(std::span<const Index> alive, ConstRow chance, const Results& before, const Results& round,
                            Row found) {
  for (Index c = 0; c < size(); ++c)
    if (chance[c] > 0.0) take_pieces(c, before);
  for (Index null = 0; null < size(); ++null) {
    found[null] = 0.0;
    if (alive[null] == 0) continue;
    double mass = 0.0;
    for (Index c = 0; c < size(); ++c) {
      terms_[c] = -INFINITE;
      if (c == null || !(chance[c] > 0.0)) continue;
      terms_[c] = std::log(chance[c]) + log_ratio(null, c, round);
      mass += chance[c];
    }
    if (mass > 0.0) found[null] = log_sum(terms_) - std::log(mass);
  }
}

/// What a pull of each arm adds to log E(null) if the rival is true, counts being as they are, times the factor.
void Partitions::add_growth(Duel duel, const Results& so_far, double factor, double least_log, Row growth) {
  const Labels own = std::as_const(listed_)[duel.null], other = std::as_const(listed_)[duel.rival];
  for (Index g = 0; g < n_groups_; ++g) {
    std::ranges::fill(counts_, 0.0);
    std::ranges::fill(gain_, 0.0);
    for (Index m = 0; m < n_arms(); ++m)
      if (own[m] == g) counts_[other[m]] += so_far.counts[m];
    take_parts(duel.rival, counts_);
    if (parts_.count() < 2) continue;
    const Row logs = parts_.scale_shares();
    for (Index r = 0; r < parts_.n_scales(); ++r) {
      if (logs[r] < least_log) continue;
      const double half_share = std::exp(logs[r]) * 0.5;
      const Numbers& off = parts_.centers_given(parts_.scale(r));
      for (Index q = 0; q < dim_; ++q) {
        double middle = 0.0, all = 0.0;
        for (Index j = 0; j < parts_.count(); ++j) {
          middle += counts_[parts_.group(j)] * off(j, q);
          all += counts_[parts_.group(j)];
        }
        middle /= all;
        for (Index j = 0; j < parts_.count(); ++j) {
          const double gap = off(j, q) - middle;
          gain_[parts_.group(j)] += half_share * (gap * gap);
        }
      }
    }
    for (Index m = 0; m < n_arms(); ++m)
      if (own[m] == g) growth[m] += factor * gain_[other[m]];
  }
}

Duel Partitions::expected_growth(ConstRow urgency, ConstRow chance, const Results& so_far, LeftOut left_out,
                                 Row growth) {
  double most_urgent = 0.0, likeliest = 0.0, largest = -1.0;
  for (Index c = 0; c < size(); ++c) {
    most_urgent = std::max(most_urgent, urgency[c]);
    likeliest = std::max(likeliest, chance[c]);
  }
  std::ranges::fill(growth, 0.0);
  Duel top;
  for (Index c = 0; c < size(); ++c) {
    take_pieces(c, so_far);
    for (Index h = 0; h < size(); ++h) {
      const double factor = urgency[h] * chance[c];
      if (c == h || factor <= left_out.small * most_urgent * likeliest) continue;
      add_growth({h, c}, so_far, factor, left_out.least_log, growth);
      if (factor > largest) {
        largest = factor;
        top = {h, c};
      }
    }
  }
  return top;
}

}  // namespace coterie::shortlist
