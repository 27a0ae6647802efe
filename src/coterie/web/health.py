"""Whether the store can be written: tried now and then, however often somebody asks; and whether rows of its logs were
changed on disk.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.concurrency import run_in_threadpool

from coterie import __version__
from coterie.campaign import CampaignError, Campaigns, StoreUnavailable

_FRESH_SECONDS = 1.0
_PATIENCE = 5.0
CHECK_SECONDS = 0.5
"""Between two looks at the logs, of some hundred rows each."""


class Health:
    """Tries to write, once a second at most, in one thread at most; and has the logs checked in passing."""

    def __init__(self, store: Campaigns) -> None:
        self._store = store
        self._tried: asyncio.Task[CampaignError | None] | None = None
        self._at = 0.0
        self._damaged: dict[str, int] = {}

    async def state(self) -> dict[str, Any]:
        """That all is well; `StoreUnavailable` if the store cannot be written."""
        if self._tried is None or (self._tried.done() and time.monotonic() > self._at + _FRESH_SECONDS):
            self._tried = asyncio.create_task(run_in_threadpool(self._try))
        tried = self._tried
        await asyncio.wait([tried], timeout=_PATIENCE)
        if not tried.done():
            raise StoreUnavailable(f"the store cannot be written: a write has waited for {_PATIENCE:g} s")
        problem = tried.result()
        if problem is not None:
            raise StoreUnavailable(f"the store cannot be written: {problem.message}", problem.code)
        damaged = [{"campaign": id, "row": row} for id, row in self._damaged.items()]
        return {
            "status": "damaged" if damaged else "ok", "version": __version__, "writable": True, "damaged": damaged,
        }  # fmt: skip

    async def watch(self) -> None:
        """Check the logs, a few rows at a time, as long as the server runs."""
        while True:
            self._damaged = await run_in_threadpool(self._store.check_logs)
            await asyncio.sleep(CHECK_SECONDS)

    def _try(self) -> CampaignError | None:
        try:
            self._store.check_writable()
            return None
        except CampaignError as error:
            return error
        finally:
            self._at = time.monotonic()
