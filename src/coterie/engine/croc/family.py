"""A family of evidence: what knows the noise, as small kernels that the planner calls by their address.

The planner, `drive`, is compiled once; a further family compiles its own kernels only, when it is first used. What a
family brings (docs/CROC.md, section 15):

- `factor`: what a complete round does to one test. It adds to the numbers that the test keeps and returns the test's
  log-evidence. This alone enters the proof.
- `pulls_needed`: how many pulls of an arm a test is expected to need, for the sampler.
- `bet` and `score`, if contrasts of means are not enough: numbers that are fixed when a round is composed, and what
  each result of the round then adds to the scores of its arm, and of the round.
- `pool`: how the scores of an arm go into those of a pool, if they are not simply added up.
- `freeze` and `gather`: numbers that all tests of an epoch share, at the freeze, and after each complete round; and
  `quality`: what they are still worth, so that the candidate is frozen again if they were poor.

A family whose noise has no known size has its metric estimated as results come in (`coterie.engine.croc.metric`): the
estimate, the risk and the forecasts then work in units of the noise as it is seen.

With a `variance_share`, pairs from the start are in units of an upper bound on the variance
(`coterie.engine.croc.variance_bound`).

A family without pairs from the start has `pair_share` 0: their level is then infinite, and all of δ is for the tests.
The kernels of a known covariance, `KNOWN_COVARIANCE`, are compiled into the planner (address 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import types

from coterie.engine.compiled import Kernel, call_by_address
from coterie.engine.state import Floats, Ints

# Places of the kernels' addresses in `Work.kernels`.
FACTOR, PULLS_NEEDED, BET, SCORE, POOL, FREEZE, GATHER, QUALITY = 0, 1, 2, 3, 4, 5, 6, 7
N_KERNELS = 8

_FLOAT, _INT, _FLOATS, _TABLE = types.float64, types.int64, types.float64[::1], types.float64[:, ::1]

FACTOR_SIGNATURE = _FLOAT(
    _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS,
    _FLOAT, _FLOAT, _FLOAT, _FLOAT, _FLOAT, _FLOAT, _INT, _INT,
)  # fmt: skip
"""factor(contrast, guess, arm_scores, pool_scores, bet, shared, learned, kept, parameters,
arm_pulls, pool_pulls, spread, weight, level, share, home, k): what a complete round does to one test.

`contrast`: C_r, the mean of the round's results of the arm minus that of the pool; `guess` and `spread`: θ0 and τ² of
the freeze; `arm_scores`, `pool_scores`: scores over the results of each side; `bet`: of the round; `shared`: of the
epoch; `learned` (INOUT): what the family learns over all rounds, for later bets; `kept` (INOUT): what the test keeps,
zeros before its first round; `arm_pulls`, `pool_pulls`: a and A, so that v = 1/a + 1/A; `weight`: n = Σ 1/v, with this
round; `level`: what the test has to reach; `share`: 1 if that is b, ½ if it is b/2; `home`, `k`: the group of the arm,
and that of the pool. Returns log E, or, below the level, any upper bound on it that is below too.
"""
PULLS_NEEDED_SIGNATURE = _FLOAT(_FLOATS, _FLOAT, _FLOAT, _FLOAT, _INT)
"""pulls_needed(parameters, level, square, pool, dim): pulls of an arm that a test at this level is expected to need.

`square`: the squared distance of the two means; `pool`: pulls of the pool for each pull of the arm. Nothing in it
enters the proof.
"""
BET_SIGNATURE = types.void(_TABLE, _FLOATS, _TABLE, _FLOATS, _FLOATS, _FLOATS)
"""bet(centers, totals, metric, learned, parameters, bet): what the round's tests will be judged by, fixed with it.

`centers`, `totals`: Û and W of the candidate's groups, from all results that have counted; `metric`: T with
T'·T = Σ̂⁻¹, if the metric is estimated. OUT: bet.
"""
SCORE_SIGNATURE = types.void(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _INT)
"""score(position, bet, shared, parameters, scores, round_scores, home): add a result of the round to the scores.

`position` is in the coordinates of the centers that `bet` was given. INOUT: `scores`, of its arm; `round_scores`.
"""
POOL_SIGNATURE = types.void(_FLOATS, _FLOATS, _FLOATS)
"""pool(scores, parameters, pooled): take the scores of an arm into those of a pool, zeros at first. INOUT: pooled."""
FREEZE_SIGNATURE = types.void(_TABLE, _FLOATS, _TABLE, _FLOATS, _FLOATS)
"""freeze(centers, totals, metric, parameters, shared): what the tests of a new epoch share. OUT: shared."""
GATHER_SIGNATURE = types.void(_FLOATS, _FLOAT, _FLOATS, _FLOATS)
"""gather(round_scores, results, parameters, shared): a complete round, of so many results. INOUT: shared."""

QUALITY_SIGNATURE = _FLOAT(_TABLE, _TABLE, _TABLE, _FLOAT, _FLOATS, _FLOATS, _INT, _INT)
"""quality(centers, metric, scatter, degrees, parameters, shared, home, k): how good what was frozen still is.

As a share of the growth that the tests between two groups would have if the epoch were frozen now. Nothing in it enters
the proof.
"""

factor_at = call_by_address(FACTOR_SIGNATURE)
pulls_needed_at = call_by_address(PULLS_NEEDED_SIGNATURE)
bet_at = call_by_address(BET_SIGNATURE)
score_at = call_by_address(SCORE_SIGNATURE)
pool_at = call_by_address(POOL_SIGNATURE)
freeze_at = call_by_address(FREEZE_SIGNATURE)
gather_at = call_by_address(GATHER_SIGNATURE)
quality_at = call_by_address(QUALITY_SIGNATURE)

FULL, DIAGONAL, SCALAR = 0, 1, 2  # what an estimated metric may be


@dataclass(frozen=True)
class Family:
    """Evidence for one kind of noise, for runs of one shape. A kernel that is None is that of a known covariance."""

    name: str
    pair_share: float
    """α: the share of δ for pairs from the start, whose evidence is that of a known covariance; 0: no such pairs."""
    variance_share: float = 0.0
    """w: the share of δ for an upper bound on the variance, in units of which pairs from the start are; 0: none.

    The metric is then estimated, and its shape is SCALAR, one bound, or DIAGONAL, one for each coordinate.
    """
    factor: Kernel | None = None
    pulls_needed: Kernel | None = None
    bet: Kernel | None = None
    score: Kernel | None = None
    pool: Kernel | None = None
    freeze: Kernel | None = None
    gather: Kernel | None = None
    quality: Kernel | None = None
    kept: int | None = None
    """Numbers that a test keeps; None: d."""
    bet_size: int = 0
    scores: int = 0
    """Scores of an arm in a round."""
    round_scores: int = 0
    shared: int = 0
    """Numbers that the tests of an epoch share."""
    learned: int = 0
    """Numbers that the family learns over all rounds."""
    parameters: tuple[float, ...] = ()
    estimated: bool = False
    """Whether results come without a known size of the noise: the metric is then estimated."""
    metric_shape: int = FULL
    winsorised: bool = False
    """Whether far results are pulled in for the estimate and the bets; never in the evidence."""
    shuffled: bool = False
    """Whether the asks of a round come in a random order, so that a drift within the round does no harm."""
    from_zero: bool = False
    """Whether positions count from zero, not from the first result: for kernels that need the results themselves."""
    pools_by_growth: bool = False
    """Whether the pools of a round are as large as `pulls_needed` says that they pay."""
    arm_scales: bool = False
    """Whether the first score of an arm is its pulls times the variance of its results, fixed with the round."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.pair_share < 1.0:
            raise ValueError(f"pair_share must lie in [0, 1), got {self.pair_share!r}")
        if not 0.0 <= self.variance_share < 1.0 - self.pair_share:
            raise ValueError(f"variance_share must lie in [0, 1 - pair_share), got {self.variance_share!r}")
        if self.variance_share > 0.0 and not (self.estimated and self.metric_shape != FULL and self.factor is not None):
            raise ValueError(f"the family {self.name!r} has a variance_share: its metric must be estimated, not full")
        if self.factor is None and self.kept is not None:
            raise ValueError(f"the family {self.name!r} keeps {self.kept} numbers a test, but has no kernel 'factor'")
        for name, kernel, size in (
            ("bet", self.bet, self.bet_size),
            ("score", self.score, self.scores + self.round_scores - self.arm_scales),
            ("freeze", self.freeze, self.shared),
        ):
            if (kernel is None) != (size == 0):
                raise ValueError(f"the family {self.name!r} needs both a kernel {name!r} and room for it, or neither")

    @property
    def _places(self) -> tuple[Kernel | None, ...]:
        planned = (self.factor, self.pulls_needed, self.bet, self.score)
        return (*planned, self.pool, self.freeze, self.gather, self.quality)

    @property
    def kernels(self) -> list[Kernel]:
        """Those that it brings."""
        return [kernel for kernel in self._places if kernel is not None]

    def addresses(self) -> Ints:
        """The addresses of the kernels in this process, 0 for what is compiled into the planner or absent."""
        return self.stand_ins(lambda kernel: kernel.address)

    def stand_ins(self, number_of: Callable[[Kernel], int]) -> Ints:
        """A number for each kernel, 0 for what is compiled into the planner or absent."""
        numbers = [0 if kernel is None else number_of(kernel) for kernel in self._places]
        return np.array(numbers, dtype=np.int64)

    def parameter_array(self) -> Floats:
        """The parameters as the kernels get them."""
        return np.array(self.parameters, dtype=np.float64)
