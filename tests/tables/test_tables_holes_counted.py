"""Holes at random in a finished table: rows count where they have numbers, by exact tests, with a certificate."""

from __future__ import annotations

import copy
import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from error_rates import Guarantee, note_count
from scipy import stats
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.evidence.exact.block_tests import test_with_holes as holes_tested
from coterie.problem.families import noise_of
from coterie.problem.noise import Noise
from coterie.tables import TableError

NOISES: list[Any] = [
    None, "gaussian", coterie.Gaussian("diagonal"), coterie.Gaussian("scalar"), [1.0, 1.0, 2.0],
    [[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]], coterie.Symmetric(), coterie.AtMost(2.0),
    coterie.Bounded(-5, 9), coterie.Counts(10),
]  # fmt: skip


def holed(rng: np.random.Generator, rows: int = 14, share: float = 0.2, noise: Any = None, gap: float = 4.0) -> Any:
    table = {}
    for k in range(4):
        if isinstance(noise, coterie.Counts):
            values = rng.binomial(10, 0.1 + 0.5 * (k % 2), size=(rows, 3)).astype(float)
        else:
            values = np.clip(gap * (k % 2) + rng.normal(size=(rows, 3)), -5.0, 9.0)
        values[rng.random(values.shape) < share] = math.nan
        table[f"i{k}"] = values
    return table


def slow(noise: Any) -> Any:
    """Noises whose evidence takes its time."""
    drawn = noise is None or isinstance(noise, coterie.Bounded | coterie.Symmetric)
    return pytest.param(noise, marks=pytest.mark.slow if drawn else ())


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("noise", list(map(slow, NOISES)), ids=list(map(str, NOISES)))
def test_answers_are_proven_and_changed_ones_refused(noise: Any, share: float) -> None:
    grouping = coterie.group(holed(np.random.default_rng(9), 40, share, noise), noise=noise, holes="at random")
    assert grouping.letters == ("a", "b", "a", "b")
    certificate, events = (json.loads(json.dumps(part)) for part in (grouping.certificate, grouping.events))
    verdict = coterie.verify(certificate, events)
    assert verdict.valid, verdict.problems
    assert certificate["test"] == "holes"
    assert "missing" in certificate["assumes"]
    assert "Assumed: which numbers of a result are missing has nothing to do with the value" in grouping.verdict
    json.dumps(grouping.to_json(), allow_nan=False)
    without = {key: value for key, value in certificate.items() if key != "holes"}
    moved = copy.deepcopy(events)
    row = next(event for event in moved if None in event["values"] and event["values"].count(None) < 3)
    hole, other = row["values"].index(None), next(k for k in range(3) if row["values"][k] is not None)
    row["values"][hole], row["values"][other] = row["values"][other], None
    filled = [event | {"values": [event["values"][k] or 0.0 for k in range(3)]} for event in events]
    closer = certificate | {"apart": [[0, 1, 0.5 * certificate["apart"][0][2] + 1e-6], *certificate["apart"][1:]]}
    for changed, log in (
        (without, events), (certificate | {"holes": "of course"}, events), (certificate, filled), (closer, events),
        (certificate | {"labels": [0, 1, 0, 1]}, events), (certificate | {"apart": [[0, 2, 0.9]]}, events),
        (certificate, events[1:]), (certificate, moved),
    ):  # fmt: skip
        assert not coterie.verify(changed, log).valid


@pytest.mark.parametrize(("noise", "asked"), [
    ("gaussian", {"n_clusters": 2}), (1.0, {"n_clusters": 2}), (coterie.Gaussian("diagonal"), {"n_clusters": 2}),
    ("gaussian", {"resolution": (0.3, 3.0)}),
    (1.0, {"resolution": coterie.Resolution(0.5, 5.0, "distance", "any-two")}),
    (coterie.Counts(10), {"resolution": (0.5, 3.5)}), (1.0, {"n_clusters": 2, "groups": "linkage"}),
])  # fmt: skip
def test_every_question_is_answered_with_a_certificate(noise: Any, asked: dict[str, Any]) -> None:
    table = holed(np.random.default_rng(2), 40, 0.3, noise)
    grouping = coterie.group(table, noise=noise, holes="at random", **asked)
    assert grouping.done
    assert grouping.groups == [["i0", "i2"], ["i1", "i3"]]
    verdict = coterie.verify(json.loads(json.dumps(grouping.certificate)), grouping.events)
    assert verdict.valid, verdict.problems


def plain_p(rows: list[np.ndarray], noise: Any, pair: tuple[int, int]) -> float:
    """Known and Gaussian noise by hand."""
    model, each, squares = noise_of(noise, 3), [], 0.0
    for k in range(3):
        columns = [stack[:, k][~np.isnan(stack[:, k])] for stack in rows]
        first, second = (columns[item] for item in pair)
        scale = 1.0 / len(first) + 1.0 / len(second)
        if isinstance(model, Noise):
            z = abs(first.mean() - second.mean()) / math.sqrt(model.covariance[k, k] * scale)
            squares += z * z
            each.append(2.0 * stats.norm.sf(z))
        else:
            freedom = sum(len(column) - 1 for column in columns)
            pooled = sum(((column - column.mean()) ** 2).sum() for column in columns) / freedom
            t = abs(first.mean() - second.mean()) / math.sqrt(pooled * scale)
            each.append(2.0 * stats.t.sf(t, freedom))
    if isinstance(model, Noise):
        independent = (model.covariance == np.diag(np.diag(model.covariance))).all()
        return float(stats.chi2.sf(squares, 3)) if independent else min(1.0, 3.0 * min(each))
    assert isinstance(model.statement, coterie.Gaussian)
    if model.statement.shape == "full":
        return float(min(1.0, 3.0 * min(each)))
    return float(1.0 - (1.0 - min(each)) ** 3)


@pytest.mark.parametrize("noise", [NOISES[k] for k in (1, 2, 3, 4, 5)], ids=str)
def test_p_values_equal_plain_formulas(noise: Any) -> None:
    table = list(holed(np.random.default_rng(3), 8, 0.3, gap=1.0).values())
    stacks = [rows[~np.isnan(rows).all(axis=1)] for rows in table]
    arms = np.repeat(np.arange(4), [len(rows) for rows in stacks])
    tests = holes_tested(arms, np.concatenate(stacks), 4, noise_of(noise, 3), 0.05, None)
    for pair in combinations(range(4), 2):
        assert tests.p[pair] == pytest.approx(plain_p(stacks, noise, pair), rel=1e-8)


def test_single_numbers_are_compared_within_their_pattern_only() -> None:
    """Every row has one number: all ways to deal the rows of each number to the two items, by hand."""
    rng = np.random.default_rng(4)
    values = [rng.normal(size=(2, 4)) + np.array([[0.0], [1.5]]) for _ in range(2)]  # of each number, (item, repeat)
    rows = np.full((16, 2), np.nan)
    rows[:8, 0], rows[8:, 1] = values[0].reshape(-1), values[1].reshape(-1)
    arms = np.tile(np.repeat([0, 1], 4), 2)
    seen = float(holes_tested(arms, rows, 2, noise_of(None, 2), 0.05, None).p[0, 1])
    ways = [np.isin(np.arange(8), chosen) for chosen in combinations(range(8), 4)]
    tables = [
        [(x - x.mean()) / math.sqrt(16.0 / 56.0 * ((x - x.mean()) ** 2).sum()) for x in scores]
        for scores in (
            [column.reshape(-1) for column in values],
            np.split(stats.rankdata(np.stack([v.reshape(-1) - v.mean() for v in values]), axis=1).reshape(-1), 2),
        )
    ]
    lengths = [np.array([column[way].sum() ** 2 for way in ways]) for scores in tables for column in scores]
    larger = np.maximum(lengths[0][:, None] + lengths[1], lengths[2][:, None] + lengths[3])
    own = larger[0, 0]  # the first way is items as they are
    assert seen == pytest.approx(float((larger >= own * (1 - 1e-9)).mean()), rel=1e-9)


@pytest.mark.slow
def test_more_is_proven_than_without_the_rows_that_have_holes() -> None:
    rng, with_holes, without = np.random.default_rng(5), 0, 0
    for noise in (None, "gaussian", 1.0, coterie.Symmetric()):
        for _ in range(10):
            table = holed(rng, 12, 0.2, gap=1.0)
            whole = {name: rows[~np.isnan(rows).any(axis=1)] for name, rows in table.items()}
            with_holes += int(coterie.group(table, noise=noise, holes="at random").apart.sum())
            without += int(coterie.group(whole, noise=noise).apart.sum())
    assert with_holes > 1.15 * without > 0


@pytest.mark.guarantee
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_equal_items_are_called_different_within_delta(noise: Any) -> None:
    """Three equal items, δ = 0.2, 200 tables: more than 59 wrong has probability below 1e-3 at an error rate of 0.2."""
    rng, wrong, covariance = np.random.default_rng(6), 0, np.eye(3)
    model = noise_of(noise, 3)
    if isinstance(model, Noise):
        covariance = model.covariance
    for _ in range(200):
        values = rng.multivariate_normal(np.zeros(3), covariance, size=(3, 7))
        if isinstance(noise, coterie.Counts):
            values = rng.binomial(10, 0.3, size=values.shape).astype(float)
        values[:, :, 0][:2][rng.random((2, 7)) < 0.6] = math.nan  # holes may depend on the item, not on values
        values[rng.random(values.shape) < 0.15] = math.nan
        rows = {str(k): stack[~np.isnan(stack).all(axis=1)] for k, stack in enumerate(values)}
        wrong += bool(coterie.group(rows, noise=noise, holes="at random", delta=0.2, copies="keep").apart.any())
    assert wrong <= 59
    note_count(0.2, wrong, 200, Guarantee(model.kind, "finished table", case="holes"))


def test_without_a_word_holes_are_refused_and_what_cannot_count_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"item": np.repeat(list("abcd"), 12), "x": rng.normal(size=48), "y": rng.normal(size=48)})
    frame.loc[24:, "x"] += 9.0
    frame.loc[3, "x"] = frame.loc[30, "y"] = math.nan
    with pytest.raises(TableError, match=r"2 such cells.*holes=\"at random\""):
        coterie.group(frame)
    for given, message in (
        ({"holes": "yes"}, "holes must be 'at random' or None, got 'yes'"),
        ({"holes": "at random", "leave_out_holes": True}, "say one of the two"),
        ({"holes": "at random", "growing": True}, "for a finished table"),
    ):
        with pytest.raises(TableError, match=message):
            coterie.group(frame, **given)
    with pytest.raises(TableError, match="no intervals"):
        coterie.group(frame, holes="at random").intervals(of="items")
    with pytest.raises(TableError, match="no row has a number in y"):
        coterie.group(frame.assign(y=math.nan), values=["x", "y"], holes="at random")
    kept = coterie.group(frame.assign(y=frame["y"].where(frame.index != 3)), holes="at random")
    assert kept.analysis.reading.holes == ["row 4"], "a row without any number is none"
    file = tmp_path / "holes.csv"
    frame.to_csv(file, index=False)
    run = CliRunner()
    options = ["--clusters", "2", "--holes", "at-random", "--verbose", "--out", str(tmp_path / "o")]
    answer = run.invoke(app, ["group", str(file), *options])
    text = " ".join(answer.output.split())
    assert answer.exit_code == 0, text
    assert "Numbers that are missing: x (1), y (1)." in text
    assert "Assumed: which numbers of a result are missing has nothing to do with the value" in text
    checked = run.invoke(app, ["verify", str(tmp_path / "o/certificate.json"), str(tmp_path / "o/log.csv")])
    assert checked.exit_code == 0, checked.output
    refused = run.invoke(app, ["group", str(file), "--holes", "random"])
    assert "--holes must be at-random" in refused.output + str(refused.exception)


def test_holes_in_blocks() -> None:
    rng = np.random.default_rng(8)
    rows = [
        {"item": item, "day": day, "x": 5.0 * day + gap + rng.normal(), "y": gap - day + rng.normal()}
        for day in range(20) for item, gap in (("a", 0.0), ("b", 3.0), ("c", 0.0))
    ]  # fmt: skip
    for row in rows[::7]:
        row[("x", "y")[int(rng.integers(2))]] = math.nan
    for noise in (None, "gaussian", [1.0, 1.0], coterie.Symmetric()):
        grouping = coterie.group(rows, blocks="day", noise=noise, holes="at random")
        assert grouping.letters == ("a", "b", "a")
        assert np.abs(grouping.means[1] - grouping.means[0] - 3.0).max() < 1.5
        verdict = coterie.verify(json.loads(json.dumps(grouping.certificate)), grouping.events)
        assert verdict.valid, verdict.problems
