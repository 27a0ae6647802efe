"""Certificates of a noise that is not known: they hold, and every changed number, bet or result is noticed.

Oracle: `plain_bets`, the formulas in plain loops.
"""

from __future__ import annotations

import copy
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import plain_bets as plain
import pytest
from typer.testing import CliRunner

import coterie
from coterie.certificate import read_log, write_log
from coterie.certificate.arithmetic.bets import bets_of
from coterie.certificate.arithmetic.factors import betted
from coterie.certificate.freezes import LogSubject
from coterie.certificate.reading import read_events
from coterie.cli import app
from coterie.problem.families import Unknown, noise_of

Certificate = dict[str, Any]
Events = list[dict[str, Any]]


@cache
def _made(name: str) -> str:
    return json.dumps(plain.made(name))


def made(name: str) -> tuple[Certificate, Events]:
    certificate, events = json.loads(_made(name))
    return certificate, events


def reasons(certificate: Any, events: Any) -> str:
    return " | ".join(coterie.verify(certificate, events).problems)


def rounds_of(events: Events) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "round"]


# What holds.


@pytest.mark.parametrize("name", plain.NAMES)
def test_certificates_of_every_family_hold(name: str, tmp_path: Path) -> None:
    certificate, events = made(name)
    before = json.dumps([certificate, events])
    verdict = coterie.verify(certificate, events)
    assert verdict.problems == []
    assert verdict.warnings == []
    assert (
        verdict.tests == 9 * 2 + 4 * 2 + 2 * 2
    )  # cores for every arm, groups for 4, pairs of the two cores of two arms
    assert json.dumps([certificate, events]) == before
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    write_log(tmp_path / "log.csv", events, plain.DIM)
    assert read_log(tmp_path / "log.csv") == events  # every number of every bet
    assert coterie.verify(tmp_path / "c.json", tmp_path / "log.csv")


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("name", plain.NAMES)
def test_evidence_matches_oracle_for_any_bets(name: str, wild: bool) -> None:
    """All tests of both epochs after some round, with good bets and with bets that are anything at all."""
    events = plain.log_of(name, 11, 5, wild)
    oracle = plain.Plain(plain.NOISES[name], events)
    noise = noise_of(plain.NOISES[name], plain.DIM)
    assert isinstance(noise, Unknown)
    log = read_events(events, LogSubject("groups", 9, plain.DIM, 3), len(oracle.results))
    record = bets_of(log, noise, 3)
    rng = np.random.default_rng(3)
    seen = []
    for epoch, freeze in enumerate(log.freezes):
        usable = oracle.usable_rounds(epoch)
        rounds = [one for one in record.rounds if one.number in usable]
        groups = [np.flatnonzero(freeze.labels == k).tolist() for k in range(3)]
        for pools, pool in (("group", groups), ("core", freeze.cores), ("arm", [[m] for m in range(9)])):
            label = freeze.labels if pools == "arm" else np.arange(3)
            asked = [(m, k) for m in range(9) for k in range(len(pool)) if freeze.labels[m] != label[k]]
            arms, others = (np.array(side) for side in zip(*asked, strict=True))
            last, half = rng.choice(usable, arms.size), rng.integers(0, 2, arms.size) == 1
            with np.errstate(all="ignore"):
                found = betted(record, freeze, rounds, pools, arms, others, last, half)
            wanted = [
                oracle.evidence(epoch, m, list(pool[k]), int(r), bool(h))
                for (m, k), r, h in zip(asked, last, half, strict=True)
            ]
            assert found.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
            seen += wanted
    assert max(seen) > (0.1 if wild else 1.0)
    assert min(seen) < 0.0 or not wild


def test_a_certificate_of_a_known_noise_may_say_what_it_assumes(case: Any) -> None:
    certificate, events = case("overlapping, noise")
    sentence = noise_of(certificate["noise"], certificate["dim"]).assumption
    assert "assumes" not in certificate or certificate["assumes"] == sentence
    assert coterie.verify(certificate | {"assumes": sentence}, events)
    assert "assumes must say what the noise 'known' assumes" in reasons(
        certificate | {"assumes": "all is well"}, events
    )


def test_the_command_says_what_is_assumed(tmp_path: Path) -> None:
    for name in ("any", "counts"):
        certificate, events = made(name)
        files = tmp_path / "c.json", tmp_path / "log.csv"
        files[0].write_text(json.dumps(certificate))
        write_log(files[1], events, plain.DIM)
        answer = CliRunner().invoke(app, ["verify", *map(str, files)])
        assert answer.exit_code == 0, answer.output
        first, claimed, second = answer.stdout.splitlines()
        assert first.startswith("valid: 9 items in 3 groups after ")
        assert claimed.startswith("what is claimed: ")
        words = {"any": "noise: any", "counts": "noise: counts (trials 5)"}[name]
        assert second == f"{words}; what is assumed: {certificate['assumes']}"


# What is noticed.


def moved(value: Any) -> Any:
    """Another number of the same kind."""
    return value + 1 if isinstance(value, int) else value * 1.01 + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", plain.NAMES)
def test_every_number_of_the_certificate_counts(name: str) -> None:
    certificate, events = made(name)
    for key in ("n_arms", "n_clusters", "dim", "delta", "log_inverse_delta", "alpha", "equal_pairs"):
        assert not coterie.verify(certificate | {key: moved(certificate[key])}, events), key
    assert not coterie.verify(certificate | {"t": certificate["t"] - 20}, events)
    for kind in ("group_tests", "core_tests", "pair_tests"):
        for i, row in enumerate(certificate["epoch"][kind]):
            for j in range(4):
                other = copy.deepcopy(certificate)
                # a round later the evidence may be the same, if it gives nothing to the test; before, it was not met
                other["epoch"][kind][i][j] = row[j] - 1 if j == 3 else moved(row[j])
                assert not coterie.verify(other, events), (kind, row, j)
            other = copy.deepcopy(certificate)
            del other["epoch"][kind][i]
            assert "not shown to differ" in reasons(other, events)
    for key in ("level", "share", "frozen_at"):
        other = copy.deepcopy(certificate)
        other["epochs"][1][key] = moved(other["epochs"][1][key])
        assert not coterie.verify(other, events), key


@pytest.mark.slow
@pytest.mark.parametrize("name", plain.NAMES)
def test_changed_results_and_bets_are_noticed_where_they_count(name: str) -> None:
    """Numbers of the log changed at random: refused exactly if the oracle gives other evidence for a stated test."""
    certificate, events = made(name)
    rng = np.random.default_rng(8)
    places = [
        (i, key, j)
        for i, event in enumerate(events)
        for key in ("values", "from", "numbers")
        for j in range(len(event[key] if key == "values" and key in event else event.get("bet", {}).get(key, ())))
    ]
    noticed = 0
    changes = 10 if name.startswith("gaussian") else 24  # the oracle is slow there
    for place in rng.choice(len(places), changes, replace=False).tolist():
        i, key, j = places[place]
        other = copy.deepcopy(events)
        numbers = other[i]["values"] if key == "values" else other[i]["bet"][key]
        counted = key == "values" and name.startswith("counts")
        numbers[j] = float(numbers[j] == 0) if counted else numbers[j] * 0.9 + (0.2 if numbers[j] <= 0 else 0.0)
        same = unchanged(certificate, plain.Plain(plain.NOISES[name], other))
        problems = coterie.verify(certificate, other).problems
        # Homogeneity is of all results, whether tests use them or not.
        assert all(one.startswith("homogeneity of group") for one in problems) == same, (places[place], problems)
        noticed += not same
    assert noticed >= changes // 4


def unchanged(certificate: Certificate, oracle: plain.Plain) -> bool:
    """Whether every stated evidence is what the oracle finds."""
    labels, cores = certificate["labels"], certificate["epochs"][1]["cores"]
    in_core = [arm for core in cores for arm in core]
    groups = [[m for m in range(9) if labels[m] == k] for k in range(3)]
    for kind, pools in (("group_tests", groups), ("core_tests", cores), ("pair_tests", [[m] for m in range(9)])):
        for arm, other, stated, last in certificate["epoch"][kind]:
            half = kind == "pair_tests" or (kind == "core_tests" and arm not in in_core)
            if not math.isclose(oracle.evidence(1, arm, pools[other], last, half), stated, rel_tol=1e-6, abs_tol=1e-6):
                return False
    return True


def test_what_is_assumed_must_be_what_the_family_assumes() -> None:
    certificate, events = made("any")
    assert "assumes must say" in reasons(certificate | {"assumes": certificate["assumes"] + " "}, events)
    assert "assumes is missing" in reasons({k: v for k, v in certificate.items() if k != "assumes"}, events)
    for noise, message in (
        ({"family": "symmetric"}, "assumes must say what the noise 'symmetric' assumes"),
        ({"family": "none"}, "the family of a noise must be one of"),
        ({"family": "counts", "trials": 0}, "trials must be at least 1"),
        ({"family": "any", "shape": "full"}, "the shape of any noise must be True or False, got 'full'"),
        ({"family": "any", "trials": 3}, "a noise of the family 'any' takes only shape, got 'trials'"),
        ({"family": "any", "shape": True}, "freeze 0 has no bet"),
        (None, "alpha must be 0.2"),
    ):
        changed = certificate | {"noise": noise}
        if noise is None:
            del changed["assumes"], changed["log_format"]
        assert message in reasons(changed, events)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pair_level", 5.0, "pair_level must be null"),
        ("prefix_room", 64, "prefix_room must be null"),
        ("homogeneity", None, "homogeneity must be an object, got None"),
        ("alarm", {"arms": [0, 1, 2, 3]}, "alarm must be null"),
        ("by", "pairs", 'by must be "epoch"'),
        ("alpha", 0.2, "alpha must be 0.0"),
    ],
)
def test_nothing_rests_on_pairs(field: str, value: Any, message: str) -> None:
    certificate, events = made("symmetric")
    assert message in reasons(certificate | {field: value}, events)
    assert coterie.verify({key: one for key, one in certificate.items() if key != "alarm"}, events)
    certificate["epoch"]["by_pairs"] = [[0, 1, 50.0, 3, 3]]
    assert "there are no pairs from the start" in reasons(certificate, events)


def test_the_side_of_the_arm_is_fixed_with_the_freeze() -> None:
    """The exchangeable bet of p against q is another one than that of q against p: one must not have the choice."""
    certificate, events = made("any")
    row = certificate["epoch"]["pair_tests"][0]
    row[0], row[1] = row[1], row[0]
    assert "the first arm must be the one whose group has the larger number" in reasons(certificate, events)
    certificate, events = made("any")
    certificate["epoch"]["core_tests"][0][1] = 0
    assert "core_tests: arm 0 is tested against its own group, 0" in reasons(certificate, events)


# Bets that are not there, or not in their shape.


@pytest.mark.parametrize("name", plain.NAMES)
def test_a_bet_must_come_with_its_round(name: str) -> None:
    certificate, events = made(name)
    first = next(i for i, event in enumerate(events) if event["event"] == "round")

    def with_bet(bet: Any) -> str:
        changed = copy.deepcopy(events)
        changed[first]["bet"] = bet
        return reasons(certificate, changed)

    good = events[first]["bet"]
    assert with_bet(None).startswith("round 1 has no bet: with the noise ")
    without: tuple[Any, ...] = ([], {}, 3, {"from": [0.0, 0.0]}, {"numbers": good["numbers"]})
    for bad in without:
        assert 'the bet of round 1 must be an object with "from" and "numbers"' in with_bet(bad)
    n = len(good["numbers"])
    for change, message in (
        ({"numbers": good["numbers"][:-1]}, f"the bet of round 1: numbers must be {n} numbers, got {n - 1}"),
        ({"numbers": [*good["numbers"], 0.5]}, f"the bet of round 1: numbers must be {n} numbers, got {n + 1}"),
        ({"numbers": [[x] for x in good["numbers"]]}, "the bet of round 1: numbers must be"),
        ({"numbers": ["x", *good["numbers"][1:]]}, "the bet of round 1: numbers must"),
        ({"numbers": [math.nan, *good["numbers"][1:]]}, "the bet of round 1: numbers must be finite"),
        ({"numbers": [True, *good["numbers"][1:]]}, "the bet of round 1: numbers must"),
        ({"from": [0.0]}, "the bet of round 1: from must be 2 numbers, got 1"),
        ({"from": [math.inf, 0.0]}, "the bet of round 1: from must be finite"),
        ({"from": "00"}, "the bet of round 1: from must be a list"),
    ):
        assert message in with_bet(good | change), change
    later = copy.deepcopy(events)
    later.insert(first + 2, later.pop(first))  # after the first of its results
    assert "a result of round 1 while the last round is 0" in reasons(certificate, later)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("any", 0, -0.1, "w must be between 0 and 1, got -0.1"),
        ("any", 0, 1.1, "w must be between 0 and 1, got 1.1"),
        ("any", 1, 2.5, "J must be a whole number from 1 to 64, got 2.5"),
        ("any", 1, 65.0, "J must be a whole number from 1 to 64, got 65.0"),
        ("any", 12, 0.0, "f[0, 1] must be above 0 and at most 1, got 0.0"),
        ("any", 13, 1.5, "f[0, 2] must be above 0 and at most 1, got 1.5"),
        ("any", 21, 0.0, "Δ[0, 1] must be above 0, got 0.0"),
        ("gaussian", 9, 2.0, "f[1, 0] must be above 0"),
        ("bounded", 16, -1.0, "Δ²[0, 1] must be at least 0, got -1.0"),
        ("symmetric", 15, 0.0, "s²[0] must be above 0, got 0.0"),
    ],
)
def test_numbers_of_a_bet_have_their_range(name: str, place: int, value: float, message: str) -> None:
    certificate, events = made(name)
    rounds_of(events)[2]["bet"]["numbers"][place] = value
    assert f"the bet of round 3: {message}" in reasons(certificate, events)


def test_numbers_about_a_group_and_itself_are_not_used() -> None:
    certificate, events = made("any")
    for event in rounds_of(events):
        for place in (11, 15, 19, 20, 24, 28):
            event["bet"]["numbers"][place] = 0.0
    assert coterie.verify(certificate, events)


def test_a_gaussian_freeze_has_a_bet() -> None:
    certificate, events = made("gaussian")
    freeze = next(event for event in events if event["event"] == "freeze")
    good = freeze.pop("bet")
    assert reasons(certificate, events).startswith("freeze 0 has no bet")
    freeze["bet"] = good | {"numbers": [*good["numbers"][:7], -1.0, *good["numbers"][8:]]}
    assert "the bet of freeze 0: Δ[0, 1] must be above 0, got -1.0" in reasons(certificate, events)
    for gone in range(len(events)):
        assert coterie.verify(certificate, events[:gone] + events[gone + 1 :]).valid is False


def test_a_missing_freeze_is_a_verdict_and_no_traceback() -> None:
    certificate, events = made("gaussian")
    certificate["epoch"] |= {"rounds": [], "group_tests": [], "core_tests": [], "pair_tests": []}
    shorter = [e for e in events if e["event"] == "result" and e["round"] == 0]
    certificate["t"] = len(shorter)
    for epoch in certificate["epochs"]:
        epoch["frozen_at"] = 3
    assert "the certificate has 2 epochs, the log 0 freezes" in reasons(certificate, shorter)


# Results that contradict what was stated.


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("counts", 6.0, "a count of successes must be a whole number from 0 to 5, got 6"),
        ("counts", 0.5, "a count of successes must be a whole number from 0 to 5, got 0.5"),
        ("counts, single", -1.0, "a count of successes must be a whole number from 0 to 1, got -1"),
        ("bounded", 4.5, "a number must lie between -1 and 4, as was stated, got 4.5"),
        ("any", 1e101, "results must be smaller than 1e+100"),
    ],
)
def test_results_that_contradict_the_statement_are_named(name: str, value: float, message: str) -> None:
    certificate, events = made(name)
    results = [event for event in events if event["event"] == "result"]
    results[6]["values"][0] = value
    said = reasons(certificate, events)
    assert said.startswith("result 7 of the log, [")
    assert "of arm 6, contradicts what the certificate assumes: " in said
    assert message in said


def test_results_without_any_noise_prove_nothing() -> None:
    """All results equal: R = 0, and the bracket over y would be large; but equal results do not differ."""
    certificate, events = made("gaussian")
    for event in events:
        if event["event"] == "result":
            event["values"] = [1.0, 2.0]
        if event["event"] == "round":  # residuals of exactly 0, and t = 0
            origin = event["bet"]["from"]
            event["bet"]["numbers"][:6] = [1.0 - origin[0], 2.0 - origin[1]] * 3
    problems = coterie.verify(certificate, events).problems
    assert any("the log gives -0.693147181" in problem for problem in problems)
