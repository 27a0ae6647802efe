"""Faults, all of them real: killed processes, a full disk, a read-only file, a server that restarts."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from waiting import PATIENCE

from coterie.campaign import Campaigns, StoreUnavailable
from coterie.store.sql import Database

# One worker: the k-th measurement of an arm is always the same, and every acknowledged one is printed.
WORKER = """
import sys
import numpy as np
from coterie.campaign import Campaigns
url, id = sys.argv[1:]
centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])
with Campaigns(url) as store:
    pulls = [0] * 6
    for one in store.measurements(id)["measurements"]:
        pulls[one["arm"]] += 1
    print("ready", flush=True)
    while True:
        answer = store.ask(id, "w")
        if answer["done"]:
            print("done", flush=True)
            break
        (ask,) = answer["asks"]
        arm = ask["arm"]
        pulls[arm] += 1
        values = (centers[arm % 3] + np.random.default_rng([arm, pulls[arm]]).normal(size=2)).tolist()
        store.tell(id, [{"id": f"{arm}-{pulls[arm]}", "arm": arm, "values": values, "lease": ask["lease"]}])
        print(f"{arm}-{pulls[arm]}", flush=True)
"""


def database(store: Campaigns) -> Database:
    journal = store._campaigns.journal
    assert isinstance(journal, Database)
    return journal


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_as_if_nothing_had_happened(url: str, world: Any) -> None:
    rng = random.Random(5)
    with Campaigns(url) as store:
        whole, broken = (world.create(store, delta=1e-60) for _ in range(2))
        expected = world.run(store, whole)
        acknowledged: list[str] = []
        kills, finished = 0, False
        while not finished:
            worker = subprocess.Popen(
                [sys.executable, "-c", WORKER, url, broken], stdout=subprocess.PIPE, text=True, bufsize=1
            )
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
            lines = rng.randrange(0, 40) if kills < 8 else 10**6
            for _, line in zip(range(lines), worker.stdout, strict=False):
                acknowledged.append(line.strip())
            if kills < 8:
                time.sleep(rng.random() * 0.02)
                worker.send_signal(signal.SIGKILL)
                kills += 1
            acknowledged += [line.strip() for line in worker.stdout if line.endswith("\n")]
            worker.wait(60)
            worker.stdout.close()
            finished = "done" in acknowledged
        acknowledged.remove("done")
        told = [row["id"] for row in store.measurements(broken)["measurements"]]
        assert len(set(told)) == len(told)
        assert len(set(acknowledged)) == len(acknowledged)
        assert set(acknowledged) <= set(told)
        assert [int(name.split("-")[0]) for name in told] == expected
        one, other = store.status(whole), store.status(broken)
        for key in ("labels", "centers", "pulls", "t", "evidence", "done"):
            assert one[key] == other[key], key
        print(f"{kills} kills, {len(acknowledged)} acknowledged, {len(told)} on record, {len(expected)} expected")


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Campaigns]:
    with Campaigns(tmp_path / "store.db") as store:
        yield store


def tell_one(store: Campaigns, id: str, world: Any, k: int) -> dict[str, Any]:
    return store.tell(id, [{"id": str(k), "arm": k % 6, "values": world.values(k % 6, k)}])


def test_a_full_database_is_said_so_and_nothing_is_lost(lite: Campaigns, world: Any) -> None:
    id = world.create(lite, method="uniform")
    limit = [2**30]

    def limited(connection: Any) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {limit[0]}")

    event.listen(database(lite).engine, "begin", limited)
    kept = [k for k in range(20) if tell_one(lite, id, world, k)["accepted"]]
    limit[0] = 1  # SQLite takes it as: no more than there are now
    refused, messages = 0, set()
    for k in range(20, 120):
        try:
            tell_one(lite, id, world, k)
            kept.append(k)
        except StoreUnavailable as error:
            messages.add(error.message)
            refused += 1
            assert lite.status(id)["measurements"] == len(kept)  # reading goes on
    assert messages == {"the store cannot be used now: database or disk is full"}
    limit[0] = 2**30
    for k in range(120):  # clients tell again what was not acknowledged, and more
        tell_one(lite, id, world, k)
    told = [row["id"] for row in lite.measurements(id)["measurements"]]
    assert sorted(map(int, told)) == list(range(120))
    assert [int(name) for name in told[: len(kept)]] == kept
    print(f"{refused} refused while full, {len(told)} on record")


def test_after_a_failed_commit_the_state_is_what_is_on_disk(lite: Campaigns, world: Any) -> None:
    """Even if another process has meanwhile written just as many rows as were lost."""
    id = world.create(lite)
    lite.ask(id, "w")
    fails = [True]

    def broken(connection: Any) -> None:
        if fails[0]:
            raise sqlite3.OperationalError("disk I/O error")

    engine = database(lite).engine
    event.listen(engine, "commit", broken)
    with pytest.raises(Exception, match="disk I/O error"):
        lite.ask(id, "lost", 2)
    fails[0] = False
    with Campaigns(database(lite).url.database or "") as other:
        other.tell(id, [{"id": "a", "arm": 5, "values": [0.0, 0.0]}])
        assert lite.latest(id) == 3  # the ask, the result, its note: as many as the lost asks made
        assert lite.status(id) == other.status(id)
        assert lite.ask(id, "v", 2)["asks"][0]["arm"] == 1


FULL = """
import json, resource, signal, sys
from pathlib import Path
from coterie.campaign import Campaigns, StoreUnavailable
path = sys.argv[1]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Campaigns(path)
id = store.create("x", 6, 3, 2, method="uniform", noise=1.0)["id"]
def tell(k):
    return store.tell(id, [{"id": str(k), "arm": k % 6, "values": [k / 7, -k / 3]}])
kept = [k for k in range(10) if tell(k)["accepted"]]
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
biggest = max(Path(name).stat().st_size for name in (path, path + "-wal"))
resource.setrlimit(resource.RLIMIT_FSIZE, (biggest + 20_000, hard))
refused = 0
for k in range(10, 200):
    try:
        tell(k)
        kept.append(k)
    except StoreUnavailable:
        refused += 1
        assert store.status(id)["measurements"] == len(kept)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
for k in range(200):
    tell(k)
told = [int(row["id"]) for row in store.measurements(id)["measurements"]]
status = store.status(id)
store.close()
again = Campaigns(path)
assert again.status(id) == status
print(json.dumps([kept, refused, told]))
"""


@pytest.mark.slow
def test_writes_that_the_system_refuses(tmp_path: Path) -> None:
    """The same with write() itself failing, as it does when a quota or the disk ends."""
    import json

    script = [sys.executable, "-c", FULL, str(tmp_path / "store.db")]
    answer = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    kept, refused, told = json.loads(answer.stdout)
    assert refused > 0
    assert told[: len(kept)] == kept
    assert sorted(told) == list(range(200))
    print(f"{refused} refused by the system, {len(told)} on record")


FULL_FROM_THE_START = """
import resource, signal, sys
import coterie.cli
from coterie.campaign import Campaigns
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
sys.argv[1:] = ["campaign", "new", "x", "--arms", "3", "--clusters", "2", "--noise", "1", "--store", sys.argv[1]]
coterie.cli.main()
"""


def test_a_store_that_cannot_be_made_is_said_in_a_line(tmp_path: Path) -> None:
    """The disk is full before the file's first byte."""
    script = [sys.executable, "-B", "-c", FULL_FROM_THE_START, str(tmp_path / "store.db")]
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # it writes files too
    answer = subprocess.run(script, capture_output=True, text=True, timeout=300, env=env)
    assert answer.returncode == 2, answer.stderr
    assert answer.stderr.startswith("coterie: the store cannot be used now: ")
    assert answer.stderr.count("\n") == 1


READ_ONLY = """
import os, sys
from coterie.campaign import Campaigns, StoreUnavailable
path, id, what = sys.argv[1:]
folder = os.path.dirname(path)
root = os.geteuid() == 0
store = Campaigns(path)
store.ask(id, "w")  # everything is loaded
before = store.status(id)
store._campaigns.journal.engine.dispose()  # open files stay writable, whatever their mode is now

def protect(on):
    if root:
        os.seteuid(0)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o444 if on else 0o666)
    os.chmod(folder, 0o555 if on and what == "folder" else 0o777)
    if root and on:
        os.seteuid(65534)  # root writes everywhere

protect(True)
for call in (lambda: store.tell(id, [{"id": "a", "arm": 0, "values": [0.0, 0.0]}]),
             lambda: store.ask(id, "v"), lambda: store.create("x", 3, 2, 1, noise=1.0)):
    try:
        call()
    except StoreUnavailable as error:
        print(error.message)
    else:
        sys.exit("it was written")
    assert store.status(id) == before
protect(False)
assert store.status(id) == before
assert store.tell(id, [{"id": "a", "arm": 0, "values": [0.0, 0.0]}])["accepted"] == 1
assert store.ask(id, "v")["asks"]
print("recovered")
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_database_is_said_so_and_recovers(world: Any, what: str) -> None:
    """A read-only file, in a read-only folder too, can still be looked at. Both recover."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data", "store.db")
        path.parent.mkdir()
        os.chmod(folder, 0o755)  # for the user that root becomes
        with Campaigns(path) as store:
            id = world.create(store)
        script = [sys.executable, "-c", READ_ONLY, str(path), id, what]
        answer = subprocess.run(script, capture_output=True, text=True, timeout=300)
        assert answer.returncode == 0, answer.stderr
        *refused, last = answer.stdout.splitlines()
        assert last == "recovered"
        assert len(refused) == 3
        assert all(line.startswith("the store is read-only: it can be looked at") for line in refused), refused


def test_a_locked_file_is_waited_for(tmp_path: Path, world: Any) -> None:
    """Another process that holds the write lock for a while delays a request, and no more."""
    with Campaigns(tmp_path / "locked.db") as store:
        id = world.create(store)
        other = sqlite3.connect(tmp_path / "locked.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
        assert tell_one(store, id, world, 1)["accepted"] == 1
        other.close()


def test_a_new_file_that_another_process_writes_to(tmp_path: Path) -> None:
    """Two servers that start on one new file: SQLite says at once that it is locked, and that is no end."""
    path = tmp_path / "new.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE visits (x)")
    second = sqlite3.connect(path, timeout=2 * PATIENCE, isolation_level=None)
    begun = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        second.execute("PRAGMA journal_mode = WAL")
    assert time.monotonic() - begun < PATIENCE, "it has waited: this is not the error that is meant"
    second.close()
    release = threading.Timer(1.0, other.close)
    release.start()
    with Campaigns(path) as store:
        assert store.list() == []
    release.join()


def test_a_store_that_is_locked_at_once_is_tried_again(
    tmp_path: Path, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill, when somebody else repairs the file: SQLite does not wait, so we do."""
    with monkeypatch.context() as now:
        now.setattr("coterie.store.sql.BUSY_SECONDS", 0.0)  # for the connections, which say it at once then
        store = Campaigns(tmp_path / "locked.db")
    with store:
        id = world.create(store)
        for work in (lambda: store.list(), lambda: tell_one(store, id, world, 1)):
            database(store).engine.dispose()
            other = sqlite3.connect(tmp_path / "locked.db", isolation_level=None, check_same_thread=False)
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("CREATE TABLE IF NOT EXISTS visits (x)")
            other.execute("INSERT INTO visits VALUES (1)")  # from now on nobody else may even read
            refused = sqlite3.connect(tmp_path / "locked.db", timeout=0.0)
            with pytest.raises(sqlite3.OperationalError, match="database is locked"):
                refused.execute("SELECT * FROM campaigns")
            refused.close()
            release = threading.Timer(0.2, other.close)
            release.start()
            assert work()
            release.join()
        assert store.status(id)["measurements"] == 1


@pytest.mark.slow
def test_postgresql_restarted_while_several_measure(postgres: Any, world: Any) -> None:
    url = postgres.new_database()
    failures: list[str] = []
    with Campaigns(url) as store, Campaigns(url) as second:
        id = world.create(store, delta=1e-40)

        def patiently(call: Callable[[], Any]) -> Any:
            deadline = time.monotonic() + 60
            while True:
                try:
                    return call()
                except StoreUnavailable as error:
                    failures.append(error.message)
                    assert time.monotonic() < deadline
                    time.sleep(0.05)

        def measure(number: int) -> list[str]:
            mine: list[str] = []
            at = (store, second)[number % 2]
            while not (answer := patiently(lambda: at.ask(id, f"w{number}")))["done"]:
                if not answer["asks"]:  # a worker that met with the restart holds up what the others could measure
                    assert answer["waiting_for"]
                    time.sleep(0.05)
                    continue
                (ask,) = answer["asks"]
                name = f"{number}-{len(mine)}"
                result = {"id": name, "arm": ask["arm"], "values": world.values(ask["arm"], 1000 * number + len(mine))}
                patiently(partial(at.tell, id, [result | {"lease": ask["lease"]}]))
                mine.append(name)
            return mine

        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(measure, number) for number in range(4)]
            for how in ("fast", "immediate"):
                time.sleep(0.3)
                postgres.restart(how)
            accepted = [name for job in jobs for name in job.result()]
        told = [row["id"] for row in store.measurements(id)["measurements"]]
        assert sorted(told) == sorted(accepted)
        leases = [row["lease"] for row in store.measurements(id)["measurements"]]
        assert len(set(leases)) == len(leases)
        assert store.status(id)["done"]
        with Campaigns(url) as again:
            assert again.status(id)["labels"] == store.status(id)["labels"] == [0, 1, 2, 0, 1, 2]
        print(f"2 restarts, {len(failures)} requests refused meanwhile, {len(told)} on record")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="the store cannot be used now"):
        Campaigns(f"postgresql://nobody@/x?host={tmp_path}")
    with pytest.raises(StoreUnavailable, match="unable to open database file"):
        Campaigns(tmp_path / "no" / "folder" / "store.db")
    with pytest.raises(StoreUnavailable, match="there is no store at"):
        Campaigns(tmp_path / "store.db", create=False)
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one by its size " * 20)
    with pytest.raises(StoreUnavailable, match=r"text\.db is not a store, but a file of another kind"):
        Campaigns(tmp_path / "text.db")
