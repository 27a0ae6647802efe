"""numba's cache on disk: whether it fits the present sources, and a word to the user when it has to be filled."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from coterie.engine.compile_watch import watch_compilation


def announce_compilation(function: Any, what: str, sources: Iterable[Path], time: str = "some seconds") -> None:
    """Say that `what` is about to be compiled, if its entry is not in numba's cache for these sources."""
    if not is_cached(function, sources):
        watch_compilation(what)
        print(f"coterie: compiling {what}, once on this machine ({time}) …", file=sys.stderr, flush=True)


def cache_folder(function: Any) -> Path | None:
    """Where numba keeps the machine code of an entry; None if it keeps none, or the compiler is switched off."""
    path = getattr(getattr(function, "_cache", None), "cache_path", None)
    return Path(path) if path else None


def is_cached(function: Any, sources: Iterable[Path]) -> bool:
    """Whether numba's cache holds this function for the present sources; True if the compiler is switched off.

    numba only notices a change of the file that the function is in, not of those that it calls: what was compiled
    from other sources is thrown away here.
    """
    folder = cache_folder(function)
    if folder is None:
        return not hasattr(function, "py_func")  # the compiler is switched off; or it keeps nothing
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.read_bytes())
    stamp = folder / f"coterie-engine-{digest.hexdigest()[:16]}.stamp"
    if not stamp.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*folder.glob("*.nb[ic]"), *folder.glob("coterie-engine-*.stamp")]:
            old.unlink(missing_ok=True)
        stamp.touch()
    return any(folder.glob(f"*.{function.py_func.__name__}-*.nbi"))
