"""Having all compiled code in numba's cache before anybody waits for it: in an image, or once after an update."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie.engine.ahead import in_foreground, seldom_collected
from coterie.methods import METHODS, Method, warm_up
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Symmetric
from coterie.problem.instance import Instance
from coterie.session import cluster
from coterie.simulate.progress import Bar
from coterie.simulate.trials import simulate

_TINY = Instance([0, 0, 1], [[2.0, 2.0], [8.0, 8.0]])
_CLOSE = Instance([0, 0, 1], [[2.0, 2.0], [4.0, 4.0]])  # not told apart at one look
_PULLS = 300  # of a tiny run: more than enough for a freeze and some rounds
_NOISES: tuple[Any, ...] = (
    1.0,
    None,
    Gaussian(),
    Gaussian("diagonal"),
    Gaussian("scalar"),
    Counts(10),
    Bounded(0.0, 10.0),
    AtMost(1.0),
    Symmetric(),
)


def compile_everything(progress: bool | None = None) -> Path | None:
    """Compile the code of all methods and all kinds of noise; the answer is the folder where numba keeps it.

    It does so by running them, on three items. `progress`: a bar on the terminal; by default if there is one. None is
    returned where the compiler is switched off. What is in the cache already is only loaded.
    """
    steps = _steps()
    with in_foreground(), seldom_collected(), Bar(progress, "compiling", len(steps)) as bar:
        for step in steps:
            step()
            bar.advance()
    from coterie.engine.run import load  # here: it loads the compiler

    path = getattr(getattr(load().advance, "_cache", None), "cache_path", None)
    return Path(path) if path else None


def _steps() -> list[Callable[[], None]]:
    return [
        *(partial(warm_up, method) for method in METHODS.values()),
        *(partial(_measure_with, noise) for noise in _NOISES),
        *(partial(_simulate_with, method) for method in METHODS.values()),
    ]


def _measure_with(noise: Any) -> None:
    rng = np.random.default_rng(0)

    def measure(arm: int) -> Any:
        if isinstance(noise, Counts):
            return rng.binomial(10, _TINY.means[arm] / 10.0)
        return np.clip(_TINY.means[arm] + rng.uniform(-1.0, 1.0, 2), 0.0, 10.0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that three made-up items look odd, or are not proven, is no news
        cluster(measure, 3, 2, noise=noise, budget=_PULLS, progress=False, on_alarm="continue")


def _simulate_with(method: Method) -> None:
    ratio = 0.5 if "distance_ratio" in method.needs else None
    simulate(_CLOSE, method.name, trials=1, workers=1, max_pulls=_PULLS, distance_ratio=ratio, progress=False)
