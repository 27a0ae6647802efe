"""The rule where features are measured one by one equals a plain one, ask by ask, and every number of it is pinned.

With another value of a number the plain rule differs from itself on one of the cases, so a rule with that number
changed differs from the plain one there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from bench.features import dense, own_features, shifted
from coterie.methods.features.method import FeatureRun
from coterie.methods.features.search import CONSTANTS, Constants
from coterie.problem.instance import Instance
from coterie.problem.settings import Settings
from tests.oracles.features import constants as plain
from tests.oracles.features.rule import PlainRun

Course = tuple[list[tuple[int, int, int, int]], list[tuple[int, list[int], list[list[int]], list[int]]]]
"""Asks (item, feature, how often, round), and freezes (t, groups, cores, features)."""

KINDS: dict[str, Any] = {
    "dense, three": lambda rng: dense(3, 9, 8, 0.5, rng),
    "dense, four": lambda rng: dense(4, 12, 10, 0.7, rng),
    "one of twelve": lambda rng: shifted(12, 30, 5, 1.5, 0.1, rng),
    "own features": lambda rng: own_features(5, 20, 40, 3, 3.0, rng),
    "few features": lambda rng: dense(3, 12, 5, 0.8, rng),
    "sparse": lambda rng: shifted(40, 100, 10, 3.0, 0.1, rng),
}
DELTA = 0.3


def made(kind: str, seed: int) -> Instance:
    instance: Instance = KINDS[kind](np.random.default_rng(seed))
    return instance


def course(kind: str, seed: int, constants: Constants = CONSTANTS) -> Course:
    instance = made(kind, seed)
    n_groups, dim = instance.centers.shape
    settings = Settings.of(instance.labels.size, n_groups, None, DELTA, noise=1.0, features=dim)
    run, rng = FeatureRun(settings, constants, seed), np.random.default_rng([seed, 1])
    asked = []
    while not run.done:
        for item, feature, count, of_round in run.take_planned():
            asked.append((item, feature, count, of_round))
            x = instance.centers[instance.labels[item], feature] + rng.standard_normal(count)
            run.count_many(item, feature, x[:, None], of_round)
    freezes = [
        (event["frozen_at"], event["labels"], event["cores"], [bet["feature"] for bet in event["features"]])
        for event in run.new_decisions()
        if event["event"] == "freeze"
    ]
    return asked, freezes


def plain_course(kind: str, seed: int) -> Course:
    instance, rng = made(kind, seed), np.random.default_rng([seed, 1])
    n_groups, dim = instance.centers.shape

    def draw(item: int, feature: int, count: int) -> list[float]:
        x = instance.centers[instance.labels[item], feature] + rng.standard_normal(count)
        return [float(number) for number in x]

    run = PlainRun(instance.labels.size, dim, n_groups, DELTA, draw, seed).run()
    return run.results.asked, run.freezes


CASES = [
    ("dense, three", 0), ("dense, three", 100), ("dense, three", 107), ("dense, four", 100), ("dense, four", 114),
    ("one of twelve", 113), ("own features", 110), ("own features", 139), ("few features", 120),
    ("few features", 134), ("sparse", 100),
]  # fmt: skip
"""Among them candidates that fail, and groups that are joined again."""

PINS: dict[str, tuple[Any, tuple[str, int]]] = {
    "SCALES": ((8.0, 4.0, 2.0, 1.1, 0.5, 0.25, 0.125, 0.0625), ("dense, three", 100)),
    "BATCH": (5, ("dense, three", 100)),
    "DROP": (0.75, ("dense, three", 100)),
    "STOP": (4.0, ("dense, three", 100)),
    "WAIT": (1.2, ("sparse", 100)),
    "BETTER": (1.4, ("one of twelve", 113)),
    "DOUBTS": (0.12, ("dense, three", 107)),
    "CLOSE": (0.9, ("dense, three", 0)),
    "COLLAPSED": (0.3, ("dense, three", 100)),
    "PULLS_A_NAT": (2.8, ("dense, three", 107)),
    "TOO_DEAR": (4.0, ("dense, three", 0)),
    "FAILURES": (2, ("dense, four", 114)),
    "UNDOINGS": (0, ("dense, three", 100)),
    "SEARCH_LIMIT": (0.5, ("dense, three", 100)),
    "CORE": (2, ("one of twelve", 113)),
    "WHOLE_CORE": (3, ("dense, three", 107)),
}
"""Of each number another value, and a case that shows it."""


@cache
def kept(case: tuple[str, int]) -> Course:
    return plain_course(*case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rule_equals_the_plain_one(case: tuple[str, int]) -> None:
    assert course(*case) == kept(case)


@pytest.mark.parametrize(("changed", "name"), [({"undoings": 0}, "UNDOINGS"), ({"in_vain": 0.0}, "SEARCH_LIMIT")])
@pytest.mark.parametrize("case", CASES[1:4], ids=str)
def test_sweeps_equal_the_plain_ones(
    case: tuple[str, int], changed: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first of them an estimate falls together: a round for it would ask for hundreds of millions of results."""
    monkeypatch.setattr(plain, name, 0)
    asked, freezes = course(*case, Constants(**changed))
    assert (asked, freezes) == plain_course(*case)
    assert sum(count for _, _, count, _ in asked) < 20_000
    assert len(freezes) > 1


@pytest.mark.parametrize("name", PINS)
def test_another_number_makes_another_course(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other, case = PINS[name]
    before = kept(case)
    monkeypatch.setattr(plain, name, other)
    assert plain_course(*case) != before


def test_every_number_of_the_rule_is_pinned() -> None:
    assert sorted(PINS) == sorted(name for name in vars(plain) if name.isupper())
    assert sorted(map(str, vars(CONSTANTS).values())) == sorted(str(getattr(plain, name)) for name in PINS)
