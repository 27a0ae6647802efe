"""The bar: trials done, trials to do, time left."""

from __future__ import annotations

from typing import Any


class Bar:
    """A progress bar with the time left, on the terminal if there is one. `wanted`: True also without, False never."""

    def __init__(self, wanted: bool | None, title: str, total: int) -> None:
        self._wanted, self._title, self._total = wanted, title, total
        self._bar: Any = None
        self._moved = False

    def __enter__(self) -> Bar:
        if self._wanted is not False:
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
        self._moved = True
        if self._bar is not None:
            self._bar.advance(self._task)

    def __exit__(self, error: object, *_: object) -> None:
        if self._bar is not None:
            # An error before anything was done speaks for itself: no empty bar above it.
            self._bar.live.transient = error is not None and not self._moved
            self._bar.stop()
