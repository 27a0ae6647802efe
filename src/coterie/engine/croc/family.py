"""A family of evidence: what knows the noise, as small kernels that the planner calls by their address.

The planner, `drive`, is compiled once; a further family compiles its own kernels only, when it is first used. What a
family brings (docs/CROC.md, section 15):

- `factor`: what a complete round does to one test. It adds to the numbers that the test keeps and returns the test's
  log-evidence. This alone enters the proof.
- `pulls_needed`: how many pulls of an arm a test is expected to need, for the sampler.
- `bet` and `score`, if contrasts of means are not enough: numbers that are fixed when a round is composed, and what
  each result of the round then adds to the scores of its arm.

A family without pairs from the start has `pair_share` 0: their level is then infinite, and all of δ is for the tests.
The kernels of a known covariance, `KNOWN_COVARIANCE`, are compiled into the planner (address 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import types

from coterie.engine.compiled import Kernel, call_by_address
from coterie.engine.state import Floats, Ints

# Places of the kernels' addresses in `Work.kernels`.
FACTOR, PULLS_NEEDED, BET, SCORE = 0, 1, 2, 3
N_KERNELS = 4

_FLOAT, _INT, _FLOATS, _TABLE = types.float64, types.int64, types.float64[::1], types.float64[:, ::1]

FACTOR_SIGNATURE = _FLOAT(
    _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOAT, _FLOAT, _FLOAT, _FLOAT, _INT, _INT
)
"""factor(contrast, guess, arm_scores, pool_scores, bet, kept, parameters,
arm_pulls, pool_pulls, spread, weight, home, k): what a complete round does to one test.

`contrast`: C_r, the mean of the round's results of the arm minus that of the pool; `guess` and `spread`: θ0 and τ² of
the freeze; `arm_scores`, `pool_scores`: sums of scores over the results of each side; `bet`: of the round; `kept`
(INOUT): what the test keeps, zeros before its first round; `arm_pulls`, `pool_pulls`: a and A, so that v = 1/a + 1/A;
`weight`: n = Σ 1/v, with this round; `home`, `k`: the group of the arm, and that of the pool. Returns log E.
"""
PULLS_NEEDED_SIGNATURE = _FLOAT(_FLOATS, _FLOAT, _FLOAT, _FLOAT, _INT)
"""pulls_needed(parameters, level, square, pool, dim): pulls of an arm that a test at this level is expected to need.

`square`: the squared distance of the two means; `pool`: arms of the pool's group. Nothing in it enters the proof.
"""
BET_SIGNATURE = types.void(_TABLE, _FLOATS, _FLOATS, _FLOATS)
"""bet(centers, totals, parameters, bet): what the round's tests will be judged by, fixed when the round is composed.

`centers`, `totals`: Û and W of the candidate's groups, from all results that have counted. OUT: bet.
"""
SCORE_SIGNATURE = types.void(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _INT)
"""score(position, bet, parameters, scores, home): add a result of the round to the scores of its arm. INOUT: scores.

`position` is in the coordinates of the centers that `bet` was given.
"""

factor_at = call_by_address(FACTOR_SIGNATURE)
pulls_needed_at = call_by_address(PULLS_NEEDED_SIGNATURE)
bet_at = call_by_address(BET_SIGNATURE)
score_at = call_by_address(SCORE_SIGNATURE)


@dataclass(frozen=True)
class Family:
    """Evidence for one kind of noise, for runs of one shape. A kernel that is None is that of a known covariance."""

    name: str
    pair_share: float
    """α: the share of δ for pairs from the start, whose evidence is that of a known covariance; 0: no such pairs."""
    factor: Kernel | None = None
    pulls_needed: Kernel | None = None
    bet: Kernel | None = None
    score: Kernel | None = None
    kept: int | None = None
    """Numbers that a test keeps; None: d."""
    bet_size: int = 0
    scores: int = 0
    """Scores of an arm in a round."""
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.pair_share < 1.0:
            raise ValueError(f"pair_share must lie in [0, 1), got {self.pair_share!r}")
        if self.factor is None and self.kept is not None:
            raise ValueError(f"the family {self.name!r} keeps {self.kept} numbers a test, but has no kernel 'factor'")
        for name, kernel, size in (("bet", self.bet, self.bet_size), ("score", self.score, self.scores)):
            if (kernel is None) != (size == 0):
                raise ValueError(f"the family {self.name!r} needs both a kernel {name!r} and room for it, or neither")

    def addresses(self) -> Ints:
        """The addresses of the kernels in this process, 0 for what is compiled into the planner or absent."""
        kernels = (self.factor, self.pulls_needed, self.bet, self.score)
        return np.array([0 if kernel is None else kernel.address for kernel in kernels], dtype=np.int64)

    def parameter_array(self) -> Floats:
        """The parameters as the kernels get them."""
        return np.array(self.parameters, dtype=np.float64)
