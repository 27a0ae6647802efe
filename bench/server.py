"""Speed of the server: round trips of ask and tell over HTTP, and how long a large campaign's page takes.

8 clients measure in one campaign on a SQLite file, each result on disk before it is acknowledged. The clients run in a
process of their own and share the machine with the server. The same round trips are also made without HTTP (threads of
one process), without the commit (the session alone), so that the parts can be told apart.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.part import Column, Headline, Part, Progress, Row, number, sign

CLIENTS = 8
N_ARMS, N_CLUSTERS, DIM = 1000, 8, 8
ROUND_TRIPS = 4000
WARM = 1200  # first every item once: that is not what takes long
LARGE = 100_000


def centers() -> Any:
    """Groups close enough for no method to be done before the benchmark is."""
    return np.random.default_rng(1).normal(size=(N_CLUSTERS, DIM)) * 0.4


def measured(rng: np.random.Generator, arm: int) -> list[float]:
    return [float(value) for value in centers_at[arm % N_CLUSTERS] + rng.normal(size=DIM)]


centers_at = centers()


class Process:
    """A server of its own. `module`: whose it is; one other than Coterie's is started with the store alone."""

    def __init__(self, store: Path | str, token: str | None = None, module: str = "coterie.cli") -> None:
        self.token = token or secrets.token_urlsafe(16)
        env = {**os.environ, "COTERIE_TOKEN": self.token}
        options = ["serve", "--store", str(store), "--port", "0", "--rate", "0"]
        command = [sys.executable, "-m", module, *(options if module == "coterie.cli" else [str(store)])]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().strip().rpartition(":")[2])

    def call(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "Accept": accept}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return content

    def wait_until_ready(self) -> None:
        """The port is printed before the first connection is taken."""
        while True:
            try:
                self.call("GET", "/healthz")
                return
            except ConnectionError:
                time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


def cpu_seconds(servers: list[Process]) -> float:
    """Seconds of the processor that the servers have used."""
    ticks = 0
    for server in servers:
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Client:
    """A connection that is kept, and as little else as possible: its work is not what is measured."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, path: str, body: Any) -> Any:
        content = json.dumps(body)
        self.writer.write(
            f"POST {path} HTTP/1.1\r\n{self.head}Content-Length: {len(content)}\r\n\r\n{content}".encode()
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        answer = json.loads(await self.reader.readexactly(length))
        if b" 200 " not in head[:20]:
            raise RuntimeError(answer)
        return answer


async def load(port: int, token: str, id: str, round_trips: int) -> tuple[float, list[float]]:
    """(round trips a second, the milliseconds of every request)."""
    left = round_trips
    times: list[float] = []

    async def work(number: int) -> None:
        nonlocal left
        client, rng = Client(port, token), np.random.default_rng([number, round_trips])
        await client.open()
        while left > 0:
            left -= 1
            begin = time.perf_counter()
            answer = await client.post(f"/api/campaigns/{id}/ask", {"worker": f"client {number}", "n": 1})
            middle = time.perf_counter()
            (ask,) = answer["asks"]
            one = {"id": ask["lease"], "arm": ask["arm"], "values": measured(rng, ask["arm"]), "lease": ask["lease"]}
            sent = time.perf_counter()
            await client.post(f"/api/campaigns/{id}/tell", {"measurements": [one]})
            times.extend((1e3 * (middle - begin), 1e3 * (time.perf_counter() - sent)))
        client.writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(CLIENTS)))
    return round_trips / (time.perf_counter() - start), times


def over_http(folder: Path, round_trips: int) -> tuple[float, float]:
    """(round trips a second, p99 of a request in ms)."""
    server = Process(folder / "http.db")
    try:
        made = {"name": "bench", "n_arms": N_ARMS, "n_clusters": N_CLUSTERS, "dim": DIM}
        id = json.loads(server.call("POST", "/api/campaigns", made))["id"]
        asyncio.run(load(server.port, server.token, id, WARM))
        rate, times = asyncio.run(load(server.port, server.token, id, round_trips))
        return rate, float(np.percentile(times, 99))
    finally:
        server.stop()


def without_http(folder: Path, round_trips: int) -> float:
    """Round trips a second of threads on the store itself."""
    from coterie.campaign import Campaigns

    with Campaigns(folder / "threads.db") as store:
        id = store.create("bench", N_ARMS, N_CLUSTERS, DIM, noise=1.0)["id"]
        left = [WARM]

        def work(number: int) -> None:
            rng = np.random.default_rng(number)
            while left[0] > 0:
                left[0] -= 1
                (ask,) = store.ask(id, f"client {number}")["asks"]
                values = measured(rng, ask["arm"])
                store.tell(id, [{"id": ask["lease"], "arm": ask["arm"], "values": values, "lease": ask["lease"]}])

        def run(count: int) -> float:
            left[0] = count
            threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
            start = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return count / (time.perf_counter() - start)

        run(WARM)
        return run(round_trips)


def session_alone(round_trips: int) -> float:
    """Round trips a second of the session in memory, one at a time."""
    session = coterie.Session(N_ARMS, N_CLUSTERS, DIM, noise=1.0)
    rng = np.random.default_rng(0)

    def run(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            arm = session.ask()
            session.tell(arm, measured(rng, int(arm)))
        return count / (time.perf_counter() - start)

    run(WARM)
    return run(round_trips)


def fsyncs(folder: Path) -> float:
    """Milliseconds of one small write with fsync: what the disk allows."""
    with open(folder / "probe", "wb") as file:
        start = time.perf_counter()
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - start) / 200 * 1e3


def large_page(folder: Path, large: int) -> tuple[float, float, float]:
    """Seconds until the page of a campaign with so many measurements is there: warm; after a start; all of it."""
    from coterie.campaign import Campaigns

    with Campaigns(folder / "large.db") as store:
        id = store.create("large", N_ARMS, N_CLUSTERS, DIM, noise=1.0)["id"]
        rng = np.random.default_rng(0)
        arms = np.arange(large) % N_ARMS
        values = centers_at[arms % N_CLUSTERS] * 0.05 + rng.normal(size=(large, DIM))
        for begin in range(0, large, 10_000):
            part = range(begin, begin + 10_000)
            store.tell(id, [{"id": str(i), "arm": int(arms[i]), "values": values[i].tolist()} for i in part])
    server = Process(folder / "large.db")
    try:
        server.wait_until_ready()
        times = []
        for i in range(7):
            start = time.perf_counter()
            # First the page, then what it fetches when the campaign was not in memory yet.
            server.call("GET", f"/campaigns/{id}{'/live' if i == 1 else ''}", accept="text/html")
            times.append(time.perf_counter() - start)
        return float(np.median(times[2:])), times[0], times[0] + times[1]
    finally:
        server.stop()


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row a figure."""
    found: list[Row] = []
    round_trips, large = (200, 10_000) if quick else (ROUND_TRIPS, LARGE)

    def add(what: str, value: float, unit: str, asked: str, met: bool | None) -> None:
        found.append({"what": what, "value": value, "unit": unit, "asked": asked, "met": met})
        progress.done(f"{what}: {value:.4g} {unit}")

    with tempfile.TemporaryDirectory(dir=os.environ.get("COTERIE_BENCH_FOLDER")) as name:
        own = Path(name)
        alone = session_alone(round_trips)
        threads = without_http(own, round_trips)
        rate, p99 = over_http(own, round_trips)
        disk = fsyncs(own)
        add(f"ask + tell over HTTP, {CLIENTS} clients, M = {N_ARMS}, croc", rate, "a second", "≥ 300", rate >= 300)
        add("p99 of a request", p99, "ms", "< 100", p99 < 100)
        add("the same without HTTP", threads, "a second", "", None)
        add("the session alone", alone, "a second", "", None)
        add("one fsync", disk, "ms", "", None)
        warm, cold, whole = large_page(own, large)
        add(f"page of a campaign with {large:,} measurements", warm, "s", "< 1", warm < 1)
        add("the same, first thing after the server's start", cold, "s", "< 1", cold < 1)
        add("until its groups and evidence are there, too", whole, "s", "", None)
    return found


PART = Part(
    f"The server, with {CLIENTS} clients on the same machine.",
    (
        Column("figure", "what", left=True),
        Column("measured", "value", number),
        Column("", "unit", left=True),
        Column("goal", "asked", left=True),
        Column("", lambda row: sign(row["met"])),
    ),
    rows,
    lambda found: [
        Headline(f"server: {row['what']}", f"{number(row['value'])} {row['unit']}", row["asked"], row["met"])
        for row in found
        if row["met"] is not None
    ],
    seconds=60,
)
