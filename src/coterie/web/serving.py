"""Running the server: an address, its tokens, its log."""

from __future__ import annotations

import errno
import gc
import ipaddress
import json
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from coterie.campaign import Campaigns
from coterie.web.access import MOST_ASKS, SHORTEST_GOOD_TOKEN, access_to, check_token
from coterie.web.app import DEFAULT_MAX_BODY, DEFAULT_RATE, create_app
from coterie.web.limits import MOST_CONNECTIONS, MOST_PER_ADDRESS, Connections, limited
from coterie.web.webhooks import Webhooks

_OTHER_FILES = 200  # that the process has open beside its connections: the store's, above all
SWITCH_SECONDS = 0.001
"""How long one thread may keep the others waiting: an event loop and many short transactions share the interpreter."""
GARBAGE_OBJECTS = 10_000
"""New objects after which Python looks for garbage among them; a request makes some dozens."""


class Server(uvicorn.Server):
    """uvicorn's server that ends the streams of events first: they would hold it up.

    Parameters
    ----------
    app : fastapi.FastAPI
        From `create_app`.
    access_log : bool
        Whether requests are logged.
    limits : Connections, optional
        How many connections there may be, and which proxies are trusted.
    """

    def __init__(self, app: FastAPI, access_log: bool = False, limits: Connections | None = None) -> None:
        connections = Connections() if limits is None else limits
        proxies = list(connections.proxies)
        self._streams = app.state.event_streams
        self._streams.limit(connections.most, connections.most_per_address)
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=access_log,
                server_header=False,
                timeout_keep_alive=60,
                timeout_graceful_shutdown=5,
                http=limited(connections),
                ws="none",
                proxy_headers=bool(proxies),  # else anybody could pretend to come from any address
                forwarded_allow_ips=proxies,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order at the usual signals. uvicorn's own way kills the process before the store is closed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        ending = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else: nohup
            ending.append(signal.SIGHUP)
        before = {number: signal.signal(number, self.handle_exit) for number in ending}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @property
    def ended_by(self) -> int | None:
        """The signal that ended it."""
        return self._captured_signals[0] if self._captured_signals else None

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
    proxies: Sequence[str] = (),
    connections: int = MOST_CONNECTIONS,
    connections_per_address: int = MOST_PER_ADDRESS,
    asks_per_token: int = MOST_ASKS,
    metrics_token: str | None = None,
    webhooks: Sequence[str] = (),
    webhook_secret: str | None = None,
    webhook_private: bool = False,
    as_json: bool = False,
) -> None:
    """Serve a store until it is told to stop; what people need to know is printed.

    Parameters
    ----------
    store : str
        The address of a store: a file, or the URL of a database.
    host, port
        Where to listen; port 0 takes one that is free.
    token, read_token : str, optional
        Tokens of an owner and of a reader. Without a token one is made at the first start, and printed once.
    new_token : bool
        Make a new token, which ends all earlier ones.
    rate : float
        Requests a second for each token, 0 for no limit.
    max_body : int
        Bytes of a request's body.
    access_log : bool
        Whether requests are logged.
    proxies : sequence of str
        Addresses of proxies whose headers are trusted.
    connections, connections_per_address, asks_per_token : int
        How many there may be at once.
    metrics_token : str, optional
        A token that opens `/metrics`, and nothing else.
    webhooks : sequence of str
        Addresses that are told when a campaign stops, has an alarm or is blocked.
    webhook_secret : str, optional
        What webhooks are signed with.
    webhook_private : bool
        Whether webhooks may go to this machine and to private networks, and without TLS.
    as_json : bool
        Whether address and token are printed as one line of JSON.

    Raises
    ------
    ValueError
        If others can reach the address, and there is no token, or one that can be guessed.
    OSError
        If nobody can listen there.
    """
    limits = Connections(_allowed_by_system(connections), connections_per_address, _checked_proxies(proxies))
    if token is None and not is_loopback(host):
        raise ValueError(f"others can reach {host}: set a token, with --token or COTERIE_TOKEN")
    if not is_loopback(host):
        for given, option in (
            (token, "--token (COTERIE_TOKEN)"),
            (read_token, "--read-token (COTERIE_READ_TOKEN)"),
            (metrics_token, "--metrics-token (COTERIE_METRICS_TOKEN)"),
        ):
            if given is not None and len(given) < SHORTEST_GOOD_TOKEN:
                raise ValueError(
                    f"others can reach {host}, and a token of {len(given)} characters can be guessed: {option} needs "
                    f"at least {SHORTEST_GOOD_TOKEN}, for example from "
                    "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
                )
    if token is not None and new_token:
        raise ValueError("--token gives a token and --new-token makes one: use one of them")
    if metrics_token is not None:
        check_token(metrics_token, "metrics token")
        if metrics_token in (token, read_token):
            raise ValueError(
                "--metrics-token must differ from the other tokens: monitoring needs none of what they open"
            )
    listening = _listen(host, port)
    try:
        with Campaigns(store) as campaigns:
            access, made = access_to(campaigns, token, read_token, new_token, asks_per_token)
            told = Webhooks(campaigns, webhooks, webhook_secret, webhook_private)
            app = create_app(campaigns, access, rate, max_body, metrics_token, told)
            announce(campaigns.store, listening, made, (token, read_token, metrics_token), as_json)
            _set_up_log(access_log)
            with _interpreter_for_requests():
                server = Server(app, access_log, limits)
                server.run(sockets=[listening])
    finally:
        listening.close()
    if server.ended_by is not None:  # whoever started it sees how it ended, now that the store is closed
        signal.raise_signal(server.ended_by)


@contextmanager
def _interpreter_for_requests() -> Iterator[None]:
    """Threads take turns soon, and garbage is looked for less often, among what requests have made only: modules and
    models are none, and looking through them keeps everybody waiting for a tenth of a second.
    """
    switch, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(GARBAGE_OBJECTS, *thresholds[1:])
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(switch)


def _checked_proxies(given: Sequence[str]) -> list[str]:
    for address in given:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise ValueError(f"--proxy is the address of a proxy, as 127.0.0.1, got {address!r}") from None
    return list(given)


def _allowed_by_system(connections: int) -> int:
    """As many connections as are wanted, if the system lets this process have so many files open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - _OTHER_FILES))


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)  # from now on clients wait, rather than being refused
    except (OSError, OverflowError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        reason = "another program listens there; --port 0 takes a port that is free" if taken else str(error)
        raise OSError(f"cannot listen at {host} port {port}: {reason}") from None
    return listening


def announce(
    store: str, listening: socket.socket, made: str | None, given: tuple[str | None, ...], as_json: bool
) -> None:
    """Print what people, or with `as_json` programs, need to know of a server that listens."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}"
    said = [f"Coterie serves {store} at {address}"]
    if made is not None:
        said.append(f"Token for reading and writing, shown only now: {made}")
    elif given[0] is None:
        said.append("The token of an earlier start still holds (--new-token makes another one).")
    print(json.dumps({"store": store, "address": address, "token": made}) if as_json else "\n".join(said), flush=True)
    if any(token is not None and len(token) < SHORTEST_GOOD_TOKEN for token in given):
        print(f"Warning: a token of fewer than {SHORTEST_GOOD_TOKEN} characters can be guessed.", file=sys.stderr)


def _set_up_log(access_log: bool) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    requests: Any = logging.getLogger("uvicorn.access")
    requests.setLevel(logging.INFO if access_log else logging.WARNING)
    requests.addFilter(_WithoutQueries())
