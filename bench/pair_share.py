"""Another share α of δ for the pairs from the start, beside α = 0.2: `python -m bench.pair_share 0.8 200`.

CROC with both on the same prepared stacks, where K is close to M and elsewhere: means, medians, 95 % quantiles, and the
paired difference (docs/CROC.md, section 12). The proof of section 6 holds for every α that is fixed beforehand.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

from bench.families import Family, grouped, spread, widened
from bench.soft_freeze import croc, line

CASES = (
    ("M=12, K=11, d=1", 0.05), ("M=12, K=11, d=3", 0.05), ("M=12, K=11, d=10", 0.05), ("M=12, K=11, d=30", 0.05),
    ("M=12, K=10, d=1", 0.05), ("M=12, K=10, d=3", 0.05), ("M=12, K=10, d=10", 0.05), ("M=12, K=10, d=30", 0.05),
    ("easy", 0.1), ("Iris", 1e-10), ("moderate", 0.1), ("challenging", 0.1), ("M=100 K=5 d=10 gap 3", 0.1),
)  # fmt: skip
FIRST = 2000


def close() -> list[Family]:
    """K close to M, and groups closer together than in `bench.families`."""
    found = []
    for sizes, dim in (((2, 1, 1, 1), 3), ((2, 1, 1, 1, 1), 3), ((2, 2, *(1,) * 8), 3), ((2, 2, *(1,) * 8), 10)):
        centers = spread(len(sizes), widened(0.7, dim), dim, np.random.default_rng([len(sizes), dim]))
        found.append(Family(f"M={sum(sizes)}, K={len(sizes)}, gap 0.7, d={dim}", grouped(sizes, centers)))
    return found


if __name__ == "__main__":
    trials, other = int(sys.argv[2]), partial(croc, pair_share=float(sys.argv[1]))
    for case, delta in CASES:
        print(line(case, delta, trials, FIRST, other), flush=True)
    for family in close():
        print(line(family.name, 0.05, trials, FIRST, other, family.instance), flush=True)
