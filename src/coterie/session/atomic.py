"""One lock for each session: whatever is called or read of it happens as a whole, whichever threads ask.

Compiled steps release Python's own lock, so that two of them on one state would spoil it. Instead of a lock in every
method, every public method and property of a class below `Atomic` is wrapped when the class is made.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, Self

_SHOWN = ("__repr__", "_repr_html_")
_LOCK = "_lock"


class Atomic:
    """Public methods and properties, also those of subclasses, hold the object's lock; it may be taken again inside."""

    _lock: threading.RLock

    def __new__(cls, *_args: Any, **_options: Any) -> Self:
        found = super().__new__(cls)
        found._lock = threading.RLock()
        return found

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name not in _SHOWN:
                continue
            if isinstance(member, property) and member.fget is not None:
                setattr(cls, name, property(_reading(member.fget), member.fset, member.fdel, member.__doc__))
            elif inspect.isfunction(member):
                setattr(cls, name, _holding_the_lock(member))

    def become(self, other: Self) -> None:
        """Be what the other is, at once; the other is not used any more."""
        self.__dict__.update({name: value for name, value in other.__dict__.items() if name != _LOCK})


def _reading(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(function)
    def alone(self: Any) -> Any:
        with self._lock:
            return function(self)

    return alone


def _holding_the_lock(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def alone(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            return function(self, *args, **options)

    return alone
