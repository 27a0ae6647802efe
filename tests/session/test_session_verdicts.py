"""What a session says beside its proof: the alarm, and whether each group looks like one."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.certificate.arithmetic.hidden_groups import hidden_groups
from coterie.methods.croc.method import CrocMethodRun
from coterie.session import Alarm, Homogeneity

FAR = np.array([0.0, 20.0, 0.0, 50.0, 20.0, 50.0])  # three groups
CLOSE = np.repeat([0.0, 30.0, 36.0], 4)  # three groups that look like two, to whoever is told so


def play(session: coterie.Session, means: Any, seed: int, most: int = 2000) -> coterie.Session:
    rng = np.random.default_rng(seed)
    while not session.done and session.alarm is None and session.t < most:
        arm = session.ask()
        session.tell(arm, np.atleast_1d(means[arm]) + rng.standard_normal(session.dim))
    return session


def mixed_session(**more: Any) -> coterie.Session:
    """Proven for K = 2, by results that show three groups."""
    return play(coterie.Session(12, 2, 1, **{"noise": 1.0, **more}), CLOSE, seed=1)


@pytest.fixture
def refuted_and_done(monkeypatch: pytest.MonkeyPatch) -> coterie.Session:
    """A session that is done and has an alarm: one was raised, and the run went on to a proof for K."""
    session = mixed_session(names=list("abcdefghijkl"))
    monkeypatch.setattr(CrocMethodRun, "alarm", property(lambda _: (0, 4, 8)))
    return session


# The alarm.


@pytest.mark.parametrize("names", [None, list("uvwxyz")])
def test_an_alarm_says_what_it_saw_and_what_to_do(names: list[str] | None) -> None:
    session = coterie.Session(6, 2, 1, names=names, noise=1.0)
    assert session.alarm is None
    alarm = play(session, FAR, 0).alarm
    assert isinstance(alarm, Alarm)
    assert len(alarm.arms) == 3
    assert len({FAR[arm] for arm in alarm.arms}) == 3
    assert alarm.n_clusters == 2
    assert alarm.probability == pytest.approx(0.2 * 0.05)
    called = [names[arm] if names else str(arm) for arm in alarm.arms]
    assert str(alarm) == (
        f"K = 2 is refuted: items {called[0]}, {called[1]} and {called[2]} are pairwise known to differ, so there are "
        "at least 3 groups (wrong with probability at most 0.01). Start again with n_clusters of at least 3, or state "
        "larger noise if single measurements vary more than stated."
    )
    assert coterie.Session.from_dict(session.to_dict()).alarm == alarm
    lines = repr(session).splitlines()
    proven = "not proven: that the items of a group are alike, since the data refute K = 2"  # both may show at once
    assert (proven if session.done else "not proven, and K = 2 is refuted") in lines[0]
    assert lines[1].rstrip(">") == f"  alarm: {alarm.seen}"


def test_an_alarm_without_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """It blocks nothing: asking goes on."""
    session = coterie.Session(6, 2, 1, noise=1.0)
    for _ in range(9):
        session.tell(session.ask(), 0.0)
    monkeypatch.setattr(CrocMethodRun, "alarm", property(lambda _: (5, 0, 3)))
    assert session.alarm is not None
    assert session.alarm.arms == (0, 3, 5)
    first, second = repr(session).splitlines()
    assert first.endswith("9 measurements, not proven, and K = 2 is refuted")
    assert second == f"  alarm: {session.alarm.seen}>"
    session.tell(session.ask(), 0.0)
    assert session.certificate is None


def test_an_alarm_of_all_items_says_that_nothing_is_alike() -> None:
    alarm = Alarm((2, 0, 1), 2, 0.01, n_arms=3)
    assert "items 2, 0 and 1 are pairwise" in str(alarm)
    assert alarm.advice.startswith("No two items are alike, so there is nothing to group; or state larger noise")
    assert "n_clusters" not in str(alarm)


def test_of_many_items_twelve_are_named() -> None:
    assert "items 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 39 more are" in Alarm(tuple(range(51)), 50, 0.01, 99).seen


def test_asking_goes_on_after_an_alarm() -> None:
    session = play(coterie.Session(6, 2, 1, noise=1.0), FAR, 0)
    for _ in range(30):
        if session.done:
            break
        arm = session.ask()
        session.tell(arm, FAR[arm])
    assert session.alarm is not None


def test_only_croc_raises_alarms() -> None:
    session = play(coterie.Session(6, 2, 1, method="uniform", noise=1.0), FAR, 0)
    assert session.done
    assert session.alarm is None


def test_a_proof_of_what_is_refuted_does_not_look_like_one(refuted_and_done: coterie.Session) -> None:
    first, *rest = repr(refuted_and_done).splitlines()
    assert first.endswith(
        "proven: at least 2 groups; not proven: that the items of a group are alike, since the data refute K = 2"
    )
    assert rest[0].startswith("  alarm: K = 2 is refuted: items a, e and i are pairwise known to differ")
    assert rest[1].startswith("  homogeneity: ")
    with pytest.raises(coterie.SessionDone, match=r"not proven: that .* since the data refute K = 2"):
        refuted_and_done.ask()
    certificate = refuted_and_done.certificate
    assert certificate is not None
    assert certificate["alarm"] == {"arms": [0, 4, 8]}


# Homogeneity.

METHODS: dict[str, dict[str, Any]] = {
    "croc": {}, "boc": {}, "boc-linear": {"distance_ratio": 0.1}, "uniform": {}, "uniform, heuristic": {},
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_homogeneity_matches_the_log(name: str) -> None:
    """Every method; results that did not count change nothing, nor does saving and loading."""
    method, _, kind = name.partition(", ")
    instance = coterie.Instance([0, 1, 1, 2, 0, 2, 2], [[0.0, 3.0], [4.0, 0.0], [0.0, -2.0]])
    covariance = np.array([[4.0, 1.0], [1.0, 2.0]])
    session = coterie.Session(
        7, 3, 2, 0.1, method, kind or "proven", covariance, names=list("abcdefg"), **METHODS[name]
    )
    rng = np.random.default_rng(4)
    factor = np.linalg.cholesky(covariance)
    counted: list[tuple[int, Any]] = []
    while not session.done:
        assert session.homogeneity is None
        arms = session.ask(3) if session.t > 7 else [session.ask()]
        for arm in arms:
            if not session.done:
                x = factor @ (instance.means[arm] + rng.standard_normal(2))
                session.tell(arm, x)
                counted.append((arm, x))
    found = session.homogeneity
    assert isinstance(found, Homogeneity)
    assert session.labels is not None
    arms, values = (list(part) for part in zip(*counted[: session.t], strict=True))
    assert np.bincount(arms, minlength=7).tolist() == session.pulls.tolist()
    expected = hidden_groups(session.noise, arms, values, session.labels, 3)
    np.testing.assert_allclose(found.evidence, expected, rtol=1e-9, atol=1e-9)
    assert found.threshold == math.log(300)
    assert found.level == 0.01
    session.tell(0, [1e6, 1e6])
    assert session.homogeneity == found
    assert coterie.Session.from_dict(json.loads(json.dumps(session.to_dict()))).homogeneity == found


def test_results_out_of_order_count_in_the_order_of_asks() -> None:
    """Results that wait for an earlier ask of their arm do not count, and are not looked at."""
    session = coterie.Session(4, 2, 1, noise=1.0)
    means, rng = [0.0, 0.0, 9.0, 9.0], np.random.default_rng(0)
    session.ask(6)
    held = session.pending[0]
    while not session.done:
        ticket, arm = next(pair for pair in session.pending if pair != held)
        session.tell(arm, means[arm] + rng.standard_normal(), ticket)
        if not session.done and len(session.pending) < 4:
            if session.t > 4 and held in session.pending:
                session.tell(held[1], means[held[1]], held[0])
            session.open(3)
    rows = session.counted.tolist()
    log = session.log
    assert session.homogeneity is not None
    assert session.labels is not None
    expected = hidden_groups(
        session.noise, [log[row][0] for row in rows], [log[row][1] for row in rows], session.labels, 2
    )
    np.testing.assert_allclose(session.homogeneity.evidence, expected, rtol=1e-9)


def test_groups_that_look_mixed_are_named() -> None:
    session = mixed_session()
    found = session.homogeneity
    assert found is not None
    assert not found
    assert found.mixed == (1,)
    assert found.evidence[0] < found.threshold < found.evidence[1]
    assert str(found) == (
        "group 1 (items 4, 5, 6, 7, 8, 9, 10 and 11) looks mixed: its measurements differ by more than chance (1 %). "
        "There may be more groups than stated, the noise not as stated, or items of a group not exactly alike."
    )
    lines = repr(session).splitlines()
    assert lines[0].endswith("not proven: that the items of a group are alike, since a group looks mixed")
    assert lines[1] == f"  homogeneity: {found.seen()}>"
    named = mixed_session(names=[f"S{k}" for k in range(12)]).homogeneity
    assert named is not None
    assert "group 1 (items S4, S5, S6" in str(named)
    both = Homogeneity((9.0, 0.0, 8.0), 5.7, 0.01, (0, 2), ("a and b", "c and d"))
    assert str(both).startswith("group 0 (items a and b) and group 2 (items c and d) look mixed: their measurements")
    assert "group 5 (items a and b) and group 7" in both.seen([5, 6, 7])


def test_groups_that_look_like_one_are_said_to() -> None:
    session = play(coterie.Session(6, 3, 1, noise=1.0), FAR, 0)
    found = session.homogeneity
    assert found
    assert found.mixed == ()
    assert str(found) == ("each group looks like one: its measurements differ by no more than chance (tested at 1 %).")
    assert (
        repr(session)
        .splitlines()[0]
        .endswith(
            "measurements, proven: at least 3 groups; and if there are exactly 3 groups, the items of a group are "
            "alike, those of different groups are not"
        )
    )


@pytest.mark.parametrize("offset", [1e9, -(2.0**39)])
def test_far_data_keep_their_verdict(offset: float) -> None:
    """An offset of 2^39 standard deviations leaves 2^-13 of them to each value, and sums of them would lose more."""
    near, far = (
        coterie.Session(4, 2, 1, method="uniform", noise=1.0),
        coterie.Session(4, 2, 1, method="uniform", noise=1.0),
    )
    rng = np.random.default_rng(3)
    while not near.done:
        arm = near.ask()
        value = round((10.0 * (arm % 2) + rng.standard_normal()) * 64) / 64
        assert far.ask() == arm
        near.tell(arm, value)
        far.tell(arm, value + offset)
    assert far.done
    assert near.homogeneity is not None
    assert far.homogeneity is not None
    np.testing.assert_allclose(far.homogeneity.evidence, near.homogeneity.evidence, rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_certificate_says_it_too(seed: int) -> None:
    """Its groups have their own numbers; what stands beside the proof does not change it."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(9) % 3)
    session = play(coterie.Session(9, 3, 2, delta=0.07, noise=1.0), 5.0 * np.eye(3)[:, :2][truth], seed)
    certificate, found = session.certificate, session.homogeneity
    assert certificate is not None
    assert found is not None
    assert session.labels is not None
    assert certificate["delta"] == 0.07
    assert certificate["alarm"] is None
    beside = certificate["homogeneity"]
    assert (beside["level"], beside["threshold"]) == (0.01, found.threshold)
    for arm, k in enumerate(certificate["labels"]):
        assert beside["evidence"][k] == found.evidence[session.labels[arm]]
    assert len(beside["evidence"]) == 3
    assert coterie.verify(json.loads(json.dumps(certificate)), session.events)


def test_lines_are_few() -> None:
    for session in (
        mixed_session(),
        play(coterie.Session(6, 2, 1, noise=1.0), FAR, 0),
        coterie.Session(3, 2, 1, noise=1.0),
    ):
        assert 1 <= len(repr(session).splitlines()) <= 4
        assert re.fullmatch(r"<Session .*>", repr(session), re.DOTALL)
