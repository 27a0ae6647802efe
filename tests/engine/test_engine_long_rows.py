"""Sums over long rows: narrow and wide vectors give the same numbers to the last bit, and the right ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from coterie._native.parts import long_row_results


@pytest.mark.parametrize("n", [64, 65, 79, 95, 100, 400, 1003])
def test_every_width_gives_the_same_numbers(n: int) -> None:
    rows = np.random.default_rng(n).normal(size=(10, n)) * np.geomspace(1e-6, 1e6, n)
    results = long_row_results(rows)
    assert len(results) >= 1
    for wider in results[1:]:
        assert wider == results[0]


@pytest.mark.parametrize("n", [64, 79, 400])
def test_sums_over_long_rows_match_oracle(n: int) -> None:
    rows = np.random.default_rng(n).normal(size=(10, n))
    a, b, c, x, center = rows[:5]
    dots = rows[2:] @ a
    changed = 0.2 * rows[5] - 0.7 * rows[6]
    expected = [
        *((a - b) @ (a - b), a @ b, (0.3 * a - b) @ (0.3 * a - b)),
        *(math.dist(0.3 * a, 0.4 * b) ** 2, (a - c) @ (b - c), *dots),
        *(math.dist(0.5 * a, center) ** 2, math.dist(0.25 * (a + x), center) ** 2, math.dist(0.2 * rows[5], c) ** 2),
        *(a + x),
        *(rows[8] - (b + x)),
        *(changed + dots @ rows[2:]),
    ]
    for result in long_row_results(rows):
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-10)
