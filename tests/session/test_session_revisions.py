"""Revisions of a session: items join and retire, K is raised, δ is lowered, all after looking (docs/CROC.md, 16)."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, note_count

import coterie

MEANS = [0.0, 0.0, 0.0, 4.0, 4.0, 4.0, 8.0, 8.0, 8.0]
Draw = Callable[[np.random.Generator, int], Any]


def normal(rng: np.random.Generator, arm: int) -> Any:
    return [MEANS[arm] + rng.standard_normal()]


def bounded(rng: np.random.Generator, arm: int) -> Any:
    return [MEANS[arm] + rng.uniform(-0.5, 0.5)]


def counted(rng: np.random.Generator, arm: int) -> Any:
    return [int(rng.binomial(40, 0.1 + MEANS[arm] / 10.0))]


def play(
    session: coterie.Session, rng: np.random.Generator, draw: Draw = normal, most: int = 10**6, n: int = 2
) -> None:
    """Ask for n at a time, tell all but one of them at once, and that one later."""
    told = 0
    while not session.done and told < most:
        for _ in range(n - len(session.pending)):
            if not session.open(1):
                return
        for ticket, arm in session.pending[: max(1, n - 1)]:
            session.tell(arm, draw(rng, arm), ticket=ticket)
            told += 1


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def revised(noise: Any, draw: Draw, seed: int = 0, **question: Any) -> coterie.Session:
    """Six items, three join with a third group, one of the first is retired."""
    rng = np.random.default_rng(seed)
    asked: dict[str, Any] = {"n_clusters": 2} | question
    session = coterie.Session(6, dim=1, noise=noise, names=list("abcdef"), **asked)
    play(session, rng, draw, 20)
    more = {} if "resolution" in question else {"n_clusters": 3}
    session.revise(add=["g", "h", "i"], **more)
    play(session, rng, draw, 25)
    session.revise(retire=["b"])
    play(session, rng, draw)
    return session


EXACT = {
    "known": (1.0, normal),
    "any": (None, normal),
    "gaussian": ("gaussian", normal),
    "scalar": (coterie.Gaussian("scalar"), normal),
    "diagonal": (coterie.Gaussian("diagonal"), normal),
    "counts": (coterie.Counts(40), counted),
    "bounded": (coterie.Bounded(-1, 9), bounded),
    "symmetric": (coterie.Symmetric(), normal),
    "at-most": (coterie.AtMost(1.0), normal),
}
OTHERS = {
    "known": (1.0, normal),
    "gaussian": ("gaussian", normal),
    "bounded": (coterie.Bounded(-1, 9), bounded),
}


@pytest.mark.parametrize("name", EXACT)
def test_every_noise_goes_on_to_a_proof_that_verifies(name: str) -> None:
    session = revised(*EXACT[name])
    assert session.labels is not None
    assert session.labels.tolist() == [0, -1, 0, 1, 1, 1, 2, 2, 2]
    certificate, events = plain(session.certificate), plain(session.events)
    assert coterie.verify(certificate, events).problems == []
    assert [one["retired"] for one in certificate["revisions"]] == [[], [1]]
    partial = session.partial()
    assert all(1 not in pair for pair in (*partial.apart, *partial.alike))
    before = session.t
    session.revise(delta=1e-4)
    assert not session.done or session.t == before
    play(session, np.random.default_rng(9), EXACT[name][1])
    assert coterie.verify(session.certificate, session.events).problems == []
    assert coterie.verify(certificate, session.events).valid  # the earlier one stays what it was
    assert session.certificate is not None
    assert session.certificate["delta"] == 1e-4


def test_at_most_ends_soon_after_items_came_and_went() -> None:
    """Seeds 0 to 299 need 69 to 87 results: one that needs many times as many is stuck with a wrong candidate."""
    assert max(revised(coterie.AtMost(1.0), normal, seed).t for seed in range(10)) < 150


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("question", [{"resolution": (0.5, 3.0), "n_clusters": None}, {"groups": "linkage"}])
def test_resolutions_and_linkage_go_on_to_a_proof_that_verifies(name: str, question: dict[str, Any]) -> None:
    session = revised(*OTHERS[name], **question)
    assert session.labels is not None
    assert session.labels.tolist() == [0, -1, 0, 1, 1, 1, 2, 2, 2]
    certificate, events = plain(session.certificate), plain(session.events)
    assert coterie.verify(certificate, events).problems == []
    changed = copy.deepcopy(certificate)
    changed["epochs"][-1]["level"] -= math.log(5.0)
    assert not coterie.verify(changed, events).valid
    assert session.partial().labels is not None


@pytest.mark.parametrize("noise", [1.0, None])
def test_resuming_equals_never_having_stopped(noise: Any) -> None:
    def course(stops: bool) -> coterie.Session:
        rng = np.random.default_rng(4)
        session = coterie.Session(6, 2, 1, noise=noise, delta=0.1)

        def stop() -> None:
            nonlocal session
            if stops:
                saved = plain(session.to_dict())
                session = coterie.Session.from_dict(saved)
                assert plain(session.to_dict()) == saved

        for changes in ({"add": 3}, {"n_clusters": 3}, {"retire": [1, 7]}, {"delta": 0.01}, {"delta": 0.001}):
            play(session, rng, most=12, n=3)
            stop()
            session.revise(**changes)
            stop()
        play(session, rng, n=3)
        stop()
        return session

    steady, stopped = course(False), course(True)
    assert plain(steady.to_dict()) == plain(stopped.to_dict())
    assert steady.events == stopped.events
    assert coterie.verify(stopped.certificate, stopped.events).problems == []


def test_a_revision_costs_no_measurement_and_the_levels_that_it_says() -> None:
    rng = np.random.default_rng(0)
    session = coterie.Session(6, 2, 1, noise=1.0)
    play(session, rng, n=1)
    spent = sum(one["event"] == "freeze" for one in session.decisions)
    counted_before = session.t
    session.revise(delta=0.01)
    assert session.t == counted_before
    play(session, rng, n=1)
    certificate = session.certificate
    assert certificate is not None
    assert certificate["pair_level"] == pytest.approx(math.log(15 / (0.2 * 0.01)))
    for j, epoch in enumerate(certificate["epochs"]):
        assert epoch["level"] == pytest.approx(-math.log(0.01 * 0.8 * 0.8 * 0.2 ** (spent + j)))


def test_manipulated_revisions_are_rejected() -> None:
    session = revised(1.0, normal)
    certificate, events = plain(session.certificate), plain(session.events)
    assert coterie.verify(certificate, events).valid
    assert certificate["epochs"]
    places = [i for i, one in enumerate(events) if one["event"] == "revision"]

    def rejected(change: Callable[[dict[str, Any], list[dict[str, Any]]], Any]) -> None:
        its, log = copy.deepcopy(certificate), copy.deepcopy(events)
        change(its, log)
        assert not coterie.verify(its, log).valid

    rejected(lambda its, log: log.pop(places[0]))
    rejected(lambda its, log: its["revisions"].pop())
    rejected(lambda its, log: its.pop("revisions"))
    rejected(lambda its, log: its["present"].__setitem__(0, 1))
    rejected(lambda its, log: log[places[1]].__setitem__("retired", [2]))
    rejected(lambda its, log: log[places[0]].__setitem__("added", 2))
    rejected(lambda its, log: its["revisions"][0].__setitem__("epochs", 7))
    rejected(lambda its, log: its["revisions"][1].__setitem__("t", 1))
    rejected(lambda its, log: its.__setitem__("equal_pairs", 1))
    rejected(lambda its, log: its.__setitem__("delta", 0.2))
    rejected(lambda its, log: its["epochs"][-1].__setitem__("level", its["epochs"][-1]["level"] - 1.0))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"add": ["a"]}, "is there already"),
        ({"add": [""]}, "needs a name"),
        ({"retire": ["z"]}, "unknown item"),
        ({"retire": ["a", "a"]}, "twice"),
        ({"retire": ["a", "b", "c", "d"]}, "there must be at least 3"),
        ({"n_clusters": 1}, "n_clusters"),
        ({"n_clusters": 2}, "can only be raised"),
        ({"delta": 0.05}, "can only be lowered"),
        ({"delta": 0.0}, "delta must"),
        ({}, "nothing to revise"),
    ],
)
def test_bad_revisions_change_nothing(changes: dict[str, Any], says: str) -> None:
    session = coterie.Session(6, 2, 1, noise=1.0, names=list("abcdef"))
    play(session, np.random.default_rng(0), most=9)
    before = plain(session.to_dict())
    with pytest.raises(ValueError, match=says):
        session.revise(**changes)
    assert plain(session.to_dict()) == before
    session.revise(retire="f")
    with pytest.raises(ValueError, match="was retired, and its name stays its own"):
        session.revise(add=["f"])
    with pytest.raises(ValueError, match="is retired already"):
        session.revise(retire=["f"])


def test_the_paper_s_methods_refuse() -> None:
    session = coterie.Session(6, 2, 1, noise=1.0, method="boc")
    with pytest.raises(ValueError, match="method 'boc' cannot be revised"):
        session.revise(delta=0.01)


@pytest.mark.guarantee
def test_an_opponent_who_revises_after_looking_errs_within_delta() -> None:
    """Gap 0.9, δ = 0.3. The opponent retires the item that fits worst, lets another of the same group join in its
    place, and asks for a slightly smaller δ, whenever nothing is proven yet; 150 runs.

    With an error rate of 0.3 at most 61 errors are seen but for a probability of 0.3 %.
    """
    errors = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        means = [0.0, 0.0, 0.0, 0.9, 0.9]
        session = coterie.Session(5, 2, 1, noise=1.0, delta=0.3)
        while not session.done and session.t < 3000:
            for _ in range(8):
                if not session.done and (tickets := session.open(1)):
                    arm = tickets[0].arm
                    session.tell(arm, [means[arm] + rng.standard_normal()], ticket=tickets[0].number)
            if session.labels is not None and not session.done and len(means) < 9:
                labels = session.labels
                sums = np.zeros(len(means))
                for arm, value in session.log:
                    sums[arm] += value[0]
                centers = session.centers
                assert centers is not None
                away = np.abs(sums / np.maximum(session.pulls, 1) - centers[np.maximum(labels, 0), 0])
                away[labels < 0] = -1.0
                worst = int(np.argmax(away))
                means.append(means[worst])
                session.revise(add=1, retire=[worst], delta=session.delta * 0.999)
        here = session.items.present
        if session.done and session.labels is not None:
            truth = [means[arm] for arm in here]
            errors += not coterie.same_partition(session.labels[here], np.unique(truth, return_inverse=True)[1])
    assert errors <= 61
    note_count(0.3, errors, 150, Guarantee("known", case="revised after looking"))


def test_a_retired_item_is_in_no_group_that_a_notebook_shows() -> None:
    session = revised(1.0, normal)
    assert session.labels is not None
    assert session.labels.tolist() == [0, -1, 0, 1, 1, 1, 2, 2, 2]
    shown = session._repr_html_()
    assert [f"<td>{items}</td>" in shown for items in ("a, c", "d, e, f", "g, h, i")] == [True, True, True]
