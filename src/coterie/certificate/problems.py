"""What all checks of certificates share: problems that are collected, and when evidence is enough."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray

Bools = NDArray[np.bool_]

MOST_PROBLEMS = 20
"""How many problems a verdict lists."""

SLACK = 1e-9
"""Rounding that is forgiven where evidence must reach a level, relative to it: δ grows by as much, no more."""


class Checks:
    """The checks of one certificate: what failed, what a reader is warned of, how many tests were recomputed."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.tests = 0

    def say(self, problem: str) -> None:
        """Add a problem, if there are not many already."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


def reaches(evidence: FloatArray, level: float | FloatArray) -> Bools:
    """Where evidence is enough."""
    return np.asarray((evidence >= level - SLACK * np.maximum(1.0, level)) & np.isfinite(evidence))


def first_places(wrong: Bools) -> Iterator[int]:
    """Where something is wrong, as often as a verdict lists problems."""
    return iter(np.flatnonzero(wrong)[:MOST_PROBLEMS].tolist())


def against(stated: float, recomputed: float) -> str:
    """How a stated number differs from the recomputed one, in words."""
    return f"the certificate says {float(stated):.9g}, the log gives {float(recomputed):.9g}"
