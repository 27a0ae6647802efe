"""Corrections where records are applied and then followed: features, blocks, sessions loaded, or after the proof."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import coterie


def reloaded(session: coterie.Session) -> coterie.Session:
    return coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))


@pytest.mark.parametrize("noise", [None, "gaussian", coterie.Symmetric(), coterie.Bounded(-9, 9)], ids=str)
@pytest.mark.parametrize(("seed", "row"), [(4, 85), (18, 104)])
def test_a_round_closed_by_a_correction_is_seen_at_the_same_time_after_loading(noise: Any, seed: int, row: int) -> None:
    """A round was just closed, and asks of the next are decided: bets of later rounds are the same after loading."""
    rng = np.random.default_rng(seed)
    session = coterie.Session(5, 3, 1, noise=noise)
    rng.integers(5, 120)

    def measured(arm: int) -> float:
        return float(np.clip(rng.standard_normal() + 1.2 * (arm % 3), -9, 9))

    while session.n_measurements < row + 3:
        arm = session.ask()
        session.tell(arm, measured(arm))
    session.correct(row, measured(session.log[row][0]), "a slip")
    for _ in range(12):
        arm = session.ask()
        session.tell(arm, measured(arm))
        assert reloaded(session).to_dict() == session.to_dict()


@pytest.mark.parametrize("confirm", [0.0, 0.5])
def test_a_corrected_session_is_the_same_after_loading_when_it_is_done(confirm: float) -> None:
    rng = np.random.default_rng(0)
    session = coterie.Session(4, 2, 1, noise=1.0, confirm=confirm)
    while not session.done:
        arm = session.ask()
        session.tell(arm, 5.0 * (arm % 2) + rng.standard_normal())
        if session.n_measurements == 3:
            session.correct(2, 0.25, "a slip")
    assert session.done is True
    session.correct(0, 0.5, "another slip")
    assert reloaded(session).to_dict() == session.to_dict()


@pytest.mark.parametrize("noise", [1.0, None, "gaussian", coterie.Counts(20)], ids=str)
def test_a_correction_with_features_measured_one_by_one(noise: Any) -> None:
    rng = np.random.default_rng(1)
    session = coterie.Session(6, 2, features=["a", "b", "c"], noise=noise)

    def measured(item: int, feature: str) -> float:
        other = item % 2 == 1 and feature == "b"
        if isinstance(noise, coterie.Counts):
            return float(rng.binomial(20, 0.9 if other else 0.3))
        return 5.0 * other + float(rng.standard_normal())

    frozen = 0
    while not session.done:
        item, feature = session.ask()
        session.tell(item, measured(item, feature), feature=feature)
        if len(session.decisions) > frozen:
            frozen = len(session.decisions) + 3
            item, told = session.log[session.n_measurements // 2]
            (feature,) = told
            session.correct(session.n_measurements // 2, {feature: measured(item, feature)}, "a slip")
            assert reloaded(session).to_dict() == session.to_dict()
    assert session.corrections
    assert coterie.same_partition(session.labels, np.arange(6) % 2)
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.valid, verdict.problems


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("noise", [1.0, None, coterie.AnyNoise(shape=True)], ids=str)
def test_a_correction_in_blocks_that_were_closed_with_asks_given_up(noise: Any, strict: bool) -> None:
    """Of what a cell lacks some was given up before the block was closed."""
    rng = np.random.default_rng(2)
    session = coterie.Session(6, 2, 1, noise=noise, blocks="offset", strict_blocks=strict)
    for number in range(4):
        block = f"plate {number}"
        session.ask(8, block=block)
        opened = session.pending
        session.forget(opened[-1][0])
        for ticket, arm in opened[:-3]:
            session.tell(arm, 6.0 * (arm % 2) + number + rng.standard_normal(), ticket=ticket)
        session.close_block(block)
    before = session.decisions
    made = session.correct(1, session.log[1][1][0] + 0.5, "a slip")
    assert made is not None
    assert session.decisions[: len(before)] == before
    assert reloaded(session).to_dict() == session.to_dict()
    number = 4
    while not session.done:
        for arm in session.ask(12, block=f"plate {number}"):
            if not session.done:
                session.tell(arm, 6.0 * (arm % 2) + number + rng.standard_normal())
        number += 1
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.valid, verdict.problems
