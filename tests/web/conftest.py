"""Real servers; a real browser and a real PostgreSQL are in tests/conftest.py."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import PATIENCE, wait_until

TOKEN = "a-token-for-tests-0123456789"
READ_TOKEN = "a-token-for-readers-0123456789"
CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])

_NUMBERS = itertools.count(1)


def fresh_name(of: str = "x") -> str:
    """A name that no other campaign of the test run has: a server takes each once."""
    return f"{of} {next(_NUMBERS)}"


class Answer:
    """Status, headers and content of an answer."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.content = answer.read()

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> dict[str, Any]:
        assert set(self.json) == {"error"}, self.json
        assert set(self.json["error"]) == {"code", "message", "field"}
        return dict(self.json["error"])


class Api:
    """Requests to a server, with a token unless told otherwise."""

    def __init__(self, port: int, token: str | None = TOKEN) -> None:
        self.port, self.token = port, token
        self.url = f"http://127.0.0.1:{port}"

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        timeout: float = 300,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        sent = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        if body is not None or raw is not None:
            sent["Content-Type"] = "application/json"
        if method == "POST" and path == "/api/campaigns" and isinstance(body, dict) and body.get("name") == "x":
            body = body | {"name": fresh_name()}  # tests that care about the name use another
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, content, sent | (headers or {}))
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Answer:
        return self.send("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.send("POST", path, body, **more)

    def with_token(self, token: str | None) -> Api:
        return Api(self.port, token)

    def log_in(self, token: str = TOKEN) -> dict[str, str]:
        """The headers with which a browser asks for pages, once somebody has logged in."""
        form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        answer = self.with_token(None).post("/login", raw=f"token={token}".encode(), headers=form)
        assert answer.status == 303, answer.content
        return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "Accept": "text/html"}

    def create(self, **more: Any) -> str:
        """A campaign of six items in three groups."""
        body = {"name": fresh_name("world"), "n_arms": 6, "n_clusters": 3, "dim": 2, "noise": 1.0, **more}
        answer = self.post("/api/campaigns", body)
        assert answer.status == 201, answer.content
        return str(answer.json["id"])

    def ask(self, id: str, worker: str = "w", n: int = 1) -> list[dict[str, Any]]:
        answer = self.post(f"/api/campaigns/{id}/ask", {"worker": worker, "n": n})
        assert answer.status == 200, answer.content
        return list(answer.json["asks"])

    def tell(self, id: str, *measurements: dict[str, Any]) -> Answer:
        return self.post(f"/api/campaigns/{id}/tell", {"measurements": list(measurements)})


def value_of(arm: int, k: int) -> list[float]:
    """The k-th measurement of an item: always the same."""
    return [float(value) for value in CENTERS[arm % 3] + np.random.default_rng([arm, k]).normal(size=2)]


def port_of(line: str) -> int:
    """The port in what a server prints first."""
    assert line.startswith("Coterie serves"), line
    return int(line.strip().rpartition(":")[2])


class ServerProcess:
    """`coterie serve` as a process of its own."""

    def __init__(self, store: str | Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.store = store
        given = {"COTERIE_TOKEN": TOKEN, "COTERIE_READ_TOKEN": READ_TOKEN} if env is None else env
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("COTERIE_")}
        command = [sys.executable, "-m", "coterie.cli", "serve", "--store", str(store), "--port", "0", *options]
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the object)
        self.process = subprocess.Popen(command, env=inherited | given, stdout=self.said, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: "\n" in self.output() or self.process.poll() is not None)
            assert self.output().startswith("Coterie serves"), self.output()
            self.port = port_of(self.output().partition("\n")[0])
            self.api = Api(self.port)
            wait_until(lambda: self.api.with_token(None).get("/healthz").status == 200)
        except BaseException:
            self.process.kill()
            raise

    def output(self) -> str:
        """Everything that it has printed."""
        size = os.fstat(self.said.fileno()).st_size
        return os.pread(self.said.fileno(), size, 0).decode()

    def stop(self) -> str:
        """End it as a user would; everything that it printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        return self.output()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests that do not disturb it."""
    running = ServerProcess(tmp_path_factory.mktemp("server") / "store.db", "--rate", "0")
    yield running
    running.stop()


@pytest.fixture
def api(server: ServerProcess) -> Api:
    return server.api


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers of the test's own, on its own store unless one is named."""
    running: list[ServerProcess] = []

    def begin(*options: str, store: str | Path = tmp_path / "store.db", **more: Any) -> ServerProcess:
        running.append(ServerProcess(store, *options, **more))
        return running[-1]

    yield begin
    for one in running:
        if one.process.poll() is None:
            one.stop()


class Nursery:
    """A process that has everything loaded and forks servers: they are there at once, as often as they are killed."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("nursery.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(self, store: str | Path, port: int = 0, user: int | None = None) -> tuple[int, int]:
        """(process id, port) of a new server."""
        assert self.process.stdin is not None
        order = {"store": str(store), "port": port, "token": TOKEN, "user": user}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self._line()), port_of(self._line())

    def api(self, port: int) -> Api:
        return Api(port)

    def kill(self, pid: int, by: int = signal.SIGKILL) -> None:
        """kill -9, or by another signal, and wait until it is gone."""
        os.kill(pid, by)
        end = time.monotonic() + PATIENCE
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < end
            time.sleep(0.001)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(300)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    running = Nursery()
    yield running
    running.close()


@pytest.fixture
def opened(browser: Any, api: Any) -> Iterator[Callable[..., Any]]:
    """Opens the page as somebody who has logged in; anything that a script complains about fails the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def note_request(url: str, served_at: str) -> None:
        if not url.startswith(served_at):
            complaints.append(f"it asks {url}")

    def open_page(path: str = "/", token: str = api.token, served: Any = api, **more: Any) -> Any:
        context = browser.new_context(base_url=served.url, **{"viewport": {"width": 1200, "height": 900}} | more)
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: note_request(asked.url, served.url))
        page.goto(path)
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        page.wait_for_url(served.url + path.partition("#")[0])
        if "#" in path:  # a part of the page: the login does not keep it
            page.goto(path)
            page.locator(f"#campaign[data-part={path.partition('#part-')[2]}]").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints
