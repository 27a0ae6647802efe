"""The shapes that clients rely on, over HTTP against a real server."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from typing import Any

import numpy as np
import pytest
from waiting import wait_until

import coterie

C = "/api/campaigns"


def value_of(arm: int, k: int) -> list[float]:
    centers = ([0.0, 0.0], [4.0, 0.0], [0.0, 4.5])
    return [value + 0.3 * ((7 * arm + 3 * k) % 5 - 2) for value in centers[arm % 3]]


def run_to_the_end(api: Any, id: str) -> int:
    for k in range(500):
        asks = api.ask(id)
        if not asks:
            return k
        (ask,) = asks
        one = {"id": str(k), "arm": ask["arm"], "values": value_of(ask["arm"], k), "lease": ask["lease"]}
        assert api.tell(id, one).status == 200
    raise AssertionError("it does not end")


def test_a_campaign_from_beginning_to_end(api: Any, tmp_path: Any) -> None:
    names = ["a", "b", "ç", "日本", "e e", "<b>"]
    body = {
        "name": "orchard", "n_arms": 6, "n_clusters": 3, "dim": 2, "delta": 0.01, "method": "croc", "noise": 1.0,
        "names": names, "lease_seconds": 60,
    }  # fmt: skip
    made = api.post(C, body)
    assert made.status == 201
    assert made.headers["content-type"] == "application/json"
    id = made.json["id"]
    assert made.json["names"] == names
    assert id in [one["id"] for one in api.get(f"{C}?limit=1000").json["campaigns"]]

    first = api.post(f"{C}/{id}/ask", {"worker": "w", "n": 2}).json
    assert first["done"] is False
    assert [ask["arm"] for ask in first["asks"]] == [0, 1]
    assert set(first["asks"][0]) >= {"arm", "name", "lease", "expires"}
    assert api.post(f"{C}/{id}/ask", {"worker": "w", "n": 2}).json == first  # its own open ones come back
    early = api.get(f"{C}/{id}/certificate")
    assert (early.status, early.error["code"]) == (409, "not_done")

    told = api.tell(id, {"id": "x", "arm": "a", "values": [0.1, 0.2], "lease": first["asks"][0]["lease"]})
    assert told.json == {"accepted": 1, "duplicates": 0, "done": False}
    again = api.tell(id, {"id": "x", "arm": 0, "values": [0.1, 0.2], "lease": first["asks"][0]["lease"]})
    assert again.json == {"accepted": 0, "duplicates": 1, "done": False}
    other = api.tell(id, {"id": "x", "arm": 0, "values": [9.0, 0.2]})
    assert (other.status, other.error["code"], other.error["field"]) == (409, "id_taken", "measurements[0].id")
    freed = api.post(f"{C}/{id}/fail", {"lease": first["asks"][1]["lease"], "reason": "it broke"})
    assert freed.json["freed"] is True

    k = run_to_the_end(api, id)
    status = api.get(f"{C}/{id}").json
    assert set(status) >= {"id", "name", "done", "t", "pulls", "labels", "centers", "evidence", "groups", "forecast"}
    assert set(status["evidence"]) >= {"statistic", "threshold", "weakest"}
    assert status["done"] is True
    assert status["t"] == sum(status["pulls"]) == k + 1
    assert coterie.same_partition(status["labels"], [0, 1, 2, 0, 1, 2])
    assert api.post(f"{C}/{id}/ask", {"worker": "w"}).json == {"done": True, "asks": [], "waiting_for": []}
    late = api.tell(id, {"id": "late", "arm": 3, "values": [50.0, 50.0]})
    assert late.json | {"warnings": None} == {"accepted": 1, "duplicates": 0, "done": True, "warnings": None}
    (warning,) = late.json["warnings"]
    assert (warning["id"], warning["arm"]) == ("late", 3)
    assert "50 (v0) lies 50 standard deviations" in warning["message"]
    assert api.get(f"{C}/{id}").json["labels"] == status["labels"]

    certificate = api.get(f"{C}/{id}/certificate")
    assert certificate.status == 200
    for kind in ("certificate", "log"):
        answer = api.get(f"{C}/{id}/export?kind={kind}")
        assert "attachment" in answer.headers["content-disposition"]
        (tmp_path / kind).write_bytes(answer.content)
    assert json.loads((tmp_path / "certificate").read_bytes()) == certificate.json
    assert coterie.verify(tmp_path / "certificate", tmp_path / "log").valid
    table = api.get(f"{C}/{id}/export").content.decode()
    assert re.match(r"id,arm,v0,v1,told,worker,token\nx,a,0\.1,0\.2,\d{4}-\d\d-\d\dT[\d:.]+Z,", table)
    history = api.get(f"{C}/{id}/history?points=10").json
    assert len(history["t"]) == len(history["statistic"]) == len(history["threshold"]) <= 10


def test_measurements_come_in_pages(api: Any) -> None:
    id = api.create()
    sent = [{"id": f"m{k}", "arm": k % 6, "values": value_of(k % 6, k)} for k in range(7)]
    assert api.tell(id, *sent).json["accepted"] == 7
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = api.get(f"{C}/{id}/measurements?after={after}&limit=3").json
        assert len(page["measurements"]) <= 3
        found += page["measurements"]
        after = page["next"]
    assert [{key: row[key] for key in ("id", "arm", "values")} for row in found] == sent


def test_a_bad_row_rejects_the_batch_and_is_named(api: Any) -> None:
    id = api.create()
    rows: list[dict[str, Any]] = [{"id": str(k), "arm": k % 6, "values": [0.0, 0.0]} for k in range(5)]
    for change, field in (
        ({"values": [0.0]}, "values"),
        ({"values": ["x", 0.0]}, "values"),
        ({"values": [1e999, 0.0]}, "values"),
        ({"arm": 6}, "arm"),
        ({"arm": -1}, "arm"),
        ({"arm": True}, "arm"),
        ({"arm": 1.5}, "arm"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"lease": "nobody's"}, "lease"),
        ({"other": 1}, "other"),
    ):
        raw = json.dumps({"measurements": [*rows[:3], rows[3] | change, rows[4]]}).replace("Infinity", "1e999")
        answer = api.post(f"{C}/{id}/tell", raw=raw.encode())
        assert answer.status == (404 if field == "lease" else 422), (change, answer.content)
        assert answer.error["field"] == f"measurements[3].{field}"
        assert f"measurements[3].{field}" in answer.error["message"]
    missing = api.post(f"{C}/{id}/tell", {"measurements": [{"id": "a", "arm": 0}]})
    assert missing.error["field"] == "measurements[0].values"
    assert api.get(f"{C}/{id}").json["measurements"] == 0


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b'{"worker": NaN}', 400, "bad_json"),
        (b'{"worker": "w", "n": Infinity}', 400, "bad_json"),
        (b'{"worker": "w"', 400, "bad_json"),
        (b"", 400, "bad_json"),
        (b'{"worker": "\xff"}', 400, "bad_json"),
        (b"[" * 100_000, 400, "bad_json"),
        (b'{"n": ' + b"9" * 5000 + b"}", 400, "bad_json"),
        (b"null", 422, "bad_value"),
        (b"[]", 422, "bad_value"),
        (b'{"n": 1}', 422, "bad_value"),
        (b'{"worker": "w", "n": "1"}', 422, "bad_value"),
        (b'{"worker": "w", "n": 0}', 422, "bad_value"),
        (b'{"worker": "w", "n": 1e400}', 422, "bad_value"),
        (b'{"worker": "w", "n": 99999999999999999999}', 422, "bad_value"),
        (b'{"worker": "\\ud800"}', 422, "bad_value"),
        (b'{"worker": "a\\u0000b"}', 422, "bad_value"),
        (b'{"worker": "w", "\\udfff": 1}', 422, "bad_value"),
        (b'{"worker": ""}', 422, "bad_value"),
    ],
)
def test_bad_bodies(api: Any, raw: bytes, status: int, code: str) -> None:
    id = api.create()
    answer = api.post(f"{C}/{id}/ask", raw=raw)
    assert (answer.status, answer.error["code"]) == (status, code), answer.content
    assert api.get(f"{C}/{id}").json["seq"] == 0


def test_everything_else_that_is_wrong_has_the_same_shape(api: Any) -> None:
    id = api.create()
    for method, path, status, code in (
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/api/nothing", 404, "not_found"),
        ("GET", f"{C}/unknown", 404, "unknown_campaign"),
        ("GET", f"{C}/%00", 404, "unknown_campaign"),
        ("GET", f"{C}/unknown/events", 404, "unknown_campaign"),
        ("PATCH", f"{C}/{id}", 405, "method_not_allowed"),
        ("PUT", C, 405, "method_not_allowed"),
        ("GET", f"{C}/{id}/measurements?limit=0", 422, "bad_value"),
        ("GET", f"{C}/{id}/measurements?after=-1", 422, "bad_value"),
        ("GET", f"{C}/{id}/measurements?after=x", 422, "bad_value"),
        ("GET", f"{C}/{id}/export?kind=pickle", 422, "bad_value"),
    ):
        answer = api.send(method, path)
        assert (answer.status, answer.error["code"]) == (status, code), (method, path, answer.content)
    form = api.post(f"{C}/{id}/ask", {"worker": "w"}, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (form.status, form.error["code"]) == (415, "not_json")
    bad = {"name": "x", "n_arms": 3, "n_clusters": 5, "dim": 1}
    answer = api.post(C, bad)
    assert (answer.status, answer.error["field"]) == (422, "n_clusters")
    for key, value in (("delta", 2), ("noise", -1), ("method", "magic"), ("lease_seconds", 0), ("n_arms", 10**9),
                       ("names", ["a"]), ("name", " "), ("on_expiry", "pray"), ("dim", 0)):  # fmt: skip
        answer = api.post(C, {"name": "x", "n_arms": 3, "n_clusters": 2, "dim": 1, key: value})
        assert (answer.status, answer.error["field"]) == (422, key), (key, answer.content)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [("deadline", {"deadline": None}, "deadline"), ("items", {"add": [[]]}, "add[0]"), ("items", {"add": None}, "add")],
)
def test_a_field_of_several_types_is_named_as_in_the_body(api: Any, path: str, body: Any, field: str) -> None:
    error = api.post(f"/api/campaigns/{api.create()}/{path}", body).error
    assert error["field"] == field
    assert error["message"].startswith(f"{field}: ")


def test_a_body_that_is_too_large(start: Any) -> None:
    server = start("--max-body", "0.01")
    id = server.api.create()
    answer = server.api.post(f"{C}/{id}/ask", {"worker": "w" * 20_000})
    assert (answer.status, answer.error["code"]) == (413, "body_too_large")
    # One that does not say how long it is: refused as it comes, long before its end.
    with socket.create_connection(("127.0.0.1", server.port), timeout=300) as raw:
        head = f"POST {C}/{id}/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.api.token}\r\n"
        raw.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(3):
            raw.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 413 ")
    assert server.api.ask(id)
    # A table that is imported may be eight times as large.
    table = "".join(["arm,v0,v1\n", *(f"{k % 6},{k % 7}.5,{k % 5}.25\n" for k in range(5000))]).encode()
    as_table = {"Content-Type": "text/csv"}
    for rows, status in ((table, 200), (2 * table, 413)):
        sent = server.api.post(f"{C}/{id}/import?check=true", raw=rows, headers=as_table)
        assert sent.status == status, (len(rows), sent.content[:200])


def test_too_many_requests(start: Any) -> None:
    server = start("--rate", "1")
    assert [server.api.get(C).status for _ in range(2)] == [200] * 2  # twice as many at once
    refused: list[Any] = []

    def is_refused() -> bool:
        answer = server.api.get(C)
        refused.extend([answer] if answer.status == 429 else [])
        return bool(refused)

    wait_until(is_refused, pause=0.0)  # on a busy machine a second may pass between two requests
    assert refused[0].error["code"] == "too_many_requests"
    assert int(refused[0].headers["retry-after"]) == 1
    wait_until(lambda: server.api.get(C).status == 200)


def read_events(port: int, token: str, path: str, count: int, headers: dict[str, str] | None = None) -> list[Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("GET", path, None, {"Authorization": f"Bearer {token}", **(headers or {})})
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    found: list[Any] = []
    event: dict[str, str] = {}
    while len(found) < count:
        line = answer.readline().decode().rstrip("\n")
        if line and not line.startswith(":"):
            key, _, value = line.partition(": ")
            event[key] = value
        elif not line and "data" in event:
            found.append((int(event["id"]), event["event"], json.loads(event["data"])))
            event = {}
    answer.close()
    connection.close()
    return found


def test_events_come_as_they_happen_and_go_on_where_they_ended(api: Any) -> None:
    id = api.create()
    (ask,) = api.ask(id, "somebody")
    timer = threading.Timer(
        0.5, lambda: api.tell(id, {"id": "one", "arm": 0, "values": [0.0, 0.0], "lease": ask["lease"]})
    )
    timer.start()
    events = read_events(api.port, api.token, f"{C}/{id}/events", 2)
    assert [(seq, kind) for seq, kind, _ in events] == [(1, "asked"), (2, "told")]
    assert events[0][2]["worker"] == "somebody"
    assert events[1][2]["values"] == [0.0, 0.0]
    timer.join()
    api.tell(id, {"id": "two", "arm": 5, "values": [1.0, 2.0]})
    newest = api.get(f"{C}/{id}").json["seq"]
    resumed = read_events(api.port, api.token, f"{C}/{id}/events", newest - 2, {"Last-Event-ID": "2"})
    assert [seq for seq, _, _ in resumed] == list(range(3, newest + 1))
    assert "two" in [content.get("id") for _, _, content in resumed]
    brief = read_events(api.port, api.token, f"{C}/{id}/events?brief=true&after=1", 1)
    assert brief == [(newest, "changed", {"seq": newest})]


def test_openapi_has_examples_that_work(api: Any) -> None:
    document = api.with_token(None).get("/openapi.json").json
    assert document["openapi"].startswith("3.")
    bodies = tables = files = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method == "post" and "text/csv" in operation["requestBody"]["content"]:
                assert operation["requestBody"]["content"]["text/csv"]["examples"], path
                tables += 1
            elif method == "post" and "application/octet-stream" in operation["requestBody"]["content"]:
                files += 1
            elif method == "post":
                content = operation["requestBody"]["content"]["application/json"]
                name = content["schema"]["$ref"].rpartition("/")[2]
                assert document["components"]["schemas"][name]["properties"], path
                assert content["examples"], path
                bodies += 1
            assert operation["security"] == ([] if path == "/healthz" else [{"token": []}])
    assert (bodies, tables, files) == (16, 2, 1)
    examples = document["paths"][C]["post"]["requestBody"]["content"]["application/json"]["examples"]
    for example in examples.values():
        assert api.post(C, example["value"] | {"name": "x"}).status == 201


@pytest.mark.parametrize(
    ("means", "shown", "green"),
    [
        ([0, 0, 0, 20, 20, 20], 'class="hint" id="homogeneity">Each group looks like one', True),
        ([0, 0, 20, 20, 50, 50], 'id="alarm"><b>Alarm.</b> K = 2 is refuted: items ', False),
        ([0, 0, 30, 30, 36, 36], 'class="notice" id="homogeneity">Group 2 (items 2, 3, 4 and 5) looks mixed', False),
    ],
)
def test_the_page_shows_what_speaks_against_the_number_of_groups(
    api: Any, means: list[int], shown: str, green: bool
) -> None:
    """Beside the verdict; only a proof that nothing speaks against is green."""
    id = api.create(n_arms=6, n_clusters=2, dim=1, names=None)
    draws = np.random.default_rng(1).normal(size=60)
    for k in range(60):
        asks = api.ask(id)
        if not asks or api.get(f"{C}/{id}").json["alarm"] is not None:
            break
        arm = asks[0]["arm"]
        api.tell(id, {"id": str(k), "arm": arm, "values": [means[arm] + draws[k]], "lease": asks[0]["lease"]})
    page = api.get(f"/campaigns/{id}", headers={"Accept": "text/html"}).content.decode()
    assert shown in page
    assert ('class="card certificate proven"' in page) == green
    status = api.get(f"{C}/{id}").json
    beside = status["homogeneity"] if status["alarm"] is None else status["alarm"]
    assert beside["text"] in page
    assert (status["alarm"] is None) == ('id="alarm"' not in page)


def test_pages_of_the_log_and_of_errors(api: Any) -> None:
    html = {"Accept": "text/html"}
    id = api.create(name="<script>alert(1)</script>")
    api.tell(id, *({"id": str(k), "arm": k % 6, "values": value_of(k % 6, k)} for k in range(120)))
    page = api.get(f"/campaigns/{id}", headers=html).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    newest = api.get(f"{C}/{id}").json["seq"]
    path: str | None = f"/campaigns/{id}/log"
    pages = 0
    while path is not None and pages < 20:
        text = api.get(path, headers=html).content.decode()
        pages += 1
        older = [part for part in text.split('"') if f"/campaigns/{id}/log?before=" in part]
        path = older[-1] if ">Older<" in text else None
    assert pages == -(-newest // 50)
    missing = api.get("/campaigns/unknown", headers=html)
    assert missing.status == 404
    assert missing.headers["content-type"].startswith("text/html")
    assert b"there is no campaign" in missing.content.lower()
