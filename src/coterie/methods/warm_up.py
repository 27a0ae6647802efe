"""Having a method's code compiled and loaded before somebody waits for it."""

from __future__ import annotations

import threading

import numpy as np

from coterie.engine.ahead import is_in_foreground
from coterie.methods.contract import Method
from coterie.methods.start import start
from coterie.problem.instance import Instance
from coterie.problem.settings import Settings

_lock = threading.Lock()
_warm: set[tuple[str, bool]] = set()
_TINY = Instance([0, 0, 1], [[0.0], [4.0]])


def warm_up(method: Method) -> None:
    """Have a method ready, once a process.

    For one of the package this may begin to compile in the background, or, within `coterie.engine.ahead.in_foreground`,
    compile here, for some seconds. Types are what is compiled for, and they are the same for every size: a few pulls
    of a tiny run are enough.
    """
    key = method.name, is_in_foreground()
    with _lock:
        if key in _warm:
            return
        ratio = 0.5 if "distance_ratio" in method.needs else None
        truth = _TINY if "instance" in method.needs else None
        run = start(Settings.of(3, 2, 1, method=method.name, noise=1.0, distance_ratio=ratio, instance=truth), method)
        for value in (0.0, 4.0, 0.0):
            pull = run.ask()
            if pull is None:
                break
            run.count(pull.arm, np.array([value] + [0.0] * method.exact), pull.round, True)
        run.evidence()
        _warm.add(key)
