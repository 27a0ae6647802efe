"""A run of a method at its beginning; one that is none of the package is guarded."""

from __future__ import annotations

from coterie.methods.confirming import ConfirmingRun
from coterie.methods.contract import Method, MethodRun
from coterie.methods.guard import Guarded
from coterie.methods.table import is_packaged, method_named
from coterie.problem.settings import Settings


def start(settings: Settings, method: Method | None = None) -> MethodRun:
    """A run at its beginning. `settings` come from `coterie.methods.prepared`; `method` is theirs unless given.

    A run of a method that somebody registered is guarded: what breaks the contract is a `MethodError` that names it.
    """
    entry = method_named(settings.method) if method is None else method
    return confirming(entry.start(settings) if is_packaged(entry) else Guarded(entry, settings), settings)


def confirming(run: MethodRun, settings: Settings) -> MethodRun:
    """The run, going on after its proof if the settings say so."""
    return ConfirmingRun(run, settings.confirm, run.pulls.size) if settings.confirm > 0.0 else run
