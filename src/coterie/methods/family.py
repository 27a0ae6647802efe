"""A family of evidence from outside the engine: what knows the noise, as small functions (docs/CROC.md, section 15).

docs/howto/researchers.md shows one. A kernel is a Python function, or the address of a C function
(native/croc/families/handed_in.hpp has the signatures; numba's ``cfunc`` and ctypes make such addresses). Python
functions get NumPy arrays of their own and write into those marked OUT or INOUT:

- ``factor(contrast, guess, arm_scores, pool_scores, bet, shared, learned, kept, parameters, arm_pulls, pool_pulls,
  spread, weight, level, share, home, k)``: what a complete round does to one test. It adds to the numbers that the test
  keeps and returns the test's log-evidence. `contrast`: C_r, the mean of the round's
  results of the arm minus that of the pool; `guess` and `spread`: θ0 and τ² of the freeze; `arm_scores`, `pool_scores`:
  scores over the results of each side; `bet`: of the round; `shared`: of the epoch; `learned` (INOUT): what the family
  learns over all rounds, for later bets; `kept` (INOUT): what the test keeps, zeros before its first round, and then
  one number that is the planner's; `arm_pulls`, `pool_pulls`: a and A, so that v = 1/a + 1/A; `weight`: n = Σ 1/v,
  with this round; `level`: what the test has to reach; `share`: 1 if that is b, ½ if it is b/2; `home`, `k`: the group
  of the arm, and that of the pool. Returns log E, or, below the level, any upper bound on it that is below too.
- ``pulls_needed(parameters, level, square, pool, dim)``: pulls of an arm that a test at this level is expected to need.
  `square`: the squared distance of the two means; `pool`: pulls of the pool for each pull of the arm.
- ``bet(centers, totals, metric, learned, parameters, bet)``: what the round's tests will be judged by, fixed when it is
  composed. `centers`, `totals`: Û and W of the candidate's groups, from all results that have counted; `metric`: T with
  T'·T = Σ̂⁻¹, if the metric is estimated. OUT: bet.
- ``score(position, bet, shared, parameters, scores, round_scores, home)``: add a result of the round to the scores, in
  the coordinates of the centers that `bet` was given. INOUT: scores, of its arm; round_scores.
- ``pool(scores, parameters, pooled)``: take the scores of an arm into those of a pool, zeros at first; without it they
  are added up. INOUT: pooled.
- ``freeze(centers, totals, metric, parameters, shared)``: numbers that all tests of a new epoch share. OUT: shared.
- ``gather(round_scores, results, parameters, shared)``: a complete round, of so many results. INOUT: shared.
- ``quality(centers, metric, scatter, degrees, parameters, shared, home, k)``: how good what was frozen still is, as a
  share of the growth that the tests between two groups would have if the epoch were frozen now.

Of all kernels only `factor`, with the scores and shared numbers that it reads, enters the proof.

If a kernel raises, whoever asked for the step gets the exception, and the run is of no more use: its next step says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coterie._native import CrocFamily, HandedInFamily
from coterie.problem.families import AtMost, Bounded, Counts, Exponential, Gaussian, Model, Poisson, Symmetric, Unknown

Kernel = Callable[..., Any] | int
"""A function, or the address of a C function, which must stay where it is as long as a run may call it."""


class Family(HandedInFamily):
    """Evidence for one kind of noise, handed in. A kernel that is None is that of a known covariance."""

    def __init__(
        self,
        name: str,
        pair_share: float,
        *,
        variance_share: float = 0.0,
        factor: Kernel | None = None,
        pulls_needed: Kernel | None = None,
        bet: Kernel | None = None,
        score: Kernel | None = None,
        pool: Kernel | None = None,
        freeze: Kernel | None = None,
        gather: Kernel | None = None,
        quality: Kernel | None = None,
        kept: int | None = None,
        bet_size: int = 0,
        scores: int = 0,
        round_scores: int = 0,
        shared: int = 0,
        learned: int = 0,
        parameters: Sequence[float] = (),
        estimated: bool = False,
        metric_shape: str = "full",
        winsorised: bool = False,
        shuffled: bool = False,
        from_zero: bool = False,
        trials: float = 0.0,
        pools_by_growth: bool = False,
        arm_scales: bool = False,
    ) -> None:
        """Say what the run has to know of it.

        Parameters
        ----------
        name
            For messages.
        pair_share
            α: the share of δ for pairs from the start, whose evidence is that of a known covariance; 0: no such pairs.
        variance_share
            w: the share of δ for an upper bound on the variance, in units of which pairs from the start are; 0: none.
            The metric is then estimated, and its shape is "scalar", one bound, or "diagonal", one for each coordinate.
        factor, pulls_needed, bet, score, pool, freeze, gather, quality
            The kernels: functions, or addresses of C functions.
        kept
            Numbers that a test keeps; None: d.
        bet_size, scores, round_scores, shared, learned
            How many numbers there are: in a bet, in the scores of an arm in a round and of all of a round, shared by
            the tests of an epoch, learned over all rounds.
        parameters
            Numbers that the kernels get.
        estimated
            Whether results come without a known size of the noise: the metric is then estimated.
        metric_shape
            What an estimated metric may be: "full", "diagonal" or "scalar".
        winsorised
            Whether far results are pulled in for the estimate and the bets; never in the evidence.
        shuffled
            Whether the asks of a round come in a random order, so that a drift within the round does no harm.
        from_zero
            Whether positions count from zero, not from the first result: for kernels that need the results themselves.
        trials
            Of a result that is a count of successes, which an estimated metric `from_zero` is about.
        pools_by_growth
            Whether the pools of a round are as large as `pulls_needed` says that they pay.
        arm_scales
            Whether the first score of an arm is its pulls times the variance of its results, fixed with the round.
        """
        if not 0.0 <= pair_share < 1.0:
            raise ValueError(f"pair_share must lie in [0, 1), got {pair_share!r}")
        if not 0.0 <= variance_share < 1.0 - pair_share:
            raise ValueError(f"variance_share must lie in [0, 1 - pair_share), got {variance_share!r}")
        if variance_share > 0.0 and not (estimated and metric_shape != "full" and factor is not None):
            raise ValueError(f"the family {name!r} has a variance_share: its metric must be estimated, not full")
        if factor is None and kept is not None:
            raise ValueError(f"the family {name!r} keeps {kept} numbers a test, but has no kernel 'factor'")
        if from_zero and estimated and not trials > 0.0:
            raise ValueError(f"the family {name!r} counts successes from zero: say out of how many trials")
        for kernel, given, size in (
            ("bet", bet, bet_size),
            ("score", score, scores + round_scores - arm_scales),
            ("freeze", freeze, shared),
        ):
            if (given is None) != (size == 0):
                raise ValueError(f"the family {name!r} needs both a kernel {kernel!r} and room for it, or neither")
        super().__init__(
            name,
            pair_share=pair_share, variance_share=variance_share, factor=factor, pulls_needed=pulls_needed, bet=bet,
            score=score, pool=pool, freeze=freeze, gather=gather, quality=quality, kept=-1 if kept is None else kept,
            bet_size=bet_size, scores=scores, round_scores=round_scores, shared=shared, learned=learned,
            parameters=list(parameters), estimated=estimated, metric_shape=metric_shape, winsorised=winsorised,
            shuffled=shuffled, from_zero=from_zero, trials=trials, pools_by_growth=pools_by_growth,
            arm_scales=arm_scales,
        )  # fmt: skip


def family_for(noise: Model, n_arms: int, n_clusters: int, dim: int) -> CrocFamily:
    """The family of evidence for a run of this size with this noise."""
    if not isinstance(noise, Unknown):
        return CrocFamily.known()
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return CrocFamily.gaussian(n_clusters, dim, stated.shape)
    if isinstance(stated, Counts):
        return CrocFamily.counts(n_clusters, dim, stated.trials)
    if isinstance(stated, Poisson):
        return CrocFamily.poisson(n_clusters, dim)
    if isinstance(stated, Exponential):
        return CrocFamily.exponential(n_clusters, dim)
    if isinstance(stated, Bounded):
        widths = tuple(high - low for low, high in zip(stated.lo, stated.hi, strict=True))
        return CrocFamily.bounded(n_clusters, dim, widths * dim if len(widths) == 1 else widths)
    if isinstance(stated, AtMost):
        return CrocFamily.at_most(n_clusters, dim)
    if isinstance(stated, Symmetric):
        return CrocFamily.symmetric(n_clusters, dim)
    return CrocFamily.any_noise(n_arms, n_clusters, dim, stated.shape)
