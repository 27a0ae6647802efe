"""The numbers that the paper prints, and whether our means agree with them: all means of a table are judged at once.

The printed numbers are means ± standard deviations of 256 trials, with the heuristic threshold. One mean in a few
hundred is beyond 3 standard errors by chance, and a table has 40, so that "every mean within 3" fails now and then
though nothing is wrong. The level here is for the farthest of them all: if the paper's trials and ours have the same
law, any mean of the table is beyond it with probability at most `FALSE_ALARM`.

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
from dataclasses import dataclass

import numpy as np

from coterie.problem.checks import FloatArray

TRIALS = 256
"""Trials behind every printed number (section_exp)."""

DELTAS = tuple(10.0**-power for power in range(1, 11))
"""δ of the rows of table_real and table_linear."""

MNIST_DIMS = (10, 50, 100, 200, 400)
MNIST_DELTA = 0.01

FALSE_ALARM = 0.01
"""The probability that a table which agrees is said not to."""

DRAWS = 1000
"""Tables drawn from our trials: of the farthest differences some 10 are then beyond the level."""

CHUNK = 100


@dataclass(frozen=True)
class PrintedNumber:
    """A printed number."""

    mean: float
    std: float


def _column(means: Sequence[float], deviations: Sequence[float]) -> tuple[PrintedNumber, ...]:
    return tuple(PrintedNumber(mean, std) for mean, std in zip(means, deviations, strict=True))


_IRIS_BOC = _column(
    (886.1, 922.5, 954.6, 993.8, 1026.9, 1059.0, 1075.8, 1090.0, 1104.8, 1120.2),
    (55.9, 69.4, 80.0, 87.3, 84.8, 68.4, 62.4, 56.9, 50.4, 48.2),
)

TABLE_REAL = {
    ("iris", "boc"): _IRIS_BOC,
    ("iris", "uniform"): _column(
        (1176.4, 1208.7, 1244.9, 1286.2, 1306.0, 1335.7, 1368.5, 1389.4, 1415.6, 1447.0),
        (69.2, 64.1, 72.7, 71.9, 72.0, 67.2, 65.5, 71.7, 77.1, 73.3),
    ),
    ("yeast", "boc"): _column(
        (14430.5, 14531.2, 14589.5, 14631.5, 14639.6, 14686.3, 14723.8, 14797.3, 14844.6, 14977.1),
        (371.3, 273.4, 175.2, 101.6, 150.0, 218.1, 270.3, 348.5, 385.7, 445.0),
    ),
    ("yeast", "uniform"): _column(
        (19536.0, 19697.4, 19997.4, 20220.3, 20467.7, 20564.5, 20686.5, 20733.1, 20762.0, 20766.8),
        (530.4, 636.2, 718.7, 679.2, 591.0, 499.3, 338.6, 240.6, 132.4, 107.1),
    ),
}
"""table_real: instance and method to one number for each of `DELTAS`."""

TABLE_LINEAR = {
    ("challenging-rescaled", "boc"): _column(
        (102.9, 119.0, 132.3, 142.1, 158.3, 165.8, 176.1, 189.1, 199.6, 209.7),
        (29.5, 28.9, 29.4, 31.5, 32.7, 32.3, 31.2, 35.3, 32.8, 33.8),
    ),
    ("challenging-rescaled", "boc-linear"): _column(
        (78.9, 86.7, 95.9, 102.8, 114.7, 120.1, 128.9, 135.4, 143.3, 152.2),
        (20.3, 21.3, 22.3, 23.6, 25.4, 26.5, 27.1, 26.7, 27.3, 29.6),
    ),
    ("iris", "boc"): _IRIS_BOC,
    ("iris", "boc-linear"): _column(
        (886.8, 920.7, 953.4, 990.1, 1023.6, 1055.3, 1079.1, 1092.2, 1109.6, 1120.0),
        (47.5, 71.8, 77.8, 88.8, 83.7, 71.8, 58.8, 54.1, 48.7, 49.7),
    ),
}
"""table_linear, likewise."""

TABLE_MNIST = {
    "boc": _column((2932.0, 8782.6, 16663.2, 32840.5, 65414.2), (52.4, 110.8, 162.8, 138.8, 209.6)),
    "uniform": _column((6991.8, 16418.7, 31270.8, 61543.7, 122508.3), (120.8, 173.8, 273.5, 275.3, 369.9)),
}
"""table1 (the paper's label), MNIST: method to one number for each of `MNIST_DIMS`."""


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
    farthest: FloatArray = np.abs(np.divide(gap, error, out=np.zeros_like(gap), where=error > 0)).max(axis=1)
    return farthest


def combined_error(std: FloatArray | float, trials: int, printed_std: FloatArray | float) -> FloatArray:
    """The standard error of the difference of a mean of ours and a printed one.

    Pooled: with few trials of a lumpy distribution (Yeast) the deviation of ours alone may be 0 by chance.
    """
    pooled = ((trials - 1) * np.square(std) + (TRIALS - 1) * np.square(printed_std)) / (trials + TRIALS - 2)
    error: FloatArray = np.sqrt(pooled * (1 / trials + 1 / TRIALS))
    return error
