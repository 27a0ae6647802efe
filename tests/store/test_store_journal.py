"""What every journal must do: append, read after a number, lock, and say what is wrong. One suite for all of them."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from journal_rows import append, begin, facts, summary

from coterie.store import BadValue, Conflict, Journal, Snapshot, StoreUnavailable, open_journal
from coterie.store.journal import VERSION, Known, Selection, Token
from coterie.store.rows import ALL_KINDS, Ask, Note, Told

CHAIN_OF_20 = "8fe2a1533ba65dc8ad3f9bdef2268d103bbbb319d1c407e5f01e6fec56251362"


def test_rows_come_back_as_they_were_written(journal: Journal, address: str) -> None:
    begin(journal, "a", "b")
    for count in (1, 7, 12):
        append(journal, "a", count)
    append(journal, "b", 3)
    again = open_journal(address)
    with again.reading() as reading:
        for id, count in (("a", 20), ("b", 3)):
            campaign = reading.campaign(id)
            assert campaign is not None
            page = reading.rows(campaign)
            assert page.rows == facts(count)
            assert [type(row) for row in page.rows] == [type(row) for row in facts(count)]
            assert (campaign["last_seq"], campaign["chain"]) == (count, page.hash)
            assert reading.count(id) == count
            assert reading.hash_of(id, count) == page.hash
            assert reading.hash_of(id, count + 1) is None
    again.close()


def test_the_hashes_are_the_same_in_every_journal_and_release(journal: Journal) -> None:
    begin(journal, "a")
    append(journal, "a", 20)
    with journal.reading() as reading:
        campaign = reading.campaign("a")
        assert campaign is not None
        assert campaign["chain"] == CHAIN_OF_20


def test_rows_after_a_number(journal: Journal) -> None:
    begin(journal, "a")
    for _ in range(10):
        append(journal, "a", 11)
    whole = facts(110)
    with journal.reading() as reading:
        campaign = reading.campaign("a")
        assert campaign is not None
        for after in (0, 1, 10, 11, 12, 54, 99, 109, 110, 500):
            assert reading.rows(campaign, after).rows == whole[after:]
            for limit in (1, 2, 11, 30, 110, 200):
                assert reading.rows(campaign, after, limit).rows == whole[after : after + limit]
                for kinds in ((Told,), (Ask, Note)):
                    wanted = [row for row in whole[after:] if type(row) in kinds]
                    assert reading.rows(campaign, after, limit, kinds).rows == wanted[:limit]
        wanted = [row for row in whole if isinstance(row, Note) and row.kind == "evidence"]
        assert reading.notes(campaign, "evidence").rows == wanted
        assert reading.notes(campaign, "nothing").rows == []
        found = reading.hash_of("a", 50)
        assert reading.rows(campaign, 50, previous=found).rows == whole[50:]


def test_rows_of_several_campaigns_since_a_number(journal: Journal) -> None:
    ids = ("a", "b", "c", "d")
    begin(journal, *ids)
    for id, count in zip(ids, (20, 7, 12, 20), strict=True):
        append(journal, id, count)
    with journal.reading() as reading:
        rows = {id: row for id in ids if (row := reading.campaign(id)) is not None}
        hashes = {id: reading.hash_of(id, 5) or "" for id in ids}
        known = [Known(rows[id], 5, hashes[id]) for id in ids[:3]]
        assert reading.rows_since([]) == {}
        assert list(reading.rows_since(known[:1])) == ["a"]
        found = reading.rows_since([*known, Known(rows["d"], 5, hashes["a"])])  # which is another one's hash
        assert {id: page.rows for id, page in found.items()} == {
            "a": facts(20)[5:], "b": facts(7)[5:], "c": facts(12)[5:]
        }  # fmt: skip
        assert {id: page.hash for id, page in found.items()} == {id: rows[id]["chain"] for id in ids[:3]}
        up_to_date = Known(rows["b"], 7, rows["b"]["chain"])
        assert reading.rows_since([up_to_date, known[0]])["b"].rows == []


def test_campaigns_are_listed_oldest_first_with_their_summaries(journal: Journal) -> None:
    begin(journal, "b", "a")
    append(journal, "a", 4)
    with journal.reading() as reading:
        first, second = reading.campaigns()
        assert reading.campaign("c") is None
        assert reading.campaign("../a") is None
    assert (first["id"], first["name"], first["settings"], first["created"]) == (
        "b",
        "campaign b",
        '{"n_arms": 3}',
        0.0,
    )
    assert (first["last_seq"], first["last_at"], first["t"], first["done"]) == (0, 0.0, 0, 0)
    assert (second["id"], second["last_seq"]) == ("a", 4)
    assert {key: second[key] for key in summary()} == summary()  # type: ignore[literal-required]


def test_what_does_not_go_on_is_refused(journal: Journal) -> None:
    begin(journal, "a")
    append(journal, "a", 3)
    for rows in (facts(1, 2), facts(1, 4), [*facts(1, 3), *facts(1, 5)]):
        with (
            pytest.raises(ValueError, match="the next row of campaign a has number"),
            journal.writing(["a"]) as writing,
        ):
            writing.append("a", rows, summary())
    with pytest.raises(ValueError, match="taken"):
        begin(journal, "a")
    for wrong in ("", "../x", "a b"):
        with pytest.raises(ValueError, match="letters and digits"):
            begin(journal, wrong)
    with journal.reading() as reading:
        assert [row["last_seq"] for row in reading.campaigns()] == [3]


def test_a_block_that_raises_leaves_nothing(journal: Journal) -> None:
    begin(journal, "a", "b")

    def breaks() -> None:
        with journal.writing(["a", "b", "unknown"]) as writing:
            assert set(writing.locked) == {"a", "b"}
            for id in ("a", "b"):
                writing.append(id, facts(5), summary())
            writing.add_campaign("c", "c", "{}", 0.0)
            writing.add_token({"hash": "h", "scope": "read", "label": "", "created": 1.0})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        breaks()
    with journal.reading() as reading:
        assert [(row["id"], row["last_seq"]) for row in reading.campaigns()] == [("a", 0), ("b", 0)]
        assert reading.tokens() == []


def test_a_reading_shows_one_state(journal: Journal) -> None:
    begin(journal, "a")
    append(journal, "a", 5)
    with journal.reading() as reading:
        campaign = reading.campaign("a")
        assert campaign is not None
        append(journal, "a", 5)
        assert len(reading.rows(campaign).rows) == 5
        assert reading.count("a") == 5
        assert reading.campaign("a") == campaign
        assert len(reading.rows(campaign, kinds=(Told,)).rows) == 2
    with journal.reading() as reading:
        assert reading.count("a") == 10


def test_threads_and_transactions_over_several_campaigns(journal: Journal) -> None:
    ids = ["a", "b", "c"]
    begin(journal, *ids)

    def work(number: int) -> None:
        for k in range(8):
            mine = [ids[(number + k) % 3], ids[(number + k + 1) % 3]]
            with journal.writing(mine) as writing:
                for id in mine:
                    writing.append(id, facts(3, writing.locked[id]["last_seq"]), summary())

    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(work, number) for number in range(4)]:
            job.result()
    with journal.reading() as reading:
        for campaign in reading.campaigns():
            assert reading.rows(campaign).rows == facts(campaign["last_seq"])
        assert sum(campaign["last_seq"] for campaign in reading.campaigns()) == 4 * 8 * 2 * 3


WRITER = """
import sys
sys.path.append(sys.argv[1])
from journal_rows import facts, summary
from coterie.store import open_journal
address, ids, count, size = sys.argv[2], sys.argv[3].split(","), int(sys.argv[4]), int(sys.argv[5])
journal = open_journal(address)
print("ready", flush=True)
sys.stdin.readline()
for k in range(count):
    with journal.writing(ids) as writing:
        for id in ids:
            writing.append(id, facts(size, writing.locked[id]["last_seq"]), summary(float(k)))
        ends = [writing.locked[id]["last_seq"] + size for id in ids]
    print(*ends, flush=True)
journal.close()
"""
IMPORTED = str(Path(__file__).resolve().parents[1] / "imported")


def writer(address: str, ids: str, count: int, size: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, IMPORTED, address, ids, str(count), str(size)]
    found = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert found.stdout is not None
    assert found.stdout.readline() == "ready\n"
    return found


@pytest.mark.slow
def test_processes_exclude_each_other(journal: Journal, address: str) -> None:
    """Each number is given once: whoever holds the lock has read what the others wrote."""
    begin(journal, "a", "b")
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
            assert reading.rows(campaign).rows == facts(campaign["last_seq"])
    both, reverse, alone = ends
    of_a = [a for a, _ in both] + [a for _, a in reverse] + [a for (a,) in alone]
    of_b = [b for _, b in both] + [b for b, _ in reverse]
    assert (sorted(of_a), sorted(of_b)) == (list(range(3, 181, 3)), list(range(3, 121, 3)))


@pytest.mark.slow
def test_killed_in_the_middle_nothing_is_there_in_part(journal: Journal, address: str) -> None:
    """What was acknowledged is there, and of the rest of a transaction all rows of a campaign or none."""
    begin(journal, "a", "b")
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
                assert reading.rows(campaign).rows == facts(campaign["last_seq"])
        seen = [campaign["last_seq"] for campaign in found]
        append_all(journal, size)  # the next writer goes on
        seen = [last + size for last in seen]
    with journal.reading() as reading:
        for campaign in reading.campaigns():
            assert reading.count(campaign["id"]) == campaign["last_seq"] >= 6 * size


def append_all(journal: Journal, count: int) -> None:
    with journal.writing(["a", "b"]) as writing:
        for id in ("a", "b"):
            writing.append(id, facts(count, writing.locked[id]["last_seq"]), summary())


def test_a_writer_waits_for_the_lock_and_no_longer(journal: Journal, address: str) -> None:
    begin(journal, "a")
    inside, order = threading.Event(), []

    def second() -> None:
        other = open_journal(address)
        inside.wait(60)
        with other.writing(["a"]) as writing:
            order.append(writing.locked["a"]["last_seq"])
        other.close()

    thread = threading.Thread(target=second)
    thread.start()
    with journal.writing(["a"]) as writing:
        inside.set()
        time.sleep(0.2)
        order.append(-1)
        writing.append("a", facts(2), summary())
    thread.join(60)
    assert order == [-1, 2]


def test_snapshots_replace_each_other_and_may_be_lost(journal: Journal, tampering: Any) -> None:
    begin(journal, "a", "b")
    for seq, content in ((1, b"one"), (2, bytes(range(256)) * 50)):
        with journal.writing() as writing:
            writing.keep_snapshot(Snapshot("a", seq, 3, "hash", content))
    with journal.reading() as reading:
        assert reading.snapshot("a") == Snapshot("a", 2, 3, "hash", bytes(range(256)) * 50)
        assert reading.snapshot("b") is None
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


def test_tokens(journal: Journal, address: str) -> None:
    with journal.writing() as writing:
        assert writing.add_token({"hash": "h2", "scope": "read", "label": "x", "created": 2.0})
        assert writing.add_token({"hash": "h1", "scope": "write", "label": "", "created": 1.0})
    with journal.writing() as writing:
        assert not writing.add_token({"hash": "h1", "scope": "read", "label": "", "created": 3.0})
    again = open_journal(address)
    with again.reading() as reading:
        assert [(one["hash"], one["scope"]) for one in reading.tokens()] == [("h1", "write"), ("h2", "read")]
    with again.writing() as writing:
        writing.remove_token("h1")
        writing.remove_token("nothing")
    with journal.reading() as reading:
        assert [one["hash"] for one in reading.tokens()] == ["h2"]
    again.close()


def test_a_newer_journal_is_refused_with_its_version(journal: Journal, address: str, tampering: Any) -> None:
    begin(journal, "a")
    tampering.version(99)
    with pytest.raises(
        Conflict, match=f"schema version 99, this release knows versions up to {VERSION}.*upgrade"
    ) as caught:
        open_journal(address)
    assert caught.value.code == "newer_schema"


def test_addresses(tmp_path: Path) -> None:
    for wrong in ("mysql://host/db", "sqlite://", ":memory:", "", "  ", "jsonl://host/x", "jsonl:///", 7, None):
        with pytest.raises(BadValue) as caught:
            open_journal(wrong)  # type: ignore[arg-type]
        assert caught.value.field == "store"
    for missing in (tmp_path / "x.db", f"{tmp_path}/x/", f"jsonl:///{tmp_path}/x"):
        with pytest.raises(StoreUnavailable, match="there is no store at") as unavailable:
            open_journal(missing, create=False)
        assert unavailable.value.code == "no_store"
    for new in (f"{tmp_path}/one/", f"jsonl:///{tmp_path}/two"):
        open_journal(new).close()
        assert open_journal(new, create=False).name.startswith("jsonl:///")
    open_journal(tmp_path / "one").close()  # a folder that exists needs no slash
    assert json.loads((tmp_path / "two" / "journal.json").read_text()) == {"format": "coterie-journal", "version": 5}
    with pytest.raises(StoreUnavailable, match="is a folder with other files"):
        open_journal(tmp_path)
    with pytest.raises(StoreUnavailable, match="No such file or directory"):
        open_journal(f"{tmp_path}/no/folder/")


def test_all_kinds_have_a_table() -> None:
    assert set(ALL_KINDS) == {type(row) for row in facts(10)}


def test_some_campaigns_are_selected(journal: Journal) -> None:
    with journal.writing() as writing:
        for k in range(6):
            about = '{"n": 3}' if k % 2 else ""
            writing.add_campaign(f"c{k}", f"Beans {k}", '{"n_arms": 3}', float(k // 2), about)

    def ids(*wanted: Any, **more: Any) -> list[str]:
        with journal.reading() as reading:
            return [row["id"] for row in reading.select(Selection(*wanted, **more))]

    assert ids(10) == ["c0", "c1", "c2", "c3", "c4", "c5"]
    assert ids(2, newest_first=True) == ["c5", "c4"]
    assert ids(10, after=(1.0, "c2")) == ["c3", "c4", "c5"]
    assert ids(10, after=(1.0, "c2"), newest_first=True) == ["c1", "c0"]
    assert ids(10, name="bEANS 4") == ["c4"]
    assert ids(10, name="%") == []
    assert ids(10, only="c3") == ["c3"]
    with journal.reading() as reading:
        assert [row["settings"] for row in reading.select(Selection(2))] == ['{"n_arms": 3}', ""]
    with journal.writing(["c1"]) as writing:
        after = {"last_at": 9.0, "t": 0, "measurements": 0, "open_leases": 0, "done": 0, "archived": 9.0}
        writing.append("c1", [Note(1, "archived", "{}", 9.0)], after)  # type: ignore[arg-type]
    assert ids(2) == ["c0", "c2"]
    assert ids(2, archived=True) == ["c0", "c1"]
    with journal.reading() as reading:
        found = reading.campaign("c1")
    assert found is not None
    assert (found["archived"], found["about"]) == (9.0, '{"n": 3}')


def test_a_removed_campaign_is_gone_and_swept_in_parts(journal: Journal) -> None:
    begin(journal, "a", "b")
    append(journal, "a", 30)
    append(journal, "b", 4)
    token: Token = {"hash": "h", "scope": "worker", "label": "x", "created": 0.0, "campaign": "a"}
    with journal.writing() as writing:
        writing.add_token(token)
        writing.add_session({"hash": "s", "token": "h", "until": 9.0})
        writing.keep_snapshot(Snapshot("a", 30, 1, "x", b"content"))
    with journal.writing(["a"]) as writing:
        writing.remove_campaign("a")
    with journal.reading() as reading:
        assert (reading.campaign("a"), reading.named("campaign a")) == (None, None)
        assert [row["id"] for row in reading.campaigns()] == ["b"]
        assert (reading.tokens(), reading.sessions()) == ([], [])
    with journal.writing(["a", "b"]) as writing:
        assert set(writing.locked) == {"b"}
    parts = 1
    while True:
        with journal.writing() as writing:
            if not writing.sweep(7):
                break
        parts += 1
        assert parts < 20
    with journal.reading() as reading:
        assert reading.count("a") == 0
        assert reading.snapshot("a") is None
        assert reading.count("b") == 4
