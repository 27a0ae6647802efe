"""Forecasts: how near they are on runs that they were not fitted to, their interval, and what a budget brings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coterie
from bench.forecast import judged
from bench.forecast_runs import HELD_OUT, run_of
from coterie.session.forecast import Forecast, calibrated

TRIED = ("four of 10, d=3, known", "a chain of 8, d=1, any, t3", "20,20 and 20 far away, d=3, Gaussian")
RUNS = 4


def test_forecasts_on_families_that_were_not_fitted_are_near_the_truth_from_a_third_of_a_run_on() -> None:
    """Seeded, so it fails only if forecasts or runs change. How often other seeds would fail was not measured; the
    benchmark, with 54 runs, has a median of 1.00 and a coverage of 90 %, so that these bounds are far from both.
    """
    ratios, inside, weights = [], [], []
    for place, name in enumerate(TRIED):
        for trial in range(RUNS):
            rng = np.random.default_rng([8100, place, trial])
            run = run_of(*HELD_OUT[name](rng), rng)
            assert run is not None
            for progress, _, corrected, has_it, weight in judged(run):
                if progress >= 0.3:
                    ratios.append(corrected)
                    inside.append(has_it)
                    weights.append(weight)
    assert 0.7 <= float(np.median(ratios)) <= 1.4
    assert 0.6 <= float(np.average(inside, weights=weights)) <= 0.97


def test_the_chance_agrees_with_the_interval_and_grows_with_the_budget() -> None:
    forecast = Forecast(120.0, 60.0, 300.0, 80)
    assert [forecast.chance(n) for n in (60, 120, 300)] == pytest.approx([0.1, 0.5, 0.9], abs=1e-9)
    chances = [forecast.chance(n) for n in range(0, 2000, 10)]
    assert chances == sorted(chances)
    assert (chances[0], Forecast(0.0, 0.0, 0.0, 80).chance(1)) == (0.0, 1.0)
    assert forecast.words == "about 120 more, probably 60 to 300"


def test_a_wild_forecast_is_no_number() -> None:
    """Far more than there are measurements, or an interval that says little; at the end of a run a wide one does."""
    assert Forecast(336_758.0, 168_379.0, 673_516.0, 69).words == "too early to say how many more"
    wide = Forecast(1234.0, 100.0, 9876.0, 400)
    assert (wide.wild, wide.vague) == (False, True)
    assert wide.words == "too early to say how many more: between about 100 and 9900"
    assert Forecast(8.0, 1.0, 30.0, 400).words == "about 8 more, probably 1 to 30"
    assert Forecast(1000.0, 500.0, 2000.0, 100).words == "about 1000 more, probably 500 to 2000"


def test_after_the_first_pass_of_a_resolution_no_wild_number_is_shown(tmp_path: Any) -> None:
    from coterie.campaign import Campaigns
    from coterie.cli.campaign_report import measurements_left
    from coterie.session.progress import _so_far
    from coterie.web.page_content import campaign_page

    asked: dict[str, Any] = {"noise": coterie.Bounded(0, 100), "resolution": (1.0, 1.5)}
    session = coterie.Session(5, dim=1, **asked)
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("x", 5, dim=1, **asked)["id"]
        for number in range(10):  # two of each item
            arm = session.ask()
            session.tell(arm, [10.0 + arm])
            store.ask(id, "w")
            store.tell(id, [{"id": str(number), "arm": arm, "values": [10.0 + arm], "worker": "w"}])
        events: list[Any] = []
        status, history = store.status(id), store.history(id)
        assert status["forecast"] > 10 * 10
        assert measurements_left(status) == "10 so far, too early to say how many more"
        page = campaign_page(status, history, events)
        assert (page["counts"]["left"], page["too_early"]) == (None, "too early to say how many more")
    assert _so_far(session).startswith("10 measurements, too early to say how many more; ")
    assert session.within(10).words.startswith("It is too early for a good forecast; by a rough one: with 10 more")


def test_an_interval_is_in_order_whatever_the_numbers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        t, items = int(rng.integers(3, 10**6)), int(rng.integers(2, 10**5))
        course = str(rng.choice(["tests", "bounds", "links", "statistic"]))
        spent = 0 if course == "statistic" else int(rng.integers(0, 2)) * int(rng.integers(1, t))
        needed = int(rng.integers(1, 100))
        from coterie.methods.reports import Standing

        standing = Standing(int(rng.integers(0, needed)), needed, 0, None, float(rng.random()), spent, course)
        found = calibrated(standing, float(np.exp(rng.uniform(-5, 15))), t, min(items, t))
        assert 1.0 <= found.low <= found.remaining <= found.high < math.inf


def is_done(session: coterie.Session) -> bool:
    return session.done


def measured(session: coterie.Session, until: int) -> coterie.Session:
    rng = np.random.default_rng(1)
    while not session.done and session.t < until:
        for ticket in session.open(1):
            session.tell(ticket.arm, [2.0 * (ticket.arm % 2) + rng.standard_normal()], ticket.number)
    return session


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        (0, ValueError, "more must be at least 1, got 0"),
        (-5, ValueError, "more must be at least 1, got -5"),
        (2.5, TypeError, "more must be an integer, got 2.5"),
        ("200", TypeError, "more must be an integer"),
        (True, TypeError, "more must be an integer"),
        (10**9 + 1, ValueError, "more must be at most 1000000000"),
        (10**400, ValueError, "more must be at most 1000000000"),
    ],
)
def test_a_budget_that_is_none_is_refused(more: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        coterie.Session(4, 2, 1, noise=1.0).within(more)


def test_a_budget_before_during_and_after() -> None:
    session = coterie.Session(8, 2, 1, noise=1.0)
    before = session.within(5)
    assert (before.chance, before.delta, before.proven) == (None, None, 0)
    assert before.words == (
        "Nobody can say yet: 8 of 8 items have not been measured yet; 5 more do not even reach each of them."
    )
    measured(session, 30)
    assert not is_done(session)
    few, many = session.within(1), session.within(100_000)
    assert few.chance is not None
    assert many.chance is not None
    assert few.chance < 0.3 < 0.99 < many.chance
    assert few.proven <= many.proven == many.needed == 8
    assert many.settled == 8
    assert many.delta is not None
    assert many.delta < 0.05
    assert few.delta is None or few.delta > 0.05
    assert few.words.startswith("With 1 more measurements this is done with probability about ")
    measured(session, 100_000)
    assert is_done(session)
    after = session.within(5)
    assert (after.chance, after.words) == (1.0, f"Nothing more is needed. P{session.verdict[1:]}.")


def test_a_budget_for_a_resolution_says_which_it_allows() -> None:
    session = measured(coterie.Session(8, dim=1, noise=1.0, resolution=(0.3, 0.8)), 40)
    assert not session.done
    found = session.within(150)
    assert found.resolution == session.resolution_for(session.t + 150)
    assert found.to_json()["resolution"] is None or found.to_json()["resolution"]["apart"] >= 0.8
