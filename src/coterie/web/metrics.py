"""`/metrics`: how the server is doing, in the text format of Prometheus. Numbers only: no campaign is named.

Whoever reads it has the token that `coterie serve --metrics-token` was given, which opens nothing else, or one of an
owner of all campaigns. There is no exception for this machine: behind a reverse proxy everybody comes from there.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from coterie import __version__
from coterie.campaign import Campaigns
from coterie.web.answers import Refusal, SlowReads

PATH = "/metrics"
METRICS = "metrics"
"""What the token may do that opens this address only."""
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the histogram's classes, in seconds."""
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"})
_OTHER = "other"  # addresses that are none of ours are not told apart: anybody can make up any number of them
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Requests:
    """Counts of the requests that were answered. Used by the event loop's thread alone."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._classes: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def observed(self, scope: Scope, send: Send) -> Send:
        """The `send` of a request by which it is counted once its answer begins: streams may go on for hours."""
        begun = self._clock()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(_route_of(scope), scope["method"], message["status"], self._clock() - begun)
            await send(message)

        return counted

    def _count(self, route: str, method: str, status: int, seconds: float) -> None:
        self._answers[route, method if method in _METHODS else _OTHER, status] += 1
        self._classes.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def lines(self) -> Iterable[str]:
        """The counts, as they are sent."""
        yield from _head("coterie_http_requests_total", "counter", "Requests answered.")
        for (route, method, status), count in sorted(self._answers.items()):
            yield f'coterie_http_requests_total{{route="{route}",method="{method}",status="{status}"}} {count}'
        name = "coterie_http_request_seconds"
        yield from _head(name, "histogram", "Seconds until the answer to a request began.")
        for route, classes in sorted(self._classes.items()):
            so_far = 0
            for bound, count in zip((*map(repr, BOUNDS), "+Inf"), classes, strict=True):
                so_far += count
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {so_far}'
            yield f'{name}_sum{{route="{route}"}} {self._seconds[route]!r}'
            yield f'{name}_count{{route="{route}"}} {so_far}'


def _route_of(scope: Scope) -> str:
    """The address as the program has it, without any campaign's id."""
    if "counted_as" in scope:
        return str(scope["counted_as"])
    if scope.get("root_path") == "/static":
        return "/static"
    return str(getattr(scope.get("route"), "path", _OTHER))


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def campaign_lines(store: Campaigns) -> Iterable[str]:
    """How many campaigns, results and open asks a store has."""
    rows = store.list(archived=True)
    states = Counter("archived" if row["archived"] else "done" if row["done"] else "running" for row in rows)
    yield from _head("coterie_campaigns", "gauge", "Campaigns in the store.")
    for state in ("running", "done", "archived"):
        yield f'coterie_campaigns{{state="{state}"}} {states[state]}'
    yield from _head("coterie_results", "gauge", "Results told, of all campaigns in the store.")
    yield f"coterie_results {sum(row['measurements'] for row in rows)}"
    yield from _head("coterie_open_asks", "gauge", "Asks that nobody has answered, of all campaigns in the store.")
    yield f"coterie_open_asks {sum(row['open_leases'] for row in rows)}"


def process_lines(begun: float) -> Iterable[str]:
    """What this process uses; `begun` is when it started, in seconds since 1970."""
    values: Mapping[str, tuple[str, str, float | None]] = {
        "process_cpu_seconds_total": ("counter", "Processor time used.", time.process_time()),
        "process_resident_memory_bytes": ("gauge", "Memory in use.", _resident_bytes()),
        "process_start_time_seconds": ("gauge", "When the server started, in seconds since 1970.", begun),
    }
    for name, (kind, about, value) in values.items():
        if value is not None:
            yield from _head(name, kind, about)
            yield f"{name} {value!r}"
    yield from _head("coterie_build_info", "gauge", "The release.")
    yield f'coterie_build_info{{version="{__version__}"}} 1'


def _resident_bytes() -> int | None:
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):  # systems without /proc do not say
        return None


def metrics_router(store: Campaigns, requests: Requests, slow: SlowReads) -> APIRouter:
    """The address that Prometheus reads."""
    router = APIRouter(include_in_schema=False)
    begun = time.time()

    @router.get(PATH)
    async def metrics(request: Request) -> Response:
        caller = request.state.caller
        if caller.role != METRICS and not caller.may_create:
            raise Refusal(
                403, "not_for_this_token", "this needs the metrics token, or one of an owner of all campaigns"
            )
        of_store = await slow.run(lambda: list(campaign_lines(store)))
        lines = [*requests.lines(), *of_store, *process_lines(begun), ""]
        return Response("\n".join(lines), media_type=_TYPE)

    return router
