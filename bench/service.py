"""Coterie's server beside a bare handler that does two durable writes, on SQLite and PostgreSQL.

Both answer the same clients, in turn, each in a process of its own and with a new store: an ask, a measurement that
takes no time, a tell, each on disk before it is acknowledged. The handler (`bench.bare`) decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.crowd import load
from bench.part import Column, Headline, Part, Progress, Row, Table, number, sign, times
from bench.server import DIM, N_ARMS, N_CLUSTERS, Process, cpu_seconds
from bench.service_loads import RESULTS, long_campaign, many_campaigns, several_processes

CLIENTS = (8, 64)
SECONDS, TURNS = 10.0, 3
"""Of each measurement, and how often both take turns: machines are busy now and then."""

RATIO, SLOWEST = 1.5, 200.0
"""Asked for: round trips over the bare handler's, and milliseconds that 99 of 100 requests take at most."""

HANDLER = "bench.bare"


@contextmanager
def served(address: str, module: str) -> Iterator[tuple[Process, str]]:
    """A server, with the campaign that it is asked about."""
    server = Process(address, module=module)
    try:
        server.wait_until_ready()
        if module == HANDLER:
            yield server, "bare"
            return
        made = {"name": "service", "n_arms": N_ARMS, "n_clusters": N_CLUSTERS, "dim": DIM, "noise": 1.0}
        yield server, json.loads(server.call("POST", "/api/campaigns", made))["id"]
    finally:
        server.stop()


def measured(address: str, module: str, clients: int, seconds: float) -> dict[str, float]:
    """Round trips a second, the 99th percentile of a request in ms, the server's processor time of a round trip."""
    with served(address, module) as (server, campaign):
        asyncio.run(load([server.port], server.token, [campaign], clients, seconds / 4))  # warm
        before = cpu_seconds([server])
        rate, taken = asyncio.run(load([server.port], server.token, [campaign], clients, seconds))
        used = cpu_seconds([server]) - before
    return {"rate": rate, "p99": float(np.percentile(taken, 99)), "cpu": 2e3 * used / len(taken)}


def on(store: str, new_address: Callable[[], str], clients: int, seconds: float, turns: int) -> Row:
    """Both in turn, medians over the turns; every measurement has an empty store."""
    modules = {"coterie": "coterie.cli", "bare": HANDLER}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in modules}
    for _ in range(turns):
        for name, module in modules.items():
            found[name].append(measured(new_address(), module, clients, seconds))
    middle = {
        f"{name}_{key}": float(np.median([turn[key] for turn in own])) for name, own in found.items() for key in own[0]
    }
    ratio = middle["coterie_rate"] / middle["bare_rate"]
    return {
        "store": store, "clients": clients, **middle, "ratio": ratio, "turns": turns,
        "met": ratio >= RATIO and (clients < max(CLIENTS) or middle["coterie_p99"] < SLOWEST),
    }  # fmt: skip


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, Callable[[], str]]]:
    """For each kind of store, what makes an empty one; PostgreSQL where pgserver is installed."""
    count = iter(range(10_000))
    kinds: dict[str, Callable[[], str]] = {"SQLite": lambda: f"sqlite:///{folder / f'{next(count)}.db'}"}
    try:
        import pgserver
    except ModuleNotFoundError:
        yield kinds
        return
    server: Any = pgserver.get_server(folder / "data", cleanup_mode="stop")

    def new_database() -> str:
        name = f"service{next(count)}"
        server.psql(f"CREATE DATABASE {name};")
        return str(server.get_uri(database=name))

    try:
        yield kinds | {"PostgreSQL": new_database}
    finally:
        server.cleanup()


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each store and number of clients, one for each comparison of loads, one for each figure."""
    seconds, turns, results = (2.0, 1, 5_000) if quick else (SECONDS, TURNS, RESULTS)
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="coterie-service-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)  # not a folder that only root may open: its PostgreSQL runs as another user
        with stores(Path(name)) as kinds:
            for store, new_address in kinds.items():
                for clients in CLIENTS:
                    found.append(on(store, new_address, clients, seconds, turns))
                    share = len(found) / (len(CLIENTS) + 2) / len(kinds)
                    progress.done(f"{store}, {clients} clients: {times(found[-1]['ratio'])} the bare handler", share)
            for store, new_address in kinds.items():
                found.append(many_campaigns(store, new_address, seconds, turns))
                progress.done(f"{found[-1]['what']}: {times(found[-1]['of_first'])}")
            for own in (True, False) if "PostgreSQL" in kinds else ():
                found.append(several_processes("PostgreSQL", kinds["PostgreSQL"], seconds, turns, own))
                progress.done(f"{found[-1]['what']}: {times(found[-1]['of_first'])}")
        found += long_campaign(Path(name), results)
        for row in found[-3:]:
            progress.done(f"{row['figure']}: {number(row['value'])} {row['unit']}")
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """All that something was asked of."""
    lines = [
        Headline(
            f"server: round trips over a bare handler's, {row['store']}, {row['clients']} clients",
            times(row["ratio"]), f"≥ {RATIO}×", row["ratio"] >= RATIO,
        )
        for row in found
        if "ratio" in row
    ]  # fmt: skip
    lines += [
        Headline(f"server: {row['what']}", times(row["of_first"]), f"≥ {row['asked']}×", row["met"])
        for row in found
        if "what" in row
    ]
    return lines + [
        Headline(f"server: {row['figure']}", f"{number(row['value'])} {row['unit']}", f"< {row['asked']:g}", row["met"])
        for row in found
        if "figure" in row
    ]


PART = Part(
    f"Coterie's server beside a bare handler with two durable writes (FastAPI, SQLAlchemy), M = {N_ARMS}: round trips "
    "of ask and tell a second,\n99th percentile of a request, processor time of the server a round trip; medians, in "
    f"turn. Asked for: {RATIO} times the handler's round trips, p99 below {SLOWEST:g} ms.",
    (
        Column("store", "store", left=True),
        Column("clients", "clients"),
        Column("Coterie", "coterie_rate", number),
        Column("handler", "bare_rate", number),
        Column("ratio", "ratio", times),
        Column("p99, ms", "coterie_p99", number),
        Column("handler", "bare_p99", number),
        Column("CPU, ms", "coterie_cpu", number),
        Column("handler", "bare_cpu", number),
        Column("", lambda row: sign(row["met"])),
    ),
    rows,
    headlines,
    section="store",
    seconds=900,
    has=lambda row: "ratio" in row,
    more=(
        Table(
            "Many campaigns at once, and several processes: round trips a second and processor time of the servers a "
            "round trip, 64 clients on the same two cores.",
            (
                Column("what", "what", left=True),
                Column("one", "first_rate", number),
                Column("many", "second_rate", number),
                Column("ratio", "of_first", times),
                Column("goal", "asked", "≥ {:g}".format),
                Column("CPU of one, ms", "first_cpu", number),
                Column("many", "second_cpu", number),
                Column("p99 of one, ms", "first_p99", number),
                Column("many", "second_p99", number),
                Column("", lambda row: sign(row["met"])),
            ),
            lambda row: "what" in row,
        ),
        Table(
            f"A campaign in SQLite with {RESULTS:,} results, asked and told in batches.",
            (
                Column("figure", "figure", left=True),
                Column("measured", "value", number),
                Column("", "unit", left=True),
                Column("goal", "asked", "< {:g}".format),
                Column("", lambda row: sign(row["met"])),
            ),
            lambda row: "figure" in row,
        ),
    ),
)  # fmt: skip
