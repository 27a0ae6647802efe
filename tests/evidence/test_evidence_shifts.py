"""Results that shift from day to day: the evidence by plain loops, how often it is for nothing, and what is said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import coterie
from coterie.certificate.beside import shift_in_words
from coterie.evidence.shifts import SHIFT_LEVEL, SHIFT_THRESHOLD, shift_evidence

WORLDS: dict[str, tuple[list[int], float, Any]] = {
    "two groups": ([0, 1] * 5, 0.9, None),
    "three groups": ([0, 1, 2] * 4, 1.0, None),
    "a small group": ([0] * 36 + [1] * 4, 1.2, None),
    "a small group, known noise": ([0] * 36 + [1] * 4, 1.2, 1.0),
    "heavy tails": ([0] * 16 + [1] * 4, 3.0, None),
}


def drawn(world: str, group: int, gap: float, rng: np.random.Generator) -> float:
    noise = rng.standard_t(2) if world == "heavy tails" else rng.standard_normal()
    return gap * group + float(noise)


def run(world: str, seed: int, shift: float = 0.0, most: int = 600, day: int = 20) -> tuple[bool, coterie.Session]:
    """Whether the alarm was ever raised, looked at after every 20 results, in a run with a new shift every day."""
    labels, gap, noise = WORLDS[world]
    rng = np.random.default_rng([seed, len(labels)])
    session = coterie.Session(len(labels), max(labels) + 1, 1, delta=0.1, noise=noise)
    raised, offset = False, 0.0
    while not session.done and session.n_measurements < most:
        if session.n_measurements % day == 0:
            offset = shift * rng.standard_normal()
        arm = session.ask()
        session.tell(arm, [offset + drawn(world, labels[arm], gap, rng)])
        if session.done or session.n_measurements % 20 == 0:
            raised |= any(" sd " in alarm.seen for alarm in session.alarms if alarm.kind == "drift")
    return raised, session


def plain(groups: list[int], values: list[float], parts: list[list[int]]) -> float:
    """The largest log-evidence, by loops."""
    totals = [0.0] * len(values)
    for part in parts:
        for rho in (0.02, 0.1, 0.5):
            log = before = sum_of_day = 0.0
            n = 0
            for i, (g, x) in enumerate(zip(groups, values, strict=True)):
                if i and part[i] != part[i - 1]:
                    before, sum_of_day, n = log, 0.0, 0
                earlier = [y for h, y in zip(groups[:i], values[:i], strict=True) if h == g]
                rank, s = sum(y < x for y in earlier), len(earlier) + 1
                sum_of_day, n = sum_of_day + math.sqrt(3) * (2 * rank - s + 1) / s, n + 1
                log = before + rho * sum_of_day**2 / (1 + rho * n) / 2 - math.log(1 + rho * n) / 2
                totals[i] += math.exp(log)
    return math.log(max(totals) / (3 * len(parts)))


@pytest.mark.parametrize("known_days", [True, False])
def test_shift_evidence_matches_oracle(known_days: bool) -> None:
    rng = np.random.default_rng(3)
    groups, day = rng.integers(0, 3, 130), np.sort(rng.integers(0, 6, 130))
    values = groups + 0.7 * rng.standard_normal(6)[day] + rng.standard_normal(130)
    parts = [day.tolist()] if known_days else [[i // length for i in range(130)] for length in (10, 20, 40, 80)]
    evidence = shift_evidence(groups, values[:, None], day if known_days else None)
    assert evidence is not None
    assert evidence.value == pytest.approx(plain(groups.tolist(), values.tolist(), parts), rel=1e-9)


def test_few_results_or_one_day_say_nothing() -> None:
    groups, values = np.zeros(60, dtype=np.int64), np.arange(60.0)[:, None]
    assert shift_evidence(groups[:39], values[:39]) is None
    assert shift_evidence(groups, values, np.zeros(60, dtype=np.int64)) is None
    assert shift_evidence(groups, values) is not None


def test_shift_between_two_days_is_measured() -> None:
    """Tuesday lies one standard deviation above Monday, whichever items are measured when."""
    rng = np.random.default_rng(1)
    day = np.repeat([0, 1], 150)
    groups = np.where(rng.random(300) < 0.3 + 0.4 * day, 1, 0)  # the upper group is measured more on Tuesday
    evidence = shift_evidence(groups, (3.0 * groups + day + rng.standard_normal(300))[:, None], day)
    assert evidence is not None
    assert evidence.reached
    assert evidence.size == pytest.approx(1.0, abs=0.3)
    assert (evidence.before, evidence.after) == (slice(0, 150), slice(150, 300))
    still = shift_evidence(groups, (3.0 * groups + rng.standard_normal(300))[:, None], day)
    assert still is not None
    assert not still.reached


@pytest.mark.parametrize("world", WORLDS)
def test_shifts_of_a_standard_deviation_are_seen(world: str) -> None:
    raised = [run(world, seed, shift=1.0)[0] for seed in range(4)]
    assert sum(raised) >= 3


@pytest.mark.slow
def test_sound_runs_raise_no_alarm_of_shifts() -> None:
    """Five worlds with 12 runs each: more than 6 false alarms, at 1 %, have a probability below 1e-6."""
    raised = sum(run(world, seed, most=400)[0] for world in WORLDS for seed in range(12))
    assert raised <= int(binom.isf(1e-6, 60, SHIFT_LEVEL))


@pytest.mark.guarantee
@pytest.mark.parametrize("world", WORLDS)
def test_shift_alarm_error_rate_within_level(world: str) -> None:
    """400 runs a world, looked at after every 20 results; false alarms beyond 1 % but for one in a million."""
    raised = sum(run(world, 1000 + seed)[0] for seed in range(400))
    print(f"{world}: {raised} false alarms in 400 runs")
    assert raised <= int(binom.isf(1e-6, 400, SHIFT_LEVEL))


# In words.


def test_session_and_verify_name_blocks() -> None:
    """A new shift every day: the session says so, and so does the verifier, with code of its own."""
    raised, session = run("three groups", 2, shift=1.0, most=3000)
    assert session.done
    assert raised
    (alarm,) = (one for one in session.alarms if one.kind == "drift")
    assert " sd " in alarm.seen
    assert "as blocks" in alarm.advice
    assert alarm.evidence >= alarm.threshold == SHIFT_THRESHOLD
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict, verdict.problems
    (warning,) = (one for one in verdict.warnings if one.endswith("state days as blocks"))
    said = alarm.seen.removeprefix("Results drift: ").removesuffix(".")
    assert warning.startswith(said), (warning, said)


def test_verify_compares_days_where_the_log_has_them() -> None:
    rng = np.random.default_rng(4)
    labels, day = [0, 1, 0, 1], np.repeat([0, 1, 2], 40)
    arms = rng.integers(0, 4, 120)
    values = np.array(labels)[arms] * 3.0 + np.array([0.0, 0.8, 0.0])[day] + 0.9 * rng.standard_normal(120)
    days = [("2026-11-16", "2026-11-17", "2026-11-18")[i] for i in day]
    said = shift_in_words(arms, values[:, None], labels, days)
    assert said is not None
    assert "results of 2026-11-1" in said
    assert "sd higher than those of 2026-11-16" in said or "sd lower than those of 2026-11-17" in said
    evidence = shift_evidence(np.array(labels)[arms], values[:, None], day)
    assert evidence is not None
    assert f"{abs(evidence.size):.1f} sd" in said
    assert shift_in_words(arms, (values - np.array([0.0, 0.8, 0.0])[day])[:, None], labels, days) is None
