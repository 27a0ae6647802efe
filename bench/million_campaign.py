"""A million items through a campaign: `python -m bench.million` creates it in a SQLite file, asks in batches of 10 000,
tells what came out until the groups are proven, opens it again in other processes, with and without its snapshot,
exports the certificate and the log and verifies them, and opens its page on a server.

Prints of each step the seconds of the processor, those on the wall, and the most memory that its process has held. It
fails if the groups are wrong, if the certificate does not verify, or if an opened campaign is not the one written.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.instances import drawn
from bench.pace import peak
from bench.part import Row
from bench.rounds import apart
from bench.server import Process, cpu_seconds

ARMS, BATCH = 1_000_000, 10_000
N_CLUSTERS, DIM, GAP, DELTA = 10, 8, 12.0, 0.1
ASKED_GIB, ASKED_SECONDS = 6.0, 1.0


class Clock:
    """Seconds of the processor and on the wall since it was made."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def row(self, step: str, **more: Any) -> Row:
        """A step that ends now."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        return {"step": step, "cpu": cpu, "wall": wall, "gib": peak(), **more}


def digest(status: dict[str, Any]) -> dict[str, Any]:
    """What two openings of one campaign must agree about."""
    return {key: status[key] for key in ("seq", "t", "done", "measurements", "centers", "evidence", "verdict")}


def written(store: str, n_arms: int, batch: int) -> list[Row]:
    """Create the campaign, ask and tell until the groups are proven."""
    from coterie.campaign import Campaigns

    instance = drawn(n_arms, N_CLUSTERS, DIM, GAP)
    rng = np.random.default_rng(1)
    found: list[Row] = []
    with Campaigns(store) as campaigns:
        clock = Clock()
        begun = campaigns.list()  # an earlier run may have been ended: nothing that was acknowledged is lost
        if begun:
            id, number = begun[0]["id"], begun[0]["measurements"]
            campaigns.status(id)
            rng = np.random.default_rng([1, number])
        else:
            id, number = campaigns.create("many", n_arms, N_CLUSTERS, DIM, delta=DELTA, noise=1.0)["id"], 0
        found.append(clock.row(f"open with {number:,} results of an earlier run" if begun else "create"))
        first = number
        cpu = {"ask": 0.0, "tell": 0.0}
        wall = {"ask": 0.0, "tell": 0.0}
        while True:
            asking = Clock()
            asks = campaigns.ask(id, "robot", batch)["asks"]
            took = asking.row("ask")
            arms = np.array([one["arm"] for one in asks], dtype=np.int64)
            values = (instance.centers[instance.labels[arms]] + rng.normal(size=(arms.size, DIM))).round(6).tolist()
            results = [
                {"id": f"r{number + i}", "arm": one["arm"], "values": values[i], "lease": one["lease"]}
                for i, one in enumerate(asks)
            ]
            number += len(asks)
            telling = Clock()
            done = campaigns.tell(id, results)["done"] if results else campaigns.overview(id)["done"]
            told = telling.row("tell")
            for what, one in (("ask", took), ("tell", told)):
                cpu[what], wall[what] = cpu[what] + one["cpu"], wall[what] + one["wall"]
            print(
                f"  {number:,} told: ask {took['cpu']:.2f} s, tell {told['cpu']:.2f} s, {peak():.2f} GiB",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            if done or not results:
                break
        for what in ("ask", "tell"):
            found.append(
                {"step": f"{what}, {number - first:,} in all", "cpu": cpu[what], "wall": wall[what], "gib": peak()}
            )
        clock = Clock()
        status = campaigns.status(id)
        found.append(clock.row("status", id=id, digest=digest(status)))
    right = check_groups(status["labels"], instance)
    assert status["done"], "the groups are not proven"
    assert right, "the groups are wrong"
    return found


def check_groups(labels: list[int], instance: Any) -> bool:
    from coterie import same_partition

    return bool(same_partition(np.array(labels), instance.labels))


def opened(store: str, id: str, step: str, wanted: dict[str, Any]) -> Row:
    """Open the campaign in this process, and compare."""
    from coterie.campaign import Campaigns

    clock = Clock()
    with Campaigns(store) as campaigns:
        status = campaigns.status(id)
        row = clock.row(step)
    assert digest(status) == wanted, "the campaign that was opened is another one"
    return row


def exported(store: str, id: str, folder: str) -> list[Row]:
    """Export certificate and log."""
    from coterie.campaign import Campaigns

    found = []
    with Campaigns(store) as campaigns:
        for kind, name in (("certificate", "certificate.json"), ("log", "log.csv")):
            clock = Clock()
            path = Path(folder) / name
            path.write_text(campaigns.export(id, kind), encoding="utf-8")
            found.append(clock.row(f"export {kind}, {path.stat().st_size / 2**20:.0f} MiB"))
    return found


def verified(folder: str) -> Row:
    """Verify the files that were exported."""
    import coterie

    clock = Clock()
    verdict = coterie.verify(Path(folder) / "certificate.json", Path(folder) / "log.csv")
    assert verdict.valid, verdict.problems[:3]
    return clock.row("verify")


def forget_snapshot(store: Path) -> int:
    """Delete what is only a cache; how many bytes it had."""
    with sqlite3.connect(store) as connection:
        (size,) = connection.execute("SELECT COALESCE(SUM(LENGTH(content)), 0) FROM snapshots").fetchone()
        connection.execute("DELETE FROM snapshots")
    connection.close()
    return int(size)


def memory_of(process: int) -> float:
    """The most memory that another process has held, GiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**20


def served(store: Path, id: str) -> list[Row]:
    """The page on a server: first thing after its start, what it fetches then, and again; the status for programs."""
    server, found = Process(store), []
    try:
        server.wait_until_ready()

        def get(step: str, path: str, accept: str) -> None:
            begun, used = time.perf_counter(), cpu_seconds([server])
            content = server.call("GET", path, accept=accept)
            wall, cpu = time.perf_counter() - begun, cpu_seconds([server]) - used
            found.append({"step": f"{step}, {len(content) / 2**20:.2f} MiB", "cpu": cpu, "wall": wall,
                          "gib": memory_of(server.process.pid)})  # fmt: skip

        get("page, first thing after a start", f"/campaigns/{id}", "text/html")
        get("what it fetches when the campaign is read", f"/campaigns/{id}/live", "text/html")
        for _ in range(3):
            get("page", f"/campaigns/{id}", "text/html")
        get("status over HTTP", f"/api/campaigns/{id}", "application/json")
        get("list over HTTP", "/api/campaigns", "application/json")
        get("picture over HTTP", f"/api/campaigns/{id}/picture", "application/json")
    finally:
        server.stop()
    return found


def main() -> None:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--arms", type=int, default=ARMS, help="items of the campaign")
    parser.add_argument("--batch", type=int, default=BATCH, help="asks and results at once")
    parser.add_argument("--folder", type=Path, default=None, help="where the store is made and kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = given.folder or Path(own)
        store = folder / "many.db"
        print(f"{given.arms:,} items, K = {N_CLUSTERS}, d = {DIM}, gap {GAP:g}, noise 1, δ = {DELTA}, by CROC")
        steps: list[Row] = []

        def add(rows: list[Row]) -> None:
            for row in rows:
                steps.append(row)
                times = f"{row['cpu']:8.2f} s CPU, {row['wall']:8.2f} s wall"
                print(f"{row['step']:>48}: {times}, {row['gib']:5.2f} GiB", flush=True)

        add(apart("bench.million_campaign:written", str(store), given.arms, given.batch))
        id, wanted = next((row["id"], row["digest"]) for row in steps if "id" in row)
        add([apart("bench.million_campaign:opened", str(store), id, "open again, with the snapshot", wanted)])
        add(served(store, id))
        size = store.stat().st_size
        print(f"the store has {size / 2**20:.0f} MiB, {forget_snapshot(store) / 2**20:.0f} MiB of it the snapshot")
        add([apart("bench.million_campaign:opened", str(store), id, "open again, without", wanted)])
        add(apart("bench.million_campaign:exported", str(store), id, str(folder)))
        add([apart("bench.million_campaign:verified", str(folder))])
    most = max(row["gib"] for row in steps)
    print(f"most memory of a process: {most:.2f} GiB (goal: < {ASKED_GIB:g})")


if __name__ == "__main__":
    main()
