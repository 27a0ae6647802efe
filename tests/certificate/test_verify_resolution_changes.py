"""What is changed in a certificate of a resolution or of linkage, or in its log, is refused, without a traceback."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import plain_resolution
import pytest

import coterie

Certificate = dict[str, Any]
Events = list[dict[str, Any]]
NAMES = ["known, each", "known, distance, any two", "exactly, distance", "gaussian scalar, each", "bounded, each",
         "known, linkage"]  # fmt: skip


@cache
def _text(name: str) -> str:
    return json.dumps(plain_resolution.made(plain_resolution.CASES[name]()))


def fresh(name: str) -> tuple[Certificate, Events]:
    certificate, events = json.loads(_text(name))
    return certificate, events


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers and texts of a JSON value are."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from leaves(one, (*path, i))
    else:
        yield path


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    at(value, path[:-1])[path[-1]] = new


def others(value: Any) -> list[Any]:
    """Values that a leaf must not have instead."""
    strange: list[Any] = [None, "?", [], {}, True, math.nan, math.inf]
    if isinstance(value, str):
        return [value + "x", *strange]
    if isinstance(value, bool):
        return [not value]
    return [value + 1, value - 1, -value - 3, value + 0.4, *strange]


def is_free(path: tuple[Any, ...], new: Any, old: Any) -> bool:
    """Whether a change says the same as before: more contrasts, if the largest evidence is from fewer."""
    return path[0] in ("near_tests", "far_tests") and path[2] == 3 and new is not True and new == old + 1


def refused(certificate: Any, events: Any) -> bool:
    verdict = coterie.verify(certificate, events)
    assert verdict.valid == (not verdict.problems)
    assert all(len(problem) < 700 and "\n" not in problem for problem in verdict.problems)
    return not verdict


@pytest.mark.parametrize("name", NAMES)
def test_numbers_and_texts_of_a_certificate_matter(name: str) -> None:
    certificate, events = fresh(name)
    assert not refused(certificate, events)
    for i, path in enumerate(leaves(certificate)):
        if len(path) > 1 and i % 13:
            continue  # there are thousands of them
        old = at(certificate, path)
        for new in others(old) if len(path) == 1 else others(old)[:4]:
            if is_free(path, new, old):
                continue
            put(certificate, path, new)
            assert refused(certificate, events), (path, old, new)
        put(certificate, path, old)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_needed(name: str) -> None:
    certificate, events = fresh(name)
    for field in list(certificate):
        without = {key: value for key, value in certificate.items() if key != field}
        if field == "log_format":  # then it is one of release 0.2, and what it cannot show is said
            assert "cannot be checked" in coterie.verify(without, events).warnings[-1]
        else:
            assert refused(without, events) or field == "corrections", field  # there were none
    for j, epoch in enumerate(certificate["epochs"]):
        for field in epoch:
            changed = copy.deepcopy(certificate)
            del changed["epochs"][j][field]
            assert refused(changed, events), (j, field)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_a_freeze_in_the_log_matter(name: str) -> None:
    certificate, events = fresh(name)
    for place, event in enumerate(events):
        if event["event"] != "freeze":
            continue
        for i, path in enumerate(leaves(event)):
            if len(path) > 1 and i % 11:
                continue
            old = at(event, path)
            for new in others(old)[:5]:
                put(event, path, new)
                assert refused(certificate, events), (place, path, old, new)
            put(event, path, old)


@pytest.mark.parametrize("name", NAMES)
def test_results_that_tests_use_matter(name: str) -> None:
    certificate, events = fresh(name)
    for event in [event for event in events if event.get("round") == 2][::17]:
        for change in ({"round": 0}, {"round": 1}, {"round": 3}, {"asked": False}, {"values": [0.0]}, {"arm": 99}):
            saved = dict(event)
            event.update(change)
            assert refused(certificate, events), change
            event.clear()
            event.update(saved)


@pytest.mark.parametrize("name", NAMES)
def test_values_that_tests_use_matter(name: str) -> None:
    certificate, events = fresh(name)
    used = {row[0] for kind in ("near_tests", "far_tests") for row in certificate[kind]}
    for arm in sorted(used):
        event = next(e for e in events if e.get("arm") == arm and e["round"] == 2)
        old = event["values"]
        event["values"] = [value + 0.2 for value in old]
        assert refused(certificate, events), arm
        event["values"] = old


@pytest.mark.parametrize("name", NAMES)
def test_every_test_is_needed(name: str) -> None:
    """In the certificate alone, and in certificate and log alike: then an item or a pair of groups is not covered."""
    for kind in ("near", "far"):
        for i in range(len(fresh(name)[0][f"{kind}_tests"])):
            certificate, events = fresh(name)
            del certificate[f"{kind}_tests"][i]
            assert refused(certificate, events)
            doubled = name == "known, linkage" and kind == "near" and i in (2, 3, 5)  # of a ball: an edge says more
            del certificate["epochs"][1][kind][i]
            next(e for e in events if e.get("epoch") == 1)[kind].pop(i)
            if not doubled:
                assert refused(certificate, events), (kind, i)


def test_a_freeze_that_comes_later_is_refused() -> None:
    """Results that were there before the freeze do not count for its tests."""
    for name in NAMES:
        certificate, events = fresh(name)
        freeze = next(i for i, e in enumerate(events) if e.get("epoch") == 1)
        first = next(i for i, e in enumerate(events) if e.get("round") == 2)
        moved = [*events[:freeze], *events[freeze + 1 : first + 1], events[freeze], *events[first + 1 :]]
        certificate["epochs"][1]["frozen_at"] += first - freeze
        assert refused(certificate, moved)


def test_an_epoch_that_is_left_out_is_refused() -> None:
    """The second epoch has a higher level than the first: to hide the first would lower it."""
    for name in NAMES:
        certificate, events = fresh(name)
        del certificate["epochs"][0]
        certificate["epoch"] = 0
        certificate["epochs"][0]["number"] = 0
        assert refused(certificate, events)
        certificate, events = fresh(name)
        certificate["epoch"] = 0
        assert refused(certificate, events)


def both(certificate: Certificate, events: Events, **changes: Any) -> None:
    """Change what the second freeze says, in the log and in the certificate."""
    certificate["epochs"][1].update(changes)
    next(e for e in events if e.get("epoch") == 1).update(changes)


def test_another_delta_is_refused() -> None:
    """With all that follows from it, where the evidence does not reach the new levels."""
    certificate, events = fresh("known, each")
    delta = 1e-6
    certificate |= {"delta": delta, "log_inverse_delta": -math.log(delta)}
    certificate["claim"] = certificate["claim"].replace("0.1", "1e-06")
    for j, epoch in enumerate(certificate["epochs"]):
        epoch["level"] = math.log(1 / (0.9 * delta * 0.8 * 0.2**j))
        next(e for e in events if e.get("epoch") == j)["level"] = epoch["level"]
    verdict = coterie.verify(certificate, events)
    assert not verdict
    assert all("is not met" in problem for problem in verdict.problems)


def test_another_resolution_is_refused() -> None:
    """Smaller η and larger ε, said everywhere: the frozen tests then are of other bounds."""
    for field, factor in (("eta", 0.9), ("epsilon", 1.1)):
        certificate, events = fresh("known, each")
        bounds = [factor * one for one in certificate[field]]
        certificate[field] = bounds
        both(certificate, events, **{field: bounds})
        question = coterie.Resolution(certificate["epsilon"], certificate["eta"])
        certificate["claim"] = f"{question.claim}; wrong with probability at most 0.1"
        assert refused(certificate, events)


def test_a_radial_test_needs_noise_that_is_known_exactly() -> None:
    certificate, events = fresh("exactly, distance")
    certificate |= {"noise": 0.3, "assumes": plain_resolution.KNOWN}
    verdict = coterie.verify(certificate, events)
    assert any("exactly known" in problem for problem in verdict.problems)


@pytest.mark.parametrize(
    ("name", "kind", "change"),
    [
        ("known, each", "near", {"rates": [1.0, 1.0, 1.0]}),
        ("known, each", "near", {"rates": [1.0, 1.0, 1.0, 0.0]}),
        ("known, each", "near", {"rates": [1.0, 1.0, 1.0, -1.0]}),
        ("known, each", "near", {"rates": 1.0}),
        ("known, each", "near", {}),
        ("known, each", "near", {"rates": [1.0] * 4, "more": 1}),
        ("known, each", "far", {"direction": [0.0, 0.0], "rate": 1.0}),
        ("known, each", "far", {"direction": [1.0], "rate": 1.0}),
        ("known, each", "far", {"direction": [1.0, 0.0], "rate": 0.0}),
        ("known, each", "far", {"direction": [1.0, "x"], "rate": 1.0}),
        ("known, distance, any two", "near", {"from": [0.0], "spread": 0.1}),
        ("known, distance, any two", "near", {"from": [0.0, 0.0], "spread": 0.0}),
        ("known, distance, any two", "near", {"from": [0.0, 0.0]}),
        ("exactly, distance", "near", {"kappas": [0.0, 1.0], "weights": [0.5, 0.5]}),
        ("exactly, distance", "near", {"kappas": [0.0, 0.5], "weights": [0.6, 0.5]}),
        ("exactly, distance", "near", {"kappas": [0.0, 0.5], "weights": [1.1, -0.5]}),
        ("exactly, distance", "near", {"kappas": [0.0, 0.5], "weights": [0.5]}),
        ("exactly, distance", "near", {"kappas": [], "weights": []}),
        ("counts, each", "near", {"item": [1.0] * 4, "reference": [1.0] * 4, "multipliers": [[-1.0] * 3] * 4}),
        ("counts, each", "near", {"item": [1.0] * 4, "reference": [1.0] * 4, "multipliers": [[1.0] * 2] * 4}),
        ("counts, each", "near", {"item": [1e5] * 4, "reference": [1.0] * 4, "multipliers": [[1.0] * 3] * 4}),
        ("counts, each", "far", {"item": [1.0] * 4, "reference": [1.0] * 2, "multipliers": [[1.0] * 2] * 3}),
    ],
)  # fmt: skip
def test_parameters_that_are_none_are_refused(name: str, kind: str, change: dict[str, Any]) -> None:
    certificate, events = fresh(name)
    for freeze in (certificate["epochs"][1], next(e for e in events if e.get("epoch") == 1)):
        freeze[kind][0][4] = change
    verdict = coterie.verify(certificate, events)
    first = certificate[f"{kind}_tests"][0]
    assert any(f"the {kind} test of arms {first[0]} and {first[1]}:" in problem for problem in verdict.problems)


def test_linkage_needs_trees_and_balls() -> None:
    def problems(**changes: Any) -> list[str]:
        certificate, events = fresh("known, linkage")
        both(certificate, events, **changes)
        if "height" in changes:
            certificate["height"] = changes["height"]
            certificate["claim"] = certificate["claim"].replace("h = 1.1;", f"h = {changes['height']:g};")
        return coterie.verify(certificate, events).problems

    balls = fresh("known, linkage")[0]["epochs"][1]["balls"]
    assert problems() == []
    assert any("in no ball" in one for one in problems(balls=balls[:2]))
    assert any("in no ball" in one for one in problems(balls=[[1, 1.2, [0, 1]], *balls[1:]]))
    assert any("is within 0.5 of" in one for one in problems(balls=[[1, 0.5, [0, 1, 2]], *balls[1:]]))
    assert any("more than" in one for one in problems(balls=[[1, 1.5, [0, 1, 2]], *balls[1:]]))
    assert any("another group" in one for one in problems(balls=[[1, 1.2, [0, 1, 2, 3]], *balls[1:]]))
    assert any("not joined" in one for one in problems(height=1.0))
    assert any("more than" in one for one in problems(height=1.15))


def test_the_bound_on_the_variance_needs_its_first_results() -> None:
    certificate, events = fresh("gaussian scalar, each")
    for event in events[:40]:
        if event["arm"] == 3:
            event["asked"] = False
    verdict = coterie.verify(certificate, events)
    assert verdict.problems == [
        "arm 3 has 5 results that were asked for before the first freeze: the bound on the variance needs "
        "10 of every arm"
    ]


@pytest.mark.parametrize("name", ["bounded, each", "counts, each"])
def test_a_result_that_contradicts_the_noise_is_named(name: str) -> None:
    certificate, events = fresh(name)
    events[3]["values"] = [99.5, 0.0]
    verdict = coterie.verify(certificate, events)
    assert [problem for problem in verdict.problems if problem.startswith("result 4 of the log, of arm 3:")]


@pytest.mark.parametrize(
    "noise", [{"family": "any"}, {"family": "symmetric"}, {"family": "at-most", "covariance": 1.0}]
)
def test_noise_without_a_proof_of_nearness_is_refused(noise: dict[str, Any]) -> None:
    certificate, events = fresh("known, each")
    verdict = coterie.verify(certificate | {"noise": noise}, events)
    assert verdict.problems == [f"under the noise {noise['family']!r} no results show that items are near each other"]


@pytest.mark.parametrize("bad", [None, 7, "x", [], {}, [[]], [{"event": "round", "round": 1}], [{"event": "freeze"}]])
def test_strange_logs_are_verdicts(bad: Any) -> None:
    certificate, events = fresh("known, each")
    if bad is None or isinstance(bad, int | str | dict):
        assert refused(certificate, [bad, *events])
    else:
        assert refused(certificate, bad)
