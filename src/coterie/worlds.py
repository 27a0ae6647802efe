"""Worlds for simulations under their public name: `coterie.worlds` (they live in `coterie.simulate.worlds`).

A world says how results of arms vary about their means, when that is not the standard Gaussian:
`coterie.simulate(instance, method, world=coterie.worlds.Student(3))`. What the method assumes is stated by `noise`.
"""

from __future__ import annotations

from coterie.simulate.worlds import (
    Clicks,
    Contaminated,
    Correlated,
    Events,
    Normal,
    Own,
    Ratings,
    Scaled,
    Skewed,
    Student,
    Waits,
    world_from_text,
)

__all__ = [
    "Normal",
    "Student",
    "Skewed",
    "Contaminated",
    "Scaled",
    "Correlated",
    "Ratings",
    "Clicks",
    "Events",
    "Waits",
    "Own",
    "world_from_text",
]
