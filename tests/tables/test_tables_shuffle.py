"""Tables that are sorted by value: an item's measurements are shuffled by a recorded seed before they are used."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
from plain_shuffle import shuffled_plainly
from scipy.stats import binom, kstest

import coterie
from coterie.tables import TableError, replay_pool
from coterie.tables.checks.row_order import Order, content_order
from coterie.tables.reading.pools import read_pool
from coterie.tables.replay import group_pool


def sorted_table(seed: Any, n_clusters: int, counts: list[int], gap: float = 1.0) -> dict[str, Any]:
    """Items in groups that lie `gap` apart, the measurements of each sorted by value."""
    rng = np.random.default_rng(seed)
    return {
        f"item{m}": np.sort(gap * (m % n_clusters) + rng.standard_normal(count))[:, None]
        for m, count in enumerate(counts)
    }


def as_rows(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The same as a table, item after item."""
    return [{"arm": name, "x": float(x)} for name, block in content.items() for (x,) in block]


# The shuffle.


@pytest.mark.parametrize(("seed", "name", "count"), [(0, "a", 1), (0, "a", 9), (7, "ünï 1", 200), (2**53 - 1, "b", 50)])
def test_places_match_the_oracle(seed: int, name: str, count: int) -> None:
    assert Order(seed).places(name, count).tolist() == shuffled_plainly(list(range(count)), name, seed)


def test_places_are_those_of_every_release() -> None:
    """A recorded seed is worth nothing if it shuffles otherwise tomorrow."""
    assert Order(0).places("a", 8).tolist() == [2, 0, 5, 1, 4, 7, 6, 3]
    assert Order(1).places("a", 8).tolist() == [3, 6, 1, 2, 0, 5, 4, 7]
    assert Order(0).places("b", 8).tolist() == [6, 4, 1, 3, 7, 5, 2, 0]
    assert Order(None).places("a", 8).tolist() == list(range(8))
    assert Order(0).places("a", 0).tolist() == []


@pytest.mark.slow
def test_shuffled_measurements_are_distributed_as_unsorted_ones() -> None:
    """4,000 pairs of sorted items: the sum of the first 5 of 30 is normal, and so is the difference of two items.

    Three tests at level 1e-7 each: a false alarm has a probability below 1e-6. Without a shuffle, or with one that two
    items share, they fail: sums of the smallest are far below 0, and differences are far too small.
    """
    rng = np.random.default_rng(1)
    firsts = np.empty((4000, 2))
    for seed in range(4000):
        for item, name in enumerate(("first", "second")):
            values = np.sort(rng.standard_normal(30))
            firsts[seed, item] = values[Order(seed).places(name, 30)[:5]].sum() / np.sqrt(5.0)
    for found in (firsts[:, 0], firsts[:, 1], (firsts[:, 0] - firsts[:, 1]) / np.sqrt(2.0)):
        assert kstest(found, "norm").pvalue > 1e-7


def test_rows_change_places_among_those_of_their_item() -> None:
    arms = np.array([2, 0, 2, 2, 0, 1, 2])
    names = ["a", "b", "c"]
    found = Order(3).rearranged(arms, names.__getitem__)
    assert sorted(found.tolist()) == list(range(7))
    assert (arms[found] == arms).all()
    for arm, name in enumerate(names):
        rows = np.flatnonzero(arms == arm).tolist()
        assert found[rows].tolist() == shuffled_plainly(rows, name, 3)
    assert Order(None).rearranged(arms, names.__getitem__).tolist() == list(range(7))
    assert Order(0).rearranged(np.zeros(0, dtype=np.int64), names.__getitem__).size == 0


def plain_seed(content: dict[str, Any]) -> int:
    """The oracle: 53 bits of the SHA-256 of all rows, sorted, each its item's name and its numbers as Python writes
    them.
    """
    rows = sorted([name, *map(repr, row)] for name, block in content.items() for row in block.tolist())
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return int(digest[:14], 16) // 8


def test_the_seed_follows_from_the_content_and_nothing_else() -> None:
    """One seed a table: the order of rows, columns' names and the way numbers are written do not change it."""
    content = sorted_table(3, 2, [9, 7, 8])
    seed = plain_seed(content)
    assert 0 <= seed < 2**53
    assert read_pool(content).order() == Order(seed)
    rows = as_rows(content)
    for given in (rows, rows[::-1], [{"sample": row["arm"], "other": str(row["x"])} for row in rows]):
        assert read_pool(given).order() == Order(seed)
    other = content | {"item1": content["item1"] + 1e-9}
    assert read_pool(other).order() != Order(seed)
    assert read_pool(content).order(in_order=True) == Order(None)
    for wrong in ("yes", 1, None):
        with pytest.raises(TableError, match="in_order must be True or False"):
            content_order([], wrong)
    with pytest.raises(TypeError, match="seed"):
        replay_pool(content, 2, seed=1)  # type: ignore[call-arg]


# What is grouped.


def test_a_pool_is_used_in_the_order_of_its_shuffle() -> None:
    """The same as a session that gets the rows as the oracle shuffles them; verify accepts its log."""
    content = sorted_table(5, 2, [60, 90, 60, 90, 60, 60], gap=1.5)
    seed = plain_seed(content)
    blocks = [shuffled_plainly(block.tolist(), name, seed) for name, block in content.items()]
    used = [0] * 6

    def measure(arm: int) -> Any:
        used[arm] += 1
        return blocks[arm][used[arm] - 1]

    result = coterie.cluster(measure, 6, 2, delta=0.01, noise=1.0, progress=False)
    answer = group_pool(read_pool(content), 2, delta=0.01, noise=1.0)
    found, session = answer.to_json(), answer.session
    assert found["done"]
    assert found["dry"] is None
    assert found["order"] == {"shuffled": True, "seed": seed}
    assert (found["t"], found["pulls"]) == (result.t, used)
    assert found["certificate"] == result.session.certificate
    assert session.events == result.session.events
    assert coterie.verify(found["certificate"], session.events)


def test_the_same_rows_give_the_same_answer_in_any_order() -> None:
    """Nobody gets another shuffle by rearranging the file."""
    rows = as_rows(sorted_table(6, 2, [80] * 6))
    answers = [replay_pool(given, 2, noise=1.0) for given in (rows, rows, rows[::-1], rows[1::2] + rows[::2])]
    assert answers[0] == answers[1]
    for other in answers[2:]:
        for key in ("done", "t", "pulls", "labels", "order", "certificate", "counts"):
            assert other[key] == answers[0][key], key


def test_an_items_order_is_its_own() -> None:
    """Another item, other rows of other items, or items that alternate: this one's order stays what it was."""
    content = sorted_table(7, 2, [40, 50, 40, 40])

    def stack(given: Any, name: str, seed: int = 4) -> list[float]:
        pool = read_pool(given)
        found: list[float] = pool.rows[pool.stacks(Order(seed))[pool.names.index(name)], 0].tolist()
        return found

    wanted = stack(content, "item1")
    assert wanted != content["item1"][:, 0].tolist()
    assert sorted(wanted) == content["item1"][:, 0].tolist()
    more = {"before": content["item0"], **content, "after": content["item0"][:7]}
    backwards = content | {"item0": content["item0"][::-1], "item2": content["item2"][5:]}
    rows = as_rows(content)
    by_value = sorted(rows, key=lambda row: row["x"])
    for given in (more, backwards, rows, by_value):
        assert stack(given, "item1") == wanted
    assert stack(content, "item1", 5) != wanted
    assert stack({**content, "item1": content["item1"][::-1]}, "item1") == wanted


def test_only_the_order_within_an_item_enters() -> None:
    """Item after item, or all rows by value: the same answer. Items are numbered by name, not by where they appear."""
    rows = as_rows(sorted_table(8, 3, [60] * 12, gap=2.0))
    first = replay_pool(rows, 3, noise=1.0)
    other = replay_pool(sorted(rows, key=lambda row: row["x"]), 3, noise=1.0)
    assert first["names"] == [f"item{m}" for m in range(12)]  # item2 before item10
    for key in ("done", "t", "pulls", "labels", "names", "order", "certificate"):
        assert first[key] == other[key], key
    names = ["B2", "b10", "B1", "a", "B01", "10", "=1", "9" * 5000]
    read = read_pool([{"arm": name, "x": 0.0} for name in names])
    assert read.names == ["10", "9" * 5000, "=1", "a", "B01", "B1", "B2", "b10"]


@pytest.mark.parametrize("method", ["croc", "boc"])
@pytest.mark.parametrize("in_order", [False, True])
def test_the_rest_of_a_dry_pool_is_told_in_turn(method: str, in_order: bool) -> None:
    """The oracle: one by one, always the item that has been told least, each item's rows in their order."""
    content = sorted_table(9, 3, [30, 4, 25, 30, 30, 12], gap=1.0)
    blocks = [block.tolist() for block in content.values()]
    if not in_order:
        seed = plain_seed(content)
        blocks = [shuffled_plainly(block, name, seed) for block, name in zip(blocks, content, strict=True)]
    oracle = coterie.Session(6, 3, 1, delta=1e-6, method=method, noise=1.0)
    used = [0] * 6
    while used[arm := oracle.ask()] < len(blocks[arm]):
        oracle.tell(arm, blocks[arm][used[arm]])
        used[arm] += 1
    oracle.forget(oracle.pending[-1][0])
    dry_at = oracle.t
    while any(left := [len(block) > count for block, count in zip(blocks, used, strict=True)]):
        arm = min((m for m in range(6) if left[m]), key=lambda m: (used[m], m))
        oracle.tell(arm, blocks[arm][used[arm]])
        used[arm] += 1
    answer = group_pool(read_pool(content), 3, delta=1e-6, method=method, noise=1.0, in_order=in_order)
    found, session = answer.to_json(), answer.session
    assert not found["done"]
    assert found["t"] == found["recorded"] == 131
    assert (found["dry"]["arm"], found["dry"]["t"]) == (arm_of_dry(blocks, session), dry_at)
    assert [(arm, x.tolist()) for arm, x in session.log] == [(arm, x.tolist()) for arm, x in oracle.log]
    if method == "croc":
        assert session.events == oracle.events
        assert session.partial().differ == oracle.partial().differ


def arm_of_dry(blocks: list[Any], session: coterie.Session) -> int:
    """The item that was used up first."""
    left = [len(block) for block in blocks]
    for arm, _ in session.log:
        left[arm] -= 1
        if left[arm] == 0:
            return arm
    raise AssertionError("none is")


# The guarantee.

TABLES, DELTA = 300, 0.01


@pytest.mark.guarantee
@pytest.mark.parametrize(
    ("n_clusters", "counts"),
    [(2, [200, 200, 150, 200, 200, 150]), (3, [200, 200, 200, 80, 80, 80])],
    ids=["two groups", "three groups"],
)
def test_sorted_tables_error_rate_within_delta(n_clusters: int, counts: list[int]) -> None:
    """300 tables with each item's rows sorted by value: wrong groups are proven with probability at most 0.01.

    More than 14 of 300 have a probability below 1e-6. In the order of the file the same tables are wrong far more
    often, in at least 30 (with a probability of 0.01 each, 30 or more of 300 would have one below 1e-19): so the first
    bound can fail.
    """
    truth = [m % n_clusters for m in range(6)]
    wrong = {False: 0, True: 0}
    proven = 0
    for number in range(TABLES):
        content = sorted_table([n_clusters, number], n_clusters, counts)
        for in_order in (False, True):
            found = replay_pool(content, n_clusters, delta=DELTA, noise=1.0, in_order=in_order)
            wrong[in_order] += found["done"] and not coterie.same_partition(found["labels"], truth)
            proven += found["done"] and not in_order
    assert proven >= 0.8 * TABLES
    assert wrong[False] <= binom.ppf(1 - 1e-6, TABLES, DELTA)
    assert wrong[True] >= 30
