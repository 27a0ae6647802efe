"""Plain steps until compiled ones are there: the same run, whenever it changes from one to the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.engine import ahead, at_once, cached, compile_watch, compiled, run
from coterie.engine.ahead import BackgroundCompiler, in_foreground, is_in_foreground, may_compile_behind
from coterie.engine.at_once import Entrance, plain_seconds, tried
from coterie.engine.compile_watch import CompileWatch, compilation, waiting_for
from coterie.engine.croc import stepping
from coterie.engine.croc.state import UNSEEN
from coterie.engine.plain import plain_module
from coterie.session import Session

NOISES = {
    "known": 1.0,
    "any": None,
    "gaussian": "gaussian",
    "diagonal": coterie.Gaussian("diagonal"),
    "scalar": coterie.Gaussian("scalar"),
    "counts": coterie.Counts(10),
    "bounded": coterie.Bounded(0.0, 10.0),
    "at most": coterie.AtMost(1.0),
    "symmetric": coterie.Symmetric(),
}
MEANS = np.array([[4.0, 4.0], [4.0, 5.2], [5.5, 4.5]])
LABELS = np.array([0, 1, 2, 0, 1, 2, 0])


class Pretended:
    """An entrance whose compiled steps are not there for a number of looks."""

    def __init__(self, module: str, compiled: Callable[[], Any], looks: float) -> None:
        self._module, self.compiled, self._looks = module, compiled, looks

    def plain(self, words: Any = ()) -> ModuleType | None:
        return plain_module(self._module) if self._looks > 0 else None

    @property
    def is_behind(self) -> bool:
        self._looks -= 1
        return self._looks > 0


def pretend(monkeypatch: pytest.MonkeyPatch, looks: float) -> None:
    """No steps are compiled for so many looks; 0: they all are."""
    for owner in (stepping, run):
        real = owner.load
        module = "coterie.engine.croc.drive" if owner is stepping else "coterie.engine.advance"
        monkeypatch.setattr(owner, "_entrance", Pretended(module, real, looks))


def loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled steps, loaded before anything is pretended."""
    for owner in (stepping, run):
        module = owner.load()
        monkeypatch.setattr(owner, "load", lambda module=module: module)


def measured(noise: Any, rng: np.random.Generator, arm: int) -> Any:
    mean = MEANS[LABELS[arm]]
    if isinstance(noise, coterie.Counts):
        return rng.binomial(10, (2.0 * mean - 4.0) / 10.0)
    return np.clip(mean + rng.uniform(-1.7, 1.7, 2), 0.0, 10.0)


def played(results: int, seed: int, workers: int = 1, **settings: Any) -> tuple[Session, list[Any]]:
    """A session of so many results at most, and all that it said on the way."""
    rng = np.random.default_rng(seed)
    session = Session(7, 3, 2, delta=0.05, **settings)
    said: list[Any] = []
    while not session.done and session.t < results:
        tickets = session.open(workers)
        for ticket in tickets[::-1]:
            if workers > 1 and rng.uniform() < 0.1:
                session.forget(ticket.number)
            elif not session.done:
                session.tell(ticket.arm, measured(settings.get("noise"), rng, ticket.arm), ticket.number)
        said.append([ticket.arm for ticket in tickets])
        if session.t % 20 == 0:
            said.append((str(session.evidence), str(session._conversation.run.standing())))
    said += [session.done, session.t, str(session.labels), session.events if session.certifies else []]
    return session, said


def memory_of(session: Session) -> dict[str, Any]:
    found = session._conversation.run.memory()
    assert found is not None
    return found


def same_bits(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("noise", NOISES)
def test_plain_and_compiled_steps_keep_the_run_to_the_last_bit(
    noise: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads(monkeypatch)
    pretend(monkeypatch, 0)
    compiled_session, compiled_said = played(160, 1, workers, noise=NOISES[noise])
    for looks in (float("inf"), 30):  # never compiled, and compiled in the middle
        pretend(monkeypatch, looks)
        session, said = played(160, 1, workers, noise=NOISES[noise])
        assert said == compiled_said
        assert same_bits(memory_of(session), memory_of(compiled_session))
        is_plain = session._conversation.run._run._steps.is_plain  # type: ignore[attr-defined]
        assert is_plain == (looks == float("inf"))
    assert any(event["event"] == "round" for event in compiled_session.events)


@pytest.mark.parametrize("noise", ["known", "any"])
def test_plain_and_compiled_steps_keep_decisions_in_many_dimensions(
    noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over more than three dimensions may be added up in another order: asks and stops are the same."""

    def asked() -> tuple[list[int], bool, str]:
        rng = np.random.default_rng(5)
        centers = 0.9 * rng.normal(size=(3, 9))
        session = Session(7, 3, 9, delta=0.05, noise=NOISES[noise])
        arms = []
        while not session.done and session.t < 120:
            arms.append(session.ask())
            session.tell(arms[-1], centers[LABELS[arms[-1]]] + rng.normal(size=9))
        return arms, session.done, str(session.labels)

    loads(monkeypatch)
    pretend(monkeypatch, 0)
    compiled = asked()
    assert len(compiled[0]) > 20
    for looks in (float("inf"), 15):
        pretend(monkeypatch, looks)
        assert asked() == compiled


@pytest.mark.parametrize("method", ["boc", "boc-linear", "uniform"])
def test_plain_and_compiled_steps_of_the_papers_methods_keep_the_run(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sums may be added up in another order: decisions are the same, numbers to 1e-9."""
    loads(monkeypatch)
    settings = {"method": method, "noise": 1.0, "threshold": "heuristic"}
    if method == "boc-linear":
        settings["distance_ratio"] = 0.5
    pretend(monkeypatch, 0)
    compiled_session, compiled_said = played(120, 2, 2, **settings)
    for looks in (float("inf"), 50):
        pretend(monkeypatch, looks)
        session, said = played(120, 2, 2, **settings)
        assert [one for one in said if isinstance(one, list)] == [one for one in compiled_said if isinstance(one, list)]
        assert (session.t, session.done) == (compiled_session.t, compiled_session.done)
        one, other = memory_of(session), memory_of(compiled_session)
        names = one.keys() - {"state.pass_labels"}  # room that is not filled before it is needed
        assert all(np.allclose(one[name], other[name], rtol=1e-9, atol=1e-9, equal_nan=True) for name in names)


def test_a_saved_run_goes_on_compiled_where_plain_steps_left_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch)
    pretend(monkeypatch, float("inf"))
    session, _ = played(60, 3, noise=None)
    saved = session.to_dict()
    pretend(monkeypatch, 0)
    restored = Session.from_dict(saved)
    assert restored.events == session.events
    assert same_bits(memory_of(restored), memory_of(session))


def test_costs_are_followed_by_plain_steps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch)
    found = []
    for looks in (0, float("inf")):
        pretend(monkeypatch, looks)
        found.append(played(120, 4, noise=None, costs=[1, 2, 3, 1, 2, 3, 1])[1])
    assert found[0] == found[1]


def test_what_plain_steps_cannot_do_is_done_again_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain step that fails half way leaves no trace."""
    loads(monkeypatch)
    pretend(monkeypatch, 0)
    _, expected = played(80, 5, noise=None)
    pretend(monkeypatch, float("inf"))
    drive, failed = plain_module("coterie.engine.croc.drive").drive, []

    def fails_late(state: Any, *rest: Any) -> Any:
        found = drive(state, *rest)
        if state.ints[UNSEEN] == 0:
            failed.append(True)
            state.sums[:] = np.nan
            raise ValueError("math domain error")
        return found

    monkeypatch.setattr(plain_module("coterie.engine.croc.drive"), "drive", fails_late)
    session, said = played(80, 5, noise=None)
    assert said == expected
    assert failed == [True]
    assert not session._conversation.run._run._steps.is_plain  # type: ignore[attr-defined]


def test_a_large_plan_waits_for_the_compiler_and_a_first_pass_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch)
    pretend(monkeypatch, float("inf"))
    session = Session(700, 30, 8, noise=1.0)
    steps = session._conversation.run._run._steps  # type: ignore[attr-defined]
    assert plain_seconds((700, 30, 8), 1, 1) > at_once.PATIENCE
    for arm in range(699):
        session.ask()
        session.tell(arm, np.full(8, 0.1 * arm))
    assert steps.is_plain
    session.ask()
    session.tell(699, np.zeros(8))
    assert not steps.is_plain


def test_arrays_are_as_they_were_after_an_error_in_arithmetic() -> None:
    array = np.arange(3.0)

    def divide() -> float:
        array[:] = 7.0
        return 1 / 0

    assert tried(divide, [array]) is None
    assert array.tolist() == [0.0, 1.0, 2.0]
    assert tried(lambda: np.float64(1.0) / np.float64(0.0), []) == np.inf


# The process that compiles.


def start_sleeper(self: BackgroundCompiler, *details: Any) -> None:
    self._process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])  # type: ignore[assignment]
    self._owner, self.begun = os.getpid(), 0.0


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Entrance:
    """An entrance of the real engine that is taken for one without compiled code, and a process that only sleeps."""
    monkeypatch.setenv(ahead.SWITCH, "1")
    monkeypatch.setattr(BackgroundCompiler, "__init__", start_sleeper)
    run.load()
    return Entrance("the engine", "coterie.engine.advance", "advance", "coterie.engine.run", list)


@pytest.fixture
def nothing_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "is_cached", lambda *details: False)


@pytest.mark.usefixtures("nothing_cached")
def test_a_killed_compiler_is_not_waited_for(
    behind: Entrance, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert behind.plain() is plain_module("coterie.engine.advance")
    assert "in the background" in capfd.readouterr().err
    assert behind.plain() is not None  # and no second process
    assert capfd.readouterr().err == ""
    process = behind._behind
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not behind.is_behind
    assert behind.plain() is None
    monkeypatch.setattr(at_once, "announce_compilation", lambda *details: None)
    assert behind.compiled().advance is run.load().advance


@pytest.mark.usefixtures("nothing_cached")
def test_a_forked_process_asks_again(behind: Entrance) -> None:
    behind.plain()
    process = behind._behind
    assert process is not None
    process._owner = -1
    assert not behind.is_behind
    behind.plain()
    assert behind._behind is not process
    for one in (process, behind._behind):
        assert one is not None
        os.kill(one.pid, signal.SIGKILL)
        one.wait()


def test_without_a_folder_for_the_cache_nothing_is_started(behind: Entrance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "cache_folder", lambda function: None)
    assert behind.plain() is None
    assert behind._behind is None


def test_entries_do_without_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(cache: bool = False, **options: Any) -> Callable[[Any], Any]:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiled, "_njit", refused)
    assert compiled.entry(len) is len
    assert cached.cache_folder(len) is None


def test_nothing_is_started_where_it_is_switched_off_or_everything_is_there(
    behind: Entrance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ahead.SWITCH, "0")
    assert not may_compile_behind()
    assert behind.plain() is None
    monkeypatch.setenv(ahead.SWITCH, "1")
    with in_foreground():
        assert is_in_foreground()
        assert behind.plain() is None
    monkeypatch.setattr(at_once, "is_cached", lambda *details: True)
    assert behind.plain() is None
    assert behind._behind is None


def test_whoever_waits_for_it_is_shown_as_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_watch, "_watch", CompileWatch())  # another test may have compiled a second ago
    with waiting_for("CROC", 0.0):
        found = compilation()
        assert found is not None
        assert (found.what, found.seconds < found.expected) == ("CROC", True)
    assert compilation() is None


def test_importing_starts_no_process() -> None:
    code = """
import subprocess, coterie
import scipy.stats  # which asks NumPy 1.26 for numpy.testing, and that one starts lscpu
def refuse(*details, **more):
    raise AssertionError("a process was started")
subprocess.Popen.__init__ = refuse
import coterie.engine.croc.run, coterie.engine.run, coterie.methods, coterie.session, coterie.simulate
from coterie.engine import run
from coterie.engine.croc import stepping
from coterie.engine.croc.state import UNSEEN
print(run._entrance._behind, stepping._entrance._behind)
"""
    environment = os.environ | {ahead.SWITCH: "1"}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert answer.stdout.split() == ["None", "None"]


def test_one_compiles_while_others_wait(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from coterie.engine.ahead import _alone\n"
    code += "with _alone(Path(sys.argv[1])): print('mine', flush=True)"
    with ahead._alone(tmp_path):
        other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(2.0)
    assert other.communicate(timeout=60)[0] == "mine\n"


COLD = """
import numpy as np, coterie
from coterie.engine import run
session = coterie.Session(5, 2, 1, noise=1.0, method="boc", delta=1e-9)
rng, means, arms, plain = np.random.default_rng(0), [0.0, 0.0, 2.0, 2.0, 2.0], [], []
for i in range(40):
    if i == 20 and run._entrance._behind is not None:
        run._entrance._behind.wait()
    plain.append(session._conversation.run._run._plain is not None)
    arms.append(session.ask())
    session.tell(arms[-1], [means[arms[-1]] + rng.normal()])
print(arms, plain[0], plain[19], plain[-1], len(run.load().advance.signatures))
"""


def test_a_cold_start_answers_at_once_and_goes_on_compiled(tmp_path: Path) -> None:
    """With an empty cache, for real: a process fills it, and the same session then uses what it has compiled."""
    found = []
    for _ in range(2):
        environment = os.environ | {ahead.SWITCH: "1", "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-W", "error", "-c", COLD]
        found.append(subprocess.run(command, capture_output=True, text=True, env=environment, check=True))
    cold, warm = found
    assert "in the background" in cold.stderr
    assert warm.stderr == ""
    assert cold.stdout.split("]")[0] == warm.stdout.split("]")[0]
    assert cold.stdout.split()[-4:] == ["True", "True", "False", "1"]
    assert warm.stdout.split()[-4:] == ["False", "False", "False", "1"]
