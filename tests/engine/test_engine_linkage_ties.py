"""Ties, units and covers of the questions that freeze candidates: what is called proven is what the verifier accepts.

Estimated means that tie exactly (ratings, rounded readings), and results in any unit, from 1e-12 to 1e12 of the usual.
Seeds are fixed. With another seed a comparison with δ fails with probability 1e-6 if its true rate is δ.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie
from coterie.certificate.freezes import LogSubject, frozen_groups_of
from coterie.certificate.near_claim import gaps_in_cover
from coterie.methods.resolution.epoch import Epoch
from coterie.methods.resolution.linkage import single_linkage, spanning_tree
from coterie.methods.resolution.method import asked_for
from coterie.methods.resolution.run import FreezingRun
from coterie.problem.settings import Settings

Draw = Callable[[np.random.Generator, int], Any]
UNITS = [1e-12, 3e-9, 1e-6, 1.0, 7e5, 1e12]


def run_of(draw: Draw, seed: Any, n_arms: int, n_clusters: int | None, delta: float, noise: Any, **asked: Any) -> Any:
    """A finished session, and the arms that it asked for."""
    dim, most = asked.pop("dim", 1), asked.pop("most", 30_000)
    session = coterie.Session(n_arms, n_clusters, dim, delta, noise=noise, **asked)
    rng, asks = np.random.default_rng(seed), []
    while not session.done and session.t < most:
        arm = session.ask()
        assert arm is not None
        asks.append(arm)
        session.tell(arm, draw(rng, arm))
    return session, asks


def holds(session: Any) -> bool:
    return bool(coterie.verify(session.certificate, session.events))


# The shortest tree.


def lengths(points: Any) -> Any:
    return np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))


@given(
    st.integers(2, 12).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=n, max_size=n)),
    st.sampled_from([0.0, 1e-300, 1e-12, 1e-9, 1.0, 1e12]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_spanning_tree_has_every_item_and_the_least_length(points: list[tuple[int, int]], unit: float) -> None:
    apart = unit * lengths(np.array(points, dtype=float))
    edges = spanning_tree(apart)
    assert len({tuple(edge) for edge in edges.tolist()}) == len(points) - 1
    assert (edges[:, 0] < edges[:, 1]).all()
    joined = list(range(len(points)))
    least = 0.0
    for i, j in sorted(itertools.combinations(range(len(points)), 2), key=lambda pair: float(apart[pair])):
        if joined[i] != joined[j]:
            joined = [joined[i] if one == joined[j] else one for one in joined]
            least += float(apart[i, j])
    assert float(apart[edges[:, 0], edges[:, 1]].sum()) == pytest.approx(least, rel=1e-12)
    for k in range(1, len(points)):
        labels, kept = single_linkage(apart, k)
        assert len(kept) == len(points) - k
        assert set(labels.tolist()) == set(range(k))
        assert (labels[kept[:, 0]] == labels[kept[:, 1]]).all()
        longest = float(apart[kept[:, 0], kept[:, 1]].max(initial=0.0))
        assert k == 1 or longest <= apart[labels[:, None] != labels].min()


def test_of_ways_of_the_same_length_the_lowest_item_is_taken() -> None:
    assert spanning_tree(np.zeros((4, 4))).tolist() == [[0, 1], [0, 2], [0, 3]]


# The three runs that were called proven without their near tests.


def ratings(rng: np.random.Generator, arm: int) -> float:
    """Always 0; 1 with probability 0.2; about 0.8; about 0.9."""
    return [0.0, float(rng.random() < 0.2), 0.8 + rng.uniform(-0.05, 0.05), 0.9 + rng.uniform(-0.05, 0.05)][arm]


def rounded(rng: np.random.Generator, arm: int) -> float:
    return float(np.round(rng.normal([0.0, 0.2, 3.0, 3.2, 7.0, 7.2][arm], 0.5)))


def tiny(rng: np.random.Generator, arm: int) -> float:
    return float(1e-9 * rng.normal([0.0, 1.0, 4.0, 5.0, 10.0][arm]))


TIES: dict[str, tuple[Draw, int, Any, list[int]]] = {
    "ratings": (ratings, 4, coterie.Bounded(0, 1), [0, 1, 2, 2]),
    "rounded to 1": (rounded, 6, 0.8, [0, 0, 1, 1, 2, 2]),
    "in units of 1e-9": (tiny, 5, 1e-9, [0, 0, 1, 1, 2]),
}


def ties(case: str, delta: float, seeds: range) -> int:
    """How many runs were wrong; every certificate is accepted."""
    draw, n_arms, noise, truth = TIES[case]
    wrong = 0
    for seed in seeds:
        session, _ = run_of(draw, seed, n_arms, 3, delta, noise, groups="linkage")
        assert session.done
        assert holds(session)
        wrong += list(session.labels) != truth
    return wrong


@pytest.mark.parametrize("case", TIES)
def test_linkage_of_ties_and_tiny_units_is_right_and_accepted(case: str) -> None:
    assert ties(case, 0.001, range(2 if case == "ratings" else 12)) == 0  # with other seeds wrong with 0.012 at most


@pytest.mark.guarantee
@pytest.mark.parametrize("case", TIES)
def test_linkage_of_ties_and_tiny_units_errs_within_delta(case: str) -> None:
    runs = 30
    of = Guarantee("bounded" if case == "ratings" else "known", "single linkage", case=case)
    assert_rate_at_most(0.1, ties(case, 0.1, range(100, 100 + runs)), runs, of)


# Units.

MEANS = np.array([[0.0, 0.0], [1.5, 0.5], [6.0, 0.0], [6.5, 1.0], [0.0, 9.0]])
LINKED = [0, 0, 1, 1, 2]
ASKED: dict[str, Any] = {
    "linkage": lambda unit: {"groups": "linkage"},
    "each": lambda unit: {"resolution": coterie.Resolution(1.0 * unit, 3.0 * unit)},
    "distance": lambda unit: {"resolution": coterie.Resolution(1.0 * unit, 3.0 * unit, norm="distance")},
    "any two": lambda unit: {"resolution": coterie.Resolution(1.0 * unit, 3.0 * unit, claim="any-two")},
}
NOISES: dict[str, Any] = {
    "known": lambda unit: 1.0 * unit,
    "exactly": lambda unit: coterie.Exactly(1.0 * unit),
    "Gaussian": lambda unit: coterie.Gaussian(),
    "bounded": lambda unit: coterie.Bounded(-8.0 * unit, 16.0 * unit),
}


def in_units(noise: str, asked: str, unit: float) -> Any:
    def draw(rng: np.random.Generator, arm: int) -> Any:
        return (MEANS[arm] + np.clip(rng.normal(size=2), -6.0, 6.0)) * unit

    clusters = 3 if asked == "linkage" else None
    return run_of(draw, 5, 5, clusters, 0.01, NOISES[noise](unit), dim=2, most=60_000, **ASKED[asked](unit))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("asked", ASKED)
def test_runs_are_the_same_in_units_of_powers_of_two(noise: str, asked: str) -> None:
    usual, asks = in_units(noise, asked, 1.0)
    assert usual.done
    assert asked != "linkage" or list(usual.labels) == LINKED
    for power in (-40, -10, 40):
        session, its = in_units(noise, asked, 2.0**power)
        assert its == asks
        assert list(session.labels) == list(usual.labels)
        assert holds(session)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unit", UNITS)
def test_linkage_is_right_and_accepted_in_any_unit(noise: str, unit: float) -> None:
    session, _ = in_units(noise, "linkage", unit)
    assert session.done
    assert list(session.labels) == LINKED
    assert holds(session)


def test_results_that_are_all_equal_prove_nothing_and_stop_nothing() -> None:
    for noise in (coterie.Gaussian(), coterie.Bounded(0, 1), 1.0):
        session = coterie.Session(4, 2, 2, 0.1, noise=noise, groups="linkage")
        for _ in range(600):
            arm = session.ask()
            assert arm is not None
            session.tell(arm, [0.0, 0.0])
        assert not session.done


# Covers: the engine's rule and the verifier's, written twice, say the same.


def frozen_runs() -> list[tuple[Settings, dict[str, Any]]]:
    """A freeze of every question, with its settings."""
    found = []
    for name, asked in ASKED.items():
        session, _ = in_units("known", name, 1.0)
        of = Settings.of(5, 3 if name == "linkage" else None, 2, 0.01, noise=1.0, **asked(1.0))
        freezes = [event for event in session.events if event["event"] == "freeze"]
        found.append((of, freezes[-1]))
    of, freeze = copy.deepcopy(found[0])
    freeze["balls"] = [[0, 2.0, [0, 1]], [2, 0.0, [2]], [3, 0.0, [3]], [4, 0.0, [4]]]
    step, far, height = freeze["near"][0], freeze["far"][0], freeze["height"]
    freeze["near"] += [[1, 0, 1, [2.0, 2.0], step[4]]]
    bounds = {(0, 2): 2.0, (0, 3): 2.0, (0, 4): 2.0, (2, 4): 0.0, (3, 4): 0.0}
    freeze["far"] = [[a, b, 1, [height + more] * 2, far[4]] for (a, b), more in bounds.items()]
    return [*found, (of, freeze)]


def both_say(of: Settings, freeze: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the tests of a freeze cover its claim: by the engine, and by the verifier."""
    asked = asked_for(of)
    engine = asked.covers(Epoch(freeze, asked.family, of.n_arms))
    linked = of.resolution is None
    norm = "distance" if of.resolution is None else of.resolution.norm
    claims = "" if of.resolution is None else of.resolution.claims
    stated = LogSubject(
        "linkage" if linked else "resolution", of.n_arms, of.dim, of.n_clusters if linked else None, norm, claims,
        lambda number: float(freeze["level"]),
    )  # fmt: skip
    read = frozen_groups_of(freeze, freeze["epoch"], 0, stated)
    return engine, not list(gaps_in_cover(read, stated.kind, stated.claims))


def test_the_engine_and_the_verifier_agree_on_what_tests_cover() -> None:
    rng, verdicts = np.random.default_rng(3), []
    for of, freeze in frozen_runs():
        assert both_say(of, freeze) == (True, True)
        for _ in range(150):
            bent = copy.deepcopy(freeze)
            kind = ("near", "far")[int(rng.integers(2))] if freeze["near"] else "far"
            row = int(rng.integers(len(bent[kind])))
            way = int(rng.integers(4))
            if way == 0:
                del bent[kind][row]
            elif way == 1:
                factor = float(rng.choice([0.5, 0.99, 1.01, 2.0]))
                bent[kind][row][3] = [factor * one for one in bent[kind][row][3]]
            elif way == 2:
                other = [arm for arm in range(of.n_arms) if arm != bent[kind][row][0]]
                bent[kind][row][1] = int(rng.choice(other))
            elif "balls" in bent:
                del bent["balls"][int(rng.integers(len(bent["balls"])))]
            else:
                bent[kind][row][:2] = bent[kind][row][1::-1]
            engine, verifier = both_say(of, bent)
            assert engine == verifier, (bent[kind], way)
            verdicts.append(engine)
    assert 50 < sum(verdicts) < len(verdicts) - 200


def test_a_recorded_freeze_that_lacks_a_test_is_never_proven() -> None:
    """As releases up to 0.2 made them: the run goes on, and freezes again."""
    of, freeze = frozen_runs()[0]
    bent = copy.deepcopy(freeze)
    bent["near"] = []
    asked, rng = asked_for(of), np.random.default_rng(6)
    run = FreezingRun(asked, 5, -np.log(of.delta))
    run.apply_freeze(bent | {"epoch": 0})
    assert run.epoch is not None
    for _ in range(300):
        for arm in range(5):
            run.open(arm, 1)
            run.count(arm, MEANS[arm] + rng.normal(size=2), 1, True)
    assert not run.epoch.unmet.any()
    assert not run.done
    for _ in range(20_000):
        asked_next = run.ask()
        if asked_next is None:
            break
        run.count(asked_next, MEANS[asked_next] + rng.normal(size=2), run.number, True)
    assert run.freezes[-1]["epoch"] > 0
    assert asked.covers(Epoch(run.freezes[-1], asked.family, 5))
