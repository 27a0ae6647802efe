"""Running the server: an address, its tokens, its log."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI

from coterie.campaign import Campaigns
from coterie.web.access import SHORTEST_GOOD_TOKEN, Access, prepare_tokens
from coterie.web.app import DEFAULT_MAX_BODY, DEFAULT_RATE, create_app

SWITCH_SECONDS = 0.001
"""How long one thread may keep the others waiting: an event loop and many short transactions share the interpreter."""


class Server(uvicorn.Server):
    """uvicorn's server that ends the streams of events first: they would hold it up."""

    def __init__(self, app: FastAPI, access_log: bool = False) -> None:
        self._streams = app.state.event_streams
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=access_log,
                server_header=False,
                timeout_keep_alive=60,
                timeout_graceful_shutdown=5,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop taking requests, finish those under way."""
        self._streams.close()
        await super().shutdown(sockets)


class _WithoutQueries(logging.Filter):
    """The log names paths, never what follows the question mark."""

    def filter(self, record: logging.LogRecord) -> bool:
        arguments = record.args
        if isinstance(arguments, tuple) and len(arguments) == 5:
            client, method, path, *rest = arguments
            record.args = (client, method, str(path).partition("?")[0], *rest)
        return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(
    store: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    read_token: str | None = None,
    new_token: bool = False,
    rate: float = DEFAULT_RATE,
    max_body: int = DEFAULT_MAX_BODY,
    access_log: bool = False,
) -> None:
    """Serve a store until it is told to stop; what people need to know is printed."""
    if token is None and not is_loopback(host):
        raise ValueError(f"others can reach {host}: set a token, with --token or COTERIE_TOKEN")
    if token is not None and new_token:
        raise ValueError("--token gives a token and --new-token makes one: use one of them")
    listening = _listen(host, port)
    try:
        with Campaigns(store) as campaigns:
            made = prepare_tokens(campaigns, token, read_token, new_token)
            app = create_app(campaigns, Access.of_store(campaigns), rate, max_body)
            _announce(campaigns.store, listening, made, (token, read_token))
            _set_up_log(access_log)
            before = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_SECONDS)
            try:
                Server(app, access_log).run(sockets=[listening])
            finally:
                sys.setswitchinterval(before)
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)  # from now on clients wait, rather than being refused
    except (OSError, OverflowError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        what = "another program listens there; --port 0 takes a port that is free" if taken else str(error)
        raise OSError(f"cannot listen at {host} port {port}: {what}") from None
    return listening


def _announce(store: str, listening: socket.socket, made: str | None, given: tuple[str | None, ...]) -> None:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"Coterie serves {store} at http://{shown}:{port}", flush=True)
    if made is not None:
        print(f"Token for reading and writing, shown only now: {made}", flush=True)
    elif given[0] is None:
        print("The token of an earlier start still holds (--new-token makes another one).", flush=True)
    if any(token is not None and len(token) < SHORTEST_GOOD_TOKEN for token in given):
        print(f"Warning: a token of fewer than {SHORTEST_GOOD_TOKEN} characters can be guessed.", file=sys.stderr)


def _set_up_log(access_log: bool) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    requests: Any = logging.getLogger("uvicorn.access")
    requests.setLevel(logging.INFO if access_log else logging.WARNING)
    requests.addFilter(_WithoutQueries())
