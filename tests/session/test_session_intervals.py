"""`intervals` of sessions, results and tables: what they say, and what has none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from block_worlds import play

import coterie
from coterie.session.intervals import intervals_of, session_record


def finished(noise: object = 1.0, **settings: object) -> coterie.Session:
    rng = np.random.default_rng(5)
    given = {"n_clusters": 2, "dim": 1} | settings
    session = coterie.Session(4, noise=noise, **given)  # type: ignore[arg-type]
    while not session.done:
        arm = session.ask()
        session.tell(arm, 6.0 * (arm % 2) + rng.standard_normal())
    return session


def test_groups_are_guessed_then_proven() -> None:
    session, rng = coterie.Session(4, 2, 1, noise=1.0, delta=0.1), np.random.default_rng(1)
    with pytest.raises(ValueError, match="there are no groups yet: measure every item"):
        session.intervals()
    assert np.isinf(session.intervals("items").low).all()
    while not session.done:
        arm = session.ask()
        session.tell(arm, 6.0 * (arm % 2) + rng.standard_normal())
        if session.labels is not None and not session.done:
            shown = session.intervals()
            assert not shown.proven
            assert shown.words.startswith("if these are the groups: means of 2 groups")
    shown = session.intervals()
    assert shown.proven
    assert "at most 0.1, beside 0.1 for the groups" in shown.words
    assert (shown.count, shown.delta, shown.formula, shown.lengths) == (2, 0.1, "known", (sum(session.pulls[::2]), sum(session.pulls[1::2])))  # fmt: skip # noqa: E501
    assert (shown.low[:, 0] <= [0.0, 6.0]).all()
    assert (shown.high[:, 0] >= [0.0, 6.0]).all()
    wider = session.intervals(delta=0.001)
    assert (wider.low < shown.low).all()
    assert "group 0" in repr(shown)
    assert "group 0" in shown._repr_html_()
    apart = session.intervals("differences")
    assert apart.rows == ((0, 1),)
    assert apart.low[0, 0] <= -6.0 <= apart.high[0, 0] < 0.0


def test_frames_have_intervals() -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    result = coterie.cluster(lambda i: 6.0 * (i % 2) + rng.standard_normal(), 4, 2, noise=1.0, progress=False)
    frame, shown = result.to_frame(), result.intervals("items")
    assert frame["low_v0"].tolist() == shown.low[:, 0].tolist()
    assert frame["high_v0"].tolist() == shown.high[:, 0].tolist()
    table = shown.to_frame()
    assert table.loc[("2", "v0"), "low"] == shown.low[2, 0]
    assert table["measurements"].tolist() == result.pulls.tolist()


def test_tables_have_fixed_sample_intervals() -> None:
    rng = np.random.default_rng(3)
    table = {name: rng.normal(level, 1.0, 12) for name, level in (("A", 0.0), ("B", 5.0), ("C", 0.0), ("D", 5.0))}
    grouping = coterie.group(table, n_clusters=2, noise=1.0)
    shown = grouping.intervals()
    half = 2.2414027 / math.sqrt(24)  # the normal quantile of 1 − 0.05/4
    mean = np.mean([*table["A"], *table["C"]])
    assert (shown.low[0, 0], shown.high[0, 0]) == pytest.approx((mean - half, mean + half), abs=1e-6)
    assert shown.formula == "z"
    assert "if the number of rows did not depend on their values" in shown.words
    growing = coterie.group(table, n_clusters=2, noise=1.0, growing=True).intervals("items")
    assert (growing.high - growing.low > 2.0 * (grouping.intervals("items").high - grouping.intervals("items").low) / 2.5).all()  # fmt: skip # noqa: E501
    with pytest.raises(ValueError, match="no number of groups was given"):
        coterie.group(table, noise=1.0).intervals()
    assert coterie.group(table, noise=1.0, growing=True).intervals("items").formula == "known"
    with pytest.raises(ValueError, match=r"need not have one mean .*of='items'"):
        coterie.group(table, resolution=(1.0, 3.0), noise=1.0).intervals()
    rows = [{"item": name, "day": day, "x": x} for name in table for day, x in enumerate(table[name].tolist())]
    with pytest.raises(ValueError, match=r"in blocks \(day\) means of items are not told apart"):
        coterie.group(rows, blocks="day").intervals("items")
    with pytest.raises(ValueError, match="contradict the noise stated"):
        coterie.group(table, noise=0.1).intervals("items")


def test_medians_where_no_mean_has_an_interval() -> None:
    session = finished(None)
    shown = session.intervals()
    assert shown.quantile == 0.5
    assert "no interval for a mean exists" in shown.words
    quartile = session.intervals(quantile=0.25)
    assert quartile.quantile == 0.25
    assert (quartile.low <= shown.low).all()
    symmetric = finished(coterie.Symmetric())
    with pytest.raises(ValueError, match="share their center"):
        symmetric.intervals(quantile=0.25)
    assert symmetric.intervals("items", quantile=0.25).quantile == 0.25


def test_bad_input_is_named() -> None:
    session = finished()
    with pytest.raises(ValueError, match="of must be one of groups, differences, items, got 'pairs'"):
        session.intervals("pairs")
    for quantile in (0.0, 1.0, -0.5, 2):
        with pytest.raises(ValueError, match=r"quantile must lie in \(0, 1\), got"):
            finished(None).intervals(quantile=quantile)
    with pytest.raises(ValueError, match=r"quantile=0.5: under noise .* are of means.*noise=None .* coterie.Symmetric"):
        session.intervals(quantile=0.5)
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 2"):
        session.intervals(delta=2)
    resolved = finished(n_clusters=None, resolution=(1.0, 4.0))
    with pytest.raises(ValueError, match=r"need not have one mean .*of='items'"):
        resolved.intervals("differences")
    assert resolved.intervals("items").proven
    session.revise(add=1)
    with pytest.raises(ValueError, match="a session that was revised has no intervals"):
        session.intervals("items")


def test_values_that_no_mean_fits_are_told() -> None:
    """Results jump from 0 to 1 on the way, though results of an item were stated to have one law."""
    session = coterie.Session(3, 2, 1, noise=coterie.Bounded(0.0, 1.0), delta=0.1)
    for k in range(600):
        session.tell(session.ask(), float(k >= 200))
    shown = session.intervals("items")
    assert shown.void == (0, 1, 2)
    assert np.isnan(shown.low).all()
    assert shown.to_json()["low"] == [[None]] * 3
    assert "no value fits 0, 1, 2" in shown.words


def test_other_methods_have_intervals_too() -> None:
    session = finished(method="uniform")
    assert session.intervals().proven
    assert not finished(method="uniform", threshold="heuristic").intervals().proven
    record = session_record(session)
    assert record.proven
    assert intervals_of(session._conversation, "items", None, None).count == 4


def test_blocks_have_differences_and_drawn_ones_means() -> None:
    session = play("offset", "known", 5, 2, seed=3)
    shown = session.intervals("differences")
    assert shown.proven
    assert shown.low[0, 0] <= -3.0 <= shown.high[0, 0] < 0.0
    assert "differences of groups are the same in every block" in shown.words
    for of in ("groups", "items"):
        with pytest.raises(ValueError, match=rf"{of} have no intervals: .* Ask for intervals\(of='differences'\)"):
            session.intervals(of)
    far = play("offset", "known", 5, 2, seed=3, shift=1000.0).intervals("differences")
    assert far.low[0, 0] == pytest.approx(shown.low[0, 0], abs=1e-9)
    words = play("offset", "any", 5, 2, seed=3).intervals("differences", quantile=0.25).words
    assert "0.25-quantiles of the difference within a block" in words
    started = coterie.Session(4, 2, 1, noise=1.0, blocks="offset")
    with pytest.raises(ValueError, match=r"there are no groups yet: measure every item$"):
        started.intervals("differences")
    drawn = play("drawn", "trials", 5, 2, seed=3)
    assert "blocks come from one population" in drawn.intervals().words
    means, apart, items = (drawn.intervals(of) for of in ("groups", "differences", "items"))
    truth = 1.0 / (1.0 + np.exp([1.5, -1.5]))  # about: the mean over blocks is nearer to a half
    assert (means.low[:, 0] <= [0.3, truth[1]]).all()
    assert (means.high[:, 0] >= [truth[0], 0.7]).all()
    assert means.low[0, 0] - means.high[1, 0] < apart.middle[0, 0] < means.high[0, 0] - means.low[1, 0]
    assert items.rows == (0, 1, 2, 3, 4)
    assert (items.high - items.low >= 0.0).all()
