"""What strangers without a token can take of a server: `python -m bench.strangers` attacks one of its own on 127.0.0.1
and prints how much memory it takes and whether others are served meanwhile.

Each attack is bounded in size and time. `--part 0.01` makes all of them a hundredth as large.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.server import Process
from coterie.campaign import Campaigns

HEADERS, ADDRESS, BODY = 300 * 2**20, 200 * 2**20, 8 * 2**20
HALF_OPEN, BODIES = 1010, 40
LONGEST = 60.0
"""Seconds that an attack may take."""
HOST = "127.0.0.1"


def memory(server: Process) -> float:
    """Of the server's process, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def connect(server: Process) -> socket.socket:
    found = socket.create_connection((HOST, server.port), timeout=10)
    found.settimeout(2.0)
    return found


def pour(one: socket.socket, piece: bytes, most: int) -> int:
    """Send the same again and again, until so much was sent or it is not taken any more; how many bytes were."""
    sent, until = 0, time.monotonic() + LONGEST
    try:
        while sent < most and time.monotonic() < until:
            one.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


def headers(server: Process, part: float) -> tuple[str, list[socket.socket]]:
    """One connection, 300 MB of headers."""
    one = connect(server)
    one.sendall(b"GET /healthz HTTP/1.1\r\n")
    sent = pour(one, b"X-Long: " + b"x" * 65536 + b"\r\n", int(HEADERS * part))
    return f"{sent / 2**20:.1f} MiB were taken off the line", [one]


def address(server: Process, part: float) -> tuple[str, list[socket.socket]]:
    """One connection, an address of 200 MB."""
    one = connect(server)
    one.sendall(b"GET /")
    sent = pour(one, b"x" * 65536, int(ADDRESS * part))
    return f"{sent / 2**20:.1f} MiB were taken off the line", [one]


def half_open(server: Process, part: float) -> tuple[str, list[socket.socket]]:
    """1 010 connections whose requests never end."""
    held = []
    for k in range(max(1, int(HALF_OPEN * part))):
        try:
            one = connect(server)
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" if k % 2 else b"")
            held.append(one)
        except OSError:
            break
    return f"{len(held)} connections were made", held


def bodies(server: Process, part: float) -> tuple[str, list[socket.socket]]:
    """40 bodies of 8 MiB on addresses that everybody may use, each without its last byte."""
    held, sent = [], 0
    for k in range(max(1, int(BODIES * part))):
        one = connect(server)
        line = b"POST /login" if k % 2 else b"GET /healthz"
        size = b"Content-Length: %d\r\n" % BODY if k % 4 < 2 else b"Transfer-Encoding: chunked\r\n"
        one.sendall(line + b" HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\n" + size + b"\r\n")
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n" if b"chunked" in size else b"x" * 65536
        sent += pour(one, piece, BODY - 65536)
        held.append(one)
    return f"{sent / 2**20:.1f} MiB were taken off the line", held


ATTACKS: tuple[Callable[[Process, float], tuple[str, list[socket.socket]]], ...] = (
    headers,
    address,
    half_open,
    bodies,
)


class Customer:
    """Somebody with a token who asks and tells, on a new connection each time; `worst` is the slowest so far."""

    def __init__(self, server: Process, id: str) -> None:
        self.server, self.path = server, f"/api/campaigns/{id}"
        self.times: list[float] = []
        self.refused = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        k = 0
        while not self._end.is_set():
            begun = time.perf_counter()
            try:
                self.server.call("POST", f"{self.path}/ask", {"worker": "w", "n": 1})
                told = {"id": f"{id(self)}-{k}", "arm": k % 6, "values": [0.0]}
                self.server.call("POST", f"{self.path}/tell", {"measurements": [told]})
                self.times.append(time.perf_counter() - begun)
            except (OSError, RuntimeError):
                self.refused += 1
            k += 1
            self._end.wait(0.02)

    def stop(self) -> None:
        self._end.set()
        self._thread.join()


def attack(server: Process, id: str, how: Any, part: float) -> dict[str, Any]:
    """One attack: how much memory it took at most, and how others fared."""
    before = highest = memory(server)
    customer = Customer(server, id)
    found: list[tuple[str, list[socket.socket]]] = []
    attacker = threading.Thread(target=lambda: found.append(how(server, part)))
    attacker.start()
    while attacker.is_alive():
        highest = max(highest, memory(server))
        time.sleep(0.02)
    attacker.join()
    until = time.monotonic() + 3.0  # what was begun is held for a while
    while time.monotonic() < until:
        highest = max(highest, memory(server))
        time.sleep(0.05)
    customer.stop()
    said, held = found[0]
    for one in held:
        one.close()
    return {
        "grown": highest - before,
        "said": said,
        "served": len(customer.times),
        "refused": customer.refused,
        "p99": float(np.percentile(customer.times, 99)) * 1000 if customer.times else float("nan"),
    }


def main() -> None:
    """Print a line for each attack; those that are named on the command line, or all."""
    names = [how.__name__ for how in ATTACKS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("attacks", nargs="*", help=f"of {', '.join(names)}; all if none is named")
    parser.add_argument("--part", type=float, default=1.0, help="how large they are, of the sizes named")
    given = parser.parse_args()
    if unknown := set(given.attacks) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if not 0.0 < given.part <= 1.0:
        parser.error(f"--part must lie in (0, 1], got {given.part}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with Campaigns(path) as store:
            shape: dict[str, Any] = {"n_clusters": 2, "dim": 1, "noise": 1.0, "method": "uniform", "delta": 1e-9}
            id = store.create("bench", 6, **shape)["id"]
        server = Process(path)
        try:
            server.call("POST", f"/api/campaigns/{id}/ask", {"worker": "w", "n": 1})
            time.sleep(1.0)
            for how in ATTACKS:
                if given.attacks and how.__name__ not in given.attacks:
                    continue
                found = attack(server, id, how, given.part)
                print(
                    f"{how.__name__:>10}: memory +{found['grown']:.1f} MiB; others: {found['served']} ask + tell, "
                    f"{found['refused']} refused, p99 {found['p99']:.0f} ms; {found['said']} "
                    f"({(how.__doc__ or '').strip()})",
                    flush=True,
                )
        finally:
            server.stop()


if __name__ == "__main__":
    main()
