"""The bar: trials done, trials to do, time left, on a terminal; in a notebook without the time."""

from __future__ import annotations

from typing import Any

from coterie.session.progress_line import NotebookLine, in_notebook


class Bar:
    """A progress bar, on the terminal or in the notebook if there is one. `wanted`: True also without, False never."""

    def __init__(self, wanted: bool | None, title: str, total: int) -> None:
        self._wanted, self._title, self._total = wanted, title, total
        self._bar: Any = None
        self._line: NotebookLine | None = None
        self._done = 0

    def __enter__(self) -> Bar:
        if self._wanted is not False and in_notebook():
            self._line = NotebookLine(self._so_far, self._total)
        elif self._wanted is not False:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            if self._wanted or console.is_terminal:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeRemainingColumn(),
                    console=console,
                )
                self._task = self._bar.add_task(self._title, total=self._total)
                self._bar.start()
        return self

    def advance(self) -> None:
        """One more is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.advance(self._task)
        if self._line is not None and self._line.due:
            self._line.update(self._so_far, self._done)

    @property
    def _so_far(self) -> str:
        return f"{self._title}: {self._done} of {self._total}"

    def __exit__(self, error: object, *_: object) -> None:
        if self._bar is not None:
            # An error before anything was done speaks for itself: no empty bar above it.
            self._bar.live.transient = error is not None and self._done == 0
            self._bar.stop()
        if self._line is not None:
            self._line.end(self._so_far)
