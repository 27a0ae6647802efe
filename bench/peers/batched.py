"""A course (`bench.peers.course`) as a method: asked and told one result at a time, or simulated in blocks.

A result belongs to the stacks for which it was asked; one that nobody asked for to the present ones. Where all that a
batch needs is under way, and a further worker asks, the least measured arm of the batch is measured ahead.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from bench.peers.course import Batch, CourseOf, Task
from bench.peers.stacks import Stacks
from coterie.methods import Evidence, Method, MethodRun, Pull
from coterie.methods.maximin import weighted_centers
from coterie.methods.trials import NO_END, PROVEN, Plan, RunningTrials, Stops
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import same_partition
from coterie.problem.settings import Settings


class BatchedRun(MethodRun):
    """A course whose batches are asked for arm by arm. Its rounds number the stacks: 0, 1, …"""

    def __init__(self, course_of: CourseOf, task: Task) -> None:
        self._course = course_of(task)
        self._pulls = np.zeros(task.n_arms, dtype=np.int64)
        self._sums = np.zeros((task.n_arms, task.dim))
        self._n_clusters = task.n_clusters
        self._found: IntArray | None = None
        self._batch: Batch
        self._stacks: Stacks | None = None
        self._stage = -1
        self._under_way = np.zeros(task.n_arms, dtype=np.int64)  # asks for the present stacks
        self._target = np.zeros(task.n_arms, dtype=np.int64)
        self._queue: deque[list[int]] = deque()  # [arm, how often]
        self._next_batch()

    def _next_batch(self) -> None:
        """Let the course go on until it needs a result that is not there, or ends."""
        missing = 0
        while missing == 0:
            try:
                self._batch = next(self._course)
            except StopIteration as end:
                self._found = end.value
                return
            if self._batch.stacks is not self._stacks:
                self._stacks, self._stage = self._batch.stacks, self._stage + 1
                self._under_way[:] = 0
            self._target, missing = self._batch.targets, self._batch.cost
        self._queue = deque([int(arm), count] for arms, count in self._batch.steps() for arm in arms)

    @property
    def done(self) -> bool:
        return self._found is not None

    @property
    def t(self) -> int:
        return int(self._pulls.sum())

    @property
    def pulls(self) -> IntArray:
        return self._pulls.copy()

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        labels = self._batch.labels if self._found is None else self._found
        if labels is None:
            return None
        nowhere = np.zeros((self._n_clusters, self._sums.shape[1]))
        means = self._sums / np.maximum(self._pulls, 1)[:, None]
        return labels, weighted_centers(means, self._pulls.astype(np.float64), labels, nowhere)

    def evidence(self) -> Evidence:
        batch = self._batch
        return Evidence(batch.threshold if self.done else batch.statistic, batch.threshold, None)

    def ask(self) -> Pull:
        arm = self._planned()
        self._under_way[arm] += 1
        return Pull(arm, self._stage)

    def _planned(self) -> int:
        """The next arm of the batch that does not have all it needs, counting asks under way."""
        assert self._stacks is not None
        have = self._stacks.counts + self._under_way
        while self._queue:
            head = self._queue[0]
            head[1] -= 1
            if head[1] == 0:
                self._queue.popleft()
            if have[head[0]] < self._target[head[0]]:
                return head[0]
        short = np.flatnonzero(have < self._target)  # somebody gave an ask up
        if short.size:
            return int(short[0])
        return int(np.argmin(np.where(self._target > 0, have, np.iinfo(np.int64).max)))

    def open_recorded(self, arm: int, of_round: int) -> None:
        if of_round == self._stage:
            self._under_way[arm] += 1

    def give_up(self, arm: int, of_round: int) -> None:
        if of_round == self._stage:
            self._under_way[arm] -= 1

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        assert self._stacks is not None
        self._pulls[arm] += 1
        self._sums[arm] += x
        if asked and of_round != self._stage:
            return  # asked for in an earlier step: the proof of this one must not use it
        if asked:
            self._under_way[arm] -= 1
        self._stacks.add(arm, x)
        if (self._stacks.counts >= self._target).all():
            self._next_batch()


def start_of(course_of: CourseOf) -> Callable[[Settings], MethodRun]:
    """How a run of a course starts. The random order of its arms is the same in every run of the same shape."""

    def start(settings: Settings) -> MethodRun:
        def random_order() -> IntArray:
            return np.random.default_rng(settings.shape).permutation(settings.n_arms)

        return BatchedRun(course_of, Task(*settings.shape, settings.delta, random_order))

    return start


def trial_of(course_of: CourseOf) -> Callable[[Plan, np.random.SeedSequence, RunningTrials], dict[str, Stops]]:
    """The loop for bulk trials of a course: a run for each δ, all on the same stream of noise.

    A block of c results is drawn as one sum, c·μ + √c·N(0, I), because nobody reads inside a block. The order of the
    arms is random in every trial.
    """

    def play(plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
        stops = Stops.none(plan)
        for column, delta in enumerate(plan.deltas):
            end = play_course(course_of, plan, delta, np.random.default_rng(seed), running)
            if end is not None:
                stops.times[column], labels = end
                stops.correct[column] = same_partition(labels, plan.instance.labels)
        return {PROVEN: stops}

    return play


def play_course(
    course_of: CourseOf, plan: Plan, delta: float, rng: np.random.Generator, running: RunningTrials
) -> tuple[int, IntArray] | None:
    """Measurements and groups at the stop; None if the limit of measurements, or the user, ended it before."""
    instance, t = plan.instance, 0
    shape = instance.n_arms, instance.n_clusters, instance.dim
    course = course_of(Task(*shape, delta, lambda: rng.permutation(instance.n_arms)))
    while not running.cancelled:
        try:
            batch = next(course)
        except StopIteration as end:
            return None if end.value is None else (t, end.value)
        t += batch.cost
        if t > (plan.max_pulls or NO_END):
            return None
        for arms, block in batch.steps():
            noise = rng.standard_normal((arms.size, instance.dim))
            batch.stacks.add_blocks(arms, block * instance.means[arms], math.sqrt(block) * noise)
    return None


def method_of(name: str, course_of: CourseOf, reference: str, sampling: str, stopping: str) -> Method:
    """The entry of a peer. Its proof pairs results by position, so they have to count in the order of the asks."""
    return Method(
        name,
        f"{sampling}; after {reference}",
        start_of(course_of),
        sampling=sampling,
        stopping=stopping,
        has_thresholds=False,
        in_ask_order=True,
        trial=trial_of(course_of),
    )
