"""What a simulation sends over the network: all connections of client and worker pass a relay that counts bytes."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.instances import named
from bench.part import Column, Part, Progress, Row
from coterie.methods.trials import Plan
from coterie.simulate import remote
from coterie.simulate.bulk import plan_for, run_trials


class Relay:
    """Passes connections on to another port of this machine, and counts the bytes of both directions."""

    def __init__(self, target: int) -> None:
        self._target, self._lock = target, threading.Lock()
        self.bytes = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            near, _ = self._server.accept()
            far = socket.create_connection(("127.0.0.1", self._target))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    self.bytes += len(data)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relayed_cluster() -> Iterator[tuple[Relay, Relay, Relay]]:
    """A scheduler and a worker. Relays: client to scheduler, worker to scheduler, anyone to worker."""
    with tempfile.TemporaryDirectory() as folder:
        contact, processes = Path(folder) / "scheduler.json", []

        def dask(*arguments: str) -> None:
            command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
            quiet = subprocess.DEVNULL
            processes.append(subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True))

        try:
            dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(contact))
            while not contact.exists() or not contact.read_text().endswith("}"):
                time.sleep(0.05)
            port = int(json.loads(contact.read_text())["address"].rpartition(":")[2])
            with socket.create_server(("127.0.0.1", 0)) as free:
                own = free.getsockname()[1]
            relays = Relay(port), Relay(port), Relay(own)
            dask(
                "worker", f"tcp://127.0.0.1:{relays[1].port}", "--nthreads", "1", "--no-nanny",
                "--listen-address", f"tcp://127.0.0.1:{own}",
                "--contact-address", f"tcp://127.0.0.1:{relays[2].port}",
            )  # fmt: skip
            yield relays
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row a figure: bytes between client and scheduler, and to and from a worker."""
    from distributed import Client

    found: list[Row] = []
    wait = 2.0 if quick else 9.0
    with relayed_cluster() as relays:

        def counted() -> tuple[int, int]:
            time.sleep(1.0)  # for what is still on its way
            return relays[0].bytes, relays[1].bytes + relays[2].bytes

        def spent(plan: Plan, trials: int, together: int, client: Any) -> tuple[int, int]:
            """Bytes of a run with so many trials a task."""
            remote.MOST_TRIALS = together
            before = counted()
            run_trials(
                plan,
                0,
                range(trials),
                scheduler=client,
                finished=lambda outcome: None,
            )
            after = counted()
            return after[0] - before[0], after[1] - before[1]

        def add(what: str, client_bytes: float, worker_bytes: float) -> None:
            found.append({"what": what, "client": round(client_bytes), "worker": round(worker_bytes)})
            progress.done(f"{what}: client {client_bytes:,.0f}, worker {worker_bytes:,.0f}")

        deltas = [10.0**-k for k in range(1, 11)]
        small = plan_for(named("easy"), "boc", deltas, "heuristic")
        before = counted()
        with Client(f"tcp://127.0.0.1:{relays[0].port}", set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            after = counted()
            add("to connect", after[0] - before[0], 0)
            spent(small, 4, 1, client)
            before = counted()
            time.sleep(wait)
            after = counted()
            idle = [(more - less) / (wait + 1) for less, more in zip(before, after, strict=True)]
            add("a second without trials", *idle)
            if quick:
                return found
            few, many = spent(small, 50, 1, client), spent(small, 450, 1, client)
            task = [(more - less) / 400 for less, more in zip(few, many, strict=True)]
            add("a task of one trial, ten δ", *task)
            few, many = spent(small, 1000, 100, client), spent(small, 9000, 100, client)
            add("a further trial in it", *[(more - less - 80 * one) / 7920 for less, more, one in
                                           zip(few, many, task, strict=True)])  # fmt: skip
            base = spent(small, 10, 1, client)
            for name in ("Yeast", "MNIST d=400"):
                plan = plan_for(named(name), "uniform", deltas, "heuristic", named(name).n_arms)
                with_plan = spent(plan, 10, 1, client)
                size = len(pickle.dumps(plan, protocol=5))
                add(f"the plan, once: {name} ({size:,} bytes pickled)", *[
                    more - less for less, more in zip(base, with_plan, strict=True)])  # fmt: skip
    return found


PART = Part(
    "Bytes that a simulation on a Dask cluster sends, both ways.",
    (
        Column("what", "what", left=True),
        Column("client ↔ scheduler", "client", "{:,}".format),
        Column("to and from a worker", "worker", "{:,}".format),
    ),
    rows,
    seconds=60,
)
