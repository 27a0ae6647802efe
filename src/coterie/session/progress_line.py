"""How far a run is, while it goes on: a line on the terminal, or one below the cell of a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any

from coterie.session import verdicts
from coterie.session.session import Session

_PAUSE = 0.25
"""Seconds between two changes of a line in a notebook: each is a message to the browser."""


class ProgressLine:
    """A line that follows a session; silent where there is neither a terminal nor a notebook. `wanted`: whether there
    is one, or a function that is called with the session too.
    """

    def __init__(self, wanted: bool | Callable[[Session], Any]) -> None:
        self._wanted = wanted is not False
        self._told = wanted if callable(wanted) else None
        self._status: Any = None
        self._line: NotebookLine | None = None
        self._session: Session | None = None
        self._next = 0

    def __enter__(self) -> ProgressLine:
        if not self._wanted:
            return self
        if in_notebook():
            self._line = NotebookLine("measuring …")
            return self
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_terminal:
            self._status = console.status("measuring …")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
        if self._line is not None:
            self._line.end(self._last_words())

    def __call__(self, session: Session) -> None:
        """The session has come further."""
        self._session = session
        if self._told is not None:
            self._told(session)
        if self._line is not None and self._line.due:
            self._line.update(_so_far(session))
        if self._status is not None and session.t >= self._next:
            self._next = session.t + max(1, session.t // 100)
            self._status.update(_so_far(session))

    def _last_words(self) -> str:
        if self._session is None:
            return "nothing measured"
        return f"{self._session.t} measurements: {self._session._read(verdicts.progress_in_words)}"


def _so_far(session: Session) -> str:
    remaining = None if session.done else session.remaining
    more = "" if remaining is None else f", {remaining.words}"
    return f"{session.t} measurements{more}; {session.progress.words}"


def in_notebook() -> bool:
    """Whether output goes to the cell of a notebook."""
    ipython = sys.modules.get("IPython")  # whoever is in a notebook has loaded it
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookLine:
    """A line below a cell of a notebook that changes in place; it needs no widgets, and leaves one line in the file."""

    def __init__(self, text: str, total: int | None = None) -> None:
        self._total = total
        display = import_module("IPython.display").display
        self._handle = display(self._content(text, 0), raw=True, display_id=True)
        self._changed = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time for another change."""
        return time.monotonic() >= self._changed + _PAUSE

    def update(self, text: str, done: int = 0) -> None:
        """Another text; of a line with a bar, also how many are done."""
        self._changed = time.monotonic()
        self._handle.update(self._content(text, done), raw=True)

    def end(self, text: str) -> None:
        """The text that stays, without a bar."""
        self._total = None
        self.update(text)

    def _content(self, text: str, done: int) -> dict[str, str]:
        bar = "" if self._total is None else f'<progress value="{done}" max="{self._total}"></progress> '
        return {"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}
