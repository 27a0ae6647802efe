"""Whether one campaign holds up another: `python -m bench.neighbours` prints how long ask + tell of a small campaign
take while others do something large on the same server.

The goal is 250 ms for 99 of 100 on two cores. The disturbing clients are processes of their own. Sizes are options:
`--large 200000 --imported 200000 --streams 200` are the largest that were ever complained about.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bench.server import Process, cpu_seconds
from coterie.campaign import Campaigns

ROUND_TRIPS = 100
GOAL = 0.25


@dataclass(frozen=True)
class Sizes:
    """How large a scene is."""

    large: int = 20_000  # results in the campaign that is large
    imported: int = 20_000  # rows of the table
    opened: int = 40  # campaigns that a reader opens again and again; 32 are kept in memory
    streams: int = 150


class Scene:
    """A server with a small campaign, which is measured in, a large one, and many others."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.path, self.sizes = folder / "store.db", sizes
        with Campaigns(self.path) as store:
            shape: dict[str, Any] = {"n_clusters": 3, "dim": 1, "noise": 1.0, "method": "uniform", "delta": 1e-9}
            self.small = store.create("small", 12, **shape)["id"]
            self.large = store.create("large", 300, **shape)["id"]
            self.leased = store.create("leased", 300, **shape)["id"]
            self.filled = store.create("filled", 300, **shape)["id"]
            names = [f"an item with a rather long name, number {k}" for k in range(20_000)]
            self.wide = store.create("wide", len(names), names=names, **shape)["id"]
            self.others = [store.create(f"other {k}", 12, **shape)["id"] for k in range(sizes.opened)]
            rng = np.random.default_rng(0)
            rows = [{"id": str(k), "arm": k % 300, "v0": float(rng.normal())} for k in range(sizes.large)]
            store.import_table(self.large, rows, in_order=True)
        with open(folder / "table.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "arm", "v0"])
            writer.writerows([k, k % 300, round(float(rng.normal()), 4)] for k in range(sizes.imported))
        self.table = folder / "table.csv"
        self.server = Process(self.path)

    def call(self, method: str, path: str, body: Any = None) -> bytes | None:
        try:
            return self.server.call(method, f"/api/campaigns{path}", body)
        except RuntimeError:  # refused: what is asked for is too much, and that is an answer too
            return None


def evict(scene: Scene) -> None:
    """A reader opens 40 campaigns again and again; somebody writes to the large one, which has to be read again."""
    k = 0
    while True:
        for id in scene.others:
            scene.call("GET", f"/{id}")
        scene.call("POST", f"/{scene.large}/tell", {"measurements": [{"id": f"x{k}", "arm": 0, "values": [0.0]}]})
        k += 1


def lease(scene: Scene) -> None:
    """Asks for 10 000 items each, and results for single ones."""
    k = 0
    while True:
        scene.call("POST", f"/{scene.leased}/ask", {"worker": f"w{k}", "n": 10_000})
        scene.call("POST", f"/{scene.leased}/tell", {"measurements": [{"id": f"y{k}", "arm": 0, "values": [0.0]}]})
        k += 1


def fill(scene: Scene) -> None:
    """An import by command, of a table that is long."""
    with Campaigns(scene.path) as store:
        store.import_table(scene.filled, scene.table, in_order=True)


def list_all(scene: Scene) -> None:
    """The list of campaigns, one of which has 20 000 names."""
    while True:
        scene.call("GET", "")


def look(scene: Scene) -> None:
    """The status of the campaign with 20 000 names."""
    while True:
        scene.call("GET", f"/{scene.wide}")


def follow(scene: Scene) -> None:
    """Streams of the whole log of the large campaign, to two addresses: each gets 150 at most."""
    path = f"/api/campaigns/{scene.large}/events"
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {scene.server.token}\r\n\r\n"
    streams = []
    for k in range(scene.sizes.streams):
        source = (f"127.0.0.{1 + k % 2}", 0)
        one = socket.create_connection(("127.0.0.1", scene.server.port), source_address=source)
        one.sendall(head.encode())
        one.setblocking(False)
        streams.append(one)
    while True:
        for one in streams:
            with suppress(BlockingIOError):
                one.recv(1 << 20)
        time.sleep(0.01)


def measure(scene: Scene, worker: str) -> list[float]:
    """Seconds of each ask + tell."""
    found = []
    for k in range(ROUND_TRIPS):
        begun = time.perf_counter()
        asked = scene.call("POST", f"/{scene.small}/ask", {"worker": worker, "n": 1})
        assert asked is not None
        result = {"id": f"{worker}-{k}", "arm": k % 12, "values": [0.1]}
        assert scene.call("POST", f"/{scene.small}/tell", {"measurements": [result]}) is not None
        found.append(time.perf_counter() - begun)
        time.sleep(0.01)
    return found


def main() -> None:
    """Print a line for each disturbance; those that are named on the command line, or all."""
    known: list[Callable[[Scene], None] | None] = [None, evict, lease, fill, list_all, look, follow]
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("disturbances", nargs="*", help="all if none is named")
    for size in fields(Sizes):
        parser.add_argument(f"--{size.name}", type=int, default=size.default)
    given = parser.parse_args()
    wanted = given.disturbances
    names = [one.__name__ for one in known if one is not None]
    if unknown := set(wanted) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    sizes = Sizes(**{size.name: getattr(given, size.name) for size in fields(Sizes)})
    disturbances = [one for one in known if not wanted or (one is not None and one.__name__ in wanted)]
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), sizes)
        try:
            measure(scene, "warm")
            print(f"ask + tell of another campaign, {ROUND_TRIPS} round trips each; goal: p99 < {GOAL * 1000:.0f} ms")
            for disturb in disturbances:
                name = "nothing else" if disturb is None else disturb.__name__
                process = None
                if disturb is not None:
                    process = multiprocessing.Process(target=disturb, args=(scene,), daemon=False)
                    process.start()
                    time.sleep(1.0)
                used = cpu_seconds([scene.server])
                try:
                    times = np.array(measure(scene, name)) * 1000.0
                finally:
                    if process is not None:
                        process.terminate()
                        process.join()
                used = cpu_seconds([scene.server]) - used
                p50, p99 = np.percentile(times, [50, 99])
                said = "" if disturb is None else f"  ({(disturb.__doc__ or '').strip()})"
                print(
                    f"{name:>14}: p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, max {times.max():6.1f} ms; the server has used "
                    f"{used:.1f} s of a processor, load {os.getloadavg()[0]:.1f}{said}",
                    flush=True,
                )
        finally:
            scene.server.stop()


if __name__ == "__main__":
    main()
