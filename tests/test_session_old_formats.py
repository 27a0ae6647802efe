"""Saved sessions of older releases open and go on: one of each format and number of rules is kept in tests/assets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie

ASSETS = Path(__file__).parent / "assets"
CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])


def kept(rules: int, what: str) -> Any:
    return json.loads((ASSETS / f"session-1-rules-{rules}-{what}.json").read_text())


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
@pytest.mark.parametrize("what", ["half-run", "finished"])
def test_a_session_of_format_1_opens_and_comes_to_a_proof(rules: int, what: str) -> None:
    """Format 1 did not record that it was done: under its own rules that follows, under others a proof is made anew."""
    asset = kept(rules, what)
    session = coterie.Session.from_dict(asset["saved"])
    assert session.n_measurements == len(asset["saved"]["log"])
    assert [list(pair) for pair in session.pending] == asset["saved"]["pending"]
    if rules == 3:
        assert (session.t, session.done, session.pulls.tolist()) == (asset["t"], asset["done"], asset["pulls"])
    else:
        assert session.applied > 0
    again = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    assert again.to_dict() == session.to_dict()
    for one in (session, again):
        finish(one)
        check_proven(one)
    assert again.to_dict() == session.to_dict()  # loaded in the middle, it goes on as if it had never stopped


def test_a_format_of_a_newer_release_is_refused() -> None:
    saved = coterie.Session(3, 2, 1, noise=1.0).to_dict() | {"format": "coterie-session-3"}
    with pytest.raises(ValueError, match="it was saved by a newer release"):
        coterie.Session.from_dict(saved)
