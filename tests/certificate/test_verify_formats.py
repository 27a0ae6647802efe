"""Certificates of release 0.2 are read for ever; rounds that overlap, and the counts that pairs read.

Oracle: `plain_certificates`, the formulas in exact fractions.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plain_certificates as plain
import pytest

import coterie
from coterie.certificate.arithmetic.known import Stacks, grid_of, paired, record_of
from coterie.certificate.freezes import LogSubject
from coterie.certificate.reading import read_events
from coterie.problem.families import noise_of
from coterie.problem.noise import Noise

Certificate = dict[str, Any]
Events = list[dict[str, Any]]
Case = Callable[[str], tuple[Certificate, Events]]

KEPT = sorted(Path(__file__).parent.joinpath("assets").glob("0.2-*.json"))
LABELS, CENTERS = [0, 1, 0, 1, 0, 1, 0], [[0.0], [3.0]]


def reasons(certificate: Any, events: Any) -> str:
    return " | ".join(coterie.verify(certificate, events).problems)


# Certificates of release 0.2.


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_certificates_of_release_0_2_hold(path: Path) -> None:
    verdict = coterie.verify(path, path.with_suffix(".csv"))
    assert verdict.problems == []
    assert any("release 0.2" in warning for warning in verdict.warnings)  # their logs have no trace of corrections
    certificate = json.loads(path.read_text())
    assert certificate["format"] == "coterie-certificate-2"
    assert "log_format" not in certificate
    kept = certificate["labels"]
    for moved in ([*kept[1:], kept[0]], [kept[0]] * len(kept)):
        assert not coterie.verify(certificate | {"labels": moved}, path.with_suffix(".csv"))


def test_certificates_of_release_0_2_are_of_every_question_and_noise() -> None:
    certificates = [json.loads(path.read_text()) for path in KEPT]
    kinds = {noise_of(kept["noise"], kept["dim"]).kind for kept in certificates if "question" not in kept}
    assert kinds == {"known", "any", "gaussian", "counts", "bounded", "at-most", "symmetric"}
    assert {kept.get("question") for kept in certificates} == {None, "resolution", "linkage"}
    assert {kept.get("by") for kept in certificates} == {None, "pairs", "epoch"}
    assert any(kept.get("corrections") for kept in certificates)
    assert sum("revisions" in kept for kept in certificates) == 2


def test_other_formats_are_refused(case: Case) -> None:
    certificate, events = case("overlapping")
    for other in ("coterie-certificate-1", "coterie-certificate-3", "", None, 2, ["coterie-certificate-2"]):
        assert "format must be coterie-certificate-2" in reasons(certificate | {"format": other}, events)


# Rounds that overlap.


def pipelined(left: int = 0) -> tuple[Certificate, Events]:
    return plain.overlapping_rounds(LABELS, CENTERS, [[0, 2], [1, 3]], seed=1, rounds=8, left=left)


def test_results_of_several_rounds_may_come_in_any_order() -> None:
    certificate, events = pipelined()
    assert coterie.verify(certificate, events).problems == []
    orders = [event["round"] for event in events if event["event"] == "result" and event["round"]]
    assert orders != sorted(orders)


def test_listed_rounds_are_the_first_of_the_epoch_and_complete(case: Case) -> None:
    certificate, events = case("overlapping")
    section = certificate["epoch"]
    of_epoch = [e["round"] for e in events if e["event"] == "round" and e["epoch"] == 1]
    came = {r: sum(e["event"] == "result" and e["round"] == r for e in events) for r in of_epoch}
    composed = {e["round"]: sum(n for _, n in e["pulls"]) for e in events if e["event"] == "round"}
    complete = [r for r in of_epoch if came[r] == composed[r]]
    assert section["rounds"] == of_epoch[: len(section["rounds"])]
    later = [r for r in complete if r not in section["rounds"]]
    assert later, "a complete round after an incomplete one is needed here"

    longer = copy.deepcopy(certificate)
    longer["epoch"]["rounds"] = of_epoch[: len(section["rounds"]) + 1]
    assert f"round {of_epoch[len(section['rounds'])]} is used, but not all of its results" in reasons(longer, events)
    skipping = copy.deepcopy(certificate)
    skipping["epoch"]["rounds"] = [*section["rounds"], later[0]]
    assert "the certificate uses the rounds" in reasons(skipping, events)
    last = max(test[3] for kind in ("group_tests", "core_tests", "pair_tests") for test in section[kind])
    fewer = copy.deepcopy(certificate)
    fewer["epoch"]["rounds"] = [r for r in section["rounds"] if r <= last]
    assert coterie.verify(fewer, events)
    fewer["epoch"]["rounds"] = [r for r in section["rounds"] if r < last]
    assert f"a test uses round {last}, which the certificate does not list" in reasons(fewer, events)


def test_fewer_rounds_than_complete_ones_may_be_listed() -> None:
    certificate, events = pipelined()
    shorter = plain.Plain(events, LABELS, None, 0.1, 64).by_epoch(1, listed=6)
    assert len(shorter["epoch"]["rounds"]) == 6 < len(certificate["epoch"]["rounds"])
    assert coterie.verify(shorter, events).problems == []


def test_rounds_are_numbered_in_the_order_of_composition() -> None:
    certificate, events = pipelined()
    places = [i for i, event in enumerate(events) if event["event"] == "round"]
    swapped = [*events]
    swapped[places[2]], swapped[places[3]] = events[places[3]], events[places[2]]
    assert "round 4 is out of order: 3 comes next" in reasons(certificate, swapped)
    assert "is out of order" in reasons(certificate, [e for i, e in enumerate(events) if i != places[1]])


def test_results_come_after_their_round_and_no_oftener_than_composed() -> None:
    certificate, events = pipelined()
    composed = next(i for i, event in enumerate(events) if event.get("round") == 5 and event["event"] == "round")
    place = next(i for i, event in enumerate(events) if event.get("round") == 5 and event["event"] == "result")
    early = [*events[:composed], events[place], *events[composed:place], *events[place + 1 :]]
    assert "a result of round 5 while the last round is 4" in reasons(certificate, early)
    twice = [*events[: place + 1], events[place], *events[place + 1 :]]
    longer = certificate | {"t": certificate["t"] + 1}
    assert "round 5 has no pull (left) of arm" in reasons(longer, twice)


# The counts that pairs read.


@pytest.mark.parametrize("room", [8, 16, 32, 64])
def test_grid_of_counts(room: int) -> None:
    grid = grid_of(room, 5000)
    assert grid.tolist() == [n for n in plain.grid(room) if n <= 5000]
    assert all(n % 8 == 0 for n in grid.tolist() if n > room)
    beyond = grid[grid >= room]
    assert np.all(np.diff(beyond) * room <= 8 * beyond[:-1])  # the next one is at most 8/P further
    for ratio in (1, 2, 4, 8):
        for n in range(1, 700):
            read = plain.counts_read(n, 10**6, ratio, room)
            assert read in plain.grid(room)
            assert read * ratio in plain.grid(room)
            assert n / 2 < read <= n


def test_prefix_room_is_one_of_four(case: Case) -> None:
    certificate, events = case("beyond the room")
    for room in (1, 7, 12, 24, 63, 65, 128, 10**30):
        assert "prefix_room must be one of 8, 16, 32, 64, got" in reasons(certificate | {"prefix_room": room}, events)
    assert "evidence that arms" in reasons(certificate | {"prefix_room": 16}, events)  # another grid
    assert "prefix_room must be an integer" in reasons(certificate | {"prefix_room": 8.0}, events)


def test_pairs_match_oracle_at_all_counts() -> None:
    rng = np.random.default_rng(12)
    inner = plain.inner_product(0.5, 2)
    heights = [230, 171, 40]
    order = rng.permutation(np.repeat(np.arange(3), heights))
    events = [{"event": "result", "arm": int(m), "round": 0, "values": rng.normal(m, 1, 2).tolist()} for m in order]
    record = record_of(read_events(events, LogSubject("groups", 3, 2, 2), len(events)), Noise.of(0.5, 2))
    exact = [[plain.exact(e["values"]) for e in events if e["arm"] == m] for m in range(3)]
    for room in (8, 16, 64):
        stacks = Stacks(record, 3, room)
        for _ in range(40):
            a, b = (int(m) for m in rng.choice(3, 2, replace=False))
            n_a, n_b = int(rng.integers(0, heights[a] + 1)), int(rng.integers(0, heights[b] + 1))
            found = paired(stacks, *(np.array([x]) for x in (a, b, n_a, n_b)))[0]
            wanted = plain.pair(exact[a][:n_a], exact[b][:n_b], inner, room)
            assert found == wanted or found == pytest.approx(wanted, rel=1e-10, abs=1e-10)


def test_long_stacks_keep_only_sums_on_the_grid() -> None:
    rng = np.random.default_rng(13)
    events: Events = [
        {"event": "result", "arm": i % 2, "round": 0, "values": [x]} for i, x in enumerate(rng.normal(size=60_000))
    ]
    record = record_of(read_events(events, LogSubject("groups", 2, 1, 2), len(events)), Noise.of(None, 1))
    stacks = Stacks(record, 2, 64)
    assert len(stacks._sums.counts) < 2 * (64 + 8 * math.ceil(math.log2(30_000 / 64)))
    found = paired(stacks, *(np.array([x]) for x in (0, 1, 30_000, 30_000)))[0]
    exact = [[plain.exact(e["values"]) for e in events[m::2]] for m in (0, 1)]
    n = plain.counts_read(30_000, 30_000, 1, 64)
    assert n == 28_672  # 64·2^8·(1 + 6/8)
    assert found == pytest.approx(plain.pair(exact[0], exact[1], plain.inner_product(None, 1), 64), rel=1e-9, abs=1e-9)
