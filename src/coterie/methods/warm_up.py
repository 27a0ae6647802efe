"""Having a method's code compiled and loaded before somebody waits for it."""

from __future__ import annotations

import threading

import numpy as np

from coterie.methods.start import start
from coterie.methods.table import method_named
from coterie.problem.settings import Settings

_lock = threading.Lock()
_warm: set[str] = set()


def warm_up(settings: Settings) -> None:
    """Have the method of these settings ready, once a process; for one of the package this may compile for minutes."""
    method = method_named(settings.method)
    with _lock:
        if method.name in _warm or "instance" in method.needs:
            return
        ratio = None if settings.distance_ratio is None else 0.5
        run = start(Settings.of(3, 2, 1, method=method.name, distance_ratio=ratio))
        for value in (0.0, 4.0, 0.0):
            pull = run.ask()
            if pull is None:
                break
            run.count(pull.arm, np.array([value] + [0.0] * method.exact), pull.round, True)
        run.evidence()
        _warm.add(method.name)
