"""Many threads, several objects on one store, several processes: nothing counts twice, no lease is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coterie.campaign import BadValue, Campaigns
from coterie.campaign.service.group_commit import GroupCommit, Request


def measure(store: Campaigns, id: str, worker: str, world: Any) -> list[str]:
    """A worker until the end; the ids of its measurements that were accepted."""
    mine: list[str] = []
    while True:
        answer = store.ask(id, worker, 2)
        if answer["done"]:
            return mine
        for ask in answer["asks"]:
            name = f"{worker}-{len(mine)}"
            result = {"id": name, "arm": ask["arm"], "values": world.values(ask["arm"], len(mine) + 7)}
            told = store.tell(id, [result | {"lease": ask["lease"]}])
            assert (told["accepted"], told["duplicates"]) == (1, 0)
            mine.append(name)


def check_consistent(store: Campaigns, id: str, accepted: list[str]) -> None:
    """Everything acknowledged is there exactly once, every lease has one fate, and a replay agrees."""
    events: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = store.events(id, after=after)
        events += page["events"]
        after = page["next"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    told = [event for event in events if event["kind"] == "told"]
    assert sorted(event["id"] for event in told) == sorted(accepted)
    answered = Counter(event["lease"] for event in told)
    assert max(answered.values()) == 1
    leases = Counter(event["lease"] for event in events if event["kind"] == "asked")
    assert max(leases.values()) == 1
    still = {one["lease"] for one in store.status(id)["open_leases"]}
    assert set(leases) == set(answered) | still
    times = [event["at"] for event in events]
    assert times == sorted(times)


def test_many_threads_on_one_object(opened: Callable[[], Campaigns], world: Any) -> None:
    store = opened()
    ids = [world.create(store, delta=1e-6) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        jobs = [(id, pool.submit(measure, store, id, f"w{k}", world)) for k in range(4) for id in ids]
        accepted: dict[str, list[str]] = {id: [] for id in ids}
        for id, job in jobs:
            accepted[id] += job.result()
    for id in ids:
        check_consistent(store, id, accepted[id])
        assert opened().status(id) == store.status(id)
        assert store.status(id)["labels"] == [0, 1, 2, 0, 1, 2]


def test_threads_on_two_objects_of_one_store(opened: Callable[[], Campaigns], world: Any) -> None:
    stores = [opened(), opened()]
    id = world.create(stores[0], delta=1e-6)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(measure, stores[k % 2], id, f"w{k}", world) for k in range(4)]
        accepted = [name for job in jobs for name in job.result()]
    for store in stores:
        check_consistent(store, id, accepted)
    assert stores[0].status(id) == stores[1].status(id) == opened().status(id)


SCRIPT = """
import json, sys
import numpy as np
from coterie.campaign import Campaigns
url, id, worker = sys.argv[1:]
centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])
rng = np.random.default_rng(int(worker))
mine = []
with Campaigns(url) as store:
    store.ask(id, worker)  # the code is loaded
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        answer = store.ask(id, worker, 2)
        if answer["done"]:
            break
        for ask in answer["asks"]:
            name = f"{worker}-{len(mine)}"
            values = (centers[ask["arm"] % 3] + rng.normal(size=2)).tolist()
            store.tell(id, [{"id": name, "arm": ask["arm"], "values": values, "lease": ask["lease"]}])
            mine.append(name)
print(json.dumps(mine))
"""


@pytest.mark.slow
def test_two_processes_on_one_store(url: str, world: Any) -> None:
    with Campaigns(url) as store:
        id = world.create(store, delta=1e-40)
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT, url, id, str(k)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for k in range(2)
        ]
        for worker in workers:  # both are ready before either begins
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        accepted: list[str] = []
        for worker in workers:
            out, _ = worker.communicate(timeout=300)
            assert worker.returncode == 0
            mine = json.loads(out.splitlines()[-1])
            accepted += mine
        check_consistent(store, id, accepted)
        found = store.status(id)
        assert found["done"]
        assert len({one["worker"] for one in found["workers"]}) == 2
        with Campaigns(url) as again:
            assert again.status(id)["labels"] == found["labels"]
            assert again.certificate(id) == store.certificate(id)


def test_the_same_result_from_many_threads_is_accepted_once(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    (ask,) = store.ask(id, "w")["asks"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: store.tell(id, [world.answer(ask, 1)]), range(16)))
    assert sum(answer["accepted"] for answer in answers) == 1
    assert sum(answer["duplicates"] for answer in answers) == 15
    assert store.status(id)["measurements"] == 1


def test_many_askers_at_once_never_get_the_same_decision(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda k: store.ask(id, f"w{k}"), range(6)))
    asks = [ask for answer in answers for ask in answer["asks"]]
    assert sorted(ask["arm"] for ask in asks) == [0, 1, 2, 3, 4, 5]
    assert len({ask["lease"] for ask in asks}) == 6


def test_requests_that_wait_are_committed_together(store: Campaigns, world: Any) -> None:
    """While one commit is under way the others gather; a bad one among them is refused alone."""
    id = world.create(store)
    store.ask(id, "w")  # loaded
    commits, groups = store._campaigns.group_commit, []
    inside, go_on = threading.Event(), threading.Event()
    serve = commits.serve

    def slow(requests: list[Request]) -> None:
        groups.append(len(requests))
        inside.set()
        assert go_on.wait(60)
        serve(requests)

    commits.serve = slow
    rows = [{"id": str(k), "arm": k % 6, "values": [0.0, 0.0]} for k in range(9)]
    rows[5]["arm"] = 77
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(store.tell, id, [rows[0]])
        assert inside.wait(60)
        others = [pool.submit(store.tell, id, [row]) for row in rows[1:]]
        while len(commits._waiting) < 8:
            pass
        go_on.set()
        assert first.result()["accepted"] == 1
        for k, other in enumerate(others, start=1):
            if k == 5:
                with pytest.raises(BadValue, match="unknown arm 77"):
                    other.result()
            else:
                assert other.result()["accepted"] == 1
    assert groups == [1, 8]
    assert store.status(id)["measurements"] == 8


def test_a_request_that_breaks_does_not_spoil_the_others(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    store.ask(id, "w")
    good = [{"id": "good", "arm": 0, "values": [0.0, 0.0]}]

    def breaks(turn: Any) -> Any:
        turn.state.session.ask()  # half done …
        raise ZeroDivisionError

    from coterie.campaign.commands import measuring

    requests = [
        Request(id, lambda turn: measuring.tell(turn, good)),
        Request(id, breaks),
        Request("nobody's", lambda turn: measuring.tell(turn, good)),
        Request(id, lambda turn: measuring.ask(turn, "v", 1)),
    ]
    store._campaigns._serve([lone := Request(id, breaks)])
    assert isinstance(lone.error, ZeroDivisionError)
    store._campaigns._serve(requests)
    assert [request.answered for request in requests] == [True] * 4
    assert requests[0].answer["accepted"] == 1
    assert isinstance(requests[1].error, ZeroDivisionError)
    assert requests[2].error is not None
    assert requests[3].answer["asks"][0]["arm"] == 1
    found = store.status(id)
    assert (found["measurements"], len(found["open_leases"])) == (1, 2 - 1)


def test_interrupted_requests_do_not_hang_the_others() -> None:
    def interrupted(requests: list[Request]) -> None:
        raise KeyboardInterrupt

    commits = GroupCommit(interrupted)
    with pytest.raises(KeyboardInterrupt):
        commits.submit(Request("x", lambda turn: None))

    def settle(requests: list[Request]) -> None:
        for request in requests:
            request.settle("fine")

    commits.serve = settle
    assert commits.submit(Request("x", lambda turn: None)) == "fine"


def test_whoever_opens_a_store_under_load_reads_one_moment_of_it(opened: Callable[[], Campaigns], world: Any) -> None:
    """What is committed between two queries must not be read in part: the rest would be missed for ever."""
    store = opened()
    id = world.create(store, delta=1e-12)
    ending = threading.Event()

    def write(worker: str) -> None:
        count = 0
        while not ending.is_set() and not (answer := store.ask(id, worker, 2))["done"]:
            for ask in answer["asks"]:
                count += 1
                one = {
                    "id": f"{worker}-{count}",
                    "arm": ask["arm"],
                    "values": [0.01 * count, 0.0],
                    "lease": ask["lease"],
                }
                store.tell(id, [one])

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(write, worker) for worker in ("ann", "bob")]
        try:
            late = [opened() for _ in range(30)]
            for one in late:
                one.status(id)
        finally:
            ending.set()
        for job in jobs:
            job.result()
    wanted = store.status(id)
    for one in late:
        found = one.status(id)
        for key in ("seq", "t", "pulls", "labels", "evidence"):
            assert found[key] == wanted[key], key
