"""Compiling in a process of its own, so that nobody has to wait: it fills numba's cache, from which others then load.

`python -c … coterie.engine.ahead` compiles entries and kernels and ends. Of several such processes one compiles, the
others wait for it. It outlives the process that started it, so that commands that end at once leave something behind;
it ends by itself when it is done, and after ten minutes in any case. Nothing is started when the package is imported,
where numba has no folder for its cache, and where the variable COTERIE_BACKGROUND_COMPILER is 0.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

SWITCH = "COTERIE_BACKGROUND_COMPILER"
_LONGEST = 600.0  # seconds that a process compiles
_NICE = 10
_SELDOM = (50_000, 50, 1_000)
_CODE = "import sys; at = sys.argv.index('--'); sys.path[:] = sys.argv[1:at]; from coterie.engine import ahead; "
_CODE += "ahead.compile_here(*sys.argv[at + 1 :])"
_foreground: ContextVar[bool] = ContextVar("coterie_compiles_in_foreground", default=False)


@contextmanager
def in_foreground() -> Iterator[None]:
    """Within, whatever is needed is compiled when it is needed, here, and nothing runs uncompiled."""
    before = _foreground.set(True)
    try:
        yield
    finally:
        _foreground.reset(before)


def is_in_foreground() -> bool:
    """Whether nothing may run uncompiled."""
    return _foreground.get()


def may_compile_behind() -> bool:
    """Whether a process may be started that compiles, now and here."""
    if _foreground.get() or os.environ.get(SWITCH, "1") == "0":
        return False
    return bool(sys.executable) and not getattr(sys, "frozen", False)  # a frozen program would start itself again


class _LeftAlone(subprocess.Popen[bytes]):
    """A process that may go on after whoever started it: no warning at the end that it still runs."""

    def __del__(self, *details: Any) -> None:
        pass


class BackgroundCompiler:
    """A process that runs `compile_ahead(*words)` of a module of this room, alone among those of a cache folder."""

    def __init__(self, module: str, folder: Path, words: Sequence[str]) -> None:
        command = [sys.executable, "-c", _CODE, *sys.path, "--", module, str(folder), *words]
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        # In a session of its own: Ctrl-C is for whoever waits, not for this.
        self._process = _LeftAlone(command, env=os.environ | {SWITCH: "0"}, start_new_session=True, **quiet)
        self._owner = os.getpid()
        self.begun = time.monotonic()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_ours(self) -> bool:
        """Whether this process has started it: one that was forked off since cannot tell whether it runs."""
        return self._owner == os.getpid()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Until it has ended, however it did."""
        self._process.wait()


def compile_here(module: str, folder: str, *words: str) -> None:
    """What the process does."""
    faulthandler.dump_traceback_later(_LONGEST, exit=True)  # whatever it waits for
    with suppress(OSError, AttributeError):  # not everywhere
        os.nice(_NICE)
    with _alone(Path(folder)), seldom_collected():
        importlib.import_module(module).compile_ahead(*words)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Within, Python seldom looks for garbage: the compiler makes millions of objects, nearly all of which are kept."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time. The system lets go of the lock if the process is killed."""
    try:
        import fcntl
    except ImportError:  # another system: then several may do the same work
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "coterie-compiling.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
