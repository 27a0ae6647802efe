"""Partial answers at every moment: they agree with themselves, the truth, and what a proof or an alarm says."""

from __future__ import annotations

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.methods.croc.run import ALPHA
from coterie.session.moment import EQUAL_SHARE, MOST_ITEMS

LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2])
CENTERS = np.array([0.2, 0.5, 0.8])
NOISES: dict[str, Any] = {
    "known": 0.1,
    "gaussian": "gaussian",
    "counts": coterie.Counts(20),
    "bounded": coterie.Bounded(0, 1),
    "any": None,
    "symmetric": coterie.Symmetric(),
    "at-most": coterie.AtMost(0.1),
}


def measured(kind: str, arm: int, rng: np.random.Generator) -> float:
    center = CENTERS[LABELS[arm]]
    if kind == "counts":
        return float(rng.binomial(20, center))
    return float(
        np.clip(center + 0.1 * rng.standard_normal(), 0.0, 1.0) if kind == "bounded" else rng.normal(center, 0.1)
    )


def check_consistent(partial: Any, session: coterie.Session) -> None:
    """What holds whatever is known."""
    n = session.n_arms
    pairs = set(combinations(range(n), 2))
    for listed in (partial.apart, partial.alike):
        assert len(set(listed)) == len(listed)
        assert set(listed) <= pairs
    assert sorted(partial.settled + partial.undecided) == list(range(n))
    assert len({frozenset(pair) for pair in partial.differ}) == len(partial.differ)
    for item, lead in partial.differ:
        assert lead in partial.representatives
        assert (min(item, lead), max(item, lead)) in partial.apart
    shared = {(i, j) for i, j in pairs if set(partial.letters[i]) & set(partial.letters[j])}
    assert shared == pairs - set(partial.apart)
    if session.labels is None:
        assert partial.labels is None
        assert partial.representatives == partial.possible == ()
    else:
        assert len(partial.possible) == n
        assert [session.labels[lead] for lead in partial.representatives] == list(range(session.labels.max() + 1))


@pytest.mark.parametrize("kind", NOISES)
def test_partial_is_consistent_at_every_moment(kind: str) -> None:
    """Looked at after every result up to the proof: never a false pair, never one taken back.

    The run is fixed; a false pair has probability at most δ = 0.05.
    """
    rng = np.random.default_rng(3)
    session = coterie.Session(8, 3, 1, delta=0.05, noise=NOISES[kind])
    before: set[tuple[int, int]] = set()
    while not session.done and session.t < 600:
        arm = session.ask()
        session.tell(arm, measured(kind, arm, rng))
        if session.t > 40 and session.t % 7:
            continue
        partial = session.partial()
        check_consistent(partial, session)
        assert before <= set(partial.apart)
        before = set(partial.apart)
        assert all(LABELS[i] != LABELS[j] for i, j in partial.apart)
        assert all(LABELS[i] == LABELS[j] for i, j in partial.alike)
    assert session.done
    partial = session.partial()
    check_consistent(partial, session)
    assert partial.settled == tuple(range(8))
    assert partial.undecided == ()
    assert all(LABELS[i] != LABELS[j] for i, j in partial.apart)
    assert len(partial.apart) + len(partial.alike) == 28
    assert session.labels is not None
    assert partial.possible == tuple((int(label),) for label in session.labels)
    assert partial.error == 0.05
    opened = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    assert repr(opened.partial()) == repr(partial)


@pytest.mark.parametrize("kind", NOISES)
def test_many_results_that_nobody_asked_for_tell_every_pair(kind: str) -> None:
    """Told without a ticket, in turn over the items: they count, and with enough of them nothing is left open."""
    rng = np.random.default_rng(4)
    session = coterie.Session(8, 3, 1, delta=0.05, noise=NOISES[kind], method="croc")
    assert session.partial().letters == ("a",) * 8
    for _ in range(300 if kind == "bounded" else 60):
        for arm in range(8):
            session.tell(arm, measured(kind, arm, rng))
    partial = session.partial()
    check_consistent(partial, session)
    assert len(partial.apart) == 21
    assert len(partial.alike) == 7  # by K, or by the proof


def test_after_an_alarm_nothing_is_settled_by_k() -> None:
    rng = np.random.default_rng(5)
    session = coterie.Session(8, 2, 1, delta=0.05, noise=0.1)
    while session.alarm is None:
        arm = session.ask()
        session.tell(arm, 10.0 * CENTERS[LABELS[arm]] + rng.normal(0.0, 0.1))
    partial = session.partial()
    check_consistent(partial, session)
    assert partial.settled == ()
    assert partial.alike == ()
    arms = session.alarm.arms
    assert set(combinations(arms, 2)) <= set(partial.apart)


def test_pairs_known_are_at_least_those_of_pair_evidence_with_a_union() -> None:
    """Clicks: all pairs that `pair_evidence` proves with a union over all pairs, at the share of δ that pairs have."""
    rng = np.random.default_rng(6)
    rates = rng.uniform(0.1, 0.4, size=25)
    clicks = rng.random((25, 400)) < rates[:, None]
    session = coterie.Session(25, 5, 1, delta=0.05, noise=0.5)
    counts = coterie.Session(25, 5, 1, delta=0.05, noise=coterie.Counts())
    for one in (session, counts):
        arms = np.tile(np.arange(25), 400)
        one.tell(arms.tolist(), clicks.T.reshape(-1, 1).astype(float))
    white = clicks[:, :, None] / 0.5
    pairs = list(combinations(range(25), 2))
    evidence = {(i, j): coterie.pair_evidence(white[i], white[j]) for i, j in pairs}
    level = math.log(len(pairs) / (EQUAL_SHARE * 0.05))
    by_union = {pair for pair in pairs if evidence[pair] >= level}
    assert len(by_union) > 10
    assert by_union <= set(session.partial().apart)
    full = {pair for pair in pairs if evidence[pair] >= math.log(len(pairs) / 0.05)}
    assert full <= set(counts.partial().apart)  # exact for clicks, and with the whole δ


def test_share_of_pairs_is_that_of_the_certificate() -> None:
    assert EQUAL_SHARE == ALPHA
    known, other = (coterie.Session(4, 2, 1, delta=0.1, noise=noise).partial().error for noise in (1.0, None))
    assert known == pytest.approx(0.02)
    assert other == pytest.approx(0.1)


def test_a_resolution_says_who_is_near_and_who_is_far() -> None:
    rng = np.random.default_rng(7)
    means = np.array([0.0, 0.1, 0.2, 3.0, 3.1, 3.2])
    session = coterie.Session(6, dim=1, resolution=(0.5, 1.5), noise=0.5, delta=0.1)
    while not session.done:
        arm = session.ask()
        session.tell(arm, rng.normal(means[arm], 0.5))
        if session.t in (3, 12, 20):
            check_consistent(session.partial(), session)
    partial = session.partial()
    check_consistent(partial, session)
    assert partial.undecided == ()
    assert session.labels is not None
    for arm, lead in enumerate(partial.representatives[k] for k in session.labels):
        assert arm == lead or (min(arm, lead), max(arm, lead)) in partial.alike
    assert all(abs(means[i] - means[j]) > 0.5 for i, j in partial.apart)
    assert all(abs(means[i] - means[j]) < 1.5 for i, j in partial.alike)
    opened = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    assert repr(opened.partial()) == repr(partial)


# For all radii at once.


def told(noise: Any, results: int = 60, **options: Any) -> coterie.Session:
    rng = np.random.default_rng(8)
    session = coterie.Session(8, 4, 1, delta=0.05, noise=noise, **options)  # of which there are three: it goes on
    for _ in range(results):
        for arm in range(8):
            session.tell(arm, [rng.normal(CENTERS[LABELS[arm]], 0.05)])
    return session


def test_resolution_curve_has_a_plateau_at_the_true_number() -> None:
    session = told(0.05)
    found = coterie.resolution_curve(session)
    both = (found.least == 3) & (found.enough == 3)
    assert np.ptp(found.radius[both]) > 0.1
    assert (np.diff(found.least) <= 0).all()
    assert (np.diff(found.enough) <= 0).all()
    assert (np.diff(found.radius) > 0).all()
    assert found.least[-1] == found.enough[-1] == 1
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["least"] == found.least.tolist()
    few = coterie.resolution_curve(session, points=10)
    for radius in np.linspace(0.0, 1.0, 50):  # what fewer points say is never more than what all of them do
        least, enough = found.at(radius)
        assert few.at(radius)[0] <= least
        assert few.at(radius)[1] >= enough
    assert found.at(0.15) == (3, 3)
    scaled = coterie.resolution_curve(session, scale=0.1)
    np.testing.assert_allclose(scaled.radius, 10.0 * found.radius, rtol=1e-9)
    assert len(coterie.resolution_curve(session, points=10).radius) <= 10


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"norm": "l1"}, "norm must be one of each, distance, got 'l1'"),
        ({"scale": 0.0}, "scale must be a positive number, or 1 of them, got 0.0"),
        ({"scale": [1.0, 2.0]}, "scale must be a positive number"),
        ({"points": 1}, "points must be at least 2"),
    ],
)
def test_resolution_curve_refuses(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        coterie.resolution_curve(told(0.05, 2), **given)


def test_resolution_curve_says_what_to_state() -> None:
    with pytest.raises(ValueError, match="cannot be proven under any noise"):
        coterie.resolution_curve(told(None, 2))
    with pytest.raises(ValueError, match="has none that count yet"):
        coterie.resolution_curve(told(1.0, 0))
    with pytest.raises(TypeError, match="resolution_curve needs a coterie"):
        coterie.resolution_curve(3)


def test_too_many_items_for_all_pairs_are_refused() -> None:
    session = coterie.Session(MOST_ITEMS + 1, 2, 1, noise=1.0)
    with pytest.raises(ValueError, match=r"partial\(\) looks at all pairs of items, and 3001 items have too many"):
        session.partial()


def test_plot_of_the_resolution_draws_both_numbers() -> None:
    session = told(0.05)
    axes = coterie.plot.resolution(session)
    labels = [line.get_label() for line in axes.get_lines()]
    assert "enough: balls of radius $r$" in labels
    assert "proven number" in labels
    found = coterie.resolution_curve(session)
    least = next(line for line in axes.get_lines() if str(line.get_label()).startswith("at least"))
    np.testing.assert_array_equal(np.asarray(least.get_ydata())[::2], found.least[1:])
