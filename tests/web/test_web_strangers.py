"""What somebody without a token can take of the server: little memory, for a short time, and no place from others."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

C = "/api/campaigns"


def connect(server: Any) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), timeout=300)
    return made


def memory(server: Any) -> int:
    """Of the process, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def pour(one: socket.socket, content: bytes, most: int) -> int:
    """Send the same again and again until it is not taken any more; how many bytes were."""
    sent = 0
    one.settimeout(5)
    try:
        while sent < most:
            one.sendall(content)
            sent += len(content)
    except OSError:
        pass
    return sent


def answer_of(one: socket.socket) -> tuple[int, dict[str, Any]]:
    received = b""
    try:
        while part := one.recv(65536):
            received += part
    except OSError:
        pass
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"] if body else {}


@pytest.mark.parametrize("start_with", [b"GET /healthz HTTP/1.1\r\n", b"GET /"])
def test_endless_heads_are_cut_off(start: Any, start_with: bytes) -> None:
    server = start()
    before = memory(server)
    one = connect(server)
    one.sendall(start_with)
    line = b"x" * 65536 if start_with.endswith(b"/") else b"X-Long: " + b"x" * 65536 + b"\r\n"
    sent = pour(one, line, 50 * 2**20)
    assert sent < 20 * 2**20, "it has taken everything"
    assert memory(server) - before < 20 * 2**20
    one.close()
    assert server.api.get(C).status == 200


def test_a_head_that_is_too_large_is_said_so(server: Any) -> None:
    for head in (b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000, b"GET /" + b"x" * 40_000):
        one = connect(server)
        one.sendall(head)
        status, error = answer_of(one)
        assert (status, error["code"]) == (431, "head_too_large")
    answer = server.api.with_token(None).get("/login?" + "x" * 9000)
    assert (answer.status, answer.error["code"]) == (414, "address_too_long")
    fits = server.api.get(C, headers={"X-Long": "x" * 20_000})
    assert fits.status == 200


@pytest.mark.slow
def test_half_open_requests_lock_nobody_out(start: Any) -> None:
    server = start("--connections", "150", "--connections-per-address", "150")
    held = []
    for k in range(400):
        one = connect(server)
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" if k % 2 else b"")
        held.append(one)
        if k % 100 == 99:
            assert server.api.get(C, timeout=300).status == 200
    for one in held:
        one.close()


def test_streams_of_events_leave_room_for_requests_and_for_other_addresses(start: Any) -> None:
    """Streams never end, and are not cut for newcomers: a quarter of an address's connections is not for them."""
    server = start("--connections-per-address", "10", "--host", "0.0.0.0")
    id = server.api.create()
    ask = f"GET {C}/{id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.api.token}\r\n"
    streams = [connect(server) for _ in range(7)]
    for one in streams:
        one.sendall(f"{ask}\r\n".encode())
        assert one.recv(12) == b"HTTP/1.1 200"
    for _ in range(4):
        too_many = connect(server)
        too_many.sendall(f"{ask}Connection: close\r\n\r\n".encode())
        status, error = answer_of(too_many)
        assert (status, error["code"]) == (503, "too_many_streams")
        assert "7 streams" in error["message"]
    for k in range(4):
        (asked,) = server.api.post(f"{C}/{id}/ask", {"worker": "w", "n": 1}).json["asks"]
        told = {"id": str(k), "arm": asked["arm"], "values": [0.0, 0.0], "lease": asked["lease"]}
        assert server.api.post(f"{C}/{id}/tell", {"measurements": [told]}).json["accepted"] == 1
    other = socket.create_connection(("127.0.0.1", server.port), timeout=300, source_address=("127.0.0.2", 0))
    other.sendall(f"{ask}\r\n".encode())
    assert other.recv(12) == b"HTTP/1.1 200"
    streams.pop().close()

    def there_is_room() -> bool:
        one = connect(server)
        one.sendall(f"{ask}\r\n".encode())
        streams.append(one)
        return one.recv(12) == b"HTTP/1.1 200"

    wait_until(there_is_room)
    for one in [*streams, other]:
        one.close()


@pytest.mark.parametrize("what", ["head", "body", "nothing"])
def test_what_does_not_arrive_in_time_is_cut(what: str) -> None:
    """With short times, in this process: the real ones are a quarter of a minute."""
    import threading

    import uvicorn

    from coterie.web import limits as connections

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "HEAD_SECONDS", 0.4)
        patch.setattr(connections, "BODY_SECONDS", 0.4)
        limits = connections.Connections()
        config = uvicorn.Config(
            app, port=0, http=connections.limited(limits), log_config=None, lifespan="off", ws="none"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        wait_until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        one = socket.create_connection(("127.0.0.1", port), timeout=300)
        if what == "head":
            one.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        elif what == "body":
            one.sendall(b"POST /x HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc")
        if what == "nothing":
            assert one.recv(10) == b""
        else:
            assert answer_of(one)[0] == 408
        wait_until(lambda: not limits.open)
        assert not limits.by_address
        server.should_exit = True
        thread.join(60)


def test_a_body_is_taken_only_where_there_is_use_for_it(server: Any) -> None:
    token = f"Authorization: Bearer {server.api.token}\r\n"
    for line, headers, expected in (
        ("GET /healthz", "", "no_body"),
        (f"GET {C}", token, "no_body"),
        ("POST /logout", token, "no_body"),
        (f"POST {C}", "", "no_token"),
        ("POST /login", "Sec-Fetch-Site: same-origin\r\n", "body_too_large"),
    ):
        for size in ("Content-Length: 8000000", "Transfer-Encoding: chunked"):
            one = connect(server)
            chunk = b"1388\r\n" + b"x" * 5000 + b"\r\n" if "chunked" in size else b"x" * 5000
            one.sendall(f"{line} HTTP/1.1\r\nHost: x\r\n{headers}{size}\r\n\r\n".encode() + chunk)
            status, error = answer_of(one)  # until it is closed: nobody waits for the rest
            assert error["code"] == expected, (line, size, status)


def test_the_address_behind_a_proxy_counts_only_if_the_proxy_is_stated(start: Any) -> None:
    """Who guesses tokens is slowed down by address, and cannot choose one."""
    server = start("--rate", "0")
    said = [
        server.api.with_token(f"wrong{k}").get(C, headers={"X-Forwarded-For": f"10.0.0.{k}"}).status for k in range(80)
    ]
    assert 429 in said
    behind = start("--rate", "0", "--proxy", "127.0.0.1")
    said = [
        behind.api.with_token(f"wrong{k}").get(C, headers={"X-Forwarded-For": f"10.0.0.{k}"}).status for k in range(80)
    ]
    assert set(said) == {401}
