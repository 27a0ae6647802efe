"""`cluster`: measure until the groups are proven, or until the budget ends."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.methods.croc.method import CrocMethodRun

INST = coterie.Instance([0, 1, 1, 2, 0, 2, 2], [[0.0, 0.0, 1.0], [8.0, 0.0, 0.0], [0.0, 9.0, 0.0]])


class World:
    """Measurements with unit noise, and a record of which arms were measured. Names are letters from `first` on."""

    def __init__(
        self, inst: coterie.Instance = INST, seed: int = 0, fails_after: int | None = None, first: str = "a"
    ) -> None:
        self.inst, self.first = inst, first
        self.rng = np.random.default_rng(seed)
        self.calls: list[int] = []
        self.fails_after = fails_after

    def __call__(self, item: int | str) -> Any:
        arm = ord(item) - ord(self.first) if isinstance(item, str) else item
        if self.fails_after is not None and len(self.calls) >= self.fails_after:
            raise ConnectionError("the robot arm is stuck")
        self.calls.append(arm)
        return self.inst.means[arm] + self.rng.normal(size=self.inst.dim)


@pytest.mark.parametrize("method", ["boc", "boc-linear", "uniform", "oracle"])
@pytest.mark.parametrize("threshold", ["proven", "heuristic"])
def test_the_groups_are_proven(method: str, threshold: str) -> None:
    world = World()
    needs: dict[str, dict[str, Any]] = {"boc-linear": {"distance_ratio": 0.5}, "oracle": {"instance": INST}}
    more = needs.get(method, {})
    result = coterie.cluster(
        world, 7, 3, delta=0.01, method=method, threshold=threshold, progress=False, **{"noise": 1.0, **more}
    )
    assert result.done
    assert result.labels is not None
    assert result.centers is not None
    assert result.labels.tolist() == [0, 1, 1, 2, 0, 2, 2]
    assert result.t == len(world.calls) == result.pulls.sum()
    assert result.pulls.tolist() == np.bincount(world.calls).tolist()
    assert result.session.dim == 3  # found out from the first measurement
    assert result.session.delta == 0.01
    assert result.session.pending == []
    np.testing.assert_allclose(result.centers, INST.centers, atol=2.0)
    # The same conversation by hand.
    session, again = coterie.Session(7, 3, 3, 0.01, method, threshold, **{"noise": 1.0, **more}), World()
    while not session.done:
        arm = session.ask()
        session.tell(arm, again(arm))
    assert again.calls == world.calls
    assert session.to_dict() == result.session.to_dict()


@pytest.mark.parametrize("budget", [1, 5, 7, 12])
def test_the_budget_is_kept(budget: int) -> None:
    hard = coterie.Instance(INST.labels, 0.01 * INST.centers)
    world = World(hard)
    with pytest.warns(UserWarning, match=f"the budget of {budget} measurements ended before the proof"):
        result = coterie.cluster(world, 7, 3, budget=budget, progress=False, noise=1.0)
    assert len(world.calls) == result.t == budget
    assert not result.done
    assert (result.labels is None) == (budget < 7)  # a guess as soon as every arm was measured
    assert (result.centers is None) == (budget < 7)
    # The answer so far can be gone on with.
    assert result.session.ask() == (budget if budget < 7 else result.session.pending[0][1])


def test_a_budget_that_is_not_needed_changes_nothing() -> None:
    free, bounded = World(), World()
    result = coterie.cluster(free, 7, 3, progress=False, noise=1.0)
    again = coterie.cluster(bounded, 7, 3, budget=result.t, progress=False, noise=1.0)
    assert again.done
    assert bounded.calls == free.calls


@pytest.mark.parametrize("form", [float, np.float32, lambda x: [float(x)], lambda x: np.array([x])])
def test_one_dimension_comes_in_any_form(form: Callable[[float], Any]) -> None:
    rng = np.random.default_rng(1)
    result = coterie.cluster(lambda arm: form(20.0 * (arm % 2) + rng.normal()), 6, 2, progress=False, noise=1.0)
    assert result.done
    assert result.labels is not None
    assert result.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert result.centers is not None
    assert result.centers.shape == (2, 1)


def test_noise_and_names_reach_the_session() -> None:
    world = World()
    result = coterie.cluster(lambda arm: 100.0 * world(arm), 7, 3, noise=100.0, names=list("abcdefg"), progress=False)
    assert result.done
    assert result.session.names == tuple("abcdefg")
    assert result.t == coterie.cluster(World(), 7, 3, progress=False, noise=1.0).t
    assert result.centers is not None
    np.testing.assert_allclose(result.centers, 100.0 * INST.centers, atol=200.0)


@pytest.mark.parametrize("progress", [True, False])
def test_it_is_silent_without_a_terminal(progress: bool, capfd: pytest.CaptureFixture[str]) -> None:
    assert coterie.cluster(World(), 7, 3, progress=progress, noise=1.0).done
    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich.console

    seen: list[str] = []

    class Status:
        def start(self) -> None:
            seen.append("start")

        def stop(self) -> None:
            seen.append("stop")

        def update(self, text: str) -> None:
            seen.append(text)

    monkeypatch.setattr(rich.console.Console, "is_terminal", property(lambda _: True))
    monkeypatch.setattr(rich.console.Console, "status", lambda *_: Status())
    result = coterie.cluster(World(), 7, 3, noise=1.0)
    assert seen[0] == "start"
    assert seen[-1] == "stop"
    assert seen[-2] == f"{result.t} measurements; all 14 differences proven, all 7 items settled"
    seen.clear()
    with pytest.raises(ConnectionError):
        coterie.cluster(World(fails_after=4), 7, 3, noise=1.0)
    assert seen[-1] == "stop"


@pytest.mark.parametrize("fails_after", [0, 3, 9])
def test_what_measure_raises_comes_through(fails_after: int) -> None:
    world = World(fails_after=fails_after)
    with pytest.raises(ConnectionError, match="the robot arm is stuck"):
        coterie.cluster(world, 7, 3, method="boc", progress=False, noise=1.0)  # CROC would be done by the ninth
    assert len(world.calls) == fails_after


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_arms": 0}, ValueError, "n_arms must be at least 1, got 0"),
        ({"n_arms": 7.0}, TypeError, r"n_arms must be an integer, got 7\.0"),
        ({"n_clusters": 1}, ValueError, "n_clusters must be at least 2, got 1"),
        ({"n_clusters": 7}, ValueError, "got 7 clusters for 7 arms"),
        ({"delta": 2.0}, ValueError, r"delta must lie in \(0, 1\), got 2\.0"),
        ({"method": "best"}, ValueError, "unknown method 'best'"),
        ({"threshold": "none"}, ValueError, "unknown threshold 'none'"),
        ({"method": "boc-linear"}, ValueError, "distance_ratio is needed"),
        ({"method": "boc-linear", "distance_ratio": 2.0}, ValueError, r"got 2\.0"),
        ({"method": "oracle"}, ValueError, "needs the true instance"),
        ({"method": "oracle", "instance": INST, "n_arms": 8}, ValueError, "the instance has 7 arms"),
        ({"budget": 0}, ValueError, "budget must be at least 1, got 0"),
        ({"budget": 10.0}, TypeError, r"budget must be an integer, got 10\.0"),
        ({"names": ["a"]}, ValueError, "names must be 7 strings"),
        ({"noise": -1.0}, ValueError, "noise standard deviations must be positive"),
        ({"noise": "loud"}, ValueError, "noise must be None .any noise.*got 'loud'"),
        ({"noise": [1.0, 0.0, 1.0]}, ValueError, "must be positive, got 0.0"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, ValueError, "must be positive definite"),
        ({"noise": [[1.0], [2.0]]}, ValueError, r"got shape \(2, 1\)"),
        ({"noise": []}, ValueError, r"got shape \(0,\)"),
        ({"on_alarm": "ignore"}, ValueError, "on_alarm must be one of 'stop', 'continue', got 'ignore'"),
        ({"on_alarm": None}, ValueError, "on_alarm must be one of 'stop', 'continue', got None"),
        ({"session": 5}, TypeError, "session must be a coterie.Session, got 5"),
        (
            {"session": coterie.Session(8, 3, 3, noise=1.0)},
            ValueError,
            "session was started with n_arms=8, this call says 7",
        ),
        (
            {"session": coterie.Session(7, 3, 3, 0.1, noise=1.0)},
            ValueError,
            r"started with delta=0.1, this call says 0.05",
        ),
        (
            {"session": coterie.Session(7, 3, 3, method="boc", noise=1.0)},
            ValueError,
            "method='boc', this call says 'croc'",
        ),
        ({"session": coterie.Session(7, 3, 3, noise=2.0)}, ValueError, "noise=Noise"),
        ({"session": coterie.Session(7, 3, 3, noise=1.0), "noise": [1.0, 2.0]}, ValueError, r"got shape \(2,\)"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_measured(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    world = World()
    with pytest.raises(error, match=message):
        coterie.cluster(world, **{"n_arms": 7, "n_clusters": 3, "progress": False, "noise": 1.0, **change})
    assert world.calls == []


@pytest.mark.parametrize(
    ("measure", "error", "message"),
    [
        (5, TypeError, "measure must be a function of the arm, got 5"),
        (lambda arm: [], ValueError, r"item 0: a measurement must hold at least one number, got \[\]"),
        (lambda arm: 1e60, ValueError, "item 0: a measurement must lie within 1e\\+12 standard deviations"),
        (lambda arm: None, TypeError, "a measurement must hold real numbers, got None"),
        (lambda arm: "1.0", TypeError, "a measurement must hold real numbers, got '1.0'"),
        (lambda arm: [[1.0, 2.0]], ValueError, r"a measurement must have shape \(2,\), got shape \(1, 2\)"),
        (lambda arm: [1.0, [2.0]], ValueError, "a measurement must be a regular array"),
        (lambda arm: [1.0, float("nan")], ValueError, "a measurement must be finite, got nan"),
        (lambda arm: [1.0] * (1 + arm), ValueError, r"item 1: .* must have shape \(1,\), got shape \(2,\)"),
    ],
)
def test_bad_measurements_are_refused(measure: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        coterie.cluster(measure, 7, 3, progress=False, noise=1.0)


def notes(error: BaseException) -> str:
    return " ".join(getattr(error, "__notes__", []))


@pytest.mark.parametrize("method", ["croc", "boc", "uniform"])
@pytest.mark.parametrize(
    "bad", [ConnectionError("stuck"), KeyboardInterrupt(), None, "n.d.", [1.0], [1.0, np.nan, 2.0]]
)
def test_nothing_measured_is_lost(method: str, bad: Any) -> None:
    """Going on after an error equals never having had it."""
    settings: dict[str, Any] = {"delta": 1e-6, "method": method, "names": list("abcdefg"), "progress": False}
    whole = coterie.cluster(World(), 7, 3, **{"noise": 1.0, **settings}).session
    world = World()

    def measure(arm: int) -> Any:
        if len(world.calls) == 11:
            if isinstance(bad, BaseException):
                raise bad
            return bad
        return world(arm)

    with pytest.raises(type(bad) if isinstance(bad, BaseException) else (ValueError, TypeError)) as found:
        coterie.cluster(measure, 7, 3, **{"noise": 1.0, **settings})
    session = found.value.session  # type: ignore[attr-defined]
    assert session.t == 11
    ((_, arm),) = session.pending
    assert f"at item {arm} ({'abcdefg'[arm]}); 11 measurements are kept" in notes(found.value)
    if not isinstance(bad, BaseException):
        assert str(found.value).startswith(f"item {arm} ({'abcdefg'[arm]}): a measurement must")
    result = coterie.cluster(world, 7, 3, session=session, **{"noise": 1.0, **settings})
    assert result.done
    assert result.session is session
    assert session.to_dict() == whole.to_dict()


def test_an_error_at_the_first_measurement_has_nothing_to_keep() -> None:
    with pytest.raises(ConnectionError) as found:
        coterie.cluster(World(fails_after=0), 7, 3, progress=False, noise=1.0)
    assert found.value.session is None  # type: ignore[attr-defined]
    assert notes(found.value) == "coterie: at item 0; nothing had been measured before"


@pytest.mark.parametrize("method", ["croc", "boc"])
def test_an_interrupt_half_way_through_a_result_loses_nothing(method: str) -> None:
    """Ctrl-C at any line of the session: what was measured is there, and going on gives the same end."""
    settings: dict[str, Any] = {"delta": 0.01, "method": method, "threshold": "heuristic", "progress": False}
    whole = coterie.cluster(World(), 7, 3, **{"noise": 1.0, **settings})
    files = {"conversation.py", "croc.py", "drivers.py"}
    lines = 0

    def interrupted_at(line: int, world: World) -> coterie.Session | None:
        """The session that the interrupt carries; None if the run ended before it."""
        nonlocal lines
        lines = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal lines
            if Path(frame.f_code.co_filename).name not in files or frame.f_back.f_code.co_name == "_restore":
                return None
            if event == "line":
                lines += 1
                if lines == line:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            coterie.cluster(world, 7, 3, **{"noise": 1.0, **settings})
        except KeyboardInterrupt as error:
            sys.settrace(before)
            return getattr(error, "session", None)  # none before the first measurement
        finally:
            sys.settrace(before)
        return None

    assert interrupted_at(-1, World()) is None
    tried = 0
    for line in range(1, lines, 9):
        world = World()
        session = interrupted_at(line, world)
        assert (0 if session is None else len(session.log)) == len(world.calls)
        result = coterie.cluster(world, 7, 3, session=session, **{"noise": 1.0, **settings})
        assert world.calls == np.array([arm for arm, _ in whole.session.log]).tolist()
        assert result.session.events == whole.session.events if method == "croc" else result.t == whole.t
        tried += 1
    assert tried > 20


def test_where_warnings_are_errors_nothing_measured_is_lost() -> None:
    world = World()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="budget of 9 measurements ended") as raised:
            coterie.cluster(world, 7, 3, budget=9, method="boc", progress=False, noise=1.0)
    kept = raised.value.session  # type: ignore[attr-defined]
    assert len(kept.log) == len(world.calls) == 9
    assert "9 measurements are kept" in raised.value.__notes__[0]
    assert "session=sys.last_value.session" in raised.value.__notes__[0]  # nobody caught it: a notebook
    whole = coterie.cluster(World(), 7, 3, method="boc", progress=False, noise=1.0)
    result = coterie.cluster(world, 7, 3, method="boc", session=kept, progress=False, noise=1.0)
    assert world.calls == [arm for arm, _ in whole.session.log]
    assert result.t == whole.t


def test_a_session_of_ones_own_is_gone_on_with() -> None:
    """Its open asks are measured first, and results that nobody asked for are fine."""
    session = coterie.Session(7, 3, 3, names=list("abcdefg"), noise=1.0)
    first, world = session.ask(3), World()
    session.tell(6, world(6))
    result = coterie.cluster(world, 7, 3, session=session, progress=False, noise=1.0)
    assert world.calls[1:4] == first
    assert result.done
    assert result.session is session
    assert result.t == len(world.calls)
    again = coterie.cluster(world, 7, 3, session=session, progress=False, noise=1.0)
    assert again.t == len(world.calls)
    with pytest.warns(UserWarning, match="budget of 9"):
        early = coterie.cluster(world, 7, 3, budget=9, method="boc", progress=False, noise=1.0)
    with pytest.warns(UserWarning, match="budget of 12"):
        early = coterie.cluster(world, 7, 3, budget=12, method="boc", session=early.session, progress=False, noise=1.0)
    assert early.t == 12  # those before are counted


def test_what_it_looks_like() -> None:
    result = coterie.cluster(World(), 7, 3, progress=False, noise=1.0)
    looks = "  homogeneity: each group looks like one: its measurements differ by no more than chance (tested at 1 %).>"
    assert repr(result).splitlines() == [
        f"<Result after {result.t} measurements: {result.session.verdict}, labels [0, 1, 1, 2, 0, 2, 2]",
        looks,
    ]
    assert repr(result.session).endswith(f"croc: {result.t} measurements, {result.session.verdict}\n{looks}")
    assert result.session.verdict == (
        "proven: at least 3 groups; and if there are exactly 3 groups, the items of a group are alike, those of "
        "different groups are not"
    )
    assert repr(coterie.Session(7, 3, 3, noise=1.0)) == (
        "<Session 7 arms in 3 groups, dim=3, delta=0.05, croc: 0 measurements, 7 arms not measured yet>"
    )
    with pytest.warns(UserWarning, match="there are no groups yet"):
        assert repr(coterie.cluster(World(), 7, 3, budget=2, progress=False, noise=1.0)).endswith("no groups yet>")


# More groups than were said.

THREE = coterie.Instance([0, 1, 0, 2, 1, 2], [[0.0], [20.0], [50.0]])
CLOSE = coterie.Instance(np.repeat([0, 1, 2], 4), [[0.0], [30.0], [36.0]])


HARD = coterie.Instance(THREE.labels, 0.001 * THREE.centers)


@pytest.fixture
def alarmed_at_nine(monkeypatch: pytest.MonkeyPatch) -> None:
    """CROC raises an alarm with the ninth result; on `HARD` there is no proof by then."""
    monkeypatch.setattr(CrocMethodRun, "alarm", property(lambda driver: (3, 0, 1) if driver.t >= 9 else None))


def test_items_that_differ_end_the_run() -> None:
    """Groups so far apart may show the proof for K, and that K is refuted, at once."""
    world = World(THREE)
    with pytest.warns(UserWarning, match="K = 2 is refuted") as said:
        result = coterie.cluster(world, 6, 2, progress=False, noise=1.0)
    assert result.alarm is not None
    assert {int(THREE.labels[arm]) for arm in result.alarm.arms} == {0, 1, 2}
    assert result.t == len(world.calls) < 30
    assert "go on" not in str(said[0].message)
    assert result.done == result.session.done
    assert ("the data refute K = 2" if result.done else "K is refuted") in repr(result).splitlines()[0]


@pytest.mark.usefixtures("alarmed_at_nine")
def test_an_alarm_ends_the_run() -> None:
    world = World(HARD, first="u")
    with pytest.warns(UserWarning, match="an alarm ended the run") as said:
        result = coterie.cluster(world, 6, 2, names=list("uvwxyz"), progress=False, noise=1.0)
    assert len(said) == 1
    assert not result.done
    assert result.alarm == result.session.alarm
    assert result.alarm is not None
    assert result.alarm.names == ("u", "v", "x")
    assert result.homogeneity is None
    assert result.t == len(world.calls) == 9
    text = str(said[0].message)
    assert text.startswith(f"an alarm ended the run after {result.t} measurements, without a proof: the groups are a ")
    assert str(result.alarm) in text
    assert "go on" not in text
    first, second = repr(result).splitlines()
    assert first.startswith(f"<Result after {result.t} measurements: not proven, and K is refuted, labels [")
    assert second == f"  alarm: {result.alarm.seen}>"


@pytest.mark.usefixtures("alarmed_at_nine")
def test_after_an_alarm_it_goes_on_only_if_told_to() -> None:
    with pytest.warns(UserWarning, match="an alarm ended the run"):
        result = coterie.cluster(World(HARD), 6, 2, progress=False, noise=1.0)
    world, session = World(HARD, seed=1), result.session
    before = session.to_dict()
    with pytest.warns(UserWarning, match="an alarm ended the run"):
        again = coterie.cluster(world, 6, 2, session=session, progress=False, noise=1.0)
    assert world.calls == []
    assert session.to_dict() == before
    assert (again.t, again.alarm, again.done) == (result.t, result.alarm, False)
    budget = result.t + 15
    with pytest.warns(UserWarning, match="K = 2 is refuted") as said:
        more = coterie.cluster(
            world, 6, 2, session=session, budget=budget, on_alarm="continue", progress=False, noise=1.0
        )
    assert len(world.calls) == 15
    assert more.alarm == result.alarm
    assert not more.done
    text = str(said[0].message)
    assert str(more.alarm) in text
    assert "go on" not in text
    assert text.startswith(f"the budget of {budget} measurements ended before the proof, after an alarm: the groups")


@pytest.mark.usefixtures("alarmed_at_nine")
def test_where_warnings_are_errors_an_alarm_keeps_what_was_measured() -> None:
    world = World(HARD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="an alarm ended the run") as found:
            coterie.cluster(world, 6, 2, progress=False, noise=1.0)
    assert len(found.value.session.log) == len(world.calls) == 9  # type: ignore[attr-defined]


def test_a_proof_of_groups_that_look_mixed_warns() -> None:
    with pytest.warns(UserWarning, match="looks mixed") as said:
        result = coterie.cluster(World(CLOSE, seed=1), 12, 2, progress=False, noise=1.0)
    assert result.done
    assert result.alarm is None
    assert result.homogeneity is not None
    assert result.homogeneity == result.session.homogeneity
    assert not result.homogeneity
    against = "proven: at least 2 groups; not proven: that the items of a group are alike, since a group looks mixed"
    assert str(said[0].message) == f"{against}: {result.homogeneity}"
    first, second = repr(result).splitlines()
    assert f": {against}, labels [" in first
    assert second == f"  homogeneity: {result.homogeneity.seen()}>"


def test_a_proof_of_what_is_refuted_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alarm was raised, and the run, told to go on, came to a proof for the K given."""
    monkeypatch.setattr(CrocMethodRun, "alarm", property(lambda driver: (0, 4, 8) if driver.t > 5 else None))
    with pytest.warns(UserWarning, match="the data refute K = 2") as said:
        result = coterie.cluster(World(CLOSE, seed=1), 12, 2, on_alarm="continue", progress=False, noise=1.0)
    assert result.done
    against = "not proven: that the items of a group are alike, since the data refute K = 2"
    assert str(said[0].message) == f"proven: at least 2 groups; {against}: {result.alarm}"
    lines = repr(result).splitlines()
    assert against in lines[0]
    assert lines[1].startswith("  alarm: K = 2 is refuted: items 0, 4 and 8 are pairwise known to differ")
    assert len(lines) == 3


def test_groups_that_look_like_one_are_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = coterie.cluster(World(THREE), 6, 3, progress=False, noise=1.0)
    assert result.done
    assert result.homogeneity
