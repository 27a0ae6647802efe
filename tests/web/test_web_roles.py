"""Roles and tokens by command, on all stores: who may do what, at once and without a restart, and who wrote a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from waiting import wait_until

from coterie.cli import app

C = "/api/campaigns"
NEW = {"name": "y", "n_arms": 3, "n_clusters": 2, "dim": 1}


def token(store: Any, *words: str) -> str:
    answer = run(store, *words)
    assert answer.exit_code == 0, answer.output
    return str(answer.stdout).strip()


def run(store: Any, *words: str) -> Any:
    """The command, in this process: the server is another one."""
    return CliRunner().invoke(app, ["token", *words, "--store", str(store)])


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres").new_database())
    return str(tmp_path / "store.db")


@pytest.mark.slow
def test_tokens_by_command_while_the_server_runs(start: Any, place: str) -> None:
    server = start("--rate", "0", store=place)
    api = server.api
    one, other = api.create(name="one", method="uniform"), api.create(name="other", method="uniform")
    ann = api.with_token(token(place, "new", "ann", "--role", "worker", "--campaign", "one"))
    bob = api.with_token(token(place, "new", "bob"))
    eve = api.with_token(token(place, "new", "eve", "--role", "reader", "--campaign", "other"))
    boss = api.with_token(token(place, "new", "boss", "--role", "owner", "--campaign", "one"))
    wait_until(lambda: boss.get(f"{C}/{one}").status == 200)

    # One campaign or all.
    assert [row["name"] for row in ann.get(C).json["campaigns"]] == ["one"]
    assert [row["name"] for row in bob.get(C).json["campaigns"]] == ["one", "other"]
    for who, id in ((ann, other), (eve, one), (boss, other)):
        for path in (f"{C}/{id}", f"{C}/{id}/export", f"{C}/{id}/events", f"/campaigns/{id}", f"/campaigns/{id}/log"):
            assert (who.get(path).status, who.get(path).error["code"]) == (403, "other_campaign"), path
        assert who.post(f"{C}/{id}/ask", {"worker": "w"}).status == 403
    for who in (ann, bob, eve, boss):
        assert who.post(C, NEW).status == 403

    # Leases of one's own.
    (mine,), (his,) = ann.ask(one, "ann"), bob.ask(one, "bob")
    (owners,) = api.ask(one, "owner")
    answer = bob.post(f"{C}/{one}/fail", {"lease": mine["lease"]})
    assert (answer.status, answer.error["code"], answer.error["field"]) == (403, "not_your_lease", "lease")
    told = {"id": "stolen", "arm": mine["arm"], "values": [0.0, 0.0], "lease": mine["lease"]}
    assert bob.tell(one, told).error["field"] == "measurements[0].lease"
    assert bob.ask(one, "ann")[0]["lease"] != mine["lease"], "a name is not a token"
    assert ann.ask(one, "ann")[0]["lease"] == mine["lease"]
    assert ann.tell(one, told | {"id": "a"}).json["accepted"] == 1
    assert bob.post(f"{C}/{one}/fail", {"lease": his["lease"], "reason": "broke"}).status == 200
    assert bob.tell(one, {"id": "b", "arm": owners["arm"], "values": [0.0, 0.0]}).json["accepted"] == 1
    assert [row["lease"] for row in api.get(f"{C}/{one}").json["open_leases"]].count(owners["lease"]) == 1
    assert eve.post(f"{C}/{other}/ask", {"worker": "eve"}).error["code"] == "read_only_token"
    assert boss.post(f"{C}/{one}/fail", {"lease": owners["lease"]}).status == 200

    # The record keeps who wrote a row.
    by = {row["id"]: row["token"]["name"] for row in api.get(f"{C}/{one}/measurements").json["measurements"]}
    assert by == {"a": "ann", "b": "bob"}
    events = json.loads(api.get(f"{C}/{one}/export?kind=json").content)["events"]
    assert [row["token"]["name"] for row in events if row["kind"] == "failed"] == ["bob", "boss"]
    assert [row["token"]["name"] for row in events if row["kind"] == "asked"][:3] == ["ann", "bob", "serve"]

    # Listed and revoked; rows keep the name.
    assert {row["label"]: row["role"] for row in json.loads(token(place, "list", "--json"))} == {
        "serve": "reader", "ann": "worker", "bob": "worker", "eve": "reader", "boss": "owner",
    }  # fmt: skip
    secrets = (ann.token, bob.token, eve.token, boss.token)
    assert not any(secret in token(place, "list") for secret in secrets)
    assert token(place, "revoke", "bob") == "revoked: bob (worker); 1 open ask given back"
    wait_until(lambda: bob.get(C).status == 401)
    assert ann.get(C).status == 200
    by = {row["id"]: row["token"]["name"] for row in api.get(f"{C}/{one}/measurements").json["measurements"]}
    assert by == {"a": "ann", "b": "bob"}

    # After a restart all is as it was.
    server.stop()
    again = start("--rate", "0", store=place)
    assert again.api.with_token(ann.token).get(f"{C}/{one}").status == 200
    assert again.api.with_token(bob.token).get(C).status == 401
    answer = again.api.with_token(bob.token).post(f"{C}/{one}/fail", {"lease": his["lease"]})
    assert answer.status == 401


def test_wrong_orders_are_refused_in_a_line(start: Any, tmp_path: Path) -> None:
    server = start()
    server.api.create(name="one")
    path = str(tmp_path / "store.db")
    token(path, "new", "ann")
    for words, message in (
        (["new", "ann"], "there is a token 'ann' already"),
        (["new", "x", "--campaign", "none"], "there is no campaign 'none'"),
        (["revoke", "nobody"], "there is no token 'nobody'"),
    ):
        answer = run(path, *words)
        assert answer.exit_code == 2
        assert message in answer.stderr
        assert len(answer.stderr.splitlines()) == 1


def test_a_workers_page_measures_and_creates_nothing(start: Any, tmp_path: Path) -> None:
    from urllib.parse import urlencode

    server = start()
    id = server.api.create(name="one")
    secret = token(str(tmp_path / "store.db"), "new", "ann")
    wait_until(lambda: server.api.with_token(secret).get(C).status == 200)
    body = urlencode({"token": secret, "next": "/"}).encode()
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    logged_in = server.api.with_token(None).post("/login", raw=body, headers=sent)
    cookie = {"Cookie": str(logged_in.headers["set-cookie"].partition(";")[0]), "Accept": "text/html"}
    stranger = server.api.with_token(None)
    first = stranger.get("/", headers=cookie).content
    assert b"New campaign" not in first
    assert b"for measuring" in first
    assert stranger.get(f"/campaigns/{id}", headers=cookie).status == 200
