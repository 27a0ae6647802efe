"""Certificates of groups up to a resolution and of single linkage: plain ones hold, and so do those of real runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import plain_resolution
import pytest
from single_tests import Single

import coterie
from coterie.certificate import read_certificate, read_log, write_log
from coterie.evidence.near_far import family_for
from coterie.evidence.near_far.gaussian import upper_variances
from coterie.problem.families import noise_from_json

Pair = tuple[dict[str, Any], list[dict[str, Any]]]


@cache
def _text(name: str) -> str:
    return json.dumps(plain_resolution.made(plain_resolution.CASES[name]()))


def fresh(name: str) -> Pair:
    certificate, events = json.loads(_text(name))
    return certificate, events


@pytest.mark.parametrize("name", plain_resolution.CASES)
def test_a_plain_certificate_holds(name: str) -> None:
    certificate, events = fresh(name)
    verdict = coterie.verify(certificate, events)
    assert verdict.problems == []
    assert verdict.tests == len(certificate["near_tests"]) + len(certificate["far_tests"])


def test_files_keep_everything(tmp_path: Path) -> None:
    for name in ("gaussian scalar, each", "known, linkage"):
        certificate, events = fresh(name)
        (tmp_path / "certificate.json").write_text(json.dumps(certificate))
        write_log(tmp_path / "log.csv", events, certificate["dim"])
        assert read_log(tmp_path / "log.csv") == events
        assert read_certificate(tmp_path / "certificate.json") == certificate
        assert coterie.verify(tmp_path / "certificate.json", tmp_path / "log.csv")


def test_results_after_the_last_one_are_left_aside() -> None:
    certificate, events = fresh("known, each")
    late = {"event": "result", "arm": 0, "round": 2, "values": [1e9, 0.0]}
    assert coterie.verify(certificate, [*events, late])


@pytest.mark.parametrize(
    "name", ["known, each", "known, distance", "exactly, distance", "bounded, distance", "counts, each"]
)
def test_evidence_matches_oracle(name: str) -> None:
    """The engine's tests, the verifier's and the plain formulas are three ways to the same numbers."""
    certificate, events = fresh(name)
    noise = noise_from_json(certificate["noise"], 2)
    bounds = (certificate["epsilon"], certificate["eta"])
    family = family_for(noise, coterie.Resolution(*bounds, norm=certificate["norm"]), 2)
    assert family is not None
    scale = np.array(certificate["eta"])
    stacks = [
        [np.array(e["values"]) / scale for e in events if e.get("arm") == arm and e["round"] == 2] for arm in range(7)
    ]
    frozen = certificate["epochs"][1]
    for kind, make in (("near", Single(family).near_test), ("far", Single(family).far_test)):
        for (item, reference, ratio, bound, parameters), row in zip(
            frozen[kind], certificate[f"{kind}_tests"], strict=True
        ):
            test = make(np.array(bound), ratio, parameters)
            for s in range(row[3]):
                test.add(stacks[item][s], np.array(stacks[reference][s * ratio : (s + 1) * ratio]))
            assert test.evidence == pytest.approx(row[2], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("shape", ["scalar", "diagonal", "full"])
def test_bounds_of_variances_keep_with_the_units(shape: str) -> None:
    """One standard deviation for all numbers is one in the user's units, and not in those of the tests."""
    results = np.random.default_rng(0).normal(size=(5, 9, 3))
    scale = np.array([0.1, 1.0, 30.0])
    bounds = upper_variances(results, shape, 0.1, np.ones(3))
    assert upper_variances(results / scale, shape, 0.1, scale) * scale**2 == pytest.approx(bounds)


# Real runs.

MEANS = np.array([[0.0, 0.0], [0.3, 0.0], [0.1, 0.2], [3.0, 0.0], [3.2, 0.1], [0.0, 3.0], [1.4, 0.0]])
Draw = Callable[[np.random.Generator, Any], Any]


def gaussian(rng: np.random.Generator, mean: Any) -> Any:
    return mean + 0.5 * rng.normal(size=2)


def uniform(rng: np.random.Generator, mean: Any) -> Any:
    return mean + rng.uniform(-0.5, 0.5, size=2)


def successes(rng: np.random.Generator, mean: Any) -> Any:
    return rng.binomial(20, (4 * mean + 3) / 20)


def finished(
    noise: Any, draw: Draw, question: dict[str, Any], batch: int, seed: int, far: float = 0.0
) -> coterie.Session:
    """A session to its end: results come back in another order, and some that nobody asked for are told too."""
    rng = np.random.default_rng(seed)
    session = coterie.Session(len(MEANS), dim=2, delta=0.1, noise=noise, **question)
    for turn in range(100_000):
        if session.done:
            return session
        session.ask(batch)
        for ticket, arm in rng.permutation(session.pending):
            session.tell(int(arm), draw(rng, MEANS[int(arm)]) + far, ticket=int(ticket))
        if turn % 7 == 3 and not session.done:
            session.tell(turn % len(MEANS), draw(rng, MEANS[turn % len(MEANS)]) + far)
    raise AssertionError("no end")


RESOLUTIONS: dict[str, tuple[Any, Draw, dict[str, Any]]] = {
    "each": (0.5, gaussian, {"resolution": (0.3, 1.2)}),
    "own units": (0.5, gaussian, {"resolution": ((0.3, 0.4), (1.2, 1.6))}),
    "any two": (0.5, gaussian, {"resolution": coterie.Resolution(0.3, 1.2, claim="any-two")}),
    "distance": (0.5, gaussian, {"resolution": coterie.Resolution(0.3, 1.2, norm="distance")}),
    "scalar": (coterie.Gaussian("scalar"), gaussian, {"resolution": ((0.3, 0.6), (1.2, 2.4))}),
    "full": (coterie.Gaussian("full"), gaussian, {"resolution": coterie.Resolution(0.3, 1.2, norm="distance")}),
    "bounded": (coterie.Bounded(-1, 4), uniform, {"resolution": (0.3, 1.2)}),
    "counts": (coterie.Counts(20), successes, {"resolution": (1.2, 5.0)}),
    "linkage": (0.5, gaussian, {"n_clusters": 3, "groups": "linkage"}),
    "linkage, bounded": (coterie.Bounded(-1, 4), uniform, {"n_clusters": 4, "groups": "linkage"}),
}


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("name", RESOLUTIONS)
def test_the_certificate_of_a_run_holds(name: str, batch: int) -> None:
    session = finished(*RESOLUTIONS[name], batch=batch, seed=batch)
    assert session.certificate is not None
    verdict = coterie.verify(*json.loads(json.dumps([session.certificate, session.events])))
    assert verdict.problems == []
    assert verdict.tests > 0
    assert coterie.same_partition(session.certificate["labels"], session.labels)


def test_the_certificate_of_a_run_far_from_zero_holds() -> None:
    session = finished(0.5, gaussian, {"resolution": (0.3, 1.2)}, batch=1, seed=2, far=1e9)
    assert coterie.verify(session.certificate, session.events).problems == []


def test_a_certificate_says_in_words_what_it_claims() -> None:
    certificate = finished(*RESOLUTIONS["each"], batch=1, seed=1).certificate
    assert certificate is not None
    assert certificate["claim"] == (
        "every item of a group is within 1.2 of its reference, any two references are more than 0.3 apart; wrong with "
        "probability at most 0.1"
    )
    assert certificate["assumes"] == plain_resolution.KNOWN
