"""Trials on a Dask cluster.

A task is a few trials, about a second of work, so that a worker that dies takes little with it; the plan is a task of
its own that the others refer to: it travels once to a worker, not with every task, and is made again if the worker that
had it dies (scattered data would be lost). docs/CLUSTER.md says what the network carries.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie import __version__
from coterie.methods.contract import MethodError
from coterie.methods.trials import Plan, RunningTrials, Stops
from coterie.problem.checks import FloatArray, IntArray
from coterie.simulate.bulk import Outcome, TrialCancelledError, run_trial
from coterie.simulate.connecting import connected, say

TASK_SECONDS = 1.0
"""Work of a task, unless a single trial takes longer."""
MOST_TRIALS = 1000
"""Of a task, so that its answer stays small."""
TASKS_A_THREAD = 2
"""One at work and one that waits for it: no thread is idle while the next task is on its way."""
RETRIES = 2
"""Further attempts at a task that raised, perhaps on a worker that is short of memory."""
LAST_ATTEMPTS = 2
"""Times that a trial on its own may be given up by the scheduler, which happens after the death of several workers
(distributed.scheduler.allowed-failures, 3 unless the cluster says otherwise, plus one)."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.1
"""Seconds until the next look at what has landed: twice as long each time nothing has."""
LOOK = 2.0
"""Seconds between two looks at how many workers there are."""

PARTS = (
    "trials (n)", "times of each threshold (n, L)", "correct of each threshold (n, L)", "seconds (n)",
    "cost at each threshold (n, L), empty without costs",
)  # fmt: skip
"""Of the answer of a task."""
Answer = tuple[IntArray, dict[str, IntArray], dict[str, NDArray[np.bool_]], FloatArray, dict[str, FloatArray]]


def run_on_cluster(
    plan: Plan, seed: int, trials: Sequence[int], scheduler: Any, finished: Callable[[Outcome], None]
) -> None:
    """Run these trials on the workers of a scheduler; `finished` is called in this thread."""
    with connected(scheduler) as client:
        _Dispatch(client, plan, seed, trials, finished).run()


class _Dispatch:
    """The tasks under way: never more than the workers need, so that their size can follow what was measured."""

    def __init__(
        self, client: Any, plan: Plan, seed: int, trials: Sequence[int], finished: Callable[[Outcome], None]
    ) -> None:
        from distributed import as_completed

        self._client, self._seed, self._finished = client, seed, finished
        self._total = len(trials)
        self._left = deque(trials)
        self._alone: deque[int] = deque()  # trials whose task the scheduler gave up: each gets one of its own
        self._given_up: Counter[int] = Counter()
        self._flying: dict[Any, list[int]] = {}
        self._settled: set[Any] = set()  # those that had ended at the last look, and whose results are on their way
        self._landed = as_completed(loop=client.loop, with_results=True, raise_errors=False)
        self._done, self._seconds = 0, 0.0
        self._threads, self._looked = 0, -np.inf
        self._waiting = False
        self._name = f"{plan.method}-trials"
        key = f"{plan.method}-plan-{uuid.uuid4().hex}"
        self._plan = client.submit(hold, packed(plan), plan.method, key=key, retries=RETRIES)

    def run(self) -> None:
        """All trials. Whatever goes wrong, no task is left behind."""
        pause = SHORTEST_PAUSE
        try:
            while self._left or self._alone or self._flying:
                self._look()
                self._launch()
                landed = self._landed.next_batch(block=False)
                for future, result in landed:
                    self._land(future, result)
                if landed:
                    pause = SHORTEST_PAUSE
                else:
                    time.sleep(pause)
                    pause = min(2.0 * pause, LONGEST_PAUSE)
        except BaseException:
            # The workers see that their tasks are no longer wanted, and end the trials (`_while_wanted`).
            if self._client.status == "running":
                self._client.cancel([*self._flying, self._plan])
            raise
        self._plan.release()

    def _look(self) -> None:
        """See how many threads the cluster has now; say so when there is none, and when there is one again."""
        if time.monotonic() - self._looked < LOOK:
            return
        try:
            self._threads = sum(self._client.nthreads().values())
        except Exception as error:
            if isinstance(error, OSError) or self._client.status != "running":
                raise self._lost() from None
            raise
        # as_completed forgets a task whose result could not be fetched at the first attempt.
        settled = {future for future in self._flying if future.status in ("finished", "error", "cancelled")}
        self._landed.update(settled & self._settled)
        self._settled = settled
        self._looked = time.monotonic()
        if (self._threads == 0) != self._waiting:
            self._waiting = self._threads == 0
            if self._waiting:
                say(f"no workers left; {self._total - self._done} trials wait until some come back (Ctrl-C ends)")
            else:
                say(f"{self._threads} worker threads are back")

    def _launch(self) -> None:
        while (self._left or self._alone) and len(self._flying) < TASKS_A_THREAD * self._threads:
            if self._alone:
                trials = [self._alone.popleft()]
            else:
                trials = [self._left.popleft() for _ in range(self._size())]
            future = self._client.submit(
                run_task,
                self._plan,
                self._seed,
                np.array(trials, dtype=np.int64),
                __version__,
                key=f"{self._name}-{uuid.uuid4().hex}",
                retries=RETRIES,
            )
            self._flying[future] = trials
            self._landed.add(future)

    def _size(self) -> int:
        """Trials of the next task: about a second of work, less towards the end so that all workers end together."""
        if not self._done:
            return 1
        fair = -(-len(self._left) // (TASKS_A_THREAD * self._threads))
        return max(1, min(MOST_TRIALS, fair, int(TASK_SECONDS / max(self._seconds / self._done, 1e-9))))

    def _land(self, future: Any, result: Any) -> None:
        """A task has ended: report its trials, or find out what to do about them."""
        trials = self._flying.pop(future, None)
        if trials is None:  # it was here before
            return
        # Told by the result: the status is that of now, and the worker may have died since.
        if isinstance(result, tuple) and len(result) == len(PARTS):
            for outcome in outcomes_of(result):
                self._done += 1
                self._seconds += outcome.seconds
                self._finished(outcome)
        elif isinstance(result, tuple):  # type, exception, traceback
            self._failed(trials, result[1])
        else:
            raise self._lost()
        future.release()

    def _failed(self, trials: list[int], error: BaseException) -> None:
        from distributed import KilledWorker

        # A trial is cancelled, though it is wanted, on a worker that shuts down.
        if isinstance(error, KilledWorker | TrialCancelledError):
            if len(trials) == 1:
                self._given_up.update(trials)
                if self._given_up[trials[0]] >= LAST_ATTEMPTS:
                    raise OSError(
                        f"trial {trials[0]} was given up: one worker after another died or shut down with it; "
                        "do they run out of memory?"
                    )
            self._alone.extend(trials)
        elif isinstance(error, ImportError):
            raise ImportError(
                f"a worker that joined later cannot run the trials: {error}; "
                f"install coterie {__version__} in the environment of every worker"
            )
        else:
            raise error

    def _lost(self) -> ConnectionError:
        return ConnectionError(
            f"the connection to the scheduler was lost when {self._done} of {self._total} trials were done"
        )


def packed(plan: Plan) -> bytes:
    """The plan as it travels: the scheduler, which has to know nothing of a registered method, passes it on."""
    import cloudpickle  # comes with distributed; takes along what a script defines

    try:
        content: bytes = cloudpickle.dumps(plan)
    except Exception as error:
        raise MethodError(
            plan.method,
            f"cannot be sent to the workers: {type(error).__name__}: {error}; define it, and what it uses, in a module "
            "that the workers can import",
        ) from error
    return content


def hold(content: bytes, method: str) -> Plan:
    """The plan, as a task of its own: the scheduler keeps what it takes to make it again."""
    try:
        plan: Plan = pickle.loads(content)
    except (ImportError, AttributeError) as error:
        raise MethodError(
            method,
            f"cannot be loaded on a worker: {error}; install the module that defines it in the environment of every "
            "worker",
        ) from error
    return plan


def run_task(plan: Plan, seed: int, trials: IntArray, wanted: str) -> Answer:
    """These trials, on a worker."""
    from distributed import get_worker

    worker = get_worker()
    if wanted != __version__:
        raise ImportError(f"{worker.address} has coterie {__version__}, not {wanted}")
    running = RunningTrials()
    with _while_wanted(worker, running):
        outcomes = [run_trial(plan, seed, int(trial), running) for trial in trials]
    thresholds = plan.trial_thresholds
    return (
        trials,
        {kind: np.array([outcome.stops[kind].times for outcome in outcomes]) for kind in thresholds},
        {kind: np.array([outcome.stops[kind].correct for outcome in outcomes]) for kind in thresholds},
        np.array([outcome.seconds for outcome in outcomes]),
        {kind: np.array([outcome.stops[kind].cost for outcome in outcomes]) for kind in thresholds if plan.costs},
    )


def outcomes_of(answer: Answer) -> Iterator[Outcome]:
    """The trials in the answer of a task."""
    trials, times, correct, seconds, cost = answer
    for i, trial in enumerate(trials):
        stops = {
            kind: Stops(times[kind][i].astype(np.int64), correct[kind][i].astype(bool), cost[kind][i] if cost else None)
            for kind in times
        }
        yield Outcome(int(trial), stops, float(seconds[i]))


@contextmanager
def _while_wanted(worker: Any, running: RunningTrials) -> Iterator[None]:
    """End the trials when nobody waits for their task any more: Dask itself lets a task that is at work go on.

    That is so after Ctrl-C, and also when the process that asked for them was killed.
    """
    key = worker.get_current_task()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            task = worker.state.tasks.get(key)
            if task is None or task.state not in ("executing", "long-running") or worker.status.name == "closing":
                running.cancel()
                return

    threading.Thread(target=watch, daemon=True, name=f"watch-{key}").start()
    try:
        yield
    finally:
        over.set()
