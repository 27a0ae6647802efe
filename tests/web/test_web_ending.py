"""How a server ends: at the usual signals in order, with everything in the store's file."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from coterie.campaign import Campaigns


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_file_is_complete_after_every_ordinary_end(start: Any, tmp_path: Path, number: signal.Signals) -> None:
    server = start()
    id = server.api.create(method="uniform")
    for k in range(40):
        assert server.api.tell(id, {"id": str(k), "arm": k % 6, "values": [0.0, 1.0]}).status == 200
    server.process.send_signal(number)
    server.process.wait(300)
    assert server.process.returncode in (-number, 130)
    assert not (tmp_path / "store.db-wal").exists()
    shutil.copy(tmp_path / "store.db", tmp_path / "copy.db")
    with Campaigns(tmp_path / "copy.db", create=False) as store:
        assert store.status(id)["measurements"] == 40


def test_a_server_that_shall_outlive_its_terminal_does(start: Any, tmp_path: Path) -> None:
    """nohup: SIGHUP is ignored, and stays so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        server = start()
    finally:
        signal.signal(signal.SIGHUP, before)
    server.process.send_signal(signal.SIGHUP)
    assert server.api.get("/healthz").status == 200
    server.stop()


def test_backup_by_command_while_the_server_runs(start: Any, tmp_path: Path) -> None:
    server = start()
    id = server.api.create(method="uniform")
    for k in range(12):
        server.api.tell(id, {"id": str(k), "arm": k % 6, "values": [0.0, 1.0]})
    command = [sys.executable, "-m", "coterie.cli", "campaign", "backup", str(tmp_path / "copy.db")]
    answer = subprocess.run(
        [*command, "--store", str(tmp_path / "store.db")], capture_output=True, text=True, timeout=300
    )
    assert (answer.returncode, answer.stderr) == (0, f"wrote {tmp_path / 'copy.db'}\n")
    server.api.tell(id, {"id": "later", "arm": 0, "values": [0.0, 1.0]})
    with Campaigns(tmp_path / "copy.db", create=False) as store:
        assert store.status(id)["measurements"] == 12
    again = subprocess.run(
        [*command, "--store", str(tmp_path / "store.db")], capture_output=True, text=True, timeout=300
    )
    assert again.returncode == 2
    assert again.stderr.endswith("copy.db is there already: name a new file\n")
    server.process.kill()
    server.process.wait()
    wait_until(lambda: (tmp_path / "store.db-wal").exists())
    (tmp_path / "store.db-wal").unlink()
    listed = subprocess.run(
        [sys.executable, "-m", "coterie.cli", "campaign", "list", "--store", str(tmp_path / "store.db")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert listed.returncode == 2
    assert "without its journal store.db-wal" in listed.stderr
    assert len(listed.stderr.splitlines()) == 1


def test_no_result_is_answered_200_once_the_store_is_gone(start: Any, tmp_path: Path) -> None:
    server = start("--rate", "0")
    id = server.api.create(method="uniform")
    assert server.api.tell(id, {"id": "a", "arm": 0, "values": [0.0, 1.0]}).status == 200
    health = server.api.with_token(None).get("/healthz")
    assert (health.status, health.json["writable"]) == (200, True)
    for file in tmp_path.glob("store.db*"):
        file.unlink()
    for k in range(3):
        answer = server.api.tell(id, {"id": f"b{k}", "arm": 0, "values": [0.0, 1.0]})
        assert answer.status == 503, answer.content
    wait_until(lambda: server.api.with_token(None).get("/healthz").status == 503)
    assert "cannot be written" in server.api.with_token(None).get("/healthz").error["message"]
    assert not list(tmp_path.glob("store.db*"))
    server.stop()
