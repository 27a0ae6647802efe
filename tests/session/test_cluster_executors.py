"""`cluster` with an executor: threads, one that remembers results, one that is shut, and a real Dask cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.session.workers import places_of

TRUTH = [0, 1, 1, 0, 1]
SETTINGS: dict[str, Any] = {"n_clusters": 2, "noise": 1.0, "delta": 1e-9, "progress": False}


def measure(name: str) -> float:
    """Of one of TRUTH, from the entropy of the system: no two results are equal."""
    return 6.0 * TRUTH[int(name)] + float(np.random.default_rng().standard_normal())


def checked(result: Any) -> None:
    assert result.done
    assert result.labels.tolist() == TRUTH
    values = [event["values"][0] for event in result.session.events if "values" in event]
    assert len(TRUTH) < len(values) <= result.session.n_measurements  # one that came after the proof plays no role
    assert len(set(values)) == len(values), "no result was counted twice"
    verdict = coterie.verify(result.session.certificate, result.session.events)
    assert verdict.valid, verdict.problems


def test_as_many_at_once_as_the_executor_has_workers() -> None:
    lock, both = threading.Lock(), threading.Barrier(2)
    under_way, most, calls = [0], [0], [0]

    def counted(name: str) -> float:
        with lock:
            calls[0] += 1
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            first = 1 < calls[0] <= 3
        if first:
            both.wait(300.0)  # with one at a time it would hang
        value = measure(name)
        with lock:
            under_way[0] -= 1
        return value

    with ThreadPoolExecutor(max_workers=2) as executor:
        result = coterie.cluster(counted, list("01234"), workers=executor, **SETTINGS)
        assert executor.submit(int, "7").result() == 7, "it is somebody else's, and stays open"
    checked(result)
    assert most == [2]


class Remembering(Executor):
    """Calls with the same arguments have one result, as for Dask, which takes functions to be pure."""

    def __init__(self) -> None:
        self.results: dict[Any, Future[Any]] = {}

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        key = repr((function, given, named))
        if key not in self.results:
            self.results[key] = Future()
            self.results[key].set_result(function(*given, **named))
        return self.results[key]


def test_no_result_is_taken_for_another() -> None:
    checked(coterie.cluster(measure, list("01234"), workers=Remembering(), **SETTINGS))


def test_what_fails_is_raised_with_the_session_and_goes_on() -> None:
    failures = [2]

    def failing(name: str) -> float:
        if name == "3" and failures[0]:
            failures[0] -= 1
            raise OSError("the instrument is off")
        return measure(name)

    with ThreadPoolExecutor(max_workers=1) as executor:
        with pytest.raises(OSError, match="the instrument is off") as stopped:
            coterie.cluster(failing, list("01234"), workers=executor, **SETTINGS)
        first = stopped.value.session  # type: ignore[attr-defined]
        with pytest.raises(OSError, match="the instrument is off") as stopped:
            coterie.cluster(failing, list("01234"), workers=executor, session=first, **SETTINGS)
        again = stopped.value.session  # type: ignore[attr-defined]
        kept = again.n_measurements
        result = coterie.cluster(failing, list("01234"), workers=executor, session=again, **SETTINGS)
    assert result.session.n_measurements > kept > 0
    checked(result)
    with pytest.raises(RuntimeError, match="after shutdown"):
        coterie.cluster(measure, list("01234"), workers=executor, **SETTINGS)


class Waiting(Executor):
    """Makes its first calls at once; the fourth is interrupted, with another one that has not begun."""

    _max_workers = 2

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.futures.append(future)
        if len(self.futures) < 4:
            future.set_result(function(*given, **named))
        elif len(self.futures) == 5:
            self.futures[3].set_exception(KeyboardInterrupt())
        return future


def test_what_has_not_begun_is_called_off_when_somebody_interrupts() -> None:
    executor = Waiting()
    with pytest.raises(KeyboardInterrupt) as stopped:
        coterie.cluster(measure, list("01234"), workers=executor, **SETTINGS)
    assert len(executor.futures) == 5
    assert executor.futures[4].cancelled()
    assert stopped.value.session.n_measurements == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("workers", [0, 1.5, "8", None, object()])
def test_what_is_no_number_of_workers_is_refused(workers: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="workers must be"):
        coterie.cluster(measure, list("01234"), workers=workers, **SETTINGS)


def test_how_many_at_once() -> None:
    assert places_of(ThreadPoolExecutor(max_workers=3)) == 3
    assert places_of(Remembering()) >= 1


@pytest.mark.slow
def test_a_dask_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    place = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**place) as cluster, distributed.Client(cluster) as client:
        executor = client.get_executor()
        assert places_of(executor) == 2
        checked(coterie.cluster(measure, list("01234"), workers=executor, **SETTINGS))
