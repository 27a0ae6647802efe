"""Waiting for something that another process or thread does."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds that a test waits at most: what is right does not wait, and a machine may be busy with much else."""


def wait_until(
    check: Callable[[], bool],
    seconds: float = PATIENCE,
    says: Callable[[], str] = lambda: "it takes too long",
    pause: float = 0.02,
) -> None:
    """Until it holds; a server that cannot be reached yet is not an error. `says`: what is said when it is too late."""
    end = time.monotonic() + seconds
    while True:
        try:
            if check():
                return
        except (OSError, http.client.HTTPException):
            pass
        assert time.monotonic() < end, says()
        time.sleep(pause)
