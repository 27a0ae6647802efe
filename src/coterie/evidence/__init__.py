"""Formulas without a state: the paper's, and evidence that holds for any rule of sampling and stopping.

| module | what is in it |
| --- | --- |
| `allocation` | D*, λ* and the lower bound of the paper |
| `stopping` | the paper's closest alternative and thresholds |
| `pairs` | evidence that two items differ |
| `intervals` | which pairs differ, and how far apart they can be, at every moment |
| `near_far` | tests that two means are near each other, or far apart |
| `exact` | tests of finished tables |
| `pair_graphs` | what follows from relations of pairs: letters, numbers of groups, single linkage |
| `homogeneity`, `hidden_bets`, `hidden_groups` | whether a group hides two |
| `order`, `faults` | whether results drift, depend on one another, are noisier than stated, or fail with their values |
| `item_means` | means with intervals for orientation, for pictures |

`allocation` is imported from `coterie.evidence.allocation`, not from here: it would hide the module of the same name.
"""

from __future__ import annotations

from coterie.evidence.allocation import Allocation, hardness, lower_bound, project_to_floor, solve_allocation
from coterie.evidence.stopping import (
    Alternative,
    alternative_value,
    closest_alternative,
    psi,
    threshold,
    threshold_from_log,
)

__all__ = [
    "Allocation",
    "Alternative",
    "alternative_value",
    "closest_alternative",
    "hardness",
    "lower_bound",
    "project_to_floor",
    "psi",
    "solve_allocation",
    "threshold",
    "threshold_from_log",
]
