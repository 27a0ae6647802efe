"""The numbers of the sampling rule (docs/FEATURES.md, section 4). No proof depends on them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """What the rule searches, groups, freezes and gives up by. Scales and gaps are in standard deviations."""

    scales: tuple[float, ...] = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
    batch: int = 4
    """Items of a block that are looked at together on a feature."""
    drop: float = 0.8
    """A batch is dropped at a scale when its likelihood ratio is below this."""
    least_ratio: float = 3.0
    wait: float = 0.8
    """A scale s waits until the search has cost this times (items that are not told apart)/s²."""
    better: float = 1.2
    """A better feature than one with a gap g is sought at scales above this times g."""
    settled: float = 0.15
    """The sum of doubts, and the risk of the estimate, at which a block is cut and a candidate is frozen."""
    near: float = 0.5
    """Components closer than this times the largest step of two neighbours stay together."""
    collapse: float = 0.2
    """Two groups are joined if no feature shows this share of the squared gap with which it was found."""
    forecast: float = 2.6
    """Results for a nat of evidence, in units of 1/gap²."""
    late: float = 6.0
    """An epoch that costs this times its forecast is frozen anew."""
    patience: int = 3
    """After so many failed epochs of one estimate, two groups are joined."""
    undoings: int = 24
    """After so many joins of two groups the run sweeps: it measures everything, again and again."""
    in_vain: float = 100.0
    """It also sweeps when the search has cost this times what measuring everything once does."""
    core: int = 3
    large_group: int = 4
    """All of a group of at most so many items are its core."""


CONSTANTS = Constants()
