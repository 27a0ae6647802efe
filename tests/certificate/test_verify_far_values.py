"""`verify` loses no digits to where results lie: against exact fractions, for all offsets and scales."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import plain_certificates as plain
import pytest

import coterie
from coterie.certificate.arithmetic.hidden_groups import homogeneity
from coterie.certificate.arithmetic.known import Stacks, Units, directed, paired, record_of
from coterie.certificate.freezes import LogSubject
from coterie.certificate.reading import read_events
from coterie.problem.noise import Noise

SCALES = [1e-300, 1e-150, 1e-20, 1e-3, 0.7, 1.0, 3.0, 1e10, 1e50]
OFFSETS = [0.0, 1e3, 1e6, 1e9, 1e10, 1e11]
COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.5]])


def length(inner: plain.Inner, vector: plain.Vector) -> float:
    return math.sqrt(inner(vector, vector))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("offset", OFFSETS)
def test_contrasts_are_exact_to_1e_9(scale: float, offset: float) -> None:
    """In units of the noise, relative to max(1, |contrast|); far pools mixed of what lies on both sides of zero too."""
    rng = np.random.default_rng(20)
    units = Units(Noise.of(scale, 2))
    places = np.array([[0.0, 0.0], [offset, -offset], [offset + 0.5, -offset], [-offset, 0.3], [offset / 3, 0.0]])
    values = (np.repeat(places, 40, axis=0) + rng.normal(size=(200, 2))) * scale
    results = units.results(values)
    for _ in range(60):
        one, two = (rng.choice(200, int(rng.integers(1, 60)), replace=False) for _ in range(2))
        pools = results.rows(np.concatenate([one, two])).pooled(np.repeat([0, 1], [one.size, two.size]), 2)
        found = units.gap(pools.rows(np.array([0])), pools.rows(np.array([1])))[0]
        sides = [plain.mean([plain.exact(values[i]) for i in rows]) for rows in (one, two)]
        for q in range(2):
            wanted = (sides[0][q] - sides[1][q]) / Fraction(scale)
            assert abs(Fraction(float(found[q])) - wanted) <= Fraction(1e-12) * max(Fraction(1), abs(wanted))


def log_of(values: np.ndarray[Any, Any], arms: list[int], labels: list[int], cores: list[list[int]]) -> Any:
    """A third of the results, a freeze, and the others in rounds of one pull of each arm."""
    events: list[dict[str, Any]] = []
    third = len(arms) // 3
    for i, (m, x) in enumerate(zip(arms, values.tolist(), strict=True)):
        if i == third:
            events.append({"event": "freeze", "epoch": 0, "labels": labels, "cores": cores})
        number = 0 if i < third else (i - third) // len(labels) + 1
        if i >= third and (i - third) % len(labels) == 0:
            pulls = [[arm, 1] for arm in range(len(labels))]
            events.append({"event": "round", "round": number, "epoch": 0, "pulls": pulls})
        events.append({"event": "result", "arm": m, "round": number, "values": x})
    return events


@pytest.mark.parametrize("noise", ["deviation", "covariance"])
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1.0, 1e50])
@pytest.mark.parametrize("offset", OFFSETS)
def test_evidence_matches_oracle_wherever_results_lie(noise: str, scale: float, offset: float) -> None:
    """Close groups, 1e11 from others that are close to one another: pairs, frozen tests and homogeneity."""
    if noise == "covariance" and not 1e-150 < scale < 1e150:
        scale = max(scale, 1e-140)  # a covariance is a square
    rng = np.random.default_rng(21)
    labels = [0, 1, 2, 3, 0, 1, 2, 3]
    centers = np.array([[0.0, 0, 0], [1.5, 0, 0], [offset, offset, -offset], [offset + 1.5, offset, -offset]])
    arms = list(range(8)) * 12
    root = np.linalg.cholesky(COVARIANCE) if noise == "covariance" else np.eye(3)
    values = (centers[np.array(labels)[arms]] + rng.normal(size=(len(arms), 3))) @ root.T * scale
    stated: Any = (COVARIANCE * scale**2).tolist() if noise == "covariance" else scale
    events = log_of(values, arms, labels, [[0], [1], [2, 6], [3]])
    oracle = plain.Plain(events, labels, stated, 0.1, 8)
    log = read_events(events, LogSubject("groups", 8, 3, 4), len(arms))
    record = record_of(log, Noise.of(stated, 3))
    error = 1e-9 if noise == "deviation" else 1e-7  # L is a rounded root
    near: dict[str, Any] = {"rel": error, "abs": error}

    stacks = Stacks(record, 8, 8)
    a, b = (np.array(side) for side in zip(*[(a, b) for a in range(8) for b in range(a)], strict=True))
    found = paired(stacks, a, b, stacks.heights[a], stacks.heights[b])
    assert found.tolist() == pytest.approx([oracle.pair(int(i), int(j)) for i, j in zip(a, b, strict=True)], **near)

    freeze = oracle.head("epoch")["epochs"][0]
    rounds = oracle.usable_rounds(0)
    tests = [(0, 1), (4, 2), (2, 3), (6, 3), (3, 2), (7, 2), (5, 0)]
    for pools, pool in (("group", oracle.groups), ("core", freeze["cores"]), ("arm", [[m] for m in range(8)])):
        arm, other = (np.array(side) for side in zip(*tests, strict=True))
        found = directed(record, log.freezes[0], record.rounds, pools, arm, other, np.full(7, rounds[-1]))
        wanted = [oracle.frozen_test(freeze, m, pool[k], rounds) for m, k in tests]
        assert found.tolist() == pytest.approx(wanted, **near)

    wanted = [plain.group_evidence([oracle.stacks[m] for m in group], oracle.inner) for group in oracle.groups]
    assert homogeneity(record, np.array(labels), 4).tolist() == pytest.approx(wanted, **near)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e50])
def test_certificates_of_far_groups_hold(scale: float) -> None:
    labels = [0, 1, 2, 3, 0, 1, 2, 3, 0]
    centers = [[0.0], [4.0 * scale], [9e11 * scale], [(9e11 + 5) * scale]]
    certificate, events = plain.by_pairs(labels, centers, [14] * 9, noise=scale, seed=4)
    assert coterie.verify(certificate, events).problems == []
    certificate, events = plain.overlapping_rounds(
        labels, centers, [[0], [1], [2, 6], [3]], noise=scale, seed=4, rounds=12
    )
    assert coterie.verify(certificate, events).problems == []


@pytest.mark.parametrize("noise", [None, "gaussian", coterie.Symmetric(), coterie.AnyNoise(shape=True)], ids=str)
@pytest.mark.parametrize("offset", [1e11, 1e12])
def test_certificates_of_blocks_hold_wherever_results_lie(noise: Any, offset: float) -> None:
    rng, number = np.random.default_rng(0), 0
    session = coterie.Session(4, 2, 1, noise=noise, blocks="offset")
    while not session.done:
        number += 1
        for item in session.ask(8, block=f"day {number}"):
            if not session.done:
                session.tell(item, offset + 4.0 * (item % 2) + rng.standard_normal())
    assert coterie.verify(session.certificate, session.events).problems == []


def test_results_beyond_1e12_standard_deviations_are_refused() -> None:
    certificate, events = plain.by_pairs([0, 1, 0, 1], [[0.0], [10.0]], [6] * 4, noise=0.5)
    assert coterie.verify(certificate, events)
    for far, allowed in ((4.9e11, True), (5.1e11, False), (-5.1e11, False), (1e300, False)):
        moved = [e | {"values": [e["values"][0] + (far if e["arm"] % 2 else 0.0)]} for e in events]
        problems = coterie.verify(certificate, moved).problems
        assert any("more than 1e+12 standard deviations from zero" in problem for problem in problems) != allowed
    problem = coterie.verify(certificate, moved).problems[0]
    assert problem.startswith("result 2 of the log, [1e+300], lies more than 1e+12 standard deviations from zero: ")


def test_sums_that_would_leave_the_integers_are_refused() -> None:
    """A noise that is 1e9 times smaller in one direction than in the others, and results far off along these."""
    noise = Noise.of([[1.0, 1.0 - 1e-15], [1.0 - 1e-15, 1.0]], 2)
    with pytest.raises(ValueError, match="cannot be added up without rounding"):
        Units(noise).results(np.full((10_000, 2), 9e11))
