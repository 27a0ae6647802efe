"""What Prometheus reads: it adds up, names no campaign, and opens only to those who may read it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from coterie.web.metrics import BOUNDS, Requests

METRICS_TOKEN = "a-token-for-metrics-0123456789"
C = "/api/campaigns"
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="[^"\\\n]*",?)+)\})? (\S+)')


def samples_of(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """The samples of a text in Prometheus' format, by name and labels; each is there once, after its type."""
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    typed = set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            typed.add(line.split()[2])
        if line.startswith("#"):
            continue
        parsed = SAMPLE.fullmatch(line)
        assert parsed, line
        name, labels, value = parsed.groups()
        assert name in typed or re.sub("_(bucket|sum|count)$", "", name) in typed
        key = (name, frozenset(re.findall(r'([a-z]+)="([^"]*)"', labels or "")))
        assert key not in samples
        samples[key] = float(value)
    return samples


def value(samples: Any, name: str, **labels: str) -> float:
    return float(samples[name, frozenset(labels.items())])


def test_metrics_count_what_was_done_and_name_nobody(start: Any) -> None:
    server = start("--metrics-token", METRICS_TOKEN)
    api = server.api
    id = api.create(name="secret beans", names=["ash", "elm", "oak", "fir", "yew", "box"])
    done = api.create(name="secret peas")
    for k, ask in enumerate(api.ask(id, n=3)[:2]):
        one = {"id": f"m{k}", "arm": ask["arm"], "values": [0.5, 1.0], "lease": ask["lease"]}
        assert api.tell(id, one).status == 200
    assert api.post(f"{C}/{done}/archive", {"archived": True}).status == 200
    assert api.get(f"{C}/{id}").status == 200
    assert api.get(f"{C}/0123").status == 404
    api.with_token(None).get(f"/made/up/{id}")
    api.get(f"/made/up/{id}")
    answer = api.with_token(METRICS_TOKEN).get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.content.decode()
    for secret in ("secret", id, done, "ash", METRICS_TOKEN, api.token):
        assert secret not in text
    samples = samples_of(text)
    counted = "coterie_http_requests_total"
    assert value(samples, counted, route="/api/campaigns", method="POST", status="201") == 2
    assert value(samples, counted, route="/api/campaigns/{id}/tell", method="POST", status="200") == 2
    assert value(samples, counted, route="/api/campaigns/{id}", method="GET", status="200") == 1
    assert value(samples, counted, route="/api/campaigns/{id}", method="GET", status="404") == 1
    assert value(samples, counted, route="other", method="GET", status="401") == 1
    assert value(samples, counted, route="other", method="GET", status="404") == 1
    assert [value(samples, "coterie_campaigns", state=state) for state in ("running", "done", "archived")] == [1, 0, 1]
    assert value(samples, "coterie_results") == 2
    assert value(samples, "coterie_open_asks") == 1
    assert value(samples, "process_cpu_seconds_total") > 0
    assert value(samples, "process_resident_memory_bytes") > 2**20
    for route in {dict(labels)["route"] for name, labels in samples if name == counted}:
        of_route = [
            number for (name, labels), number in samples.items() if name == counted and ("route", route) in labels
        ]
        assert value(samples, "coterie_http_request_seconds_count", route=route) == sum(of_route)
        assert value(samples, "coterie_http_request_seconds_bucket", route=route, le="+Inf") == sum(of_route)
    monitoring = api.with_token(METRICS_TOKEN)  # opens nothing else
    for path in (C, f"{C}/{id}", "/", f"/campaigns/{id}"):
        assert monitoring.get(path).status == 401, path
    assert monitoring.post("/metrics").status == 403
    assert METRICS_TOKEN not in server.stop()


def test_metrics_token_opens_nothing_where_none_was_given(api: Any) -> None:
    assert api.with_token(METRICS_TOKEN).get("/metrics").status == 401
    assert api.with_token(None).get("/metrics").status == 401
    assert api.get("/metrics").status == 200
    refused = api.with_token("a-token-for-readers-0123456789").get("/metrics")
    assert (refused.status, refused.error["code"]) == (403, "not_for_this_token")


@pytest.mark.parametrize(("token", "message"), [("with blanks in it", "visible ASCII"), ("same", "must differ")])
def test_metrics_token_that_is_no_good_is_refused(tmp_path: Any, token: str, message: str) -> None:
    from coterie.web import serve

    with pytest.raises(ValueError, match=message):
        serve(str(tmp_path / "x.db"), port=0, token="same", metrics_token=token)


def test_latencies_fall_into_the_class_that_holds_them() -> None:
    times = iter([0.0, 0.001, 0.0, 0.0011, 0.0, 99.0])
    requests = Requests(clock=lambda: next(times))

    async def send(message: Any) -> None:
        pass

    async def answer() -> None:
        counted = requests.observed({"type": "http", "method": "BREW", "root_path": "/static"}, send)
        await counted({"type": "http.response.start", "status": 200})
        await counted({"type": "http.response.body"})

    for _ in range(3):
        asyncio.run(answer())
    samples = samples_of("\n".join(requests.lines()) + "\n")
    classes = {bound: value(samples, "coterie_http_request_seconds_bucket", route="/static", le=bound)
               for bound in (*map(repr, BOUNDS), "+Inf")}  # fmt: skip
    assert classes == {bound: {"0.001": 1, "+Inf": 3}.get(bound, 2) for bound in classes}
    assert value(samples, "coterie_http_request_seconds_sum", route="/static") == pytest.approx(99.0021)
    assert value(samples, "coterie_http_requests_total", route="/static", method="other", status="200") == 3
