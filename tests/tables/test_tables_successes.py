"""Successes out of totals that differ become counts out of one total, exactly, or are refused with the way out."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.tables import TableError, replay_pool
from coterie.tables.checks.row_order import Order
from coterie.tables.checks.successes import BURST_LEVEL, as_counts, independence
from coterie.tables.reading.columns import TOTALS
from coterie.tables.reading.pools import read_pool

RATES = {"a": 0.05, "b": 0.05, "c": 0.05, "d": 0.30, "e": 0.30}


def rows(seed: int = 0, count: int = 20, names: tuple[str, str] = ("clicks", "impressions")) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {"item": item, names[0]: int(rng.binomial(total, rate)), names[1]: int(total)}
        for item, rate in RATES.items()
        for total in rng.integers(30, 200, count)
    ]


def cut(table: Any, noise: Any, seed: int = 0, resolved: bool = False) -> tuple[Any, Any]:
    return as_counts(read_pool(table), noise, resolved, Order(seed))


@pytest.mark.parametrize("batch", [2, 7, 50])
def test_batches_keep_every_trial_but_the_remainder(batch: int) -> None:
    table = rows()
    pool, noise = cut(table, coterie.Counts(batch))
    assert noise == coterie.Counts(batch)
    assert pool.rows.min() >= 0
    assert pool.rows.max() <= batch
    for arm, name in enumerate(pool.names):
        its = [row for row in table if row["item"] == name]
        trials, hits = sum(row["impressions"] for row in its), sum(row["clicks"] for row in its)
        found = pool.rows[pool.arms == arm]
        assert len(found) == trials // batch
        assert hits - trials % batch <= found.sum() <= hits
    assert pool.cut.left == sum(
        sum(row["impressions"] for row in table if row["item"] == name) % batch for name in RATES
    )


def test_every_order_of_the_trials_is_equally_likely() -> None:
    """Of an item with 2 clicks in 4 impressions over two rows, six orders; over seeds each comes as often."""
    table = [{"item": "a", "clicks": 2, "impressions": 3}, {"item": "a", "clicks": 0, "impressions": 1}]
    table += [{"item": "b", "clicks": 1, "impressions": 4}]
    seen = dict.fromkeys(itertools.permutations([0.0, 0.0, 1.0, 1.0]), 0)
    for seed in range(600):
        pool, _ = cut(table, "counts", seed)
        order = Order(seed)
        stack = pool.stacks(order)[0]  # in the order in which a method gets them
        seen[tuple(pool.rows[stack, 0])] += 1
    counts = np.array(list(seen.values()))
    assert counts.size == 6
    assert ((counts - 100) ** 2 / 100).sum() < 20.5  # chi-square with 5 degrees of freedom: 0.1 %


def test_the_same_seed_gives_the_same_batches_whatever_the_order_of_the_rows() -> None:
    table = rows()
    first, _ = cut(table, coterie.Counts(10), 3)
    again, _ = cut(table[::-1], coterie.Counts(10), 3)
    other, _ = cut(table, coterie.Counts(10), 4)
    assert np.array_equal(first.rows, again.rows)
    assert not np.array_equal(first.rows, other.rows)


@pytest.mark.parametrize("names", [(one, total) for one, totals in TOTALS.items() for total in totals])
def test_known_pairs_of_columns_are_understood(names: tuple[str, str]) -> None:
    answer = replay_pool(rows(names=(names[0].title(), names[1])), 2, noise=coterie.Counts())
    assert answer["done"]
    assert [group["names"] for group in answer["groups"]] == [["a", "b", "c"], ["d", "e"]]
    assert answer["read"]["cut"]["successes"] == names[0].title()
    assert answer["dim"] == 1


def test_frames_and_the_estimator_take_them_and_the_proof_is_checked() -> None:
    import pandas as pd

    fitted = coterie.BanditClustering(2, noise=coterie.Counts(20)).fit(pd.DataFrame(rows()).assign(ctr=0.1))
    assert fitted.labels_ is not None
    assert fitted.labels_.tolist() == [0, 0, 0, 1, 1]
    assert fitted.certificate_ is not None
    assert fitted.certificate_.verify(fitted.session_.events).valid
    assert fitted.certificate_["noise"] == {"family": "counts", "trials": 20}


def test_equal_totals_stay_rows() -> None:
    table = [row | {"impressions": 200} for row in rows()]
    pool, noise = cut(table, {"family": "counts", "trials": 200})
    assert noise == coterie.Counts(200)
    assert pool.rows[:, 0].tolist() == [row["clicks"] for row in table]
    assert pool.cut.left == 0
    single, noise = cut(table, "counts", resolved=True)
    assert noise == coterie.Counts()
    assert len(single.rows) == 200 * len(table)


def test_with_a_resolution_counts_are_rates() -> None:
    answer = replay_pool(rows(), resolution=(0.05, 0.2), noise=coterie.Counts())
    assert answer["read"]["cut"]["batch"] == 1
    assert len(answer["groups"]) == 2
    assert all(0 <= group["center"][0] <= 1 for group in answer["groups"])


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {}, r"impressions differ from row to row.*--noise counts.*--values clicks,impressions"),
        ({}, {"noise": 3.0}, "--noise counts"),
        ({}, {"noise": coterie.Counts(), "in_order": True}, r"say --shuffled \(in Python in_order=False\)"),
        ({}, {"noise": coterie.Counts(10**6)}, r"e has only 2075 impressions in all.*counts:"),
        ({"clicks": 500}, {"noise": coterie.Counts()}, r"row 3, column 'clicks': there are 500 clicks of only \d+"),
        ({"clicks": -1}, {"noise": coterie.Counts()}, "row 3, column 'clicks': a count must be a whole number"),
        ({"impressions": 0.5}, {"noise": coterie.Counts()}, "row 3, column 'impressions': a count must be a whole"),
        ({"visitors": 1000}, {"noise": coterie.Counts()}, "(row 1, column 'visitors'|several columns)"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_the_way_out(
    change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    table = rows()
    table[2] |= change
    if "visitors" in change:
        table = [row | change for row in table]
    with pytest.raises(TableError, match=message):
        replay_pool(table, 2, **options)


def test_picked_columns_of_another_noise_are_compared_as_they_are() -> None:
    table = [row | {"impressions": row["impressions"] + 5000 * (row["item"] in "ab")} for row in rows()]
    answer = replay_pool(table, 2, values=["clicks", "impressions"])
    assert answer["dim"] == 2
    assert answer["read"]["cut"] is None
    assert [group["names"] for group in answer["groups"]] == [["a", "b"], ["c", "d", "e"]]


def test_bursts_are_named_and_void_the_proof(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lines = ["item,clicks,impressions"]
    for item, rate in RATES.items():
        for total in rng.integers(100, 400, 20):
            lines.append(f"{item},{rng.binomial(total, rng.beta(8 * rate, 8 * (1 - rate)))},{total}")
    file = tmp_path / "clicks.csv"
    file.write_text("\n".join(lines) + "\n")
    shown = CliRunner().invoke(app, ["group", str(file), "--clusters", "2", "--noise", "counts", "--verbose"])
    text = " ".join(shown.output.split())
    assert text.startswith("Nothing is proven: the rates of an item's rows differ more than independent impressions")
    assert "clicks come in bursts" in text
    assert "each the clicks of" in text
    with pytest.warns(UserWarning, match="differ more than independent impressions allow"):
        coterie.BanditClustering(2, noise=coterie.Counts()).fit(str(file))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("size", [20, 200])
def test_independent_trials_are_rarely_taken_for_bursts(rate: float, size: int) -> None:
    # 500 tables: at most 1 % in truth, more than 15 of them by chance with probability below 1e-4.
    rng = np.random.default_rng(11)
    arms = np.repeat(np.arange(6), 10)
    alarms = 0
    for _ in range(500):
        totals = rng.poisson(size, arms.size) + 1
        p = independence(arms, rng.binomial(totals, rate), totals, 6)
        alarms += p is not None and p < BURST_LEVEL
    assert alarms <= 15


def test_the_command_groups_clicks_and_writes_a_proof(tmp_path: Path) -> None:
    file, out = tmp_path / "clicks.csv", tmp_path / "groups"
    file.write_text(
        "banner;Clicks;Impressions\n" + "".join(f"{r['item']};{r['clicks']};{r['impressions']}\n" for r in rows())
    )
    run = CliRunner()
    shown = run.invoke(app, ["group", str(file), "--clusters", "2", "--noise", "counts", "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    checked = run.invoke(app, ["verify", str(out / "certificate.json"), str(out / "log.csv")])
    assert checked.exit_code == 0, checked.output
    refused = run.invoke(app, ["group", str(file), "--clusters", "2"])
    assert refused.exit_code == 2 or isinstance(refused.exception, TableError)
