"""What a status says about the assumptions behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.campaign import Campaigns

MEANS = np.array([0.0, 0.0, 8.0, 8.0, 9.5, 9.5])  # three groups, two of them not far apart


def rows(means: Any, count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"arm": arm, "v0": float(mean + rng.normal())} for _ in range(count) for arm, mean in enumerate(means)]


def test_results_after_the_stop_show_that_there_are_more_groups(tmp_path: Path) -> None:
    """Two groups are proven of three; the rest of the table does not fit them. The level of the test is 0.001."""
    with Campaigns(tmp_path / "store.db") as store:
        few = store.create("few", 6, 2, 1)["id"]
        store.import_table(few, rows(MEANS, 40))
        status = store.status(few)
        assert status["done"]
        assert status["measurements"] > status["t"]
        assert {one["name"] for one in status["misfits"]} == {"2", "3", "4", "5"}
        assert {one["group_id"] for one in status["misfits"]} == {2}
        assert "there are more than 2 groups, or the noise is larger than was said" in status["doubt"]
        right = store.create("right", 6, 2, 1)["id"]
        store.import_table(right, rows([0.0, 0.0, 8.0, 8.0, 8.0, 8.0], 40))
        status = store.status(right)
        assert (status["done"], status["misfits"], status["doubt"]) == (True, [], None)


def test_before_the_stop_there_is_no_such_doubt(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 2, 1)["id"]
        assert store.status(id)["doubt"] is None
        store.import_table(id, rows(MEANS, 1))
        assert store.status(id)["misfits"] == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "noise of standard deviation 1 (none was given). Error probability allowed: 0.05. Method: croc."),
        ({"noise": 0.5, "delta": 0.01}, "noise of standard deviation 0.5. Error probability allowed: 0.01."),
        ({"noise": [0.2, 25.0]}, "noise of standard deviations 0.2, 25."),
        ({"noise": [0.2, 25.0], "value_names": ["ph", "mud"]}, "noise of standard deviations 0.2 (ph), 25 (mud)."),
        ({"noise": [[1.0, 0.5], [0.5, 1.0]]}, "noise of covariance [[1.0, 0.5], [0.5, 1.0]]."),
        ({"method": "boc", "threshold": "heuristic"}, "Method: boc, heuristic threshold."),
    ],
)
def test_the_assumptions_are_said(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 3, 2, **settings)["id"]
        assumed = store.status(id)["assumed"]
    assert assumed.startswith("Assumed: exactly 3 groups; ")
    assert said in assumed
