"""What the verifier multiplies by in a cell is fair: means over all assignments are 1, whatever the block does."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from plain_cells import Lab
from scipy.stats import binom

from coterie.certificate.arithmetic.bets import bets_of
from coterie.certificate.arithmetic.cells import CellPairs
from coterie.certificate.arithmetic.factors import betted
from coterie.certificate.arithmetic.known import record_of
from coterie.certificate.freezes import LogSubject
from coterie.certificate.reading import read_events
from coterie.problem.families import Unknown
from coterie.problem.noise import Noise

OFFSET, DRAWN = ([0, 0, 1, 1, 1], [3, 3, 4, 4]), ([0, 1], [3, 4])


def factors(lab: Lab, values: dict[int, list[Any]], drawn: bool) -> tuple[float, float]:
    """e of the tests 1 against 0 and 4 against 3, in one cell with these results of each arm."""
    events: list[dict[str, Any]] = [
        {"event": "freeze", "epoch": 0, "labels": [0, 1, 2, 0, 1], "cores": [[0, 3], [1, 4], [2]]}
    ]
    pulls = [arm for arm, of_arm in values.items() for _ in of_arm]
    lab.labels = [0, 1, 2, 0, 1]
    events.append({"event": "cell", "cell": 1, "block": "b", "epoch": 0, "pulls": pulls, "bet": lab.bet(pulls)})
    events += [
        {"event": "result", "arm": arm, "cell": 1, "values": value} for arm, some in values.items() for value in some
    ]
    log = read_events(events, LogSubject("groups", 5, lab.dim, 3, blocks="drawn" if drawn else "offset"), len(pulls))
    noise = lab.noise
    assert isinstance(noise, Unknown)
    record = bets_of(log, noise, 3)
    arms, others, last = np.array([1, 4]), np.array([0, 3]), np.array([1, 1])
    logs = betted(record, log.freezes[0], record.rounds, "arm", arms, others, last, np.ones(2, dtype=bool))
    return math.exp(logs[0]), math.exp(logs[1])


def shared_out(values: list[Any], arms: list[int]) -> list[dict[int, list[Any]]]:
    """All ways to give these results to places of arms."""
    ways = []
    low, high = sorted(set(arms))
    for chosen in itertools.combinations(range(len(values)), arms.count(low)):
        rest = [i for i in range(len(values)) if i not in chosen]
        ways.append({low: [values[i] for i in chosen], high: [values[i] for i in rest]})
    return ways


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "drawn"), [("any", False), ("drawn, any", True), ("drawn, counts", True)])
def test_exchangeable_bets_of_a_cell_have_mean_one(name: str, drawn: bool, seed: int) -> None:
    """And the product of two tests without a common arm, though both see positions from the mean of all results."""
    rng = np.random.default_rng(seed)
    arms = DRAWN if drawn else OFFSET
    dim = Lab(name, 0).dim

    def result() -> list[float]:
        x = 50.0 + rng.standard_t(2, dim)
        return [float(x[0] > 50.0)] if name == "drawn, counts" else [float(value) for value in x]

    one, other, beside = [result() for _ in arms[0]], [result() for _ in arms[1]], [result()]
    if name == "drawn, counts":
        one, other = [[0.0], [1.0]], [[1.0], [0.0]]
    totals = []
    for first, second in itertools.product(shared_out(one, arms[0]), shared_out(other, arms[1])):
        lab = Lab(name, 1000 + seed)  # the same bet each time
        a, b = factors(lab, {**first, 2: beside, **second}, drawn)
        totals.append((a, b, a * b))
    assert len({round(total[0], 9) for total in totals}) > 1
    np.testing.assert_allclose(np.mean(totals, axis=0), 1.0, rtol=1e-9)


@pytest.mark.slow
def test_pairs_by_cells_error_rate_within_share() -> None:
    """Two equal arms, offsets aimed by what was seen, cells cut to what looks good: M ≥ 20 in 5 % of runs at most.

    300 runs; more than are allowed have a probability below 1e-6.
    """
    reached = 0
    for seed in range(300):
        lab = Lab("known", seed)
        lab.labels = [0, 0, 0, 0, 1, 1, 1, 2, 2]
        lean = 0.0
        for cell in range(25):
            pulls = [0] * (1 + (cell + seed) % 3) + [1] * (1 if lean > 0 else 3)
            lab.compose(f"plate {cell}", pulls)
            lab.offsets[cell + 1] = np.array([10.0 * lean, -5.0])
            lab.answer()
            x = [event["values"][0] for event in lab.events if event["event"] == "result" and event["cell"] == cell + 1]
            lean = x[0] - float(np.mean(x))
        t = sum(event["event"] == "result" for event in lab.events)
        log = read_events(lab.events, LogSubject("groups", 9, 2, 3, blocks="offset"), t)
        noise = lab.noise
        assert isinstance(noise, Noise)
        pairs = CellPairs(record_of(log, noise), log.rounds, [True] * 25, 9)
        ones = np.ones(25, dtype=np.int64)
        reached += bool((pairs.evidence(0 * ones, ones, np.arange(1, 26)) >= math.log(20.0)).any())
    assert 0 < reached <= int(binom.isf(1e-6, 300, 0.05))
