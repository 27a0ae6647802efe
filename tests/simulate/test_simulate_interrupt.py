"""Ctrl-C ends a simulation at once and leaves nothing behind, whether a pull takes a microsecond or a millisecond."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals and process groups of POSIX")

SCRIPT = """
import threading, time
import numpy as np
import coterie

def report():  # once this thread and the main one are not alone
    while threading.active_count() < 3:
        time.sleep(0.01)
    print("started", flush=True)

n_arms, dim = {n_arms}, {dim}
labels = np.arange(n_arms) % 10
endless = coterie.Instance(labels, 1e-4 * np.random.default_rng(0).normal(size=(10, dim)))
coterie.simulate(endless, trials=1, max_pulls=1)  # everything is loaded
threading.Thread(target=report).start()
try:
    coterie.simulate(endless, deltas=[1e-9], trials=50, workers=2)
except KeyboardInterrupt:
    for thread in set(threading.enumerate()) - {{threading.current_thread()}}:
        thread.join()  # one that was just being started ends by itself; one that goes on is a time-out of the test
    print("ended", flush=True)
    raise
"""


@pytest.mark.parametrize(("n_arms", "dim"), [(11, 1), (3000, 12)])
def test_interrupt_leaves_nothing_behind(n_arms: int, dim: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(n_arms=n_arms, dim=dim)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        assert child.poll() is None
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)  # raises TimeoutExpired if it does not end
        assert "KeyboardInterrupt" in err
        assert out == "ended\n"
        assert child.returncode != 0
        with pytest.raises(ProcessLookupError):  # nobody is left in its process group
            os.killpg(child.pid, 0)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
