"""The bodies of requests, as OpenAPI describes them. Types are checked here; ranges and sizes by the store.

Where a value may have several types it is `Any` with a schema of its own, so that the store's message, which says what
is wrong and names the field, is the one that people read.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, NoReturn, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, WithJsonSchema

from coterie.campaign.settings import LEASE_SECONDS, ON_EXPIRY
from coterie.methods import METHODS
from coterie.problem.settings import DELTA, METHOD, THRESHOLD
from coterie.web.errors import Refusal

_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_Values = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, _NUMBERS]})]
_Arm = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]})]
_Noise = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "null"},
                {"type": "number", "exclusiveMinimum": 0},
                _NUMBERS,
                {"type": "array", "items": _NUMBERS, "minItems": 1},
            ]
        }
    ),
]
Number = StrictInt | StrictFloat


def _describe_methods(schema: dict[str, Any]) -> None:
    """List the methods that a campaign may use, those registered by now too."""
    offered = [method for method in METHODS.values() if not method.simulates_only]
    schema["description"] = "; ".join(f"{method.name}: {method.sentence}" for method in offered) + "."


def _describe_distance_ratio(schema: dict[str, Any]) -> None:
    needing = " and ".join(method.name for method in METHODS.values() if "distance_ratio" in method.needs)
    schema["description"] = f"r, in (0, 1], for {needing}."


class Body(BaseModel):
    """A JSON object without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class NewCampaign(Body):
    """What a campaign is created with: the settings of its run, what its numbers are called, the rules for leases."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "fruit", "n_arms": 4, "n_clusters": 2, "dim": 1, "names": ["apple", "pear", "kiwi", "fig"]},
                {"name": "machines", "n_arms": 40, "n_clusters": 3, "dim": 2, "delta": 0.01, "noise": [0.5, 2.0]},
            ]
        }
    )
    name: StrictStr = Field(description="What people call it.")
    n_arms: StrictInt = Field(ge=1, description="How many items there are.")
    n_clusters: StrictInt = Field(ge=1, description="How many groups there are.")
    dim: StrictInt = Field(ge=1, description="How many numbers one measurement has.")
    delta: Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})] = Field(
        default=DELTA, description="The error probability that is allowed."
    )
    method: StrictStr = Field(default=METHOD, json_schema_extra=_describe_methods)
    threshold: StrictStr = Field(
        default=THRESHOLD, description="proven or heuristic, for methods that have both; heuristic is no proof."
    )
    noise: _Noise = Field(
        default=None, description="A standard deviation, one for each coordinate, or a covariance; null: 1."
    )
    names: list[StrictStr] | None = Field(default=None, description="The items' names.")
    distance_ratio: Annotated[Any, WithJsonSchema({"type": ["number", "null"]})] = Field(
        default=None, json_schema_extra=_describe_distance_ratio
    )
    lease_seconds: Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0})] = Field(
        default=LEASE_SECONDS, description="How long a worker may take."
    )
    on_expiry: StrictStr = Field(
        default=ON_EXPIRY[0], description=f"{' or '.join(ON_EXPIRY)}: what happens to asks that expire."
    )
    value_names: list[StrictStr] | None = Field(
        default=None, description="What the numbers of a measurement are called; null: v0, v1, …"
    )


class AskBody(Body):
    """Who asks for how many items."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"worker": "bench 1", "n": 1}]})
    worker: StrictStr = Field(description="Who measures.")
    n: StrictInt = Field(default=1, ge=1, description="How many items.")


class Measurement(Body):
    """One result."""

    id: StrictStr = Field(description="Made up by the client; the same id twice counts once.")
    arm: _Arm = Field(description="The item: its number or its name.")
    values: _Values = Field(description="The numbers measured; a single number if there is only one.")
    lease: StrictStr | None = Field(default=None, description="The lease that it answers.")
    worker: StrictStr | None = Field(default=None, description="Who measured, if there is no lease to tell.")


class TellBody(Body):
    """Results, all or nothing."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"measurements": [{"id": "2026-01-31/1", "arm": 0, "values": [1.25]}]}]}
    )
    measurements: list[Measurement]


class FailBody(Body):
    """A measurement that will not come."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease": "9f2c…", "reason": "the sample broke"}]})
    lease: StrictStr
    reason: StrictStr = ""


BODIES: tuple[type[Body], ...] = (NewCampaign, AskBody, TellBody, FailBody)
_Body = TypeVar("_Body", bound=Body)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


async def read_body(request: Request, kind: type[_Body]) -> _Body:
    """The JSON object that a request carries."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        what = f"got {media[:80]!r}" if media else "got none"
        raise Refusal(415, "not_json", f"the body must be JSON: send the header Content-Type: application/json, {what}")
    try:
        content = json.loads((await request.body()).decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise Refusal(400, "bad_json", f"the body is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Refusal(400, "bad_json", f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except ValueError as error:  # NaN, or a number with thousands of digits
        raise Refusal(400, "bad_json", f"the body is not JSON that can be read: {str(error)[:200]}") from None
    except RecursionError:
        raise Refusal(400, "bad_json", "the body is nested too deeply") from None
    return kind.model_validate(content)


def request_body(kind: type[Body]) -> dict[str, Any]:
    """The description of a body for OpenAPI; `body_schemas` has what it refers to."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    examples: list[Any] = kind.model_json_schema()["examples"]
    content = {"schema": schema, "examples": {f"example {i + 1}": {"value": one} for i, one in enumerate(examples)}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def body_schemas() -> dict[str, Any]:
    """The schemas of all bodies."""
    found: dict[str, Any] = {}
    for kind in BODIES:
        schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {})
        found[kind.__name__] = schema
    return found
