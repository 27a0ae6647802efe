"""Do our means agree with the printed ones? The family of all means of a table is judged at once.

One mean in a few hundred is beyond 3 standard errors by chance, and a table has 40, so that "every mean within 3" fails
now and then though nothing is wrong. The level here is for the farthest of them all: if the paper's trials and ours
have the same law, any mean of the table is beyond it with probability at most `FALSE_ALARM`.

The level is the larger of two, because either alone can be too low.

*By formula.* A difference of two means over its pooled standard error follows Student's law, for normal trials with
n + 256 − 2 degrees of freedom. Šidák's inequality: of jointly normal variables, however correlated, all stay within c
with at least the probability that independent ones would. So c is that quantile of one whose probability is the m-th
root of 1 − `FALSE_ALARM`, m the number of means. One trajectory of ours serves every δ of a row; whether those of the
paper did is not known, and need not be.

*By the trials.* On Yeast stops come in lumps, some thousand measurements apart, and a mean of few lumps is not normal.
So draw, many times, n trials of ours with replacement, as whole rows (with the correlation that they have), and 256
others in each column for itself (as little correlation as the paper's can have); compute the farthest difference of the
table as for the real ones, and take the quantile. Both sides are drawn from ours, so the level does not know whether
ours agree with the printed ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.paper.printed import TRIALS
from coterie.problem.checks import FloatArray

FALSE_ALARM = 0.01
"""The probability that a table which agrees is said not to."""

DRAWS = 1000
"""Tables drawn from our trials: of the farthest differences some 10 are then beyond the level."""

CHUNK = 100


def family_level(rows: Sequence[FloatArray], false_alarm: float = FALSE_ALARM, seed: int = 0) -> float:
    """How many combined standard errors the farthest mean of a table may be off.

    `rows`: for each row of the table our trials as (trials, columns), whole trajectories; every column has a printed
    mean of 256 trials. The draws depend on the seed alone.
    """
    count = sum(row.shape[1] for row in rows)
    trials = min(row.shape[0] for row in rows)
    return max(by_formula(count, trials, false_alarm), by_trials(rows, false_alarm, seed))


def by_formula(count: int, trials: int, false_alarm: float = FALSE_ALARM) -> float:
    """Šidák's level for so many means, of so many trials each, beside printed ones of 256."""
    from scipy.stats import t

    own = -np.expm1(np.log1p(-false_alarm) / count)  # 1 − (1 − α)^(1/m)
    return float(t.isf(own / 2.0, trials + TRIALS - 2))


def by_trials(rows: Sequence[FloatArray], false_alarm: float = FALSE_ALARM, seed: int = 0) -> float:
    """The quantile of the farthest difference when both sides are drawn from our own trials."""
    rng = np.random.default_rng(seed)
    farthest = np.zeros(DRAWS)
    for row in rows:
        for start in range(0, DRAWS, CHUNK):
            farthest[start : start + CHUNK] = np.maximum(farthest[start : start + CHUNK], _farthest(row, CHUNK, rng))
    return float(np.quantile(farthest, 1.0 - false_alarm, method="higher"))


def _farthest(row: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Of so many drawn rows the farthest column, in combined standard errors; 0 where nothing varies."""
    n, columns = row.shape
    ours = row[rng.integers(0, n, (draws, n))]
    theirs = row[rng.integers(0, n, (draws, TRIALS, columns)), np.arange(columns)]
    gap = ours.mean(axis=1) - theirs.mean(axis=1)
    error = combined_error(ours.std(axis=1, ddof=1 if n > 1 else 0), n, theirs.std(axis=1, ddof=1))
    found: FloatArray = np.abs(np.divide(gap, error, out=np.zeros_like(gap), where=error > 0)).max(axis=1)
    return found


def combined_error(std: FloatArray | float, trials: int, printed_std: FloatArray | float) -> FloatArray:
    """The standard error of the difference of a mean of ours and a printed one.

    Pooled: with few trials of a lumpy distribution (Yeast) the deviation of ours alone may be 0 by chance.
    """
    pooled = ((trials - 1) * np.square(std) + (TRIALS - 1) * np.square(printed_std)) / (trials + TRIALS - 2)
    found: FloatArray = np.sqrt(pooled * (1 / trials + 1 / TRIALS))
    return found
