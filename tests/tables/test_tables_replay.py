"""A recorded pool: how many measurements would have been enough, and what is known if they were not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import coterie
from coterie.campaign import BadValue
from coterie.campaign import replay_pool as replay_pool_of_campaign
from coterie.problem.noise import Noise
from coterie.tables import TableError, replay_pool
from coterie.tables.checks.misfits import misfits
from coterie.tables.checks.spread import NOISE_PROBABILITY, spread_of

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

    result = coterie.cluster(measure, 6, 3, method=method, threshold="heuristic", noise=1.0, progress=False)
    found = replay_pool(content, 3, method=method, threshold="heuristic", noise=1.0, in_order=True)
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
    arrays, dictionaries, file = (replay_pool(one, 3, noise=1.0) for one in (content, rows, path))
    assert (arrays["read"]["values"], file["read"]["values"]) == (["v0", "v1"], ["x", "y"])
    assert (file["read"]["source"], file["read"]["item_column"]) == ("pool.csv", "arm")
    for found in (arrays, dictionaries, file):
        del found["read"]
        for key in ("spread", "upper"):  # the rows are summed in another order
            found["noise"][key] = np.round(found["noise"][key], 12).tolist()
        if found["noise"]["together"] is not None:
            found["noise"]["together"]["correlation"] = round(found["noise"]["together"]["correlation"], 12)
        found["means"] = np.round(found["means"], 12).tolist()
    assert arrays == dictionaries == file


def test_a_pool_that_runs_dry_gives_a_partial_answer() -> None:
    content = pool(3, seed=1, spread=0.6)
    found = replay_pool(content, 3, delta=1e-6, noise=1.0)
    assert not found["done"]
    assert found["t"] == found["recorded"] == 18  # everything was used before giving up
    assert found["dry"]["recorded"] == 3
    assert found["dry"]["name"] in content
    assert found["dry"]["t"] <= 18
    assert sorted(found["partial"]["settled"] + found["partial"]["undecided"]) == sorted(content)
    assert found["partial"]["undecided"]
    plain = replay_pool(content, 3, delta=1e-6, noise=1.0, method="boc")
    assert not plain["done"]
    assert plain["partial"] is None


def test_the_rest_of_the_pool_can_still_settle_it() -> None:
    """One arm has a single measurement: it runs dry early, and the others' measurements finish the proof."""
    content = pool(12, seed=3, spread=3.5)
    content["item4"] = content["item4"][:1]
    found = replay_pool(content, 3, delta=1e-12, noise=1.0, in_order=True)
    assert found["dry"]["name"] == "item4"
    assert found["done"]
    assert found["dry"]["t"] < found["t"] <= found["recorded"] == 61


def test_numbered_arms_come_in_their_order() -> None:
    rows = [{"arm": arm, "v": float(value)} for arm, value in [(10, 5.0), (2, 0.0), (7, 5.1), (2, 0.2)] * 20]
    found = replay_pool(rows, 2, noise=1.0)
    assert found["names"] == ["2", "7", "10"]
    assert found["done"]
    assert found["labels"] == [0, 1, 1]


def test_noise_is_taken_into_account() -> None:
    content = pool(200)
    wide = {arm: block * [10.0, 1.0] for arm, block in content.items()}
    scaled, plain = (
        replay_pool(wide, 3, noise=[10.0, 1.0], in_order=True),
        replay_pool(content, 3, noise=1.0, in_order=True),
    )
    assert scaled["t"] == plain["t"]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ([], "the table has no measurements"),
        ([{"arm": "a", "v": "x"}], "has no column of numbers beside the items; its columns are arm, v"),
        ([{"arm": "a", "v": "x"}, {"arm": "a", "v": 1}], "row 1, column 'v': a number is needed, got 'x'"),
        ([{"arm": "", "v": 1.0}], "row 1, column 'arm': it is empty"),
        ([{"arm": "a"}], "has a single column, 'arm': one column must name the items and others hold the values$"),
        ({"a": [], "b": []}, "has no measurements"),
        ({"a": [[1.0]], "b": [[1.0, 2.0]], "c": [[1.0]]}, "of one d"),
        ([{"arm": "a", "v": 1.0}, {"arm": "b", "v": 2.0}], "n_clusters must be smaller than the number of arms"),
        (7, "a file, a DataFrame or a list of dictionaries, got 7"),
    ],
)
def test_bad_pools(given: Any, what: str) -> None:
    with pytest.raises(TableError, match=what):
        replay_pool(given, 2)


@pytest.mark.parametrize(
    ("settings", "field", "what"),
    [
        ({"n_clusters": 1}, "n_clusters", "n_clusters must be at least 2, got 1"),
        ({"delta": 1.5}, "delta", r"delta must lie in \(0, 1\), got 1.5"),
        ({"method": "delta"}, "method", "unknown method 'delta': choose one of croc, shortlist, boc"),
        ({"method": "oracle"}, "method", "method 'oracle' knows the true groups: it is for simulations"),
        ({"threshold": "noise"}, "threshold", "unknown threshold 'noise'"),
        ({"noise": -1.0}, "noise", "noise standard deviations must be positive"),
        ({"noise": [1.0, 2.0, 3.0]}, "noise", "noise must be None, a standard deviation, 2 of them"),
        ({"method": "boc-linear", "noise": 1.0}, "distance_ratio", "distance_ratio is needed"),
        ({"method": "boc"}, "noise", "needs to know the noise, and nothing was said about it"),
        ({"distance_ratio": "a"}, "distance_ratio", "distance_ratio must hold real numbers"),
        ({"copies": "some"}, "copies", "copies must be drop or keep, got 'some'"),
        ({"values": ["x"]}, "x", "the table has no column 'x'"),
    ],
)
def test_bad_settings_name_their_field(settings: dict[str, Any], field: str, what: str) -> None:
    """The field is that of the setting at fault, whatever words its message holds; as in `coterie.campaign`."""
    content = [{"arm": arm, "v0": float(value), "v1": 0.0} for arm, value in (("a", 0), ("b", 0), ("c", 9))]
    with pytest.raises(TableError, match=what) as caught:
        replay_pool(content, **{"n_clusters": 2} | settings)
    assert caught.value.field == field
    with pytest.raises(BadValue, match=what) as told:
        replay_pool_of_campaign(content, **{"n_clusters": 2} | settings)
    assert (told.value.field, told.value.code, told.value.status) == (field, "bad_value", 422)


def test_names_of_items_can_be_printed() -> None:
    content = {"a": [[0.0]], "b": [[0.0]], "c" * 201: [[9.0]]}
    with pytest.raises(TableError, match=r"names\[2\] must have 1 to 200 characters") as caught:
        replay_pool(content, 2)
    assert caught.value.field == "names[2]"


# Does what was recorded fit?


def lab(seed: int, n: int = 8, items: int = 20) -> dict[str, Any]:
    """Samples in three groups: pH and turbidity, with standard deviations 0.2 and 25."""
    rng = np.random.default_rng(seed)
    centers = np.array([[5.4, 120.0], [6.1, 300.0], [6.9, 120.0]])
    return {f"S{i + 1:02}": centers[i % 3] + rng.normal(size=(n, 2)) * [0.2, 25.0] for i in range(items)}


@pytest.mark.parametrize("seed", range(30))
def test_too_few_groups_are_never_proven_without_a_word(seed: int) -> None:
    """Two groups where there are three: an alarm, or misfits. By chance both fail with probability far below 1e-12:
    the group that is a mixture has centers 3 or more standard deviations apart, and 8 measurements an item.
    """
    found = replay_pool(lab(seed), 2, noise=[0.2, 25.0])
    if not found["done"]:
        assert found["alarm"] is not None
        return
    truth = np.arange(20) % 3
    labels = np.array(found["labels"])
    mixed = {int(label) + 1 for label in set(labels.tolist()) if len(set(truth[labels == label].tolist())) > 1}
    assert mixed
    assert {one["group"] for one in found["misfits"]} == mixed
    assert all(found["names"][one["arm"]] == one["name"] for one in found["misfits"])


@pytest.mark.slow
def test_misfits_of_right_groups_are_as_rare_as_stated() -> None:
    """4000 pools of uneven counts in their true groups, at level 0.05 over all items: false alarms 1e-6 each way."""
    rng = np.random.default_rng(11)
    labels = np.array([0, 1, 0, 2, 1, 0, 3, 3, 0])  # group 2 has one item: nothing to compare it with
    counts = np.array([1, 2, 9, 4, 30, 5, 3, 3, 1])
    arms = np.repeat(np.arange(9), counts)
    centers = rng.normal(size=(4, 3)) * 1e3
    wrong = 0
    for _ in range(4000):
        white = centers[labels][arms] + rng.standard_normal((arms.size, 3))
        wrong += bool(misfits(labels, arms, white, 0.05))
    assert wrong <= binom.ppf(1 - 1e-6, 4000, 0.05)
    assert wrong >= binom.ppf(1e-6, 4000, 0.025)  # nor is it blunt: Bonferroni over 9 items loses less than half


@pytest.mark.slow
def test_the_whole_answer_names_misfits_as_rarely_as_it_is_wrong() -> None:
    """300 runs at δ = 0.05: wrong groups or a misfit with probability at most 0.051; false alarm below 1e-6."""
    truth = [0, 1, 2, 0, 1, 2]
    bad = 0
    for seed in range(300):
        found = replay_pool(pool(40, seed=100 + seed), 3, noise=1.0)
        assert found["done"]
        bad += found["labels"] != truth or bool(found["misfits"])
    assert bad <= binom.ppf(1 - 1e-6, 300, 0.051)


@pytest.mark.slow
def test_a_noise_that_is_right_is_rarely_called_wrong() -> None:
    """20 000 pools: the expected number of verdicts is at most 2; more than 14 have a probability below 1e-7."""
    rng = np.random.default_rng(5)
    arms = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 6])
    noise = Noise.of([0.5, 30.0], 2)
    means = rng.normal(size=(6, 2)) * 100
    called = sum(
        spread_of(arms, means[arms] + rng.normal(size=(21, 2)) * [0.5, 30.0], 6).column_verdicts(noise) != [None, None]
        for _ in range(20_000)
    )
    assert called <= binom.ppf(1 - 1e-7, 20_000, NOISE_PROBABILITY)


def test_the_noise_stands_beside_the_spread_of_repeats() -> None:
    content = {"a": [[1.0], [3.0]], "b": [[5.0], [5.0], [8.0]], "c": [[0.0]]}
    noise = replay_pool(content, 2, noise=2.0)["noise"]
    assert noise["freedom"] == 3
    assert noise["spread"] == [pytest.approx(np.sqrt((2.0 + 6.0) / 3))]
    assert noise["upper"] == [8.35]  # sqrt(8 / 0.1148) = 8.347, and 0.1148 is the 1 % point of χ² with 3
    assert (noise["deviations"], noise["verdicts"]) == ([2.0], [None])
    content = lab(0)
    assert replay_pool(content, 3, noise=[0.02, 25.0])["noise"]["verdicts"] == ["too small", None]
    assert replay_pool(content, 3, noise=[0.2, 250.0])["noise"]["verdicts"] == [None, "too large"]
    assert replay_pool(content, 3, noise=[[0.04, 0.0], [0.0, 25.0]])["noise"]["verdicts"] == [None, "too small"]
    once = replay_pool({name: block[:1] for name, block in content.items()}, 3, noise=[0.2, 25.0])["noise"]
    assert (once["spread"], once["upper"], once["verdicts"]) == (None, None, [None, None])


def test_too_many_groups_get_a_hint() -> None:
    for n_clusters in (4, 6):
        found = replay_pool(lab(1), n_clusters, noise=[0.2, 25.0])
        assert not found["done"]
        assert found["fewer"]["n_clusters"] == 3
        assert found["fewer"]["t"] == replay_pool(lab(1), 3, noise=[0.2, 25.0])["t"]
    alike = {f"a{i}": np.random.default_rng(i).normal(size=(10, 1)) for i in range(5)}
    assert replay_pool(alike, 2, noise=1.0)["fewer"] == {"n_clusters": 1, "t": None}
    apart = {"a": [[0.0], [0.0]], "b": [[0.0], [0.0]], "c": [[5.0], [5.0]]}  # differs, but too few for a proof
    found = replay_pool(apart, 2, delta=1e-9, noise=1.0)
    assert (found["done"], found["fewer"]) == (False, None)
    assert replay_pool(lab(1), 3, noise=[0.2, 25.0])["fewer"] is None


def test_the_certificate_is_in_the_answer() -> None:
    found = replay_pool(lab(2), 3, noise=[0.2, 25.0])
    assert coterie.same_partition(found["certificate"]["labels"], found["labels"])
    assert replay_pool(lab(2, n=60), 3, noise=[0.2, 25.0], method="boc", threshold="heuristic")["certificate"] is None


def test_what_was_read_is_described() -> None:
    rows = [{"Sample": name, "x": 1.5 * k, "note": "n", "id": k} for k, name in enumerate(["S1", "s1", "S2", "S2"])]
    read = replay_pool([*rows, rows[2]], 2, noise=1.0)["read"]
    assert (read["items"], read["measurements"], read["fewest"], read["most"]) == (3, 5, 1, 3)
    assert (read["once"], read["spelt_alike"]) == (["S1", "s1"], [["S1", "s1"]])
    assert (read["item_column"], read["guessed"], read["values"]) == ("Sample", False, ["x"])
    assert [(one["column"], one["why"]) for one in read["left_out"]] == [("note", "no numbers"), ("id", "an id")]
    assert not any(one["by_content"] for one in read["left_out"])
    picked = replay_pool(rows, 2, noise=1.0, values=["ID"], items="SAMPLE")["read"]
    assert (picked["values"], [one["why"] for one in picked["left_out"]]) == (["id"], ["not picked", "not picked"])


def test_items_keep_the_names_that_the_table_gives_them() -> None:
    """001 and 1 may be one item or two: they are not made one, and a warning says so. 0012 is not written as 12."""
    given = [("10", 5.0), ("001", 0.0), ("1", 0.1), ("0012", 5.1)]
    found = replay_pool([{"arm": name, "v": value} for name, value in given * 20], 2, noise=1.0)
    assert found["names"] == ["001", "1", "10", "0012"]  # by size
    assert found["counts"] == [20] * 4
    assert found["labels"] == [0, 0, 1, 1]
    assert found["read"]["spelt_alike"] == [["001", "1"]]
    mixed = [
        {"arm": name, "v": value}
        for name, value in [("S5", 0.0), ("s 05", 0.0), ("S50", 5.0), ("1.05", 5.0), ("1.5", 5.0)]
    ]
    read = replay_pool(mixed * 20, 2, noise=1.0)["read"]
    assert read["spelt_alike"] == [["S5", "s 05"]]
    numbers: list[Any] = [3, 3.0, "3", 1, 2]  # of Parquet files and dictionaries
    assert replay_pool([{"arm": arm, "v": 1.0 * int(arm)} for arm in numbers], 2, noise=1.0)["names"] == ["1", "2", "3"]
