"""Decisions that are put on disk together: each has its own answer, and a bad one does not spoil the others."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie.campaign import BadValue, Campaigns, NotFound
from coterie.web import create_app
from coterie.web.access import Access, hash_of
from coterie.web.answers import WriteQueue
from coterie.web.rendering import evidence_chart, number, round_up


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Campaigns(tmp_path / "store.db") as opened:
        yield opened


def tell(id: str, name: str, value: Any) -> tuple[Any, ...]:
    return ("tell", id, [{"id": name, "arm": 0, "values": value}])


def test_each_call_has_its_own_answer(store: Campaigns) -> None:
    first, second = (store.create("x", 3, 2, 1, noise=1.0)["id"] for _ in range(2))
    answers: Sequence[Any] = store.batch(
        [
            ("ask", first, "w", 2),
            tell(first, "a", "wrong"),
            tell(first, "b", 1.0),
            ("ask", "nowhere", "w", 1),
            ("ask", second, "v", 1),
            tell(first, "b", 1.0),
        ]
    )
    asked, bad, told, unknown, other, again = answers
    assert [ask["arm"] for ask in asked["asks"]] == [0, 1]
    assert isinstance(bad, BadValue)
    assert told == {"accepted": 1, "duplicates": 0, "done": False}
    assert isinstance(unknown, NotFound)
    assert [ask["arm"] for ask in other["asks"]] == [0]
    assert again == {"accepted": 0, "duplicates": 1, "done": False}
    assert store.status(first)["measurements"] == 1


def test_a_batch_equals_one_by_one(store: Campaigns, tmp_path: Path) -> None:
    calls = [call for k in range(30) for call in (("ask", f"w{k % 3}", 1 + k % 2), (k % 3, float(k * k % 11)))]
    found = []
    with Campaigns(tmp_path / "other.db") as other:
        for opened, size in ((store, 7), (other, 1)):
            id = opened.create("x", 3, 2, 1, noise=1.0)["id"]
            sent = [
                ("ask", id, *rest) if what == "ask" else ("tell", id, [{"id": str(i), "arm": what, "values": rest[0]}])
                for i, (what, *rest) in enumerate(calls)
            ]
            answers = [answer for begin in range(0, 60, size) for answer in opened.batch(sent[begin : begin + size])]
            arms = [[ask["arm"] for ask in answer["asks"]] for answer in answers if "asks" in answer]
            status = opened.status(id)
            found.append(
                (arms, status["pulls"], status["evidence"], status["waiting"], status["labels"], status["seq"])
            )
    assert found[0] == found[1]


def test_what_arrives_meanwhile_is_one_group(store: Campaigns) -> None:
    id = store.create("x", 5, 2, 1, noise=1.0)["id"]
    groups: list[int] = []
    gate = threading.Event()
    commits = store._campaigns.group_commit
    serve = commits.serve

    def counted(requests: Any) -> None:
        groups.append(len(requests))
        gate.wait(300)  # the first group takes as long as the others need to arrive
        serve(requests)

    commits.serve = counted

    async def run() -> list[Any]:
        queue = WriteQueue(store)
        await asyncio.to_thread(store.status, id)
        tasks = [asyncio.create_task(queue.submit(*tell(id, "0", 0.0)))]
        while not groups:
            await asyncio.sleep(0.01)
        tasks += [asyncio.create_task(queue.submit(*tell(id, str(k), float(k)))) for k in range(1, 20)]
        tasks.append(asyncio.create_task(queue.submit("ask", id, "", 1)))
        await asyncio.sleep(0)  # each has handed its call on
        tasks[5].cancel()  # its client has gone; what it sent is kept
        gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        return answers

    answers = asyncio.run(run())
    assert groups == [1, 20]
    assert isinstance(answers[5], asyncio.CancelledError)
    assert isinstance(answers[-1], BadValue)
    kept = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert [json.loads(answer.body)["accepted"] for answer in kept] == [1] * 19
    assert store.status(id)["measurements"] == 20


def test_numbers_for_people() -> None:
    assert [number(value) for value in (None, 0, 1234567, -2.5, 0.000123456, 98765.4)] == [
        "–", "0", "1\u202f234\u202f567", "\u22122.5", "0.0001235", "98\u202f765",
    ]  # fmt: skip
    assert [round_up(value) for value in (0.0, 0.3, 1.0, 2.2, 60.0, 101.0)] == [1.0, 0.4, 1.0, 2.5, 80.0, 200.0]


def test_a_chart_stays_in_its_frame() -> None:
    history = {"t": [1, 2, 50], "statistic": [None, 0.0, 90.0], "threshold": [5.0, 5.0, 4.0]}
    chart = evidence_chart(history, 1e9)
    assert chart is not None
    assert chart["y_labels"] == ["100", "50", "0"]
    assert chart["x_labels"][-1] == "100"  # what was measured keeps half of it
    assert chart["statistic"] == "M20.0 300.0H500.0V30.0"
    assert evidence_chart({"t": [1], "statistic": [0.0], "threshold": [1.0]}, None) is None


def test_what_is_not_in_memory_is_read_behind_the_page(tmp_path: Path) -> None:
    """Without the start's reading ahead, so that it is certain which of the two pages comes."""
    path = tmp_path / "large.db"
    with Campaigns(path) as store:
        id = store.create("large", 30, 3, 1, delta=1e-9, noise=1.0)["id"]
        store.tell(id, [{"id": str(i), "arm": i % 30, "values": [0.001 * i]} for i in range(6000)])

    async def look(store: Campaigns) -> None:
        transport = httpx.ASGITransport(create_app(store, Access({hash_of("secret"): "read"})))
        headers = {"Authorization": "Bearer secret", "Accept": "text/html"}
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            first = (await client.get(f"/campaigns/{id}")).text
            assert 'data-reading="1"' in first
            assert "measurements on record. Reading them" in first
            assert not store.overview(id)["in_memory"]
            assert 'id="groups-heading"' not in first
            assert 'id="groups-heading"' in (await client.get(f"/campaigns/{id}/live")).text
            second = (await client.get(f"/campaigns/{id}")).text
            assert "data-reading" not in second
            assert 'id="groups-heading"' in second
            assert (await client.get("/campaigns/nothing")).status_code == 404

    with Campaigns(path) as store:
        asyncio.run(look(store))
