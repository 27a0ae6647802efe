"""An ask that is never answered: nobody measures in vain behind it, and workers who all answer never wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from coterie.session import conversation

NOISES: dict[str, Any] = {
    "any": None,
    "known": 0.7,
    "gaussian": "gaussian",
    "symmetric": coterie.Symmetric(),
    "at most": coterie.AtMost(0.7),
    "counts": coterie.Counts(20),
    "bounded": coterie.Bounded(0, 1),
}
N_ARMS = 9


def value_of(noise: Any, arm: int, rng: np.random.Generator) -> float:
    """A result of an arm; groups are arms with the same remainder modulo 3."""
    if isinstance(noise, coterie.Counts):
        return float(rng.binomial(noise.trials, (0.1, 0.5, 0.9)[arm % 3]))
    if isinstance(noise, coterie.Bounded):
        return float(rng.random() < (0.05, 0.5, 0.95)[arm % 3])
    return 3.0 * (arm % 3) + 0.7 * float(rng.standard_normal())


def new_session(noise: Any, question: str) -> Any:
    if question == "resolution":
        wide = isinstance(noise, coterie.Counts)
        bounds = (0.05, 0.3) if isinstance(noise, coterie.Bounded) else (1.0, 4.0) if wide else (0.5, 2.5)
        return coterie.Session(N_ARMS, dim=1, noise=noise, resolution=bounds)
    more: dict[str, Any] = {"groups": "linkage"} if question == "linkage" else {"method": question}
    return coterie.Session(N_ARMS, 3, 1, noise=noise, **more)


def measured(session: coterie.Session, noise: Any, forgotten: int | None, rng: Any, most: int) -> int:
    """Results told one after the other until it is done or waits; the ask of this number is never answered."""
    before = session.n_measurements
    while not session.done and session.n_measurements - before < most:
        opened = session.open(1)
        if not opened:
            break
        ticket, arm, _ = opened[0]
        if ticket != forgotten:
            session.tell(arm, value_of(noise, arm, rng), ticket)
    return session.n_measurements - before


CASES = [
    *((name, "croc") for name in NOISES if name != "bounded"),
    ("known", "shortlist"),
    ("known", "resolution"),
    *(
        pytest.param(name, question, marks=pytest.mark.slow)
        for name, question in (("known", "linkage"), ("counts", "resolution"), ("counts", "linkage"))
    ),
]


@pytest.mark.parametrize(("name", "question"), CASES)
def test_nothing_is_asked_in_vain_behind_a_forgotten_ask(name: str, question: str) -> None:
    """One ask is forgotten, at any point: the session waits within a small multiple of what is enough without it, names
    the ask, and goes on when it is given up. Before this, 600 further results were told at a standstill."""
    noise = NOISES[name]
    enough = measured(new_session(noise, question), noise, None, np.random.default_rng(1), 2000)
    waited = 0
    for forgotten in (0, 4, N_ARMS - 1, N_ARMS + 3, N_ARMS + 10, N_ARMS + 25):
        session, rng = new_session(noise, question), np.random.default_rng(1)
        told = measured(session, noise, forgotten, rng, 2000)
        assert told <= 2 * enough + 60, (forgotten, told, enough)
        if session.done:
            continue
        waited += 1
        assert [one.number for one in session.awaited] == [forgotten]
        assert list(session.pending) == [(forgotten, session.awaited[0].arm)]
        with pytest.raises(coterie.Waiting, match=rf"arm {session.awaited[0].arm} \(ticket {forgotten}\)") as caught:
            session.ask()
        assert [one.number for one in caught.value.tickets] == [forgotten]
        again = coterie.Session.from_dict(session.to_dict())
        assert again.awaited == session.awaited, "a saved session waits as well"
        assert again.open(1) == []
        session.forget(forgotten)
        assert session.awaited == []
        more = measured(session, noise, None, rng, 2000)
        assert session.outcome is not None, "it is done"
        assert more <= 2 * enough + 60
        assert coterie.verify(session.certificate, session.events).problems == []
    assert waited >= 4


def test_a_forgotten_batch_is_not_waited_for_much_longer() -> None:
    """Somebody takes 30 items and leaves: twice as many results are ahead, not 30 times as many as for one."""
    session, rng = new_session(0.7, "croc"), np.random.default_rng(0)
    measured(session, 0.7, None, rng, 12)
    gone = {one.number for one in session.open(30)}
    told = measured(session, 0.7, None, rng, 500)
    assert not session.done
    assert gone >= {one.number for one in session.awaited}
    assert session.awaited
    assert told <= 2 * 31 + 30


def test_it_goes_on_when_the_result_comes() -> None:
    session, rng = new_session(0.7, "croc"), np.random.default_rng(0)
    measured(session, 0.7, 12, rng, 500)
    (late,) = session.awaited
    with pytest.raises(coterie.Waiting):
        session.ask(3)
    session.tell(late.arm, value_of(0.7, late.arm, rng), late.number)
    assert session.awaited == []
    measured(session, 0.7, None, rng, 500)
    assert session.done
    with pytest.raises(coterie.SessionDone):
        session.ask()


def test_a_list_of_asks_is_shorter_where_it_waits() -> None:
    """What was planned is still asked for: a round to its end."""
    session, rng = new_session(0.7, "croc"), np.random.default_rng(0)
    (ticket, arm, _), *_ = session.open(1)
    told = 0
    while not session.awaited:
        asked = session.ask(4)
        pending = [one for one in session.pending if one[0] != ticket]
        assert len(pending) == len(asked) <= 4
        for number, its in pending:
            session.tell(its, value_of(0.7, its, rng), number)
        told += len(asked)
        assert told < 100
    assert session.awaited[0].arm == arm
    with pytest.raises(coterie.Waiting) as caught:
        session.ask(4)
    assert [one.number for one in caught.value.tickets] == [ticket]


@pytest.mark.parametrize("noise", ["any", "known"])
def test_who_asks_without_telling_never_waits(noise: str) -> None:
    """Asks that are open are no results in vain: a large batch, and one answered from its end."""
    session, rng = new_session(NOISES[noise], "croc"), np.random.default_rng(0)
    assert len(session.ask(300)) == 300
    for number, arm in reversed(session.pending):
        session.tell(arm, value_of(NOISES[noise], arm, rng), number)
    assert session.done or session.ask(300)


def test_several_workers_who_all_answer_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks of 2, 8 and 64 workers are answered in a random order: the runs are those without any limit, ask by ask."""

    def run(workers: int, seed: int) -> list[int]:
        session = coterie.Session(4, 2, 1, noise=1.0)
        rng, order = np.random.default_rng(seed), np.random.default_rng(10**6 + seed)
        while not session.done:
            session.open(workers - len(session.pending))
            if session.pending:
                ticket, arm = session.pending[order.integers(len(session.pending))]
                session.tell(arm, 0.5 * (arm > 1) + rng.standard_normal(), ticket)
        return list(session.arms_asked)

    cases = [(2, 0), (2, 1), (8, 0), (8, 1), (64, 0), (64, 1)]
    found = [run(*case) for case in cases]
    monkeypatch.setattr(conversation, "AHEAD", 10**9)
    assert found == [run(*case) for case in cases]


def test_one_at_a_time_it_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cluster`, and everybody who answers before asking again: even if nothing may be ahead."""
    monkeypatch.setattr(conversation, "AHEAD", 0)
    monkeypatch.setattr(conversation, "BATCHES_AHEAD", 0)
    rng = np.random.default_rng(0)
    assert coterie.cluster(lambda arm: value_of(0.7, arm, rng), N_ARMS, 3, progress=False).done
    for question in ("croc", "shortlist", "resolution", "linkage"):
        session = new_session(0.7, question)
        measured(session, 0.7, None, rng, 2000)
        assert session.done
