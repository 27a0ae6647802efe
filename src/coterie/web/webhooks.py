"""Webhooks: addresses that the owner of a server stated are told when a campaign stops, has an alarm or is blocked.

Requests are signed as https://www.standardwebhooks.com has it, so that receivers find a library for it. Each address
has a thread of its own, which nobody waits for: neither a request nor the end of the server.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import ipaddress
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from coterie import __version__
from coterie.campaign import CampaignError, Campaigns
from coterie.campaign.service.signals import KEPT_SECONDS, Signal

SHORTEST_SECRET = 20
ANSWER_SECONDS = 15.0
"""How long a delivery may take, from the first packet to the answer's status."""
LOOK_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 3600.0
"""Seconds before a delivery is tried again: twice as many each time."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

log = logging.getLogger("coterie.web")


class Timing(NamedTuple):
    """Seconds between two looks at the store, before the first new try, and that an answer may take."""

    look: float = LOOK_SECONDS
    pause: float = FIRST_PAUSE
    answer: float = ANSWER_SECONDS


class DeliveryError(Exception):
    """Why a delivery has failed."""


def checked_address(url: str, private: bool) -> str:
    """An address that may be stated; ValueError says what is wrong with it."""
    try:
        parts = urlsplit(url)
        usable = parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.scheme not in ("http", "https") or "@" in parts.netloc or not url.isprintable():
        raise ValueError(f"a webhook is an address such as https://lab.example/hook, without a user name, got {url!r}")
    if parts.scheme == "http" and not private:
        raise ValueError(f"{url} is not encrypted: use https://, or --webhook-private if it is inside your own network")
    return url


def key_of(secret: str | None) -> bytes:
    """The bytes of the secret that receivers know too; `whsec_…` is base64, as standardwebhooks.com has it."""
    if secret is None or len(secret) < SHORTEST_SECRET:
        raise ValueError(
            "webhooks are signed: set COTERIE_WEBHOOK_SECRET to a text that their receivers know too, of at least "
            f"{SHORTEST_SECRET} characters"
        )
    if secret.startswith("whsec_"):
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            raise ValueError("COTERIE_WEBHOOK_SECRET begins with whsec_, and is no base64 after that") from None
    return secret.encode()


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet, and neither of this machine nor of a network behind it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


class Webhooks:
    """What tells the addresses. `private`: addresses that are not of the internet are allowed."""

    def __init__(
        self, store: Campaigns, urls: Sequence[str], secret: str | None, private: bool = False,
        timing: Timing | None = None,
    ) -> None:  # fmt: skip
        key = key_of(secret) if urls else b""
        checked = dict.fromkeys(checked_address(url, private) for url in urls)
        self._addresses = [_Address(store, url, key, private, timing or Timing()) for url in checked]

    def start(self) -> None:
        """Begin to look and to tell."""
        for address in self._addresses:
            address.thread.start()

    def close(self) -> None:
        """End. What was not delivered is tried again by the next server."""
        for address in self._addresses:
            address.end()


class _Delivery:
    """A signal on its way."""

    def __init__(self, signal: Signal, pause: float) -> None:
        self.signal, self.pause, self.due = signal, pause, 0.0
        self.accepted = False  # the address has it, and the store does not know yet


class _Address:
    """One address, in a thread of its own."""

    def __init__(self, store: Campaigns, url: str, key: bytes, private: bool, timing: Timing) -> None:
        self._store, self._signals = store, store.signals()
        self._url, self._key, self._private, self._timing = url, key, private, timing
        self._name = hashlib.sha256(url.encode()).hexdigest()[:16]  # in logs that more people read than know the URL
        self._waiting: list[_Delivery] = []
        self._ending = threading.Event()
        self._socket: socket.socket | None = None
        self.thread = threading.Thread(target=self._run, name="coterie-webhook", daemon=True)

    def end(self) -> None:
        """End, also in the middle of a delivery."""
        self._ending.set()
        self._abort()
        if self.thread.is_alive():
            self.thread.join(1.0)

    def _abort(self) -> None:
        connected = self._socket
        if connected is not None:
            try:
                connected.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._look()
                self._deliver_due()
            except CampaignError as error:
                log.info("webhook: the store cannot be read now: %s", error.message)
            except Exception:
                if not self._ending.is_set():
                    log.exception("webhook")
            self._ending.wait(self._timing.look)

    def _look(self) -> None:
        fresh = [signal for signal in self._signals.news() if self._name not in signal.to]
        self._waiting += [_Delivery(signal, self._timing.pause) for signal in fresh]
        oldest = time.time() - KEPT_SECONDS
        self._waiting = [delivery for delivery in self._waiting if delivery.signal.at >= oldest]

    def _deliver_due(self) -> None:
        for delivery in list(self._waiting):
            if self._ending.is_set():
                return
            if delivery.due > time.monotonic():
                continue
            try:
                if not delivery.accepted:
                    self._send(delivery.signal)
                delivery.accepted = True
                self._signals.note_delivered(delivery.signal, self._name)
                self._waiting.remove(delivery)
            except (DeliveryError, CampaignError) as error:
                delivery.due = time.monotonic() + delivery.pause
                delivery.pause = min(2 * delivery.pause, LONGEST_PAUSE)
                host = urlsplit(self._url).hostname
                log.warning("webhook to %s: %s; tried again in %.0f s", host, error, delivery.due - time.monotonic())

    def _send(self, signal: Signal) -> None:
        parts = urlsplit(self._url)
        body = json.dumps(signal.content, ensure_ascii=False, separators=(",", ":")).encode()
        id, at = f"{signal.campaign}-{signal.key}", str(int(time.time()))
        signature = hmac.digest(self._key, f"{id}.{at}.".encode() + body, "sha256")
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"coterie/{__version__}",
            "webhook-id": id,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        }
        ends = time.monotonic() + self._timing.answer
        watch = threading.Timer(self._timing.answer, self._abort)
        watch.daemon = True
        watch.start()
        try:
            connection = self._connected(parts)
            try:
                path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
                connection.request("POST", path, body, headers)
                status = connection.getresponse().status  # a redirection is followed by nobody
            finally:
                self._socket = None
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = time.monotonic() >= ends  # then the connection was ended here, whatever the error says
            why = f" within {self._timing.answer:g} s" if late else f" ({error or type(error).__name__})"
            raise DeliveryError(f"no answer{why}") from None
        finally:
            watch.cancel()
        if not 200 <= status < 300:
            raise DeliveryError(f"it answered {status}")

    def _connected(self, parts: SplitResult) -> http.client.HTTPConnection:
        """A connection to the very address that was checked: a name is looked up once."""
        assert parts.hostname is not None
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        allowed = [entry for entry in addresses if self._private or is_public(str(entry[4][0]))]
        if not allowed:
            raise DeliveryError(
                f"{addresses[0][4][0]} is an address of this machine or of a private network, which takes "
                "--webhook-private"
            )
        family, kind, protocol, _, address = allowed[0]
        plain = socket.socket(family, kind, protocol)
        self._socket = plain
        try:
            plain.settimeout(self._timing.answer)
            plain.connect(address)
            connection: http.client.HTTPConnection
            if parts.scheme == "https":
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(plain, server_hostname=parts.hostname)
                connection = http.client.HTTPSConnection(parts.hostname, port, context=context)
            else:
                connection = http.client.HTTPConnection(parts.hostname, port)
        except BaseException:
            plain.close()
            self._socket = None
            raise
        connection.sock = self._socket
        return connection
