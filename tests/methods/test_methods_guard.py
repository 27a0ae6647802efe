"""A registered method that breaks the contract gets an error that names it and says what it did."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import methods
from coterie.methods import Evidence, Method, MethodError, MethodRun, Pull
from coterie.methods.contract import ASK, NOBODY, RESULT, Departure, Followed, Record
from coterie.methods.start import GuardedRun
from coterie.problem.settings import SettingError, Settings

INST = coterie.Instance([0, 0, 1, 1], [[0.0, 0.0], [4.0, 1.0]])


class InTurn(MethodRun):
    """Measures the arms in turn, and stops after 12 results. The tests break one step after the other."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.counts = np.zeros(settings.n_arms, dtype=np.int64)
        self.asked = 0

    @property
    def done(self) -> bool:
        return self.t >= 12

    @property
    def t(self) -> int:
        return int(self.counts.sum())

    @property
    def pulls(self) -> Any:
        return self.counts

    @property
    def guess(self) -> Any:
        return np.array([0, 0, 1, 1]), np.zeros((2, 2))

    def ask(self) -> Any:
        self.asked += 1
        return Pull((self.asked - 1) % self.settings.n_arms)

    def count(self, arm: int, x: Any, of_round: int, asked: bool) -> None:
        self.counts[arm] += 1

    def evidence(self) -> Any:
        return Evidence(float(self.t), 12.0, None)


def variant(**steps: Any) -> Method:
    """The entry of `InTurn` with some of its steps replaced."""
    return Method("odd", "for tests", type("Odd", (InTurn,), steps))


def played(method: Method) -> coterie.Trials:
    return coterie.simulate(
        INST, method, trials=1, seed=3, workers=1, progress=False, threshold="heuristic", deltas=(0.1,)
    )


def returning(value: Any) -> Callable[..., Any]:
    return lambda *_: value


def raising(error: Exception) -> Callable[..., Any]:
    def step(*_: Any) -> None:
        raise error

    return step


def guessing(labels: Any, centers: Any) -> dict[str, Any]:
    return {"guess": property(returning((labels, centers)))}


def write_to_x(self: Any, arm: int, x: Any, of_round: int, asked: bool) -> None:
    x[0] = 5.0


def count_another(self: Any, arm: int, x: Any, of_round: int, asked: bool) -> None:
    self.counts[arm - 1] += 1


def write_to_truth(self: Any) -> Pull:
    self.settings.instance.labels[0] = 1
    return Pull(0)


def test_a_method_that_keeps_the_contract_runs() -> None:
    trials = played(variant())
    assert trials.stopping_times.tolist() == [[12]]
    assert trials.correct.all()
    assert played(variant(ask=returning(2))).stopping_times.tolist() == [[12]]  # a plain integer is an arm
    assert played(variant(ask=returning(np.int64(2)))).stopping_times.tolist() == [[12]]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"ask": returning(Pull(4))}, r"asked for arm 4: the arms are 0 to 3"),
        ({"ask": returning(-1)}, r"asked for arm -1: the arms are 0 to 3"),
        ({"ask": returning(Pull(1, -2))}, r"asked in round -2"),
        ({"ask": returning("first")}, r"gave no integer in ask, which gave 'first'"),
        ({"ask": returning(1.0)}, r"gave no integer in ask, which gave 1\.0"),
        ({"ask": returning(True)}, r"gave no integer in ask, which gave True"),
        ({"ask": returning((1, 2, 3))}, r"asked for \(1, 2, 3\): that is neither an arm nor a coterie.methods.Pull"),
        ({"ask": returning(None)}, r"asked for no arm, though it is not done"),
        ({"ask": raising(KeyError("lost"))}, r"failed in ask: KeyError: 'lost'"),
        ({"count": returning(None)}, r"was told one result and says that 0 counted in all, after 0 before"),
        ({"count": count_another}, r"was told a result of arm 0 and counts 0 of this arm, after 0 before"),
        ({"count": raising(ValueError("bad"))}, r"failed in count: ValueError: bad"),
        ({"count": write_to_x}, r"tried to change data that is not its own in count"),
        ({"pulls": property(returning([1]))}, r"gave pulls that are not 4 counts"),
        ({"t": property(returning("none")), "done": property(returning(False))}, r"gave no integer in t: 'none'"),
        ({"done": property(returning(1))}, r"gave done = 1: it must be True or False"),
        ({"guess": property(lambda self: None)}, r"is done, but has no groups: guess is None"),
        (guessing(np.arange(4), np.zeros((2, 2))), r"gave labels that are not 4 numbers from 0 to 1"),
        (guessing(np.zeros(4), np.zeros((2, 2))), r"gave labels that are not 4 numbers"),
        (guessing(np.array([0, 0, 1, 1]), np.zeros((3, 2))), r"gave centers that are not 2 rows of 2"),
        ({"guess": property(returning(7))}, r"gave a guess that is not labels and centers: 7"),
        ({"__init__": raising(OSError("no disk"))}, r"failed in start: OSError: no disk"),
    ],
)  # fmt: skip
def test_what_breaks_the_contract_is_named(steps: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match="method 'odd' " + message) as raised:
        played(variant(**steps))
    assert raised.value.method == "odd"
    same = pickle.loads(pickle.dumps(raised.value))  # as it comes back from another process
    assert (str(same), same.method) == (str(raised.value), "odd")


def test_what_starts_no_run_is_named() -> None:
    with pytest.raises(MethodError, match=r"method 'odd' started something that is no .*MethodRun: 3"):
        played(Method("odd", "", lambda settings: 3))  # type: ignore[arg-type, return-value]


def test_a_setting_that_a_method_refuses_is_the_callers_affair() -> None:
    def start(settings: Settings) -> MethodRun:
        raise SettingError("this method takes one dimension only, got 2", "dim")

    with pytest.raises(SettingError, match="one dimension only"):
        played(Method("odd", "", start))


def test_the_truth_that_a_method_is_given_cannot_be_changed() -> None:
    odd = Method("odd", "", type("Odd", (InTurn,), {"ask": write_to_truth}), needs=frozenset({"instance"}))
    with pytest.raises(MethodError, match="tried to change data that is not its own in ask"):
        played(odd)
    assert INST.labels.tolist() == [0, 0, 1, 1]


def settings_of(method: str = "odd") -> Settings:
    return Settings.of(4, 2, 2, method=method, noise=1.0)


def test_what_a_method_keeps_is_not_the_callers() -> None:
    """The value told is the caller's: neither side sees what the other does to it later."""
    kept: list[Any] = []

    def keep(self: Any, arm: int, x: Any, of_round: int, asked: bool) -> None:
        InTurn.count(self, arm, x, of_round, asked)
        kept.append(x)

    run = GuardedRun(variant(count=keep), settings_of())
    x = np.array([1.0, 2.0])
    run.count(0, x, 0, True)
    x[:] = 9.0
    assert kept[0].tolist() == [1.0, 2.0]
    pulls = run.pulls
    pulls[:] = 50
    assert run.pulls.tolist() == [1, 0, 0, 0]


def test_done_is_not_taken_back() -> None:
    answers = iter([True, False])
    run = GuardedRun(variant(done=property(lambda self: next(answers))), settings_of())
    assert run.done
    with pytest.raises(MethodError, match="took back that it is done"):
        run.done


def test_evidence_and_decisions_are_checked() -> None:
    with pytest.raises(MethodError, match=r"gave evidence that is no coterie\.methods\.Evidence: 3"):
        GuardedRun(variant(evidence=returning(3)), settings_of()).evidence()
    with pytest.raises(MethodError, match="gave decisions that are no list of dictionaries"):
        GuardedRun(variant(new_decisions=returning([3])), settings_of()).new_decisions()


def record_of(arms: list[int]) -> Record:
    """Each arm asked for, and told."""
    n = 2 * len(arms)
    kinds = np.array([ASK, RESULT] * len(arms))
    asks = np.where(kinds == RESULT, np.arange(n) - 1, NOBODY)
    rounds = np.zeros(n, dtype=np.int64)
    return Record(kinds, np.repeat(arms, 2), rounds, asks, (kinds == RESULT).astype(int), np.zeros((n, 2)), [])


def test_a_record_is_followed_by_checked_steps() -> None:
    run = GuardedRun(variant(), settings_of())
    assert run.follow(record_of([0, 1, 2])) == Followed(6, [])
    assert run.t == 3
    with pytest.raises(Departure, match="the next arm is 3"):
        run.follow(record_of([1]))
    with pytest.raises(MethodError, match="asked for arm 9"):
        GuardedRun(variant(ask=returning(9)), settings_of()).follow(record_of([0]))
    applied = GuardedRun(variant(ask=raising(AssertionError("a recorded ask consults no rule"))), settings_of())
    applied.apply(record_of([2, 2]))
    assert applied.pulls.tolist() == [0, 0, 2, 0]


def test_methods_of_the_package_are_not_guarded_and_registered_ones_are() -> None:
    assert not isinstance(methods.start(settings_of("uniform")), GuardedRun)
    methods.register(variant())
    try:
        run = methods.start(settings_of())
        assert isinstance(run, GuardedRun)
        assert isinstance(run.method_run, InTurn)
    finally:
        methods.unregister("odd")
    with pytest.raises(SettingError, match="unknown method 'odd': choose one of croc, shortlist, boc"):
        methods.start(settings_of())
