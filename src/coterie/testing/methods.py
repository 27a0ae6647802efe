"""The conformance suite for methods (`coterie.methods.Method`).

Each function of `CHECKS` takes a `Case`: a method, and a problem whose truth is known. It raises `AssertionError` with
a sentence if the method does not do what the contract says. With pytest:

    import pytest
    from coterie.testing import methods

    @pytest.mark.parametrize("check", methods.CHECKS, ids=lambda check: check.__name__)
    def test_my_method(check):
        check(methods.Case(MY_METHOD))

What the suite cannot see is left to tests of the method's own: that its groups are wrong with probability at most delta
on every instance, and that it needs few results.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from coterie.methods import METHODS, Method, MethodError, MethodRun, PanelPull, Pull, prepared, register, unregister
from coterie.methods.start import GuardedRun
from coterie.problem.checks import FloatArray
from coterie.problem.instance import Instance
from coterie.problem.settings import Settings
from coterie.session import Session
from coterie.session.saved import from_memory, memory_of

EASY = Instance([0, 0, 1, 1, 2, 2], [[0.0, 0.0], [6.0, 0.0], [0.0, 7.0]])
"""Three groups that are far apart: every method should find them soon."""

WORKERS = 4
"""Asks that are under way at once, where there are several."""

Draw: TypeAlias = Callable[[np.random.Generator, FloatArray], FloatArray]
"""(rng, mean) → one result of an item with this mean (d), in the user's units."""


def _standard_gaussian(rng: np.random.Generator, mean: FloatArray) -> FloatArray:
    return mean + rng.standard_normal(mean.size)


@dataclass(frozen=True)
class Case:
    """A method, and a problem whose truth is known.

    Parameters
    ----------
    method
        The method, registered or not: it is in the table of methods while a check runs.
    instance
        The truth. Groups should be so far apart that a wrong answer is a fault and not bad luck.
    noise, delta
        What the method is told, as `coterie.Session` takes it.
    draw
        How results come about; standard Gaussian about the mean unless given.
    most
        Results within which a run must end.
    seed
        Of the results.
    options
        What else `coterie.Session` is told, such as ``{"resolution": (1.0, 3.0)}``.

    Examples
    --------
    >>> from coterie.methods import METHODS
    >>> from coterie.testing.methods import Case, done_is_final
    >>> done_is_final(Case(METHODS["croc"]))
    """

    method: Method
    instance: Instance = EASY
    noise: Any = 1.0
    delta: float = 0.1
    draw: Draw = _standard_gaussian
    most: int = 5_000
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """What a run is told."""
        inst, needs = self.instance, self.method.needs
        gaps = np.linalg.norm(inst.centers[:, None] - inst.centers, axis=2)[np.triu_indices(inst.n_clusters, 1)]
        given = Settings.of(
            inst.n_arms,
            None if "resolution" in self.options else inst.n_clusters,
            inst.dim,
            self.delta,
            self.method.name,
            noise=self.noise,
            distance_ratio=float(gaps.min() / gaps.max()) if "distance_ratio" in needs else None,
            instance=inst if "instance" in needs else None,
            **self.options,
        )
        return prepared(given)[0]

    def result(self, number: int, arm: int) -> FloatArray:
        """The result of the ask with this number, whatever was asked before it."""
        return self.draw(np.random.default_rng([self.seed, number]), self.instance.means[arm])

    def in_units(self, x: FloatArray) -> FloatArray:
        """A result as a run counts it."""
        noise = self.settings.noise
        white = noise.whiten_fully(x[None]) if self.method.exact else noise.whiten(x[None])
        return np.asarray(white[0])

    def run(self) -> GuardedRun:
        """A run at its beginning, each of whose steps is checked."""
        return GuardedRun(self.method, self.settings)


Check: TypeAlias = Callable[[Case], None]

CHECKS: list[Check] = []
"""All checks, in the order in which a failure says most."""


def check_method(method: Method | Case) -> None:
    """Run all checks on a method.

    Parameters
    ----------
    method
        A method, or a `Case` where the default problem does not suit it.

    Raises
    ------
    AssertionError
        It says what the method does not do.

    Examples
    --------
    >>> from coterie.methods import compose
    >>> from coterie.testing.methods import check_method
    >>> check_method(compose("in-turn", sampling="uniform", stopping="pairs"))
    """
    case = method if isinstance(method, Case) else Case(method)
    for check in CHECKS:
        check(case)


def _check(check: Check) -> Check:
    """Put a check on the list: the method is registered while it runs, and whatever it breaks is an AssertionError."""

    @wraps(check)
    def run_check(case: Case) -> None:
        with _registered(case.method):
            try:
                check(case)
            except (MethodError, ValueError) as error:  # ValueError: a record that leads elsewhere
                raise AssertionError(str(error)) from error

    CHECKS.append(run_check)
    return run_check


@contextmanager
def _registered(method: Method) -> Iterator[None]:
    if METHODS.get(method.name) is method:
        yield
        return
    register(method)
    try:
        yield
    finally:
        unregister(method.name)


# Runs, asked and told one by one.


@dataclass
class _Course:
    """What a run was asked and told so far."""

    case: Case
    run: MethodRun
    pulls: list[Pull | PanelPull] = field(default_factory=list)
    results: list[FloatArray] = field(default_factory=list)

    def play(self, after_each: Callable[[], object] = lambda: None) -> _Course:
        """Go on to the end, or until as many results have counted as the case allows."""
        while not self.run.done and len(self.results) < self.case.most:
            pull = self.run.ask()
            after_each()
            if pull is None:
                break
            x = self.case.in_units(self.case.result(len(self.results), pull.arm))
            self.run.count(pull.arm, x, pull.round, True)
            self.pulls.append(pull)
            self.results.append(x)
            after_each()
        return self


def _whole(case: Case) -> _Course:
    course = _Course(case, case.run()).play()
    assert course.run.done, f"it was not done after {case.most} results of an easy problem"
    return course


def _same(first: _Course, other: _Course, how: str) -> None:
    assert first.pulls == other.pulls, f"{how} it asked for other arms"
    assert first.run.done == other.run.done, f"{how} it ended at another result"
    groups = [None if course.run.guess is None else course.run.guess[0].tolist() for course in (first, other)]
    assert groups[0] == groups[1], f"{how} it found other groups"


@_check
def asks_are_valid(case: Case) -> None:
    """Every ask names an arm that there is, every result counts once, and groups are numbers from 0 to K − 1."""
    course = _whole(case)
    measured = np.bincount([pull.arm for pull in course.pulls], minlength=case.instance.n_arms)
    assert course.run.pulls.tolist() == measured.tolist(), "it counts other results than it was told"
    course.run.evidence()


@_check
def groups_are_found(case: Case) -> None:
    """On an easy problem it ends, with the right groups."""
    run = _whole(case).run
    assert run.is_right(case.instance), f"it found the groups {None if run.guess is None else run.guess[0].tolist()}"


@_check
def counting_is_deterministic(case: Case) -> None:
    """The same results lead to the same asks, the same end and the same groups."""
    _same(_whole(case), _whole(case), "with the same results once more")


@_check
def reading_changes_nothing(case: Case) -> None:
    """Whoever looks at the guess, the evidence and the forecasts does not change what is asked for."""
    run = case.run()

    def read() -> object:
        return run.done, run.t, run.pulls, run.guess, run.evidence(), run.standing(), run.forecast(), run.alarm

    _same(_whole(case), _Course(case, run).play(after_each=read), "when it was read on the way")


@_check
def results_are_the_callers(case: Case) -> None:
    """An array that was told may be used for something else afterwards."""
    plain, used_again = _whole(case), case.method.start(case.settings)
    for pull, x in zip(plain.pulls, plain.results, strict=True):
        assert used_again.ask() == pull, "it asks for other arms once arrays that it was told are overwritten"
        told = x.copy()
        used_again.count(pull.arm, told, pull.round, True)
        told[:] = 1e6


@_check
def done_is_final(case: Case) -> None:
    """Once the groups are found they stay as they are."""
    run = _whole(case).run
    before = deepcopy(run.guess)
    run.look()
    assert run.done
    assert before is not None
    assert run.guess is not None
    assert run.guess[0].tolist() == before[0].tolist(), "its groups changed after it was done"


@_check
def results_that_nobody_asked_for_count(case: Case) -> None:
    """Results of arms that were not asked for are taken in, and the run still ends."""
    run, n_arms = case.run(), case.instance.n_arms
    for number in range(2 * n_arms):
        if not run.done:
            run.count(number % n_arms, case.in_units(case.result(10**6 + number, number % n_arms)), 0, False)
    assert _Course(case, run).play().run.done, "it does not end once results came that nobody asked for"


# Sessions, as people use them.


def _finish(case: Case, session: Session, workers: int = 1, give_up: int = 0, most: int | None = None) -> list[int]:
    """The arms that are asked for until `most` asks, or to the end: so many asks are under way, the last one is
    answered first, and every `give_up`-th is given up."""
    limit = case.most if most is None else most
    while len(session.arms_asked) < limit:
        opened = session.open(workers - len(session.pending))
        if session.done:
            break
        assert opened or session.pending, "there is nothing to ask for, though the groups are not found"
        number, arm = session.pending[0 if not opened else -1]
        if give_up and number % give_up == 0:
            session.forget(number)
        else:
            session.tell(arm, case.result(number, arm), number)
    return list(session.arms_asked)


def _stopped(case: Case, workers: int = 1, give_up: int = 0) -> Iterator[tuple[Session, list[int]]]:
    """Sessions that were stopped at the beginning, half-way and just before the end, and the arms of a whole one."""
    whole = Session.of(case.settings)
    arms = _finish(case, whole, workers, give_up)
    assert whole.done, f"it was not done after {case.most} asks"
    for count in sorted({0, len(arms) // 2, len(arms) - 1}):
        session = Session.of(case.settings)
        _finish(case, session, workers, give_up, count)
        yield session, arms


def _goes_on(case: Case, copy: Callable[[Session], Session], workers: int = 1, give_up: int = 0) -> None:
    """That a session ends, and that a copy of it is as it was and goes on to the same end, wherever it is made."""
    for session, arms in _stopped(case, workers, give_up):
        again, count = copy(session), len(session.arms_asked)
        assert again.to_dict() == session.to_dict(), f"stopped after {count} asks and brought back, it was another one"
        rest = _finish(case, again, workers, give_up)
        assert rest == arms, f"stopped after {count} asks and brought back, it asked for other arms"


def _saved(session: Session) -> Session:
    return Session.from_dict(json.loads(json.dumps(session.to_dict())))


@_check
def resuming_equals_never_having_stopped(case: Case) -> None:
    """A session that is saved as JSON and loaded follows its record, and goes on as if nothing had happened."""
    _goes_on(case, _saved)


@_check
def pickling_equals_never_having_stopped(case: Case) -> None:
    """A session that is sent to another process goes on there."""
    _goes_on(case, lambda session: pickle.loads(pickle.dumps(session)))


@_check
def memory_equals_never_having_stopped(case: Case) -> None:
    """What a run knows can be put into another one at its beginning; for those that keep a memory."""

    def remembered(session: Session) -> Session:
        memory = memory_of(session)
        return session if memory is None else from_memory(session.first_settings, *deepcopy(memory))

    _goes_on(case, remembered)


@_check
def several_workers_may_measure(case: Case) -> None:
    """With several asks under way, answered in another order, it ends, and can be resumed."""
    _goes_on(case, _saved, WORKERS)


@_check
def asks_may_be_given_up(case: Case) -> None:
    """Asks whose results never come do not keep it from ending."""
    _goes_on(case, _saved, WORKERS, give_up=5)


@_check
def applied_records_count(case: Case) -> None:
    """Asks, results and decisions that other rules have made count as recorded, and it goes on from there to the
    end."""
    for session, _ in _stopped(case):
        again = Session.from_dict(session.to_dict() | {"rules": session.rules + 1})
        assert again.t == session.t, f"it counts {again.t} of {session.t} recorded results"
        _finish(case, again)
        assert again.done, "it does not end after a record was applied"
