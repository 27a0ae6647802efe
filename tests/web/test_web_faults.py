"""The server killed, its disk full, its store read-only, its database restarted: nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import http.client
import os
import random
import resource
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import wait_until

from coterie.campaign import Campaigns
from coterie.web import create_app
from coterie.web.access import Access, hash_of

KILLS = 100
CLIENTS = 4


class Bench(threading.Thread):
    """A client that asks and tells, again and again, and repeats every request until it is answered."""

    def __init__(self, api: Any, id: str, number: int, spread: float) -> None:
        super().__init__(daemon=True)
        self.api, self.id, self.number, self.spread = api, id, number, spread
        self.rng = random.Random(number)
        self.acknowledged: dict[str, list[float]] = {}
        self.sent: dict[str, list[float]] = {}
        self.retries = 0
        self.problems: list[str] = []
        self.ending = threading.Event()

    def run(self) -> None:
        k = 0
        while not self.ending.is_set():
            asked = self.until_answered("ask", {"worker": f"bench {self.number}", "n": 1})
            if asked is None:
                return
            for ask in asked["asks"]:
                k += 1
                values = [self.spread * (ask["arm"] % 3) + self.rng.gauss(0.0, 1.0), self.rng.gauss(0.0, 1.0)]
                one = {"id": f"{self.number}-{k}", "arm": ask["arm"], "values": values, "lease": ask["lease"]}
                self.sent[one["id"]] = values
                if self.until_answered("tell", {"measurements": [one]}) is None:
                    return
                self.acknowledged[one["id"]] = values

    def until_answered(self, what: str, body: Any) -> Any:
        """The answer, however often it takes; None when the test ends first, or on an error that it may not get."""
        while True:
            try:
                answer = self.api.post(f"/api/campaigns/{self.id}/{what}", body, timeout=300)
            except (OSError, http.client.HTTPException):
                if self.ending.is_set():
                    return None
                self.retries += 1
                time.sleep(0.01)
                continue
            if answer.status == 200:
                return answer.json
            if answer.status != 503 or answer.error["code"] != "store_unavailable":
                self.problems.append(f"{what}: {answer.status} {answer.content!r}")
                return None
            if self.ending.is_set():
                return None
            self.retries += 1
            time.sleep(0.05)


def check_log(store: Campaigns, id: str, benches: list[Bench]) -> int:
    """Every acknowledged measurement is there once, with its values, and there is none that nobody sent."""
    kept: dict[str, list[float]] = {}
    after: int | None = 0
    while after is not None:
        page = store.measurements(id, after, 10_000)
        for row in page["measurements"]:
            assert row["id"] not in kept, f"{row['id']} counted twice"
            kept[row["id"]] = row["values"]
        after = page["next"]
    sent = {name: values for bench in benches for name, values in bench.sent.items()}
    acknowledged = {name: values for bench in benches for name, values in bench.acknowledged.items()}
    assert acknowledged.items() <= kept.items(), "lost or changed"
    assert kept.items() <= sent.items(), "made up"
    return len(kept)


def check_same_as_uninterrupted(store: Campaigns, id: str, fresh: Campaigns) -> None:
    """The same asks and results, one after the other in one process that nobody killed, lead to the same campaign."""
    settings = store.settings(id)
    settings.pop("engine")
    twin = fresh.create("twin", **settings)["id"]
    leases: dict[str, str] = {}
    holds: dict[str, int] = {}
    after: int | None = 0
    while after is not None:
        page = store.events(id, after, 10_000)
        for event in page["events"]:
            if event["kind"] == "asked":
                who = event["worker"]
                holds[who] = holds.get(who, 0) + 1
                ask = fresh.ask(twin, who, holds[who])["asks"][-1]
                assert ask["arm"] == event["arm"], f"row {event['seq']}"
                leases[event["lease"]] = ask["lease"]
            elif event["kind"] == "told":
                holds[event["worker"]] -= 1
                lease = leases[event["lease"]]
                fresh.tell(twin, [{key: event[key] for key in ("id", "arm", "values")} | {"lease": lease}])
            else:
                assert event["kind"] in ("groups", "evidence"), event
        after = page["next"]
    mine, other = store.status(id), fresh.status(twin)
    for key in ("t", "pulls", "labels", "centers", "evidence", "groups", "forecast", "waiting", "seq"):
        assert mine[key] == other[key], key
    next_asks = [(one.ask(name, "somebody new", 3)["asks"]) for one, name in ((store, id), (fresh, twin))]
    assert [ask["arm"] for ask in next_asks[0]] == [ask["arm"] for ask in next_asks[1]]


@pytest.mark.slow
def test_killed_a_hundred_times(nursery: Any, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    rng = random.Random(0)
    pid, port = nursery.start(path)
    api = nursery.api(port)
    id = api.create(n_arms=30, delta=1e-9, name="killed")
    benches = [Bench(api, id, number, spread=0.2) for number in range(CLIENTS)]
    for bench in benches:
        bench.start()
    for _ in range(KILLS):
        wait_for_more(benches, 1)
        time.sleep(rng.uniform(0.0, 0.12))
        nursery.kill(pid)
        pid, port = nursery.start(path, port)
    finish(benches)
    nursery.kill(pid)
    other = sqlite3.connect(path, timeout=1.0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # no stale lock
    other.execute("ROLLBACK")
    other.close()
    with Campaigns(path) as store, Campaigns(tmp_path / "fresh.db") as fresh:
        kept = check_log(store, id, benches)
        check_same_as_uninterrupted(store, id, fresh)
    retries = sum(bench.retries for bench in benches)
    print(f"{KILLS} kills, {kept} measurements on record, {done_so_far(benches)} acknowledged, {retries} retries")
    assert retries > 0


def done_so_far(benches: list[Bench]) -> int:
    return sum(len(bench.acknowledged) for bench in benches)


def problems(benches: list[Bench]) -> list[str]:
    return [problem for bench in benches for problem in bench.problems]


def wait_for(check: Callable[[], bool], benches: list[Bench]) -> None:
    wait_until(check, says=lambda: f"nothing is acknowledged any more: {problems(benches)}", pause=0.002)


def wait_for_more(benches: list[Bench], more: int) -> None:
    """Until so many more results are acknowledged."""
    seen = done_so_far(benches)
    wait_for(lambda: done_so_far(benches) >= seen + more, benches)


def finish(benches: list[Bench]) -> None:
    for bench in benches:
        bench.ending.set()
    for bench in benches:
        bench.join(60)
    assert not problems(benches)


def test_full_disk_is_a_503_and_recovers(start: Any) -> None:
    server = start()
    api, pid = server.api, server.process.pid
    id = api.create(method="uniform")

    def told(k: int) -> int:
        return int(api.tell(id, {"id": str(k), "arm": k % 6, "values": [k / 7, -k / 3]}).status)

    kept = [k for k in range(10) if told(k) == 200]
    path = Path(server.store)
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    biggest = max(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (biggest + 20_000, hard))
    refused = []
    for k in range(10, 120):
        answer = api.tell(id, {"id": str(k), "arm": k % 6, "values": [k / 7, -k / 3]})
        if answer.status == 200:
            kept.append(k)
        else:
            assert answer.status == 503
            assert answer.error["code"] == "store_unavailable"
            assert answer.headers["retry-after"] == "1"
            refused.append(k)
    assert refused
    assert api.get(f"/api/campaigns/{id}").json["measurements"] == len(kept)  # reading goes on
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    assert all(told(k) == 200 for k in range(120))  # those that were kept count once
    rows = api.get(f"/api/campaigns/{id}/measurements").json["measurements"]
    assert [int(row["id"]) for row in rows][: len(kept)] == kept
    assert sorted(int(row["id"]) for row in rows) == list(range(120))
    print(f"{len(refused)} refused while full, {len(rows)} on record")


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
def test_a_read_only_store_can_be_looked_at_and_recovers(nursery: Any, closed: bool) -> None:
    """Also one that was closed in order: in its folder SQLite could make no journal."""
    root = os.geteuid() == 0
    user = 65534 if root else None
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)  # for the user that root's server becomes
        path = Path(name, "data", "store.db")
        path.parent.mkdir()
        path.parent.chmod(0o777)
        pid, port = nursery.start(path, user=user)
        api = nursery.api(port)
        id = api.create()
        assert api.ask(id)
        nursery.kill(pid, signal.SIGTERM if closed else signal.SIGKILL)  # an ordinary end tidies the journal away
        assert Path(f"{path}-wal").exists() != closed

        def protect(mode: int) -> None:
            for file in path.parent.iterdir():
                file.chmod(mode & 0o666)
            path.parent.chmod(mode)

        protect(0o555)
        pid, port = nursery.start(path, user=user)
        api = nursery.api(port)
        try:
            one = {"id": "a", "arm": 0, "values": [0.0, 0.0]}
            before = api.get(f"/api/campaigns/{id}")
            assert before.status == 200
            assert len(before.json["open_leases"]) == 1
            for what in ("export?kind=csv", "measurements", "partial"):
                assert api.get(f"/api/campaigns/{id}/{what}").status in (200, 409), what
            cookie = api.log_in()
            assert api.with_token(None).get(f"/campaigns/{id}", headers=cookie).status == 200
            new = {"name": "x", "n_arms": 3, "n_clusters": 2, "dim": 1}
            for answer in (api.tell(id, one), api.post("/api/campaigns", new), api.get("/healthz")):
                assert answer.status == 503, answer.content
                assert answer.error["code"] == "read_only"
                assert "the store is read-only: it can be looked at" in answer.error["message"]
            assert api.get(f"/api/campaigns/{id}").json["measurements"] == 0
            protect(0o777)
            assert api.tell(id, one).json == {"accepted": 1, "duplicates": 0, "done": False}
            assert api.post("/api/campaigns", new).status == 201
        finally:
            nursery.kill(pid)


@pytest.mark.slow
def test_postgresql_restarted_under_load(start: Any, postgres: Any, tmp_path: Path) -> None:
    url = postgres.new_database()
    server = start("--rate", "0", store=url)
    id = server.api.create(n_arms=12, delta=1e-9)
    benches = [Bench(server.api, id, number, spread=0.3) for number in range(CLIENTS)]
    for bench in benches:
        bench.start()
    restarts = 3
    for _ in range(restarts):
        wait_for_more(benches, 20)
        postgres.restart()
    postgres.away(until=lambda: sum(bench.retries for bench in benches) >= CLIENTS)  # too long for the server
    wait_for_more(benches, 20)
    finish(benches)
    assert server.api.get("/healthz").status == 200
    with Campaigns(url) as store, Campaigns(tmp_path / "fresh.db") as fresh:
        kept = check_log(store, id, benches)
        check_same_as_uninterrupted(store, id, fresh)
    retries = sum(bench.retries for bench in benches)
    print(f"{restarts} restarts of PostgreSQL and one longer absence, {kept} measurements on record, {retries} retries")


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_two_servers_on_one_store(start: Any, postgres: Any, tmp_path: Path, database: str) -> None:
    """Benches at both servers, one of which is killed and started again: no double count, no lease in two hands."""
    url = tmp_path / "shared.db" if database == "sqlite" else postgres.new_database()
    servers = [start("--rate", "0", store=url) for _ in range(2)]
    id = servers[0].api.create(n_arms=12, delta=1e-9)
    assert servers[1].api.get(f"/api/campaigns/{id}").status == 200
    benches = [Bench(servers[number % 2].api, id, number, spread=0.3) for number in range(CLIENTS)]
    for bench in benches:
        bench.start()
    wait_for(lambda: min(len(bench.acknowledged) for bench in benches) >= 15, benches)
    servers[1].process.kill()
    servers[1].process.wait()
    third = start("--rate", "0", store=url)
    for bench in benches[1::2]:
        bench.api = third.api
    wait_for_more(benches, 40)
    finish(benches)
    views = [one.api.get(f"/api/campaigns/{id}").json for one in (servers[0], third)]
    for key in ("t", "pulls", "labels", "evidence", "groups", "seq"):
        assert views[0][key] == views[1][key], key
    with Campaigns(url) as store, Campaigns(tmp_path / "fresh.db") as fresh:
        kept = check_log(store, id, benches)
        asked = [event["lease"] for event in store.events(id, 0, 10_000)["events"] if event["kind"] == "asked"]
        assert len(set(asked)) == len(asked), "a lease was handed out twice"
        check_same_as_uninterrupted(store, id, fresh)
    print(f"two servers on one {database}: {kept} measurements on record, each once")


def test_a_row_that_is_changed_under_a_running_server_is_named(start: Any, tmp_path: Path) -> None:
    server = start()
    api = server.api
    id, other = api.create(), api.create()
    for k in range(8):
        assert api.tell(id, {"id": str(k), "arm": k % 6, "values": [float(k), 0.0]}).status == 200
    assert api.get("/healthz").json["damaged"] == []
    with sqlite3.connect(tmp_path / "store.db", timeout=300) as connection:
        connection.execute("UPDATE measurements SET \"values\" = '[99.0, 0.0]' WHERE id = '3'")
    connection.close()
    wait_until(lambda: api.get("/healthz").json["status"] == "damaged")
    (found,) = api.with_token(None).get("/healthz").json["damaged"]
    assert found["campaign"] == id
    named = f"row {found['row']} (table measurements) was changed after it was written"
    page = api.with_token(None).get(f"/campaigns/{id}", headers=api.log_in())
    assert page.status == 409
    assert named in page.content.decode()
    answer = api.tell(id, {"id": "x", "arm": 0, "values": [0.0, 0.0]})
    assert (answer.status, answer.error["code"]) == (409, "damaged_log")
    assert api.ask(other)
    assert named in server.stop()


def test_a_table_that_takes_too_long_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work ends, not only the waiting; nothing of it is on record."""
    monkeypatch.setattr("coterie.web.managing_api.READING_SECONDS", -1.0)
    headers = {"Authorization": "Bearer secret", "Content-Type": "text/csv"}

    async def send(store: Campaigns, path: str) -> httpx.Response:
        transport = httpx.ASGITransport(create_app(store, Access({hash_of("secret"): "write"})))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post(path, content=b"item,x\n0,1\n1,2\n", headers=headers)

    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("x", 4, 2, 1, noise=1.0)["id"]
        for path in ("/api/items", f"/api/campaigns/{id}/import", f"/api/campaigns/{id}/import?check=true"):
            answer = asyncio.run(send(store, path))
            assert answer.status_code == 422
            assert "took too long to be read, and was put aside" in answer.json()["error"]["message"]
        assert store.status(id)["measurements"] == 0
