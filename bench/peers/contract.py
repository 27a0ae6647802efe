"""What every peer takes and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coterie import Instance


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run: measurements taken, the groups, whether they were proven before the budget ended, pulls of each arm."""

    t: int
    labels: np.ndarray
    done: bool
    pulls: np.ndarray


Run = Callable[[Instance, float, np.random.Generator, int], Outcome]


@dataclass(frozen=True)
class Peer:
    """A method to compare with: `run(instance, delta, rng, most)` draws its measurements from `rng`."""

    name: str
    reference: str
    description: str
    threshold: str
    run: Run
