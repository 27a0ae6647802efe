"""A recorded pool: how many measurements would have been enough, and what is known if they were not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.campaign import BadValue, replay_pool

CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])


def pool(n: int, arms: int = 6, seed: int = 0, spread: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {f"item{arm}": CENTERS[arm % 3] * spread + rng.normal(size=(n, 2)) for arm in range(arms)}


def rows_of(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The same pool as a table, interleaved."""
    n = len(next(iter(content.values())))
    return [{"arm": arm, "x": block[k][0], "y": block[k][1]} for k in range(n) for arm, block in content.items()]


@pytest.mark.parametrize("method", ["croc", "boc", "uniform"])
def test_enough_is_what_a_session_takes(method: str) -> None:
    content = pool(400)
    blocks = list(content.values())
    used = [0] * 6

    def measure(arm: int) -> Any:
        used[arm] += 1
        return blocks[arm][used[arm] - 1]

    result = coterie.cluster(measure, 6, 3, method=method, threshold="heuristic", progress=False)
    found = replay_pool(content, 3, method=method, threshold="heuristic")
    assert found["done"]
    assert found["dry"] is None
    assert found["partial"] is None
    assert (found["t"], found["pulls"], found["recorded"]) == (result.t, used, 2400)
    assert result.labels is not None
    assert found["labels"] == result.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert [group["names"] for group in found["groups"]] == [["item0", "item3"], ["item1", "item4"], ["item2", "item5"]]


def test_files_and_dictionaries_agree(tmp_path: Path) -> None:
    content = pool(30)
    rows = rows_of(content)
    path = tmp_path / "pool.csv"
    lines = ["arm,x,y", *(f"{row['arm']},{float(row['x'])!r},{float(row['y'])!r}" for row in rows)]
    path.write_text("\n".join(lines))
    assert replay_pool(content, 3) == replay_pool(rows, 3) == replay_pool(path, 3)


def test_a_pool_that_runs_dry_gives_a_partial_answer() -> None:
    content = pool(3, seed=1, spread=0.6)
    found = replay_pool(content, 3, delta=1e-6)
    assert not found["done"]
    assert found["t"] == found["recorded"] == 18  # everything was used before giving up
    assert found["dry"]["recorded"] == 3
    assert found["dry"]["name"] in content
    assert found["dry"]["t"] <= 18
    assert sorted(found["partial"]["settled"] + found["partial"]["undecided"]) == sorted(content)
    assert found["partial"]["undecided"]
    plain = replay_pool(content, 3, delta=1e-6, method="boc")
    assert not plain["done"]
    assert plain["partial"] is None


def test_the_rest_of_the_pool_can_still_settle_it() -> None:
    """One arm has a single measurement: it runs dry early, and the others' measurements finish the proof."""
    content = pool(12, seed=3, spread=3.5)
    content["item4"] = content["item4"][:1]
    found = replay_pool(content, 3, delta=1e-12)
    assert found["dry"]["name"] == "item4"
    assert found["done"]
    assert found["dry"]["t"] < found["t"] <= found["recorded"] == 61


def test_numbered_arms_come_in_their_order() -> None:
    rows = [{"arm": arm, "v": float(value)} for arm, value in [(10, 5.0), (2, 0.0), (7, 5.1), (2, 0.2)] * 20]
    found = replay_pool(rows, 2)
    assert found["names"] == ["2", "7", "10"]
    assert found["done"]
    assert found["labels"] == [0, 1, 1]


def test_noise_is_taken_into_account() -> None:
    content = pool(200)
    wide = {arm: block * [10.0, 1.0] for arm, block in content.items()}
    assert replay_pool(wide, 3, noise=[10.0, 1.0])["t"] == replay_pool(content, 3)["t"]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ([], "needs a column arm"),
        ([{"arm": "a", "v": "x"}], "row 1, column 'v'"),
        ([{"arm": "", "v": 1.0}], "row 1, column 'arm': it is empty"),
        ([{"arm": "a"}], "at least one column of values"),
        ({"a": [[1.0]], "b": [[1.0, 2.0]], "c": [[1.0]]}, "of one d"),
        ([{"arm": "a", "v": 1.0}, {"arm": "b", "v": 2.0}], "n_clusters must be smaller than the number of arms"),
        (7, "a file or a list of dictionaries"),
    ],
)
def test_bad_pools(given: Any, what: str) -> None:
    with pytest.raises(BadValue, match=what):
        replay_pool(given, 2)
