"""What a run reports of how far it is: the evidence, and what is certified so far."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.problem.checks import IntArray


@dataclass(frozen=True)
class Weakest:
    """What holds the stop up.

    For the paper's methods: the alternative that fits best, in which `arm` moves to the group `group`. For CROC: the
    unmet test with the largest deficit, of `arm` against the group (or its representative `against`), with its evidence
    (`statistic`), the level it has to reach (`threshold`) and a forecast of the pulls still needed in all.
    """

    arm: int
    group: int
    statistic: float
    threshold: float | None = None
    against: int | None = None
    pulls_left: float | None = None


@dataclass(frozen=True)
class Evidence:
    """What the stopping rule reads: it stops when `statistic` reaches `threshold`.

    For the paper's methods they are Z and β (or β̃). For CROC they are those of the weakest test: the run stops when
    every test has reached its level.
    """

    statistic: float
    threshold: float
    weakest: Weakest | None


@dataclass(frozen=True)
class Partial:
    """What is certified so far, with error probability at most δ in all (CROC's pairs from the start).

    `differ` lists pairs (arm, representative) known to be in different groups; `settled` are arms known to belong to
    their group's representative if there are K groups; `undecided` are the others.
    """

    representatives: tuple[int, ...]
    differ: tuple[tuple[int, int], ...]
    labels: IntArray | None
    settled: tuple[int, ...]
    undecided: tuple[int, ...]
