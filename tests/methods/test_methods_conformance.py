"""The conformance suite on all packaged methods, on methods from outside, and on some that break the contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.methods import METHODS, Evidence, Method, MethodRun, Pull, compose
from coterie.methods.records import Departure, Followed, Record
from coterie.methods.table import PACKAGED
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings
from coterie.testing import methods as suite
from coterie.testing.methods import CHECKS, Case, Check, check_method

OUTSIDE = [compose("uniform-pairs", sampling="uniform", stopping="pairs"), compose("uniform-paper", stopping="paper")]
CASES = {
    **{name: Case(METHODS[name]) for name in PACKAGED},
    **{method.name: Case(method) for method in OUTSIDE},
    "croc, any noise": Case(METHODS["croc"], noise=None),
    "croc, gaussian": Case(METHODS["croc"], noise="gaussian"),
    "croc, resolution": Case(METHODS["croc"], options={"resolution": (1.0, 4.0)}),
    "croc, linkage": Case(METHODS["croc"], options={"groups": "linkage"}),
    "croc, confirm": Case(METHODS["croc"], options={"confirm": 0.5}),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_methods_conform(name: str, check: Check) -> None:
    check(CASES[name])


class InTurn(MethodRun):
    """A run with the five members that it must have, and no more: arms in turn, until each was measured 8 times."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.next = settings, 0
        self.sums, self.counts = np.zeros((settings.n_arms, settings.dim)), np.zeros(settings.n_arms)

    def ask(self) -> Pull | None:
        self.next += 1
        return Pull((self.next - 1) % self.settings.n_arms)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self.sums[arm] += x
        self.counts[arm] += 1

    @property
    def done(self) -> bool:
        return bool(self.counts.min() >= 8)

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        if self.counts.min() == 0:
            return None
        assert self.settings.n_clusters is not None
        return coterie.kmeans_maximin(self.sums / self.counts[:, None], self.counts, self.settings.n_clusters)

    def evidence(self) -> Evidence:
        return Evidence(float(self.counts.min()), 8.0, None)


FIVE = Method("five", "five members", InTurn)


def test_five_members_are_enough() -> None:
    check_method(FIVE)
    assert "five" not in METHODS


class Restless(InTurn):
    """It counts how often it was read, and asks by that."""

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        self.next += 1
        return super().guess


class Chancy(InTurn):
    def ask(self) -> Pull | None:
        return Pull(int(np.random.default_rng().integers(self.settings.n_arms)))


class Hasty(InTurn):
    """It follows no record: from the second ask on it says that it goes another way."""

    @property
    def t(self) -> int:
        return int(self.counts.sum())

    @property
    def pulls(self) -> IntArray:
        return self.counts.astype(np.int64)

    def follow(self, record: Record) -> Followed:
        if record.kinds.size > 1:
            raise Departure(1, 0)
        return super().follow(record)


class Endless(InTurn):
    @property
    def done(self) -> bool:
        return False


class Keeper(InTurn):
    """It keeps the arrays that it is told."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.kept: list[FloatArray] = []

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        super().count(arm, x, of_round, asked)
        self.kept.append(x)

    def ask(self) -> Pull | None:
        return Pull(int(abs(sum(x.sum() for x in self.kept))) % self.settings.n_arms)


class Wrong(InTurn):
    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        labels = np.arange(self.settings.n_arms) % 3
        return labels, np.zeros((3, self.settings.dim))


class Outside(InTurn):
    def ask(self) -> Pull | None:
        return Pull(self.settings.n_arms)


@pytest.mark.parametrize(
    ("run", "check", "message"),
    [
        (Restless, suite.reading_changes_nothing, "asked for other arms"),
        (Chancy, suite.counting_is_deterministic, "asked for other arms"),
        (Chancy, suite.resuming_equals_never_having_stopped, "it asked for other arms"),
        (Hasty, suite.resuming_equals_never_having_stopped, "brought back, it was another one"),
        (Endless, suite.groups_are_found, "not done after 300 results"),
        (Keeper, suite.results_are_the_callers, "overwritten"),
        (Wrong, suite.groups_are_found, "it found the groups"),
        (Outside, suite.asks_are_valid, "asked for arm 6: the arms are 0 to 5"),
    ],
)
def test_what_breaks_the_contract_is_said(run: Any, check: Check, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(replace(Case(Method("broken", "broken", run)), most=300))
    assert "broken" not in METHODS
