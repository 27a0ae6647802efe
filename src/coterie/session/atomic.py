"""One lock for each session: whatever is called or read of it happens as a whole, whichever threads ask.

Steps of the engine release Python's own lock, so that two of them on one state would spoil it. Instead of a lock in
every method, `atomic` wraps every public method and property of a class when the class is made. What only reads the
conversation of a session is a `View` or a `Setting`: a property in a line. A function of a conversation becomes a
method by `for_session`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from coterie.session.conversation import Conversation
    from coterie.session.session import Session

_SHOWN = ("__repr__", "_repr_html_")

T = TypeVar("T")
P = ParamSpec("P")

_ATOMIC: set[Callable[..., Any]] = set()
"""Functions that hold the lock by themselves."""


def atomic(kind: type) -> None:
    """Let public methods and properties of a class hold the lock `_lock` of an object; it may be taken again inside."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name not in _SHOWN:
            continue
        if isinstance(member, property) and member.fget is not None and not isinstance(member, View):
            setattr(kind, name, property(_holding_the_lock(member.fget), member.fset, member.fdel, member.__doc__))
        elif inspect.isfunction(member):
            setattr(kind, name, _holding_the_lock(member))


class View(property, Generic[T]):
    """A property of a session: what a function makes of its conversation, under the lock.

    `doc` is its docstring, by default that of the function.
    """

    def __init__(self, function: Callable[[Conversation], T], doc: str | None = None) -> None:
        def read(self: Any) -> T:
            with self._lock:
                return function(self._conversation)

        super().__init__(functools.update_wrapper(read, function))
        self.__doc__ = function.__doc__ if doc is None else doc

    if TYPE_CHECKING:

        def __get__(self, session: Any, kind: type | None = None, /) -> T:  # type: ignore[override]
            ...


class Variable(View[T]):
    """An attribute of the conversation of a session that may be set, too."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(attrgetter(name), doc)
        self._name = name

    def __set__(self, session: Any, value: Any, /) -> None:
        with session._lock:
            setattr(session._conversation, self._name, value)


class Setting(View[T]):
    """A setting of a session by its name, as it is by now."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(attrgetter(f"settings.{name}"), doc)


def for_session(function: Callable[Concatenate[Conversation, P], T]) -> Callable[Concatenate[Session, P], T]:
    """A function of a conversation as one of a session, under its lock: also as a method, with its docstring."""

    @functools.wraps(function)
    def alone(self: Session, /, *args: P.args, **options: P.kwargs) -> T:
        with self._lock:
            return function(self._conversation, *args, **options)

    signature = inspect.signature(function)
    _, *others = signature.parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    alone.__signature__ = signature.replace(parameters=[itself, *others])  # type: ignore[attr-defined]
    _ATOMIC.add(alone)
    return alone


def _holding_the_lock(function: Callable[..., Any]) -> Callable[..., Any]:
    if function in _ATOMIC:
        return function

    @functools.wraps(function)
    def alone(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            return function(self, *args, **options)

    return alone
