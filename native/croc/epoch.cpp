#include "croc/epoch.hpp"

namespace coterie::croc {

Tests::Tests(Index rows, Index columns, Index n_kept, bool with_bound)
    : met(rows, columns), weight(rows, columns), kept(rows, columns, n_kept), last(rows, columns) {
  if (with_bound) bound = Table<Index>(rows, columns);
}

Epoch::Epoch(Index n_arms, Index n_groups, Index dim, Index kept, Index n_shared, bool with_bound,
             const Constants& constants)
    : labels(n_arms),
      totals(n_groups),
      centers(n_groups, dim),
      core(n_groups * constants.core_room()),
      in_core(n_arms),
      against_group(n_arms, n_groups, kept, false),
      against_core(n_arms, n_groups, kept, with_bound),
      core_pairs(core.size(), core.size(), kept, with_bound),
      shared(n_shared) {
  core.fill(-1);
}

}  // namespace coterie::croc
