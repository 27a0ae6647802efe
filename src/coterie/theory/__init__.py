"""The paper's formulas, stateless: closest alternative, hardness and allocation, thresholds, projection.

`hardness`, `allocation` and `lower_bound` are imported from `coterie.theory.hardness`, not from here: two of
them would hide the modules of the same name.
"""

from __future__ import annotations

from coterie.theory.allocation import Allocation, solve_allocation
from coterie.theory.alternative import Alternative, alternative_value, closest_alternative
from coterie.theory.projection import project_to_floor
from coterie.theory.thresholds import psi, threshold, threshold_from_log

__all__ = [
    "Allocation",
    "Alternative",
    "alternative_value",
    "closest_alternative",
    "project_to_floor",
    "psi",
    "solve_allocation",
    "threshold",
    "threshold_from_log",
]
