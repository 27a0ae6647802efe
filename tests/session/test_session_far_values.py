"""The result farthest from its item's others: item by item in plain Python, and as it is found for all at once."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

import coterie
from coterie.session.remarks import FAR, far_value


def plainly(arms: list[int], values: list[list[float]]) -> tuple[float, int, int, int, float] | None:
    """(how far, arm, column, row, the others' median) with noise of deviation 1."""
    worst: tuple[float, int, int, int, float] | None = None
    for arm in sorted(set(arms)):
        own = [row for row, its in enumerate(arms) if its == arm]
        for column in range(len(values[0])) if len(own) > 1 else ():
            numbers = [values[row][column] for row in own]
            away = [abs(x - statistics.median(numbers)) for x in numbers]
            place = 1 if len(own) == 2 else away.index(max(away))
            others = statistics.median(numbers[:place] + numbers[place + 1 :])
            found = abs(numbers[place] - others)
            if worst is None or found > worst[0]:
                worst = found, arm, column, own[place], others
    return worst


@pytest.mark.parametrize("seed", range(12))
def test_the_farthest_of_many_is_the_one_found_item_by_item(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, dim = int(rng.integers(1, 120)), int(rng.integers(1, 4))
    arms = rng.integers(0, 25, size=n).tolist()
    values = rng.normal(size=(n, dim)).round(1)  # ties too
    if seed % 3:
        values[rng.integers(n)] += float(rng.normal() * 40)
    session = coterie.Session(25, 2, dim, noise=1.0)
    session.tell(arms, values)
    expected, found = plainly(arms, values.tolist()), far_value(session, np.arange(n))
    if expected is None or expected[0] <= FAR:
        assert found is None
        return
    assert found is not None
    assert (found.arm, found.column, found.row) == expected[1:4]
    assert (found.away, found.others) == pytest.approx((expected[0], expected[4]))
    assert found.alone == (arms.count(found.arm) == 2)
