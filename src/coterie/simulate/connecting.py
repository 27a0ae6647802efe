"""A connection to a Dask cluster that can run the trials, or one line that says what is wrong with it.

distributed itself waits for as long as it takes: for a host that does not answer, for a server of another kind that
keeps the connection open, for workers that never come. Every step here ends within seconds.
"""

from __future__ import annotations

import asyncio
import logging
import pkgutil
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from urllib.parse import urlsplit

from coterie import __version__
from coterie.problem.checks import short

T = TypeVar("T")

SCHEMES = ("tcp", "tls", "ws", "wss")
ANSWER = 4.0
"""Seconds that a scheduler has to accept a connection and say what it is; as many again find out what is there."""
WORKERS = 4.0
"""Seconds that the first worker has to appear, and then that all have to say which versions they have."""


@contextmanager
def connected(scheduler: Any) -> Iterator[Any]:
    """A `distributed.Client` of this scheduler, which has a worker and the right versions; its own if it is one.

    `scheduler`: an address, whose client is closed at the end, or a client, which is left as it is.
    """
    try:
        import distributed
    except ImportError:
        raise ImportError('a Dask cluster needs dask and distributed: pip install "coterie[cluster]"') from None
    if isinstance(scheduler, distributed.Client):
        _check_client(scheduler)
        _check_workers(scheduler)
        yield scheduler
        return
    address = check_address(scheduler)
    with _quiet():
        _check_scheduler(address)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a table of versions: those that matter here are checked below
            try:
                client = distributed.Client(address, timeout=ANSWER, set_as_default=False, name="coterie")
            except (OSError, ValueError, TypeError, AssertionError) as error:
                raise ConnectionError(f"could not connect to the scheduler at {address}: {_line(error)}") from None
        try:
            _check_workers(client)
            yield client
        finally:
            client.close(timeout=ANSWER)


def check_address(scheduler: Any) -> str:
    """The address of a scheduler: scheme, host and port."""
    example = "such as tcp://10.0.0.5:8786"
    if not isinstance(scheduler, str):
        raise TypeError(f"scheduler must be an address {example}, or a distributed.Client, got {short(scheduler)}")
    text = scheduler.strip() if "://" in scheduler else f"tcp://{scheduler.strip()}"
    try:
        parts = urlsplit(text)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if not host or not port or parts.path or parts.query or any(c.isspace() for c in text):
        raise ValueError(f"{scheduler!r} is not the address of a scheduler: give scheme, host and port, {example}")
    if scheme not in SCHEMES:
        raise ValueError(
            f"{scheduler!r} is not an address that can be used: the scheme must be one of {', '.join(SCHEMES)}; "
            "for another, open a distributed.Client and pass that"
        )
    return text


def _check_client(client: Any) -> None:
    if client.asynchronous:
        raise TypeError("the distributed.Client is asynchronous: pass one made without asynchronous=True")
    if client.status != "running":
        raise ConnectionError(f"the distributed.Client is {client.status}: connect it to a scheduler first")


def _check_scheduler(address: str) -> None:
    """Raise if there is no scheduler, and say what there is instead."""
    try:
        kind = _within(ANSWER + 1.0, lambda: asyncio.run(_kind_of_server(address)))
    except TypeError as error:  # TLS without certificates
        raise ValueError(
            f"{address} needs certificates: set them in Dask's configuration (distributed.comm.tls), "
            f"or pass a distributed.Client with its security; {_line(error)}"
        ) from None
    except Exception as error:
        raise ConnectionError(_diagnosis(address, error)) from None
    if kind != "Scheduler":
        raise ConnectionError(f"{address} is a Dask {str(kind).lower()}, not a scheduler: give the scheduler's address")


async def _kind_of_server(address: str) -> Any:
    """What the server at this address says it is."""
    from distributed.comm import connect
    from distributed.security import Security

    async def ask() -> Any:
        comm = await connect(address, timeout=ANSWER, **Security().get_connection_args("client"))
        try:
            await comm.write({"op": "identity", "reply": True})
            return (await comm.read())["type"]
        finally:
            comm.abort()

    return await asyncio.wait_for(ask(), ANSWER)  # distributed's own limit does not cover its handshake


def _diagnosis(address: str, error: Exception) -> str:
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or 0
    try:
        _within(ANSWER - 1.0, lambda: socket.create_connection((host, port), ANSWER).close())
    except socket.gaierror:
        return f"unknown host {host!r} in the scheduler's address {address}"
    except ConnectionRefusedError:
        return f"nothing listens at {address}: start a scheduler there with `dask scheduler`, or check host and port"
    except OSError as reason:
        return f"the host of {address} does not answer ({_line(reason)}): check address, network and firewall"
    if parts.scheme in ("tls", "wss"):
        return f"what listens at {address} is no Dask scheduler, or its certificates do not match: {_line(error)}"
    return f"what listens at {address} is not a Dask scheduler, or one that wants tls://"


def _check_workers(client: Any) -> None:
    """Raise unless there are workers, and all of them have this version of coterie."""
    where = client.scheduler.address
    try:
        client.wait_for_workers(1, timeout=WORKERS)
    except TimeoutError:
        raise TimeoutError(f"the scheduler at {where} has no workers: start some with `dask worker {where}`") from None
    # A function of the standard library, because one of ours could not be loaded where coterie is missing.
    versions = _ask_workers(client, pkgutil.resolve_name, "coterie:__version__")
    missing = [worker for worker, answer in versions.items() if isinstance(answer, ImportError)]
    if missing:
        raise ImportError(
            f"coterie is not installed on {_some(missing, len(versions))}: "
            f"install version {__version__} in the environment of every worker"
        )
    others = {worker: answer for worker, answer in versions.items() if answer != __version__}
    if others:
        has = ", ".join(sorted({str(answer) for answer in others.values()}))
        raise ImportError(
            f"coterie is {__version__} here, but {has} on {_some(list(others), len(versions))}: "
            "install the same version everywhere"
        )
    answers = _ask_workers(client, version, "numpy")
    others = {worker: answer for worker, answer in answers.items() if answer != version("numpy")}
    if others:
        has = ", ".join(sorted({str(answer) for answer in others.values()}))
        say(
            f"numpy is {version('numpy')} here, but {has} on {_some(list(others), len(versions))}: "
            "the numbers may differ from those of a local run"
        )


def _ask_workers(client: Any, function: Callable[..., Any], argument: str) -> dict[str, Any]:
    """What each worker answers: a value, or the exception."""
    try:
        answers = _within(WORKERS, lambda: client.run(function, argument, on_error="return"))
    except TimeoutError:
        raise TimeoutError(f"the workers of {client.scheduler.address} do not answer: are some of them hung?") from None
    # One that left meanwhile is no worker any more.
    return {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}


def _some(workers: list[str], total: int) -> str:
    named = ", ".join(sorted(workers)[:3]) + (", …" if len(workers) > 3 else "")
    return f"{len(workers)} of {total} workers ({named})"


def say(text: str) -> None:
    """A line to the user, beside the bar."""
    print(f"coterie: {text}", file=sys.stderr, flush=True)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _within(seconds: float, function: Callable[[], T]) -> T:
    """What the function returns or raises, or TimeoutError; Ctrl-C does not have to wait for it."""
    box: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def call() -> None:
        try:
            box.put((True, function()))
        except BaseException as error:
            box.put((False, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        fine, value = box.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if not fine:
        raise value
    answer: T = value
    return answer


@contextmanager
def _quiet() -> Iterator[None]:
    """Without distributed's log on the terminal: what matters is said in one line."""
    loggers = [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.split(".")[0] in ("distributed", "tornado") and logger.level
    ]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
