"""Real runs in blocks, small and drawn at random: their certificates hold, and changed ones are refused."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutations import check_changes

import coterie
from coterie.certificate import read_log, write_log

LABELS = [0, 1, 0, 2, 1, 0, 2, 1, 0]
NOISES: dict[str, Any] = {
    "known": 1.0,
    "any": None,
    "gaussian": "gaussian",
    "scalar": coterie.Gaussian("scalar"),
    "counts": coterie.Counts(20),
    "bounded": coterie.Bounded(0, 1),
    "at-most": coterie.AtMost(1.0),
    "symmetric": coterie.Symmetric(),
    "spread": coterie.AnyNoise(shape=True),
}
OFFSET = [*NOISES, *(f"{name}, strict" for name in ("known", "any", "counts")), "known, far apart"]
DRAWN = ["drawn, any", "drawn, bounded", "drawn, counts"]


def drawn(kind: str, group: int, offset: float, rng: np.random.Generator) -> list[float]:
    """A result of the group in a block."""
    if kind == "counts":
        return [float(rng.binomial(20, 1.0 / (1.0 + np.exp(-3.0 * (group - 1) - offset))))]
    if kind == "drawn, counts":
        return [float(rng.random() < 1.0 / (1.0 + np.exp(-4.0 * (group - 1) - offset)))]
    if kind.endswith("bounded"):
        return [float(np.clip(0.1 + 0.35 * group + 0.03 * offset + 0.1 * rng.random(), 0.0, 1.0))]
    if kind == "spread":
        return [float(offset + 5.0**group * rng.standard_normal())]
    return [float((12.0 if kind == "known, far apart" else 3.0) * group + offset + rng.standard_normal())]


def block_run(name: str, seed: int) -> coterie.Session | None:
    """Blocks of several sizes with shifts of 2 sd, some closed before they are finished; None if it did not end."""
    kind, strict, is_drawn = name.removesuffix(", strict"), name.endswith("strict"), name.startswith("drawn")
    rng = np.random.default_rng([seed, len(name)])
    noise = {"drawn, counts": coterie.Counts(1), "drawn, bounded": coterie.Bounded(0, 1)}.get(kind)
    noise = NOISES[kind.split(",")[0]] if not is_drawn else noise
    blocks = "drawn" if is_drawn else "offset"
    session = coterie.Session(9, 3, 1, delta=0.1, noise=noise, blocks=blocks, strict_blocks=strict)
    room, number = 9 if is_drawn else int(rng.choice([9, 12, 20])), 0
    while not session.done and session.n_measurements < 2500:
        number, offset = number + 1, 2.0 * rng.standard_normal()
        block = f"block {number}"
        for arm in session.ask(room, block=block):
            if session.done or rng.random() < (0.03 if seed % 2 else 0.0):
                break
            session.tell(arm, drawn(kind, LABELS[arm], offset, rng), block=block)
        if not session.done and block in session.open_blocks:
            session.close_block(block)
    return session if session.done else None


@cache
def documents() -> list[tuple[str, Any, Any]]:
    runs = [(name, block_run(name, int(name in OFFSET))) for name in (*OFFSET, *DRAWN)]
    return [(name, *json.loads(json.dumps([run.certificate, run.events]))) for name, run in runs if run is not None]


def test_real_runs_in_blocks_hold(tmp_path: Path) -> None:
    for name, certificate, events in documents():
        verdict = coterie.verify(certificate, events)
        assert verdict.problems == [], (name, verdict.problems)
        assert certificate["blocks"] == ("drawn" if name.startswith("drawn") else "offset")
        write_log(tmp_path / "log.csv", events, 1)
        assert read_log(tmp_path / "log.csv") == events
    names = {name for name, _, _ in documents()}
    assert names == {*OFFSET, *DRAWN}
    assert any(certificate["lapsed"] for _, certificate, _ in documents())
    assert {certificate["by"] for _, certificate, _ in documents()} == {"epoch", "pairs"}


def test_no_change_of_a_real_run_is_accepted_that_claims_something_else() -> None:
    check_changes(documents(), 1, 300)


@pytest.mark.slow
def test_no_change_of_many_of_real_runs_is_accepted_that_claims_something_else() -> None:
    check_changes(documents(), 50, 4000)


def test_corrected_results_in_blocks_are_checked_anew() -> None:
    """A slip is put right: the certificate is that of the right values, and lists the correction."""
    rng = np.random.default_rng(4)
    session, number = coterie.Session(6, 2, 1, delta=0.1, noise=1.0, blocks="offset"), 0
    while not session.done:
        number += 1
        for arm in session.ask(9, block=f"day {number}"):
            if not session.done:
                session.tell(arm, [4.0 * (arm % 2) + 10.0 * number + rng.standard_normal()], block=f"day {number}")
        if number == 1:
            value = float(session.log_arrays.array[2, 0])
            session.correct(2, [value + 0.25], "a slip of the pen", by="ann", at="today")
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.problems == []
    assert any("corrected" in warning for warning in verdict.warnings)
