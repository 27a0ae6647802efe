"""A folder of JSON lines on a full disk and without permission to write: said so, and nothing is lost or half there."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FULL = """
import json, resource, signal, sys
sys.path.append(sys.argv[1])
from journal_rows import append, begin, facts, summary
from coterie.store import StoreUnavailable, open_journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = open_journal(sys.argv[2])
begin(journal, "a", "b")
append(journal, "a", 40)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # as when a quota ends: write() itself fails

def both():
    with journal.writing(["a", "b"]) as writing:
        for id in ("a", "b"):
            writing.append(id, facts(5, writing.locked[id]["last_seq"]), summary())

def ends():
    with journal.reading() as reading:
        for campaign in reading.campaigns():
            assert reading.rows(campaign).rows == facts(campaign["last_seq"])
        return [campaign["last_seq"] for campaign in reading.campaigns()]

refused = 0
for _ in range(30):
    before = ends()
    try:
        both()
    except StoreUnavailable as error:
        assert "too large" in error.message, error.message
        assert not error.uncertain  # the first file could not be written
        assert ends() == before
        refused += 1
try:
    begin(journal, *(f"c{k}" for k in range(200)))
except StoreUnavailable:
    refused += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
full = ends()
both()
assert ends() == [end + 5 for end in full]
print(json.dumps([refused, full]))
"""
READ_ONLY = """
import os, sys
sys.path.append(sys.argv[1])
from journal_rows import append, begin, facts
from coterie.store import StoreUnavailable, open_journal
folder = sys.argv[2]
journal = open_journal(folder)
begin(journal, "a")
append(journal, "a", 5)
root = os.geteuid() == 0

def protect(on):
    if root:
        os.seteuid(0)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o444 if on else 0o666)
    os.chmod(folder, 0o555 if on else 0o777)
    if root and on:
        os.seteuid(65534)  # root writes everywhere

protect(True)
for work in (lambda: append(journal, "a", 5), lambda: begin(journal, "b")):
    try:
        work()
    except StoreUnavailable as error:
        print(error.message)
    else:
        sys.exit("it was written")
with open_journal(folder).reading() as reading:
    assert reading.rows(reading.campaign("a")).rows == facts(5)
protect(False)
append(journal, "a", 5)
print("recovered")
"""
IMPORTED = str(Path(__file__).resolve().parents[1] / "imported")


def run(script: str, folder: Path) -> str:
    command = [sys.executable, "-c", script, IMPORTED, f"{folder}/"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_full_disk_is_said_so_and_nothing_is_lost(tmp_path: Path) -> None:
    refused, full = json.loads(run(FULL, tmp_path / "store"))
    assert refused >= 2
    assert full[0] > 40


def test_a_read_only_folder_is_said_so_and_can_be_read() -> None:
    with tempfile.TemporaryDirectory() as own:
        Path(own).chmod(0o755)  # for the user that root becomes
        *refused, last = run(READ_ONLY, Path(own, "store")).splitlines()
    assert refused == ["the store cannot be used now: Permission denied"] * 2
    assert last == "recovered"
