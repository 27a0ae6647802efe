"""`python -m bench.cluster`: ten thousand trials on Dask with one worker process and with two.

Workers are processes with one thread; schedulers and clients are this process. Rounds alternate between a cluster with
one worker and one with two. On a machine whose cores are busy with other things the wall clock says little, so the
processor's time counts: of the busiest worker, and of this process, where everything happens that no worker can share.
What this process uses every second while it only waits is measured before, and taken off.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import coterie
from bench.instances import named

TRIALS, ROUNDS = 10_000, 3
INSTANCE, METHOD = "easy", "boc"
"""The shortest trials there are: the most that a cluster has to do for each second of work."""
IDLE = 5.0
"""Seconds over which waiting is measured."""


def one(client: Any, trials: int) -> tuple[float, float, float, float]:
    """Wall clock; processor's time of the busiest worker, of all of them, of this process."""
    before, start, here = client.run(time.process_time), time.perf_counter(), time.process_time()
    coterie.simulate(named(INSTANCE), METHOD, trials=trials, scheduler=client, progress=False)
    wall, own = time.perf_counter() - start, time.process_time() - here
    after = client.run(time.process_time)
    each = [after[worker] - before[worker] for worker in after]
    return wall, max(each), sum(each), own


def main(trials: int, rounds: int) -> None:
    from distributed import Client, LocalCluster

    settings: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        LocalCluster(n_workers=1, **settings) as first,
        LocalCluster(n_workers=2, **settings) as second,
        Client(first) as alone,
        Client(second) as pair,
    ):
        found: dict[int, list[tuple[float, float, float, float]]] = {1: [], 2: []}
        for client in (alone, pair):
            one(client, 50)  # loads
        start = time.process_time()
        time.sleep(IDLE)
        waiting = (time.process_time() - start) / IDLE
        for _ in range(rounds):
            for workers, client in ((1, alone), (2, pair)):
                found[workers].append(one(client, trials))
    print(f"{trials:,} trials of {METHOD} on {INSTANCE}, medians of {rounds} rounds; seconds of the processor")
    print("| workers | busiest worker | all workers | here, without waiting | a trial here | wall |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    longest = {}
    for workers, rows in found.items():
        wall, busiest, together, _ = (float(np.median(column)) for column in zip(*rows, strict=True))
        here = max(float(np.median([row[3] - waiting * row[0] for row in rows])), 0.0)
        longest[workers] = max(busiest, here), max(busiest, (together + here) / 2)
        print(
            f"| {workers} | {busiest:.2f} | {together:.2f} | {here:.2f} | {here / trials * 1e6:.0f} µs | {wall:.1f} |"
        )
    print(f"waiting takes {waiting:.1%} of a core here; on a busy machine the wall clock is several times the rest")
    print(f"two workers over one, a core for every process: {longest[1][0] / longest[2][0]:.2f}×")
    print(f"two workers over one, two cores for all: {longest[1][1] / longest[2][1]:.2f}×")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]) if len(sys.argv) == 3 else (TRIALS, ROUNDS))
