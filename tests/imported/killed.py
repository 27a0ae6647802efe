"""A process that is killed in the middle of its work, as a power cut would, and what it had said until then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from typing import Any

from coterie.campaign import Campaigns


def kill_points(*usual: int) -> list[int]:
    """After how many lines to kill. `COTERIE_KILLS=25`: so many times, at places that are drawn."""
    kills = int(os.environ.get("COTERIE_KILLS", 0))
    return [random.Random(seed).randrange(1, 3 * max(usual)) for seed in range(kills)] if kills else list(usual)


def said_until_killed(script: str, *arguments: str, lines: int) -> list[str]:
    """Start Python with this script, wait until it says "ready", kill it after so many further lines; all it said.

    Half a line at the end is none. The script prints what was acknowledged, and flushes.
    """
    worker = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    said = [worker.stdout.readline() for _ in range(lines)]
    worker.send_signal(signal.SIGKILL)
    said += [line for line in worker.stdout if line.endswith("\n")]
    worker.wait(60)
    worker.stdout.close()
    print("1 kill")  # counted by `python -m bench.faults`
    return said


def lasting(status: dict[str, Any]) -> dict[str, Any]:
    """A campaign's status without what only a clock changes."""
    return {key: value for key, value in status.items() if key not in ("open_leases", "workers")}


def assert_reads_the_same(url: str, id: str, before: dict[str, Any]) -> None:
    """What a process says that had the campaign open all the time, and what two say that read it from the store."""
    with Campaigns(url) as store, Campaigns(url) as other:
        assert lasting(store.status(id)) == lasting(before)
        assert lasting(other.status(id)) == lasting(store.status(id))
