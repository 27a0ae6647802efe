"""Saved sessions of earlier releases are read for ever: some of each number of rules are kept in assets/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie

ASSETS = Path(__file__).parent / "assets"
CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])


def kept(name: str) -> Any:
    return json.loads((ASSETS / f"session-2-{name}.json").read_text())


def finish(session: coterie.Session) -> None:
    rng = np.random.default_rng(0)
    while not session.done:
        assert session.t < 2000
        ticket, arm = session.pending[0] if session.pending else (None, -1)
        if ticket is None:
            opened = session.open(1)
            if not opened:
                break
            ticket, arm, _ = opened[0]
        session.tell(arm, CENTERS[arm % 3] + rng.standard_normal(2), ticket)


def check_proven(session: coterie.Session) -> None:
    assert session.labels is not None
    assert coterie.same_partition(session.labels, [0, 1, 2, 0, 1, 2])
    assert coterie.verify(session.certificate, session.events).valid


@pytest.mark.parametrize("rules", [2, 3])
@pytest.mark.parametrize("how_far", ["half-run", "finished"])
def test_a_saved_session_stands_where_it_stood_and_comes_to_a_proof(rules: int, how_far: str) -> None:
    """Asks that rules number 2 decided are applied, not followed: a proof is made anew."""
    asset = kept(f"rules-{rules}-{how_far}")
    session = coterie.Session.from_dict(asset["saved"])
    assert (session.t, session.done, session.pulls.tolist()) == (asset["t"], asset["done"], asset["pulls"])
    assert (None if session.labels is None else session.labels.tolist()) == asset["labels"]
    assert (session.applied, session.n_measurements) == (asset["applied"], len(asset["saved"]["log"]))
    assert [list(pair) for pair in session.pending] == asset["saved"]["pending"]
    assert session.to_dict() == asset["saved"]
    again = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    for each in (session, again):
        finish(each)
        check_proven(each)
    assert again.to_dict() == session.to_dict()  # loaded in the middle, it goes on as if it had never stopped


def test_a_run_that_an_earlier_release_could_not_end_ends() -> None:
    """An ask of a round was given up, then a value corrected: 0.2 never asked for it again, here for 79 results."""
    session, rng = coterie.Session.from_dict(kept("stuck")), np.random.default_rng(1)
    assert not session.done
    assert session.n_measurements == 90
    while not session.done and session.n_measurements < 150:
        arm = session.ask()
        session.tell(arm, 4.0 * (arm % 2) + rng.standard_normal())
    assert session.labels is not None
    assert session.labels.tolist() == [0, 1, 0, 1, 0, 1]
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.valid, verdict.problems


@pytest.mark.parametrize(("number", "why"), [(3, "it was saved by a newer release"), (1, "it is older than 0.2")])
def test_a_format_of_another_release_is_refused(number: int, why: str) -> None:
    saved = coterie.Session(3, 2, 1, noise=1.0).to_dict() | {"format": f"coterie-session-{number}"}
    with pytest.raises(ValueError, match=why):
        coterie.Session.from_dict(saved)
