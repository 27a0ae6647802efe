"""Many independent trials of a method on a known instance.

The numbers depend on the seed alone, not on where and beside how many others a trial runs (`coterie.simulate.bulk`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from coterie.methods.contract import Method
from coterie.methods.trials import Plan
from coterie.problem.checks import FloatArray, IntArray, check_count
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS
from coterie.problem.sentences import table_html, text_html
from coterie.problem.settings import DELTA, METHOD, THRESHOLD
from coterie.session.progress import NotebookLine, in_notebook
from coterie.simulate.bulk import Outcome, PlanOptions, check_deltas, plan_for, run_trials


@dataclass(frozen=True)
class Trials:
    """Stopping times of many trials, by `coterie.simulate`.

    Attributes
    ----------
    method, threshold : str
        What was simulated.
    deltas : tuple of float
        The error probabilities, one a column.
    seed : int
        The numbers depend on it alone.
    stopping_times : ndarray of int, shape (trials, deltas)
        -1 marks a trial that did not stop within max_pulls.
    correct : ndarray of bool, shape (trials, deltas)
        Whether the answer was right; False where not stopped.
    cost : ndarray of shape (trials, deltas) or None
        What each has spent, NaN where not stopped; None without costs.
    """

    method: str
    threshold: str
    deltas: tuple[float, ...]
    seed: int
    stopping_times: IntArray
    correct: NDArray[np.bool_]
    cost: FloatArray | None = field(default=None, repr=False)

    def mean(self) -> FloatArray:
        """Mean stopping time for each δ, shape (deltas,); NaN if a trial did not stop."""
        return self._over_stopped(np.mean)

    def std(self) -> FloatArray:
        """Standard deviation of the stopping time for each δ (n − 1 below the line); NaN as for `mean`."""
        return self._over_stopped(lambda times: np.std(times, ddof=1) if len(times) > 1 else 0.0)

    def median(self) -> FloatArray:
        """Median stopping time for each δ, shape (deltas,); NaN as for `mean`."""
        return self._over_stopped(np.median)

    def errors(self) -> IntArray:
        """Trials that stopped with a wrong answer, for each δ: a wrong partition, or a claim that is false."""
        return np.asarray(((self.stopping_times >= 0) & ~self.correct).sum(axis=0), dtype=np.int64)

    def _over_stopped(self, figure: Callable[[FloatArray], Any]) -> FloatArray:
        return np.array(
            [figure(column.astype(float)) if (column >= 0).all() else np.nan for column in self.stopping_times.T]
        )

    def to_frame(self) -> Any:
        """The trials as a table.

        Returns
        -------
        pandas.DataFrame
            One row for each trial and δ: trial, method, threshold, delta, stopping_time, correct, and cost if there
            are costs.

        Raises
        ------
        ImportError
            Without pandas.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError('to_frame needs pandas: pip install "coterie[paper]"') from None
        n_trials, n_deltas = self.stopping_times.shape
        return pandas.DataFrame(
            {
                "trial": np.repeat(np.arange(n_trials), n_deltas),
                "method": self.method,
                "threshold": self.threshold,
                "delta": np.tile(self.deltas, n_trials),
                "stopping_time": self.stopping_times.ravel(),
                "correct": self.correct.ravel(),
            }
            | ({} if self.cost is None else {"cost": self.cost.ravel()})
        )

    def _repr_html_(self) -> str:
        stopped = (self.stopping_times >= 0).sum(axis=0)
        columns = (self.mean(), self.std(), self.median())
        rows = [
            (
                f"{delta:g}",
                *(f"{column[i]:.1f}" for column in columns),
                self.errors()[i],
                len(self.correct) - stopped[i],
            )
            for i, delta in enumerate(self.deltas)
        ]
        head = text_html(f"{len(self.correct)} trials of {self.method}, threshold {self.threshold}, seed {self.seed}")
        return head + table_html(("δ", "mean", "std", "median", "wrong", "not stopped"), rows)


class _Options(PlanOptions, total=False):
    """The options of `simulate` that do not decide what it returns."""

    deltas: Sequence[float] | FloatArray | float
    trials: int
    seed: int
    workers: int | None
    scheduler: Any
    max_pulls: int | None
    distance_ratio: float | None
    noise: Any
    world: Any
    progress: bool | None


@overload
def simulate(
    instance: Instance, method: str | Method = ..., *, threshold: str = ..., **options: Unpack[_Options]
) -> Trials: ...
@overload
def simulate(
    instance: Instance,
    method: str | Method = ...,
    *,
    threshold: list[str] | tuple[str, ...],
    **options: Unpack[_Options],
) -> dict[str, Trials]: ...
def simulate(
    instance: Instance,
    method: str | Method = METHOD,
    *,
    deltas: Sequence[float] | FloatArray | float = (DELTA,),
    threshold: str | list[str] | tuple[str, ...] = THRESHOLD,
    trials: int = 256,
    seed: int = 0,
    workers: int | None = None,
    scheduler: Any = None,
    max_pulls: int | None = None,
    distance_ratio: float | None = None,
    noise: Any = 1.0,
    world: Any = None,
    resolution: Any = None,
    groups: str = GROUPS[0],
    n_clusters: int | None = None,
    costs: Any = None,
    blocks: str | None = None,
    room: int | None = None,
    offsets: Any = 0.0,
    features: Any = None,
    progress: bool | None = None,
) -> Trials | dict[str, Trials]:
    """Stopping times of `trials` independent runs of a method on a known instance, for every δ at once.

    Parameters
    ----------
    instance : Instance
        The truth.
    method : str or Method
        A name, or a `coterie.methods.Method`.
    deltas : float or sequence of float
        The error probabilities.
    threshold : str or list of str
        "proven", "heuristic", or a list of them; it means nothing to CROC, whose stop is always proven.
    trials : int
        How many.
    seed : int
        The numbers depend on it alone, wherever the trials run.
    workers : int, optional
        Threads; as many as there are cores by default.
    scheduler : str or distributed.Client, optional
        The address of a Dask scheduler, such as "tcp://10.0.0.5:8786", or a client of one: the trials then run on its
        workers (docs/CLUSTER.md).
    max_pulls : int, optional
        Give a trial up after so many measurements.
    distance_ratio : float, optional
        For "boc-linear": a lower bound of the ratio of the smallest to the largest distance of two centers.
    noise
        What the method may assume about the results, as in `Session`: by default a known standard deviation of 1; None
        assumes nothing.
    world : optional
        Where the results come from: by default the instance's means plus standard Gaussian noise; one of
        `coterie.worlds`, its short name ("t3", "contaminated:0.05,10"), or a function of (rng, arms, means) that gives
        the results of these arms. So what happens if the assumption is wrong can be tried.
    resolution : Resolution or tuple, optional
        Ask for groups up to it, and not for the instance's number of groups. A trial is right then if what it claims
        holds for the true means, which may all differ (`coterie.Instance.of_means`).
    groups : {"equal", "linkage"}
        "linkage": groups by single linkage, as many as the instance has, or `n_clusters`; right as for a resolution.
    n_clusters : int, optional
        For "linkage".
    costs : array-like of shape (M,), optional
        Of a measurement of each arm, as in `Session`; the trials then say in `cost` what each has spent.
    blocks : {"offset", "drawn"}, optional
        Results come in blocks, as in `Session`.
    room : int, optional
        So many results fit into a block; it is measured cell by cell. By default, for "drawn", one of each arm.
    offsets : float or callable
        What a block adds to the means of all arms in it: the standard deviation of it, or a function of (rng, the arms
        that are first asked for in the block) that gives it, a number or d of them. A `world` draws the results of a
        cell at once, so that those of a drawn block may depend on one another.
    features : int, list of str or coterie.problem.features.Features, optional
        The numbers of a measurement are measured one by one, as in `Session`: the trials count these results. A
        `Features` also states panels and what each costs. Every δ is then a run of its own.
    progress : bool, optional
        A bar on the terminal; by default if there is one.

    Returns
    -------
    Trials or dict
        A dictionary, threshold to `Trials`, if a list of thresholds was given.

    Examples
    --------
    >>> import coterie
    >>> instance = coterie.Instance([0, 0, 1], [[0.0], [4.0]])
    >>> trials = coterie.simulate(instance, "boc", deltas=(0.1, 0.01), trials=20, seed=1)
    >>> trials.stopping_times.shape, trials.errors().tolist()
    ((20, 2), [0, 0])
    """
    several = isinstance(threshold, list | tuple)
    plan = plan_for(
        instance, method, deltas, threshold, max_pulls, distance_ratio, noise, world, resolution=resolution,
        groups=groups, n_clusters=n_clusters, costs=costs, blocks=blocks, room=room, offsets=offsets,
        features=features,
    )  # fmt: skip
    count = check_count(trials, "trials", 1)
    outcomes: list[Outcome] = []
    with Bar(progress, f"{plan.method} on {instance.n_arms} arms", count) as bar:

        def keep(outcome: Outcome) -> None:
            outcomes.append(outcome)
            bar.advance()

        run_trials(plan, seed, range(count), workers=workers, scheduler=scheduler, finished=keep)
    asked = check_deltas(deltas)
    by_threshold = {kind: trials_from(plan, kind, asked, seed, outcomes) for kind in plan.thresholds}
    return by_threshold if several else by_threshold[plan.thresholds[0]]


def trials_from(plan: Plan, threshold: str, deltas: Sequence[float], seed: int, outcomes: Sequence[Outcome]) -> Trials:
    """The outcomes at one threshold and these δ, in the order of the trials."""
    stated, columns = plan.reported_at(threshold), plan.columns(deltas)
    stops = [outcome.stops[stated] for outcome in sorted(outcomes, key=lambda outcome: outcome.trial)]
    times = np.array([own.times[columns] for own in stops], dtype=np.int64)
    correct = np.array([own.correct[columns] for own in stops], dtype=bool)
    cost = None
    if plan.costs is not None or (plan.features is not None and plan.features.panel_costs is not None):
        spent = np.array([np.zeros(len(plan.deltas)) if own.cost is None else own.cost for own in stops])
        cost = np.where(times > 0, spent[:, columns], np.nan)
    return Trials(plan.method, stated, tuple(deltas), seed, np.where(times > 0, times, -1), correct, cost)


class Bar:
    """A progress bar, on the terminal or in the notebook if there is one. `wanted`: True also without, False never."""

    def __init__(self, wanted: bool | None, title: str, total: int) -> None:
        self._wanted, self._title, self._total = wanted, title, total
        self._bar: Any = None
        self._line: NotebookLine | None = None
        self._done = 0

    def __enter__(self) -> Bar:
        if self._wanted is not False and in_notebook():
            self._line = NotebookLine(self._so_far, self._total)
        elif self._wanted is not False:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            if self._wanted or console.is_terminal:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeRemainingColumn(),
                    console=console,
                )
                self._task = self._bar.add_task(self._title, total=self._total)
                self._bar.start()
        return self

    def advance(self) -> None:
        """One more is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.advance(self._task)
        if self._line is not None and self._line.due:
            self._line.update(self._so_far, self._done)

    @property
    def _so_far(self) -> str:
        return f"{self._title}: {self._done} of {self._total}"

    def __exit__(self, error: object, *_: object) -> None:
        if self._bar is not None:
            # An error before anything was done speaks for itself: no empty bar above it.
            self._bar.live.transient = error is not None and self._done == 0
            self._bar.stop()
        if self._line is not None:
            self._line.end(self._so_far)
