"""A session with a deadline: it ends there, hands over what is proven and a guess, and can be moved."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.problem.settings import SettingError

LEVELS = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0])


def small(**options: Any) -> coterie.Session:
    return coterie.Session(9, 3, 1, delta=0.01, noise=0.5, **options)


def measured(session: coterie.Session, means: np.ndarray, sd: float = 0.5, seed: int = 3) -> coterie.Session:
    rng = np.random.default_rng(seed)
    while not session.done and not session.out_of_budget:
        item = session.ask()
        session.tell(item, means[item] + sd * rng.standard_normal(session.dim))
    return session


@cache
def large() -> tuple[coterie.Session, np.ndarray]:
    """Sixty items in three groups that two results tell apart, and a deadline too short for a proof of all."""
    labels = np.arange(60) % 3
    means = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[labels]
    return measured(coterie.Session(60, 3, 2, delta=0.01, noise=1.0, deadline=160), means, 1.0), labels


@cache
def certified() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Its certificate, and its log."""
    session, _ = large()
    return dict(session.handover.certificate or {}), session.events


def test_deadline_ends_asking_and_hands_over() -> None:
    session = measured(small(deadline=60), LEVELS)
    assert session.t == 60
    assert not session.done
    assert session.open(3) == []
    with pytest.raises(coterie.SessionDone, match="deadline of 60"):
        session.ask()
    handed = session.handover
    assert handed.spent == 60
    assert handed.left == 0
    assert sorted([*handed.placed, *handed.unproven]) == list(range(9))
    assert handed.misplaced_at_least is not None
    assert handed.certificate is not None
    assert handed.certificate.verify(session.events).valid
    apart, placed = len(handed.certificate["apart"]), len(handed.certificate["placed"])
    said = f"{apart} pairs of items differ; and if there are exactly 3 groups, {placed} of 9 items are proven in theirs"
    assert handed.certificate.claimed.startswith(said), "not the groups, which are a guess"


def test_nothing_is_called_proven_before_the_end() -> None:
    session = measured(small(deadline=40), LEVELS)
    assert not session.done
    assert session.verdict == "not proven yet"


def test_the_guess_at_the_deadline_fits_all_results_best() -> None:
    """Never worse than that of the run, now and then better; the same after loading, and gone once the run goes on."""
    better, means = 0, coterie.datasets.synthetic("moderate").means
    for seed in (0, 39, 48, 73):
        session = measured(coterie.Session(11, 4, 3, noise=1.0, deadline=92), means, 1.0, seed)
        guess, labels, handed = session._conversation.run.guess, session.labels, session.handover.labels
        loaded = coterie.Session.from_dict(session.to_dict()).labels
        assert guess is not None
        assert labels is not None
        assert handed is not None
        assert loaded is not None
        before, after = off(session, guess[0]), off(session, labels)
        assert after <= before + 1e-9
        better += after < before - 1e-9
        assert handed.tolist() == loaded.tolist() == labels.tolist()
        session.revise(deadline=93)
        assert coterie.same_partition(session.labels, guess[0])
    assert better == 3


def off(session: coterie.Session, labels: np.ndarray) -> float:
    """The sum of squares of all results about the means of their groups."""
    of, values = labels[session.log_arrays.arms], session.log_arrays.array
    return float(sum(((values[of == k] - values[of == k].mean(axis=0)) ** 2).sum() for k in np.unique(labels)))


def test_batches_keep_to_the_deadline() -> None:
    session = small(deadline=11)
    assert len(session.ask(50)) == 11
    assert session.out_of_budget
    session.forget(0)
    assert not session.out_of_budget, "what was given up was not measured"


def test_costs_are_summed_up_to_the_deadline() -> None:
    costs = [1.0, 1.0, 5.0, 1.0, 1.0, 5.0, 1.0, 1.0, 5.0]
    session = measured(small(costs=costs, deadline=60), LEVELS)
    assert session.cost is not None
    assert 55.0 < session.cost <= 60.0


def test_decisions_before_the_deadline_are_those_without() -> None:
    asked = [measured(small(deadline=deadline), LEVELS) for deadline in (40, 60)]
    free = small()
    rng = np.random.default_rng(3)
    while free.t < 60:
        item = free.ask()
        free.tell(item, LEVELS[item] + 0.5 * rng.standard_normal(1))
    assert list(free.arms_asked) == list(asked[1].arms_asked)
    assert list(free.arms_asked)[:40] == list(asked[0].arms_asked)


@pytest.mark.parametrize(
    ("deadline", "said"),
    [(8, "9 items"), (0, "deadline"), (20.5, "integer"), (True, "integer"), ("soon", "integer"), (-3, "deadline")],
)
def test_deadline_that_cannot_be_is_refused_by_name(deadline: Any, said: str) -> None:
    with pytest.raises(SettingError, match=said) as refused:
        small(deadline=deadline)
    assert refused.value.field == "deadline"


def test_deadline_is_moved_at_no_price() -> None:
    session = measured(small(deadline=30), LEVELS)
    with pytest.raises(SettingError, match="30 were spent already"):
        session.revise(deadline=20)
    with pytest.raises(SettingError, match="call of its own"):
        session.revise(deadline=50, delta=0.001)
    before = len(session.decisions)
    session.revise(deadline=60)
    assert session.deadline == 60
    assert session.first_settings.deadline == 30
    assert len(session.decisions) == before
    again = coterie.Session.from_dict(session.to_dict())
    assert again.deadline == 60
    assert again.ask() == session.ask()
    with pytest.raises(SettingError, match="no deadline"):
        small().revise(deadline=100)


def test_list_is_frozen_and_proves_statements() -> None:
    session, labels = large()
    events = [made["event"] for made in session.decisions]
    assert "statements" in events
    handed = session.handover
    assert handed.labels is not None
    assert coterie.same_partition(handed.labels, labels)
    differ = labels[:, None] != labels
    assert all(differ[pair] for pair in handed.partial.apart)
    assert len(handed.placed) >= 12
    assert coterie.verify(handed.certificate, session.events).problems == []


def test_list_is_saved_and_goes_on() -> None:
    session, _ = large()
    again = coterie.Session.from_dict(session.to_dict())
    assert again.handover.words == session.handover.words
    applied = coterie.Session.from_dict(session.to_dict() | {"rules": session.rules - 1})
    assert applied.handover.words == session.handover.words
    for one in (again, applied):
        one.revise(deadline=200)
    assert again.ask() in range(60)
    with pytest.raises(SettingError, match="only the deadline"):
        again.revise(delta=0.001)


def test_results_of_rounds_may_come_in_any_order() -> None:
    labels = np.arange(60) % 3
    means = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[labels]
    session, rng = coterie.Session(60, 3, 2, delta=0.01, noise=1.0, deadline=160), np.random.default_rng(5)
    while not session.done and (opened := session.open(7)):
        for place in rng.permutation(len(opened)).tolist():
            ticket = opened[place]
            if rng.random() < 0.05:
                session.forget(ticket.number)
            else:
                session.tell(ticket.arm, means[ticket.arm] + rng.standard_normal(2), ticket.number)
    assert any(made["event"] == "statements" for made in session.decisions)
    handed = session.handover
    assert handed.certificate is not None
    assert handed.certificate.verify(session.events).valid
    assert coterie.Session.from_dict(session.to_dict()).handover.words == handed.words


def forged(change: Any) -> list[str]:
    certificate, events = copy.deepcopy(certified())
    change(certificate, events)
    return coterie.verify(certificate, events).problems


def _other_epoch(certificate: dict[str, Any], events: list[Any]) -> None:
    certificate["statements"]["epoch"] += 1


def _fewer_open(certificate: dict[str, Any], events: list[Any]) -> None:
    certificate["statements"]["open"] = 0


def _not_listed(certificate: dict[str, Any], events: list[Any]) -> None:
    listed = next(event for event in events if event["event"] == "statements")["listed"]
    item, group = certificate["statements"]["proven"][0][:2]
    listed[item].remove(group)


def _more_evidence(certificate: dict[str, Any], events: list[Any]) -> None:
    certificate["statements"]["proven"][0][2] += 1.0


def _unproven_statement(certificate: dict[str, Any], events: list[Any]) -> None:
    rows = certificate["statements"]["proven"]
    statements = next(event for event in events if event["event"] == "statements")
    proven = {tuple(row[:2]) for row in rows}
    listed = [(item, group) for item, groups in enumerate(statements["listed"]) for group in groups]
    item, group = next(statement for statement in listed if statement not in proven)
    rows.append([item, group, rows[0][2], rows[0][3]])


def _earlier_round(certificate: dict[str, Any], events: list[Any]) -> None:
    certificate["statements"]["proven"][-1][3] -= 1


def _better_bet(certificate: dict[str, Any], events: list[Any]) -> None:
    bet = [event for event in events if event["event"] == "round"][-1]["bet"]
    bet["centers"][0][0] += 1.0


def _freeze_after(certificate: dict[str, Any], events: list[Any]) -> None:
    place = next(i for i, event in enumerate(events) if event["event"] == "statements")
    labels = certificate["labels"]
    cores = [[labels.index(k)] for k in range(3)]
    events.insert(place + 1, {"event": "freeze", "epoch": 0, "labels": labels, "cores": cores})


def _no_representatives(certificate: dict[str, Any], events: list[Any]) -> None:
    certificate["statements"]["representatives"].pop()


def _more_apart(certificate: dict[str, Any], events: list[Any]) -> None:
    certificate["apart"].append([0, 3])


def _more_placed(certificate: dict[str, Any], events: list[Any]) -> None:
    certificate["placed"] = list(range(60))


def _weaker_pair(certificate: dict[str, Any], events: list[Any]) -> None:
    first = certificate["pairs"][0]
    certificate["pairs"][0] = [*first[:3], 1, 1]


@pytest.mark.parametrize(
    "forgery",
    [_other_epoch, _fewer_open, _not_listed, _more_evidence, _unproven_statement, _earlier_round, _better_bet,
     _freeze_after, _no_representatives, _more_apart, _more_placed, _weaker_pair],
)  # fmt: skip
def test_forged_partial_certificates_are_refused(forgery: Any) -> None:
    assert forged(lambda certificate, events: None) == []
    assert forged(forgery) != []


def test_correlated_noise_is_read_alike_by_the_verifier() -> None:
    covariance = np.array([[2.0, 0.8], [0.8, 1.0]])
    root, labels = np.linalg.cholesky(covariance), np.arange(60) % 3
    means = np.array([[100.0, -30.0], [105.0, -30.0], [100.0, -26.5]])[labels]
    session, rng = coterie.Session(60, 3, 2, delta=0.01, noise=covariance, deadline=160), np.random.default_rng(1)
    while not session.done and not session.out_of_budget:
        item = session.ask()
        session.tell(item, means[item] + root @ rng.standard_normal(2))
    handed = session.handover
    assert handed.certificate is not None
    assert handed.certificate["statements"]["proven"]
    assert handed.certificate.verify(session.events).problems == []


def test_cluster_stops_at_the_deadline() -> None:
    rng = np.random.default_rng(3)
    with pytest.warns(UserWarning, match="deadline ended before the proof"):
        result = coterie.cluster(
            lambda item: LEVELS[item] + 0.5 * rng.standard_normal(), 9, 3, 0.01, noise=0.5, deadline=40, progress=False,
            workers=2,
        )  # fmt: skip
    assert result.t == 40
    assert result.session.handover.left == 0
