"""Many campaigns at once, several server processes, and a long campaign: its memory, and its first ask after a restart.

Rows of the part `service` (`bench.service`); each comparison is measured in turn, with new stores.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.crowd import load
from bench.part import Row
from bench.server import DIM, N_ARMS, N_CLUSTERS, Process, cpu_seconds, measured
from coterie.campaign import Campaigns

CLIENTS = 64
MANY, MANY_ARMS, MANY_SHARE = 200, 100, 0.7
"""Campaigns at once, with so many items; asked for: that share of the round trips of one campaign."""
PROCESSES, CAMPAIGNS, MORE_BY_PROCESSES = 4, 16, 1.3
"""Of one PostgreSQL; asked for: so many times the round trips of one process."""
RESULTS, ASK_SECONDS, ASK_SECONDS_WITHOUT, BYTES = 100_000, 1.5, 5.0, 1_500.0
"""Of the long campaign; asked for: seconds of the first ask with and without a snapshot, memory a result."""
BATCH, WARM = 100, 2_000


def at_load(
    address: str, processes: int, campaigns: int, n_arms: int, seconds: float, own: bool = False
) -> dict[str, float]:
    """Round trips a second of all clients, the 99th percentile of a request in ms, the servers' processor time of a
    round trip in ms.
    """
    servers = [Process(address)]
    try:
        servers += [Process(address, servers[0].token) for _ in range(processes - 1)]
        for server in servers:
            server.wait_until_ready()
        shape = {"n_arms": n_arms, "n_clusters": N_CLUSTERS, "dim": DIM, "noise": 1.0}
        made = [servers[0].call("POST", "/api/campaigns", {"name": f"c{k}", **shape}) for k in range(campaigns)]
        ids, ports = [json.loads(each)["id"] for each in made], [server.port for server in servers]
        for server in servers:  # everybody has every campaign in memory
            for id in ids:
                server.call("GET", f"/api/campaigns/{id}")
        asyncio.run(load(ports, servers[0].token, ids, CLIENTS, seconds / 4, own))
        before = cpu_seconds(servers)
        rate, taken = asyncio.run(load(ports, servers[0].token, ids, CLIENTS, seconds, own))
        used = cpu_seconds(servers) - before
    finally:
        for server in servers:
            server.stop()
    return {"rate": rate, "p99": float(np.percentile(taken, 99)), "cpu": 2e3 * used / len(taken)}


def compared(
    what: str, asked: float, first: Callable[[], dict[str, float]], second: Callable[[], dict[str, float]], turns: int
) -> Row:
    """Both in turn, medians over the turns; the ratio is that of the second one."""
    found: dict[str, list[dict[str, float]]] = {"first": [], "second": []}
    for _ in range(turns):
        found["first"].append(first())
        found["second"].append(second())
    middle = {
        f"{name}_{key}": float(np.median([turn[key] for turn in own])) for name, own in found.items() for key in own[0]
    }
    ratio = middle["second_rate"] / middle["first_rate"]
    return {"what": what, **middle, "of_first": ratio, "asked": asked, "turns": turns, "met": ratio >= asked}


def many_campaigns(store: str, new_address: Callable[[], str], seconds: float, turns: int) -> Row:
    """One campaign, and many of which every client goes from one to the next."""
    return compared(
        f"{store}: {MANY} campaigns of {MANY_ARMS} items beside one", MANY_SHARE,
        lambda: at_load(new_address(), 1, 1, MANY_ARMS, seconds),
        lambda: at_load(new_address(), 1, MANY, MANY_ARMS, seconds), turns,
    )  # fmt: skip


def several_processes(store: str, new_address: Callable[[], str], seconds: float, turns: int, own: bool) -> Row:
    """One process, and several: each with campaigns of its `own`, or all of them with all."""
    return compared(
        f"{store}: {PROCESSES} processes beside one, {CAMPAIGNS} campaigns of {N_ARMS} items, "
        + ("each in one process" if own else "each in all of them"), MORE_BY_PROCESSES,
        lambda: at_load(new_address(), 1, CAMPAIGNS, N_ARMS, seconds),
        lambda: at_load(new_address(), PROCESSES, CAMPAIGNS, N_ARMS, seconds, own), turns,
    )  # fmt: skip


def long_campaign(folder: Path, results: int) -> list[Row]:
    """Memory a result of a campaign that grows, and seconds of the first ask after a restart, in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        bytes_a_result = pool.apply(grow, (folder / "long.db", results))
    rows = [figure(f"memory a result, {results:,} results, after {WARM:,} others", bytes_a_result, "bytes", BYTES)]
    for what, asked, drops in (
        ("with its snapshot", ASK_SECONDS, False),
        ("without", ASK_SECONDS_WITHOUT, True),
    ):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds = pool.apply(first_ask, (folder / "long.db", drops))
        rows.append(figure(f"first ask of it after a restart, {what}", seconds, "s", asked))
    return rows


def figure(what: str, value: float, unit: str, most: float) -> Row:
    """A figure of which less is better."""
    return {"figure": what, "value": value, "unit": unit, "asked": most, "met": value < most}


def grow(path: Path, results: int) -> float:
    """Tell a campaign so many results, asked in batches, with the snapshots that it makes; bytes of each in memory."""
    rng = np.random.default_rng(0)

    def tell(count: int) -> None:
        for _ in range(0, count, BATCH):
            asks = store.ask(id, "worker", BATCH)["asks"]
            store.tell(id, [
                {"id": ask["lease"], "arm": ask["arm"], "values": measured(rng, ask["arm"]), "lease": ask["lease"]}
                for ask in asks
            ])  # fmt: skip

    with Campaigns(path) as store:
        id = store.create("long", N_ARMS, N_CLUSTERS, DIM, noise=1.0)["id"]
        tell(WARM)
        before = resident_bytes()
        tell(results)
        gc.collect()
        return (resident_bytes() - before) / results


def first_ask(path: Path, without_snapshot: bool) -> float:
    """Seconds until a process that has just opened the store has answered an ask."""
    with Campaigns(path) as store:
        if without_snapshot:
            journal: Any = store._campaigns.journal
            with journal.engine.begin() as connection:
                connection.exec_driver_sql("DELETE FROM snapshots")
        (campaign,) = store.list()
        start = time.perf_counter()
        assert store.ask(campaign["id"], "somebody")["asks"]
        return time.perf_counter() - start


def resident_bytes() -> int:
    """Memory of this process."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(status.split("VmRSS:")[1].split()[0])
