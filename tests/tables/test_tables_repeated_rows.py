"""Rows that stand in a table several times: told from ties by chance, named, asked about, dropped or kept."""

from __future__ import annotations

import importlib
import itertools
import math
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.tables import TableError, replay_pool
from coterie.tables.reading.pools import read_pool
from coterie.tables.reading.repeated_rows import CHANCE, repeated_rows


def table(rng: np.random.Generator, values: Any, items: int, each: int) -> tuple[Any, Any]:
    arms = np.repeat(np.arange(items), each)
    return arms, np.asarray(values(rng, arms.size), dtype=float).reshape(arms.size, -1)


KINDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "integers": lambda rng, n: np.round(rng.normal(0, 30, n)),
    "two decimals": lambda rng, n: np.round(rng.normal(7, 0.2, n), 2),
    "heavy tails": lambda rng, n: np.round(rng.standard_t(3, n), 2),
    "counts": lambda rng, n: rng.poisson(12, n),
    "ratings": lambda rng, n: rng.integers(1, 6, n),
    "zero or one": lambda rng, n: rng.integers(0, 2, n),
    "prices": lambda rng, n: rng.integers(1, 60, n) - np.where(rng.random(n) < 0.85, 0.01, 0.5),
    "steps of 0.05": lambda rng, n: np.round(np.round(20 * rng.normal(50, 10, n)) / 20, 2),
    "limit of detection": lambda rng, n: np.where(rng.random(n) < 0.3, 0.05, np.round(rng.lognormal(0, 1, n), 2)),
    "all digits": lambda rng, n: rng.normal(size=n),
    "two columns": lambda rng, n: np.column_stack([np.round(rng.normal(7, 0.2, n), 2), rng.integers(1, 6, n)]),
}
FINE = ("integers", "heavy tails", "all digits", "steps of 0.05")


@pytest.mark.parametrize("kind", KINDS)
def test_ties_by_chance_are_no_copies_and_a_table_four_times_is(kind: str) -> None:
    """120 tables, a false alarm in at most 1 of 500 (two rules): more than 5 have a probability below 1e-6."""
    rng = np.random.default_rng(1)
    false, missed = 0, 0
    for _ in range(120):
        arms, rows = table(rng, KINDS[kind], int(rng.integers(4, 8)), int(rng.integers(6, 30)))
        false += repeated_rows(arms, rows) is not None
        found = repeated_rows(np.tile(arms, 4), np.tile(rows, (4, 1)))
        missed += found is None
        if found is not None and found.times == 4:
            assert len(found.rows) == 3 * len(arms)
    assert false <= 5
    assert missed == 0 or kind == "zero or one"  # too few different rows to tell


@pytest.mark.parametrize("kind", FINE)
def test_a_few_rows_twice_are_seen_where_values_have_many_digits(kind: str) -> None:
    rng = np.random.default_rng(2)
    seen = 0
    for _ in range(50):
        arms, rows = table(rng, lambda rng, n: 1000 * KINDS[kind](rng, n) + rng.integers(0, 1000, n), 5, 12)
        again = rng.choice(60, 12, replace=False)
        found = repeated_rows(np.append(arms, arms[again]), np.concatenate([rows, rows[again]]))
        seen += found is not None and set(found.first) == set(again.tolist()) and min(found.rows) >= 60
    assert seen >= 45


@pytest.mark.parametrize("divisor", [2, 3, 5])
def test_the_probability_that_all_counts_have_a_divisor_is_below_its_bound(divisor: int) -> None:
    """Counted out: all ways in which n results fall on D values that are all seen."""
    shares = [1, 2, 5, 30]
    for different, n in itertools.product((2, 3, 4), range(2, 17)):
        for weights in itertools.combinations_with_replacement(shares, different):
            every = divided = 0.0
            for counts in itertools.product(range(1, n - different + 2), repeat=different - 1):
                last = n - sum(counts)
                if last < 1 or n * different > 48:
                    continue
                full = (*counts, last)
                chance = math.factorial(n) * math.prod(
                    w**c / math.factorial(c) for w, c in zip(weights, full, strict=True)
                )
                every += chance
                divided += chance if all(c % divisor == 0 for c in full) else 0.0
            assert divided <= every * 2.0 ** (1 - different) * (1 + 1e-12)


def eighteen_rows() -> list[dict[str, Any]]:
    """Six items that are all alike, three ratings each."""
    rng = np.random.default_rng(4)
    return [{"item": f"S{k}", "x": float(x)} for k in range(6) for x in rng.choice(9, 3, replace=False)]


def test_the_same_eighteen_rows_four_times_are_asked_about(tmp_path: Path) -> None:
    rows = eighteen_rows()
    with pytest.raises(TableError, match=r"is there 4 times.*54 of 72 rows are copies \(row 19 is row 1") as caught:
        replay_pool(rows * 4, 2)
    assert caught.value.field == "copies"
    assert "at most 1 of 1,000 tables" in caught.value.message
    assert CHANCE == 0.001
    dropped = replay_pool(rows * 4, 2, noise="gaussian", copies="drop")
    once = replay_pool(rows, 2, noise="gaussian")
    for key in ("t", "labels", "recorded", "certificate", "means", "order"):
        assert dropped[key] == once[key], key
    assert any("Left out, as copies" in one for one in dropped["read"]["remarks"])
    kept = replay_pool(rows * 4, 2, copies="keep")
    assert kept["recorded"] == 72
    assert any(one.startswith("warning: every row") for one in kept["read"]["remarks"])
    assert replay_pool(rows, 2, copies="drop")["recorded"] == 18
    with pytest.raises(TableError, match="copies must be drop or keep, got 'some'"):
        read_pool(rows, copies="some")
    with pytest.raises(TableError, match="copies"):
        coterie.BanditClustering(2).fit(rows * 4)

    (tmp_path / "four.csv").write_text("item,x\n" + 4 * "".join(f"{row['item']},{row['x']:g}\n" for row in rows))
    command = ["group", str(tmp_path / "four.csv")]
    run = CliRunner().invoke(app, command)
    assert run.exit_code != 0
    assert "line 20 is line 2" in run.output or "line 20 is line 2" in str(run.exception)
    shown = CliRunner().invoke(app, [*command, "--copies", "drop"])
    assert shown.exit_code == 0
    assert "18 measurements, 3 each" in shown.output


def test_on_a_terminal_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = importlib.import_module("coterie.cli.group")  # the name group is that of the function

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    (tmp_path / "t.csv").write_text("item,x\n" + 4 * "".join(f"{r['item']},{r['x']:g}\n" for r in eighteen_rows()))
    monkeypatch.setattr(command, "sys", types.SimpleNamespace(stdin=Terminal, stderr=Terminal))
    run = CliRunner().invoke(app, ["group", str(tmp_path / "t.csv")], input="what\ndrop\n")
    assert run.exit_code == 0
    assert "18 measurements, 3 each" in run.output


def test_kept_rows_keep_their_places() -> None:
    rng = np.random.default_rng(0)
    rows = [{"item": "ab"[k % 2], "x": float(rng.normal())} for k in range(12)]
    pool = read_pool([rows[0], *rows, rows[3]], copies="drop")
    assert [pool.place(k) for k in range(12)] == ["row 1", *(f"row {k}" for k in range(3, 14))]
