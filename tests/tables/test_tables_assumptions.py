"""A table beside what is assumed of its noise: a proposal that slips do not spoil, and what contradicts a noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import coterie
from coterie.problem.families import noise_of
from coterie.tables import TableError, replay_pool
from coterie.tables.checks.assumptions import checked_pool
from coterie.tables.checks.row_order import order_report
from coterie.tables.checks.spread import NOISE_PROBABILITY
from coterie.tables.pool import Pool
from coterie.tables.reading.pools import read_pool


def table(seed: int, dim: int = 1, items: int = 20, repeats: int = 60, slip: bool = True) -> list[dict[str, Any]]:
    """1,200 rows in two groups, 24 and 27, standard deviation 1; one value is ten times too large."""
    rng = np.random.default_rng(seed)
    rows = [
        {"item": f"s{k}"} | {f"x{j}": 24.0 + 3.0 * (k % 2) + rng.normal() for j in range(dim)}
        for _ in range(repeats)
        for k in range(items)
    ]
    if slip:
        slipped = rows[int(rng.integers(len(rows)))]
        slipped["x0"] = float(slipped["x0"]) * 10.0
    return rows


def checked(pool: Pool, noise: Any) -> Any:
    return checked_pool(pool, noise_of(noise, pool.dim))


@pytest.mark.parametrize("dim", [1, 2, 6])
@pytest.mark.parametrize("seed", range(4))
def test_one_value_times_ten_does_not_spoil_the_proposal(dim: int, seed: int) -> None:
    """By all rows it would be 6 or more in the first column. The margin is 5 % for one column, 20 % for six."""
    content = read_pool(table(seed, dim))
    assert float(np.sqrt(np.diag(content.spread().scatter) / content.spread().freedom)[0]) > 6.0
    found = checked(content, None).noise_json()
    assert found["without_rows"] == 1
    proposed = np.array(found["upper_covariance"])
    assert proposed.shape == (dim, dim)
    assert 0.9 < np.linalg.eigvalsh(proposed)[0] <= np.linalg.eigvalsh(proposed)[-1] < 1.6
    assert max(found["upper"]) < 1.6


@pytest.mark.guarantee
def test_what_is_proposed_without_slips_is_large_enough() -> None:
    """1500 clean tables: too small with probability at most 0.01, or a row is left out (0.01); false alarm 1e-6."""
    rng = np.random.default_rng(0)
    bad = 0
    for _ in range(1500):
        content = read_pool({k: rng.normal(size=(6, 2)) for k in range(8)})
        proposed = np.array(checked(content, None).noise_json()["upper_covariance"])
        bad += np.linalg.eigvalsh(proposed)[0] < 1.0
    assert bad <= binom.ppf(1 - 1e-6, 1500, 0.02)


def test_rows_are_named_with_their_place_item_and_value() -> None:
    rows = table(3, slip=False)
    rows[412]["x0"] = 481.0
    found = checked(read_pool(rows), 1.0).slips_json()
    (one,) = found["rows"]
    assert (one["row"], one["place"], one["name"], one["column"], one["value"]) == (412, "row 413", "s12", "x0", 481.0)
    assert one["other_results"] == 59
    assert 23.5 < one["others"] < 24.5
    assert 440 < one["deviations"] < 480
    assert one["beyond_noise"]
    text = f"row 413: item s12, x0 481 lies {one['deviations']:.3g} standard deviations from the item's other results"
    assert one["text"] == f"{text} ({one['others']:.4g}): a slip?"
    arrays = {"a": [[1.0], [1.1]], "b": [[2.0], [2.2], [1.9], [90.0]], "c": [[1.0], [1.2], [0.9]]}
    (one,) = checked(read_pool(arrays), None).slips_json()["rows"]
    assert one["place"] == "result 4"


@pytest.mark.parametrize("stated", [1.0, 4.0])
def test_a_row_that_the_noise_does_not_explain_contradicts_it(stated: float) -> None:
    """The noise of 4 is what all rows together seem to have; the value lies 50 of these away."""
    found = checked(read_pool(table(5)), stated)
    assert found.rows_contradict
    assert "too small" not in found.verdicts
    assert len(found.beyond) == 1
    clean = checked(read_pool(table(5, slip=False)), stated)
    assert not clean.rows_contradict
    assert clean.verdicts == ["too large" if stated == 4.0 else None]


@pytest.mark.guarantee
def test_a_right_noise_is_contradicted_as_rarely_as_stated() -> None:
    """4000 tables, right noise: each of two tests has probability at most 0.0001; false alarm below 1e-6."""
    rng = np.random.default_rng(1)
    noise = noise_of([0.5, 30.0], 2)
    bad = 0
    for _ in range(4000):
        content = read_pool({k: rng.normal(size=(5, 2)) * [0.5, 30.0] for k in range(4)})
        found = checked_pool(content, noise)
        bad += found.rows_contradict or "too small" in (*found.verdicts, found.direction)
    assert bad <= binom.ppf(1 - 1e-6, 4000, 2 * NOISE_PROBABILITY)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["t", "sorted", "rare"])
def test_a_right_bound_is_contradicted_as_rarely_as_stated(law: str) -> None:
    """1,000 tables of noise whose variance is the bound, tested at 1e-4; false alarm 1e-6."""
    rng, bad = np.random.default_rng(8), 0
    for _ in range(1000):
        if law == "rare":  # mostly 0, and 10 in one of a hundred
            results = np.where(rng.random((6, 12, 2)) < 0.01, 10.0, 0.0) / np.sqrt(0.99)
        else:
            results = rng.standard_t(3, size=(6, 12, 2)) / np.sqrt(3.0)
        if law == "sorted":
            results = np.sort(results, axis=1)
        found = checked(read_pool({f"i{k}": 9.0 * (k % 2) + one for k, one in enumerate(results)}), coterie.AtMost(1.0))
        bad += "too small" in (*found.verdicts, found.direction)
    assert bad <= binom.ppf(1 - 1e-6, 1000, NOISE_PROBABILITY)


def test_a_bound_that_is_too_small_is_named() -> None:
    rng = np.random.default_rng(9)
    mixing = np.linalg.cholesky(np.array([[1.0, 0.9], [0.9, 1.0]]))
    content = read_pool({f"i{k}": 9.0 * (k % 2) + rng.normal(size=(60, 2)) @ mixing.T for k in range(6)})
    for bound, verdicts, direction in (
        (1.2, [None, None], None),
        ([1.2, 0.4], [None, "too small"], "too small"),
        ([[1.44, -1.3], [-1.3, 1.44]], [None, None], "too small"),
    ):
        found = checked(content, coterie.AtMost(bound))
        assert (found.verdicts, found.direction) == (verdicts, direction)
        assert found.noise_json()["checked"]


def test_a_noise_stated_too_large_does_not_hide_items_that_do_not_fit() -> None:
    """Items one standard deviation apart in one group, stated noise 8: by the spread of repeats they are seen."""
    rng = np.random.default_rng(2)
    content = read_pool({f"i{k}": 1.0 * (k % 2) + rng.normal(size=(100, 1)) for k in range(6)})
    found = checked(content, 8.0)
    assert found.fit_json() == {"tested": True, "by": "spread", "probability": 0.001}
    assert {one.name for one in found.misfits(np.zeros(6, dtype=np.int64))} == {f"i{k}" for k in range(6)}
    assert found.misfits(np.arange(6) % 2) == []


@pytest.mark.parametrize(
    ("noise", "by"),
    [
        (1.0, "noise"), (None, "ranks"), ("gaussian", "ranks"), (coterie.Bounded(-9, 99), None),
        (coterie.AtMost(2.0), None), ("symmetric", None),
    ],
)  # fmt: skip
def test_what_is_assumed_and_what_is_checked_is_said(noise: Any, by: str | None) -> None:
    rng = np.random.default_rng(3)
    found = checked(read_pool({f"i{k}": 5.0 * (k % 2) + rng.normal(size=(50, 2)) for k in range(6)}), noise)
    said = found.noise_json()
    assert said["assumption"] == noise_of(noise, 2).assumption
    assert said["checked"] == (by == "noise" or isinstance(noise, coterie.AtMost))
    assert (said["deviations"] is None) == (by != "noise")
    assert (said["verdicts"], said["direction"], said["rows_contradict"]) == ([None, None], None, False)
    assert found.fit_json()["by"] == by
    mixed = [one.arm for one in found.misfits(np.zeros(6, dtype=np.int64))]
    assert mixed == ([] if by is None else list(range(6)))
    assert found.misfits(np.arange(6) % 2) == []


@pytest.mark.parametrize(
    ("noise", "row", "what"),
    [
        (coterie.Counts(5), 7, "row 8, item b: a count of successes must be a whole number from 0 to 5, got 6"),
        (coterie.Bounded(0, 5), 7, "row 8, item b: a number must lie between 0 and 5, as was stated, got 6"),
    ],
)
def test_a_row_that_was_stated_to_be_impossible_is_named(noise: Any, row: int, what: str) -> None:
    rows = [{"item": "abc"[k % 3], "x": float(k % 5)} for k in range(30)]
    rows[row]["x"] = 6.0
    with pytest.raises(TableError, match=what) as caught:
        replay_pool(rows, 2, noise=noise)
    assert caught.value.field == "row 8"


def test_columns_that_say_nothing_are_named() -> None:
    rng = np.random.default_rng(4)
    rows = [{"item": "abcd"[k % 4], "c": 20.0 + rng.normal(), "still": 7.0, "x": rng.normal()} for k in range(40)]
    for row in rows:
        row["f"] = 32.0 + 1.8 * float(str(row["c"]))
    read = read_pool(rows).described()
    assert read.constant == ["still"]
    assert read.copies == [["c", "f"]]
    equal = read_pool([{"item": "abcd"[k % 4], "x": 5.0, "y": 6.0} for k in range(40)])
    assert (equal.described().constant, equal.described().copies) == (["x", "y"], [])
    found = checked(equal, None)
    assert found.noise_json()["spread"] == [0.0, 0.0]
    assert found.noise_json()["upper_covariance"] is None
    assert found.misfits(np.zeros(4, dtype=np.int64)) == []


def test_the_order_is_said_in_plain_words() -> None:
    rng = np.random.default_rng(5)
    rows = [{"item": "abc"[k % 3], "x": float(x)} for k, x in enumerate(np.sort(rng.normal(size=90)))]
    shuffled, kept = (order_report(read_pool(rows), one) for one in (True, False))
    assert shuffled is not None
    assert kept is not None
    assert shuffled.kind == "sorted"
    assert shuffled.text == (
        "the rows of an item are sorted by x (rank correlation 1.00; by chance in at most 1 % of tables): the file was "
        "sorted. A sorted file does no harm, since the rows were shuffled."
    )
    assert "so nothing is proven. If the file was sorted, say --shuffled (in Python in_order=False)." in kept.text
    drift = [{"item": "abc"[k % 3], "x": k / 100.0 + rng.normal()} for k in range(300)]
    found = order_report(read_pool(drift), True)
    assert found is not None
    assert found.text.startswith("later rows of an item tend to have a larger x than its earlier ones (rank corr")
    assert "the instrument or the items drift. A sorted file does no harm" in found.text
    assert "calibrate, and measure the items in turn." in found.text
    assert order_report(read_pool(table(0, items=10, repeats=8, slip=False)), True) is None


# With the engine.


@pytest.mark.parametrize("seed", range(6))
def test_the_answer_under_any_noise_stays_right_with_one_value_times_ten(seed: int) -> None:
    """δ = 0.01: wrong groups have probability at most 0.01 in each table. They are not proven, or right."""
    rows = table(100 + seed, items=8, repeats=40)
    found = replay_pool(rows, 2, delta=0.01)
    assert found["noise"]["kind"] == "any"
    assert len(found["slips"]["rows"]) == 1
    assert found["done"]
    assert coterie.same_partition(found["labels"], [k % 2 for k in range(8)])
    assert found["misfits"] == []
