"""How many measurements a method needs: stopping times against log(1/δ), as in figure_main of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.evidence.allocation import hardness, lower_bound
from coterie.methods import method_named
from coterie.plot.canvas import add_legend, axes_for, colour_of, marker_of
from coterie.problem.checks import FloatArray, check_log_inverse_delta, short
from coterie.problem.instance import Instance
from coterie.simulate import Trials

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ERRORS = {"std": "standard deviation", "sem": "standard error"}
_FAR = 700.0  # e^-700 is still a normal double; from there on d_KL(δ, 1-δ) is log(1/δ) to the last digit


def stopping_times(
    runs: Mapping[str, Trials] | Sequence[Trials] | Trials,
    *,
    instance: Instance | None = None,
    ax: Any = None,
    log_inverse_deltas: Sequence[float] | None = None,
    error: str = "std",
    legend: bool = True,
) -> Axes:
    """Mean stopping times against log(1/δ), with error bars; with `instance`, the lower bound d_KL(δ, 1−δ)·D*.

    A δ at which trials were given up (max_pulls) has no mean: it is left out, and the label says so.

    Parameters
    ----------
    runs : mapping of str to Trials, sequence of Trials, or Trials
        What was simulated.
    instance : Instance, optional
        For the lower bound.
    log_inverse_deltas : sequence of float, optional
        log(1/δ) of the columns of every run, where the δ given to `simulate` stand for something else.
    error : {"std", "sem"}
        The standard deviation of a trial, or the standard error of the mean.
    ax, legend
        As in `coterie.plot.proportions`.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> import coterie
    >>> instance = coterie.Instance([0, 0, 1], [[0.0], [4.0]])
    >>> trials = coterie.simulate(instance, deltas=(0.1, 0.01), trials=4)
    >>> coterie.plot.stopping_times({"CROC": trials}).get_legend_handles_labels()[1]
    ['CROC']
    """
    named = _named(runs)
    if error not in _ERRORS:
        raise ValueError(f"error must be one of {', '.join(_ERRORS)}, got {short(error)}")
    if instance is not None and not isinstance(instance, Instance):
        raise TypeError(f"instance must be a coterie.Instance, got {short(instance)}")
    columns = {label: _columns(label, trials, log_inverse_deltas) for label, trials in named.items()}
    stopped = {label: (trials.stopping_times >= 0).all(axis=0) for label, trials in named.items()}
    if not any(full.any() for full in stopped.values()):
        raise ValueError("no run has a δ at which every trial stopped: simulate with a larger max_pulls")

    axes = axes_for(ax)
    for k, (label, trials) in enumerate(named.items()):
        full, x = stopped[label], columns[label]
        spread = trials.std() / (math.sqrt(len(trials.stopping_times)) if error == "sem" else 1.0)
        order = np.argsort(x[full], kind="stable")
        axes.errorbar(
            x[full][order],
            trials.mean()[full][order],
            yerr=spread[full][order],
            label=_noted(label, full),
            color=colour_of(k),
            marker=marker_of(k),
            markersize=4,
            linewidth=1.4,
            elinewidth=1.0,
            capsize=2.5,
        )
    if instance is not None:
        x = np.unique(np.concatenate([columns[label][full] for label, full in stopped.items()]))
        bound = [_bound(instance, level) for level in x]
        axes.plot(x, bound, color="black", linestyle="--", marker=".", markersize=3, label="lower bound")
    axes.set(xlabel=r"$\log(1/\delta)$", ylabel=f"measurements until the stop\n(mean ± {_ERRORS[error]})")
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0.0)
    add_legend(axes, legend)
    return axes


def _named(runs: Any) -> dict[str, Trials]:
    """A label for every set of trials: the caller's, or the method and the threshold."""
    if isinstance(runs, Mapping):
        named = {str(label): trials for label, trials in runs.items()}
    elif isinstance(runs, Trials | list | tuple):
        named = {}
        for trials in [runs] if isinstance(runs, Trials) else runs:
            _check_trials(trials)
            label = trials.method if method_named(trials.method).certifies else f"{trials.method}, {trials.threshold}"
            same = sum(other == label or other.startswith(f"{label} (") for other in named)
            named[f"{label} ({same + 1})" if same else label] = trials
    else:
        raise TypeError(f"stopping_times needs a mapping from labels to coterie.Trials, got {short(runs)}")
    if not named:
        raise ValueError("stopping_times needs at least one run, got none")
    for trials in named.values():
        _check_trials(trials)
    return named


def _check_trials(trials: Any) -> None:
    if not isinstance(trials, Trials):
        raise TypeError(f"a run must be coterie.Trials, as coterie.simulate returns them, got {short(trials)}")
    if trials.stopping_times.ndim != 2 or 0 in trials.stopping_times.shape:
        raise ValueError(f"a run must have trials and δ, got stopping times of shape {trials.stopping_times.shape}")


def _columns(label: str, trials: Trials, given: Sequence[float] | None) -> FloatArray:
    """log(1/δ) of each column of the trials."""
    if given is None:
        return np.array([-math.log(delta) for delta in trials.deltas])
    levels = [check_log_inverse_delta(level) for level in given]
    if len(levels) != trials.stopping_times.shape[1]:
        raise ValueError(
            f"log_inverse_deltas must have one entry for each δ: got {len(levels)}, "
            f"but {label!r} has {trials.stopping_times.shape[1]}"
        )
    return np.array(levels)


def _noted(label: str, full: Any) -> str:
    missing = int((~full).sum())
    if missing == 0:
        return label
    return f"{label}\n({missing} of {full.size} δ left out:\ntrials given up)"


def _bound(instance: Instance, level: float) -> float:
    """theorem_lowerbound, for any log(1/δ)."""
    return lower_bound(instance, math.exp(-level)) if level < _FAR else hardness(instance) * level
