"""A Dask cluster of real processes that talk over TCP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for a condition that is bound to come; what it gave."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found


class Cluster:
    """A scheduler and its workers, one thread each, none of which is restarted when it dies unless asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        contact = folder / "scheduler.json"
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(contact))
        self.address: str = until(lambda: contact.exists() and _json(contact))["address"]

    def _dask(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"log{len(self._processes)}.txt").open("wb")
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=self._folder, env=environment, start_new_session=True
        )
        log.close()
        self._processes.append(process)
        return process

    def worker(self, name: str, preload: str | None = None, nanny: str = "--no-nanny") -> subprocess.Popen[bytes]:
        """Start a worker; `preload` is Python that it runs first, and a nanny would start it again."""
        arguments = ["worker", self.address, "--nthreads", "1", nanny, "--name", name]
        arguments += ["--local-directory", str(self._folder)]
        if preload is not None:
            script = self._folder / f"preload_{name}.py"
            script.write_text(preload)
            arguments += ["--preload", str(script)]
        return self._dask(*arguments)

    def client(self) -> Any:
        """A client to look on with."""
        from distributed import Client

        return Client(self.address, timeout=60, set_as_default=False)

    def address_of(self, name: str, client: Any) -> str:
        """The address of a worker."""
        workers = client.scheduler_info()["workers"].items()
        return str(next(address for address, worker in workers if worker["id"] == name))

    until = staticmethod(until)

    def close(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError:  # being written
        return None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Without workers."""
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Shared by the tests of a module that leave it as it was."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.worker("one")
    made.worker("two")
    with made.client() as client:
        client.wait_for_workers(2, timeout=60)
    yield made
    made.close()
