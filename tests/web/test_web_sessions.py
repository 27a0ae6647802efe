"""The sessions of people: cookies of several servers on one host, restarts, logging out, and many logins."""

from __future__ import annotations

import http.client
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import pytest
from waiting import wait_until

from coterie.campaign import Campaigns
from coterie.web.access import Access

C = "/api/campaigns"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


def log_in(api: Any, token: str, **headers: str) -> dict[str, str]:
    """The cookies that a login sets."""
    body = urlencode({"token": token, "next": "/"}).encode()
    answer = api.with_token(None).post("/login", raw=body, headers=FORM | headers)
    assert answer.status == 303, answer.content
    return {name: one.value for name, one in SimpleCookie(answer.headers["set-cookie"]).items()}


def cookies(jar: dict[str, str]) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in jar.items())}


def test_servers_on_one_host_keep_their_sessions_apart(start: Any, tmp_path: Any) -> None:
    """A browser has one jar for all ports of a host."""
    one, other = start(), start(store=tmp_path / "other.db")
    jar = log_in(one.api, one.api.token)
    jar |= log_in(other.api, other.api.token)
    for server in (one, other):
        assert server.api.with_token(None).get("/", headers=cookies(jar)).status == 200
    assert len(set(jar)) == len(set(jar.values())) == 2


def test_over_tls_the_cookie_is_one_that_no_other_server_can_set(start: Any) -> None:
    server = start("--proxy", "127.0.0.1")
    body = urlencode({"token": server.api.token, "next": "/"}).encode()
    answer = server.api.with_token(None).post("/login", raw=body, headers=FORM | {"X-Forwarded-Proto": "https"})
    said = answer.headers["set-cookie"]
    assert said.startswith("__Host-coterie_session_")
    assert "; Secure" in said
    assert "Path=/;" in said
    cookie = {"Cookie": said.partition(";")[0]}
    assert server.api.with_token(None).get(C, headers=cookie | {"X-Forwarded-Proto": "https"}).status == 200
    assert server.api.with_token(None).get(C, headers=cookie).status == 401


@pytest.mark.slow
def test_sessions_survive_a_restart(start: Any) -> None:
    first = start("--port", "0")
    jar = log_in(first.api, first.api.token)
    first.stop()
    second = start("--port", str(first.port))
    assert second.api.with_token(None).get("/", headers=cookies(jar)).status == 200
    logged_out = second.api.with_token(None).post("/logout", headers=cookies(jar) | {"Sec-Fetch-Site": "same-origin"})
    assert logged_out.status == 303
    second.stop()
    third = start("--port", str(first.port))
    assert third.api.with_token(None).get("/", headers=cookies(jar)).status == 401


def test_event_streams_end_at_logout_and_when_the_token_is_revoked(start: Any, tmp_path: Any) -> None:
    server = start()
    id = server.api.create()
    jar = log_in(server.api, server.api.token)
    with Campaigns(tmp_path / "store.db") as store:
        secret = store.new_token("ann", "reader")
    wait_until(lambda: server.api.with_token(secret).get(C).status == 200)
    streams = []
    for headers in (cookies(jar), {"Authorization": f"Bearer {secret}"}):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        connection.request("GET", f"{C}/{id}/events", None, headers)
        answer = connection.getresponse()
        assert answer.readline().startswith(b"retry")
        streams.append(answer)
    server.api.with_token(None).post("/logout", headers=cookies(jar) | {"Sec-Fetch-Site": "same-origin"})
    streams[0].read()  # it ends, within a second or two
    with Campaigns(tmp_path / "store.db") as store:
        store.revoke_token("ann")
    streams[1].read()


def test_many_logins_end_no_session_of_another_token(tmp_path: Any) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        owner, reader = store.new_token("owner", "owner"), store.new_token("reader", "reader")
        access = Access.of_store(store)
        kept = access.open_session(owner)
        assert kept is not None
        made = [access.open_session(reader) for _ in range(300)]
        access.read()
        assert access.by_session(kept) is not None
        assert len(store.sessions()) == 101
        assert made[-1] is not None
        assert access.by_session(made[-1]) is not None
        assert made[0] is not None
        assert access.by_session(made[0]) is None
