"""schemathesis against the OpenAPI document: whatever is sent, the server answers in its own shapes, never with 500.

Bounded by a number of examples for each operation, so that it takes about a minute, and always the same ones;
COTERIE_EXAMPLES=600 makes so many.
"""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from typing import Any

import hypothesis
import pytest

EXAMPLES = int(os.environ.get("COTERIE_EXAMPLES", 150))
OPERATIONS = [
    ("GET", "/healthz"),
    ("GET", "/api/campaigns"),
    ("POST", "/api/campaigns"),
    ("GET", "/api/campaigns/{id}"),
    ("POST", "/api/campaigns/{id}/ask"),
    ("POST", "/api/campaigns/{id}/tell"),
    ("POST", "/api/campaigns/{id}/fail"),
    ("POST", "/api/campaigns/{id}/resolution"),
    ("POST", "/api/campaigns/{id}/corrections"),
    ("POST", "/api/campaigns/{id}/undo"),
    ("POST", "/api/campaigns/{id}/close-block"),
    ("POST", "/api/campaigns/{id}/attachments"),
    ("GET", "/api/campaigns/{id}/attachments"),
    ("GET", "/api/campaigns/{id}/attachment"),
    ("GET", "/api/campaigns/{id}/attachments.zip"),
    ("POST", "/api/campaigns/{id}/archive"),
    ("POST", "/api/campaigns/{id}/lease-time"),
    ("POST", "/api/campaigns/{id}/invitations"),
    ("GET", "/api/campaigns/{id}/invitations"),
    ("DELETE", "/api/campaigns/{id}/invitations"),
    ("DELETE", "/api/campaigns/{id}"),
    ("POST", "/api/campaigns/{id}/items"),
    ("POST", "/api/campaigns/{id}/retire"),
    ("POST", "/api/campaigns/{id}/clusters"),
    ("POST", "/api/campaigns/{id}/delta"),
    ("POST", "/api/campaigns/{id}/deadline"),
    ("GET", "/api/campaigns/{id}/items"),
    ("GET", "/api/campaigns/{id}/budget"),
    ("GET", "/api/campaigns/{id}/measurements"),
    ("GET", "/api/campaigns/{id}/history"),
    ("GET", "/api/campaigns/{id}/partial"),
    ("GET", "/api/campaigns/{id}/picture"),
    ("GET", "/api/campaigns/{id}/cells"),
    ("GET", "/api/campaigns/{id}/resolution-curve"),
    ("GET", "/api/campaigns/{id}/certificate"),
    ("GET", "/api/campaigns/{id}/export"),
    ("GET", "/api/campaigns/{id}/events"),
    ("POST", "/api/campaigns/{id}/import"),
    ("POST", "/api/items"),
]


@pytest.fixture(scope="module")
def schema(server: Any) -> Any:
    import schemathesis  # not at the top: it takes a second, which every collection would pay
    from schemathesis.config import SchemathesisConfig

    config = SchemathesisConfig.from_dict({"generation": {"mode": "all"}})
    document = server.api.with_token(None).get("/openapi.json").json
    return schemathesis.openapi.from_dict(document, config=config)


def test_all_operations_are_tried(schema: Any) -> None:
    known = sorted((found.ok().method.upper(), found.ok().path) for found in schema.get_all_operations())
    assert known == sorted(OPERATIONS)


def reach_further(body: Any, lease: str, turn: int) -> None:
    """Put things that exist in place of some that were made up, so that what else is in the body is looked at."""
    for one in [body, *(body.get("measurements") or [])] if isinstance(body, dict) else []:
        if isinstance(one, dict):
            if "arm" in one and turn % 4 == 1:
                one |= {"arm": turn % 6, "lease": None}
            if "lease" in one and one["lease"] is not None:
                one["lease"] = lease
            if isinstance(one.get("values"), list):
                one["values"] = (one["values"] * 2)[:2]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda part: part.replace("/api/campaigns", "…"))
def test_no_500(schema: Any, api: Any, method: str, path: str) -> None:
    import requests
    from schemathesis import GenerationMode

    asked = {"n_clusters": None, "resolution": {"alike": 0.5, "apart": 2}} if path.endswith("/resolution") else {}
    id = api.create(names=["a", "b", "c", "d", "e", "f"], **asked)
    leases = [ask["lease"] for ask in api.ask(id, "somebody", 6)]
    operation = schema[path][method]
    tried = {"sent": 0, "known": 0}

    def send(case: Any) -> None:
        tried["sent"] += 1
        if tried["sent"] % 2 and "id" in (case.path_parameters or {}):
            case.path_parameters["id"] = id  # half of them reach a campaign that exists
            tried["known"] += 1
            reach_further(case.body, leases[tried["sent"] // 2 % len(leases)], tried["sent"])
        if path.endswith("/events"):
            more: dict[str, Any] = {"stream": True, "timeout": 10}
        else:
            more = {"timeout": 60}
        arguments = case.as_transport_kwargs(base_url=api.url)
        arguments["headers"] = {**dict(arguments.get("headers") or {}), "Authorization": f"Bearer {api.token}"}
        with requests.Session() as session, session.request(**arguments, **more) as answer:
            assert answer.status_code < 500, (answer.status_code, arguments)
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error"}, answer.content
                assert set(answer.json()["error"]) == {"code", "message", "field"}
            elif not path.endswith("/events"):
                assert answer.status_code in (200, 201)

    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        given = hypothesis.given(case=operation.as_strategy(generation_mode=mode))(send)
        settings = hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        # Nothing can be made wrong about an operation without parameters.
        with suppress(hypothesis.errors.Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
            settings(given)()
    print(f"{method} {path}: {tried['sent']} requests, {tried['known']} of them to a campaign that exists")
    assert tried["sent"] > 0
