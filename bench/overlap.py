"""`python -m bench.overlap`: what one measurement does to the Lloyd passes of Algorithm 2 on raw Yeast.

Groups overlap there, so that the remembered passes (`coterie.engine.lloyd`) hardly help. Alg. 2 is run from scratch, in
NumPy, before and after a measurement. For every pass: how many labels the measurement changes, how far it moves a
center, and of how many arms the label would have to be looked at again if the bounds were as good as they can be: with
one bound an arm (Hamerly), with one an arm and center (Elkan). The same within one run, from a pass to the next.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import coterie
from bench.rounds import NO_ARMS, endless
from coterie.engine.state import T

Floats = NDArray[np.float64]
Pass = tuple[Floats, Floats, NDArray[np.int64]]
"""Centers, distances of all arms to them, labels."""

WARM = (200, 5_000)
MEASUREMENTS = 5


def passes(sums: Floats, pulls: NDArray[np.int64], n_clusters: int) -> list[Pass]:
    """Alg. 2 as it is printed, every pass of it."""
    means = sums / pulls[:, None]
    near, starts = ((means - means[0]) ** 2).sum(1), [0]
    for _ in range(1, n_clusters):
        starts.append(int(near.argmax()))
        near = np.minimum(near, ((means - means[starts[-1]]) ** 2).sum(1))
    centers, found = means[starts], []
    while True:
        away = np.sqrt(((means[:, None] - centers[None]) ** 2).sum(-1))
        labels = away.argmin(1)
        found.append((centers, away, labels))
        if len(found) > 1 and (labels == found[-2][2]).all():
            return found
        centers = centers.copy()
        for k in range(n_clusters):
            if (labels == k).any():
                centers[k] = sums[labels == k].sum(0) / pulls[labels == k].sum()


def compared(before: Pass, after: Pass) -> tuple[float, float, float, float]:
    """Share of labels changed; the farthest that a center went; shares of arms that bounds leave open, one and K."""
    moves = np.sqrt(((before[0] - after[0]) ** 2).sum(1))
    rows, home = np.arange(len(before[2])), before[2]
    own = before[1][rows, home] + moves[home]
    others = before[1].copy()
    others[rows, home] = np.inf
    one, several = others.min(1) - moves.max(), (others - moves).min(1)
    changed = (before[2] != after[2]).mean()
    return float(changed), float(moves.max()), float((own >= one).mean()), float((own >= several).mean())


def main(measurements: int) -> None:
    world = coterie.datasets.yeast()
    print(f"raw Yeast, M = {world.n_arms}, K = {world.n_clusters}, d = {world.dim}: means over passes")
    print("| t | | passes | ms a pull | labels changed | a center moved | open, Hamerly | open, Elkan |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for warm in WARM:
        run, rng = endless(world, "boc"), np.random.default_rng(0)
        run.play(world.n_arms + warm, world.centers, world.labels, rng, NO_ARMS)
        state, lengths, between, within, taken = run.state, [], [], [], []
        now = passes(state.sums, state.pulls, world.n_clusters)
        for _ in range(measurements):
            start = time.process_time()
            run.play(1, world.centers, world.labels, rng, NO_ARMS)
            taken.append(time.process_time() - start)
            then, now = now, passes(state.sums, state.pulls, world.n_clusters)
            lengths.append(len(now))
            between.append(np.mean([compared(*pair) for pair in zip(then, now, strict=False)], axis=0))
            within.append(np.mean([compared(*pair) for pair in pairwise(now)], axis=0))
        for what, rows in (("by a measurement", between), ("pass to pass", within)):
            changed, moved, hamerly, elkan = np.mean(rows, axis=0)
            print(
                f"| {state.counters[T]} | {what} | {np.mean(lengths):.0f} | {1e3 * np.median(taken):.2f} | "
                f"{changed:.1%} | {moved:.3f} | {hamerly:.0%} | {elkan:.0%} |"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) == 2 else MEASUREMENTS)
