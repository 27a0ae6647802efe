"""The engine behind a session, for tests that look inside."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from coterie import Session
from coterie.methods.croc.method import CrocMethodRun
from coterie.methods.croc.run import CrocRun
from coterie.methods.paper import BOC, LINEAR, ORACLE, UNIFORM

SAMPLING = {"boc": BOC, "boc-linear": LINEAR, "uniform": UNIFORM, "oracle": ORACLE}
"""The engine's numbers of the paper's sampling rules."""

FIRST_PASS, PAIRS, EXPLORE, ROUNDS, CERTIFIED = range(5)
"""What the queue of a CROC run is for: `Mode` in native/croc/state.hpp."""


def croc_run(session: Session) -> CrocRun:
    run = session._conversation.run
    assert isinstance(run, CrocMethodRun)
    return run._run


def inside(run: CrocRun) -> Any:
    """All that a run knows, by the names of native/croc/state.hpp: `inside(run).arms.sums`. A copy."""
    found = SimpleNamespace()
    memory = run.memory()
    found.epochs = [SimpleNamespace() for _ in range(memory["epochs"])]
    for name, value in memory.items():
        *folders, last = name.split(".")
        place = found
        for folder in folders:
            if isinstance(place, list):
                place = place[int(folder)]
            else:
                if not isinstance(getattr(place, folder, None), SimpleNamespace | list):
                    setattr(place, folder, SimpleNamespace())
                place = getattr(place, folder)
        if not isinstance(getattr(place, last, None), SimpleNamespace | list):
            setattr(place, last, value)
    return found


def edit(run: CrocRun, changes: Mapping[Any, Any]) -> None:
    """Give some of what a run knows other values, by name: {"estimate.labels": labels}, {("pulls", 3): 4}."""
    memory = run.memory()
    for name, value in changes.items():
        if isinstance(name, tuple):
            memory[name[0]][name[1]] = value
        else:
            is_array = isinstance(memory[name], np.ndarray)
            memory[name] = np.ascontiguousarray(value, memory[name].dtype) if is_array else value
    run.restore(memory)
