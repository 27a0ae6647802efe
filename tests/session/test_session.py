"""A session drives the same run as the reference, asks in a sane order, and says what its stopping rule reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from known import known

import coterie
from tests.oracles import paper as reference

METHODS = ("boc", "boc-linear", "uniform", "oracle")
KINDS = ("proven", "heuristic")

INSTANCES = (
    coterie.Instance([0, 1, 1, 2, 0, 2, 2], [[0.0, 0.0], [3.0, 0.0], [0.0, 5.0]]),
    coterie.Instance([0, 1, 2, 2, 2], [[0.0], [2.5], [7.0]]),  # two groups of one arm
    coterie.Instance([1, 0, 1, 0, 1, 1], [[0.0, 0.0, 0.0], [1.5, 1.5, 0.0]]),
)


def new_session(inst: coterie.Instance, method: str, **more: Any) -> coterie.Session:
    if method == "boc-linear":
        more["distance_ratio"] = 0.3
    if method == "oracle":
        more["instance"] = inst
    return coterie.Session(inst.n_arms, inst.n_clusters, inst.dim, method=method, **{"noise": 1.0, **more})


def world(inst: coterie.Instance, seed: int) -> Callable[[int], np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda arm: inst.means[arm] + rng.standard_normal(inst.dim)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", range(len(INSTANCES)))
def test_session_equals_reference(method: str, number: int) -> None:
    """Same arms, same stopping time, same groups and the same evidence at every measurement, to the stop."""
    inst, delta = INSTANCES[number], 0.02
    level = -math.log(delta)
    expected = reference.run(
        world(inst, number),
        *(inst.n_arms, inst.n_clusters, inst.dim, method),
        log_inverse_deltas=[level],
        max_pulls=3000,
        instance=inst,
        distance_ratio=0.3,
    )
    for kind in KINDS:
        stop, labels = expected.stops[kind, level]
        session = new_session(inst, method, delta=delta, threshold=kind)
        measure, arms = world(inst, number), []
        while not session.done:
            arms.append(session.ask())
            session.tell(arms[-1], measure(arms[-1]))
            if session.t > inst.n_arms:
                t, _, _, z = expected.statistics[session.t - inst.n_arms - 1]
                assert t == session.t
                assert session.evidence.statistic == pytest.approx(z, rel=1e-8, abs=1e-9)
        assert arms == expected.arms[:stop]
        assert session.t == stop
        assert session.pulls.tolist() == np.bincount(arms).tolist()
        assert session.labels is not None
        assert coterie.same_partition(session.labels, labels)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_evidence_is_what_the_stopping_rule_reads(method: str, kind: str) -> None:
    inst = INSTANCES[0]
    session = new_session(inst, method, threshold=kind, delta=0.1)
    measure = world(inst, 8)
    assert (session.labels, session.centers) == (None, None)
    while not session.done:
        arm = session.ask()
        session.tell(arm, measure(arm))
        evidence = session.evidence
        assert (evidence.statistic >= evidence.threshold) == session.done
        if session.t < inst.n_arms:
            assert evidence.threshold == math.inf
            assert evidence.statistic == 0.0
            assert evidence.weakest is None
            assert session.labels is None
            continue
        assert evidence.threshold == pytest.approx(coterie.threshold(0.1, session.pulls, inst.dim, kind), rel=1e-12)
        assert session.labels is not None
        assert session.centers is not None
        assert evidence.weakest is not None
        # The weakest place: moving that arm into that other group is the closest alternative.
        weakest = evidence.weakest
        assert weakest.group != session.labels[weakest.arm]
        closest = coterie.closest_alternative(coterie.Instance(session.labels, session.centers), session.pulls)
        assert weakest.statistic == pytest.approx(0.5 * closest.value, rel=1e-9)
    # Z = ½(√Z2 − √Z1)² with the guess of before the last measurement, which is the one that is kept.
    assert weakest.statistic >= evidence.statistic


def test_labels_are_numbered_by_first_appearance_and_centers_follow() -> None:
    inst = INSTANCES[2]
    session = new_session(inst, "boc")
    measure = world(inst, 1)
    while not session.done:
        arm = session.ask()
        session.tell(arm, measure(arm))
    assert session.labels is not None
    assert session.centers is not None
    assert session.labels.tolist() == [0, 1, 0, 1, 0, 0]
    # The centers of the stop are weighted means of all but the last measurement.
    arms = np.array([arm for arm, _ in session.log[:-1]])
    values = np.array([value for _, value in session.log[:-1]])
    for k in range(2):
        mine = session.labels[arms] == k
        np.testing.assert_allclose(session.centers[k], values[mine].mean(axis=0), rtol=1e-12)


def test_results_after_the_end_are_kept_and_change_nothing() -> None:
    inst = INSTANCES[0]
    session = new_session(inst, "boc")
    measure = world(inst, 2)
    while not session.done:
        batch = session.ask(3)
        session.tell(batch, [measure(arm) for arm in batch])
    spare = [(ticket, arm) for ticket, arm in session.pending]
    assert spare == []  # a batch is told whole, even if the stop falls inside it
    before: tuple[Any, ...] = (session.t, session.labels, session.centers, session.pulls, session.evidence)
    told = len(session.log)
    for _ in range(60):  # data that would tear every group apart
        session.tell(3, [1000.0, -1000.0])
    session.tell([0, 1], [[5.0, 5.0], [6.0, 6.0]])
    assert session.done
    after: tuple[Any, ...] = (session.t, session.labels, session.centers, session.pulls, session.evidence)
    for old, new in zip(before, after, strict=True):
        assert np.array_equal(old, new) if isinstance(old, np.ndarray) else old == new
    assert len(session.log) == told + 62
    assert session.log[-1][0] == 1
    assert session.log[-1][1].tolist() == [6.0, 6.0]
    again = coterie.Session.from_dict(session.to_dict())
    assert again.done
    assert again.t == session.t
    assert np.array_equal(known(again.centers), known(session.centers))
    assert len(again.log) == told + 62


def test_ask_after_the_end_says_so() -> None:
    inst = INSTANCES[0]
    session = new_session(inst, "uniform", delta=0.25)
    measure = world(inst, 3)
    open_asks = session.ask(12)
    while not session.done:
        arm = session.ask()
        session.tell(arm, measure(arm))
    before = session.to_dict()
    for n in (None, 1, 5):
        with pytest.raises(
            coterie.SessionDone, match=rf"after {session.t} measurements: .*proven: .*\(delta = 0\.25\)"
        ):
            session.ask(n)
    assert session.to_dict() == before
    # What is still under way may come in, or be given up.
    tickets = [ticket for ticket, _ in session.pending]
    session.forget(tickets[0])
    session.tell(session.pending[0][1], [0.0, 0.0], ticket=tickets[1])
    assert len(session.pending) == len(tickets) - 2
    assert len(open_asks) == 12


def test_what_a_session_hands_out_is_a_copy() -> None:
    inst = INSTANCES[0]
    session, same = new_session(inst, "boc"), new_session(inst, "boc")
    measure = world(inst, 4)
    while not session.done:
        arm = session.ask()
        x = measure(arm)
        session.tell(arm, x)
        assert same.ask() == arm
        same.tell(arm, x)
        x[:] = 1e6
        same.pulls[:] = 9
        same.log[0][1][:] = 1e6
        if same.labels is not None and same.centers is not None:
            same.labels[:] = 0
            same.centers[:] = 0.0
    assert same.to_dict() == session.to_dict()
    assert np.array_equal(known(same.labels), known(session.labels))
    assert np.array_equal(known(same.centers), known(session.centers))
    assert np.array_equal(same.pulls, session.pulls)


def test_a_guess_with_an_empty_group_proves_nothing() -> None:
    """Two distinct values for three groups: no statistic, no weakest place, and the session goes on."""
    session = coterie.Session(5, 3, 1, method="boc", noise=1.0)
    for _ in range(40):
        arm = session.ask()
        session.tell(arm, [100.0 * (arm % 2)])
    assert not session.done
    assert session.labels is not None
    assert session.centers is not None
    assert session.labels.tolist() == [0, 1, 0, 1, 0]
    assert session.centers[:2].tolist() == [[0.0], [100.0]]
    assert session.centers.shape == (3, 1)
    assert session.evidence.statistic == 0.0
    assert session.evidence.weakest is None
    assert session.pulls.max() - session.pulls.min() <= 1  # an allocation that is not defined is taken as even
