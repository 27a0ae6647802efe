"""The slowest step of single linkage among many items, and `verify` of its proof: python -m bench.linkage_steps [M …].

Four groups of means, known noise. Both are printed in seconds, and as multiples of one sort of a million numbers in the
same run: machines differ, and are busy.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import coterie

GROUPS, GAP = 4, 8.0


def steps(n_arms: int, seed: int = 1) -> tuple[int, float, float]:
    """How many measurements it takes, the largest ask and tell, and `verify`, both in seconds."""
    rng = np.random.default_rng(seed)
    means = GAP * (np.arange(n_arms) % GROUPS) + rng.uniform(-0.5, 0.5, n_arms)
    session = coterie.Session(n_arms, GROUPS, 1, delta=0.1, noise=1.0, groups="linkage")
    largest = 0.0
    while not session.done:
        start = time.perf_counter()
        arm = session.ask()
        session.tell(arm, means[arm] + rng.normal())
        largest = max(largest, time.perf_counter() - start)
    certificate, events = session.certificate, session.events
    start = time.perf_counter()
    verdict = coterie.verify(certificate, events)
    assert verdict.valid, verdict.problems
    return session.t, largest, time.perf_counter() - start


def main() -> None:
    """Print a line for each number of items."""
    numbers = np.random.default_rng(0).normal(size=10**6)
    start = time.perf_counter()
    np.sort(numbers)
    unit = time.perf_counter() - start
    for n_arms in [int(one) for one in sys.argv[1:]] or [400, 800]:
        t, largest, checked = steps(n_arms)
        print(
            f"M = {n_arms}: {t} measurements; largest ask + tell {largest:.2f} s ({largest / unit:.0f} sorts), "
            f"verify {checked:.2f} s ({checked / unit:.0f} sorts)"
        )


if __name__ == "__main__":
    main()
