"""Saved sessions of every format and of the decision rules that wrote them, kept as files: they are read for ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie

ASSETS = Path(__file__).parent / "assets"


def asset(rules: int, how_far: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ASSETS / f"session-1-rules-{rules}-{how_far}.json").read_text())
    return found


@pytest.mark.parametrize("how_far", ["finished", "half-run"])
def test_a_saved_session_stands_where_it_stood_and_goes_on(how_far: str) -> None:
    kept = asset(3, how_far)
    session = coterie.Session.from_dict(kept["saved"])
    assert (session.t, session.done, session.pulls.tolist()) == (kept["t"], kept["done"], kept["pulls"])
    assert (None if session.labels is None else session.labels.tolist()) == kept["labels"]
    if session.done:
        assert coterie.verify(session.certificate, session.events)
        return
    assert len(session.pending) == 3
    for ticket, arm in session.pending:
        session.tell(arm, [0.0, 0.0], ticket)
    assert session.t >= kept["t"]


def test_a_run_that_an_earlier_release_could_not_end_ends() -> None:
    """An ask of a round was given up, then a value corrected: 0.2 never asked for it again, here for 79 results."""
    saved = json.loads((ASSETS / "session-1-rules-3-stuck.json").read_text())
    session, rng = coterie.Session.from_dict(saved), np.random.default_rng(1)
    assert not session.done
    assert session.n_measurements == 90
    while not session.done and session.n_measurements < 150:
        arm = session.ask()
        session.tell(arm, 4.0 * (arm % 2) + rng.standard_normal())
    assert session.labels is not None
    assert session.labels.tolist() == [0, 1, 0, 1, 0, 1]
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.valid, verdict.problems
