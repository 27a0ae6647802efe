"""Every run ends (docs/CROC.md, section 14), however asks are given up, values corrected, items revised, runs reloaded.

Several workers ask, answer in any order and give up; told values are slips now and then, and corrected later; items
join and are retired; the session is saved and loaded. Then all slips are corrected and the workers go on: the run ends
within `MOST` further results, with the right groups, and its certificate verifies.
To search longer, elsewhere each time: COTERIE_MACHINE_EXAMPLES=500 pytest tests/session/test_session_endings.py
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from known import known

import coterie

pytestmark = pytest.mark.slow  # hundreds of random histories

EXAMPLES = os.environ.get("COTERIE_MACHINE_EXAMPLES")
MOST = 1500
"""Results after the last change; without any change the slowest family here needs some 150."""
GAP = 6.0
NOISES: dict[str, Any] = {
    "known": 1.0,
    "any": None,
    "gaussian": "gaussian",
    "gaussian, scalar": coterie.Gaussian("scalar"),
    "symmetric": coterie.Symmetric(),
    "at most": coterie.AtMost(1.0),
    "bounded": coterie.Bounded(-10.0, 25.0),
    "counts": coterie.Counts(30),
}


def drawn(noise: str, group: int, rng: np.random.Generator) -> float:
    """A result of an item of this group."""
    if noise == "counts":
        return float(rng.binomial(30, (0.05, 0.5, 0.95)[group]))
    return float(GAP * group + rng.standard_normal())


def slip_of(noise: str, value: float) -> float:
    """What was written down in place of a value."""
    if noise == "counts":
        return value + (1.0 if value < 15.0 else -1.0)
    return value + (0.5 if value < 3.0 else -0.5)


class Endings(RuleBasedStateMachine):
    """`truth`: the group of each item; `slips`: the right value at each place of the log that has a wrong one."""

    @initialize(
        noise=st.sampled_from(list(NOISES)),
        n_arms=st.integers(4, 6),
        seed=st.integers(0, 2**16),
        question=st.sampled_from(["groups", "resolution", "linkage"]),
    )
    def begin(self, noise: str, n_arms: int, seed: int, question: str) -> None:
        self.noise, self.rng = noise, np.random.default_rng(seed)
        self.truth = [arm % 2 for arm in range(n_arms)]
        self.slips: dict[int, float] = {}
        asked: dict[str, Any] = {"n_clusters": 2}
        self.resolved = question == "resolution" and noise in ("known", "gaussian", "counts")
        if self.resolved:
            asked = {"resolution": (2.0, 9.0) if noise == "counts" else (1.0, 5.0)}
        elif question == "linkage" and noise in ("known", "gaussian", "counts"):
            asked["groups"] = "linkage"
        self.session = coterie.Session(n_arms, dim=1, delta=1e-3, noise=NOISES[noise], **asked)

    def tell(self, arm: int, ticket: int | None, slip: bool) -> None:
        right = told = drawn(self.noise, self.truth[arm], self.rng)
        if slip:
            told = slip_of(self.noise, right)
            self.slips[self.session.n_measurements] = right
        self.session.tell(arm, told, ticket)

    def work(self, results: int, workers: int, forgetting: float = 0.0, slipping: float = 0.0) -> int:
        """So many results with so many asks open; some asks are given up, some values are slips. Returns how many."""
        told = 0
        while told < results and not self.session.done:
            while len(self.session.pending) < workers and self.session.open(1):
                pass
            if not self.session.pending:
                break
            ticket, arm = self.session.pending[self.rng.integers(len(self.session.pending))]
            if self.rng.random() < forgetting:
                self.session.forget(ticket)
            else:
                self.tell(arm, ticket, self.rng.random() < slipping)
                told += 1
        return told

    @rule(
        results=st.integers(1, 15),
        workers=st.integers(1, 4),
        forgetting=st.sampled_from([0.0, 0.3]),
        slipping=st.sampled_from([0.0, 0.1]),
    )
    def some_results(self, results: int, workers: int, forgetting: float, slipping: float) -> None:
        self.work(results, workers, forgetting, slipping)

    @precondition(lambda self: not self.session.done)
    @rule(count=st.integers(1, 3))
    def asks_given_up_at_once(self, count: int) -> None:
        for ticket in self.session.open(count):
            self.session.forget(ticket.number)

    @precondition(lambda self: not self.session.done)
    @rule(count=st.integers(1, 3))
    def asks_of_somebody_slow(self, count: int) -> None:
        self.session.open(count)

    @precondition(lambda self: self.session.pending)
    @rule(which=st.integers(0, 20))
    def somebody_leaves(self, which: int) -> None:
        ticket, _ = self.session.pending[which % len(self.session.pending)]
        self.session.forget(ticket)

    @rule(arm=st.integers(0, 20))
    def a_result_that_nobody_asked_for(self, arm: int) -> None:
        present = self.session.items.present
        self.tell(present[arm % len(present)], None, False)

    @precondition(lambda self: self.session.n_measurements > 0)
    @rule(which=st.integers(0, 200))
    def a_correction(self, which: int) -> None:
        """Of a slip, if there is one; otherwise a right value is taken for a slip and put right again."""
        session = self.session
        if self.slips:
            row = sorted(self.slips)[which % len(self.slips)]
            session.correct(row, self.slips.pop(row), "a slip")
            return
        row = which % session.n_measurements
        right = float(session.log[row][1][0])
        session.correct(row, slip_of(self.noise, right), "taken for a slip")
        session.correct(row, right, "it was none")

    @precondition(lambda self: self.session.n_measurements > 0 and 0 not in self.slips)
    @rule()
    def the_first_result_is_corrected(self) -> None:
        """Positions of bets count from it."""
        first = float(self.session.log[0][1][0])
        self.session.correct(0, slip_of(self.noise, first), "another reading of it")

    @rule()
    def reload(self) -> None:
        self.session = coterie.Session.from_dict(json.loads(json.dumps(self.session.to_dict(), allow_nan=False)))

    @precondition(lambda self: len(self.truth) < 9)
    @rule(group=st.integers(0, 1))
    def an_item_joins(self, group: int) -> None:
        self.truth.append(group)
        self.session.revise(add=1)

    @precondition(lambda self: 2 not in self.truth and not self.resolved)
    @rule()
    def another_group_joins(self) -> None:
        self.truth += [2, 2]
        self.session.revise(add=2, n_clusters=3)

    @rule(which=st.integers(0, 20))
    def an_item_is_retired(self, which: int) -> None:
        present = self.session.items.present
        gone = present[which % len(present)]
        left = [self.truth[arm] for arm in present if arm != gone]
        if len(left) > 3 and set(left) == {self.truth[arm] for arm in present}:
            self.session.revise(retire=[gone])

    @precondition(lambda self: self.session.delta > 1e-5)
    @rule()
    def a_smaller_delta(self) -> None:
        self.session.revise(delta=self.session.delta / 2.0)

    @invariant()
    def what_is_proven_verifies(self) -> None:
        if not hasattr(self, "session") or not self.session.done or self.slips:
            return
        verdict = coterie.verify(self.session.certificate, self.session.events)
        assert verdict.valid, verdict.problems

    def teardown(self) -> None:
        """The workers go on: somebody gives up now and then, and one value is corrected on the way."""
        if not hasattr(self, "session"):
            return
        for row in sorted(self.slips):
            self.session.correct(row, self.slips[row], "a slip")
        self.slips = {}
        self.work(20, 3, forgetting=0.2)
        if self.session.n_measurements > 0:
            self.a_correction(7)
        for ticket, _ in self.session.pending[1:]:  # one of them is answered by somebody else, below
            self.session.forget(ticket)
        assert self.work(MOST, 2, forgetting=0.05) < MOST
        assert self.session.done
        present = self.session.items.present
        assert coterie.same_partition(known(self.session.labels)[present], [self.truth[arm] for arm in present])
        self.what_is_proven_verifies()


TestEndings = Endings.TestCase
TestEndings.settings = settings(
    max_examples=int(EXAMPLES or 200),
    stateful_step_count=20,
    deadline=None,
    derandomize=EXAMPLES is None,
    suppress_health_check=list(HealthCheck),
)
