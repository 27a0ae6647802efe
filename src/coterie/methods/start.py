"""A run of a method at its beginning; one that is none of the package is guarded."""

from __future__ import annotations

from coterie.methods.contract import Method, MethodRun
from coterie.methods.guard import Guarded
from coterie.methods.table import is_packaged, method_named
from coterie.problem.settings import Settings


def start(settings: Settings, method: Method | None = None) -> MethodRun:
    """A run at its beginning. `settings` come from `coterie.methods.prepared`; `method` is theirs unless given.

    A run of a method that somebody registered is guarded: what breaks the contract is a `MethodError` that names it.
    """
    entry = method_named(settings.method) if method is None else method
    return entry.start(settings) if is_packaged(entry) else Guarded(entry, settings)
