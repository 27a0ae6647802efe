"""Cells of `coterie bench resolution` on other seeds: `python -m bench.other_seeds 200 "challenging, (0, 0.5)"`.

The sampler's numbers were chosen by looking at seeds 0 to 49 of some cells. Here trials count from 100 000.
"""

from __future__ import annotations

import sys

import numpy as np

from bench.resolution import Cell, all_cells, play

FIRST = 100_000


def line(one: Cell, trials: int) -> str:
    """What a cell needs there."""
    ends = [play(one, FIRST + trial, in_turn=False)[0] for trial in range(trials)]
    t = np.array([end.t for end in ends], dtype=np.float64)
    wrong, unfinished = (sum(not getattr(end, what) for end in ends) for what in ("correct", "done"))
    return (
        f"{one.key}: {t.mean():,.0f} ± {t.std(ddof=1) / np.sqrt(trials):,.0f}, median {np.median(t):,.0f}, "
        f"95 % {np.quantile(t, 0.95):,.0f}; {wrong} of {trials} wrong, {unfinished} unfinished"
    )


if __name__ == "__main__":
    for cell in all_cells():
        if any(cell.key.startswith(name) for name in sys.argv[2:]):
            print(line(cell, int(sys.argv[1])), flush=True)
