"""Webhooks: signed, tried again, told once, and only where the owner of the server allows."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from coterie.campaign import Campaigns
from coterie.campaign.service.signals import KEPT_SECONDS
from coterie.web.webhooks import Timing, Webhooks, checked_address, is_public

SECRET = "a secret of more than twenty characters"
QUICK = Timing(look=0.01, pause=0.01)


class Receiver:
    """A real HTTP server on this machine. `statuses`: those of the first answers; later ones are 204."""

    def __init__(self, *statuses: int) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.silence = threading.Event()
        left, receiver = list(statuses), self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status = left.pop(0) if left else 204
                if status == 0:  # it never answers
                    receiver.silence.wait(60)
                    return
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?lab=1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.silence.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def make(*statuses: int) -> Receiver:
        made.append(Receiver(*statuses))
        return made[-1]

    yield make
    for one in made:
        one.close()


@contextmanager
def told(store: Campaigns, url: str, **options: Any) -> Iterator[Webhooks]:
    webhooks = Webhooks(store, [url], SECRET, options.pop("private", True), options.pop("timing", QUICK))
    webhooks.start()
    try:
        yield webhooks
    finally:
        webhooks.close()


def stopped_campaign(store: Campaigns, name: str = "beans") -> str:
    """A campaign whose groups are proven."""
    id: str = store.create(name, 4, 2, 1, noise=1.0)["id"]
    number = 0
    while asks := store.ask(id, "ann", 4)["asks"]:
        results = []
        for ask in asks:
            number += 1
            results.append({"id": f"m{number}", "arm": ask["arm"], "lease": ask["lease"],
                            "values": [50.0 * (ask["arm"] % 2) + 0.1 * (number % 3)]})  # fmt: skip
        store.tell(id, results)
    return id


def notes(store: Campaigns, id: str) -> list[dict[str, Any]]:
    return [event for event in store.events(id)["events"] if event["kind"] == "delivered"]


def test_a_stop_is_told_once_signed_and_never_again(receiver: Callable[..., Receiver], tmp_path: Path) -> None:
    hook = receiver()
    with Campaigns(tmp_path / "lab.db") as store:
        with told(store, hook.url):
            id = stopped_campaign(store)
            wait_until(lambda: bool(notes(store, id)))
        path, headers, body = hook.requests[0]
        assert path == "/hook?lab=1"
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        right = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{right}"
        assert abs(time.time() - int(headers["webhook-timestamp"])) < 600
        content = json.loads(body)
        assert content["type"] == "campaign.stopped"
        assert content["data"]["campaign"] == {"id": id, "name": "beans"}
        assert content["data"]["message"].startswith("proven")
        assert [note["event"] for note in notes(store, id)] == ["stopped"]
        # A server that begins anew tells nothing that was told, and what happens then.
        with told(store, hook.url):
            other = stopped_campaign(store, "peas")
            wait_until(lambda: bool(notes(store, other)))
        assert [json.loads(request[2])["data"]["campaign"]["name"] for request in hook.requests] == ["beans", "peas"]
        assert store.status(id)["done"]
        assert store.export(id, "log")


def test_failures_and_redirections_are_tried_again(receiver: Callable[..., Receiver], tmp_path: Path) -> None:
    hook = receiver(500, 302, 404)
    with Campaigns(tmp_path / "lab.db") as store:
        id = stopped_campaign(store)
        with told(store, hook.url):
            wait_until(lambda: bool(notes(store, id)))
    assert [request[0] for request in hook.requests] == ["/hook?lab=1"] * 4
    assert len({request[1]["webhook-id"] for request in hook.requests}) == 1


def test_what_was_not_delivered_is_delivered_by_the_next_server(
    receiver: Callable[..., Receiver], tmp_path: Path
) -> None:
    gone = receiver()
    url = gone.url
    gone.close()
    with Campaigns(tmp_path / "lab.db") as store:
        id = stopped_campaign(store)
        with told(store, url):
            pass
        assert notes(store, id) == []
        hook = receiver()
        with told(store, hook.url):
            wait_until(lambda: bool(notes(store, id)))


def test_an_archived_campaign_too(receiver: Callable[..., Receiver], tmp_path: Path) -> None:
    hook = receiver()
    with Campaigns(tmp_path / "lab.db") as store:
        id = stopped_campaign(store)
        store.archive(id)
        with told(store, hook.url):
            wait_until(lambda: bool(notes(store, id)))


def test_one_that_never_answers_holds_up_nothing(receiver: Callable[..., Receiver], tmp_path: Path) -> None:
    silent, hook = receiver(*[0] * 50), receiver()
    with Campaigns(tmp_path / "lab.db") as store:
        id = stopped_campaign(store)
        webhooks = Webhooks(store, [silent.url, hook.url], SECRET, True, Timing(0.01, 0.01, 3600.0))
        webhooks.start()
        wait_until(lambda: bool(silent.requests) and bool(notes(store, id)))
        assert store.status(id)["done"]
        webhooks.close()
        assert not any(thread.name == "coterie-webhook" for thread in threading.enumerate())


def test_one_that_answers_too_late_is_tried_again(
    receiver: Callable[..., Receiver], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hook = receiver(0)
    with Campaigns(tmp_path / "lab.db") as store:
        id = stopped_campaign(store)
        with told(store, hook.url, timing=Timing(0.01, 0.01, 0.2)):
            wait_until(lambda: bool(notes(store, id)))
    assert len(hook.requests) >= 2
    assert "no answer within 0.2 s" in caplog.text


def test_private_addresses_are_refused_unless_they_are_allowed(
    receiver: Callable[..., Receiver], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hook = receiver()
    port = hook.url.partition("127.0.0.1:")[2]
    with Campaigns(tmp_path / "lab.db") as store:
        id = stopped_campaign(store)
        with told(store, f"https://localhost:{port}", private=False):
            wait_until(lambda: "--webhook-private" in caplog.text)
        assert notes(store, id) == []
    assert hook.requests == []


@pytest.mark.parametrize("address", [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
])  # fmt: skip
def test_addresses_of_this_machine_and_of_private_networks_are_known(address: str) -> None:
    assert not is_public(address)


def test_addresses_of_the_internet_are_known() -> None:
    assert is_public("93.184.215.14")
    assert is_public("2606:2800:21f:cb07:6820:80da:af6b:8b2c")


def test_what_may_be_stated(tmp_path: Path) -> None:
    for wrong in ("lab.example/hook", "ftp://lab.example", "https://", "https://ann:word@lab.example", "https://a:b"):
        with pytest.raises(ValueError, match="a webhook is an address"):
            checked_address(wrong, private=True)
    with pytest.raises(ValueError, match="not encrypted"):
        checked_address("http://lab.example/hook", private=False)
    with Campaigns(tmp_path / "lab.db") as store:
        for secret in (None, "short"):
            with pytest.raises(ValueError, match="COTERIE_WEBHOOK_SECRET"):
                Webhooks(store, ["https://lab.example/hook"], secret)
        with pytest.raises(ValueError, match="base64"):
            Webhooks(store, ["https://lab.example/hook"], "whsec_this is no base64 at all")


def test_an_alarm_is_a_signal(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "lab.db") as store:
        id = store.create("three", 3, 2, 1, noise=1.0)["id"]
        for number in range(400):
            arm = number % 3
            store.tell(id, [{"id": f"m{number}", "arm": arm, "values": [40.0 * arm]}])
            if store.status(id)["alarm"]:
                break
        (alarm,) = [signal for signal in store.signals().news() if signal.event == "alarm"]
        assert alarm.message.startswith("K = 2 is refuted: items 0, 1 and 2")


def test_what_blocks_a_campaign_is_a_signal_once_nothing_has_come_for_long(tmp_path: Path) -> None:
    now = [1_000_000.0]
    with Campaigns(tmp_path / "lab.db", clock=lambda: now[0]) as store:
        id = store.create("beans", 4, 2, 1, noise=1.0, on_expiry="wait", names=["ash", "elm", "oak", "fir"])["id"]
        held = store.ask(id, "ann", 1)["asks"][0]
        number = 0
        while asks := store.ask(id, "bob", 1)["asks"]:
            number += 1
            value = [5.0 * (asks[0]["arm"] % 2) + 0.1 * (number % 3)]
            store.tell(id, [{"id": f"b{number}", "arm": asks[0]["arm"], "lease": asks[0]["lease"], "values": value}])
        signals = store.signals(blocked_after=900.0)
        assert signals.news() == []
        now[0] += 901.0
        (blocked,) = signals.news()
        assert blocked.event == "blocked"
        assert "ann" in blocked.message
        assert held["name"] in blocked.message
        assert signals.news() == []
        now[0] += KEPT_SECONDS
        assert store.signals().news() == []


def test_the_servers_options(start: Any, receiver: Callable[..., Receiver]) -> None:
    hook = receiver()
    server = start("--webhook", hook.url, "--webhook-secret", SECRET, "--webhook-private")
    id = server.api.create(n_arms=3, n_clusters=2, dim=1, noise=1.0)
    for number in range(12):
        value = {"id": f"m{number}", "arm": number % 3, "values": [40.0 * (number % 3)]}
        assert server.api.tell(id, value).status == 200
    wait_until(lambda: bool(hook.requests))
    assert json.loads(hook.requests[0][2])["type"] == "campaign.alarm"
