"""Methods from outside the package in `simulate`: by name or by entry, in threads and on Dask workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import methods
from coterie.methods import Method, MethodError, Reading, Tally

INST = coterie.Instance([0, 1, 1, 0], [[0.0, 0.0], [4.0, 1.0]])


def noisiest(tally: Tally) -> int:
    """The arm farthest from its center."""
    return int(np.argmax(((tally.means - tally.centers[tally.labels]) ** 2).sum(axis=1)))


def after_twenty(tally: Tally) -> Reading:
    """After twenty results."""
    return Reading(tally.t, 20)


@pytest.fixture
def registered() -> Iterator[str]:
    methods.register(methods.compose("noisiest", sampling=noisiest, stopping="pairs"))
    yield "noisiest"
    methods.unregister("noisiest")


def check_that_threads_end(before: int) -> None:
    """A thread that was just being started when a signal came ends a moment later."""
    until = time.monotonic() + 60.0
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_a_registered_method_is_simulated_by_name(registered: str) -> None:
    settings: dict[str, Any] = {"deltas": (0.2, 0.01), "trials": 6, "seed": 2, "progress": False}
    one, three = (coterie.simulate(INST, registered, workers=workers, **settings) for workers in (1, 3))
    entry = coterie.simulate(INST, methods.METHODS[registered], workers=2, **settings)
    for other in (three, entry):
        assert np.array_equal(other.stopping_times, one.stopping_times)
        assert np.array_equal(other.correct, one.correct)
    assert (one.method, one.threshold) == ("noisiest", "proven")
    assert (one.stopping_times[:, 0] <= one.stopping_times[:, 1]).all()
    assert len(set(one.stopping_times[:, 0].tolist())) > 1
    assert (
        coterie.simulate(
            INST, registered, max_pulls=5, trials=2, progress=False, threshold="heuristic", deltas=(0.1,)
        ).stopping_times.tolist()
        == [[-1]] * 2
    )


def test_an_error_of_a_method_ends_the_others_and_is_passed_on() -> None:
    def breaks(tally: Tally) -> int:
        return 99 if tally.t > 30 else 0

    before = threading.active_count()
    odd = methods.compose("odd", sampling=breaks, stopping=lambda tally: Reading(0, 1))
    with pytest.raises(MethodError, match="method 'odd' asked for arm 99: the arms are 0 to 3"):
        coterie.simulate(INST, odd, trials=200, workers=3, progress=False, threshold="heuristic", deltas=(0.1,))
    check_that_threads_end(before)


def test_an_interrupt_ends_trials_that_never_would() -> None:
    main = threading.main_thread().ident
    assert main is not None
    sent: list[int] = []

    def interrupts(tally: Tally) -> Reading:
        if tally.t == 50 and not sent:
            sent.append(tally.t)
            signal.pthread_kill(main, signal.SIGINT)
        return Reading(0, 1)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        coterie.simulate(
            INST,
            methods.compose("endless", stopping=interrupts),
            trials=4,
            workers=2,
            progress=False,
            threshold="heuristic",
            deltas=(0.1,),
        )
    check_that_threads_end(before)


SCRIPT = """
import json, sys
import coterie
from coterie import methods


class Lowest:
    def __init__(self):
        self.calls = 0

    def __call__(self, tally):
        self.calls += 1
        return int(tally.pulls.argmin()) if self.calls % 2 else 0


methods.register(methods.compose("lowest", sampling=Lowest, stopping="pairs"))
instance = coterie.Instance([0, 1, 1, 0], [[0.0, 0.0], [4.0, 1.0]])
found = [
    coterie.simulate(instance, "lowest", trials=6, seed=3, progress=False, **where).stopping_times.tolist()
    for where in ({}, {"scheduler": sys.argv[1]})
]
print(json.dumps(found))
"""

pytest_dask = pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals and process groups of POSIX")


@pytest.mark.slow
@pytest_dask
def test_what_a_script_registers_runs_on_workers_that_never_heard_of_it(two_workers: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    answer = subprocess.run(
        [sys.executable, str(script), two_workers.address], capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0, answer.stderr
    here, there = json.loads(answer.stdout)
    assert here == there
    assert len(here) == 6


@pytest.mark.slow
@pytest_dask
def test_a_method_that_cannot_travel_is_named(two_workers: Any) -> None:
    lock = threading.Lock()

    def start(settings: Any) -> Any:
        return lock

    with pytest.raises(MethodError, match=r"method 'held' cannot be sent to the workers: .*module that the workers"):
        coterie.simulate(
            INST,
            Method("held", "", start),
            trials=1,
            scheduler=two_workers.address,
            progress=False,
            threshold="heuristic",
            deltas=(0.1,),
        )


@pytest.mark.slow
@pytest_dask
def test_a_method_whose_module_the_workers_lack_is_named(
    two_workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here_rules.py").write_text("def first(tally):\n    return 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here_rules  # type: ignore[import-not-found]

    method = methods.compose("first", sampling=only_here_rules.first)
    with pytest.raises(
        MethodError, match="method 'first' cannot be loaded on a worker: No module named 'only_here_rul"
    ):
        coterie.simulate(
            INST, method, trials=1, scheduler=two_workers.address, progress=False, threshold="heuristic", deltas=(0.1,)
        )


@pytest.mark.slow
@pytest_dask
def test_an_error_of_a_method_comes_back_from_a_worker(two_workers: Any) -> None:
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        odd = methods.compose("odd", sampling=wants_arm_ninety, stopping=after_twenty)
        with pytest.raises(MethodError, match="method 'odd' asked for arm 90") as raised:
            coterie.simulate(
                INST, odd, trials=1, scheduler=two_workers.address, progress=False, threshold="heuristic", deltas=(0.1,)
            )
        assert raised.value.method == "odd"
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def wants_arm_ninety(tally: Tally) -> int:
    """An arm that there is not."""
    return 90
