"""The paper's stopping rule, Z(t) ≥ β(δ, t), in the form that the engine checks: one level for each δ.

The part of the threshold that depends on δ is constant over a run, M·d·Ψ(log(1/δ)/(M·d)) for β
(equation_beta) and log(1/δ) for β̃; the engine adds the part that grows with the counts. So one trajectory
serves every δ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.problem.checks import FloatArray
from coterie.theory.thresholds import psi

KINDS = ("proven", "heuristic")
"""In the order of the rows that the engine takes."""


def levels_for(kinds: Sequence[str], log_inverse_deltas: Sequence[float], n_arms: int, dim: int) -> FloatArray:
    """(2, L) levels for increasing log(1/δ); the row of a threshold that is not asked for is NaN."""
    levels = np.full((2, len(log_inverse_deltas)), np.nan)
    if "proven" in kinds:
        md = n_arms * dim
        levels[0] = [md * psi(value / md) for value in log_inverse_deltas]
    if "heuristic" in kinds:
        levels[1] = log_inverse_deltas
    return levels
