"""The numbers that the paper prints: means ± standard deviations of 256 trials, heuristic threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TRIALS = 256
"""Trials behind every printed number (section_exp)."""

DELTAS = tuple(10.0**-power for power in range(1, 11))
"""δ of the rows of table_real and table_linear."""

MNIST_DIMS = (10, 50, 100, 200, 400)
MNIST_DELTA = 0.01


@dataclass(frozen=True)
class Printed:
    """A printed number."""

    mean: float
    std: float


def _column(means: Sequence[float], deviations: Sequence[float]) -> tuple[Printed, ...]:
    return tuple(Printed(mean, std) for mean, std in zip(means, deviations, strict=True))


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
