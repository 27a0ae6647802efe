"""Time and memory of one run of CROC in simulation, and of a process."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from bench.instances import drawn
from bench.part import LeftOutError, Row
from coterie import same_partition
from coterie.methods.croc.run import CrocRun

MOST = 100_000
"""A run that is undecided after so many measurements, or three for each arm, is left there."""


def peak() -> float:
    """The most memory that this process has held, GiB. (ru_maxrss would count what its parent held, too.)"""
    status = Path("/proc/self/status")
    if not status.exists():
        raise LeftOutError("needs /proc/self/status, for the memory of a process: measure on Linux")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 2**20


def measured(n_arms: int, n_clusters: int, dim: int, gap: float) -> Row:
    """One run, in this process: measurements, seconds of the processor, peak memory."""
    small, instance = drawn(20, 2, 8, 12.0), drawn(n_arms, n_clusters, dim, gap)
    CrocRun(20, 2, 8, 2.0).play(100, small.centers, small.labels, np.random.default_rng(0))  # loads the code
    start = time.process_time()
    run = CrocRun(n_arms, n_clusters, dim, -np.log(0.1))
    run.play(max(MOST, 3 * n_arms), instance.centers, instance.labels, np.random.default_rng(1))
    seconds = time.process_time() - start
    right = bool(run.done and same_partition(run.labels, instance.labels))
    return {
        "n_arms": n_arms, "n_clusters": n_clusters, "dim": dim, "gap": gap, "t": run.t, "done": run.done,
        "right": right, "seconds": seconds, "microseconds": seconds / run.t * 1e6, "gib": peak(),
    }  # fmt: skip
