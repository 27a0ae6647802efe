"""`python -m bench.bounds`: three figures that the engine is held to, in seconds of the processor, in turn.

A pull at d = 400 over its 400 Gaussians; a pull at M = 100 000 over one at M = 1 000, with the same ten centers, those
of D* = 2 at M = 1 000; CROC's measurements a second in whole trials on MNIST d = 400, δ = 0.1. The processor's time is
what a busy machine disturbs least, though two programs on one core still share its caches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import coterie
from bench import rivals
from bench.instances import drawn, named, separated
from bench.rounds import NO_ARMS, endless, in_turn, ratio
from coterie.methods.croc.run import CrocRun
from coterie.methods.trials import NO_END

ROUNDS = 5
WARM = 1_000
NEAR_PULLS = 50_000
"""After the first pass over the arms and WARM pulls more: where the farthest of 100 000 arms matter most."""


def pulls(instance: coterie.Instance, count: int, i: int) -> float:
    """Seconds of the processor a pull of BOC."""
    run, rng = endless(instance, "boc"), np.random.default_rng(i)
    run.play(instance.n_arms + WARM, instance.centers, instance.labels, rng, NO_ARMS)
    start = time.process_time()
    run.play(count, instance.centers, instance.labels, rng, NO_ARMS)
    return (time.process_time() - start) / count


def gaussians(count: int, i: int) -> float:
    """Seconds of the processor for 400 Gaussians."""
    rng, out = np.random.default_rng(i), np.zeros(400)
    rivals.draw(rng, 1, out)
    start = time.process_time()
    rivals.draw(rng, count, out)
    return (time.process_time() - start) / count


def measurements(instance: coterie.Instance, i: int) -> float:
    """Seconds of the processor a measurement of a whole trial of CROC."""
    run, rng = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, -np.log(0.1)), np.random.default_rng(i)
    start = time.process_time()
    run.play(NO_END, instance.centers, instance.labels, rng)
    return (time.process_time() - start) / run.t


def main(rounds: int) -> None:
    wide, mnist = separated(500, 10, 400), named("MNIST d=400")
    small = drawn(1_000, 10, 8, 1.0).with_hardness(2.0)
    large = coterie.Instance(np.arange(100_000) % 10, small.centers)
    contestants: dict[str, Callable[[int], float]] = {
        "wide": lambda i: pulls(wide, 20_000, i),
        "floor": lambda i: gaussians(20_000, i),
        "small": lambda i: pulls(small, NEAR_PULLS, i),
        "large": lambda i: pulls(large, NEAR_PULLS, i),
        "croc": lambda i: measurements(mnist, i),
    }
    found = in_turn(contestants, rounds)
    print("| figure | measured | range | goal |")
    print("| --- | ---: | --- | --- |")
    for what, above, below in (
        ("M=500, K=10, d=400: a pull over its 400 Gaussians", "wide", "floor"),
        ("M=100 000 over M=1 000, the same centers, D* = 2 at M = 1 000: a pull", "large", "small"),
    ):
        over = ratio(found[above], found[below])
        print(f"| {what} | {over['median']:.2f}× | {over['low']:.2f} – {over['high']:.2f} | ≤ 2× |")
    a_second = sorted(1.0 / each for each in found["croc"])
    median = float(np.median(a_second))
    spread = f"{a_second[0]:,.0f} – {a_second[-1]:,.0f}"
    print(f"| CROC, MNIST d=400: measurements a second | {median:,.0f} | {spread} | ≥ 20 000 |")
    print(", ".join(f"{name} {np.median(each) * 1e6:.2f} µs" for name, each in found.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) == 2 else ROUNDS)
