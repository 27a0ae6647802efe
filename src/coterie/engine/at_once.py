"""Answers at once: the entries of this room, compiled, or as plain Python until another process has compiled them.

A run that lives through asks and results one at a time does not wait for the compiler: plain code does the same work in
milliseconds, if the run is small. Whatever is expected to take longer than `PATIENCE` waits for the compiled entries,
as does work in bulk, which asks for `Entrance.compiled` to begin with.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.engine.ahead import BackgroundCompiler, may_compile_behind
from coterie.engine.cached import announce_compilation, cache_folder, is_cached
from coterie.engine.compile_watch import waiting_for
from coterie.engine.plain import plain_module

PATIENCE = 1.0
"""Seconds that a call may be expected to take as plain Python."""
RESULT_SECONDS, SQUARE_SECONDS = 2e-4, 2e-7
"""What plain code takes for a result, on a slow processor, and for each entry of a d × d metric."""
PLAN_SECONDS, CELL_SECONDS = 0.02, 1e-5
"""What it takes for a plan, and for each of its M·K·d numbers."""
MOST_COPIED = 2**24
"""Bytes of a state that are copied before a plain call."""


def plain_seconds(shape: tuple[int, int, int], results: int, plans: int) -> float:
    """About how long plain code takes for so many results and plans of a run of M arms, K groups, d dimensions."""
    n_arms, n_groups, dim = shape
    a_plan = PLAN_SECONDS + CELL_SECONDS * n_arms * n_groups * dim
    return results * (RESULT_SECONDS + SQUARE_SECONDS * dim * dim) + plans * a_plan


def tried(call: Callable[[], Any], changed: Iterable[NDArray[Any]]) -> Any:
    """What a plain call returns; None, with the arrays as they were, if it meets what only compiled code goes past.

    That is an error in arithmetic where compiled code goes on with an infinity, or with no number.
    """
    before = [(array, array.copy()) for array in changed if array.flags.writeable]
    try:
        with np.errstate(all="ignore"):
            return call()
    except (ArithmeticError, ValueError):
        for array, copy in before:
            array[...] = copy
        return None


class Entrance:
    """The entries of a module of this room, which is compiled in one piece.

    `entry`: the one by which it is told whether numba's cache holds them; `owner`: the module whose `compile_ahead`
    compiles them.
    """

    def __init__(self, what: str, module: str, entry: str, owner: str, sources: Callable[[], list[Path]]) -> None:
        self._what, self._module, self._entry, self._owner, self._sources = what, module, entry, owner, sources
        self._lock = threading.Lock()
        self._loaded: Any = None
        self._behind: BackgroundCompiler | None = None

    def compiled(self) -> Any:
        """The compiled entries. Waits for the process that compiles them; says so, once, if it is done here."""
        behind = self._behind
        if self._loaded is None and behind is not None and behind.is_ours and behind.is_running:
            with waiting_for(self._what, behind.begun):
                behind.wait()
        with self._lock:
            if self._loaded is None:
                module = importlib.import_module(self._module)
                announce_compilation(getattr(module, self._entry), self._what, self._sources())
                self._loaded = module
        return self._loaded

    def plain(self, words: Sequence[str] = ()) -> ModuleType | None:
        """The entries as plain Python, while a process compiles them; None if that is not so, or done.

        The process is started if there is none; `words` are for its `compile_ahead`.
        """
        with self._lock:
            if self._loaded is not None or not may_compile_behind():
                return None
            if self._behind is None or not self._behind.is_ours:
                function = getattr(importlib.import_module(self._module), self._entry)
                folder = cache_folder(function)
                if folder is None or is_cached(function, self._sources()):
                    return None
                self._start(folder, words)
            return plain_module(self._module) if self.is_behind else None

    def _start(self, folder: Path, words: Sequence[str]) -> None:
        try:
            self._behind = BackgroundCompiler(self._owner, folder, words)
        except OSError:  # no process can be started: it is done here, when it is needed
            return
        message = f"coterie: {self._what} is being compiled in the background, once on this machine; until then it runs"
        print(f"{message} uncompiled, with the same answers", file=sys.stderr, flush=True)

    @property
    def is_behind(self) -> bool:
        """Whether a process is compiling them now."""
        behind = self._behind
        return behind is not None and behind.is_ours and behind.is_running
