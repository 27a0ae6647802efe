"""Time a measurement of CROC in simulation, over gaps and up to a million arms (K = 10, d = 8, δ = 0.1)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from bench.croc import drawn

CASES = ((1_000, 6.0), (1_000, 3.0), (1_000, 2.0), (1_000, 1.0), (1_000, 0.5), (100_000, 12.0), (1_000_000, 12.0))
MOST = 100_000
"""A run that is undecided after so many measurements, or three for each arm, is left there."""

ONE_CASE = (
    "import json, sys; from bench.pace import measured;"
    "print(json.dumps(measured(int(sys.argv[1]), float(sys.argv[2]))))"
)


def measured(n_arms: int, gap: float) -> dict[str, Any]:
    """One run, in this process: measurements, seconds of the processor, peak memory."""
    import resource

    from coterie.engine.croc.run import CrocRun

    warm = CrocRun(20, 2, 8, 2.0)
    warm.play(100, np.zeros((2, 8)), np.arange(20) % 2, np.random.default_rng(0))
    instance = drawn(n_arms, 10, 8, gap, 0)
    run = CrocRun(n_arms, 10, 8, -np.log(0.1))
    start = time.process_time()
    run.play(max(MOST, 3 * n_arms), instance.centers, instance.labels, np.random.default_rng(1))
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"n_arms": n_arms, "gap": gap, "t": run.t, "done": run.done, "seconds": seconds, "gib": memory}


def rows() -> list[dict[str, Any]]:
    """One row a case, each in a process of its own, for its memory."""
    found = []
    for n_arms, gap in CASES:
        words = [sys.executable, "-c", ONE_CASE, str(n_arms), str(gap)]
        row = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        found.append(row)
        print(f"  M={n_arms}, gap {gap:g}: {row['t']} measurements in {row['seconds']:.2f} s", flush=True)
    return found
