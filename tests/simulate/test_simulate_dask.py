"""A Dask cluster gives the numbers of this machine, also when workers die, and is left idle whatever happens.

The scheduler and its workers are processes of their own that talk over TCP.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.simulate import remote
from coterie.simulate.bulk import Outcome, plan_for, run_trials

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,  # a cluster of processes
    pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals and process groups of POSIX"),
]

INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
SLOW = coterie.Instance(np.arange(400) % 8, 10 * np.random.default_rng(3).normal(size=(8, 4)))  # tens of ms a trial
ENDLESS = coterie.Instance(np.arange(11) % 10, 1e-4 * np.random.default_rng(0).normal(size=(10, 1)))


def trials_at_work(client: Any) -> int:
    """Tasks that the workers are really running, whether the scheduler still knows of them or not."""

    def count(dask_worker: Any) -> int:
        return len(dask_worker.active_threads)

    return sum(client.run(count).values())


@pytest.mark.parametrize("method", ["boc", "uniform", "croc", "boc-linear", "oracle"])
def test_cluster_keeps_the_numbers(two_workers: Any, method: str) -> None:
    settings: dict[str, Any] = {
        "deltas": (1e-3, 0.1), "threshold": ("proven", "heuristic"), "trials": 40, "seed": 7, "distance_ratio": 0.5,
    }  # fmt: skip
    here = coterie.simulate(INST, method, **settings)
    there = coterie.simulate(INST, method, scheduler=two_workers.address, **settings)
    assert list(there) == list(here)
    for kind, trials in here.items():
        assert np.array_equal(there[kind].stopping_times, trials.stopping_times)
        assert np.array_equal(there[kind].correct, trials.correct)
        assert (there[kind].method, there[kind].deltas, there[kind].seed) == (method, (1e-3, 0.1), 7)


def test_a_client_is_used_and_left_open(two_workers: Any) -> None:
    here = coterie.simulate(INST, max_pulls=50, trials=9, method="boc", threshold="heuristic", deltas=(0.1,))
    with two_workers.client() as client:
        for _ in range(2):
            there = coterie.simulate(
                INST, max_pulls=50, trials=9, scheduler=client, method="boc", threshold="heuristic", deltas=(0.1,)
            )
            assert np.array_equal(there.stopping_times, here.stopping_times)
        assert client.status == "running"
        two_workers.until(lambda: not client.futures)  # nothing is kept on the cluster
    with pytest.raises(ConnectionError, match=r"the distributed\.Client is closed"):
        coterie.simulate(INST, trials=1, scheduler=client, method="boc", threshold="heuristic", deltas=(0.1,))


def test_an_asynchronous_client_is_refused(two_workers: Any) -> None:
    from distributed import Client

    async def attempt() -> None:
        async with Client(two_workers.address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(TypeError, match="asynchronous"):
                coterie.simulate(INST, trials=1, scheduler=client, method="boc", threshold="heuristic", deltas=(0.1,))

    asyncio.run(attempt())


def test_short_trials_share_a_task(two_workers: Any) -> None:
    def tasks(dask_scheduler: Any) -> int:
        return int(dask_scheduler.task_prefixes["uniform-trials"].state_counts["memory"])

    with two_workers.client() as client:
        coterie.simulate(INST, "uniform", trials=2, scheduler=client, threshold="heuristic", deltas=(0.1,))
        before = client.run_on_scheduler(tasks)
        coterie.simulate(INST, "uniform", trials=500, scheduler=client, threshold="heuristic", deltas=(0.1,))
        assert 4 <= client.run_on_scheduler(tasks) - before < 100


def test_a_killed_worker_costs_nothing_but_time(cluster: Any) -> None:
    plan = plan_for(SLOW, "boc", (0.1, 1e-6), ("proven", "heuristic"))
    here: dict[int, Outcome] = {}
    run_trials(plan, 5, range(40), finished=lambda outcome: here.update({outcome.trial: outcome}))
    victim = cluster.worker("victim")
    cluster.worker("survivor")
    with cluster.client() as client:
        client.wait_for_workers(2, timeout=60)
        doomed = cluster.address_of("victim", client)
        there: list[Outcome] = []
        killed_after: list[int] = []

        def finished(outcome: Outcome) -> None:
            there.append(outcome)
            if not killed_after and len(there) >= 5 and client.processing()[doomed]:
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                killed_after.append(len(there))

        run_trials(plan, 5, range(40), scheduler=cluster.address, finished=finished)
        assert killed_after
        assert killed_after[0] < 40
        assert list(client.nthreads()) != [doomed]
        assert len(client.nthreads()) == 1
    assert sorted(outcome.trial for outcome in there) == list(range(40))  # each once
    for outcome in there:
        assert list(outcome.stops) == ["proven", "heuristic"]
        for kind, stops in outcome.stops.items():
            assert np.array_equal(stops.times, here[outcome.trial].stops[kind].times)
            assert np.array_equal(stops.correct, here[outcome.trial].stops[kind].correct)
        assert outcome.seconds > 0
    assert len({outcome.stops["proven"].times[1] for outcome in there}) > 10  # there is something to compare


def test_it_waits_when_all_workers_are_gone(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(remote, "LOOK", 0.2)
    here = coterie.simulate(SLOW, "uniform", trials=24, threshold="proven", deltas=(0.1,))
    workers = [cluster.worker("one"), cluster.worker("two")]
    with cluster.client() as client:
        client.wait_for_workers(2, timeout=60)
    plan = plan_for(SLOW, "uniform", 0.1, "proven")
    there: dict[int, Outcome] = {}
    later = threading.Timer(2.0, cluster.worker, ["three"])

    def finished(outcome: Outcome) -> None:
        assert outcome.trial not in there
        there[outcome.trial] = outcome
        if len(there) == 3:
            for worker in workers:
                worker.send_signal(signal.SIGKILL)
            later.start()

    try:
        run_trials(plan, 0, range(24), scheduler=cluster.address, finished=finished)
    finally:
        later.cancel()
    assert [there[trial].stops["proven"].times[0] for trial in range(24)] == here.stopping_times[:, 0].tolist()
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("coterie: no workers left; ")
    assert lines[1] == "coterie: 1 worker threads are back"


def test_an_exception_in_finished_ends_the_others(two_workers: Any) -> None:
    plan = plan_for(INST, "boc", 1e-3, "heuristic")
    seen: list[int] = []

    def finished(outcome: Outcome) -> None:
        seen.append(outcome.trial)
        raise RuntimeError("enough")

    with two_workers.client() as client:
        with pytest.raises(RuntimeError, match="enough"):
            run_trials(plan, 0, range(5000), scheduler=client, finished=finished)
        two_workers.until(lambda: not client.futures and trials_at_work(client) == 0)
    assert len(seen) == 1


def test_interrupt_ends_trials_that_have_no_end(two_workers: Any) -> None:
    plan = plan_for(ENDLESS, "boc", 1e-9, "heuristic")
    with two_workers.client() as client, two_workers.client() as watcher:

        def interrupt() -> None:
            two_workers.until(lambda: trials_at_work(watcher) == 2)
            signal.raise_signal(signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            run_trials(plan, 0, range(50), scheduler=client, finished=lambda outcome: None)
        thread.join()
        two_workers.until(lambda: not client.futures and trials_at_work(client) == 0)
        assert client.status == "running"


SCRIPT = """
import sys, threading
import numpy as np
import coterie

endless = coterie.Instance(np.arange(11) % 10, 1e-4 * np.random.default_rng(0).normal(size=(10, 1)))
coterie.simulate(endless, deltas=[1e-9], trials=50, scheduler=sys.argv[1])
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_workers_are_idle_after_the_process_has_ended(two_workers: Any, ending: signal.Signals) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, two_workers.address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        with two_workers.client() as client:
            two_workers.until(lambda: trials_at_work(client) == 2)
            child.send_signal(ending)
            out, err = child.communicate(timeout=60)  # raises TimeoutExpired if it does not end
            two_workers.until(lambda: trials_at_work(client) == 0, 60)
            assert out == ""
            if ending == signal.SIGINT:
                assert err.count("Traceback") == 1
                assert err.endswith("KeyboardInterrupt\n")
            assert sum(client.nthreads().values()) == 2  # and alive
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def test_a_scheduler_that_dies_is_one_line(cluster: Any) -> None:
    cluster.worker("one")
    plan = plan_for(INST, "boc", 0.1, "heuristic")

    def finished(outcome: Outcome) -> None:
        os.kill(cluster.scheduler.pid, signal.SIGKILL)

    with cluster.client() as client:
        client.wait_for_workers(1, timeout=60)
    with pytest.raises(ConnectionError, match=r"connection to the scheduler was lost when \d+ of 100000 trials"):
        run_trials(plan, 0, range(100_000), scheduler=cluster.address, finished=finished)


POISON = """
import os
from coterie.simulate import bulk, remote

def run_trial(plan, seed, trial, running):
    if trial == 7:
        os._exit(1)
    return bulk.run_trial(plan, seed, trial, running)

remote.run_trial = run_trial
"""


def test_a_trial_that_ends_every_worker_is_named(cluster: Any) -> None:
    def less_patient(dask_scheduler: Any) -> None:
        dask_scheduler.allowed_failures = 0  # instead of 3, which takes as many restarts

    plan = plan_for(INST, "boc", 0.1, "heuristic")
    cluster.worker("restarted", POISON, "--nanny")
    with cluster.client() as client:
        client.run_on_scheduler(less_patient)
        client.wait_for_workers(1, timeout=60)
        with pytest.raises(OSError, match="trial 7 was given up: one worker after another died"):
            run_trials(plan, 0, [7], scheduler=client, finished=lambda outcome: None)
        client.wait_for_workers(1, timeout=60)
        seen: list[int] = []
        run_trials(plan, 0, [6, 8], scheduler=client, finished=lambda outcome: seen.append(outcome.trial))
        assert sorted(seen) == [6, 8]
