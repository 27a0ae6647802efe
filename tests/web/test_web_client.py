"""`coterie.client` against a real server: a campaign from its beginning to its certificate, refusals, lost answers."""

from __future__ import annotations

import inspect
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pytest

import coterie
from coterie.client import Client, RemoteCampaign, ServerError
from coterie.web.request_models import Measurement as MeasurementBody
from coterie.web.request_models import NewCampaign
from coterie.web.response_models import Ask, Summary, Told
from coterie.web.view_models import Status

LEVEL = {"ash": 0.0, "elm": 0.2, "oak": 9.0}


@pytest.fixture
def client(api: Any) -> Iterator[Client]:
    with Client(api.url, api.token) as one:
        yield one


def test_a_campaign_from_its_beginning_to_its_certificate(client: Client) -> None:
    rng = np.random.default_rng(0)
    assert client.healthy()
    trees = client.create("trees", list(LEVEL), resolution=(0.5, 4.0), noise=1.0, delta=0.01, value_names=["height"])
    assert trees.id in {one["id"] for one in client.campaigns()}
    (first,) = trees.ask("forester")
    assert trees.ask("forester") == [first], "an answer that was lost costs nothing"
    trees.fail(first["lease"], "fog")
    (first,) = trees.ask("forester")
    told = trees.tell([{"arm": first["name"], "values": 0.1, "lease": first["lease"], "id": "one"}])
    assert (told["accepted"], told["duplicates"]) == (1, 0)
    assert trees.tell([{"arm": first["name"], "values": [0.1], "id": "one"}])["duplicates"] == 1
    status = trees.run(lambda name: np.array([LEVEL[name] + rng.standard_normal()]), "forester", n=2)
    assert status["done"]
    assert status["labels"] == [0, 0, 1]
    assert len(list(trees.measurements())) == status["measurements"]
    assert "height" in trees.export("csv").splitlines()[0]
    assert trees.partial()["done"]
    assert set(trees.history(10)) >= {"t", "statistic", "threshold"}
    assert trees.certificate()["labels"] == [0, 0, 1]
    assert trees.ask("forester") == []


def test_what_the_server_refuses_is_its_sentence(client: Client, api: Any) -> None:
    with pytest.raises(ServerError, match="campaign") as found:
        client.campaign("0" * 24).status()
    assert found.value.status == 404
    campaign = client.create("pairs", 3, 2, noise=coterie.Bounded(0, 1))
    with pytest.raises(ServerError, match="values") as found:
        campaign.tell([{"arm": 0, "values": [1.0, 2.0]}])
    assert (found.value.status, found.value.field) == (422, "measurements[0].values")
    with pytest.raises(ServerError) as found:
        campaign.certificate()
    assert found.value.status == 409
    with Client(api.url, "wrong" * 8) as stranger, pytest.raises(ServerError) as found:
        stranger.campaigns()
    assert found.value.status == 401


def test_what_cannot_be_sent_is_named_before_it_is(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="values must be finite"):
        client.campaign("x").tell([{"arm": 0, "values": float("nan")}])
    with pytest.raises(ValueError, match="noise"):
        client.create("x", 3, 2, noise=-1.0)
    with pytest.raises(ValueError, match="url must be an address"):
        Client("localhost:8000", "t")
    monkeypatch.delenv("COTERIE_TOKEN", raising=False)
    with pytest.raises(ValueError, match="COTERIE_TOKEN"):
        Client()


class _Unreliable(BaseHTTPRequestHandler):
    """Drops the connection, then puts the request off, then answers."""

    seen: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.path, body))
        if len(self.seen) == 1:
            self.close_connection = True
            return
        later = {"error": {"code": "busy", "message": "later", "field": None}}
        there = {"accepted": 1, "duplicates": 0, "done": False}
        status, content = (503, later) if len(self.seen) == 2 else (200, there)
        answer = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def unreliable() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    seen: list[tuple[str, bytes]] = []
    handler = type("Handler", (_Unreliable,), {"seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
        server.shutdown()
        thread.join()


def test_a_lost_answer_is_asked_for_again_with_the_same_id(unreliable: tuple[str, list[tuple[str, bytes]]]) -> None:
    url, seen = unreliable
    with Client(url, "t") as client:
        assert client.campaign("x").tell([{"arm": 0, "values": 1.0}])["accepted"] == 1
    assert len(seen) == 3
    assert len({body for _, body in seen}) == 1, "the id is made once"


def test_what_would_happen_twice_is_not_sent_again(unreliable: tuple[str, list[tuple[str, bytes]]]) -> None:
    url, seen = unreliable
    with Client(url, "t") as client, pytest.raises(httpx.TransportError):
        client.create("x", 3, 2)
    assert len(seen) == 1
    with Client("http://127.0.0.1:9", "t", retries=1) as nobody:
        assert not nobody.healthy()
        with pytest.raises(httpx.ConnectError) as found:
            nobody.campaigns()
    assert "after 2 tries" in " ".join(found.value.__notes__)


ROUTES: dict[tuple[str, str], Callable[..., Any]] = {
    ("post", "/api/campaigns/{id}/close-block"): RemoteCampaign.close_block,
    ("post", "/api/campaigns/{id}/attachments"): RemoteCampaign.attach,
    ("get", "/api/campaigns/{id}/attachments"): RemoteCampaign.attachments,
    ("get", "/api/campaigns/{id}/attachment"): RemoteCampaign.attachment,
    ("get", "/api/campaigns/{id}/attachments.zip"): RemoteCampaign.attachment,
    ("get", "/healthz"): Client.healthy,
    ("post", "/api/campaigns"): Client.create,
    ("get", "/api/campaigns"): Client.campaigns,
    ("get", "/api/campaigns/{id}"): RemoteCampaign.status,
    ("get", "/api/campaigns/{id}/cells"): RemoteCampaign.cells,
    ("get", "/api/campaigns/{id}/items"): RemoteCampaign.items,
    ("get", "/api/campaigns/{id}/measurements"): RemoteCampaign.measurements,
    ("get", "/api/campaigns/{id}/history"): RemoteCampaign.history,
    ("get", "/api/campaigns/{id}/certificate"): RemoteCampaign.certificate,
    ("get", "/api/campaigns/{id}/export"): RemoteCampaign.export,
    ("get", "/api/campaigns/{id}/events"): RemoteCampaign.events,
    ("get", "/api/campaigns/{id}/partial"): RemoteCampaign.partial,
    ("get", "/api/campaigns/{id}/resolution-curve"): RemoteCampaign.resolution_curve,
    ("post", "/api/campaigns/{id}/ask"): RemoteCampaign.ask,
    ("post", "/api/campaigns/{id}/tell"): RemoteCampaign.tell,
    ("post", "/api/campaigns/{id}/fail"): RemoteCampaign.fail,
    ("post", "/api/campaigns/{id}/resolution"): RemoteCampaign.choose_resolution,
    ("post", "/api/campaigns/{id}/corrections"): RemoteCampaign.correct,
    ("post", "/api/campaigns/{id}/undo"): RemoteCampaign.undo,
    ("post", "/api/campaigns/{id}/archive"): RemoteCampaign.archive,
    ("post", "/api/campaigns/{id}/lease-time"): RemoteCampaign.change_lease_time,
    ("delete", "/api/campaigns/{id}"): RemoteCampaign.delete,
    ("post", "/api/campaigns/{id}/invitations"): RemoteCampaign.invite,
    ("get", "/api/campaigns/{id}/invitations"): RemoteCampaign.invitations,
    ("delete", "/api/campaigns/{id}/invitations"): RemoteCampaign.revoke_invitation,
    ("post", "/api/campaigns/{id}/items"): RemoteCampaign.add_items,
    ("post", "/api/campaigns/{id}/retire"): RemoteCampaign.retire,
    ("post", "/api/campaigns/{id}/clusters"): RemoteCampaign.raise_clusters,
    ("post", "/api/campaigns/{id}/delta"): RemoteCampaign.lower_delta,
    ("post", "/api/campaigns/{id}/deadline"): RemoteCampaign.change_deadline,
    ("get", "/api/campaigns/{id}/budget"): RemoteCampaign.budget,
    ("get", "/api/campaigns/{id}/picture"): RemoteCampaign.picture,
    ("post", "/api/campaigns/{id}/import"): RemoteCampaign.import_table,
    ("post", "/api/items"): Client.read_items,
}


def test_every_route_has_a_method(client: Client) -> None:
    """A new route needs a method of the client, typed and with a docstring, and its line here."""
    described = client.request("GET", "/openapi.json")["paths"]
    there = {(verb, path) for path, verbs in described.items() for verb in verbs if "{" not in path or "{id}" in path}
    ours = {(verb, path) for verb, path in there if path == "/healthz" or path.startswith("/api/")}
    assert ours == ROUTES.keys()
    for route, method in ROUTES.items():
        assert method.__doc__, route
        signature = inspect.signature(method)
        assert signature.return_annotation is not inspect.Signature.empty, route
        known = {name for name, one in signature.parameters.items() if name != "self"}
        queries = {one["name"] for one in described[route[1]][route[0]].get("parameters", []) if one["in"] == "query"}
        assert queries <= known, f"{route} takes {queries - known}"


def test_tables_go_in_and_out(client: Client) -> None:
    assert client.read_items("name,cost\nash,1\nelm,2.5\n")["costs"] == [1.0, 2.5]
    assert client.read_items("ash\nelm\n", kind="pasted")["names"] == ["ash", "elm"]
    campaign = client.create("tables", ["ash", "elm", "oak"], 2, noise=1.0)
    table = "id,arm,v0\nmonday/1,ash,1.25\nmonday/2,oak,7.5\n"
    assert campaign.import_table(table, check=True)["new"] == 2
    assert campaign.status()["measurements"] == 0
    assert campaign.import_table(table, in_order=True)["accepted"] == 2
    assert campaign.export(decimal_comma=True).splitlines()[1].startswith("monday/1;ash;1,25")
    excel = campaign.export(format="xlsx")
    copy = client.create("copy", ["ash", "elm", "oak"], 2, noise=1.0)
    assert copy.import_table(excel, name="tables.xlsx", in_order=True)["accepted"] == 2
    assert [one["values"] for one in copy.measurements()] == [[1.25], [7.5]]


def test_events_are_followed_from_where_one_is(client: Client) -> None:
    campaign = client.create("watched", ["ash", "elm", "oak"], 2, noise=1.0)
    (ask,) = campaign.ask("forester")
    seen = []
    for event in campaign.events():
        seen.append(event)
        if event["kind"] == "asked":
            campaign.tell([{"arm": ask["arm"], "values": 1.5, "lease": ask["lease"]}])
        if event["kind"] == "told":
            break
    assert seen[-1]["values"] == [1.5]
    assert seen[-1]["worker"] == "forester"
    assert seen[-1]["at"].endswith("Z")
    (again,) = itertools.islice(campaign.events(after=seen[-1]["seq"] - 1), 1)
    assert again == seen[-1]
    (changed,) = itertools.islice(campaign.events(brief=True), 1)
    assert changed["seq"] >= seen[-1]["seq"]
    with pytest.raises(ServerError, match="campaign"):
        next(iter(client.campaign("0" * 24).events()))
    assert [one["name"] for one in campaign.items(limit=2)] == ["ash", "elm", "oak"]
    assert set(coterie.client.Item.__annotations__) == set(next(campaign.items()))
    (recorded,) = campaign.measurements()
    assert set(coterie.client.Recorded.__annotations__) - {"token"} <= set(recorded)


@pytest.mark.parametrize("name", ["Summary", "Status", "Ask", "Told", "Measurement"])
def test_the_types_are_those_of_the_server(name: str) -> None:
    """Every field that the client's types promise is one that the server's schema has."""
    schemas: dict[str, Any] = {
        "Summary": Summary, "Status": Status, "Ask": Ask, "Told": Told, "Measurement": MeasurementBody,
    }  # fmt: skip
    mine = set(getattr(coterie.client, name).__annotations__)
    assert mine <= set(schemas[name].model_fields), name


def test_every_setting_of_a_new_campaign_can_be_given() -> None:
    given = set(inspect.signature(Client.create).parameters) - {"self", "items"} | {"n_arms", "names"}
    assert given == set(NewCampaign.model_fields)
