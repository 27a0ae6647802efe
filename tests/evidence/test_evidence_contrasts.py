"""Intervals from contrasts within cells: against plain formulas, untouched by offsets, and the guarantee by runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import plain_intervals as plain
import pytest
from block_worlds import STATED
from error_rates import Guarantee, assert_rate_at_most

from coterie.evidence.intervals.hedged_means import betting_interval
from coterie.evidence.intervals.streams import CellIntervals, CellResults, Row, cell_deviations
from coterie.problem.families import noise_of

FALSE_ALARM = 1e-6  # of each test by runs, if the guarantee holds
RUNS, CELLS, ERROR, APART = 2000, 10, 0.1, 0.2
LABELS = np.array([0, 0, 1, 1])


def made(seed: int, n: int = 12, dim: int = 1, shift: float = 0.0) -> list[CellResults]:
    """Cells of four arms, some of them missing, some measured again."""
    rng, offset_rng = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    cells = []
    for _ in range(n):
        arms = np.sort(rng.integers(0, 4, int(rng.integers(2, 9))))
        values = LABELS[arms][:, None] + rng.standard_normal((arms.size, dim))
        cells.append(CellResults(arms, values + shift * offset_rng.standard_normal()))
    return cells


def ends(noise: Any, cells: list[CellResults], drawn: bool = False, p: float | None = None) -> tuple[float, float]:
    formula = CellIntervals(noise_of(noise, 1), 1, ERROR, cells, drawn, p)
    low, high = formula.ends([formula.differences(LABELS, 0, 1)], True)
    return float(low[0, 0]), float(high[0, 0])


def test_known_matches_the_mixture() -> None:
    """At the ends the average of exp(θ(S − nΔ) − nθ²/2) over all θ is the level."""
    cells = made(1)
    n = total = 0.0
    for cell in cells:
        x, y = (cell.values[LABELS[cell.arms] == k, 0] for k in (0, 1))
        if x.size and y.size:
            w = x.size * y.size / (x.size + y.size)
            n, total = n + w, total + w * (x.mean() - y.mean())
    for end in ends(1.0, cells):
        square = (total - n * end) ** 2
        terms = [
            share * math.exp(0.5 * rho * square / (1.0 + rho * n)) / math.sqrt(1.0 + rho * n)
            for rho, share in zip(plain.RHOS, plain.SHARES, strict=True)
        ]
        assert math.log(sum(terms)) == pytest.approx(-math.log(ERROR), abs=1e-6)


def test_at_most_matches_catoni() -> None:
    """At the ends one side of the bets is at the level, a cell's variance being at most (1/a + 1/A)·V."""
    cells, sides = made(2, 30), []
    rates = [2.0 ** (1 - j) for j in range(13)]
    weights = [0.04, 0.1, 0.2, 0.24, 0.2, *(0.11 / 2**j for j in range(8))]
    for end in ends(STATED["at most"], cells):
        total = {1.0: 0.0, -1.0: 0.0}
        for rate, weight in zip(rates, weights, strict=True):
            sums = n = 0.0
            for cell in cells:
                x, y = (cell.values[LABELS[cell.arms] == k, 0] for k in (0, 1))
                if x.size and y.size:
                    bet = rate * (x.mean() - y.mean() - end) / math.sqrt(1.0 / x.size + 1.0 / y.size)
                    sums += math.copysign(math.log(1.0 + abs(bet) + bet * bet / 2.0), bet)
                    n += math.log(1.0 + rate * rate / 2.0)
            for sign in total:
                total[sign] += 0.5 * weight * math.exp(sign * sums - n)
        sides.append(max(math.log(value) for value in total.values()))
    assert sides == pytest.approx([-math.log(ERROR)] * 2, abs=1e-6)


def test_numbers_of_a_cell_are_of_results_of_their_own() -> None:
    """Three against two results: two differences, (x0 + x1)/2 − y0 and x2 − y1; under any noise x0 − y0 and x1 − y1."""
    cell = CellResults(np.array([0, 0, 1, 2, 3]), np.array([[0.1], [0.2], [0.9], [0.4], [0.25]]))

    def row(noise: Any, drawn: bool = False) -> Any:
        return CellIntervals(noise_of(noise, 1), 1, ERROR, [cell], drawn, None).differences(LABELS, 0, 1)

    bounded = row(STATED["bounded"])
    assert bounded.numbers[:, 0].tolist() == pytest.approx([0.15 - 0.4, 0.9 - 0.25])
    assert bounded.weights.tolist() == pytest.approx([2 / 3, 1 / 2])
    assert bounded.length == (3, 2)
    assert row(None).numbers[:, 0].tolist() == pytest.approx([0.1 - 0.4, 0.2 - 0.25])
    assert row(STATED["bounded"], True).numbers[:, 0].tolist() == pytest.approx([0.4 - 0.325])
    assert row(None, True).numbers[:, 0].tolist() == pytest.approx([0.1 - 0.4])
    low, high = betting_interval((1.0 + bounded.numbers[:, 0]) / 2.0, math.log(2.0 / ERROR))
    assert ends(STATED["bounded"], [cell]) == pytest.approx((2.0 * low - 1.0, 2.0 * high - 1.0))


@pytest.mark.parametrize("noise", ["known", "gaussian", "scalar", "at most", "symmetric", "any"])
def test_offsets_change_nothing(noise: str) -> None:
    p = 0.5 if noise in ("any", "symmetric") else None
    for cells in (made(3, 40), made(4, 40)):
        without = ends(STATED[noise], cells, p=p)
        assert all(map(math.isfinite, without))
        shifted = [CellResults(cell.arms, cell.values + 7.0 * i) for i, cell in enumerate(cells)]
        assert ends(STATED[noise], shifted, p=p) == pytest.approx(without, rel=1e-9)


def test_deviations_are_of_residuals_within_cells() -> None:
    """Two arms that two cells have: the second cell has one residual, of the difference against that of the first."""
    cells = [CellResults(np.array([0, 1]), np.array([[1.0], [4.0]])), CellResults(np.array([0, 1]), np.array([[9.0], [7.0]]))]  # fmt: skip # noqa: E501
    square = 0.5 * (-2.0 - 3.0) ** 2
    for factor in (1, 30):
        rest = [CellResults(np.array([2]), np.zeros((1, 1)))] * 3  # alone in their cells, they say nothing
        many = cells + rest
        for i in range(factor - 1):  # cells of arms that no other cell joins to these two
            many += [CellResults(cell.arms + 10 * (i + 1), cell.values + 100.0 * i) for cell in cells]
        level, square_all = -math.log(0.05), factor * square
        bound = cell_deviations(many, 1, "full", 0.05)[0]
        if not math.isfinite(bound):
            assert factor == 1
            continue
        z = square_all / (2.0 * bound**2)
        price = [(0.5, 0.0), *((0.5 / 13.0, 2.0**k) for k in range(3, -10, -1))]
        value = sum(w * (1.0 + r) ** (factor / 2.0) * math.exp(-r * z) for w, r in price)
        assert math.log(value) == pytest.approx(level, abs=1e-6)
    grown = made(6, 400, 2)
    assert cell_deviations(grown, 2, "full", 0.05) == pytest.approx([1.07, 1.07], abs=0.08)


# Ever wrong, over all numbers of cells. Offsets and what cells consist of follow from the values so far.

Draw = Callable[[np.random.Generator, np.ndarray, float], np.ndarray]


def _shifted(draw: Callable[[np.random.Generator, int], np.ndarray]) -> Draw:
    return lambda rng, arms, offset: np.asarray(APART * LABELS[arms] + 5.0 * offset + draw(rng, arms.size))


def _of_counts(rng: np.random.Generator, arms: np.ndarray, offset: float) -> np.ndarray:
    return np.asarray(rng.binomial(12, 0.3 + APART * LABELS[arms] + 0.2 * offset), dtype=float)


def _of_bounded(rng: np.random.Generator, arms: np.ndarray, offset: float) -> np.ndarray:
    mean = 0.4 + APART * LABELS[arms] + 0.2 * offset
    return np.where(rng.random(arms.size) < mean, rng.random(arms.size) < 0.98, 0.02 * mean / (1.0 - mean))


def _question(rng: np.random.Generator, arms: np.ndarray, offset: float) -> np.ndarray:
    """A question that suits one item of each group: what it gives to one, it takes from the other; 0 or 1."""
    likes = 0.3 * rng.choice([-1.0, 1.0])
    mean = 0.4 + APART * LABELS[arms] + likes * np.where(arms % 2 == 0, 1.0, -1.0)
    return np.asarray(rng.random() < mean, dtype=float)


WORLDS: dict[str, tuple[str, Draw]] = {
    "known": ("offset", _shifted(lambda rng, n: rng.standard_normal(n))),
    "gaussian": ("offset", _shifted(lambda rng, n: 1.0 * rng.standard_normal(n))),
    "at most": ("offset", _shifted(lambda rng, n: rng.standard_t(3, n) / math.sqrt(3.0))),
    "symmetric": ("offset", _shifted(lambda rng, n: rng.standard_t(1, n))),
    "any": ("offset", _shifted(lambda rng, n: rng.exponential(size=n))),
    "counts": ("offset", _of_counts),
    "bounded": ("offset", _of_bounded),
    "drawn bounded": ("drawn", _question),
    "drawn trials": ("drawn", _question),
}


def _cell(rng: np.random.Generator, before: float, drawn: bool) -> tuple[np.ndarray, float]:
    """Arms and offset: more of the group that did well so far, in a block that is kind to it."""
    if drawn:
        return np.flatnonzero(rng.random(4) < np.where((before > 0.0) == LABELS, 0.9, 0.7)), 0.0
    counts = rng.integers(1, 3, 4) + np.where((before > 0.0) == LABELS, rng.integers(0, 3), 0)
    return np.repeat(np.arange(4), counts), float(np.sign(before))


@pytest.mark.guarantee
@pytest.mark.parametrize("name", WORLDS)
def test_differences_error_rate_within_delta(name: str) -> None:
    """2,000 runs of ten cells, read after every second; more errors than allowed have probability 1e-6."""
    blocks, draw = WORLDS[name]
    kind, drawn = name.removeprefix("drawn "), blocks == "drawn"
    noise, p = noise_of(STATED[kind], 1), 0.5 if kind in ("any", "symmetric") else None
    truth = -12.0 * APART if kind == "counts" else -APART
    rng, wrong, pooled = np.random.default_rng(list(WORLDS).index(name)), 0, 0
    for _ in range(RUNS):
        cells: list[CellResults] = []
        missed, before, row = False, 0.0, Row(np.zeros((0, 1)), np.zeros(0), None)
        for number in range(1, CELLS + 1):
            arms, offset = _cell(rng, before, drawn)
            cells.append(CellResults(arms, draw(rng, arms, offset)[:, None]))
            more = CellIntervals(noise, 1, ERROR, cells[-1:], drawn, p).differences(LABELS, 0, 1)
            row = Row(np.concatenate([row.numbers, more.numbers]), np.concatenate([row.weights, more.weights]), None)
            if number % 2 == 0:
                low, high = CellIntervals(noise, 1, ERROR, cells, drawn, p).ends([row], True)
                missed |= not low[0, 0] <= truth <= high[0, 0]
            before = float(row.middle(p)[0]) - truth if row.weights.size else 0.0
        wrong += missed
        every = np.concatenate([cell.values[:, 0] for cell in cells])
        own = np.concatenate([LABELS[cell.arms] for cell in cells])
        error = math.sqrt(1.0 / (own == 0).sum() + 1.0 / (own == 1).sum())
        pooled += abs(every[own == 0].mean() - every[own == 1].mean() - truth) > 3.0 * error
    of = Guarantee(kind, "intervals", blocks, "differences of groups")
    assert_rate_at_most(ERROR, int(wrong), RUNS, of, FALSE_ALARM)
    assert name != "known" or pooled > 0.3 * RUNS  # means over all blocks are wrong here, at three standard errors
