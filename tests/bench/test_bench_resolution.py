"""`coterie bench resolution`: its cells, that claims are judged by the true means, and items in turn."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest

from bench.resolution import PART, all_cells, measured, segment
from coterie.problem.settings import Settings


def test_every_cell_can_be_asked_and_has_a_name_of_its_own() -> None:
    cells = all_cells()
    assert max(Counter(one.key for one in cells).values()) == 1
    for one in cells:
        if "MovieLens" in one.case and not find_spec("recbole"):
            continue  # the ratings are not there
        n_arms, dim = one.make(0).means.shape
        settings = Settings.of(n_arms, None, dim, 0.1, noise=one.noise(), resolution=one.resolution)
        assert settings.resolution is not None
    assert {one.limit for one in cells} >= {680, 1450, 960, 2320, 2130, 3350, 2850, 3250, 11_700}


def test_worlds_are_as_they_are_described() -> None:
    by_name = {one.make.__name__: one.make(3).means for one in all_cells() if "MovieLens" not in one.case}
    exact, spread = by_name["exact"], by_name["spread_out"]
    assert np.linalg.norm(exact - spread, axis=1).max() <= 0.45
    centers = np.unique(exact, axis=0)
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2)[~np.eye(5, dtype=bool)]
    assert gaps.min() == pytest.approx(3.0)
    assert by_name["segment"].shape == (50, 1)
    assert by_name["many"].shape == (300, 5)


@pytest.mark.slow
def test_a_row_has_croc_beside_items_in_turn() -> None:
    cell = next(one for one in all_cells() if one.make is segment and one.label == "noise known")
    row = measured(cell, 2)
    assert row["trials"] == row["in_turn"]["trials"] == 2
    assert row["unfinished"] == row["in_turn"]["unfinished"] == 0
    assert row["ratio"] > 1.0
    assert measured(cell, 2) | {"seconds": 0} == row | {"seconds": 0}  # the same seeds
    (table, own), *_ = PART.tables([row])
    assert [column.cell(own[0]) for column in table.columns]
    assert PART.headlines([row])
