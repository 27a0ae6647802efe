"""Any order of asking, telling, being late, repeating, giving up, saving and loading, against a plain model.

Two sessions are told the same: one is saved and loaded, replayed and given bad input on the way, its twin never is.
The model knows lines of tickets, counts and results, and for the paper's methods computes all of Alg. 1 anew each time.
To search longer, elsewhere each time: COTERIE_MACHINE_EXAMPLES=500 pytest tests/session/test_session_machine.py
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from known import known
from session_model import ASK, CLOSE, RATIO, Algorithm1, Conversation, seen

import coterie
from coterie.evidence.pairs import pair_evidence

pytestmark = pytest.mark.slow  # hundreds of random histories

EXAMPLES = os.environ.get("COTERIE_MACHINE_EXAMPLES")
CENTERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.5, 0.25], [-0.5, 1.0, -1.0]])
ROOT = np.array([[1.5, 0.0, 0.0], [0.5, 0.75, 0.0], [-0.25, 0.5, 1.25]])


class SessionMachine(RuleBasedStateMachine):
    """The model: open tickets, what was told, the line of each arm (CROC) or Alg. 1, and what was seen at the stop."""

    method = "croc"

    def __init__(self) -> None:
        super().__init__()
        self.at_stop: dict[str, Any] | None = None
        self.jitter = np.random.default_rng(0)

    @initialize(
        kind=st.sampled_from(["proven", "heuristic"]),
        n_clusters=st.integers(2, 3),
        more_arms=st.integers(1, 4),
        dim=st.integers(1, 3),
        delta=st.sampled_from([0.3, 0.05, 1e-6]),
        spread=st.sampled_from([4.0, 8.0, 2.0, 0.5, 0.0]),
        noise=st.sampled_from(["unit", "one", "some", "covariance"]),
        named=st.booleans(),
        data=st.data(),
    )
    def begin(
        self, kind: str, n_clusters: int, more_arms: int, dim: int, delta: float, spread: float, noise: str,
        named: bool, data: st.DataObject,
    ) -> None:  # fmt: skip
        n_arms, method = n_clusters + more_arms, self.method
        self.dim, self.n_arms, self.n_clusters = dim, n_arms, n_clusters
        root = ROOT[:dim, :dim]
        given, self.root = {
            "unit": (1.0, np.eye(dim)),
            "one": (0.5, 0.5 * np.eye(dim)),
            "some": ([0.7, 2.0, 0.3][:dim], np.diag([0.7, 2.0, 0.3][:dim])),
            "covariance": ((root @ root.T).tolist(), root),
        }[noise]
        self.exact = noise in ("unit", "one")  # changing units loses nothing: exact ties stay ties
        rest = data.draw(st.lists(st.integers(0, n_clusters - 1), min_size=more_arms, max_size=more_arms))
        self.labels = np.array([*range(n_clusters), *rest])
        self.means = spread * CENTERS[self.labels, :dim]  # in units of the noise
        truth = coterie.Instance(self.labels, (spread or 1.0) * CENTERS[:n_clusters, :dim])
        self.settings: dict[str, Any] = {"delta": delta, "method": method, "threshold": kind, "noise": given}
        if method == "boc-linear":
            self.settings["distance_ratio"] = RATIO
        if method == "oracle":
            self.settings["instance"] = coterie.Instance(truth.labels, truth.centers @ self.root.T)
        if named:
            self.settings["names"] = [f"item {arm}" for arm in range(n_arms)]
        self.session, self.twin = self.fresh(), self.fresh()
        self.model = Conversation(Algorithm1(method, kind, delta, truth), self.root)

    def fresh(self) -> coterie.Session:
        return coterie.Session(self.n_arms, self.n_clusters, self.dim, **self.settings)

    # What the model does.

    def name(self, arm: int) -> Any:
        """An arm as the user says it."""
        return arm if self.session.names is None or arm % 2 else self.session.names[arm]

    def result(self, arm: int, eighths: list[int]) -> list[float]:
        """A measurement in the user's units."""
        white = self.means[arm] + np.array(eighths[: self.dim]) / 8.0
        if not self.exact:
            white += 1e-3 * self.jitter.standard_normal(self.dim)
        return [float(x) for x in self.root @ white]

    def both(self, deed: str, *args: Any) -> Any:
        """Do it to both sessions: they must answer alike."""
        answers = []
        for session in (self.session, self.twin):
            try:
                answers.append(getattr(session, deed)(*args))
            except coterie.SessionDone as stop:
                answers.append(str(stop))
        assert answers[0] == answers[1]
        return answers[0]

    # What can happen.

    noise_ = st.lists(st.integers(-20, 20), min_size=3, max_size=3)

    @rule(n=st.sampled_from([None, 2, 5, 11]))
    def ask(self, n: int | None) -> None:
        done, wanted = self.twin.done, 1 if n is None else n
        expected = []
        if self.method != "croc" and not done:
            pending = dict(self.model.open)
            for i in range(wanted):
                expected.append(self.model.plain.next_arm(pending))
                pending[self.model.following + i] = expected[-1]
        answer = self.both("ask", n)
        arms = [] if isinstance(answer, str) else [answer] if n is None else answer
        if self.method != "croc":
            assert arms == expected
        assert len(arms) == wanted or self.twin.done
        assert not (done and arms)
        taken = {*self.model.open.values(), *(m for m, line in enumerate(self.model.lines) if line)}
        unseen = [m for m in range(self.n_arms) if not self.model.counted[m] and m not in taken]
        assert arms[: len(unseen)] == unseen[: len(arms)]  # never-measured arms come first, in index order
        for arm in arms:
            self.model.asked(arm)
        if len(arms) < wanted and not done:  # the last one found the groups proven
            assert self.method == "croc"
            self.model.entries.append((ASK, -1, -1, [np.nan] * self.dim))

    @precondition(lambda self: hasattr(self, "model") and self.model.open)
    @rule(noise=noise_, data=st.data(), say_which=st.booleans())
    def tell(self, noise: list[int], data: st.DataObject, say_which: bool) -> None:
        """Of any open ask, in any order; without its ticket it answers the oldest of its arm."""
        ticket = data.draw(st.sampled_from(sorted(self.model.open)))
        arm = self.model.open[ticket]
        x = self.result(arm, noise)
        self.both("tell", self.name(arm), x, ticket if say_which else None)
        self.model.take(arm, x, ticket if say_which else None, self.twin.done)

    @rule(noise=noise_, data=st.data())
    def tell_unasked(self, noise: list[int], data: st.DataObject) -> None:
        arm = data.draw(st.integers(0, self.n_arms - 1))
        x = self.result(arm, noise)
        self.both("tell", arm, x)
        self.model.take(arm, x, None, self.twin.done)

    @rule(noise=noise_, data=st.data(), n=st.integers(2, 6))
    def tell_a_batch(self, noise: list[int], data: st.DataObject, n: int) -> None:
        """Answers to some open asks in any order and results that nobody asked for, at once."""
        some = data.draw(st.lists(st.sampled_from(sorted(self.model.open) or [-1]), unique=True, max_size=n))
        some = [ticket for ticket in some if ticket in self.model.open]
        arms = [self.model.open[ticket] for ticket in some] or data.draw(
            st.lists(st.integers(0, self.n_arms - 1), min_size=1, max_size=n)
        )
        values = [self.result(arm, noise[i % 3 :] + noise[: i % 3]) for i, arm in enumerate(arms)]
        self.both("tell", [self.name(arm) for arm in arms], values, some or None)
        for i, (arm, x) in enumerate(zip(arms, values, strict=True)):
            self.model.take(arm, x, some[i] if some else None, self.twin.done)

    @rule(n=st.sampled_from([10, 3, 30]), seed=st.integers(0, 99))
    def go_on(self, n: int, seed: int) -> None:
        """Some measurements as they come: this is how runs get long."""
        rng = np.random.default_rng(seed)
        for _ in range(n):
            if self.twin.done:
                return
            if not self.model.open:
                self.ask(None)
            for ticket in sorted(self.model.open)[:1]:
                arm = self.model.open[ticket]
                x = self.result(arm, np.rint(8.0 * rng.standard_normal(3)).astype(int).tolist())
                self.both("tell", arm, x, ticket)
                self.model.take(arm, x, ticket, self.twin.done)

    @precondition(lambda self: hasattr(self, "model") and self.model.open)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.model.open)))
        self.both("forget", ticket)
        self.model.give_up(ticket)

    @precondition(lambda self: hasattr(self, "model") and len(set(self.model.open.values())) < len(self.model.open))
    @rule(noise=noise_, give_up=st.booleans(), data=st.data())
    def overtake(self, noise: list[int], give_up: bool, data: st.DataObject) -> None:
        """The last open ask of an arm is answered before its first, which is then given up or left open."""
        arms = list(self.model.open.values())
        arm = data.draw(st.sampled_from(sorted({arm for arm in arms if arms.count(arm) > 1})))
        first, *_, last = (ticket for ticket, its in self.model.open.items() if its == arm)
        x = self.result(arm, noise)
        self.both("tell", arm, x, last)
        self.model.take(arm, x, last, self.twin.done)
        if give_up:
            self.the_session_is_what_the_model_is()  # it may have stopped
            self.both("forget", first)
            self.model.give_up(first)

    # Bad input: the session is given it, its twin is not, so that what it changed would show.

    def refuse(self, error: type[Exception], message: str, deed: str, *args: Any) -> None:
        with pytest.raises(error, match=message):
            getattr(self.session, deed)(*args)

    @rule(bad=st.sampled_from([math.nan, math.inf, -math.inf]), data=st.data())
    def say_what_is_wrong(self, bad: float, data: st.DataObject) -> None:
        good, n, unknown = [0.0] * self.dim, self.n_arms, self.model.following
        not_finite = [*good[1:], bad]
        cases: list[tuple[Any, ...]] = [
            (ValueError, "must be finite", "tell", 0, not_finite),
            (ValueError, "must be finite", "tell", [0, 1], [good, not_finite]),  # all or nothing
            (ValueError, "shape", "tell", 0, [*good, 0.0]),
            (ValueError, "standard deviations", "tell", 0, [*good[1:], 1e60]),
            (TypeError, "real numbers", "tell", 0, ["1.0"] * self.dim),
            (ValueError, f"unknown arm {n}", "tell", n, good),
            (ValueError, "unknown arm -1", "tell", [0, -1], [good, good]),
            (ValueError, "unknown arm 'nobody'", "tell", "nobody", good),
            (ValueError, f"ticket {unknown} is not open", "tell", 0, good, unknown),
            (ValueError, f"ticket {unknown} is not open", "forget", unknown),
            (ValueError, "as many tickets", "tell", [0, 1], [good, good], [0]),
            (ValueError, "at least 1, got 0", "ask", 0),
        ]
        for ticket, arm in self.model.closed[-3:]:  # a result told twice
            cases.append((ValueError, f"ticket {ticket} is not open", "tell", arm, good, ticket))
            cases.append((ValueError, f"ticket {ticket} is not open", "forget", ticket))
        for ticket, arm in list(self.model.open.items())[:1]:
            other = (arm + 1) % n
            cases.append((ValueError, f"is for arm {arm}, not for arm {other}", "tell", other, good, ticket))
            cases.append((ValueError, "is not open", "tell", [arm, arm], [good, good], [ticket, ticket]))
        error, message, deed, *args = data.draw(st.sampled_from(cases))
        with pytest.raises(error, match=message):
            getattr(self.session, deed)(*args)

    # Leaving and coming back.

    @rule()
    def save_and_load(self) -> None:
        self.session = coterie.Session.from_dict(json.loads(json.dumps(self.session.to_dict(), allow_nan=False)))

    @precondition(lambda self: hasattr(self, "model") and self.model.entries)
    @rule(cut=st.floats(0, 1))
    def replay(self, cut: float) -> None:
        """The recorded conversation in two parts."""
        kinds, arms, tickets, values = (np.array(column) for column in zip(*self.model.entries, strict=True))
        at = round(cut * len(self.model.entries))
        self.session = self.fresh()
        for part in (slice(at), slice(at, None)):
            self.session.replay(kinds[part], arms[part], tickets[part], values[part].reshape(-1, self.dim))

    @precondition(lambda self: self.twin.done and self.method == "croc")
    @rule(data=st.data(), how=st.sampled_from(["dropped", "changed", "easier"]))
    def corrupt_the_proof(self, data: st.DataObject, how: str) -> None:
        certificate, events = json.loads(json.dumps([self.session.certificate, self.session.events]))
        results = [i for i, event in enumerate(events) if event["event"] == "result"]
        if how == "dropped":
            del events[data.draw(st.sampled_from(results))]
        elif how == "changed":  # an arm's first result is in all its evidence, or in the centers of a freeze
            arm = data.draw(st.integers(0, self.n_arms - 1))
            first = next(events[i] for i in results if events[i]["arm"] == arm)
            first["values"] = [x + 100.0 for x in first["values"]]
        else:
            certificate["delta"] /= 2.0
        assert not coterie.verify(certificate, events)

    # What must hold.

    @invariant()
    def the_twins_are_alike(self) -> None:
        if not hasattr(self, "twin"):
            return
        mine, its = seen(self.session), seen(self.twin)
        for key, value in its.items():
            assert mine[key] == value, key
        if self.at_stop is not None:  # done is never taken back, and nothing that was proven changes
            assert {key: its[key] for key in self.at_stop} == self.at_stop

    @invariant()
    def the_session_is_what_the_model_is(self) -> None:
        if not hasattr(self, "twin"):
            return
        session = self.session
        assert session.pending == list(self.model.open.items())
        assert [(arm, x.tolist()) for arm, x in session.log] == self.model.told
        if self.at_stop is None and session.done:
            self.stopped(session)
        pulls = [len(some) for some in self.model.counted]
        assert session.pulls.tolist() == pulls
        assert session.t == sum(pulls)
        assert (session.labels is None) == (min(pulls) == 0)
        if self.method == "croc":
            self.croc_is_right(session)
        else:
            self.paper_is_right(session)

    def stopped(self, session: coterie.Session) -> None:
        """Results that came together with the one that proved the groups do not count any more."""
        if self.method == "croc":
            self.model.cut(session.pulls.tolist())
            certificate = json.loads(json.dumps(session.certificate))
            verdict = coterie.verify(certificate, json.loads(json.dumps(session.events)))
            if session.alarm is None:
                assert verdict, verdict.problems
            else:
                assert verdict.problems == [f"the certificate itself says that K = {self.n_clusters} is refuted"]
            assert verdict.tests > 0
            assert certificate["t"] == session.t
            assert coterie.same_partition(certificate["labels"], session.labels)
        kept = ("done", "t", "pulls", "evidence", "labels", "centers", "alarm", "events", "certificate", "partial")
        self.model.stopped = True
        self.at_stop = {key: value for key, value in seen(session).items() if key in kept}

    def paper_is_right(self, session: coterie.Session) -> None:
        plain, now = self.model.plain, session.evidence
        assert session.waiting == 0
        assert session.done == plain.done
        assert session.done == (now.statistic >= now.threshold)
        assert now.threshold == pytest.approx(plain.limit, rel=1e-12)
        if plain.guess is None:
            return
        assert coterie.same_partition(session.labels, plain.guess[0])
        if not plain.coincident:
            assert now.statistic == pytest.approx(plain.statistic, rel=1e-7, abs=1e-9)
            order = [int(np.argmax(session.labels == k)) for k in range(self.n_clusters)]
            where = plain.guess[1][plain.guess[0][order]] @ self.root.T
            assert session.centers == pytest.approx(where, rel=1e-9, abs=1e-9)
            assert now.weakest is not None
            assert now.weakest.group != known(session.labels)[now.weakest.arm]

    def croc_is_right(self, session: coterie.Session) -> None:
        waiting = sum(place[1] is not None for line in self.model.lines for place in line)
        results = [event for event in session.events if event["event"] == "result"]
        assert len(results) == session.t
        for arm, stack in enumerate(self.model.counted):
            values = [np.linalg.solve(self.root, event["values"]) for event in results if event["arm"] == arm]
            assert np.array_equal(values, stack)  # in ask order, whatever the order of arrival
        if session.done:
            assert session.evidence.statistic >= session.evidence.threshold * (1.0 - CLOSE)
            with pytest.raises(coterie.SessionDone, match="proven: "):
                self.session.ask()
            return
        assert session.waiting == waiting
        assert session.certificate is None
        if session.labels is None:
            return
        for k, center in enumerate(known(session.centers)):
            stack = [x for arm in np.flatnonzero(session.labels == k) for x in self.model.counted[arm]]
            assert center == pytest.approx(self.root @ np.mean(stack, axis=0), rel=1e-9, abs=1e-9)

    @precondition(lambda self: self.method == "croc" and self.twin.labels is not None)
    @rule()
    def pairs_that_differ_have_their_evidence(self) -> None:
        """Each had it at some counts: it is latched."""
        partial = self.session.partial()
        assert sorted(partial.settled + partial.undecided) == list(range(self.n_arms))
        equal = (self.n_arms - self.n_clusters + 1) * (self.n_arms - self.n_clusters) / 2
        level = math.log(equal / (0.2 * self.settings["delta"]))  # docs/CROC.md: log(H/(α·δ))
        assume(partial.differ)
        for a, b in partial.differ[:3]:
            x, y = np.array(self.model.counted[a][:64]), np.array(self.model.counted[b][:64])
            most = max(pair_evidence(x[:i], y[:j]) for i in range(1, len(x) + 1) for j in range(1, len(y) + 1))
            assert most >= level * (1.0 - CLOSE)


class BocMachine(SessionMachine):
    method = "boc"


class LinearMachine(SessionMachine):
    method = "boc-linear"


class UniformMachine(SessionMachine):
    method = "uniform"


class OracleMachine(SessionMachine):
    method = "oracle"


def as_test(machine: type[SessionMachine], examples: int) -> Any:
    case = machine.TestCase
    case.settings = settings(
        max_examples=int(EXAMPLES or examples),
        stateful_step_count=30,
        deadline=None,
        derandomize=EXAMPLES is None,
        suppress_health_check=list(HealthCheck),
    )
    return case


TestCroc = as_test(SessionMachine, 45)
TestBoc = as_test(BocMachine, 10)
TestLinear = as_test(LinearMachine, 10)
TestUniform = as_test(UniformMachine, 10)
TestOracle = as_test(OracleMachine, 10)
