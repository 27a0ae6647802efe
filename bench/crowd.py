"""Several server processes on one PostgreSQL, and many clients: `python -m bench.crowd` prints round trips of ask and
tell a second, the 50th and 99th percentile of a request, and the processor's time of the servers and of PostgreSQL for
a round trip, beside one process.

A round trip is an ask, a measurement that takes no time, and a tell, each result on disk before it is acknowledged.
Clients come in over all processes in turn. All of them in one campaign is the hardest case: every process has to read
what the others have written before it decides. The clients are one further process on the same machine.

`--turns` measures what following the others costs by itself: stores in this one process take turns, each with as many
requests to a transaction, without HTTP; the processor's time is that of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.server import DIM, N_ARMS, N_CLUSTERS, Client, Process, cpu_seconds, measured
from coterie.campaign import Campaigns

CLIENTS, PROCESSES, CAMPAIGNS, SECONDS = 64, 4, 16, 20.0


async def load(
    ports: list[int], token: str, ids: list[str], clients: int, seconds: float, own: bool = False
) -> tuple[float, list[float]]:
    """(round trips a second, the milliseconds of every request); client k asks process k mod P for campaign k mod C.

    Where there are more campaigns than clients, each client goes on to the next ones. `own`: all clients of a campaign
    ask the same process, k mod C mod P.
    """
    times: list[float] = []
    trips, until = 0, time.perf_counter() + seconds

    async def work(number: int) -> None:
        nonlocal trips
        port = ports[number % len(ids) % len(ports) if own else number % len(ports)]
        client, rng = Client(port, token), np.random.default_rng(number)
        place, further = number if own else number // len(ports), clients if len(ids) > clients else 0
        await client.open()
        while time.perf_counter() < until:
            path = f"/api/campaigns/{ids[place % len(ids)]}"
            place += further
            begin = time.perf_counter()
            (ask,) = (await client.post(f"{path}/ask", {"worker": f"client {number}", "n": 1}))["asks"]
            middle = time.perf_counter()
            one = {"id": ask["lease"], "arm": ask["arm"], "values": measured(rng, ask["arm"]), "lease": ask["lease"]}
            await client.post(f"{path}/tell", {"measurements": [one]})
            times.extend((1e3 * (middle - begin), 1e3 * (time.perf_counter() - middle)))
            trips += 1
        client.writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(clients)))
    return trips / (time.perf_counter() - begun), times


def database_seconds(postmaster: int) -> float:
    """Seconds of the processor that PostgreSQL has used, with all of its processes, those that have ended too."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        if path.parent.name == str(postmaster):
            ticks += sum(int(field) for field in fields[11:15])  # its own, and those of its children that have ended
        elif fields[1] == str(postmaster):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(address: str, postmaster: int, processes: int, campaigns: int, clients: int, seconds: float) -> None:
    """Print a line for so many processes and campaigns."""
    token = secrets.token_urlsafe(16)
    servers = [Process(address, token)]
    servers += [Process(address, token) for _ in range(processes - 1)]
    try:
        shape: dict[str, Any] = {"n_arms": N_ARMS, "n_clusters": N_CLUSTERS, "dim": DIM, "noise": 1.0}
        names = [f"crowd {secrets.token_hex(4)}" for _ in range(campaigns)]
        made = [servers[0].call("POST", "/api/campaigns", {"name": name, **shape}) for name in names]
        ids = [json.loads(one)["id"] for one in made]
        ports = [server.port for server in servers]
        asyncio.run(load(ports, token, ids, clients, seconds / 4))  # everybody has every campaign in memory
        before, database = cpu_seconds(servers), database_seconds(postmaster)
        rate, times = asyncio.run(load(ports, token, ids, clients, seconds))
        used, database = cpu_seconds(servers) - before, database_seconds(postmaster) - database
        p50, p99 = np.percentile(times, [50, 99])
        trips = len(times) / 2
        print(
            f"{processes} process{'' if processes == 1 else 'es'}, {clients} clients, {campaigns} "
            f"campaign{'' if campaigns == 1 else 's'}: {rate:6.1f} round trips a second, p50 {p50:6.1f} ms, "
            f"p99 {p99:6.1f} ms; processor a round trip: {1e3 * used / trips:.2f} ms of the servers, "
            f"{1e3 * database / trips:.2f} ms of PostgreSQL",
            flush=True,
        )
    finally:
        for server in servers:
            server.stop()


def turn(store: Campaigns, worker: str, ids: list[str], rng: np.random.Generator) -> int:
    """An ask for each campaign in one transaction, their results in another; how many."""
    calls = [("ask", id, worker, 1) for id in ids]
    asks = [(id, ask) for id, answer in zip(ids, store.batch(calls), strict=True) for ask in answer["asks"]]
    results = [
        (
            "tell",
            id,
            [{"id": ask["lease"], "arm": ask["arm"], "values": measured(rng, ask["arm"]), "lease": ask["lease"]}],
        )
        for id, ask in asks
    ]
    assert all("accepted" in answer for answer in store.batch(results))
    return len(asks)


def measure_turns(address: str, processes: int, campaigns: int, rounds: int = 30) -> None:
    """Print what a round trip costs one store, and several that take turns, measured in turn too."""
    crews = [[Campaigns(address) for _ in range(count)] for count in (1, processes)]
    ids = [
        [
            crew[0].create(f"turns {secrets.token_hex(4)}", N_ARMS, N_CLUSTERS, DIM, noise=1.0)["id"]
            for _ in range(campaigns)
        ]
        for crew in crews
    ]
    rng, used, trips = np.random.default_rng(0), [0.0, 0.0], [0, 0]
    for number in range(rounds + 1):
        for k, crew in enumerate(crews):
            for place in range(processes):
                begun = time.process_time()
                count = turn(crew[place % len(crew)], f"worker {place % len(crew)}", ids[k], rng)
                if number:  # in the first everybody reads every campaign
                    used[k] += time.process_time() - begun
                    trips[k] += count
    one, several = (1e3 * seconds / count for seconds, count in zip(used, trips, strict=True))
    plural = "" if campaigns == 1 else "s"
    print(
        f"in turns, {campaigns} campaign{plural} to a transaction: {one:.2f} ms of the processor a round "
        f"trip by one store, {several:.2f} ms by {processes} ({several / one:.2f} times)"
    )
    for store in (store for crew in crews for store in crew):
        store.close()


def main() -> None:
    """One process and several, all clients in one campaign and in several."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each line")
    parser.add_argument("--turns", action="store_true", help="only what following costs by itself")
    given = parser.parse_args()
    import pgserver

    # Not a folder that only root may open: its PostgreSQL runs as another user.
    with tempfile.TemporaryDirectory(prefix="coterie-crowd-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = pgserver.get_server(Path(folder, "data"), cleanup_mode="stop")
        postmaster = int(Path(folder, "data", "postmaster.pid").read_text().split()[0])
        try:
            if given.turns:
                measure_turns(server.get_uri(), given.processes, given.campaigns)
            for campaigns in () if given.turns else dict.fromkeys((1, given.campaigns)):
                for processes in dict.fromkeys((1, given.processes)):
                    measure(server.get_uri(), postmaster, processes, campaigns, given.clients, given.seconds)
            print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
