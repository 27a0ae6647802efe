"""Saving and loading: resuming equals never having stopped, and a damaged save says what is wrong with it."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

import coterie

METHODS = ("boc", "boc-linear", "uniform", "oracle")
KINDS = ("proven", "heuristic")

# Hard enough not to be proven within 200 measurements, at any of the noises below.
INST = coterie.Instance([0, 1, 1, 2, 0, 2, 1], [[0.0, 0.0], [0.4, 0.0], [0.0, 0.5]])
COVARIANCE = [[2.0, 0.7], [0.7, 1.1]]


def new_session(method: str, **more: Any) -> coterie.Session:
    if method == "boc-linear":
        more["distance_ratio"] = 0.5
    if method == "oracle":
        more["instance"] = INST
    return coterie.Session(INST.n_arms, INST.n_clusters, INST.dim, method=method, **{"noise": 1.0, **more})


def through_json(session: coterie.Session) -> coterie.Session:
    return coterie.Session.from_dict(json.loads(json.dumps(session.to_dict(), allow_nan=False)))


def go_on(session: coterie.Session, rng: np.random.Generator, n: int, lag: int) -> list[int]:
    """n more measurements with up to `lag` asks open all the time, answered in a mixed order."""
    asked = []
    for _ in range(n):
        while len(session.pending) <= lag:
            asked.append(session.ask())
        ticket, arm = session.pending[rng.integers(len(session.pending))]
        session.tell(arm, INST.means[arm] + rng.normal(size=2), ticket=ticket)
        if rng.random() < 0.05:  # one that nobody asked for
            session.tell(int(rng.integers(INST.n_arms)), rng.normal(size=2))
    return asked


def assert_same(a: coterie.Session, b: coterie.Session) -> None:
    """Equal to the last bit, in all that can be seen and in what is asked for next."""
    assert a.to_dict() == b.to_dict()
    assert (a.t, a.done, a.pending, a.evidence) == (b.t, b.done, b.pending, b.evidence)
    assert np.array_equal(a.pulls, b.pulls)
    np.testing.assert_equal(a.labels, b.labels)  # None too
    np.testing.assert_equal(a.centers, b.centers)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lag", [0, 3])
def test_resuming_equals_never_having_stopped(method: str, kind: str, lag: int) -> None:
    settings: dict[str, Any] = {"threshold": kind, "delta": 1e-4}
    if lag:
        settings |= {"noise": COVARIANCE, "names": list("abcdefg")}
    whole, first = new_session(method, **settings), new_session(method, **settings)
    rng, same_rng = np.random.default_rng(12), np.random.default_rng(12)
    asked = go_on(whole, rng, 100, lag) + go_on(whole, rng, 100, lag)
    asked_first = go_on(first, same_rng, 100, lag)
    resumed = through_json(first)
    assert_same(resumed, first)
    asked_after = go_on(resumed, same_rng, 100, lag)
    assert not resumed.done
    assert resumed.t >= 200
    assert asked_first + asked_after == asked
    assert_same(resumed, whole)
    assert resumed.ask(20) == whole.ask(20)
    assert resumed.names == whole.names
    assert resumed.noise == whole.noise
    assert resumed.instance == whole.instance


@pytest.mark.parametrize("method", METHODS)
def test_saving_after_every_measurement_gives_the_same_stop(method: str) -> None:
    """An easy world, saved and loaded at each step, the initial phase and the stop included."""
    far = coterie.Instance(INST.labels, 8.0 * INST.centers)
    more: dict[str, Any] = {"instance": far} if method == "oracle" else {}
    if method == "boc-linear":
        more["distance_ratio"] = 0.5
    whole = coterie.Session(7, 3, 2, method=method, threshold="heuristic", **{"noise": 1.0, **more})
    saved = through_json(whole)
    rng = np.random.default_rng(13)
    while not whole.done:
        arm = whole.ask()
        assert saved.ask() == arm
        saved = through_json(saved)  # with the ask open
        x = far.means[arm] + rng.normal(size=2)
        whole.tell(arm, x)
        saved.tell(arm, x)
        saved = through_json(saved)
        assert_same(saved, whole)
    assert whole.t > 10
    with pytest.raises(coterie.SessionDone):
        saved.ask()


def test_a_saved_session_is_plain_and_apart() -> None:
    session = new_session("oracle", names=list("abcdefg"), noise=[0.5, 2.0])
    session.tell("c", [1.0, 2.0])
    session.ask(2)
    saved = session.to_dict()
    kept = copy.deepcopy(saved)
    assert json.loads(json.dumps(saved)) == saved  # nothing that JSON would change on the way
    assert set(saved) >= {"format", "n_arms", "n_clusters", "dim", "delta", "method", "threshold", "log"}
    loaded = coterie.Session.from_dict(saved)
    assert saved == kept
    loaded.tell(0, [5.0, 5.0])
    session.tell(1, [5.0, 5.0])
    assert saved == kept


def test_a_given_up_ask_stays_given_up() -> None:
    session = new_session("uniform")
    session.ask(3)
    session.forget(1)
    loaded = through_json(session)
    assert loaded.pending == [(0, 0), (2, 2)]
    assert loaded.ask(3) == session.ask(3) == [1, 3, 4]
    assert loaded.pending[-1] == session.pending[-1] == (5, 4)  # tickets are never used twice


def saved_session() -> dict[str, Any]:
    session = new_session("oracle", names=list("abcdefg"), noise=COVARIANCE)
    session.ask(9)
    session.tell(list(range(7)), INST.means)
    return session.to_dict()


@pytest.mark.parametrize("key", [key for key in saved_session() if key != "format"])
def test_a_truncated_save_names_what_is_missing(key: str) -> None:
    saved = saved_session()
    del saved[key]
    with pytest.raises(ValueError, match=f"the saved session lacks {key}$"):
        coterie.Session.from_dict(saved)


@pytest.mark.parametrize("saved", [{}, [], None, "{}", 5, {"format": "coterie-session-0"}, {"n_arms": 3}])
def test_what_is_no_saved_session_is_refused(saved: Any) -> None:
    with pytest.raises(ValueError, match=r"not a saved session \(format 'coterie-session-2'\)"):
        coterie.Session.from_dict(saved)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"delta": 1.5}, ValueError, r"delta must lie in \(0, 1\), got 1\.5"),
        ({"n_arms": 8}, ValueError, "the instance has 7 arms"),
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"method": "guess"}, ValueError, "unknown method 'guess'"),
        ({"threshold": None}, TypeError, "the threshold must be one of proven, heuristic, got None"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, ValueError, "positive definite"),
        ({"instance": None}, ValueError, "method 'oracle' needs the true instance, got None"),
        ({"instance": {"labels": [0, 1]}}, ValueError, "the saved instance lacks centers"),
        ({"instance": [0, 1]}, ValueError, "the saved instance must be a dictionary with labels, centers"),
        ({"names": ["a"]}, ValueError, "names must be 7 strings, one for each arm, got 1"),
        ({"log": None}, ValueError, "the saved log must be a list, got None"),
        ({"log": {}}, ValueError, "the saved log must be a list"),
        (
            {"log": [5]},
            ValueError,
            "row 0 of the saved log must be a dictionary with arm, values, ticket, got 5",
        ),
        ({"log": [{"arm": 1, "ticket": None}]}, ValueError, "row 0 of the saved log lacks values"),
        ({"log": [{"arm": 9, "values": [0, 0], "ticket": None}]}, ValueError, "unknown arm 9"),
        ({"log": [{"arm": "a", "values": [0, 0], "ticket": None}]}, TypeError, "an arm must be an integer"),
        ({"log": [{"arm": 1, "values": [0], "ticket": None}]}, ValueError, r"shape \(2,\), got shape \(1,\)"),
        ({"log": [{"arm": 1, "values": [0, None], "ticket": None}]}, TypeError, "must hold real numbers"),
        (
            {"log": [{"arm": 1, "values": [0, 0], "ticket": "x"}]},
            TypeError,
            "ticket must be an integer, got 'x'",
        ),
        ({"pending": 3}, ValueError, "the saved pending asks must be a list, got 3"),
        ({"pending": [7]}, ValueError, "a saved pending ask must be a list, got 7"),
        ({"pending": [[7]]}, ValueError, r"a saved pending ask must be \[ticket, arm\], got \[7\]"),
        ({"pending": [[7, 70]]}, ValueError, "unknown arm 70"),
        ({"pending": [["7", 0]]}, TypeError, "ticket must be an integer, got '7'"),
        ({"pending": [[7, 0], [7, 1]]}, ValueError, "the saved history does not lead to the saved pending asks"),
        (
            {"pending": [[3, 0]]},
            ValueError,
            "the saved history does not lead to the saved pending asks",
        ),  # answered: it is in the log
        ({"pending": [[9, 0]]}, ValueError, "the saved history does not lead"),  # never given
        ({"next_ticket": -1}, ValueError, "next_ticket must be at least 0, got -1"),
        ({"next_ticket": None}, TypeError, "next_ticket must be an integer, got None"),
    ],
)
def test_a_damaged_save_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    assert coterie.Session.from_dict(saved_session()).to_dict() == saved_session()
    with pytest.raises(error, match=message):
        coterie.Session.from_dict({**saved_session(), **change})
