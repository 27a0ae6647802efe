"""What every journal must do: the suite of `coterie.testing.journals` on SQLite, PostgreSQL and a journal in memory;
and what of it needs processes, kills and changes behind the journal's back.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memory_journal import MemoryJournal

from coterie.store import BadValue, Conflict, DamagedLog, Journal, Snapshot, StoreUnavailable, open_journal
from coterie.store.journal import VERSION
from coterie.store.rows import ALL_KINDS
from coterie.testing import journals
from coterie.testing.journals import begin_campaigns, sample_rows, sample_summary


@pytest.mark.parametrize("check", journals.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "memory"])
def test_every_journal_fulfils_the_contract(
    check: Callable[[Callable[[], Journal]], None], kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "memory":
        check(MemoryJournal.at_a_new_place())
        return
    address = str(tmp_path / "s.db") if kind == "sqlite" else str(request.getfixturevalue("postgres").new_database())
    check(lambda: open_journal(address))


def test_the_suite_notices_what_is_wrong() -> None:
    """A journal that writes at once, whatever becomes of the transaction."""

    class Careless(MemoryJournal):
        def writing(self, ids: Any = ()) -> Any:
            from contextlib import nullcontext

            from memory_journal import MemoryWriting

            return nullcontext(MemoryWriting(self._place[0], ids))

    with pytest.raises(AssertionError, match="what a broken transaction left"):
        journals.check_a_block_that_raises_leaves_nothing(Careless.at_a_new_place())
    with pytest.raises(DamagedLog, match="row 6 is one too many"):
        journals.check_a_reading_shows_one_state(Careless.at_a_new_place())


WRITER = """
import sys
from coterie.store import open_journal
from coterie.testing.journals import sample_rows, sample_summary
address, ids, count, size = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
journal = open_journal(address)
print("ready", flush=True)
sys.stdin.readline()
for k in range(count):
    with journal.writing(ids) as writing:
        for id in ids:
            writing.append(id, sample_rows(size, writing.locked[id]["last_seq"]), sample_summary(float(k)))
        ends = [writing.locked[id]["last_seq"] + size for id in ids]
    print(*ends, flush=True)
journal.close()
"""


def writer(address: str, ids: str, count: int, size: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, address, ids, str(count), str(size)]
    found = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert found.stdout is not None
    assert found.stdout.readline() == "ready\n"
    return found


@pytest.mark.slow
def test_processes_exclude_each_other(journal: Journal, address: str) -> None:
    """Each number is given once: whoever holds the lock has read what the others wrote."""
    begin_campaigns(journal, "a", "b")
    writers = [writer(address, ids, 20, 3) for ids in ("a,b", "b,a", "a")]
    ends: list[list[list[int]]] = []
    for one in writers:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in writers:
        out, _ = one.communicate(timeout=120)
        assert one.returncode == 0
        ends.append([[int(end) for end in line.split()] for line in out.splitlines()])
    with journal.reading() as reading:
        first, second = reading.campaigns()
        assert (first["last_seq"], second["last_seq"]) == (3 * 60, 3 * 40)
        for campaign in (first, second):
            assert reading.rows(campaign).rows == sample_rows(campaign["last_seq"])
    both, reverse, alone = ends
    of_a = [a for a, _ in both] + [a for _, a in reverse] + [a for (a,) in alone]
    of_b = [b for _, b in both] + [b for b, _ in reverse]
    assert (sorted(of_a), sorted(of_b)) == (list(range(3, 181, 3)), list(range(3, 121, 3)))


@pytest.mark.slow
def test_killed_in_the_middle_nothing_is_there_in_part(journal: Journal, address: str) -> None:
    """What was acknowledged is there, and of the rest of a transaction all rows of a campaign or none."""
    begin_campaigns(journal, "a", "b")
    rng = random.Random(3)
    size, seen = 400, [0, 0]
    for kill in range(6):
        worker = writer(address, "a,b", 10**6, size)
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
        if kill % 2:
            worker.stdout.readline()
        time.sleep(rng.random() * 0.06)
        worker.send_signal(signal.SIGKILL)
        lines = [line for line in worker.stdout if line.endswith("\n")]
        worker.wait(60)
        worker.stdin.close()
        worker.stdout.close()
        acknowledged = [int(part) for part in lines[-1].split()] if lines else seen
        with journal.reading() as reading:
            found = reading.campaigns()
            for campaign, least in zip(found, acknowledged, strict=True):
                assert campaign["last_seq"] >= least
                assert campaign["last_seq"] % size == 0
                assert reading.rows(campaign).rows == sample_rows(campaign["last_seq"])
        seen = [campaign["last_seq"] for campaign in found]
        append_all(journal, size)  # the next writer goes on
        seen = [last + size for last in seen]
    with journal.reading() as reading:
        for campaign in reading.campaigns():
            assert reading.count(campaign["id"]) == campaign["last_seq"] >= 6 * size


def append_all(journal: Journal, count: int) -> None:
    with journal.writing(["a", "b"]) as writing:
        for id in ("a", "b"):
            writing.append(id, sample_rows(count, writing.locked[id]["last_seq"]), sample_summary())


def test_a_snapshot_may_be_damaged_or_lost(journal: Journal, tampering: Any) -> None:
    begin_campaigns(journal, "a", "b")
    for spoil in (lambda old: old[:-1], lambda old: old[:-7] + b"x" + old[-6:], lambda old: b"", lambda old: b"\n\n"):
        with journal.writing() as writing:
            writing.keep_snapshot(Snapshot("a", 2, 3, "hash", b"content"))
        tampering.snapshot("a", spoil)
        with journal.reading() as reading:
            assert reading.snapshot("a") is None
    with journal.writing() as writing:
        writing.keep_snapshot(Snapshot("a", 2, 3, "hash", b"content"))
    tampering.snapshot("a", None)
    with journal.reading() as reading:
        assert reading.snapshot("a") is None


def test_a_newer_journal_is_refused_with_its_version(journal: Journal, address: str, tampering: Any) -> None:
    begin_campaigns(journal, "a")
    tampering.version(99)
    with pytest.raises(
        Conflict, match=f"schema version 99, this release knows versions up to {VERSION}.*upgrade"
    ) as caught:
        open_journal(address)
    assert caught.value.code == "newer_schema"


def test_addresses(tmp_path: Path) -> None:
    for wrong in ("mysql://host/db", "sqlite://", ":memory:", "", "  ", 7, None):
        with pytest.raises(BadValue) as caught:
            open_journal(wrong)  # type: ignore[arg-type]
        assert caught.value.field == "store"
    with pytest.raises(StoreUnavailable, match="there is no store at") as unavailable:
        open_journal(tmp_path / "x.db", create=False)
    assert unavailable.value.code == "no_store"


def test_a_folder_of_json_lines_is_refused_with_the_release_that_reads_it(tmp_path: Path) -> None:
    for folder in (tmp_path, f"{tmp_path}/new/", f"jsonl:///{tmp_path}"):
        with pytest.raises(
            BadValue, match=r"JSON lines is read by Coterie 0\.2, whose `coterie campaign export`"
        ) as caught:
            open_journal(folder)
        assert (caught.value.code, caught.value.field) == ("json_lines", "store")
    assert not (tmp_path / "new").exists()


def test_all_kinds_have_a_table() -> None:
    assert set(ALL_KINDS) == {type(row) for row in sample_rows(10)}
