"""Intervals in certificates: what a session states is recomputed from its log, and what is forged is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.certificate import Certificate, read_log, write_log
from coterie.session.intervals import certificate_with_intervals

DRAWS: dict[str, tuple[Any, Any]] = {
    "known": (1.0, lambda g, rng: rng.normal(3.0 * g, 1.0, 2)),
    "gaussian": ("gaussian", lambda g, rng: rng.normal(4.0 * g, 1.0, 2)),
    "scalar": (coterie.Gaussian("scalar"), lambda g, rng: rng.normal(4.0 * g, 1.0, 2)),
    "bounded": (coterie.Bounded([0, -1], [1, 3]), lambda g, rng: rng.beta(2 + 8 * g, 10 - 8 * g, 2)),
    "counts": (coterie.Counts(10), lambda g, rng: rng.binomial(10, 0.2 + 0.5 * g, 2)),
    "at-most": (coterie.AtMost([1.0, 2.0]), lambda g, rng: rng.normal(3.0 * g, 0.9, 2)),
    "any": (None, lambda g, rng: rng.normal(5.0 * g, 1.0, 2)),
    "symmetric": (coterie.Symmetric(), lambda g, rng: rng.normal(5.0 * g, 1.0, 2)),
}


def run(kind: str, workers: int = 1, lost: float = 0.0, unasked: float = 0.0, seed: int = 3) -> coterie.Session:
    """Six items in two groups, by so many who answer in any order; some asks are given up, some results unasked."""
    noise, draw = DRAWS[kind]
    rng = np.random.default_rng(seed)
    session = coterie.Session(6, 2, 2, noise=noise, delta=0.1)
    open_asks: list[Any] = []
    while not session.done:
        if len(open_asks) < workers:
            open_asks += session.open(workers - len(open_asks))
        if not open_asks:
            break
        ticket = open_asks.pop(int(rng.integers(len(open_asks))))
        if rng.random() < lost:
            session.forget(ticket.number)
        else:
            session.tell(ticket.arm, draw(ticket.arm % 2, rng), ticket.number)
        if rng.random() < unasked and not any(arm == 1 for _, arm in session.pending):
            session.tell(1, draw(1, rng))
    return session


def proof(session: coterie.Session) -> Certificate:
    certificate = session.certificate
    assert certificate is not None
    return certificate


def stated(session: coterie.Session) -> dict[str, Any]:
    made = [session.intervals(of, 0.05) for of in ("groups", "differences", "items")]
    content: dict[str, Any] = json.loads(json.dumps(proof(session).with_intervals(*made)))
    return content


@pytest.mark.parametrize("kind", DRAWS)
def test_sessions_are_recomputed(kind: str, tmp_path: Path) -> None:
    for workers, lost, unasked in ((1, 0.0, 0.0), (4, 0.1, 0.1)):
        session = run(kind, workers, lost, unasked)
        certificate = stated(session)
        assert coterie.verify(certificate, session.events).problems == []
        write_log(tmp_path / "log.csv", session.events, 2)
        assert read_log(tmp_path / "log.csv") == json.loads(json.dumps(session.events))
        assert coterie.verify(certificate, str(tmp_path / "log.csv"))
        plain = proof(session)
        assert "intervals" not in plain  # optional: without it a certificate is what it was
        assert coterie.verify(plain, session.events)


@pytest.fixture(scope="module")
def late() -> coterie.Session:
    """A run at whose end asks were open, with results that nobody asked for."""
    for seed in range(60):
        session = run("known", 3, 0.1, 0.2, seed)
        if session.events[0].get("open") and any(event.get("asked") is False for event in session.events):
            return session
    raise AssertionError("no run had both")


def test_streams_end_at_the_first_open_ask(late: coterie.Session) -> None:
    """By hand, from the session's own asks: asked for, in that order, up to the first that is open."""
    rows = {ticket: row for row, ticket in enumerate(late.log_arrays.tickets) if ticket is not None}
    counted, gone = (
        set(late.counted.tolist()),
        set(range(len(late.arms_asked))) - set(rows) - {t for t, _ in late.pending},
    )
    labels = late.labels
    assert labels is not None
    for of in ("groups", "items"):
        shown = late.intervals(of)
        for row, length in zip(shown.rows, shown.lengths, strict=True):
            stream = []
            for ticket, arm in enumerate(late.arms_asked):
                if (labels[arm] if of == "groups" else arm) != row or ticket in gone:
                    continue
                if rows.get(ticket) not in counted:
                    break
                stream.append(late.log[rows[ticket]][1])
            assert length == len(stream)
            assert shown.middle[row] == pytest.approx(np.mean(stream, axis=0))
    (both,) = late.intervals("differences").lengths
    assert sum(both) <= sum(late.intervals().lengths)


def changed(certificate: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(certificate)
    place: Any = copied["intervals"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copied


def test_forged_intervals_are_refused(late: coterie.Session) -> None:
    certificate, events = stated(late), late.events
    assert coterie.verify(certificate, events)
    low = certificate["intervals"][0]["low"][0][0]
    for path, value, said in (
        ([0, "low", 0, 0], low + 1e-4, "low end of row 0"),
        ([0, "high", 1, 1], 0.0, "high end of row 1"),
        ([0, "low", 0, 0], None, "low end of row 0"),
        ([0, "delta"], 0.06, "end of row 0"),
        ([0, "delta"], 0.0, "delta must lie"),
        ([0, "count"], 2, "count must be 4"),
        ([0, "formula"], "betting", "formula must be 'known'"),
        ([0, "quantile"], 0.5, "intervals are of means"),
        ([0, "of"], "pairs", "of must be"),
        ([1, "lengths", 0], [99, 1], "its stream in the log has"),
        ([2, "lengths", 1], int(late.pulls[1]), "its stream in the log has"),  # with those that nobody asked for
        ([2, "low"], [], "low must have 6 entries"),
        ([2], "x", "a list of objects"),
    ):
        verdict = coterie.verify(changed(certificate, path, value), events)
        assert not verdict, path
        assert any(said in problem for problem in verdict.problems), (path, verdict.problems)
    assert not coterie.verify(certificate | {"intervals": 3}, events)


def test_an_end_where_the_log_gives_none_is_refused() -> None:
    session = run("any")
    intervals = session.intervals("items", 1e-9)
    assert not np.isfinite(intervals.high).any()
    certificate = json.loads(json.dumps(proof(session).with_intervals(intervals)))
    assert coterie.verify(certificate, session.events)
    verdict = coterie.verify(changed(certificate, [0, "high", 0, 1], 7.0), session.events)
    assert any("high end of row 0, number 1 is inf by the log, got 7.0" in problem for problem in verdict.problems)


def test_logs_that_hide_open_asks_are_refused(late: coterie.Session) -> None:
    certificate = stated(late)
    head, *rest = late.events
    assert not coterie.verify(certificate, [{key: head[key] for key in ("event", "format")}, *rest])
    first = next(event for event in rest if event["event"] == "result" and event.get("asked") is not False)
    assert not coterie.verify(certificate, [head, *(event | {"asked": True} for event in rest)])
    twice = [event | ({"ask": 0} if event["event"] == "result" and event is not first else {}) for event in rest]
    verdict = coterie.verify(certificate, [head, *twice])
    assert any("two results of the log answer ask 0" in problem for problem in verdict.problems)
    verdict = coterie.verify(certificate, [head | {"open": [[0, 0]]}, *rest])
    assert any("ask 0 is open" in problem for problem in verdict.problems)


def test_certificates_of_other_questions_have_items_only() -> None:
    rng = np.random.default_rng(0)
    session = coterie.Session(4, dim=1, resolution=(0.5, 2.5), noise=1.0)
    while not session.done:
        arm = session.ask()
        session.tell(arm, [5.0 * (arm % 2) + rng.normal()])
    certificate = proof(session).with_intervals(session.intervals("items"))
    assert coterie.verify(certificate, session.events)
    assert certificate_with_intervals(session) == session.certificate
    forged = copy.deepcopy(dict(certificate))
    forged["intervals"][0]["of"] = "groups"
    assert any("need not have one mean" in problem for problem in coterie.verify(forged, session.events).problems)


def test_guessed_and_other_groups_are_not_certified(late: coterie.Session) -> None:
    session = coterie.Session(6, 2, 2, noise=1.0)
    for arm in range(6):
        session.tell(session.ask(), [3.0 * (arm % 2), 0.0])
    guess = session.intervals()
    assert not guess.proven
    with pytest.raises(ValueError, match="not proven"):
        proof(late).with_intervals(guess)
    other = dict(proof(late)) | {"labels": [0, 0, 0, 1, 1, 1]}
    with pytest.raises(ValueError, match="other groups"):
        Certificate(other).with_intervals(late.intervals())
