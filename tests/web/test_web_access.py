"""Who may do what: tokens, scopes, sessions, other sites' pages; and that secrets stay secret."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from coterie.campaign import Campaigns, StoreUnavailable
from coterie.store.sqlite_file import SqliteFile
from coterie.web.access import PAUSE, Access, Caller, FailedLogins, access_to, hash_of
from coterie.web.answers import Refusal
from coterie.web.limits import Rate

C = "/api/campaigns"
NEW = {"name": "x", "n_arms": 3, "n_clusters": 2, "dim": 1}
READ_TOKEN = "a-token-for-readers-0123456789"


def writes(id: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (C, NEW),
        (f"{C}/{id}/ask", {"worker": "w"}),
        (f"{C}/{id}/tell", {"measurements": [{"id": "a", "arm": 0, "values": [0.0, 0.0]}]}),
        (f"{C}/{id}/fail", {"lease": "x"}),
    ]


def reads(id: str) -> list[str]:
    parts = ("", "/measurements", "/history", "/certificate", "/events", "/export")
    return [C, *(f"{C}/{id}{part}" for part in parts), "/", f"/campaigns/{id}", f"/campaigns/{id}/live",
            f"/campaigns/{id}/log"]  # fmt: skip


@pytest.mark.parametrize(
    "token",
    [
        None,
        "wrong",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("", "a-token-for-tests-012345678", "\xff")),
    ],
)
def test_nobody_without_a_token(start: Any, token: str | None) -> None:
    api = start().api  # of its own: wrong tokens slow down whoever logs in from here
    id = api.create()
    stranger = api.with_token(token)
    before = len(api.get(C).json["campaigns"])
    for path, body in writes(id):
        answer = stranger.post(path, body)
        assert answer.status in (401, 429), path
        assert "www-authenticate" in answer.headers or answer.status == 429
    for path in reads(id):
        assert stranger.get(path).status in (401, 429), path
    assert len(api.get(C).json["campaigns"]) == before
    assert api.get(f"{C}/{id}").json["seq"] == 0


def test_a_reader_cannot_write(api: Any) -> None:
    id = api.create()
    reader = api.with_token(READ_TOKEN)
    for path, body in writes(id):
        answer = reader.post(path, body)
        assert (answer.status, answer.error["code"]) == (403, "read_only_token"), path
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert reader.send(method, f"{C}/{id}").status == 403
    assert reader.get(f"{C}/{id}").json["seq"] == 0
    for path in reads(id):
        if not path.endswith(("/certificate", "/events")):
            assert reader.get(path).status == 200, path


def test_tokens_count_only_as_bearer_tokens(start: Any) -> None:
    api = start().api
    stranger = api.with_token(None)
    for headers in ({"Authorization": f"Basic {api.token}"}, {"Authorization": api.token}, {"X-Token": api.token},
                    {"Cookie": f"coterie_session_{api.port}={api.token}"}):  # fmt: skip
        assert stranger.get(C, headers=headers).status in (401, 429)
    assert stranger.get(f"{C}?token={api.token}&access_token={api.token}").status in (401, 429)


def log_in(api: Any, token: str, **headers: str) -> Any:
    body = urlencode({"token": token, "next": "/"}).encode()
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", **headers}
    return api.with_token(None).post("/login", raw=body, headers=sent)


def cookie_of(answer: Any) -> str:
    return str(answer.headers["set-cookie"].partition(";")[0])


def test_logging_in_and_out(api: Any) -> None:
    stranger = api.with_token(None)
    page = stranger.get("/", headers={"Accept": "text/html"})
    assert (page.status, page.headers["location"]) == (303, "/login?next=/")
    assert log_in(api, "wrong").status in (401, 429)
    answer = log_in(api, api.token)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    flags = answer.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    assert api.token not in flags
    cookie = {"Cookie": cookie_of(answer)}
    assert stranger.get("/", headers=cookie).status == 200
    own = cookie | {"Sec-Fetch-Site": "same-origin"}
    assert stranger.post(C, NEW, headers=own).status == 201
    assert stranger.post("/logout", headers=own).status == 303
    assert stranger.get("/", headers=cookie).status == 401
    assert stranger.post(C, NEW, headers=own).status == 401


def test_a_cookie_does_not_write_for_other_sites(api: Any) -> None:
    stranger = api.with_token(None)
    cookie = {"Cookie": cookie_of(log_in(api, api.token))}
    host = f"127.0.0.1:{api.port}"
    for headers in (
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{host}.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{host}"},
    ):
        answer = stranger.post(C, NEW, headers=cookie | headers)
        assert (answer.status, answer.error["code"]) == (403, "cross_origin"), headers
    assert stranger.post(C, NEW, headers=cookie | {"Origin": f"http://{host}"}).status == 201
    assert log_in(api, api.token, **{"Sec-Fetch-Site": "cross-site"}).status == 403  # nobody is logged in unawares


def test_a_readers_session_cannot_write(api: Any) -> None:
    headers = {"Cookie": cookie_of(log_in(api, READ_TOKEN)), "Sec-Fetch-Site": "same-origin"}
    stranger = api.with_token(None)
    assert stranger.post(C, NEW, headers=headers).status == 403
    page = stranger.get("/", headers=headers)
    assert page.status == 200
    assert b"New campaign" not in page.content


@pytest.mark.parametrize("goal", ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil", "x"])
def test_logging_in_leads_nowhere_else(api: Any, goal: str) -> None:
    body = urlencode({"token": api.token, "next": goal}).encode()
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    assert api.with_token(None).post("/login", raw=body, headers=sent).headers["location"] == "/"


def test_headers_that_protect(api: Any) -> None:
    for path in ("/login", C, "/static/campaign.js", "/nothing", "/openapi.json"):
        headers = api.get(path, headers={"Origin": "http://evil.example"}).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]
        assert "server" not in headers


def test_ids_cannot_be_guessed(api: Any) -> None:
    ids = [api.create() for _ in range(20)]
    leases = [ask["lease"] for id in ids[:5] for ask in api.ask(id, n=4)]
    for keys in (ids, leases):
        assert len(set(keys)) == len(keys) == 20
        assert all(len(key) * 4 >= 96 and int(key, 16) >= 0 for key in keys)  # 96 bits, in hexadecimal
        for place in range(len(keys[0])):
            # Twenty equal random digits have probability 16^-19; for 48 places together below 1e-21.
            assert len({key[place] for key in keys}) > 1


def test_wrong_tokens_are_slowed_down(start: Any) -> None:
    server = start()
    stranger = server.api.with_token("wrong")
    statuses = [stranger.get(C).status for _ in range(80)]
    assert statuses[0] == 401
    assert 429 in statuses
    assert server.api.get(C).status == 429, "who guesses is not told which one is right"
    other = start("--rate", "0")
    assert other.api.get(C).status == 200
    guessed = [other.api.with_token(f"wrong {k}").get(C).status for k in range(80)]
    assert 429 in guessed
    assert other.api.get(C).status == 200, "a token that was used there before is not held up"
    assert other.api.with_token(None).get("/healthz").status == 200
    form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    answer = other.api.with_token(None).post("/login", raw=f"token={other.api.token}".encode(), headers=form)
    assert answer.status == 303, "nor is whoever logs in with it"
    said = other.stop()
    assert "wrong token from 127.0.0.1 at /api/campaigns" in said
    assert "wrong 3" not in said
    assert said.count("wrong token from") <= 10 + 60  # ten at once, then one a second


def test_secrets_are_neither_stored_nor_logged(start: Any, tmp_path: Path) -> None:
    server = start("--access-log")
    api = server.api
    secret = cookie_of(log_in(api, api.token)).partition("=")[2]
    api.with_token("a-wrong-token-of-somebody").get(C)
    api.get(f"{C}?token={api.token}")
    api.get("/healthz")
    said = server.stop()
    assert "GET /healthz" in said
    assert "GET /api/campaigns" in said
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("store.db*"))
    assert hash_of(api.token).encode() in stored
    for hidden in (api.token, READ_TOKEN, secret, "a-wrong-token-of-somebody"):
        assert hidden not in said
        assert hidden.encode() not in stored


@pytest.mark.slow
def test_a_token_is_made_once_and_shown_once(start: Any, tmp_path: Path) -> None:
    first = start(env={})
    said = first.stop()
    token = said.partition("shown only now: ")[2].split()[0]
    assert len(token) >= 43
    second = start(env={})
    assert second.api.with_token(token).get(C).status == 200
    assert token not in second.stop()
    third = start("--new-token", env={})
    assert third.api.with_token(token).get(C).status == 401
    assert "shown only now: " in third.stop()
    fourth = start(env={"COTERIE_TOKEN": "another-token-0123456789"})
    assert fourth.api.with_token("another-token-0123456789").get(C).status == 200
    fourth.stop()
    with sqlite3.connect(tmp_path / "store.db") as file:
        assert [row[0] for row in file.execute("SELECT hash FROM tokens")] == [hash_of("another-token-0123456789")]


def run_serve(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "coterie.cli", "serve", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_serve_refuses_what_is_not_safe_or_not_possible(tmp_path: Path, server: Any) -> None:
    store = ["--store", str(tmp_path / "x.db")]
    for options, message in (
        (["--host", "0.0.0.0", "--port", "0"], "set a token"),
        (["--host", "::", "--port", "0"], "set a token"),
        (["--port", str(server.port)], "another program listens there; --port 0 takes a port that is free"),
        (["--host", "0.0.0.0", "--port", "0", "--token", "x" * 19], "at least 20"),
        (["--host", "::", "--port", "0", "--token", "x" * 20, "--read-token", "short"], "--read-token"),
        (["--port", "0", "--token", "with blank"], "without blanks"),
        (["--port", "0", "--token", "same", "--read-token", "same"], "must differ"),
        (["--port", "0", "--store", str(tmp_path / "no" / "folder.db")], "unable to open"),
    ):
        answer = run_serve(*store, *options)
        assert answer.returncode == 2, answer
        assert message in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1


def test_streams_do_not_hold_up_the_end(start: Any) -> None:
    import http.client

    server = start()
    id = server.api.create()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("GET", f"{C}/{id}/events", None, {"Authorization": f"Bearer {server.api.token}"})
    answer = connection.getresponse()
    assert answer.readline()
    said = server.stop()
    assert answer.read().endswith(b"\n\n")  # the stream ended, it was not cut
    assert "Traceback" not in said
    assert "Cancel" not in said


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Campaigns]:
    with Campaigns(tmp_path / "own.db") as opened:
        yield opened


def test_sessions_end(store: Campaigns) -> None:
    now = [0.0]
    token = store.new_token("ann", "reader")
    access = Access.of_store(store, clock=lambda: now[0])
    secret = access.open_session(token)
    assert secret is not None
    assert access.by_session(secret) == Caller(hash_of(token), "reader", label="ann")
    now[0] = 8 * 86400.0
    assert access.by_session(secret) is None
    assert access.open_session("other") is None
    assert access.open_session(token) is not None
    assert len(store.sessions()) == 1  # the one that is over was tidied away


def test_a_login_or_logout_while_the_store_is_read_counts(store: Campaigns, monkeypatch: pytest.MonkeyPatch) -> None:
    token = store.new_token("ann", "reader")
    access = Access.of_store(store)
    first = access.open_session(token)
    assert first is not None
    read, later = store.sessions, list[str]()

    def sessions() -> list[dict[str, Any]]:
        rows = read()
        if not later:  # after it was read, before it is taken over
            later.append(access.open_session(token) or "")
            access.close_session(first)
        return rows

    monkeypatch.setattr(store, "sessions", sessions)
    access.read()
    assert access.by_session(later[0]) is not None
    assert access.by_session(first) is None


def test_rate_fills_up_again() -> None:
    now = [0.0]
    rate = Rate(2.0, clock=lambda: now[0])
    assert [rate.seconds_to_wait("a") for _ in range(4)] == [0.0] * 4
    assert rate.seconds_to_wait("a") == pytest.approx(0.5)
    assert rate.seconds_to_wait("b") == 0.0
    now[0] = 0.5
    assert rate.seconds_to_wait("a") == 0.0
    assert rate.seconds_to_wait("a") > 0.0
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="a rate is"):
            Rate(wrong)


def test_a_name_is_taken_once_over_http_too(api: Any) -> None:
    body = NEW | {"name": "only one of these"}
    assert api.post(C, body).status == 201
    answer = api.post(C, body)
    assert (answer.status, answer.error["code"], answer.error["field"]) == (409, "name_taken", "name")
    assert [row["name"] for row in api.get(C).json["campaigns"]].count("only one of these") == 1


def test_a_read_only_store_takes_tokens_and_logins_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        store.create("x", 3, 2, 1, noise=1.0)
    monkeypatch.setattr(SqliteFile, "writable", False)
    with Campaigns(tmp_path / "store.db") as store:
        access, made = access_to(store)
        assert made is not None
        secret = access.open_session(made)
        assert secret is not None
        access.read()
        caller = access.by_session(secret)
        assert caller is not None
        assert caller.role == "owner"
        access.close_session(secret)
        access.read()
        assert access.by_session(secret) is None
        with pytest.raises(StoreUnavailable, match="read-only"):
            access_to(store, renew=True)


def test_wrong_tokens_from_many_addresses_are_answered_after_a_pause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits who has a right one, and little is kept and logged of the others."""
    now, slept = [0.0], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:  # while others are kept waiting
            failed.check("10.9.9.9", Caller("right", "owner"), "/login")

    monkeypatch.setattr("coterie.web.access.asyncio.sleep", sleep)
    failed = FailedLogins(clock=lambda: now[0])

    async def attack() -> None:
        for k in range(130):
            failed.check(f"10.0.{k // 200}.{k % 200}", None, "/login\n")
            await failed.pause()

    asyncio.run(attack())
    assert slept == [PAUSE] * 30
    assert len(caplog.records) == 10
    assert all("\n" not in record.getMessage() for record in caplog.records)
    for _ in range(19):
        failed.check("10.0.0.1", None, "/login")
    with pytest.raises(Refusal, match="try again in 1 s"):
        failed.check("10.0.0.1", Caller("right", "owner"), "/login")  # who guesses is not told
    failed.check("10.9.9.9", Caller("right", "owner"), "/login")
    now[0] += 1.0
    failed.check("10.0.0.1", Caller("right", "owner"), "/login")


def test_only_so_many_wrong_tokens_wait() -> None:
    failed = FailedLogins(clock=lambda: 0.0)

    async def attack() -> list[Any]:
        for _ in range(100):
            await failed.pause()
        waiting = [asyncio.create_task(failed.pause()) for _ in range(110)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        found = [task.exception() for task in waiting if task.done()]
        for task in waiting:
            task.cancel()
        return found

    refused = asyncio.run(attack())
    assert len(refused) == 10
    assert {error.status_code for error in refused} == {429}
